"""Brings what a trace misses from a target: searches, files and their stamps, all of one round in one trip.

A trace is worked out with what is here, names what it missed, and is worked out again. Nobody knows beforehand which files
that will be; but the same question will need the same ones, so that the second time one round does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuwhy.investigate.installed_files import Clock
from gpuwhy.investigate.mending import mended
from gpuwhy.investigate.source import Questioner, lines_of
from gpuwhy.investigate.tracing_cache import FetchedFiles, Needed
from gpuwhy.investigate.tracing_package import RemotePackage, Stamp
from gpuwhy.source.answers import Fetched
from gpuwhy.targets import Ask, Reply

MOST_FILES = 600
MOST_LINES = 900_000
"""Of all files together."""
_RANGE = 4000
"""Lines of one answer."""
_MOST_RANGES = 12
_MOST_IN_ROUND = 250
_MOST_QUERIES = 350


class TargetFiles:
    """Answers the wishes of packages over one connection."""

    def __init__(self, source: Questioner, known: FetchedFiles, clock: Clock) -> None:
        self._source = source
        self._known = known
        self._clock = clock
        self._lines = 0
        self.fetched = Fetched()
        self.limits: dict[str, None] = {}

    def ask(self, asks: list[Ask]) -> list[Reply]:
        """One trip."""
        if not asks:
            return []
        replies = self._source.ask(asks, max(0.5, self._clock.seconds_left))
        size = sum(len(repr(reply.value)) for reply in replies)
        self.fetched = msgspec.structs.replace(
            self.fetched, trips=self.fetched.trips + 1, characters=self.fetched.characters + size
        )
        return replies

    def fetch(self, packages: Mapping[str, RemotePackage]) -> bool:
        """One round: all that is missed now. False when nothing new came."""
        wanted = [(package, path) for package in packages.values() for path in package.wanted]
        questions = [(package, package.questions[:_MOST_QUERIES]) for package in packages.values() if package.questions]
        room = min(_MOST_IN_ROUND, MOST_FILES - self.fetched.files)
        if len(wanted) > room and room < _MOST_IN_ROUND:
            self.limits[f"{len(wanted) - room} files were not fetched: {MOST_FILES} are at most"] = None
        if (wanted or questions) and self._clock.seconds_left <= 0:
            self.limits[f"{len(wanted)} files and {len(questions)} searches were not asked for, for want of time"] = None  # fmt: skip
            return False
        reading = [_Reading(package, path, self._known) for package, path in wanted[: max(0, room)]]
        open_now = [each for each in reading if not self._taken(each)]
        asks = [Ask("search", f"{package.folder}/{_top(package)}", queries=queries) for package, queries in questions]
        asks += [ask for each in open_now for ask in each.asks]
        if not asks:
            return bool(reading)
        replies = self.ask(asks)
        for (package, queries), reply in zip(questions, replies, strict=False):
            package.take_answers(queries, reply)
        at = len(questions)
        unfinished: list[_Reading] = []
        for each in open_now:
            count = len(each.asks)
            each.take(replies[at : at + count])
            at += count
            if not self._taken(each) and not self._finished(each):
                unfinished.append(each)
        self._go_on(unfinished)
        return True

    def _go_on(self, unfinished: list[_Reading]) -> None:
        """Files that have changed since the last time, and the later parts of long ones."""
        for _ in range(2):
            asks = [ask for each in unfinished for ask in each.asks]
            replies, at = self.ask(asks), 0
            for each in unfinished:
                count = len(each.asks)
                each.take(replies[at : at + count])
                at += count
            unfinished = [each for each in unfinished if not self._finished(each)]
        for each in unfinished:
            each.package.lacks(each.path, "it did not come whole")

    def _taken(self, reading: _Reading) -> bool:
        """Whether the file was taken from the cache."""
        content = self._known.content(reading.kept) if reading.is_unchanged and reading.kept is not None else None
        if content is None:
            return False
        reading.package.feed_file(reading.path, content)
        self.fetched = msgspec.structs.replace(self.fetched, kept=self.fetched.kept + 1)
        return True

    def _finished(self, reading: _Reading) -> bool:
        if reading.reason:
            reading.package.lacks(reading.path, reading.reason)
            return True
        if not reading.is_whole:
            return False
        self._lines += len(reading.lines)
        if self._lines > MOST_LINES:
            self.limits[f"{reading.path} was left out: {MOST_LINES} lines are read at most"] = None
            reading.package.lacks(reading.path)
            return True
        content = mended("\n".join(reading.lines) + "\n").encode("utf-8", "replace")
        reading.package.feed_file(reading.path, content)
        self.fetched = msgspec.structs.replace(self.fetched, files=self.fetched.files + 1)
        if reading.stamp is not None:
            self._known.keep(reading.package.folder, reading.package.version, reading.path, reading.stamp, content)
        return True


class _Reading:
    """One file on its way: is it the one that is kept here, and if not, its lines."""

    def __init__(self, package: RemotePackage, path: str, known: FetchedFiles) -> None:
        self.package = package
        self.path = path
        self.kept = known.kept(package.folder, package.version, path)
        self.stamp: Stamp | None = package.stamps.get(path)
        self.lines: list[str] = []
        self.reason = ""
        self.is_whole = False
        self._modified: float | None = None
        self._is_asked_for = self.kept is None

    @property
    def is_unchanged(self) -> bool:
        return self.kept is not None and self.stamp == self.kept.stamp

    @property
    def asks(self) -> list[Ask]:
        path = f"{self.package.folder}/{self.path}"
        described = [] if self.stamp is not None else [Ask("stat", path)]
        if not self._is_asked_for and self.stamp is None:
            return described
        first = len(self.lines) + 1
        return [Ask("read", path, first, first + _RANGE - 1), *described]

    def take(self, replies: list[Reply]) -> None:
        for reply in replies:
            value: dict[str, Any] = reply.value if isinstance(reply.value, dict) else {}
            if reply.status != "ok":
                self.reason = reply.reason or reply.status
            elif "lines" in value:
                self._take_lines(value)
            elif value.get("kind") == "file":
                self.stamp = Stamp(int(value["size"]), float(value["modified"]))
        self._is_asked_for = True
        if self._modified is not None and self.stamp is not None and self._modified != self.stamp.modified:
            # it was changed between the two answers: good for now, not to be kept
            self.stamp = None

    def _take_lines(self, value: dict[str, Any]) -> None:
        self.lines += lines_of(value)[:_RANGE]
        self._modified = value.get("modified")
        count = value.get("count")
        self.is_whole = not isinstance(count, int) or len(self.lines) >= min(count, _RANGE * _MOST_RANGES)


def _top(package: RemotePackage) -> str:
    """The folder of a package, or the file of a module that is none."""
    return f"{package.package}.py" if package.is_module else package.package


def needed_of(packages: Mapping[str, RemotePackage]) -> tuple[Needed, ...]:
    """What the packages that were opened had to be asked for."""
    return tuple(
        Needed(each.package, each.folder, tuple(file.path for file in each.files()), each.answered)
        for each in packages.values()
        if each.is_opened
    )
