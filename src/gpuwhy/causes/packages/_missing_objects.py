"""Shared libraries that the loader does not find: which one, for whom, and what would have brought it."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.causes.packages import _parts as parts
from gpuwhy.knowledge.shared_libraries import SharedLibrary, parse

_LIBRARY = r"lib[\w+-]{1,60}(?:\.\d{1,3}){0,2}\.so(?:\.\d{1,6}){0,4}"
CANNOT_OPEN = says(
    "cannot-open",
    (
        "cannot open shared object",
        "could not load library lib",
        "unable to load any of",
        "could not load dynamic library",
        "is not found or cannot be loaded",
        "unable to dlopen",
        "failed to dlopen",
        "failed to load library lib",
        "library not found",
        "cannot load library",
        ".so not found",
        "=> not found",
        "error loading shared library lib",
        "not found: lib",
        "could not find lib",
        "could not load this library",
        "failed to open lib",
    ),
    rf"(?P<library>{_LIBRARY}): cannot open shared object"
    rf"|(?:[Cc]ould not load (?:dynamic )?library|cannot load library|Unable to load any of|[Uu]nable to dlopen|[Ff]ailed to dlopen|Failed to load library|Error loading shared library|[Cc]ould not find|failed to open|Could not load this library:|Library) "
    rf"[{{'\"`(]{{0,2}}(?:[\w./+-]{{0,200}}/)?(?P<library2>{_LIBRARY})(?!.{{0,400}}cannot open shared object)"
    rf"|(?P<library3>{_LIBRARY}) => not found"
    rf"|(?P<library4>{_LIBRARY}) not found"
    r"|OSError: (?P<word>sndfile|PortAudio|cairo|magic|vips|hs) library not found",
)
"""The loader's and its callers' ways to say that a library is nowhere."""
_WORDS = {"sndfile": "libsndfile.so.1", "portaudio": "libportaudio.so.2", "cairo": "libcairo.so.2", "magic": "libmagic.so.1", "vips": "libvips.so.42", "hs": "libhs.so.5"}  # fmt: skip
_WANTED_BY = lazy_pattern(r"([\w./+@~-]{1,300}): error while loading shared libraries|library ([\w./+-]{2,200}\.so[\w.]{0,12}) with error|dlopen\(([\w./+-]{2,300})")  # fmt: skip
_HARMLESS = lazy_pattern(
    r"libnccl-net|libnccl-tuner|libnccl-profiler|libnvinfer_plugin\.so\.\d.{0,40}TensorRT features|dlerror|TF-TRT|libcuda\.so|libnvidia-ml"
)
"""Optional plug-ins that programs look for and do without, and what the driver brings: a cause of its own."""


class MissingLibrary(msgspec.Struct, frozen=True):
    """A library that was not found, and the component that wanted it (None when nothing names it)."""

    match: Match
    library: SharedLibrary
    component: str | None

    @property
    def is_event(self) -> bool:
        """Whether a failure reports it, and not a passing line."""
        return self.match.event is not None and self.match.event.kind in ("exception", "crash", "build")


def missing_libraries(case: Case) -> tuple[MissingLibrary, ...]:
    """The libraries that were not found, those that a failure reports first."""
    found = []
    for match in case.all(CANNOT_OPEN.name):
        if match.is_code or _HARMLESS.search(match.text) is not None:
            continue
        library = parse(_name_of(match))
        if library is not None:
            found.append(MissingLibrary(match, library, _wanted_by(case, match)))
    return tuple(sorted(found, key=lambda each: not each.is_event))


def _name_of(match: Match) -> str:
    word = match.group("word")
    if word is not None:
        return _WORDS.get(word.lower(), "")
    return next((value for name, value in match.groups.items() if name.startswith("library")), "")


_SAID_BY = ((lazy_pattern(r"Library \S{1,80} is not found or cannot be loaded"), "ctranslate2"),)
"""Wordings of one library only: programs that use it stand in the frames, and are not what was built for another CUDA."""


_LOADS_TORCH = frozenset({"_load_global_deps", "_preload_cuda_deps"})
"""Functions in which torch loads its own libraries, whoever imports torch."""


def _wanted_by(case: Case, match: Match) -> str | None:
    if any(frame.function in _LOADS_TORCH and frame.path.endswith("torch/__init__.py") for frame in match.frames):
        return "torch"
    said_by = next((name for pattern, name in _SAID_BY if pattern.search(match.text)), None)
    if said_by is not None:
        return said_by
    told = _WANTED_BY.search(match.text)
    path = next((group for group in told.groups() if group), None) if told else None
    own = parts.component_of(path)
    if own is not None and own not in ("cuda-toolkit", "driver", "python"):
        return own
    return parts.imported_by_last_frame(match) or case.component_near(match, case.engine or None) or _program(path)


def _program(path: str | None) -> str | None:
    """The name of a program that the report runs and nobody knows: a loader names it before its message."""
    name = (path or "").rpartition("/")[2]
    return name if re.fullmatch(r"[a-z][\w.-]{2,40}", name) and not name.startswith(("python", "lib")) else None
