"""Facts that a log or report states about the machine it comes from. A wrong fact is worse than none.

Statements about the same thing are weighed by how they were made; where equally good ones contradict each other, the
fact stays unknown and says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from gpuwhy.logs.stated import arguments, environment, gpus, versions
from gpuwhy.logs.stated._types import Statement, Strength
from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts, Unknown

MAX_LINES = 20_000
"""Different lines looked at closely; an environment report has hundreds."""
_PACKAGE_TABLE = ("package", "version")

Seen = tuple[Statement, LogLine]


def facts_in(log: Log) -> Facts:
    """What ``log`` states, in the vocabulary of ``--facts``, each with the line that says so.

    Beyond that vocabulary: ``nvcc_path_version`` is what ``nvcc --version`` printed in some shell, and
    ``server_args.NAME`` an argument that the engine echoed at its start.
    """
    seen: dict[str, list[Seen]] = {}
    for statement, line in _statements(log.lines):
        seen.setdefault(statement.key, []).append((statement, line))
    _settle_gpus(seen)
    facts: dict[str, Fact] = {}
    unknown: dict[str, Unknown] = {}
    for key, statements in seen.items():
        best = _best(statements)
        values = _different(best)
        if len(values) > 1:
            unknown[key] = Unknown(f"the text contradicts itself: {' and '.join(map(str, values[:3]))}", key)
        else:
            facts[key] = _fact(log, *best[0])
    return Facts(facts, unknown)


def _fact(log: Log, statement: Statement, line: LogLine) -> Fact:
    value = statement.value
    said = "none was found" if value is None else str(value)
    evidence = Evidence(
        f"{statement.key}: {said}", line.text.strip()[:1000], Place(log.kind, log.name, line.number), Standing.OBSERVED
    )
    return Fact(statement.key, value, evidence)


def _best(statements: Sequence[Seen]) -> list[Seen]:
    strongest = max(statement.strength for statement, _ in statements)
    return [seen for seen in statements if seen[0].strength == strongest]


def _different(statements: Iterable[Seen]) -> list[object]:
    """The values that differ; one that only says more (``12.8.93`` for ``12.8``) does not."""
    values: list[object] = []
    for statement, _ in statements:
        value = statement.value
        if not any(_agree(value, known) for known in values):
            values.append(value)
    return values


def _agree(one: object, other: object) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one == other or one.startswith((other + ".", other + "+")) or other.startswith((one + ".", one + "+"))
    return one == other


def _settle_gpus(seen: dict[str, list[Seen]]) -> None:
    """``gpu@0``, ``gpu@1`` ... to ``gpu`` where all are alike, else to ``gpus``; compute capabilities likewise."""
    for key in ("gpu", "cc"):
        indexed = {name: seen.pop(name) for name in list(seen) if name.startswith(key + "@")}
        if not indexed:
            continue
        everything = _best([one for statements in indexed.values() for one in statements])
        values = _different(everything)
        if len(values) == 1:
            statement, line = everything[0]
            seen[key] = [(Statement(key, statement.value, statement.strength), line)]
        elif key == "gpu" and all(
            name != "gpu@" for name, statements in indexed.items() if statements[0] in everything
        ):
            numbers = sorted((int(name[4:]), statements[0]) for name, statements in indexed.items() if name != "gpu@")
            listed = [f"{number}: {one[0].value}" for number, one in numbers]
            seen["gpus"] = [(Statement("gpus", listed, Strength.REPORTED), everything[0][1])]


@functools.cache
def _automaton() -> object:
    import ahocorasick_rs

    literals = {*gpus.LITERALS, *versions.LITERALS, *environment.LITERALS, *arguments.LITERALS}
    return ahocorasick_rs.AhoCorasick(sorted(literals))


def _statements(lines: Sequence[LogLine]) -> Iterator[Seen]:
    known: set[str] = set()
    automaton = _automaton()
    table = _PackageTable()
    name = ""
    for line in lines:
        text = line.text
        rows = table.read(text)
        if rows is not None:
            for statement in rows:
                yield statement, line
            continue
        if name and text.startswith("Version: "):  # pip show
            for statement in versions.package(name, text[9:].strip(), Strength.REPORTED):
                yield statement, line
        name = text[6:].strip() if text.startswith("Name: ") else ""
        if len(text) < 6 or text in known or len(known) >= MAX_LINES:
            continue
        if not automaton.find_matches_as_indexes(text[:4000]):  # type: ignore[attr-defined]
            continue
        known.add(text)
        for module in (gpus, versions, arguments, environment):
            for statement in module.read(text):
                yield statement, line


class _PackageTable:
    """``pip list``: two columns under a rule."""

    def __init__(self) -> None:
        self._state = "outside"

    def read(self, text: str) -> list[Statement] | None:
        """The statements of a row; None when ``text`` is no part of a table."""
        words = text.split()
        if [word.lower() for word in words[:2]] == list(_PACKAGE_TABLE):
            self._state = "head"
            return []
        if self._state == "head":
            self._state = "inside" if words and set(words[0]) == {"-"} else "outside"
            return [] if self._state == "inside" else None
        if self._state == "inside":
            if len(words) >= 2 and words[1][:1].isdigit() and not text.startswith(" "):
                return list(versions.package(words[0], words[1], Strength.REPORTED))
            self._state = "outside"
        return None
