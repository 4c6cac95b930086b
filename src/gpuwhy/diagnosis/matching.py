"""One pass over an incident's lines for the signs of every cause."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from gpuwhy.causes import CauseEntry, Match, Sign
from gpuwhy.diagnosis.belonging import of_others
from gpuwhy.logs.inventories import is_row
from gpuwhy.model.event import Event, Log, LogLine, RaisedException
from gpuwhy.model.evidence import Place
from gpuwhy.model.incident import Incident

JOINED_LINES = 3
"""How many following lines of the same process a wrapped message may take."""
PATTERN_WINDOW = 1600
"""Characters a pattern is shown: the deciding part of a message stands near its literal; a line can be megabytes."""
MATCHES_PER_SIGN = 50
"""More matches of one sign tell nothing new (eight ranks, a crash loop)."""
HEADING_LENGTH = 250
"""A heading is one sentence; what a program prints in one line can be longer."""


class SignFinder:
    """Finds the signs of a set of causes; building it compiles the multi-pattern automaton once."""

    def __init__(self, causes: Iterable[CauseEntry]) -> None:
        import ahocorasick_rs

        by_literal: dict[str, list[tuple[str, Sign]]] = {}
        for entry in causes:
            for sign in entry.signs:
                for literal in sign.literals:
                    by_literal.setdefault(literal.lower(), []).append((entry.id, sign))
        self._owners = list(by_literal.values())
        self._automaton = ahocorasick_rs.AhoCorasick(list(by_literal))

    def find(self, incident: Incident) -> dict[str, dict[str, tuple[Match, ...]]]:
        """Matches by cause id and sign name; best first: outside quoted code, in an event, below the heading, earliest."""
        found: dict[tuple[str, str], list[Match]] = {}
        headings = {log.name: _heading(log) for log in incident.logs}
        others = of_others(incident)
        for log in incident.logs:
            for identity, sign, match in self._in_log(log, _events_by_line(incident.events, log)):
                if _is_of_others(match, log, incident, others):
                    continue
                matches = found.setdefault((identity, sign.name), [])
                if len(matches) < MATCHES_PER_SIGN:
                    matches.append(match)
        by_cause: dict[str, dict[str, tuple[Match, ...]]] = {}
        for (identity, name), matches in found.items():
            by_cause.setdefault(identity, {})[name] = tuple(sorted(matches, key=lambda match: _rank(match, headings)))
        return by_cause

    def _in_log(self, log: Log, events: Mapping[int, Event]) -> Iterable[tuple[str, Sign, Match]]:
        said = _as_searched(log, events)
        texts = [text.lower() for text in said]
        starts = [0]
        for text in texts:
            starts.append(starts[-1] + len(text) + 1)
        seen: set[tuple[str, str, int]] = set()
        for literal, begin, _ in self._automaton.find_matches_as_indexes("\n".join(texts), overlapping=True):
            at = bisect.bisect_right(starts, begin) - 1
            for identity, sign in self._owners[literal]:
                if (identity, sign.name, at) in seen:
                    continue
                seen.add((identity, sign.name, at))
                match = _match(sign, log, said, at, begin - starts[at], events)
                if match is not None:
                    yield identity, sign, match


def _is_of_others(match: Match, log: Log, incident: Incident, others: frozenset[int]) -> bool:
    """Whether a line tells of another service: by its event, or because the incident of this unit left it out.

    The kernel's log is the whole host's; what of it belongs to the story of a unit are events of the incident.
    """
    if match.event is not None:
        return match.event.id in others
    is_kernels = log.kind == "kernel log" or (match.line.process is not None and match.line.process.name == "kernel")
    return bool(incident.unit) and is_kernels


def _as_searched(log: Log, events: Mapping[int, Event]) -> list[str]:
    """What is searched: the lines; behind one in another tongue what its event says in English."""
    said = [line.text for line in log.lines]
    translated = {event.place.line: event.detail["english"] for event in events.values() if "english" in event.detail}
    if translated:
        for at, line in enumerate(log.lines):
            if line.number in translated:
                said[at] = f"{line.text} {translated[line.number]}"
    return said


def _match(
    sign: Sign, log: Log, said: Sequence[str], at: int, offset: int, events: Mapping[int, Event]
) -> Match | None:
    line = log.lines[at]
    event = events.get(line.number)
    if event is None and is_row(line.text):
        return None
    if sign.kinds and (event is None or event.kind not in sign.kinds):
        return None
    groups: dict[str, str] = {}
    if sign.pattern:
        found = _search(sign.pattern, _window(said[at], offset))
        if found is None:
            found = _search_wrapped(sign.pattern, log, said, at)
        if found is None:
            return None
        groups = {name: value for name, value in found.groupdict().items() if value is not None}
    place = Place(log.kind, log.name, line.number)
    return Match(sign.name, line, place, groups, event, _is_code(line, event))


def _window(text: str, offset: int) -> str:
    if len(text) <= PATTERN_WINDOW:
        return text
    begin = max(0, offset - PATTERN_WINDOW // 2)
    return text[begin : begin + PATTERN_WINDOW]


def _search_wrapped(pattern: str, log: Log, said: Sequence[str], at: int) -> re.Match[str] | None:
    """Search the line joined with the next ones of its process, as if the message had not been wrapped.

    A match must begin in the line itself: one that lies in the following lines alone is theirs.
    """
    line = log.lines[at]
    begin = said[at].strip()[-PATTERN_WINDOW:]
    parts = [begin]
    for following in log.lines[at + 1 : at + 1 + 4 * JOINED_LINES]:
        if following.process == line.process and following.text.strip():
            parts.append(following.text.strip()[:PATTERN_WINDOW])
            if len(parts) > JOINED_LINES:
                break
    found = _search(pattern, " ".join(parts))
    return found if found is not None and found.start() < len(begin) else None


@functools.lru_cache(4096)  # causes share patterns, and a crash loop repeats its lines
def _search(pattern: str, text: str) -> re.Match[str] | None:
    return _compiled(pattern).search(text)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _is_code(line: LogLine, event: Event | None) -> bool:
    if event is None or event.kind != "exception":
        return False
    text = line.text.strip()
    quoted = any(frame.code and frame.code.strip() == text for block in event.exceptions for frame in block.frames)
    return quoted and not any(_says_it_by_code(block, text) for block in event.exceptions)


def _says_it_by_code(block: RaisedException, text: str) -> bool:
    """A bare ``AssertionError`` has no words but those of the statement that failed."""
    return (
        block.type.endswith("AssertionError")
        and not block.message.strip()
        and bool(block.frames)
        and block.frames[-1].code.strip() == text
    )


def _heading(log: Log) -> int | None:
    """The number of the line in which whoever reports says the failure in his own words, as a title does.

    It stands alone at the top, before an empty line, and no logger put anything in front of it. What it quotes of a
    message is said in full by the program below.
    """
    for first, second in itertools.pairwise(log.lines[:20]):
        if first.text.strip():
            is_bare = first.process is None and first.time is None and first.raw.strip() == first.text.strip()
            return first.number if is_bare and len(first.text) < HEADING_LENGTH and not second.text.strip() else None
    return None


def _rank(match: Match, headings: Mapping[str, int | None]) -> tuple[bool, bool, bool, int]:
    is_heading = match.line.number == headings.get(match.place.path)
    return match.is_code, match.event is None or is_heading, is_heading, match.line.number


def _events_by_line(events: Iterable[Event], log: Log) -> dict[int, Event]:
    """The narrowest event that claims each line."""
    claimed: dict[int, Event] = {}
    for event in sorted(events, key=lambda e: e.span.first - e.span.last):
        if event.span.log != log.name:
            continue
        for number in range(event.span.first, event.span.last + 1):
            claimed[number] = event
    return claimed
