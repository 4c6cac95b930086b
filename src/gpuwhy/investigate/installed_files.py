"""Installed source of a target, fetched file by file over the connection that is open already.

Nobody knows beforehand which files an answer needs: it is worked out with those that are there, names those that it
missed, and is worked out again with them. A few rounds do; the files that the frames name come first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence

from gpuwhy.investigate.mending import mended
from gpuwhy.investigate.source import Questioner, lines_of
from gpuwhy.model.event import Frame
from gpuwhy.source import FedRoot
from gpuwhy.targets import Ask, Query, Reply

MAX_FILES = 160
MAX_LINES = 400_000
"""Of all files together."""
_RANGE = 4000
"""Lines of one answer; a longer file takes another round."""
_MAX_RANGES = 8
_INSTALLED = re.compile(r"(?P<folder>/.{0,400}?/(?:site|dist)-packages)/(?P<below>[A-Za-z_]\w{0,80}(?:/.{1,400}|\.py))")
_PATH = re.compile(r"/[^\0\n]{1,800}\.py")


class OutOfTimeError(Exception):
    """Raised from inside a search that has used up its seconds; ends it where it stands."""


class Clock:
    """Seconds that are left for something."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Allow so many more, from now."""
        self._until = max(self._until, time.monotonic() + seconds)

    def check(self) -> None:
        """Raises OutOfTimeError."""
        if self.seconds_left <= 0:
            raise OutOfTimeError


class InstalledPackage(FedRoot):
    """A package of the target. Every module that is asked for is wanted until the target said that it is not there.

    Whoever goes on asking when the time of ``clock`` is over gets OutOfTimeError.
    """

    def __init__(self, package: str, folder: str, version: str, clock: Clock) -> None:
        super().__init__(package, version)
        self.folder = folder
        self._clock = clock
        self._absent: set[str] = set()

    def read(self, path: str) -> bytes:
        self._clock.check()
        return super().read(path)

    def knows(self, path: str) -> bool:
        self._clock.check()
        if path in self._texts:
            return True
        if path not in self._absent:
            self._wanted[path] = None
        return False

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(path for path in self._wanted if path not in self._texts and path not in self._absent)

    def lacks(self, path: str) -> None:
        """The target has no such file, or does not show it."""
        self._absent.add(path)

    @property
    def count(self) -> int:
        """Files that are here."""
        return len(self._texts)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the files that are here."""
        return tuple(self._texts)

    @property
    def is_there(self) -> bool:
        """False when not one file of it could be had."""
        return bool(self._texts)


def packages_of(
    frames: Sequence[Frame], known: Iterable[str], versions: Mapping[str, str], clock: Clock
) -> dict[str, InstalledPackage]:
    """The packages that the frames stand in, by import name, and beside them those of ``known`` in the same folders."""
    found: dict[str, InstalledPackage] = {}
    names = frozenset(known)
    for frame in reversed(frames):
        place = below(frame.path, names)
        if place is not None and place[1] not in found:
            folder, package, _ = place
            found[package] = InstalledPackage(package, folder, versions.get(package, ""), clock)
    folders = list(dict.fromkeys(each.folder for each in found.values() if each.folder.endswith("-packages")))
    for name in sorted(names - set(found)) if folders else ():
        found[name] = InstalledPackage(name, folders[0], versions.get(name, ""), clock)
    return found


def want_frames(packages: Mapping[str, InstalledPackage], frames: Sequence[Frame]) -> None:
    """Ask for the files of the frames."""
    for frame in frames:
        place = below(frame.path, frozenset(packages))
        if place is not None and place[1] in packages and packages[place[1]].folder == place[0]:
            packages[place[1]].knows(place[2])


def below(path: str, known: frozenset[str]) -> tuple[str, str, str] | None:
    """Folder, package and the path below the folder; of a checkout the innermost folder with a known name counts."""
    if _PATH.fullmatch(path) is None or ".." in path.split("/"):
        return None
    installed = _INSTALLED.fullmatch(path)
    if installed is not None:
        below = installed["below"]
        return installed["folder"], below.partition("/")[0].removesuffix(".py"), below
    parts = path.split("/")
    for number in range(len(parts) - 2, 0, -1):
        # ``/sgl-workspace/sglang/python/sglang/srt/...``: the package is the inner one
        if parts[number] in known:
            return "/".join(parts[:number]), parts[number], "/".join(parts[number:])
    return None


class Fetching(Clock):
    """Brings wanted files over one connection, within a number of files, lines and seconds."""

    def __init__(self, source: Questioner, seconds: float) -> None:
        super().__init__(seconds)
        self._source = source
        self.rounds = 0
        self.files = 0
        self._lines = 0
        self.limits: list[str] = []
        self.reasons: dict[str, str] = {}

    def fetch(self, packages: Mapping[str, InstalledPackage]) -> bool:
        """One round: all that is wanted now. False when nothing new came."""
        wanted = [(package, path) for package in packages.values() for path in package.wanted]
        if len(wanted) > MAX_FILES - self.files:
            self.limits.append(
                f"{len(wanted) - (MAX_FILES - self.files)} files were not fetched: {MAX_FILES} are read at most"
            )
            wanted = wanted[: MAX_FILES - self.files]
        if not wanted or self.seconds_left <= 0:
            if wanted:
                self.limits.append(f"{len(wanted)} files were not fetched for want of time")
            return False
        texts = self._read([f"{package.folder}/{path}" for package, path in wanted])
        came = 0
        for (package, path), text in zip(wanted, texts, strict=True):
            if text is None:
                package.lacks(path)
                continue
            package.feed({path: mended(text).encode("utf-8", "replace")})
            came += 1
        self.rounds += 1
        self.files += came
        return came > 0

    def search(self, folders: Sequence[str], queries: tuple[Query, ...]) -> list[Reply]:
        """Which Python files of each folder answer the queries; as few replies as came in time."""
        asks = [Ask("search", folder, queries=queries) for folder in folders]
        self.rounds += 1
        return list(self._source.ask(asks, max(0.5, self.seconds_left))) if asks else []

    def _read(self, paths: list[str]) -> list[str | None]:
        """Whole files; long ones are asked for again, range by range."""
        texts: dict[str, list[str]] = {}
        counts: dict[str, int] = {}
        ranges = [(path, 1) for path in paths]
        for _ in range(2):
            asks = [Ask("read", path, first, first + _RANGE - 1) for path, first in ranges]
            replies = self._source.ask(asks, max(0.5, self.seconds_left)) if asks else []
            for (path, first), reply in zip(ranges, replies, strict=False):
                if reply.status != "ok":
                    self.reasons[path] = reply.reason or reply.status
                    continue
                lines = lines_of(reply.value)[:_RANGE]
                if self._lines + len(lines) > MAX_LINES:
                    self.limits.append(f"{path} was not read to its end: {MAX_LINES} lines are read at most")
                    continue
                self._lines += len(lines)
                if first == 1 or path in texts:
                    texts.setdefault(path, []).extend(lines)
                counts[path] = _count(reply.value, len(lines))
            ranges = [
                (path, first)
                for path, count in counts.items()
                for first in range(_RANGE + 1, min(count, _RANGE * _MAX_RANGES) + 1, _RANGE)
            ]
        return ["\n".join(texts[path]) + "\n" if path in texts else None for path in paths]


def _count(value: object, least: int) -> int:
    count = value.get("count") if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else least
