"""Takes names out of a snapshot that is to be shown in public: hosts, addresses, users, paths. Secrets left it before.

Each name gets one stand-in throughout the snapshot (``host-1``, ``198.18.0.1``, ``user-1``, ``dir-1``), so what is equal stays
equal. What a diagnosis needs stays as it is: versions, packages, what lies below ``site-packages`` and in the system's own folders.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from gpuwhy.snapshot.document import Snapshot

KINDS = ("hosts", "ips", "users", "paths")

_OURS = re.compile(r"(?:host|user|dir)-\d{1,6}\Z")

_ORDINARY_USERS = frozenset(
    {"root", "nobody", "daemon", "ubuntu", "debian", "ec2-user", "admin", "user", "docker", "vllm", "sglang", "ollama", "app", "www-data", "systemd-network"}
)  # fmt: skip

_PUBLIC_HOSTS = re.compile(
    r"(?:.{1,200}\.)?(?:localhost|huggingface\.co|hf\.co|github\.com|githubusercontent\.com|pypi\.org|pythonhosted\.org|nvidia\.com|nvcr\.io|docker\.io|"
    r"quay\.io|ghcr\.io|gcr\.io|pytorch\.org|modelscope\.cn|python\.org|debian\.org|ubuntu\.com|anaconda\.org|example\.(?:com|org|net))\Z",
    re.IGNORECASE,
)

_URL_HOST = re.compile(r"(?<=://)(?:[^\s/@'\"<>]{1,200}@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252})(?=[:/\s'\"?#]|\Z)")

_IPV4 = re.compile(r"(?<![\w.-])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\w)")

_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{6,45}(?![\w:.])")

_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")

_VERSION_BEFORE = re.compile(
    r"(?i)(?:version|release|\bv|\bnvidia-[a-z-]{2,20}\d{0,3}|\b(?:lib)?(?:cu|nv|nccl|npp)[a-z]{1,12}(?:-?cu)?\d{0,3})\W{0,3}\Z"
)
"""``nvidia-cudnn-cu12 9.10.2.21``: a version of four numbers looks like an address."""

_HOME = re.compile(r"(?:/home|/Users|/export/home)/(?P<user>[A-Za-z_][\w.-]{1,63})")

_LOGIN = re.compile(r"(?<![\w.@/-])(?P<user>[A-Za-z_][\w.-]{1,63})@(?=[A-Za-z0-9])")

_PATH = re.compile(r"(?<![\w./:])(?P<path>(?:/(?:[\w.@+~=-]|,(?![\w.-]{1,40}=)){1,255}){2,40}/?)")
"""A comma before ``name=`` ends a path: ``cpuset=/,mems_allowed=0,task_memcg=/system.slice/sglang.service,task=python``."""

_SYSTEM_ROOTS = frozenset({"usr", "lib", "lib64", "bin", "sbin", "proc", "sys", "dev", "etc", "run", "boot"})

_KEPT_FROM = frozenset({"site-packages", "dist-packages", ".cache", ".triton", ".nv", ".deep_gemm", "nvidia", "cuda"})

_ORDINARY = re.compile(
    r"(?:root|home|Users|opt|mnt|srv|tmp|var|log|cache|data|models?|hub|snapshots|blobs|workspace|app|src|build|csrc|v\d|chat|completions|embeddings|generate|health|metrics|sources|bin|sbin|lib\d{0,2}|include|share|local|"
    r"\.?v?env|envs|(?:ana|mini|micro)?conda3?|python\d?(?:\.\d{1,2})?|cuda(?:-[\d.]{1,8})?|torch\w{0,20}|flashinfer\w{0,20}|triton|vllm|sglang\w{0,12}|"
    r"[\w.@:-]{1,120}\.(?:slice|service|scope)|docker|kubepods\w{0,20}|libpod\w{0,20}|[0-9a-f]{64}|"
    r"x86_64-linux-gnu|aarch64-linux-gnu|user-\d{1,6}|dir-\d{1,6})\Z"
)

_SUFFIX = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,11}){1,2}(?:\.\d{1,4}){0,3}\Z")


def parse_kinds(text: str) -> tuple[str, ...]:
    """``hosts,ips`` as kinds; ``all`` means every one. Raises ValueError naming what is none of them."""
    named = KINDS if text.strip() == "all" else tuple(each.strip() for each in text.split(",") if each.strip())
    unknown = [each for each in named if each not in KINDS]
    if unknown or not named:
        raise ValueError(f"{', '.join(unknown) or 'nothing'}: choose of {', '.join(KINDS)}, or all")
    return named


def anonymised(snapshot: Snapshot, kinds: tuple[str, ...]) -> Snapshot:
    """The snapshot without names of ``kinds``; ``redacted`` counts the replacements by kind. Doing it twice changes nothing."""
    document = msgspec.to_builtins(snapshot)
    names = _Names(kinds, document)
    document["probes"], document["excerpts"] = names.without(document["probes"]), names.without(document["excerpts"])
    document["target"] = names.without(document["target"])
    counts = dict(snapshot.redacted)
    for kind, count in names.counts.items():
        counts[kind] = counts.get(kind, 0) + count
    return msgspec.convert({**document, "redacted": counts}, Snapshot)


def stand_ins(texts: Iterable[str], *, hosts: Iterable[str] = (), versions: Iterable[str] = ()) -> Callable[[str], str]:
    """A function that takes every kind of name out of a text, with one stand-in for each name of all ``texts``.

    ``hosts`` are names that nothing in the texts gives away; ``versions`` are no addresses, though they may look like some.
    """
    packages = {
        "probe": "packages",
        "value": [{"versions": {str(number): each for number, each in enumerate(versions)}}],
    }
    document = {"target": {"name": ""}, "hosts": list(hosts), "probes": [packages], "texts": list(texts)}
    return _Names(KINDS, document).without


class _Names:
    """The names of one document and their stand-ins."""

    def __init__(self, kinds: tuple[str, ...], document: dict[str, Any]) -> None:
        self.counts: dict[str, int] = {}
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._highest: dict[str, int] = {}
        self._versions = frozenset(_versions(document))
        self._kept = {probe.get("probe") for probe in document["probes"]} | {"ok", "absent", "denied", "failed"}
        texts = list(_texts(document))
        hosts = _hosts(document, texts) if "hosts" in kinds else set()
        users = _users(document, texts) if "users" in kinds else set()
        passes: dict[str, list[Callable[[str], str]]] = {
            "users": [self._words("users", "user", users)],
            "hosts": [self._words("hosts", "host", hosts)],
            "ips": [self._addresses],
            "paths": [self._paths],
        }
        self._passes = [each for kind, found in passes.items() if kind in kinds for each in found]

    def without(self, value: Any) -> Any:
        if isinstance(value, str):
            for each in self._passes if value not in self._kept else ():
                value = each(value)
            return value
        if isinstance(value, dict):
            return {self.without(key): self.without(item) for key, item in value.items()}
        return [self.without(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _words(self, kind: str, stem: str, names: set[str]) -> Callable[[str], str]:
        if not names:
            return lambda text: text
        longest_first = sorted(names, key=lambda name: (-len(name), name))
        pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-]|\.\w)")
        return lambda text: pattern.sub(lambda found: self._stand_in(kind, found.group(), stem + "-{}"), text)

    def _addresses(self, text: str) -> str:
        text = _MAC.sub(lambda found: self._numbered("ips", found.group().lower(), _mac), text)
        text = _IPV4.sub(self._ipv4, text)
        return _IPV6.sub(self._ipv6, text) if "::" in text or text.count(":") > 6 else text

    def _ipv4(self, found: re.Match[str]) -> str:
        text = found.group()
        before = found.string[max(0, found.start() - 36) : found.start()]
        address = _address(text)
        is_version = text in self._versions or bool(_VERSION_BEFORE.search(before) and not _says_address(found))
        if (
            address is None
            or is_version
            or address.is_loopback
            or address.is_unspecified
            or text.startswith(("0.", "198.18.", "198.19.", "255."))
        ):
            return text
        return self._numbered("ips", text, lambda number: f"198.18.{number >> 8 & 255}.{number & 255}")

    def _ipv6(self, found: re.Match[str]) -> str:
        text = found.group()
        address = _address(text)
        if (
            address is None
            or address.version != 6
            or address.is_loopback
            or text.startswith("2001:db8:")
            or len(text) < 8
        ):
            return text
        return self._numbered("ips", str(address), lambda number: f"2001:db8::{number:x}")

    def _paths(self, text: str) -> str:
        return _PATH.sub(lambda found: self._path(found.group()), text) if "/" in text else text

    def _path(self, path: str) -> str:
        first, *rest = path.split("/")[1:]
        if first in _SYSTEM_ROOTS:
            return path
        parts = [first, *rest]
        end = next((number for number, part in enumerate(parts) if part in _KEPT_FROM), len(parts))
        return "/" + "/".join([*(self._folder(part) for part in parts[:end]), *parts[end:]])

    def _folder(self, part: str) -> str:
        if not part or _ORDINARY.match(part):
            return part
        suffix = _SUFFIX.search(part)
        ending = suffix.group() if suffix and suffix.start() else ""
        stem = part[: len(part) - len(ending)]
        return part if _OURS.match(stem) else self._stand_in("paths", stem, "dir-{}") + ending

    def _stand_in(self, kind: str, name: str, shape: str) -> str:
        return name if _OURS.match(name) else self._numbered(kind, name, shape.format)

    def _numbered(self, kind: str, name: str, shape: Callable[[int], str]) -> str:
        known = self._stand_ins.get((kind, name))
        if known is None:
            self._highest[kind] = number = self._highest.get(kind, 0) + 1
            known = self._stand_ins[kind, name] = shape(number)
        if known != name:
            self.counts[kind] = self.counts.get(kind, 0) + 1
        return known


def _mac(number: int) -> str:
    """Of the range that is set aside for documentation."""
    return f"00:00:5e:00:{0x53 + (number >> 8):02x}:{number & 255:02x}"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _says_address(found: re.Match[str]) -> bool:
    """A port or a network after it, or a word before it that versions do not follow."""
    after = found.string[found.end() : found.end() + 6]
    before = found.string[max(0, found.start() - 12) : found.start()].lower()
    return bool(
        re.match(r":\d|/\d{1,2}\b", after)
        or re.search(r"(?:addr|inet|host|from|to|peer|rank|ip|at|by)\W{1,3}\Z", before)
    )


def _versions(document: dict[str, Any]) -> Iterator[str]:
    for probe in document["probes"]:
        if probe.get("probe") == "packages" and isinstance(probe.get("value"), list):
            for each in probe["value"]:
                if isinstance(each, dict) and isinstance(each.get("versions"), dict):
                    yield from (str(version) for version in each["versions"].values())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _value(document: dict[str, Any], probe: str, *keys: str) -> Any:
    value = next((each.get("value") for each in document["probes"] if each.get("probe") == probe), None)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _hosts(document: dict[str, Any], texts: list[str]) -> set[str]:
    """The target's own names, and the hosts in addresses, but for those that everybody uses."""
    name = str(document["target"]["name"]).rpartition("@")[2].partition(":")[0]
    own = [name, _value(document, "system", "host"), _value(document, "environment", "variables", "HOSTNAME")]
    found = {str(each) for each in (*own, *document.get("hosts", ())) if each}
    for text in texts:
        if "://" in text:
            found |= {each.group("host").rstrip(".") for each in _URL_HOST.finditer(text)}
    return {
        each
        for each in found
        if len(each) > 2
        and each != "local"
        and not _PUBLIC_HOSTS.match(each)
        and _address(each) is None
        and not _OURS.match(each)
    }


def _users(document: dict[str, Any], texts: list[str]) -> set[str]:
    """Whose homes and logins are mentioned, and who runs the service."""
    variables = ("USER", "LOGNAME")
    own = [
        _value(document, "unit", "properties", "User"),
        *(_value(document, "environment", "variables", name) for name in variables),
    ]
    found = {str(each) for each in own if each}
    for text in texts:
        if "/" in text:
            found |= {each.group("user") for each in _HOME.finditer(text)}
        if "@" in text:
            found |= {each.group("user") for each in _LOGIN.finditer(text)}
    return {each for each in found if len(each) > 2 and each not in _ORDINARY_USERS and not _OURS.match(each)}
