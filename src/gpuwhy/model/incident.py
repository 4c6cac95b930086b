"""Incidents: the events of one life of a service, from its start to its death."""

from __future__ import annotations

import msgspec

from gpuwhy.model.event import Event, Log


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """One life of a service.

    ``primary`` is the id of the first fatal event that is not an echo, or of the warning before it that says why (its
    ``detail`` then tells what it ``surfaced_as``); None when nothing fatal was recognised.
    ``before`` holds events of the time before this life that belong to the story (an OOM kill of another service).
    """

    logs: tuple[Log, ...]
    events: tuple[Event, ...]
    primary: int | None = None
    before: tuple[int, ...] = ()
    unit: str = ""
    lives: int = 1
    """How many lives of the service the logs show; this one is the last complete one."""
    started: float | None = None
    ended: float | None = None
    engine: str = ""
    """``sglang``, ``vllm``, ``llama.cpp`` ... as far as the log tells."""
    is_failure: bool = True
    """False when the logs show no failure at all."""

    def event(self, identity: int) -> Event:
        """The event with that id. Raises KeyError."""
        for event in self.events:
            if event.id == identity:
                return event
        raise KeyError(identity)

    @property
    def primary_event(self) -> Event | None:
        return None if self.primary is None else self.event(self.primary)
