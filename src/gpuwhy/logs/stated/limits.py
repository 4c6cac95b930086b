"""Limits of a process: ``ulimit -a`` and ``/proc/PID/limits``.

max locked memory           (kbytes, -l) 8192
open files                          (-n) 1024
Max locked memory         8388608              8388608              bytes
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

LITERALS = ("max locked memory", "Max locked memory", "open files ", "Max open files", "max user processes", "Max processes", "stack size ", "Max stack size")  # fmt: skip
OPENING = ("ulimit -",)
_SHELL = Pattern(r"^(?:-\w: )?(?P<name>max locked memory|open files|max user processes|stack size)\s{1,40}\((?:(?P<unit>kbytes), )?-\w\)\s{1,20}(?P<value>\d{1,18}|unlimited)\s*$")  # fmt: skip
_PROC = Pattern(r"^(?P<name>Max locked memory|Max open files|Max processes|Max stack size)\s{2,20}(?P<value>\d{1,20}|unlimited)\s{1,20}(?:\d{1,20}|unlimited)\s{1,20}\w")  # fmt: skip
_KEYS = {"max locked memory": "memlock", "open files": "nofile", "max user processes": "nproc", "max processes": "nproc", "max open files": "nofile", "stack size": "stack", "max stack size": "stack"}  # fmt: skip
_COMMAND = Pattern(r"(?:^|[$#>] )ulimit (?:-[SH])?-?(?P<flag>[lnsu])\s*$")
_FLAGS = {"l": "memlock", "n": "nofile", "s": "stack", "u": "nproc"}
_IN_KIB = ("memlock", "stack")


def read(text: str) -> Iterator[Statement]:
    shown = text[:200]
    found = _SHELL.match(shown) or _PROC.match(shown)
    if found is None:
        return
    unit = 1 << 10 if found.groupdict().get("unit") else 1
    yield from _limit(_KEYS[found["name"].lower()], found["value"], unit)


def opened(text: str) -> Block | None:
    command = _COMMAND.search(text[-60:])
    return _Answer(_FLAGS[command["flag"]]) if command is not None else None


class _Answer:
    """What ``ulimit -l`` prints below itself."""

    shares = True

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, text: str) -> list[Statement] | None:
        word, name = text.strip(), self._name
        self._name = ""
        if not name or not (word == "unlimited" or (word.isdigit() and len(word) < 19)):
            return None
        return list(_limit(name, word, 1 << 10 if name in _IN_KIB else 1))


def _limit(name: str, value: str, unit: int) -> Iterator[Statement]:
    """In bytes or pieces; ``memlock`` also under its own key."""
    limit = value if value == "unlimited" else str(int(value) * unit)
    yield Statement(f"ulimit.{name}", limit if limit == "unlimited" else int(limit), Strength.REPORTED)
    if name == "memlock":
        yield Statement("memlock", limit, Strength.REPORTED)
