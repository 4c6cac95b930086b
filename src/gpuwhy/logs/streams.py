"""Lines told apart by who wrote them, so that tracebacks of interleaved ranks come out whole.

Only the first line of a message may carry the writer's name: SGLang prints ``[... TP0] Scheduler hit an exception:
Traceback (most recent call last):`` and the frames below it bare. Such bare lines are given to the writer of the
traceback they continue.

Two more things are told by no prefix of the program's own: standard output and standard error are apart where a container
runtime kept them apart, and lines that Ray folded (``[repeated 2x across cluster]``) stand for several writers, whose last
one Ray names: together they are a stream of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.logs import partial, tracebacks
from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import LogLine, Process

_CONTINUES = Pattern(r"\s+\S|$")
_SAMPLE = 400
_FOLDED = " across cluster]"


def split_streams(lines: Sequence[LogLine]) -> list[list[int]]:
    """Positions in ``lines``, one list for each writer; every position is in exactly one of them."""
    streams: dict[object, list[int]] = {}
    adopted: dict[object, _Adoption] = {}
    waiting: list[tuple[Process, list[int]]] = []
    is_tagged = any(partial.output_of(line.raw) for line in lines[:_SAMPLE])
    for at, line in enumerate(lines):
        process = line.process
        key: object = process
        if is_tagged:
            key = (process, partial.output_of(line.raw))
        if process is not None and process.pid is not None and _FOLDED in line.raw:
            key = (process.name, _FOLDED)
        stream = streams.get(key)
        if stream is None:
            stream = streams[key] = []
        adoption = adopted.get(key)
        if adoption is not None:
            if adoption.takes(line.text):
                adoption.stream.append(at)
                continue
            del adopted[key]
        if waiting and tracebacks.is_frame(line.text) and not _has_own_head(stream, lines):
            owner = _owner(waiting, process)
            if owner is not None:
                waiting.remove(owner)
                if owner[1] is not stream:
                    adopted[key] = _Adoption(owner[1])
                    owner[1].append(at)
                    continue
        stream.append(at)
        if process is not None and tracebacks.HEAD in line.text:
            waiting.append((process, stream))
            del waiting[:-64]
    return [stream for stream in streams.values() if stream]


def _has_own_head(stream: list[int], lines: Sequence[LogLine]) -> bool:
    """Whether a traceback without a writer's name has just begun in ``stream`` itself."""
    if not stream:
        return False
    last = lines[stream[-1]]
    return last.process is None and tracebacks.HEAD in last.text


class _Adoption:
    """A traceback whose head had its writer's name and whose other lines have not."""

    __slots__ = ("phase", "stream")

    def __init__(self, stream: list[int]) -> None:
        self.stream = stream
        self.phase = "frames"

    def takes(self, text: str) -> bool:
        if tracebacks.is_chain(text) or tracebacks.HEAD in text[:40]:
            self.phase = "frames"
            return True
        if not text.strip():
            if self.phase == "message":
                self.phase = "after"
            return True
        if self.phase == "frames":
            if _CONTINUES.match(text) is None:
                self.phase = "message"
            return True
        return self.phase == "message"


def _owner(waiting: list[tuple[Process, list[int]]], key: Process | None) -> tuple[Process, list[int]] | None:
    """Whose traceback a frame line of ``key`` continues: its own, one of the same process id or place, else the newest."""
    for candidate in reversed(waiting):
        if candidate[0] == key:
            return candidate
    if key is not None and key.pid is not None:
        return next((candidate for candidate in reversed(waiting) if candidate[0].pid == key.pid), None)
    if key is None:
        return waiting[-1]
    if key.rank is not None:
        return None
    place = key.host or key.name  # a container, whose processes name themselves only in the first lines of messages
    return next((candidate for candidate in reversed(waiting) if candidate[0].host == place), None)
