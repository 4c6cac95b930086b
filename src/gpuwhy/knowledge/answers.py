"""The form of an answer: a value that may be unknown, the reason in words, and where the knowledge comes from."""

from __future__ import annotations

from msgspec import Struct


class Answer(Struct, frozen=True):
    """Yes, no or unknown.

    `value` is None when nothing measured or documented decides the question; it is never a guess. `why` is one
    sentence for a reader. `provenance` starts with "measured:" (a program of this project does it again),
    "measured once:" (by hand), "documented:" or "derived:", or is "unchecked".
    """

    value: bool | None
    why: str
    provenance: str


class NumberAnswer(Struct, frozen=True):
    """A number, for example the newest gcc that a toolkit accepts, or None if unknown."""

    value: int | None
    why: str
    provenance: str


class TextAnswer(Struct, frozen=True):
    """A text, for example a PTX version, or None if unknown."""

    value: str | None
    why: str
    provenance: str


NO_SOURCE = "unchecked"


def unknown(why: str, provenance: str = NO_SOURCE) -> Answer:
    """The answer when nothing decides."""
    return Answer(value=None, why=why, provenance=provenance)
