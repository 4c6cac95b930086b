"""What a replay says: how the call ended, and the trail that led there."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A line of the replayed source. ``function`` is ``<module>`` at module level."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Returned(msgspec.Struct, frozen=True, tag_field="kind", tag="returned"):
    """The call came to its end; ``value`` is the ``repr`` of what it gave."""

    value: str


class Raised(msgspec.Struct, frozen=True, tag_field="kind", tag="raised"):
    """An exception left the call. ``place`` is where it arose, ``stack`` the calls from the entry to there."""

    type: str
    message: str
    place: Place
    stack: tuple[Place, ...] = ()


class NeedsFact(msgspec.Struct, frozen=True, tag_field="kind", tag="needs_fact"):
    """The outside was asked and no fact answers: the fact's key (see ``docs/replay.md``), and what gets it if known."""

    key: str
    place: Place
    command: str = ""


class NotModelled(msgspec.Struct, frozen=True, tag_field="kind", tag="not_modelled"):
    """The replay does not know what Python or a library would do here, or a bound was reached."""

    what: str
    place: Place


Outcome: TypeAlias = Returned | Raised | NeedsFact | NotModelled


class FactUsed(msgspec.Struct, frozen=True, tag_field="kind", tag="fact"):
    """The outside was asked ``what`` and the fact ``key`` answered."""

    what: str
    key: str
    value: str
    place: Place


class Caught(msgspec.Struct, frozen=True, tag_field="kind", tag="caught"):
    """A handler at ``place`` caught what arose at ``raised_at``."""

    type: str
    message: str
    raised_at: Place
    place: Place


class LogLine(msgspec.Struct, frozen=True, tag_field="kind", tag="log"):
    """A line that is logged, whether or not the process shows that level.

    ``level`` is a name of :mod:`logging` in lower case; ``warn`` is :func:`warnings.warn`, ``print`` is :func:`print`.
    """

    level: str
    logger: str
    message: str
    place: Place


class Branch(msgspec.Struct, frozen=True, tag_field="kind", tag="branch"):
    """A condition and how it came out; the first time of each."""

    condition: str
    taken: bool
    place: Place


class SharedValue(msgspec.Struct, frozen=True):
    """A value at the top of a module that the outcome rests on: ``name`` in the file ``path``. Of an object, the class ``owner``
    in ``owner_path`` and its ``attributes``. ``containers`` are those of these names whose value can be changed in place."""

    module: str
    path: str
    name: str
    owner_path: str = ""
    owner: str = ""
    attributes: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that would have to be written to change it."""
        return (self.name, *self.attributes)


class Assumed(msgspec.Struct, frozen=True, tag_field="kind", tag="assumed"):
    """What the outcome rests on without a fact: a write that succeeds, or module-level code that was passed over. ``key`` is
    the fact that would take its place, empty where none would; ``shared`` the value that nothing else must have changed."""

    what: str
    place: Place
    key: str = ""
    shared: SharedValue | None = None


Step: TypeAlias = FactUsed | Caught | LogLine | Branch | Assumed


class Replay(msgspec.Struct, frozen=True):
    """``modules`` are those whose code was interpreted, in the order in which they were needed.

    ``trail_cut`` is true when the trail is longer than what is kept of it.
    """

    entry: str
    outcome: Outcome
    trail: tuple[Step, ...] = ()
    modules: tuple[str, ...] = ()
    steps: int = 0
    trail_cut: bool = False

    def facts_used(self) -> tuple[FactUsed, ...]:
        """Each fact on which the outcome rests, as it was used."""
        return tuple(step for step in self.trail if isinstance(step, FactUsed))

    def caught(self) -> tuple[Caught, ...]:
        """Exceptions that a handler took, in order."""
        return tuple(step for step in self.trail if isinstance(step, Caught))

    def log_lines(self) -> tuple[LogLine, ...]:
        """What would be logged, in order."""
        return tuple(step for step in self.trail if isinstance(step, LogLine))

    def assumed(self) -> tuple[Assumed, ...]:
        """What was taken for granted."""
        return tuple(step for step in self.trail if isinstance(step, Assumed))
