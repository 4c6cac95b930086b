"""Files that a log names by their last part (``[cuda.py:244]``), found among those that a package installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gpuwhy.investigate.installed_files import Fetching, InstalledPackage
from gpuwhy.investigate.source import Questioner, lines_of
from gpuwhy.model.event import LogLine
from gpuwhy.source.texts import stated_place
from gpuwhy.targets import Ask

_RECORD_LINES = 8000
_RANGE = 4000
_MAX_NAMES = 12
_MAX_FILES_OF_A_NAME = 4
_MIN_SECONDS = 0.6
_TELLING_LEVELS = ("warning", "error", "critical")


class StatedFiles(msgspec.Struct, frozen=True):
    """``is_new``: files were asked for that were not here. ``known`` are names of which every installed file is here, or
    was asked for: of those it can be said that none writes a line."""

    is_new: bool = False
    known: frozenset[str] = frozenset()


def want_stated(
    packages: Mapping[str, InstalledPackage],
    lines: Iterable[LogLine],
    names: Sequence[str],
    source: Questioner,
    fetching: Fetching,
) -> StatedFiles:
    """Ask for the files that warnings and errors name, as far as time is left.

    ``names`` are packages whose logs name their files. What is installed is read from the ``RECORD`` of the package:
    one request when its version is known, two when not.
    """
    telling = (stated_place(line).rpartition(":")[0] for line in lines if line.level in _TELLING_LEVELS)
    wanted = [path for path in dict.fromkeys(telling) if path][:_MAX_NAMES]
    is_new = False
    known: set[str] = set()
    for name in names if wanted else ():
        package = packages.get(name)
        if package is None or not package.is_there or fetching.seconds_left < _MIN_SECONDS:
            continue
        installed = _installed(package, source, fetching.seconds_left)
        for path in wanted:
            files = _ending(installed, path)
            if 0 < len(files) <= _MAX_FILES_OF_A_NAME:
                known.add(path)
                missing = [file for file in files if not package.knows(file)]
                is_new = is_new or bool(missing)
    return StatedFiles(is_new, frozenset(known))


def _ending(paths: Iterable[str], name: str) -> list[str]:
    return [path for path in paths if path == name or path.endswith("/" + name)]


def _installed(package: InstalledPackage, source: Questioner, seconds: float) -> list[str]:
    """The Python files of a package, from the RECORD of the wheel that brought it."""
    described = (
        f"{package.package}-{package.version}.dist-info" if package.version else _described(package, source, seconds)
    )
    if not described:
        return []
    record = f"{package.folder}/{described}/RECORD"
    asks = [Ask("read", record, first, first + _RANGE - 1) for first in range(1, _RECORD_LINES, _RANGE)]
    lines = [line for reply in source.ask(asks, seconds) if reply.status == "ok" for line in lines_of(reply.value)]
    paths = [line.partition(",")[0] for line in lines]
    return [path for path in paths if path.endswith(".py") and path.startswith(package.package + "/")]


def _described(package: InstalledPackage, source: Questioner, seconds: float) -> str:
    (reply,) = source.ask([Ask("list", package.folder)], seconds)
    names = reply.value.get("names") if isinstance(reply.value, dict) else None
    for name in names if isinstance(names, list) else ():
        if str(name).startswith(package.package + "-") and str(name).rstrip("/").endswith(".dist-info"):
            return str(name).rstrip("/")
    return ""
