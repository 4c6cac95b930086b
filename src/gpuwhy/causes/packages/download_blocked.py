"""download-blocked: something that is fetched at run time cannot be fetched from this host."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes.packages import _downloads as downloads
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_REFUSED_BY_REGISTRY = lazy_pattern(r"failed to authorize|pull access denied|authentication required|no basic auth credentials|denied: (?:denied|requested access)|(?:[Ii]mage|/v2/|manifests?|token)\b.{0,300}\b(?:401 Unauthorized|403 Forbidden)")  # fmt: skip
_REFUSED_BY_HUB = lazy_pattern(
    r"\b40[134] Client Error|GatedRepo|gated repo|RepositoryNotFound|401 Unauthorized|Access to model .{1,100} is restricted"
)
_RANKS_MEET = lazy_pattern(
    r"(?i)gloo|nccl|TCPStore|c10d|rendezvous|MASTER_ADDR|init_process_group|EngineCore.{0,40}zmq|etcd"
)
_BAD_STATUS = lazy_pattern(r"[45]\d\d")
_TLS = lazy_pattern(r"(?i)certificate|x509|SSLError|tls:")
_XET = lazy_pattern(r"(?i)xethub|CAS service|xet_get|hf_xet")
_LIMITED = lazy_pattern(r"(?i)\b429\b|too ?many ?requests|rate limit")


@cause(
    "download-blocked",
    family="Packages",
    leads_to=(
        "weights-missing-or-corrupt",
        "toolkit-incomplete",
    ),
    signs=downloads.SIGNS,
)
def download_blocked(case: Case) -> Judgement:
    """A run-time download (kernels, headers, vocabulary, weights, image) fails: no route, or the server refuses.

    How it shows itself
      `Max retries exceeded with url`, `Temporary failure in name resolution`, `We couldn't connect to 'https://huggingface.co'`,
      `error downloading or loading vocab file`, `dial tcp ...: i/o timeout`, `403 Client Error: Forbidden for url`. Or it is hidden:
      FlashInfer's `Fetching cubin ...` as the last line before the engine dies, or an assertion `BatchedGemmEnums.h not found`,
      because the helper that fetches returned nothing.

    Why it happens
      Kernels, vocabularies and weights are fetched at the first use, not at installation. Hosts without outbound access, a
      proxy that is not set for the service, a certificate of the company's own, a server's limit of requests.

    How to be sure
      `curl -sSI URL` on the failing host, in the container and with the environment of the service.

    What helps
      Bring the artefact beforehand: the flashinfer-cubin wheel of the same release or FLASHINFER_CUBIN_DIR,
      TIKTOKEN_ENCODINGS_BASE, a filled HF_HOME with HF_HUB_OFFLINE=1, a local folder, a mirror. Or open the way: proxy
      variables in the service's own environment, the company's certificate in REQUESTS_CA_BUNDLE.

    What does not help
      Installing a CUDA toolkit for a missing BatchedGemmEnums.h (it is no header of CUDA), reinstalling the engine, more retries.

    Not to be confused with
      gated-or-auth (401 or 403 for a model repository), toolkit-incomplete (a header of the toolkit), bootstrap-network
      (ranks that cannot meet), weights-missing-or-corrupt (a file is here and damaged).
    """
    for sign in downloads.SIGNS:
        for match in sorted(case.all(sign.name), key=lambda m: (m.is_code, m.event is None, m.line.number)):
            if match.is_code:
                continue
            host = downloads.host_of(case, match)
            if not _is_a_download(case, match, host):
                continue
            return _verdict(case, match, host)
    return None


def _is_a_download(case: Case, match: Match, host: str | None) -> bool:
    if match.sign != downloads.TRANSPORT.name:
        return match.sign != downloads.HUB.name or not _is_refused(case, match)
    if downloads.is_ignored(host) or downloads.is_private(host):
        return False
    if match.line.level in ("info", "debug") or ("Retrying" in match.text and not _is_given_up(case, match)):
        return False
    if _REFUSED_BY_REGISTRY.search(match.text[:1600]) and not _LIMITED.search(match.text):
        return False
    if downloads.is_hub(host) and _is_refused(case, match):
        return False
    if host is None and (_RANKS_MEET.search(match.text) or parts.says_around(case, match, _RANKS_MEET.pattern, 4, 4)):
        return False
    return not match.text.startswith(("INFO:", '"GET ', '"POST '))


def _is_given_up(case: Case, match: Match) -> bool:
    """Whether the installer stopped trying: it then finds no release at all."""
    return (
        "Retry(total=0" in match.text
        or parts.says_around(case, match, r"from versions: none|No matching distribution", 4, 12) is not None
    )


def _is_refused(case: Case, match: Match) -> bool:
    """The hub answered and refused: a matter of permission, or of the model's name."""
    if _LIMITED.search(match.text):
        return False
    return parts.says_around(case, match, _REFUSED_BY_HUB.pattern, 60, 20) is not None


