"""``free`` and ``/proc/meminfo``.

               total        used        free      shared  buff/cache   available
Mem:            23Gi       898Mi        14Gi       8.7Mi       8.4Gi        22Gi
Swap:             0B          0B          0B

Without a suffix the unit is not in the table. KiB, the default, is only believed where no other unit could be meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength, size_of

LITERALS = ("MemTotal:", "MemAvailable:", "SwapTotal:")
OPENING = ("shared", "$ free", "# free")
_MEMINFO = Pattern(r"^(?P<name>MemTotal|MemAvailable|SwapTotal):\s{1,20}(?P<kib>\d{1,15}) kB\s*$")
_NAMES = {"MemTotal": "mem_total_bytes", "MemAvailable": "mem_available_bytes", "SwapTotal": "swap_total_bytes"}
_HEADER = Pattern(r"^\s{6,30}total\s{1,12}used\s{1,12}free\s{1,12}shared\b")
_COMMAND = Pattern(r"(?:^|[$#] )free(?P<flags>(?: -{1,2}\w{1,8}){0,3})\s*$")
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SURELY_KIB = 16_000_000


def read(text: str) -> Iterator[Statement]:
    found = _MEMINFO.match(text[:100])
    if found is not None:
        yield Statement(_NAMES[found["name"]], int(found["kib"]) << 10, Strength.REPORTED)


def opened(text: str) -> Block | None:
    shown = text[:200]
    if _HEADER.match(shown):
        return _Table(0, "available" in shown)
    command = _COMMAND.search(shown)
    if command is None:
        return None
    units = [_UNITS[letter] for letter in command["flags"].replace("-", "").replace(" ", "") if letter in _UNITS]
    return _Table(units[0] if units else (1 << 10), True)


class _Table:
    shares = False

    def __init__(self, unit: int, has_available: bool) -> None:
        self._unit = unit
        self._has_available = has_available

    def read(self, text: str) -> list[Statement] | None:
        if _HEADER.match(text[:200]):
            self._has_available = "available" in text[:200]
            return []
        words = text[:200].split()
        if not words or words[0] not in ("Mem:", "Swap:"):
            return None
        if len(words) < 4:
            return None
        keys = [("mem_total_bytes", 1)] if words[0] == "Mem:" else [("swap_total_bytes", 1)]
        if words[0] == "Mem:" and self._has_available and len(words) == 7:
            keys.append(("mem_available_bytes", 6))
        values = [(key, self._bytes(words[at])) for key, at in keys]
        return [Statement(key, value, Strength.REPORTED) for key, value in values if value is not None]

    def _bytes(self, word: str) -> int | None:
        if not word.isdigit():
            return size_of(word)
        number = int(word)
        if self._unit:
            return number * self._unit
        return number << 10 if number == 0 or _SURELY_KIB <= number < 16_000_000_000 else None
