"""Lines of a log that a swallowing handler wrote, and which of the raises that it hides each of them tells of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gpuwhy.model.event import Log
from gpuwhy.source.answers import Hidden, LogText, SeenLine, Swallow, Trace

ENOUGH = 8
"""Literal characters by which a message is known."""
_ENOUGH_OF_RAISE = 4
_MOST = 4
_MOST_TEXT = 600


def seen_in(trace: Trace, logs: Sequence[Log]) -> Trace:
    """The trace with the lines of ``logs`` at the messages that its handlers print."""
    swallowed = tuple(replace(each, logs=tuple(_of_text(text, each, logs) for text in each.logs)) for each in trace.swallowed)  # fmt: skip
    return replace(trace, swallowed=swallowed)


def _of_text(text: LogText, swallow: Swallow, logs: Sequence[Log]) -> LogText:
    if text.message.literal_size < ENOUGH:
        return text
    found: dict[str, SeenLine] = {}
    for line in _lines_of(text, swallow, logs):
        before = found.get(line.text)
        if before is not None:
            found[line.text] = replace(before, times=before.times + 1)
        elif len(found) < _MOST:
            found[line.text] = line
    return replace(text, seen=tuple(found.values()))


def _lines_of(text: LogText, swallow: Swallow, logs: Sequence[Log]) -> Iterator[SeenLine]:
    anchor = max(text.message.pieces, key=len)
    for log in logs:
        for line in log.lines:
            if anchor not in line.text or not line.text.startswith(text.message.pieces[0]):
                continue
            values = text.message.values_in(line.text[:_MOST_TEXT])
            if values is not None:
                raised = _raised_with(max(values, key=len, default=""), swallow.hides)
                yield SeenLine(log.name, line.number, line.text[:300], 1, raised.spot if raised else None)


def _raised_with(value: str, hides: Sequence[Hidden]) -> Hidden | None:
    """Of the raises that a handler hides the one whose message this is; None when two are alike."""
    known = [each for each in hides if each.message.literal_size >= _ENOUGH_OF_RAISE]
    fitting = [each for each in known if each.message.values_in(value) is not None]
    fitting.sort(key=lambda each: -each.message.literal_size)
    if len(fitting) > 1 and fitting[0].message.literal_size == fitting[1].message.literal_size:
        return None
    return next(iter(fitting), None)