def _verdict(case: Case, match: Match, host: str | None) -> Judgement:
    artefact = downloads.artefact_of(case, match, host)
    is_stated = match.sign == downloads.TRANSPORT.name
    quoted = case.evidence(
        match,
        f"{artefact.what} {'cannot be' if is_stated else 'should have been'} fetched"
        if match.sign != downloads.HUB.name
        else "the hub is not reached, and its files are not in the cache",
    )
    answer = _answer(case, host)
    if answer is not None and not _is_bad(answer.value):
        return RuledOut(
            f"{answer.key.partition('.')[2]} answers {answer.value} from this host", (quoted, answer.evidence)
        )
    is_failure = parts.is_failure(case, match)
    certainty = (
        Certainty.PROVEN
        if answer is not None or (is_stated and is_failure)
        else Certainty.LIKELY
        if is_stated or match.sign in (downloads.VOCABULARY.name, downloads.HUB.name)
        else Certainty.POSSIBLE
    )
    if is_stated and not is_failure and answer is None and case.incident.primary is not None:
        certainty = Certainty.POSSIBLE
    symptom = case.incident.primary_event
    if answer is None:
        certainty = parts.capped(case, match, certainty, *_what_died(case, match, symptom is not None))
    asked = _asked(case, host) if certainty is not Certainty.PROVEN else None
    hidden = not is_stated and artefact is downloads.CUBINS
    return Verdict(
        certainty=certainty,
        component=artefact.component,
        title=f"{artefact.what[0].upper()}{artefact.what[1:]} cannot be fetched from this host{f' ({host})' if host else ''}",
        chain=(
            Link(f"{host or 'The server'} is not reached from this host, or refuses", answer.evidence if answer is not None else quoted if is_stated else inferred("nobody asked the server from here")),
            Link(f"{artefact.what} is not there when it is needed", quoted, is_swallowed=hidden),
        ),
        evidence=(quoted, *((answer.evidence,) if answer is not None else ())),
        explains=case.explains(match, *_what_died(case, match, symptom is not None)),
        missing=(asked,) if asked is not None else (),
        rivals=_rivals(match, certainty),
        remedies=(*downloads.stand_ins(case, artefact), *_opening(match, host)),
        not_remedies=_in_vain(artefact),
        strength=_strength(match, certainty, is_failure=is_failure),
    )  # fmt: skip


def _strength(match: Match, certainty: Certainty, *, is_failure: bool) -> int:
    if match.sign == downloads.FETCHING_CUBIN.name:
        return 62
    if match.sign == downloads.TRANSPORT.name and not is_failure:
        return 40
    return 80 if certainty is Certainty.PROVEN else 68


def _what_died(case: Case, match: Match, has_primary: bool) -> tuple[Match, ...]:
    """A fetch that is the last thing said before the end explains that end, where nothing else was recognised."""
    primary = case.incident.primary_event
    if not has_primary or primary is None or match.sign != downloads.FETCHING_CUBIN.name:
        return ()
    return (msgspec.structs.replace(match, event=primary),) if primary.is_echo else ()


def _answer(case: Case, host: str | None) -> Fact | None:
    """What the server answered from this host, as the facts know it."""
    known = case.facts.group("http")
    fact = known.get(host or "")
    if fact is None and len(known) == 1:
        fact = next(iter(known.values()))
    return fact if isinstance(fact, Fact) and fact.value is not None else None


def _is_bad(value: object) -> bool:
    text = str(value).strip().lower()
    return _BAD_STATUS.fullmatch(text) is not None or not text.isdigit()


def _asked(case: Case, host: str | None) -> Missing | None:
    address = host or "HOST"
    return case.missing(
        f"http.{address}", "whether the server answers this host", f"curl -sSI https://{address}/ | head -1"
    )


def _rivals(match: Match, certainty: Certainty) -> tuple[str, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    if match.sign in (downloads.GENERATED_HEADER.name, downloads.FETCHING_CUBIN.name):
        return ("package-conflict", "toolkit-incomplete")
    return ("gated-or-auth",)


def _opening(match: Match, host: str | None) -> tuple[Remedy, ...]:
    """Ways to make the download itself work."""
    remedies = []
    if _TLS.search(match.text):
        remedies.append(Remedy(kind="env", name="REQUESTS_CA_BUNDLE", value="file with the network's own certificate", rank=-2, summary="Name the certificate of the proxy or the company to the service (also SSL_CERT_FILE)"))  # fmt: skip
    if _XET.search(match.text):
        remedies.append(Remedy(kind="env", name="HF_HUB_DISABLE_XET", value="1", rank=-2, summary="Fetch over plain HTTP, and not from the store of chunks (or allow *.xethub.hf.co too)"))  # fmt: skip
    if _LIMITED.search(match.text):
        remedies.append(Remedy(kind="env", name="HF_TOKEN", value="a token", rank=-2, is_sure=downloads.is_hub(host), summary="Ask with a token (or log in to the registry): the limit for anonymous requests is reached"))  # fmt: skip
    remedies += [
        Remedy(kind="env", name="HTTPS_PROXY", value="the proxy of this network", rank=3, is_sure=False, summary="Set the proxy in the environment of the service itself (systemd, the container engine), where the network has one"),
        Remedy(kind="config", name="network egress", value=f"allow {host or 'the artifact host'}", summary=f"Let the host reach {host or 'the server'} (firewall, proxy, DNS)", check=(f"curl -sSI https://{host or 'HOST'}/ | head -1",)),
    ]  # fmt: skip
    return tuple(remedies)


def _in_vain(artefact: downloads.Artefact) -> tuple[NotARemedy, ...]:
    if artefact is downloads.CUBINS:
        return (NotARemedy("installing a CUDA toolkit or its headers", "these headers and kernels are FlashInfer's own, and in no toolkit"),)  # fmt: skip
    return (NotARemedy("more retries or reinstalling the engine", "the way to the server stays closed"),)
