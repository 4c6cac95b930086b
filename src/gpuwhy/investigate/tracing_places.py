"""Where the packages of a target stand: in the folders of its Python environments, in checkouts, in a snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from gpuwhy.investigate.installed_files import below
from gpuwhy.investigate.source import lines_of
from gpuwhy.investigate.tracing_package import RemotePackage
from gpuwhy.model.event import Frame
from gpuwhy.snapshot import Snapshot
from gpuwhy.source import FedRoot
from gpuwhy.source.tracing import FOLLOWED
from gpuwhy.targets import Reply

_DESCRIBED = re.compile(r"(?P<name>[A-Za-z0-9_.]{1,100})-(?P<version>[^-/]{1,100})\.(?:dist|egg)-info/?")
_MOST_FOLDERS = 12


class Environment(msgspec.Struct, frozen=True):
    """``folders`` are those that modules are imported from, in their order; ``versions`` are of distributions."""

    folders: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    reason: str = ""
    """Why there is none."""


def environment_of(snapshot: Snapshot) -> Environment:
    """The Python environments of what was examined, and checkouts that are installed in them."""
    environments, packages = snapshot.value("python_environments"), snapshot.value("packages")
    found: dict[str, None] = {}
    versions: dict[str, str] = {}
    for each in packages if isinstance(packages, list) else []:
        versions = {**each.get("versions", {}), **versions}
        for origin in each.get("origins", {}).values():
            found.update(dict.fromkeys(_checkout(str(origin))))
    for each in environments if isinstance(environments, list) else []:
        found.update(dict.fromkeys(map(str, each.get("folders", ()))))
    probe = snapshot.probe("python_environments")
    reason = probe.reason or probe.status if probe is not None else "it was not asked for"
    return Environment(tuple(found)[:_MOST_FOLDERS], versions, "" if found else reason)


def _checkout(origin: str) -> Iterator[str]:
    """``editable file:///sgl-workspace/sglang/python``: the folder, and where a checkout keeps its packages in it."""
    kind, _, url = origin.partition(" ")
    if kind == "editable" and url.startswith("file://"):
        folder = unquote(urlsplit(url).path).rstrip("/")
        yield from (folder, f"{folder}/python", f"{folder}/src")


def packages_in(
    folders: Sequence[str], replies: Sequence[Reply], environment: Environment, named: Iterable[str], target: str
) -> dict[str, RemotePackage]:
    """The packages that can be followed, of what the folders hold; the first folder that has one counts."""
    wanted = FOLLOWED | set(named)
    found: dict[str, RemotePackage] = {}
    for folder, reply in zip(folders, replies, strict=False):
        value = reply.value if isinstance(reply.value, dict) else {}
        names = [str(name) for name in value.get("names", ())]
        versions = dict(_described(names))
        for name in names:
            package = name.rstrip("/").removesuffix(".py")
            if package not in wanted or package in found or not (name.endswith(("/", ".py"))):
                continue
            version = _version(package, versions) or _version(package, environment.versions)
            found[package] = RemotePackage(package, folder, version, target, name.endswith(".py"))
    return found


def packages_of_frames(frames: Sequence[Frame], known: Iterable[str], target: str) -> dict[str, RemotePackage]:
    """The packages that the frames of a traceback stand in."""
    found: dict[str, RemotePackage] = {}
    names = frozenset(known)
    for frame in reversed(frames):
        place = below(frame.path, names)
        if place is not None and place[1] not in found:
            folder, package, path = place
            found[package] = RemotePackage(package, folder, "", target, path == f"{package}.py")
    return found


class KeptPackage(FedRoot):
    """What a snapshot holds of a package. Whatever else is asked for may be installed, and is told as missing."""

    def knows(self, path: str) -> bool:
        if path in self._texts:
            return True
        self._wanted[path] = None
        return False


def kept_packages(snapshot: Snapshot, target: str, versions: Mapping[str, str]) -> dict[str, FedRoot]:
    """The source that a snapshot holds: what a diagnosis had asked for."""
    found: dict[str, FedRoot] = {}
    parts: dict[tuple[str, str], dict[int, list[str]]] = {}
    for excerpt in snapshot.excerpts:
        place = below(excerpt.path, FOLLOWED) if excerpt.ask == "read" and excerpt.status == "ok" else None
        if place is None:
            continue
        folder, package, path = place
        if package not in found:
            found[package] = KeptPackage(package, _version(package, versions))
            found[package].place = f"{target}:{folder}"
        parts.setdefault((package, path), {})[excerpt.first or 1] = lines_of(excerpt.value)
    for (package, path), ranges in parts.items():
        text = _joined(ranges)
        if text is not None:
            found[package].feed({path: text})
    return found


def _joined(ranges: dict[int, list[str]]) -> bytes | None:
    """The text from its first line on; a later part counts only where it follows."""
    lines: list[str] = []
    for first, part in sorted(ranges.items()):
        if first > len(lines) + 1:
            break
        lines[first - 1 :] = part
    return "\n".join([*lines, ""]).encode("utf-8", "replace") if lines else None


def _described(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        found = _DESCRIBED.fullmatch(name)
        if found is not None:
            yield found["name"], found["version"]


def _version(package: str, versions: Mapping[str, Any]) -> str:
    plain = _plain(package)
    for name, version in versions.items():
        if _plain(name) in (plain, f"{plain}python"):
            return str(version)
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name.lower())
