"""From a log and the packages that are there to the place of each line, and to whether log and release fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from gpuwhy.logs import open_log
from gpuwhy.model.event import Log
from gpuwhy.source.cache import Cache
from gpuwhy.source.roots import Root
from gpuwhy.source.texts import Catalogue, PackageTexts, Written
from gpuwhy.source.texts_fit import Fit, fit
from gpuwhy.source.tracing import FOLLOWED

_MOST_PACKAGES = 12
_IN_FRAME = re.compile(r"(?:site|dist)-packages/([A-Za-z_]\w{0,80})[/.]")


class SearchedTexts(msgspec.Struct, frozen=True):
    """A package whose texts were looked for, and how many patterns it has."""

    name: str
    version: str
    patterns: int


class LogPlaces(msgspec.Struct, frozen=True):
    """The lines of a log with their places, in order; ``fits`` as far as lines name their place."""

    log: str
    lines: tuple[Written, ...]
    fits: tuple[Fit, ...]
    packages: tuple[SearchedTexts, ...]


def places_in(
    path: Path, roots: Mapping[str, Root], follow: Iterable[str] = (), cache: Cache | None = None
) -> LogPlaces:
    """Where each line of the log at ``path`` was written. Raises OSError and :class:`gpuwhy.logs.UnreadableLog`."""
    return places_of(open_log(path), roots, follow, cache)


def places_of(log: Log, roots: Mapping[str, Root], follow: Iterable[str] = (), cache: Cache | None = None) -> LogPlaces:
    """Searched are the packages that serve models, those of the log's frames, and those of ``follow``."""
    texts = [PackageTexts(roots[name], cache) for name in _chosen(log, roots, follow)]
    catalogue = Catalogue(texts)
    lines = tuple(catalogue.read(log.lines))
    searched = tuple(
        SearchedTexts(
            each.root.package, each.root.version, sum(len(text.choices) for file in each.files for text in file.texts)
        )
        for each in texts
    )
    return LogPlaces(log.name, lines, fit(texts, lines), searched)


def _chosen(log: Log, roots: Mapping[str, Root], follow: Iterable[str]) -> list[str]:
    named = dict.fromkeys(follow)
    for line in log.lines:
        named.update(dict.fromkeys(_IN_FRAME.findall(line.text[:600])))
    named.update(dict.fromkeys(sorted(FOLLOWED)))
    there = [name for name in named if name in roots]
    return (there or list(roots))[:_MOST_PACKAGES]
