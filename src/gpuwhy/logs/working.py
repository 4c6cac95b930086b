"""Lines that show a program at its work: it answers, generates, trains, or has finished what it was asked for.

INFO:     192.0.2.7:53130 - "POST /v1/chat/completions HTTP/1.1" 200 OK
[GIN] 2026/03/11 - 09:12:30 | 200 |  2.104917s |       127.0.0.1 | POST     "/api/chat"
[2026-11-29 10:06:30 TP0] Decode batch. #running-req: 1, ..., gen throughput (token/s): 41.93, #queue-req: 0,
[rank0]: step 20 loss 3.101 lr 1e-4
Successfully installed flash_attn-2.7.4

What was complained of before such a line did not stop the program. Answers to probes (``/health``, ``/metrics``) show
nothing: a front end gives them for a while when its engine is dead.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Log

LITERALS = (
    "200", "throughput", "loss", "Loss", "tokens/s", "T/s", "token(s)", "Prompt executed in", "Output generated in", "Started container", "Successfully ", "successfully", "uccessfully loaded",
    "Build files have been written", "Writing best config", "Process finished", "exit code: 0", "Autotuning process ends", "Finished loading JIT ops", "Connected all ", "Init COMPLETE",
    " passed", "Generated CDI spec", "with status 'done'", "Linking ", "saved ", "Saving file", "ready to roll", "Application startup complete", "server is listening on", "(healthy)", " --> ", "llama runner started in", ": Connected",
)  # fmt: skip
_ANSWERED = Pattern(
    r"\"?(?:POST|GET|PUT) /(?!(?:health\w{0,10}|metrics|ping|ready|readyz|livez|load|version|get_server_info)\b)\S{0,300}?(?: HTTP/[\d.]{1,3})?\"? 200\b"
    r"|\brequest: (?:POST|GET) /(?!health\b|metrics\b)\S{1,200} \S{1,60} 200\b|\| 200 \|.{0,120}\bPOST {1,10}\""
)
_WORKED = Pattern(
    r"gen(?:eration)? throughput(?: \(token/s\))?: (?!0(?:\.0{1,3})?\b)\d|\b[Oo]utput generated in \d|\bPrompt executed in \d|Generate: ?\d{1,6}\.\d{1,3}s"
    r"|\b(?:[Ss]tep|[Ii]ter(?:ation)?|[Ee]poch)\b.{0,120}loss['\"]?[:= ]|\b(?:train_)?loss['\"]?[:=] ?\d|^\[\d{1,4}\] loss \d|^\[\d\d:\d\d\.\d{3} --> \d\d:\d\d\.\d{3}\]"
    r"|(?:Connected all (?:rings|trees)|Init COMPLETE)\b"
)
_FINISHED = Pattern(
    r"^\s*Successfully (?:installed|built|tagged)\b|^-- Build files have been written to|\bWriting best config\b|\bAutotuning process ends\b|\bFinished loading JIT ops\b|\bexits successfully\b"
    r"|finished with status 'done'|\bfinished: exit code: 0\b|\bGenerated CDI spec\b|^\[\d{1,5}/\d{1,5}\] Linking "
    r"|^\s*saved (?:out|checkpoint|model|to)\b|\bNormal\s{1,20}Started\b.{0,200}Started container|\bSuccessfully assigned\b"
    r"|fired up and ready to roll|Application startup complete|server is listening on|\(healthy\)|llama runner started in|: Connected$"
)
_TESTED = Pattern(
    r"^=+ (?:\d{1,6} (?:passed|skipped|deselected|xfailed|xpassed|warnings?)(?:, )?){1,6} in [\d.]{1,12}s"
)
LONGEST = 600
ANSWERS = 5
"""So many answers show that a process went on, although others of its group died later."""
LATER_SECONDS = 20.0
"""A busy server sends the heads of some more answers in the seconds between a failure and its end."""
LAST_LINES = 5
"""A run of tests is summed up at the very end."""
MOST_LINES = 20_000
"""So many of the lines that may show it are looked at, the last ones: a service of a week has millions."""
ENOUGH = 2
"""So many show it where nothing fatal follows: one that was under way may still end after a failure."""


class Work:
    """Where logs show the program at its work; found when first asked for."""

    def __init__(self, logs: Iterable[Log]) -> None:
        self._logs: Mapping[str, Log] = {log.name: log for log in logs}
        self._found: dict[str, _Signs] = {}

    def went_on(self, log: str, after: int, before: int | None = None) -> bool:
        """Whether the program worked on between line ``after`` and what ended it in line ``before`` (None: nothing did)."""
        signs = self._signs(log)
        worked = _between(signs.worked, after, before)
        if before is not None:
            return worked >= ANSWERS and not self._is_short(log, after, before)
        return worked >= ENOUGH or _between(signs.finished, after, None) > 0

    def had_worked(self, log: str, before: int) -> bool:
        """Whether the program did any work before line ``before``."""
        return _between(self._signs(log).worked, 0, before) > 0

    def has_passed(self, log: str, after: int) -> bool:
        """Whether what was said in line ``after`` belongs to a run of tests of which none failed."""
        return _between(self._signs(log).tested, after, None) > 0

    def last(self, log: str) -> int:
        """The number of the last line that shows it; 0 when none does."""
        signs = self._signs(log)
        return max((numbers[-1] for numbers in (signs.worked, signs.finished, signs.tested) if numbers), default=0)

    def _is_short(self, log: str, after: int, before: int) -> bool:
        """Whether the lines from ``after`` to ``before`` are known to lie within a few seconds."""
        timed = self._signs(log).timed
        begin = bisect.bisect_left(timed, after, key=_first)
        end = bisect.bisect_left(timed, before, key=_first)
        return end > begin and timed[end - 1][1] - timed[begin][1] < LATER_SECONDS

    def _signs(self, name: str) -> _Signs:
        if name not in self._found:
            log = self._logs.get(name)
            self._found[name] = _Signs((), (), (), ()) if log is None else _signs(log)
        return self._found[name]


class _Signs(NamedTuple):
    """Numbers of lines: of work that goes on; of readiness, or of a task that was finished; of tests that passed.

    ``timed`` holds number and time of each line that has one.
    """

    worked: tuple[int, ...]
    finished: tuple[int, ...]
    tested: tuple[int, ...]
    timed: tuple[tuple[int, float], ...]


def _signs(log: Log) -> _Signs:
    worked: list[int] = []
    finished: list[int] = []
    tested: list[int] = []
    positions = _positions(log)
    for at in positions[-MOST_LINES:]:
        line = log.lines[at]
        shown = line.text[:LONGEST]
        if _ANSWERED.search(shown) or _WORKED.search(shown):
            worked.append(line.number)
        elif _FINISHED.search(shown):
            finished.append(line.number)
        elif at >= len(log.lines) - LAST_LINES and _TESTED.search(shown):
            tested.append(line.number)
    timed = tuple((line.number, line.time) for line in log.lines if line.time is not None)
    return _Signs(tuple(worked), tuple(finished), tuple(tested), timed)


def _between(numbers: Sequence[int], after: int, before: int | None) -> int:
    end = len(numbers) if before is None else bisect.bisect_left(numbers, before)
    return max(0, end - bisect.bisect_right(numbers, after))


def _first(pair: tuple[int, float]) -> int:
    return pair[0]


@functools.cache
def _automaton() -> object:
    import ahocorasick_rs

    return ahocorasick_rs.AhoCorasick(list(LITERALS))


def _positions(log: Log) -> list[int]:
    """Positions of the lines that hold what a sign begins with."""
    starts = [0]
    for line in log.lines:
        starts.append(starts[-1] + len(line.text) + 1)
    whole = "\n".join([line.text for line in log.lines])
    found: dict[int, None] = {}
    at = 0
    for _, begin, _ in _automaton().find_matches_as_indexes(whole):  # type: ignore[attr-defined]
        if begin >= starts[at + 1]:
            at = bisect.bisect_right(starts, begin, at) - 1
        found[at] = None
    return list(found)
