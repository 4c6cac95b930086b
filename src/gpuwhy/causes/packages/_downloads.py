"""What is fetched at run time: by which words a failure shows itself, and what can stand in for each kind of artefact."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.model.remedy import Remedy

FETCHING_CUBIN = says(
    "fetching-cubin",
    ("fetching cubin", "failed to get cubin", "failed to download cubin", "cubin", "downloading artifact"),
    r"Fetching cubin \S{1,300}|[Ff]ail(?:ed|ure) to (?:get|load|download|fetch|find) (?:the )?cubin|[Dd]ownload(?:ing)? (?:of )?cubins?.{0,80}(?:fail|error|timed out)|[Ff]ailed to (?:get|load) (?:the )?kernel \S{1,200}\.cubin|cubin.{0,120}(?:could not be|cannot be|was not) (?:downloaded|fetched)",
)
GENERATED_HEADER = says(
    "fetched-header",
    (
        "enums.h not found",
        "metainfo.h not found",
        "export.h not found",
        "interface.h not found",
        "checksums.txt",
        "metainfo.h",
    ),
    r"(?P<header>\w{2,80}(?:Enums|MetaInfo|Export|Interface)\.h)['\"]? (?:not found|does not exist|could not be)|(?:[Ff]ailed to|[Cc]ould not|[Cc]annot) (?:get|fetch|download|load) \S{0,120}(?:checksums\.txt|MetaInfo\.h)",
)
VOCABULARY = says(
    "vocabulary",
    ("vocab file", "openaipublic", "encodings/", "tiktoken"),
    r"(?:error|failed) (?:downloading or loading|to download or load) vocab(?: file)?|openaipublic\.blob\.core\.windows\.net|HarmonyError.{0,80}(?:download|vocab)",
)
HUB = says(
    "hub-unreachable",
    (
        "couldn't connect to",
        "couldn't reach",
        "cas service error",
        "we cannot find the requested files",
        "cannot find the requested files",
        "outgoing traffic has been disabled",
        "cannot reach https",
        "offline mode is enabled",
        "offlinemodeisenabled",
        "localentrynotfounderror",
        "check your internet connection",
        "check your connection",
    ),
    r"[Cc]ouldn't connect to ['\"]?https?://(?P<host>[\w.-]{3,100})|(?:cannot|Cannot) find the requested files in the (?:local|disk) cache|outgoing traffic has been disabled"
    r"|[Cc]ouldn't reach '.{1,80}' on the Hub|CAS service error.{0,80}(?:[Rr]e(?:quest|qwest)|retries|timed out)|[Cc]annot reach https?://(?P<host2>[\w.-]{3,100})|offline mode is enabled|OfflineModeIsEnabled|LocalEntryNotFoundError|(?:check|Check) your (?:internet )?connection",
)
TRANSPORT = says(
    "transport",
    (
        "max retries exceeded with url", "connectionpool(host=", "name resolution", "name or service not known", "could not resolve host", "failed to resolve", "nodename nor servname", "no such host",
        "network is unreachable", "no route to host", "certificate_verify_failed", "failed to verify certificate", "unknown authority", "proxyerror", "tunnel connection failed", "cannot connect to proxy",
        "client error", "server error", "dial tcp", "connection broken by", "http error ", "urlopen error", "i/o timeout", "client.timeout exceeded", "toomanyrequests", "too many requests", "failed to pull image", "errimagepull", "imagepullbackoff",
        "curl: (", "e: failed to fetch", "temporary failure resolving", "unable to access 'http", "error sending request for url", "connecterror", "connecttimeout", "readtimeout", "failed to download", "download failed",
        "connection timed out", "connection refused", "failed to clone", "download error", "failed downloading", "error downloading", "unable to connect to archive", "couldn't connect to server", "tls handshake timeout", "unexpected status from", "remotedisconnected", "connection reset by peer", "incompleteread", "failed to do request",
    ),
    r"(?:HTTPS?ConnectionPool\(host='(?P<host>[\w.-]{3,120})'.{0,600}?(?:Max retries exceeded|timed out|Read timed out|NameResolutionError|Failed to resolve|Connection refused|Network is unreachable|ProxyError|SSLError|RemoteDisconnected))"
    r"|Max retries exceeded with url: (?P<path>\S{1,200})"
    r"|(?P<status>\d{3}) (?:Client|Server) Error: .{0,60}? for url:? ?<?https?://(?P<host2>[\w.-]{3,120})(?P<path2>/\S{0,300})?"
    r"|urlopen error .{0,40}?(?:Name or service not known|Temporary failure in name resolution|timed out|Network is unreachable|No route to host|Connection refused|Connection reset|CERTIFICATE_VERIFY_FAILED|Tunnel connection failed|nodename nor servname)"
    r"|HTTP Error (?P<status2>4\d\d|5\d\d): [\w -]{3,40}"
    r"|lookup (?P<host3>[\w.-]{3,120})(?: on [\d.:\[\]a-f]{2,50})?:.{0,60}?(?:no such host|server misbehaving|i/o timeout|connection refused)"
    r"|(?:Get|Head|Put|Post|failed to do request: Head) \\?\"https?://(?P<host4>[\w.-]{3,120})[^\"]{0,300}\\?\": .{0,200}?(?:timeout|Timeout|refused|reset|EOF|no such host|unreachable|x509|certificate|proxyconnect|canceled|denied|TLS)"
    r"|connection broken by '(?P<broken>\w{3,40}Error)\(.{0,200}|toomanyrequests|You have reached your (?:unauthenticated )?pull rate limit"
    r"|curl: \((?:5|6|7|22|28|35|52|56|60)\) .{0,200}"
    r"|(?:[Cc]ould not|[Ff]ailed to|Temporary failure) resolv(?:e|ing) (?:hostname|host|the host)?:? ?['\"(]{0,2}(?P<host5>[\w-]{1,60}(?:\.[\w-]{1,60}){1,5})"
    r"|E: Failed to fetch https?://(?P<host6>[\w.-]{3,120})\S{0,300} .{0,200}"
    r"|unable to access '?https?://(?P<host7>[\w.-]{3,120})[^']{0,200}'?: .{0,200}"
    r"|error sending request for url \(https?://(?P<host8>[\w.-]{3,120})"
    r"|(?:httpx|httpcore|requests\.exceptions|aiohttp\.client_exceptions|urllib3\.exceptions)\.(?:ConnectError|ConnectTimeout|ReadTimeout|ConnectionError|ProxyError|SSLError|ClientConnectorError|NameResolutionError|MaxRetryError|ReadTimeoutError)\b"
    r"|(?:[Ff]ail(?:ed|ure)|[Ee]rror)(?: to)? (?:download|fetch|clone)\w{0,4}:? .{0,160}?https?://(?P<host9>[\w.-]{3,120})"
    r"|Failed to pull image \"(?P<image>[^\"]{3,200})\".{0,300}?(?:timeout|no such host|refused|TLS|EOF|unreachable|certificate|proxyconnect|toomanyrequests|429|50[0-9])",
)  # fmt: skip
SIGNS = (FETCHING_CUBIN, GENERATED_HEADER, VOCABULARY, HUB, TRANSPORT)

_URL_HOST = lazy_pattern(r"https?://(?P<host>[\w-]{1,80}(?:\.[\w-]{1,80}){1,6})(?=[:/\s'\")>]|$)")
_POOL_HOST = lazy_pattern(r"host='(?P<host>[\w.-]{2,120})'|Cannot connect to host (?P<other>[\w.-]{2,120})")
_PRIVATE = lazy_pattern(
    r"^(?:localhost|127\.|0\.0\.0\.0|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.0\.2\.|\[?::1|host\.docker\.internal)|\.(?:svc|local|internal|cluster\.local)$|^[\w-]{1,60}$"
)
_HUBS = ("huggingface.co", "hf.co", "xethub", "modelscope", "hf-mirror", "cdn-lfs")
_IGNORED_HOSTS = ("stats.vllm.ai", "scarf.sh", "telemetry", "sentry.io", "posthog", "wandb.ai", "usage")


class Artefact(msgspec.Struct, frozen=True):
    """A kind of thing that is fetched. ``component`` is what is missing without it."""

    kind: str
    component: str
    what: str


CUBINS = Artefact("cubins", "flashinfer-cubin", "FlashInfer's precompiled kernels and their headers")
VOCABULARIES = Artefact("vocabulary", "openai-harmony", "the vocabulary of gpt-oss models")
TIKTOKEN = Artefact("vocabulary", "tiktoken", "a vocabulary of tiktoken")
WEIGHTS = Artefact("model", "model-files", "files of the model")
IMAGE = Artefact("image", "container-image", "a container image")
PACKAGES = Artefact("packages", "python-env", "packages of an index")
SYSTEM_PACKAGES = Artefact("system packages", "container-image", "packages of the distribution")
SOURCES = Artefact("sources", "network", "sources that a build fetches")
OTHER = Artefact("file", "network", "a file")


def host_of(case: Case, match: Match) -> str | None:
    """The host that was asked: from the message, else from a URL near it."""
    named = next((v for g, v in match.groups.items() if g.startswith("host") and v), None)
    if named is not None:
        return named.lower().rstrip(".")
    told = _POOL_HOST.search(match.text[:2000])
    if told is not None:
        return str(told["host"] or told["other"]).lower()
    for line in (match.line, *case.lines_around(match, 12, 12)):
        found = _URL_HOST.search(line.text[:1500])
        if found is not None:
            return found["host"].lower()
    return None


def is_private(host: str | None) -> bool:
    """Whether the host is the program's own server or a neighbour, and no place to fetch from."""
    return host is not None and _PRIVATE.search(host) is not None


