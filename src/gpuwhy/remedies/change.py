"""A change written out, and the places that can be changed: one module per kind of place."""

from __future__ import annotations

from typing import Protocol

import msgspec


class DropIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A drop-in file of a systemd unit, of ours: what the command lines of its change write.

    ``lines`` stand under ``[Service]`` in ``NAME.conf``; ``values``, where it is not empty, is the line of ``NAME.env``
    beside it, which ``lines`` name.
    """

    name: str
    lines: tuple[str, ...]
    values: str = ""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """Command lines for a POSIX shell that make a change, take it back, and show that it took effect.

    ``commands`` empty: this place gives no exact way; ``limits`` then says what to do by hand. A line that starts
    with ``#`` is an instruction to a person, never an effect. ``drop_in``: the same change as a file, where it is one.
    """

    commands: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    drop_in: DropIn | None = None


class ServicePlace(Protocol):
    """A place where a service is started, and how it is told to start differently."""

    def set_variable(self, name: str, value: str) -> Change:
        """Start the service with the environment variable ``name`` set to ``value``."""

    def unset_variable(self, name: str) -> Change:
        """Start the service without the environment variable ``name``."""

    def set_option(self, option: str, value: str) -> Change:
        """Start the service with a command-line option; ``value`` is empty for an option that takes none."""

    def remove_option(self, option: str) -> Change:
        """Start the service without a command-line option."""

    def restart(self) -> tuple[str, ...]:
        """Start the service again, for a change that was made elsewhere (a package, a cache)."""

    def inside(self, command: str) -> str:
        """``command`` run where the service runs, with the service's own environment."""
