"""``systemctl status UNIT``.

● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
     Active: failed (Result: exit-code) since Mon 2025-11-03 10:11:12 UTC; 5min ago
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

LITERALS = ("could not be found.",)
OPENING = (".service - ", ".service\n", "● ", "○ ", "× ")
_UNIT = Pattern(r"^\s{0,4}[●○×*]?\s{0,2}(?P<name>[\w@.\\:-]{2,80})\.service(?: - .{0,200})?\s*$")
_ACTIVE = Pattern(
    r"^\s{2,12}Active: (?P<state>(?:active|inactive|failed|activating|deactivating)(?: \([\w :-]{2,40}\))?)"
)
_ABSENT = Pattern(r"^Unit (?P<name>[\w@.\\:-]{2,80})\.service could not be found\.\s*$")


def read(text: str) -> Iterator[Statement]:
    found = _ABSENT.match(text[:200])
    if found is not None:
        yield Statement(f"unit_state.{found['name']}", "not-found", Strength.REPORTED)


def opened(text: str) -> Block | None:
    unit = _UNIT.match(text[:300])
    return _Status(unit["name"]) if unit is not None else None


class _Status:
    shares = True

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        if not self._name or self._lines > 6:
            return None
        active = _ACTIVE.match(text[:200])
        if active is None:
            return []
        name, self._name = self._name, ""
        return [Statement(f"unit_state.{name}", active["state"], Strength.REPORTED)]
