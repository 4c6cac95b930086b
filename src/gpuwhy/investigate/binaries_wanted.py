"""Which binaries of a target a judgement turns on: named in the failure, of the component, torch's, of the JIT cache."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from gpuwhy.diagnosis import Judgement
from gpuwhy.knowledge import components
from gpuwhy.model.fact import Facts
from gpuwhy.model.incident import Incident
from gpuwhy.snapshot import Snapshot

OF_CODE = frozenset({"torch-lacks-arch", "binary-lacks-arch", "build-target-wrong", "arch-list-override", "arch-unsupported-by-library", "ptx-newer-than-driver", "gpu-too-old"})  # fmt: skip
"""Causes that a file's device code decides."""
OF_LOADING = frozenset({"cuda-major-mismatch", "abi-mismatch", "libc-too-old", "library-missing", "library-corrupt", "jit-cache-stale", "nccl-version", "package-conflict"})  # fmt: skip
"""Causes that the linker's rules decide."""
OF_LIBCUDA = frozenset({"libcuda-shadowed", "driver-library-mismatch", "driver-too-old", "container-driver-files-in-image"})  # fmt: skip
"""Causes that turn on which libcuda a process gets."""

LEADING = 5
"""Findings that are looked into."""
MOST_TEXTS = 60
MOST_NAMED = 6
MOST_FOLDERS = 4
_LONGEST_TEXT = 20_000
_LIBRARY = re.compile(
    r"(?<![\w./@~+-])(?P<path>(?:/|\./)?[\w.+@~-][\w.+@~/-]{0,300}?\.so(?:\.\d{1,5}){0,4})(?![\w/-]|\.\w)"
)
_PACKAGES = re.compile(r"(?P<folder>/.{1,300}?/(?:site|dist)-packages)/")
_MISSING = re.compile(r"(?P<name>lib[\w+.-]{1,60}\.so(?:\.\d{1,5}){0,4}): cannot open shared object")


_NO_BINARIES = frozenset({"python", "driver", "python-env", "user-program", "cuda-toolkit", "cuda-compat"})


class Wanted(Struct, frozen=True):
    """What to look at.

    ``files`` are absolute paths that the failure names, ``names`` bare names of files, ``libraries`` names that the
    linker did not find. ``components`` are those whose binaries may be at fault, the likeliest first. ``folders`` are
    the folders of packages that the frames of the failure lie in.
    """

    causes: frozenset[str]
    files: tuple[str, ...]
    names: tuple[str, ...]
    libraries: tuple[str, ...]
    components: tuple[str, ...]
    folders: tuple[str, ...] = ()

    @property
    def is_about_code(self) -> bool:
        return bool(self.causes & OF_CODE)

    @property
    def is_about_loading(self) -> bool:
        return bool(self.causes & OF_LOADING)

    @property
    def is_about_libcuda(self) -> bool:
        return bool(self.causes & OF_LIBCUDA)


def wanted(incident: Incident, judgement: Judgement) -> Wanted | None:
    """What the leading findings turn on; None when no binary decides any of them."""
    leading = judgement.findings[:LEADING]
    causes = {finding.cause for finding in leading} | {each.cause for each in judgement.ruled_out}
    causes &= OF_CODE | OF_LOADING | OF_LIBCUDA
    if not causes:
        return None
    texts = list(itertools.islice(_texts(incident, judgement), MOST_TEXTS))
    paths = list(dict.fromkeys(match["path"] for text in texts for match in _LIBRARY.finditer(text[:_LONGEST_TEXT])))
    libraries = dict.fromkeys(match["name"] for text in texts for match in _MISSING.finditer(text[:_LONGEST_TEXT]))
    named = [finding.component for finding in leading if finding.component and finding.cause in causes]
    named += _of_frames(incident)
    return Wanted(
        frozenset(causes),
        tuple(path for path in paths if path.startswith("/"))[:MOST_NAMED],
        tuple(dict.fromkeys(path.rpartition("/")[2] for path in paths if not path.startswith("/")))[:MOST_NAMED],
        tuple(libraries)[:MOST_NAMED],
        tuple(dict.fromkeys(each for each in named if each not in _NO_BINARIES)),
        _folders_of_frames(incident),
    )