def is_ignored(host: str | None) -> bool:
    """Whether nothing depends on the host: statistics that programs send."""
    return host is not None and any(part in host for part in _IGNORED_HOSTS)


def is_hub(host: str | None) -> bool:
    return host is not None and any(part in host for part in _HUBS)


def artefact_of(case: Case, match: Match, host: str | None) -> Artefact:
    """What could not be fetched."""
    text = match.text
    if match.sign in (FETCHING_CUBIN.name, GENERATED_HEADER.name) or re.search(r"(?i)cubin|sw-kernelinference", text):
        return CUBINS
    if match.sign == VOCABULARY.name or (host is not None and "openaipublic" in host):
        near = parts.says_around(case, match, r"(?i)harmony|gpt[-_]oss|vocab file")
        return VOCABULARIES if near is not None else TIKTOKEN
    if match.sign == HUB.name or is_hub(host):
        return WEIGHTS
    near_text = " ".join(line.text[:300] for line in (match.line, *case.lines_around(match, 8, 6)))
    for pattern, artefact in _BY_WORDS:
        if pattern.search(text) or pattern.search(near_text):
            return artefact
    return OTHER


_BY_WORDS: tuple[tuple[re.Pattern[str], Artefact], ...] = (
    (lazy_pattern(r"registry\.ollama\.ai|ollama pull|pull model manifest"), WEIGHTS),
    (lazy_pattern(r"pull image|ImagePull|registry-1\.docker\.io|docker\.io|nvcr\.io|ghcr\.io|quay\.io|pull rate limit|docker pull|/v2/\S{1,80}/manifests|Error response from daemon"), IMAGE),
    (lazy_pattern(r"\bapt(?:-get)?\b|archive\.ubuntu\.com|deb\.debian\.org|E: Failed to fetch|\bdnf\b|\byum\b|kernel headers"), SYSTEM_PACKAGES),
    (lazy_pattern(r"pypi|files\.pythonhosted\.org|download\.pytorch\.org|pip(?:3)? install|/simple/|pypi\.nvidia\.com|uv pip"), PACKAGES),
    (lazy_pattern(r"anaconda\.org|llvm-triton|oaitriton"), Artefact("sources", "triton", "the tools that a build of Triton fetches")),
    (lazy_pattern(r"github\.com|gitlab\.com|FetchContent|git clone|Cloning into|submodule"), SOURCES),
    (lazy_pattern(r"from_pretrained|snapshot_download|hf_hub_download|\bhf_hub\b|safetensors|\.gguf|download(?:ing)? (?:the )?model"), WEIGHTS),
)  # fmt: skip


