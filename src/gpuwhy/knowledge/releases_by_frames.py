"""Which releases of a package the frames of a traceback can stand in: by path, line, function and source text.

    File ".../site-packages/flashinfer/jit/core.py", line 108, in check_cuda_arch
      raise RuntimeError("FlashInfer requires GPUs with sm75 or higher")

Line 108 of that file is this one in some releases only; with the other frames of the traceback often one is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from gpuwhy.knowledge import fingerprints
from gpuwhy.knowledge.fingerprints import Edition, FrameTable
from gpuwhy.model.event import Frame

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "flashinfer": "flashinfer-python",
        "sglang": "sglang",
        "torch": "torch",
        "transformers": "transformers",
        "triton": "triton",
        "vllm": "vllm",
    }
)
"""The package of each folder that has a table."""

MAX_FRAMES = 200
"""Distinct frames of one package that are looked up; what is beyond them repeats what they say."""
_MAX_PATH = 1000
_INSTALLED = ("site-packages", "dist-packages")
_NAMES_OF_SUBFOLDERS = frozenset(("torch", "transformers", "triton"))


class Match(Struct, frozen=True):
    """What the frames of one package say.

    `releases` are those in which every frame can stand, oldest first; empty when there is none: a build of one's own, a
    release that the table does not have, or frames of two installations. `agreeing` are the frames whose text was found
    in some release, first those that fewest have; `foreign` those that no release of the table has. `is_oldest` and `is_newest` tell that the first or
    last release of the table is among the releases: what was published before or after it may fit as well.
    """

    package: str
    releases: tuple[str, ...]
    agreeing: tuple[Frame, ...]
    foreign: tuple[Frame, ...]
    known: tuple[str, ...]
    """Every release of the table, oldest first."""
    is_oldest: bool = False
    is_newest: bool = False


def releases_of(frames: Iterable[Frame]) -> dict[str, Match]:
    """The matches of all packages that have a table and of which a frame says something.

    A frame says something when its file is recorded and its text is there and of the kind that tables hold. Nothing is read from
    disk for packages of which there is no frame.
    """
    located: dict[str, dict[tuple[str, Frame], None]] = {}
    for frame in frames:
        place = located_in(frame.path)
        if place is not None and frame.line is not None:
            of_package = located.setdefault(place[0], {})
            if len(of_package) < MAX_FRAMES:
                of_package[place[1], frame] = None
    matches = {package: _match(fingerprints.table(package), list(found)) for package, found in located.items()}
    return {package: match for package, match in matches.items() if match.agreeing or match.foreign}


def located_in(path: str) -> tuple[str, str] | None:
    """Package and path below its folder of the file of a frame; None for a file of no package with a table.

    In `site-packages` the first folder decides. Elsewhere (an image that installs from a checkout) it is the last folder
    that has the name of a package; that of an engine first, since engines have folders called `triton` and `torch`.
    """
    parts = path[-_MAX_PATH:].replace("\\", "/").split("/")
    for index in range(len(parts) - 3, -1, -1):
        if parts[index] in _INSTALLED:
            package = PACKAGES.get(parts[index + 1])
            return (package, "/".join(parts[index + 2 :])) if package else None
    for names in (PACKAGES.keys() - _NAMES_OF_SUBFOLDERS, _NAMES_OF_SUBFOLDERS):
        for index in range(len(parts) - 2, -1, -1):
            if parts[index] in names:
                return PACKAGES[parts[index]], "/".join(parts[index + 1 :])
    return None


def is_installed(path: str) -> bool:
    """Whether a file lies where pip installs."""
    return any(folder in path for folder in _INSTALLED)


def _match(table: FrameTable, frames: list[tuple[str, Frame]]) -> Match:
    possible = (1 << len(table.releases)) - 1
    fitting: dict[Frame, int] = {}
    foreign: list[Frame] = []
    editions: dict[str, list[Edition]] = {}
    for path, frame in frames:
        if not fingerprints.is_recorded(frame.code):
            continue
        if not table.has(path):
            if _is_foreign(table, path, frame):
                foreign.append(frame)
            continue
        if path not in editions:
            editions[path] = list(table.editions(path))
        releases = _releases_with(frame, editions[path])
        if releases:
            fitting[frame] = releases
            possible &= releases
        else:
            foreign.append(frame)
    if foreign or not fitting:
        possible = 0
    return Match(
        package=table.package,
        releases=tuple(name for number, name in enumerate(table.releases) if possible >> number & 1),
        agreeing=tuple(sorted(fitting, key=lambda frame: fitting[frame].bit_count())),
        foreign=tuple(foreign),
        known=table.releases,
        is_oldest=bool(possible & 1),
        is_newest=bool(possible >> (len(table.releases) - 1) & 1),
    )


def _is_foreign(table: FrameTable, path: str, frame: Frame) -> bool:
    """Whether a file that no release has is of the package all the same: of another release, or a build of one's own.

    A user's script may lie in any folder, also one called `vllm`; where pip installs there is none.
    """
    if not path.endswith(".py") or table.leaves_out(path):
        return False
    return is_installed(frame.path) or path.partition("/")[0] in table.folders


def _releases_with(frame: Frame, editions: Iterable[Edition]) -> int:
    """The releases, as a mask, whose file has the frame's line in a function of its name, with its text."""
    scope, text = fingerprints.scope_tag(frame.function), fingerprints.text_hash(frame.code)
    fitting = 0
    for edition in editions:
        found = edition.at(frame.line or 0)
        if found is not None and found[1] == text and scope in (0, found[0]):
            fitting |= edition.releases
    return fitting
