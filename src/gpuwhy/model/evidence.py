"""Evidence: what was seen, quoted, and where it stands, so that a reader can check it in seconds."""

from __future__ import annotations

import enum

import msgspec


class Standing(str, enum.Enum):
    """How a statement came to be known."""

    OBSERVED = "observed"
    """Seen in a log, on the host, or in a binary; the quote is what was seen."""
    GIVEN = "given"
    """Stated by the user (``--facts``)."""
    DERIVED = "derived"
    """Follows from other facts and measured compatibility data."""
    INFERRED = "inferred"
    """A link nobody saw; it is the usual mechanism, and could be otherwise here."""


class Place(msgspec.Struct, frozen=True):
    """Where a piece of evidence stands.

    ``source`` is the kind of place (``log``, ``journal``, ``kernel log``, ``command``, ``file``, ``binary``, ``facts``,
    ``knowledge``), ``path`` names it (file, unit, command line, fact key), ``line`` counts from 1. In a binary the quote
    names section and offset.
    """

    source: str
    path: str = ""
    line: int | None = None
    time: str | None = None

    def __str__(self) -> str:
        where = self.path or self.source
        if self.line is not None:
            where = f"{where}:{self.line}"
        return where


class Evidence(msgspec.Struct, frozen=True):
    """One statement with the text that shows it.

    ``statement`` is a short sentence in our words; ``quote`` the exact text (already free of prefixes, never of
    meaning); ``place`` where it stands. Evidence without a place must be ``INFERRED`` or ``DERIVED``.
    """

    statement: str
    quote: str = ""
    place: Place | None = None
    standing: Standing = Standing.OBSERVED
