"""How the interpretation leaves a piece of code: an exception of the code itself, a jump, or an end for want of knowledge."""

from __future__ import annotations

from typing import Any

from gpuwhy.source.replay.outcome import Place


class StopReplayError(Exception):
    """The replay ends here. No handler of the replayed code sees it. ``place`` is filled in on the way out."""

    place: Place | None = None


class NeedsFactError(StopReplayError):
    """``key`` is not among the facts; ``command`` gets it, where one does."""

    def __init__(self, key: str, command: str = "") -> None:
        super().__init__(key)
        self.key = key
        self.command = command


class NotModelledError(StopReplayError):
    """What would happen is not known."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class ReplayedError(Exception):
    """An exception of the replayed code. ``value`` is Python's own exception, or an instance of a replayed class.

    ``shared`` names a changeable value of a module that the code read on its way there.
    """

    def __init__(self, value: Any, place: Place, stack: tuple[Place, ...], shared: str = "") -> None:
        super().__init__()
        self.value = value
        self.place = place
        self.stack = stack
        self.shared = shared


class Jump(Exception):  # noqa: N818
    """``return``, ``break`` or ``continue`` on its way to where it leads."""


class ReturnJump(Jump):
    """``return`` on its way to the call."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class BreakJump(Jump):
    """``break`` on its way to the loop."""


class ContinueJump(Jump):
    """``continue`` on its way to the loop."""
