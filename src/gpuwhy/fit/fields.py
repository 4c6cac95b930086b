"""Reads the fields of a configuration that nobody has checked: they lie, are missing, or are of another type."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

LARGEST = 10**9
_NUMBER = re.compile(r"\s{0,9}(\d{1,12})(?:\.0{1,9})?\s{0,9}", re.ASCII)
_MOST_ITEMS = 4096
_LONGEST_TEXT = 300
_LONGEST_LIST = 20_000


class Fields:
    """A section of config.json. What is unusable is left out and named in ``complaints``.

    Several names are given for what has several in practice; the first that holds something usable counts.
    """

    def __init__(self, section: Any, complaints: list[str] | None = None, where: str = "") -> None:
        self._values: Mapping[str, Any] = section if isinstance(section, dict) else {}
        self.complaints: list[str] = complaints if complaints is not None else []
        self._where = where

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def count(self, *names: str, largest: int = LARGEST, zero: bool = False) -> int | None:
        """A whole number from 1 (0 with ``zero``) to ``largest``; numbers written as text count too."""
        for name in names:
            value = self._values.get(name)
            if value is None:
                continue
            number = _same_for_all(value) if isinstance(value, list | tuple) else _whole(value)
            if number is not None and (0 if zero else 1) <= number <= largest:
                return number
            if not (number == 0 and not zero) and not _is_per_layer(value):
                self.complain(name, value)
        return None

    def number(self, *names: str) -> float | None:
        """A finite number above zero."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, str) and len(value) < 30:
                try:
                    value = float(value)
                except ValueError:
                    self.complain(name, value)
                    continue
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18:
                if math.isfinite(value) and value > 0:
                    return float(value)
            elif value is not None:
                self.complain(name, value)
        return None

    def text(self, *names: str) -> str:
        """A short text; "" for none."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT:
                return value
        return ""

    def flag(self, *names: str) -> bool | None:
        for name in names:
            value = self._values.get(name)
            if isinstance(value, bool):
                return value
            if isinstance(value, str) and value.lower() in ("true", "false"):
                return value.lower() == "true"
        return None

    def items(self, *names: str) -> tuple[Any, ...]:
        """A list, at most some thousands of its items; empty for none."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, list | tuple) and value:
                return tuple(value[:_MOST_ITEMS])
        return ()

    def each(self, *names: str) -> tuple[int | None, ...]:
        """A list with one number per layer; None where there is none. Empty for no list."""
        return tuple(_whole(value) for value in self.items(*names))

    def texts(self, *names: str) -> tuple[str, ...]:
        return tuple(each for each in self.items(*names) if isinstance(each, str) and len(each) <= _LONGEST_TEXT)

    def indices(self, *names: str) -> frozenset[int]:
        """Numbers of layers, in a list or as text (``"4,5,6"``)."""
        written = next((text for name in names if isinstance(text := self._values.get(name), str)), "")
        listed = self.items(*names) or (written[:_LONGEST_LIST].split(",") if "," in written else ())
        found = (_whole(each) for each in listed)
        return frozenset(each for each in found if each is not None and each < _MOST_ITEMS)

    def section(self, *names: str) -> Fields:
        """A nested section; empty for none."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, dict) and value:
                return Fields(value, self.complaints, f"{self._where}{name}.")
        return Fields({}, self.complaints, self._where)

    def names(self) -> Iterator[str]:
        """Of its values, all of them: an index has a hundred thousand."""
        return (name for name in self._values if isinstance(name, str))

    def sections(self) -> Iterator[tuple[str, Fields]]:
        """Those of its values that are sections."""
        for name, value in list(self._values.items())[:_MOST_ITEMS]:
            if isinstance(name, str) and isinstance(value, dict):
                yield name, Fields(value, self.complaints, f"{self._where}{name}.")

    @property
    def is_empty(self) -> bool:
        return not self._values

    def complain(self, name: str, value: Any) -> None:
        shown = type(value).__name__ if isinstance(value, dict | list | tuple) else _shown(value)
        complaint = f"{self._where}{name} = {shown} is no usable value: ignored"
        if complaint not in self.complaints and len(self.complaints) < 40:
            self.complaints.append(complaint)


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    return repr(value)[:60]


def _same_for_all(values: Any) -> int | None:
    """Of a list with one number per layer: that number, when it is the same for all."""
    found = {_whole(value) for value in values[:_MOST_ITEMS]}
    return found.pop() if len(found) == 1 else None


def _is_per_layer(value: Any) -> bool:
    """A list of numbers that differ: whoever reads the layers takes it."""
    return isinstance(value, list | tuple) and len(value) > 1 and all(_whole(each) is not None or each is None for each in value[:_MOST_ITEMS])  # fmt: skip


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, str) and len(value) < 40:
        found = _NUMBER.fullmatch(value)
        return int(found[1]) if found else None
    return None


class Sections:
    """The same questions to several sections, then to the defaults of the class; the first answer counts."""

    def __init__(self, sections: tuple[Fields, ...], defaults: dict[str, Any], complaints: list[str]) -> None:
        self._all = (*(each for each in sections if not each.is_empty), Fields(defaults, complaints))

    def count(self, *names: str, largest: int = LARGEST, zero: bool = False) -> int | None:
        return next(
            (n for each in self._all if (n := each.count(*names, largest=largest, zero=zero)) is not None), None
        )

    def number(self, *names: str) -> float | None:
        return next((n for each in self._all if (n := each.number(*names)) is not None), None)

    def text(self, *names: str) -> str:
        return next((text for each in self._all if (text := each.text(*names))), "")

    def flag(self, *names: str) -> bool | None:
        return next((flag for each in self._all if (flag := each.flag(*names)) is not None), None)

    def items(self, *names: str) -> tuple[Any, ...]:
        return next((items for each in self._all if (items := each.items(*names))), ())

    def each(self, *names: str) -> tuple[int | None, ...]:
        return next((items for section in self._all if (items := section.each(*names))), ())

    def indices(self, *names: str) -> frozenset[int]:
        return next((found for each in self._all if (found := each.indices(*names))), frozenset())

    def section(self, *names: str) -> Fields:
        return next((s for each in self._all if not (s := each.section(*names)).is_empty), Fields({}))

    def __contains__(self, name: str) -> bool:
        return any(name in each for each in self._all)
