"""What a target is: a name for people, and either bytes that were written down or a connection to a live place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Protocol, runtime_checkable

import msgspec


class TargetError(Exception):
    """A target cannot be reached or read. The message says what happened; ``advice`` what a person can do about it."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n{self.advice}" if self.advice else self.message


class Query(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a ``search``: files that hold all ``words``, and in which ``pattern`` (a regular expression over bytes) is found.
    Where more than ``most`` do, they are only counted."""

    words: tuple[str, ...] = ()
    pattern: str = ""
    most: int = 80


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to a live target after the collection.

    ``ask`` is ``read`` (lines ``first`` to ``last`` of a text file, from 1, inclusive), ``bytes`` (``length`` bytes
    from ``offset``), ``list`` (the names in a folder), ``stat``, ``inspect`` (what a binary, or each of a folder, has code
    for and needs), ``loading`` (what would come of loading a library as the service would), ``waiting`` (what a
    process waits for, given as ``/proc/PID``), and ``search`` (which Python files of a package answer ``queries``).
    """

    ask: str
    path: str
    first: int | None = None
    last: int | None = None
    offset: int | None = None
    length: int | None = None
    queries: tuple[Query, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an :class:`Ask`; ``status`` and ``reason`` as probes have them."""

    status: str
    reason: str = ""
    value: Any = None


class Connection(Protocol):
    """A live target with the collector running on it: one process, one connection, from ``open`` to ``close``."""

    def collect(
        self, request: Mapping[str, Any], on_result: Callable[[dict[str, Any]], None], deadline: float
    ) -> dict[str, Any]:
        """Run the probes. ``on_result`` is given each result as it comes; returns what the program says at its end.

        Returns an empty mapping when the connection was lost or the deadline (seconds) passed on the way: what
        ``on_result`` was given until then stays true. Raises TargetError when nothing came at all.
        """
        ...

    def ask(self, asks: Iterable[Ask], deadline: float = 10.0) -> list[Reply]:
        """Answers to further requests, in their order. A lost connection gives ``failed`` replies, never an error."""
        ...

    def close(self) -> None:
        """End the collector. Safe to call twice."""
        ...


@runtime_checkable
class Target(Protocol):
    """Where to look. ``name`` is what the user called it, ``kind`` one of local, ssh, docker, podman, file, stdin."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...


@runtime_checkable
class HostTarget(Target, Protocol):
    """A place that runs and can be asked."""

    def open(self, program: str) -> Connection:
        """Start ``program`` (Python source) there. Raises TargetError."""
        ...


@runtime_checkable
class FileTarget(Target, Protocol):
    """Something written down: a log, a report, a snapshot."""

    def stream(self) -> BinaryIO:
        """Its bytes, to be read once. Raises TargetError; reading it can raise OSError."""
        ...
