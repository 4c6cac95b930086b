"""Whether a log can be of the installed release: its lines name places, and the texts there are others in another one.

Only lines that name their place are weighed (vLLM's do: ``[topk_topp_sampler.py:156]``). A text that no file has says
less: it can be a value as a whole, or of a package that is not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from gpuwhy.source.answers import Spot
from gpuwhy.source.messages import Template
from gpuwhy.source.texts import PackageTexts, Written

_SHOWN = 5


class Misplaced(msgspec.Struct, frozen=True):
    """A line that the installed release cannot have written where it says it was. ``now`` is where that text stands
    there; None when no text of that file can give the line."""

    number: int
    text: str
    stated: str
    now: Spot | None = None


class Fit(msgspec.Struct, frozen=True):
    """How many places of the package a log names (``stated``) and how many of them write what it says they did
    (``agreeing``); ``misplaced`` are the first that cannot. Of the others only the end of a text is in the log.
    """

    package: str
    version: str
    stated: int
    agreeing: int
    misplaced: tuple[Misplaced, ...] = ()
    differing: int = 0

    @property
    def differs(self) -> bool:
        """The log was written by another release, or by patched files."""
        return self.differing > 0

    @property
    def is_other_release(self) -> bool:
        """Most places disagree: it is not a patched file or two."""
        return self.differing > self.agreeing


def fit(packages: Iterable[PackageTexts], written: Iterable[Written]) -> tuple[Fit, ...]:
    """One answer for each package whose places the log names. A file name that several packages have speaks for the one
    that most places speak for."""
    records: dict[str, list[Written]] = {}
    for line in written:
        if line.stated:
            records.setdefault(line.stated, []).append(line)
    owners = tuple(packages)
    named = {stated: [owner for owner in owners if any(owner.named(_path(stated)))] for stated in records}
    votes = Counter(owner.root.package for found in named.values() for owner in found)
    by_owner: dict[str, list[list[Written]]] = {}
    for stated, lines in records.items():
        if named[stated]:
            owner = max(named[stated], key=lambda each: votes[each.root.package])
            by_owner.setdefault(owner.root.package, []).append(lines)
    return tuple(_fit(owner, by_owner[owner.root.package]) for owner in owners if owner.root.package in by_owner)


def _fit(owner: PackageTexts, records: list[list[Written]]) -> Fit:
    agreeing = 0
    misplaced: list[Misplaced] = []
    for lines in records:
        verdict = _is_written_there(owner, lines)
        agreeing += verdict is True
        if verdict is False:
            misplaced.append(_misplaced(owner, lines))
    return Fit(owner.root.package, owner.root.version, len(records), agreeing, tuple(misplaced[:_SHOWN]), len(misplaced))  # fmt: skip


def _is_written_there(owner: PackageTexts, lines: list[Written]) -> bool | None:
    """Whether the place that the lines name writes one of them; None when it writes something else, whose beginning the
    log may have lost: a traceback that is logged repeats the place on every line."""
    path, _, number = lines[0].stated.rpartition(":")
    there = [
        text
        for file in owner.named(path)
        for text in file.texts
        if text.kind == "log" and text.line <= int(number) <= text.last
    ]
    if any(_can_be(text.choices, line.text) for text in there for line in lines):
        return True
    return None if there and len(lines) > 1 else False


def _can_be(choices: tuple[Template, ...], text: str) -> bool:
    """A text without a literal part can be anything."""
    return not choices or any(pattern.values_in(text) is not None for pattern in choices)


def _misplaced(owner: PackageTexts, lines: list[Written]) -> Misplaced:
    package = owner.root.package
    found = [(line, origin.spot) for line in lines for origin in line.origins if origin.package == package]
    line, now = found[0] if found else (lines[0], None)
    return Misplaced(line.number, line.text[:200], line.stated, now)


def _path(stated: str) -> str:
    return stated.rpartition(":")[0]
