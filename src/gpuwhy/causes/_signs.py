"""Signs: what a cause declares it can be recognised by.

A sign has literals for the prefilter (one Aho-Corasick pass over the log looks for the literals of all causes at
once) and a regular expression that decides. Upper and lower case do not matter to either.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Sign(msgspec.Struct, frozen=True):
    """One declared sign.

    ``name`` is unique within its cause. At least one of ``literals`` must occur in a line before ``pattern`` is
    tried on it; ``pattern`` empty means that the literal alone decides. The pattern sees the line without logger
    prefixes, and once more joined with the lines that follow it, because pastes wrap long messages.
    ``kinds`` limits the sign to lines of events of these kinds (empty: any line). ``is_prose`` marks the words of a
    person who reports: a log too large to be read whole is not searched for them.
    """

    name: str
    literals: tuple[str, ...]
    pattern: str = ""
    kinds: tuple[str, ...] = ()
    is_prose: bool = False


def says(name: str, literals: str | Sequence[str], pattern: str = "") -> Sign:
    """A line that says this, wherever it stands."""
    return Sign(name, _tuple(literals), pattern)


def told(name: str, literals: str | Sequence[str], pattern: str = "") -> Sign:
    """What a person says of it, in ordinary words."""
    return Sign(name, _tuple(literals), pattern, (), True)


def raised(name: str, literals: str | Sequence[str], pattern: str = "") -> Sign:
    """An exception, a native crash or a line of one, with this message."""
    return Sign(name, _tuple(literals), pattern, ("exception", "crash", "build", "death"))


def kernel(name: str, literals: str | Sequence[str], pattern: str = "") -> Sign:
    """A message of the kernel."""
    return Sign(name, _tuple(literals), pattern, ("kernel",))


def _tuple(literals: str | Sequence[str]) -> tuple[str, ...]:
    return (literals,) if isinstance(literals, str) else tuple(literals)
