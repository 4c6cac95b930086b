"""Ties lines of the log to handlers of the source: what a swallowed exception said before it was gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.evidence import Place
from gpuwhy.model.source import HiddenRaise, SeenInLog
from gpuwhy.source import Template

ENOUGH = 8
"""Literal characters by which a message is known."""
_ENOUGH_OF_RAISE = 4
_MOST = 4
_MOST_TEXT = 600

Line = tuple[Log, LogLine]


def lines_of_logs(logs: Sequence[Log]) -> list[Line]:
    """The lines of all logs, in their order."""
    return [(log, line) for log in logs for line in log.lines]


def seen(
    pattern: Template, hides: Sequence[tuple[HiddenRaise, Template]], lines: Iterable[Line]
) -> tuple[SeenInLog, ...]:
    """The different lines that a handler wrote with this message, each with the raise that its value came from."""
    if pattern.literal_size < ENOUGH:
        return ()
    anchor = max(pattern.pieces, key=len)
    found: dict[str, SeenInLog] = {}
    times: dict[str, int] = {}
    for log, line in lines:
        if anchor not in line.text:
            continue
        values = pattern.values_in(line.text[:_MOST_TEXT])
        if values is None or not line.text.startswith(pattern.pieces[0]):
            continue
        times[line.text] = times.get(line.text, 0) + 1
        if line.text not in found and len(found) < _MOST:
            value = max(values, key=len, default="")
            found[line.text] = SeenInLog(line.text[:300], place_of(log, line), value[:300], raised_with(value, hides))
    return tuple(
        SeenInLog(each.text, each.place, each.value, each.raised_at, times[text]) for text, each in found.items()
    )


def raised_with(value: str, hides: Sequence[tuple[HiddenRaise, Template]]) -> HiddenRaise | None:
    """Of the raises that a handler hides the one whose message this is: the most telling, None when two are alike."""
    fitting = sorted(_fitting(value, hides), key=lambda each: -each[1])
    if not fitting or (len(fitting) > 1 and fitting[0][1] == fitting[1][1]):
        return None
    return fitting[0][0]


def _fitting(value: str, hides: Sequence[tuple[HiddenRaise, Template]]) -> Iterator[tuple[HiddenRaise, int]]:
    for each, message in hides:
        if message.literal_size < _ENOUGH_OF_RAISE or message.values_in(value) is None:
            continue
        # ``str(e)`` and ``repr(e)`` alike: the message stands in the value, perhaps with its type around
        yield each, message.literal_size


def place_of(log: Log, line: LogLine) -> Place:
    return Place(log.kind, log.name, line.number)
