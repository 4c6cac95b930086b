"""Holds a replay against the log: the same exception at the same line, and the warnings that came on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gpuwhy.investigate.tying import ENOUGH, Line, place_of
from gpuwhy.model.evidence import Place
from gpuwhy.model.source import (
    ReplayedBranch,
    ReplayedCatch,
    ReplayedFact,
    ReplayedLine,
    ReplayedSource,
    SourceAnswer,
    SourceLine,
)
from gpuwhy.source.replay import Branch, LogLine, NeedsFact, NotModelled, Raised, Replay, Returned
from gpuwhy.source.replay import Place as ReplayedPlace

_TELLING = ("warning", "error", "critical", "exception", "warn")
_SHOWN = 24
_TEXT = 300
_NAMED = 4
_SELDOM_WHY = ("files.", "links.", "modules.", "source")
"""Facts that take the place of an assumption, rather than decide a branch."""
_UNSET = "environment_complete"


class Failure(msgspec.Struct, frozen=True):
    """What the log shows: the type of the exception as a traceback ends with it, and the innermost line of source that
    can be replayed. An empty ``type`` is any, ``line`` 0 any line of ``path``, an empty ``path`` any place."""

    type: str = ""
    path: str = ""
    line: int = 0

    def is_reached(self, raised: Raised) -> bool:
        """Whether an exception of a replay is this one."""
        is_type = not self.type or self.type.rpartition(".")[2] == raised.type
        is_file = not self.path or self.path == raised.place.file
        return is_type and is_file and (not self.line or self.line == raised.place.line)

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return " at ".join(each for each in (self.type or "an exception", where) if each)


def compared(replayed: Replay, failure: Failure, lines: Sequence[Line], answer: SourceAnswer) -> ReplayedSource:
    """The replay beside the log, and beside what the tracer says of both."""
    said = tuple(_lines(replayed, lines))
    agreement, why = _agreement(replayed, failure, said)
    if answer.disagreements and agreement != "open":
        agreement, why = "open", f"{why}; but the log is not of this source: {answer.disagreements[-1]}"
    beyond = _beyond(answer, said, agreement) if agreement in ("other", "partly") else ""
    if beyond:
        agreement, why = "open", f"{why}; but {beyond}"
    outcome = replayed.outcome
    place = _line(outcome.place) if not isinstance(outcome, Returned) and outcome.place.file else None
    return ReplayedSource(
        entry=replayed.entry,
        ending=_ending(replayed),
        agreement=agreement,
        why=why,
        type=outcome.type if isinstance(outcome, Raised) else "",
        message=outcome.message[:_TEXT] if isinstance(outcome, Raised) else "",
        place=place,
        facts=tuple(
            dict.fromkeys(
                ReplayedFact(each.what[:_TEXT], each.key, each.value[:_TEXT], _line(each.place))
                for each in replayed.facts_used()
            )
        )[:_SHOWN],
        branches=tuple(_branches(replayed))[-_SHOWN:],
        swallowed=tuple(
            dict.fromkeys(
                ReplayedCatch(each.type, each.message[:_TEXT], _line(each.raised_at), _line(each.place))
                for each in replayed.caught()
            )
        )[:_SHOWN],
        lines=said[:_SHOWN],
        assumed=_assumed(replayed),
        needs=outcome.key if isinstance(outcome, NeedsFact) else "",
        command=outcome.command if isinstance(outcome, NeedsFact) else "",
    )


def _agreement(replayed: Replay, failure: Failure, said: Sequence[ReplayedLine]) -> tuple[str, str]:
    outcome = replayed.outcome
    with_facts = _with_facts(replayed)
    if isinstance(outcome, NeedsFact):
        return "open", f"whether it comes to this depends on {outcome.key}, which is not known"
    if isinstance(outcome, NotModelled):
        return "open", f"not decided: {outcome.what} is not modelled"
    if isinstance(outcome, Returned):
        return "other", f"{with_facts}it is not reached: the call returns"
    if not failure.is_reached(outcome):
        where = f" at {outcome.place}" if outcome.place.file else ""
        return "other", f"{with_facts}it ends in another exception: {outcome.type}: {outcome.message[:160]}{where}"
    unseen = [line for line in said if line.seen is None and line.level in _TELLING]
    if unseen:
        return (
            "partly",
            f"{with_facts}it is reached; the log lacks a line that would come before: {unseen[0].text[:160]}",
        )
    return "same", f"{with_facts}it is reached"


def _beyond(answer: SourceAnswer, said: Sequence[ReplayedLine], agreement: str) -> str:
    """What a handler on the way wrote to the log and would not write with these facts: in that process a call outside
    the source failed (a forked child, a driver that was gone), and facts of the host do not describe such a process."""
    told = {each.seen for each in said}
    for swallowed in answer.swallowed:
        for seen in swallowed.seen:
            is_outside = seen.raised_at is None or agreement == "partly"
            if is_outside and seen.place not in told:
                return f"the log shows that {swallowed.place} caught something else in that process: {(seen.value or seen.text)[:160]}"
    return ""


def _with_facts(replayed: Replay) -> str:
    """The facts that were asked last, those nearest to the ending. That a variable is not set, or a file where it was
    expected, is seldom why."""
    used = [each for each in reversed(replayed.facts_used()) if each.key != _UNSET or each.value != "None"]
    asked = [each for each in used if not each.key.startswith(_SELDOM_WHY)] or used
    last = list(dict.fromkeys(_told(each.what, each.value) for each in asked))[:_NAMED]
    return f"with {', '.join(reversed(last))}: " if last else ""


def _told(what: str, value: str) -> str:
    shown = " ".join(value.split())
    if what.endswith(" --version"):
        # the line that tells
        shown = next((line.strip() for line in value.splitlines() if "release" in line), shown)
    return f"{what.removeprefix('$ ')[:80]} = {shown if len(shown) <= 90 else shown[:89] + '…'}"


def _ending(replayed: Replay) -> str:
    outcome = replayed.outcome
    if isinstance(outcome, Raised):
        return "raised"
    if isinstance(outcome, Returned):
        return "returned"
    return "needs a fact" if isinstance(outcome, NeedsFact) else "not modelled"


def _lines(replayed: Replay, lines: Sequence[Line]) -> Iterator[ReplayedLine]:
    """What would be logged, each line once, with its place in the log."""
    told: dict[tuple[str, int, str], LogLine] = {}
    for each in replayed.log_lines():
        told.setdefault((each.place.file, each.place.line, each.message), each)
    for each in told.values():
        yield ReplayedLine(each.level, each.message[:_TEXT], _line(each.place), _seen(each.message, lines))


def _seen(message: str, lines: Sequence[Line]) -> Place | None:
    first = next((line.strip() for line in message.split("\n") if line.strip()), "")[:_TEXT]
    if len(first) < ENOUGH:
        return None
    return next((place_of(log, line) for log, line in lines if first in line.text), None)


def _branches(replayed: Replay) -> Iterator[ReplayedBranch]:
    for each in replayed.trail:
        if isinstance(each, Branch):
            yield ReplayedBranch(each.condition[:_TEXT], each.taken, _line(each.place))


def _assumed(replayed: Replay) -> tuple[str, ...]:
    found = [f"{each.what[:_TEXT]}, at {each.place}" for each in replayed.assumed()]
    if replayed.trail_cut:
        found.append("what the trail is too long to hold")
    return tuple(dict.fromkeys(found))[:_SHOWN]


def _line(place: ReplayedPlace) -> SourceLine:
    return SourceLine(place.file, place.line, "" if place.function == "<module>" else place.function)
