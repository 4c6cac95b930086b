"""What a program can name: a place to examine, facts that it knows, and for how long to look."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from gpuwhy.api.errors import UnreachableError, UnusableError

if TYPE_CHECKING:
    from gpuwhy.model.fact import Facts
    from gpuwhy.snapshot import Probe
    from gpuwhy.targets import Target

TIMEOUT = 30.0
"""Seconds from the first connection to the last answer, after which what was found so far is the answer."""

PROBES = 8.0
"""Seconds that the probes of a diagnosis or a collection are given."""


class LogText:
    """A log that is in memory already, as a target: ``gpuwhy.diagnose(gpuwhy.LogText(text))``."""

    kind = "text"

    def __init__(self, text: str | bytes, name: str = "log") -> None:
        self.name = name
        self._content = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def stream(self) -> BinaryIO:
        return io.BytesIO(self._content)


Where: TypeAlias = "str | Path | LogText | Target"
"""WHERE as on the command line (a host, ``local``, ``docker:NAME``, a file), a path, a text, or a target."""

GivenFacts: TypeAlias = "str | Path | Mapping[str, Any] | Facts | None"
"""Facts given by hand: a YAML or JSON file, a mapping in the vocabulary of docs/facts.md, or facts."""

OnProbe: TypeAlias = "Callable[[Probe], None] | None"
"""Is told of each probe as it comes."""


def target_of(where: Where, *, via: str = "", sudo: bool = False) -> Target:
    """What WHERE means. ``via`` is the host of a container's engine, ``sudo`` reads with root's rights there."""
    from gpuwhy.targets import PathTarget, TargetError, parse_where

    if isinstance(where, Path):
        return PathTarget(where)
    if not isinstance(where, str):
        return where
    try:
        return parse_where(where, via=via, sudo=sudo)
    except TargetError as error:
        raise UnusableError(str(error)) from error


def facts_of(given: GivenFacts, on_warning: Callable[[str], None] | None = None) -> Facts:
    """Facts given by hand. ``on_warning`` hears of keys that nothing asks for."""
    from gpuwhy.model.fact import Facts
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.snapshot.given import given as from_mapping
    from gpuwhy.snapshot.given import read_given

    if given is None:
        return Facts()
    if isinstance(given, Facts):
        return given
    try:
        found = from_mapping(dict(given)) if isinstance(given, Mapping) else read_given(given)
    except SnapshotError as error:
        raise UnusableError(str(error)) from error
    if on_warning is not None:
        for warning in found.warnings:
            on_warning(warning)
    return found.facts


@contextmanager
def reached(where: Where, *, via: str = "", sudo: bool = False) -> Iterator[Target]:
    """What WHERE means, while it is examined: errors of a file are then unusable, those of a live place unreachable."""
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.targets import FileTarget, TargetError

    target = target_of(where, via=via, sudo=sudo)
    try:
        yield target
    except (UnreadableLog, SnapshotError) as error:
        raise UnusableError(str(error)) from error
    except TargetError as error:
        raise (UnusableError if isinstance(target, FileTarget) else UnreachableError)(str(error)) from error
