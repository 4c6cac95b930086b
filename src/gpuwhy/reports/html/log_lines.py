"""The lines of the logs that a page holds: all of a small log, of a large one what stands around the cited lines.

Also the names of the anchors by which the rest of the page points at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gpuwhy.model.event import Log, LogLine
from gpuwhy.model.evidence import Place
from gpuwhy.reports.html.inert import shortened

WHOLE = 400
"""A log of so many lines is shown whole."""
AROUND = 12
"""Lines before and after a cited line."""
MOST = 1_500
"""Lines of all logs together; what lies furthest from the cited ones gives way."""
LONGEST_LINE = 1_000


class ShownLine(msgspec.Struct, frozen=True):
    """A line. ``before`` counts the lines that were left out in front of it; ``anchor`` is "" for the second and further
    lines of one record."""

    number: int
    text: str
    anchor: str
    is_cited: bool
    level: str
    before: int


class ShownLog(msgspec.Struct, frozen=True):
    """A log as the page has it: ``total`` lines were read, ``is_whole`` when all are here."""

    name: str
    kind: str
    total: int
    last: int
    lines: tuple[ShownLine, ...]
    notes: tuple[str, ...]
    is_whole: bool


class ShownLogs:
    """The logs, and the anchors of what they hold."""

    def __init__(self, logs: Sequence[Log], cited: Iterable[Place]) -> None:
        by_log: dict[str, set[int]] = {}
        for place in cited:
            if place.line is not None:
                by_log.setdefault(place.path, set()).add(place.line)
        self._index = {log.name: index for index, log in reversed(tuple(enumerate(logs, 1)))}
        self.logs: tuple[ShownLog, ...] = tuple(self._shown(logs, by_log))
        self._anchors = {line.anchor for log in self.logs for line in log.lines}

    def anchor(self, place: Place | None) -> str:
        """Where the page shows ``place``, as a fragment; "" when it does not."""
        if place is None or place.line is None or place.path not in self._index:
            return ""
        name = self._name(place.path, place.line)
        return name if name in self._anchors else ""

    def _name(self, log: str, number: int) -> str:
        return f"log-{self._index[log]}-{number}"

    def _shown(self, logs: Sequence[Log], cited: dict[str, set[int]]) -> Iterator[ShownLog]:
        room = MOST
        for log in logs:
            marked = cited.get(log.name, set())
            chosen = list(_chosen(log.lines, marked, room))
            room = max(0, room - len(chosen))
            shown = tuple(self._lines(log.name, chosen, marked))
            last = log.lines[-1].number if log.lines else 0
            yield ShownLog(
                log.name, log.kind, len(log.lines), last, shown, log.notes, len(chosen) == len(log.lines)
            )  # fmt: skip

    def _lines(self, log: str, chosen: Sequence[LogLine], cited: set[int]) -> Iterator[ShownLine]:
        previous = 0
        for line in chosen:
            is_first = line.number != previous
            left_out = max(0, line.number - previous - 1)
            anchor = self._name(log, line.number) if is_first else ""
            text = shortened(line.raw or line.text, LONGEST_LINE)
            yield ShownLine(line.number, text, anchor, line.number in cited, line.level, left_out)
            previous = line.number


def _chosen(lines: Sequence[LogLine], cited: set[int], room: int) -> Iterator[LogLine]:
    """The lines to show, in order."""
    if len(lines) <= min(WHOLE, room):
        yield from lines
        return
    wanted: set[int] = set()
    at = [position for position, line in enumerate(lines) if line.number in cited]
    # first the cited lines themselves, then ever more of their neighbourhood: what there is no room for is the furthest
    for distance in range(AROUND + 1):
        for position in at:
            for near in {position - distance, position + distance}:
                if 0 <= near < len(lines) and len(wanted) < room:
                    wanted.add(near)
    for position in sorted(wanted):
        yield lines[position]