def stand_ins(case: Case, artefact: Artefact) -> tuple[Remedy, ...]:
    """What takes the place of the download, the smallest change first within each kind."""
    chosen: list[Remedy] = []
    if artefact is CUBINS:
        chosen = [
            Remedy(kind="package", name="flashinfer-cubin", value="match:flashinfer-python", rank=-1, summary="Install the wheel that holds these kernels, of FlashInfer's own release", cost="a download of some 200 MB where there is a network", check=("python -m pip show flashinfer-python flashinfer-cubin",)),
            Remedy(kind="env", name="FLASHINFER_CUBIN_DIR", value="pre-filled directory", summary="Fill a folder on a machine with a network (flashinfer download-cubin), bring it here, and name it", limits=("ignored up to FlashInfer 0.6.15 while flashinfer-cubin is installed",)),
        ]  # fmt: skip
    elif artefact.kind == "vocabulary":
        chosen = [
            Remedy(kind="env", name="TIKTOKEN_ENCODINGS_BASE" if artefact is VOCABULARIES else "TIKTOKEN_CACHE_DIR", value="folder with the vocabulary files", summary="Put the vocabulary files (o200k_base.tiktoken, cl100k_base.tiktoken) into a folder, and name it"),
        ]  # fmt: skip
    elif artefact is WEIGHTS:
        chosen = [] if case.engine == "ollama" else _for_models(case)
    elif artefact is IMAGE:
        chosen = [
            Remedy(kind="container", name="image", value="pulled elsewhere, or from a mirror", summary="Load the image from an archive (docker save, docker load), or pull it through a mirror of the registry"),
        ]  # fmt: skip
    elif artefact is PACKAGES:
        chosen = [
            Remedy(kind="env", name="PIP_INDEX_URL", value="an index that this host reaches", summary="Use an index inside the network, or wheels fetched elsewhere (pip download, pip install --no-index --find-links)"),
        ]  # fmt: skip
    return tuple(chosen)


def _for_models(case: Case) -> list[Remedy]:
    offline = next((n for n in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if case.facts.value(f"env.{n}") in ("1", "true", "True")), None)  # fmt: skip
    chosen = []
    if offline is not None:
        chosen.append(Remedy(kind="env", name=offline, value="unset", rank=-1, summary=f"{offline} forbids every download: unset it for the first start, or fill the cache before"))  # fmt: skip
    chosen += [
        Remedy(kind="env", name="HF_HOME", value="folder with a filled cache", summary="Fetch the model where there is a network (hf download MODEL), bring the cache here, name it, and set HF_HUB_OFFLINE=1"),
        Remedy(kind="env", name="HF_ENDPOINT", value="a mirror that this host reaches", rank=1, is_sure=False, summary="Or use a mirror of the hub"),
        Remedy(kind="flag", name="--model", value="a local folder", summary="Give the path of a folder with the model's files in place of its name"),
    ]  # fmt: skip
    return chosen
