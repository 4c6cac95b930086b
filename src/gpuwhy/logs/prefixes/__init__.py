"""What loggers put in front of a message: one module per family, tried by the first character of the line.

``peel("(Worker_TP3 pid=1) ERROR 03-05 09:56:09 [multiproc_executor.py:880]     self.load()", reference)`` gives the
text ``    self.load()`` (its inner indentation is the traceback's), the process ``Worker_TP3``, pid 1, rank 3, the
time and the level ``error``. Prefixes nest in any order (Ray around vLLM around NCCL), so peeling repeats until
nothing more comes off.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.logs.prefixes import brackets, levels, parentheses, priority, stamped, structured, words
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.model.event import Process

MAX_PREFIXES = 8
LONGEST_PREFIX = 400
"""Prefixes are short: patterns see no more of a line than this, so that a hostile line costs no more than another."""

_INDENTED = frozenset("([2")
"""What a process, a time in brackets or this century's times begin with."""

Peeler = Callable[[str, float], "Peeled | None"]


def _by_first_character() -> dict[str, tuple[Peeler, ...]]:
    table: dict[str, tuple[Peeler, ...]] = {
        "(": (parentheses.peel,),
        "[": (brackets.peel,),
        "{": (structured.peel_json,),
        "<": (priority.peel,),
    }
    for digit in "0123456789":
        table[digit] = (stamped.peel, words.peel)
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        peelers: list[Peeler] = []
        if letter in levels.INITIALS:
            peelers.append(levels.peel)
        if letter in "tlm":
            peelers.append(structured.peel_logfmt)
        peelers.append(words.peel)
        table[letter] = tuple(peelers)
    return table


PEELERS = _by_first_character()


def peel(line: str, reference: float) -> Peeled:
    """The message of ``line`` with what its prefixes tell. ``reference``: a time not long after the line was written."""
    text = line
    process: Process | None = None
    time: float | None = None
    level = ""
    if text[:1] == " ":
        # a pasted, indented prefix; a traceback's own indentation is followed by other things
        inner = text.lstrip(" ")
        if inner[:1] not in _INDENTED:
            return line, None, None, ""
        text = inner
    for turn in range(MAX_PREFIXES):
        peelers = PEELERS.get(text[:1])
        if peelers is None:
            break
        for peeler in peelers:
            found = peeler(text, reference)
            if found is not None:
                break
        else:
            if turn == 0:
                text = line
            break
        text = found[0]
        if found[1] is not None:
            process = found[1] if process is None else parentheses.more_specific(process, found[1])
        if time is None:
            time = found[2]
        if found[3]:
            level = found[3]
    return text, process, time, level