def _folders_of_frames(incident: Incident) -> tuple[str, ...]:
    """Where the failing program itself imports packages from, whatever environment a probe found."""
    primary = incident.primary_event
    paths = [frame.path for block in (primary.exceptions if primary else ()) for frame in block.frames]
    found = (_PACKAGES.match(path) for path in paths)
    return tuple(dict.fromkeys(match["folder"] for match in found if match))[:MOST_FOLDERS]


def _of_frames(incident: Incident) -> Iterator[str]:
    """The components in whose frames the failure stands, the innermost first."""
    primary = incident.primary_event
    for block in primary.exceptions if primary is not None else ():
        for frame in reversed(block.frames[-12:]):
            component = components.component_of_module(frame.path)
            if component is not None:
                yield component


def _texts(incident: Incident, judgement: Judgement) -> Iterator[str]:
    """What the findings quote, then the failure's own text."""
    for finding in judgement.findings[:LEADING]:
        for evidence in finding.evidence:
            yield evidence.quote
    primary = incident.primary_event
    if primary is not None:
        yield primary.text
    explained = {number for finding in judgement.findings[:LEADING] for number in finding.explains}
    for event in incident.events:
        if event.id in explained and event is not primary:
            yield event.text


def package_folders(snapshot: Snapshot) -> tuple[str, ...]:
    """The folders that the service's own environment imports packages from."""
    environments = snapshot.value("python_environments")
    first = environments[0] if isinstance(environments, list) and environments else None
    folders = first.get("folders") if isinstance(first, dict) else None
    return tuple(each for each in folders if isinstance(each, str) and each.startswith("/"))[:MOST_FOLDERS] if isinstance(folders, list) else ()  # fmt: skip


def places_of(component: str, folder: str, names: Iterable[str]) -> tuple[str, ...]:
    """The entries of a folder of packages that belong to a component: its folder, and extensions beside it."""
    found = []
    for name in names:
        bare = name.rstrip("/")
        is_module = name.endswith("/") and "." not in bare
        if (is_module or bare.endswith(".so")) and components.component_of_module(f"{folder}/{bare}/x.py" if is_module else bare) == component:  # fmt: skip
            found.append(f"{folder}/{bare}")
    return tuple(found)[:MOST_FOLDERS]


def jit_folders(snapshot: Snapshot, component: str) -> tuple[str, ...]:
    """Where modules lie that were compiled on the target for a component."""
    caches: Any = snapshot.value("jit_cache")
    if not isinstance(caches, dict):
        return ()
    levels: Any = (caches.get("flashinfer") or {}).get("levels") if component == "flashinfer" else None
    known = [each for each in levels if isinstance(each, dict)] if isinstance(levels, list) else []
    newest = sorted(known, key=lambda each: -float(each.get("modified") or 0.0))
    return tuple(f"{each.get('path')}/cached_ops" for each in newest if str(each.get("path")).startswith("/"))[:2]


_SYSTEM_FOLDERS = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/"})
_INTERPRETERS = re.compile(
    r"(?:python|pypy|bash|sh|dash|zsh|env|node|ruby|perl|uv|conda|micromamba|docker|podman|nerdctl)[\d.]*"
)


def program_of(facts: Facts) -> str:
    """The program that the service starts, by its whole path; ``""`` for a script or what only starts another."""
    command = facts.value("command")
    try:
        words = shlex.split(command)[:1] if isinstance(command, str) else []
    except ValueError:
        words = []
    path = words[0] if words and words[0].startswith("/") else ""
    return "" if _INTERPRETERS.fullmatch(path.rpartition("/")[2]) or path.endswith((".py", ".sh")) else path


def places_of_program(program: str) -> tuple[str, ...]:
    """Where a program's own libraries can lie: in it, beside it, and in the folder of its name below its prefix's lib."""
    folder, _, name = program.rpartition("/")
    prefix = folder.rpartition("/")[0]
    beside = () if folder in _SYSTEM_FOLDERS else (folder,)
    return (program, *beside, f"{prefix}/lib/{name}")
