"""What Windows PowerShell makes of the first line that a program writes to standard error when that is redirected.

python.exe : Traceback (most recent call last):
At line:1 char:1
+ python serve.py 2> crash.log
+ ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    + CategoryInfo          : NotSpecified: (Traceback (most recent call last)::String) [], RemoteException
    + FullyQualifiedErrorId : NativeCommandError

  File "serve.py", line 21, in load
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.logs.patterns import Pattern

SIGN = "NativeCommandError"
_LAST = Pattern(r"\s{1,8}\+ FullyQualifiedErrorId ?: NativeCommandError")
_PLACE = Pattern(r"(?!\s{0,8}\+ ).{1,300}?:\s{0,2}\d{1,7} \D{1,40}:\s{0,2}\d{1,7}\s{0,4}$")
"""``At line:1 char:1``, in the language of the system."""
_HEAD = Pattern(r"\S.{0,250}? : ")
MOST_LINES = 24
"""Lines of one record at most: the console wraps a long message and a long command over several."""


def without_error_records(raws: Sequence[str]) -> tuple[list[str], list[int]]:
    """The lines with the program's own words only, and the number of each."""
    lines: list[str | None] = list(raws)
    for at, raw in enumerate(raws):
        if SIGN in raw and _LAST.match(raw) is not None:
            _take_out(lines, raws, at)
    kept = [(line, number) for number, line in enumerate(lines, 1) if line is not None]
    return [line for line, _ in kept], [number for _, number in kept]


def _take_out(lines: list[str | None], raws: Sequence[str], last: int) -> None:
    """The head is the nearest line ``program : text`` above the place and the command."""
    place = last - 1
    while place >= 0 and last - place < MOST_LINES and _PLACE.match(raws[place]) is None:
        place -= 1
    head = place - 1
    while head >= 0 and place - head < MOST_LINES and _HEAD.match(raws[head]) is None:
        head -= 1
    found = _HEAD.match(raws[head]) if place >= 0 <= head and place - head < MOST_LINES else None
    if found is None:
        return
    lines[head] = "".join([raws[head][found.end() :], *(raw.strip() for raw in raws[head + 1 : place])])
    end = last + 1 if last + 1 >= len(raws) or raws[last + 1].strip() else last + 2
    lines[head + 1 : end] = [None] * (end - head - 1)
