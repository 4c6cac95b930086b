"""The reads of environment variables that the tracer finds in a release, measured against lists made by another scanner.

``variables/RELEASE.txt`` has a line per variable: its name and the places that read it. ``RELEASE.wrong.txt`` are the
places of that list that read something else, with the reason; ``RELEASE.beyond.txt`` names that it does not have and
that are read: each was looked up in the source. All of them without the package's own tests.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.source.asking import cache, roots

from gpuwhy.source.environment import READS, Environment, Touch
from gpuwhy.source.resolving import Resolver
from gpuwhy.source.scopes import module_of
from gpuwhy.source.trees import Trees, is_test, uncollected

LISTED = (
    ("flashinfer-python==0.7.4", "flashinfer", "flashinfer-0.7.4"),
    ("vllm==0.33.0", "vllm", "vllm-0.33.0"),
    ("sglang==0.5.10.post1", "sglang", "sglang-0.5.10.post1"),
)
_NEAR = 2
"""Lines that two scanners may differ by in what they call the place of an expression."""


class Place(msgspec.Struct, frozen=True, order=True):
    name: str
    path: str
    line: int
    last: int = 0


class Measured(msgspec.Struct, frozen=True):
    """``listed`` places of the list, and those of them that were ``missed``; ``found`` places outside of tests, and those
    of them whose name is neither listed nor known to be read: ``doubtful``."""

    listed: int
    missed: tuple[Place, ...]
    found: int
    doubtful: tuple[Place, ...]

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.listed

    @property
    def precision(self) -> float:
        return 1 - len(self.doubtful) / self.found


def measured(release: str, package: str, listed: str) -> Measured:
    trees = Trees(roots(release), lambda name: name == package, cache())
    trees.open(package)
    with uncollected():
        everywhere = _places(Environment(Resolver(trees)).catalogue())
    outside_tests = {place for place in everywhere if not is_test(f"{package}/{place.path}")}
    by_name: dict[str, list[Place]] = {}
    for place in everywhere:
        by_name.setdefault(place.name, []).append(place)
    expected = places(f"{listed}.txt")
    known = {place.name for place in (*expected, *places(f"{listed}.beyond.txt"))}
    return Measured(
        listed=len(expected),
        missed=tuple(
            sorted(each for each in expected if not any(_is_same(each, one) for one in by_name.get(each.name, ())))
        ),
        found=len(outside_tests),
        doubtful=tuple(sorted(place for place in outside_tests if place.name not in known)),
    )


def places(file: str) -> list[Place]:
    """The places of a list."""
    found = []
    for line in (Path(__file__).parent / "variables" / file).read_text().splitlines():
        name, *where = line.partition("#")[0].split()
        found += [Place(name, path, int(number)) for path, _, number in (each.rpartition(":") for each in where)]
    return found


def _places(touches: list[Touch]) -> set[Place]:
    return {
        Place(name, module_of(touch.node).path.partition("/")[2], touch.node.lineno, touch.node.end_lineno)  # type: ignore[attr-defined]
        for touch in touches
        if touch.kind.partition(".")[0] in READS
        for name in touch.names
    }


def _is_same(listed: Place, found: Place) -> bool:
    is_near = found.line - _NEAR <= listed.line <= found.last + _NEAR
    return listed.path == found.path and is_near
