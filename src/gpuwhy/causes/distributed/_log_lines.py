"""Lines of an incident's logs with their places: what several causes look for beyond their own signs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.model.event import LogLine
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact

SHOWN = 1600
"""Characters of a line that a pattern is shown; a hostile line can be megabytes."""


class Seen(msgspec.Struct, frozen=True):
    """A line and where it stands; ``groups`` holds what the pattern that found it captured."""

    line: LogLine
    place: Place
    groups: dict[str, str] = {}

    @property
    def text(self) -> str:
        return self.line.text.strip()

    @property
    def rank(self) -> int | None:
        return self.line.process.rank if self.line.process is not None else None

    def evidence(self, statement: str) -> Evidence:
        return Evidence(statement, self.text, self.place)


def lines(case: Case) -> Iterator[Seen]:
    """The lines that can tell of the surroundings, in their order."""
    for log, line in case.lines():
        yield Seen(line, Place(log.kind, log.name, line.number))


def holding(case: Case, literals: Sequence[str]) -> Iterator[Seen]:
    """Lines that hold one of ``literals``, as they are written, within what is shown of a line."""
    for log in case.incident.logs:
        for line in log.lines:
            text = line.text if len(line.text) <= SHOWN else line.text[:SHOWN]
            for literal in literals:
                if literal in text:
                    yield Seen(line, Place(log.kind, log.name, line.number))
                    break


def matching(case: Case, pattern: re.Pattern[str], literals: Sequence[str]) -> Iterator[Seen]:
    """Lines that hold one of ``literals`` and match ``pattern``; its named groups are kept."""
    for seen in holding(case, literals):
        found = pattern.search(seen.line.text[:SHOWN])
        if found is not None:
            groups = {name: value for name, value in found.groupdict().items() if value is not None}
            yield msgspec.structs.replace(seen, groups=groups)


def first(case: Case, pattern: re.Pattern[str], literals: Sequence[str]) -> Seen | None:
    """The first of :func:`matching`."""
    return next(matching(case, pattern, literals), None)


def is_before(one: Place, other: Place) -> bool:
    """Whether a line stands above another of the same log."""
    return one.path == other.path and (one.line or 0) < (other.line or 0)


def of(match: Match) -> Seen:
    """A match as a seen line."""
    return Seen(match.line, match.place, match.groups)


def fact_texts(case: Case, key: str) -> tuple[str, ...]:
    """A fact's value as texts: the entries of a list, or the one value; nothing when it is unknown or null."""
    value = case.facts.value(key)
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(str(each) for each in value)
    return (str(value),)


def quoted_fact(fact: Fact, quote: str, statement: str) -> Evidence:
    """Evidence that quotes one entry of a fact that is a list."""
    return Evidence(statement, quote, fact.evidence.place or Place("facts", fact.key), _standing(fact))


def _standing(fact: Fact) -> Standing:
    return fact.evidence.standing
