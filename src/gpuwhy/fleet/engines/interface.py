"""What every engine does: start one shell line with one standard input on these nodes, and hand back what each said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class FleetError(Exception):
    """A fleet cannot be collected at all. The message says what happened; ``advice`` what a person can do about it."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n{self.advice}" if self.advice else self.message


class Payload(msgspec.Struct, frozen=True):
    """What is run: a line for ``sh`` and its standard input; ``limit`` is in seconds, after which a node is given up.

    The program on the node ends by itself before that: engines stop waiting, but not what they started.
    """

    line: str
    stdin: bytes
    limit: float


class Pace(msgspec.Struct, frozen=True):
    """How many nodes are asked at the same time, and how many at most are begun in a second (0: as many as there are)."""

    concurrency: int = 64
    rate: float = 0.0


class Ended(msgspec.Struct, frozen=True):
    """A node that is done with: all that it wrote to standard output, and of what kept it from that, status and reason.

    ``status`` is one of :data:`gpuwhy.fleet.store.STATUSES`, ``ok`` where the engine has nothing to object.
    """

    node: str
    output: bytes
    status: str = "ok"
    reason: str = ""


class Watcher(Protocol):
    """Hears of every node exactly once that it is begun (if it is) and that it has ended, from one thread."""

    def started(self, node: str) -> None: ...

    def ended(self, ended: Ended) -> None: ...


class Engine(Protocol):
    """``name`` stands in the index."""

    @property
    def name(self) -> str: ...

    def nodes(self) -> Sequence[str]:
        """The nodes that were asked for, each once. Raises FleetError."""

    def run(self, nodes: Sequence[str], payload: Payload, pace: Pace, watcher: Watcher) -> None:
        """Runs the payload on ``nodes``; returns when all have ended. Raises FleetError when the engine itself fails."""
