"""Which files of a target may have written the lines of a log: found by the words of the lines, before any file is here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpuwhy.investigate.tracing_package import RemotePackage
from gpuwhy.model.event import Log
from gpuwhy.source import Root
from gpuwhy.source.texts import stated_place

_WORD = re.compile(r"(?<![\w./-])[A-Za-z_]{6,40}(?![\w./-])")
_MOST_LINES = 300
_WORDS_OF_A_LINE = 3
_MOST_WORDS = 160


def want_writers(packages: Mapping[str, Root], log: Log) -> None:
    """Search the packages for the longest words of each line, and want the files that the lines name.

    A text of the source that holds none of the longest words of its line is missed.
    """
    lines = {line.text: line for line in log.lines}
    chosen = list(lines.values())[:_MOST_LINES]
    words: dict[str, None] = {}
    for line in chosen:
        found = sorted(dict.fromkeys(_WORD.findall(line.text[:600])), key=len, reverse=True)
        words.update(dict.fromkeys(found[:_WORDS_OF_A_LINE]))
    stated = {stated_place(line).rpartition(":")[0] for line in chosen} - {""}
    for package in packages.values():
        if not isinstance(package, RemotePackage) or not package.is_opened:
            continue
        for word in list(words)[:_MOST_WORDS]:
            package.search((word,))
        _want(package, stated)


def _want(package: RemotePackage, stated: Iterable[str]) -> None:
    for name in stated:
        matching = [path for path in package.listed if path == name or path.endswith("/" + name)]
        for path in matching if len(matching) <= 6 else ():
            package.knows(path)
