"""Names of nodes, folded as schedulers write them: ``gpu[001-003,007], head``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_NUMBERED = re.compile(r"(?P<before>[^\[\]]{0,400}?)(?P<number>\d{1,18})(?P<after>[^\d\[\]]{0,200})")
"""A name in brackets could be read as a set of names, so it is left as it is."""


def folded(names: Iterable[str], most: int = 12) -> str:
    """The names in a line; ``most`` names and ranges are written, of the rest how many nodes they are."""
    pieces: list[tuple[str, int]] = []
    by_form: dict[tuple[str, str, int], list[int]] = {}
    for name in sorted(set(names)):
        found = _NUMBERED.fullmatch(name)
        if found is None:
            pieces.append((name, 1))
        else:
            # as many digits, so that the range has exactly these names
            form = found["before"], found["after"], len(found["number"])
            by_form.setdefault(form, []).append(int(found["number"]))
    for (before, after, width), numbers in by_form.items():
        pieces += _pieces(before, after, width, numbers, most)
    shown = _first(pieces, most)
    left = sum(count for _, count in pieces[len(shown) :])
    return ", ".join(text for text, _ in shown) + (f" and {left:,} more" if left else "")


def _first(pieces: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """As many pieces as have about ``most`` ranges together; always one."""
    room = most
    shown: list[tuple[str, int]] = []
    for text, count in pieces:
        room -= text.count(",") + 1
        if shown and room < 0:
            break
        shown.append((text, count))
    return shown


def _pieces(before: str, after: str, width: int, numbers: list[int], most: int) -> Iterator[tuple[str, int]]:
    """One piece for at most ``most`` ranges, and how many nodes it names."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    for start in range(0, len(ranges), most):
        part = ranges[start : start + most]
        count = sum(last - first + 1 for first, last in part)
        written = (
            f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}" for first, last in part
        )
        told = ",".join(written)
        yield (f"{before}{told}{after}" if count == 1 else f"{before}[{told}]{after}"), count
