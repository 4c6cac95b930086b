"""Findings: a cause established here, how sure, by which evidence, and the chain from the symptom to the cause."""

from __future__ import annotations

import enum

import msgspec

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.memory_use import MemoryUse
from gpuwhy.model.remedy import NotARemedy, Remedy


class Certainty(str, enum.Enum):
    """How sure a finding is; see DESIGN "Certainty is earned"."""

    PROVEN = "proven"
    """The log or a check on the target shows the mechanism itself, and nothing contradicts it."""
    LIKELY = "likely"
    """The signs fit and the facts agree, one link is inferred."""
    POSSIBLE = "possible"
    """The signs fit, the deciding fact is unknown."""

    @property
    def order(self) -> int:
        """0 for the surest."""
        return ("proven", "likely", "possible").index(self.value)


class SourceCheck(msgspec.Struct, frozen=True):
    """Where the installed source would show a link: a file of the target, and the text that one of its lines holds."""

    path: str
    text: str


class Link(msgspec.Struct, frozen=True):
    """One link of a chain, cause first, symptom last. ``is_swallowed``: the program hid this step from its user.

    ``source`` lets the investigation look the link up in the installed source, where it can reach that; what it finds
    there is ``installed``: the line of the program that does what the link says.
    """

    statement: str
    evidence: Evidence | None = None
    is_swallowed: bool = False
    source: SourceCheck | None = None
    installed: Evidence | None = None


class Missing(msgspec.Struct, frozen=True):
    """A fact that would settle the question: its key in the ``--facts`` vocabulary and the command that gets it."""

    key: str
    command: str
    why: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a cause says of a case when its signs fit.

    ``component`` is the part that a fix must name. ``chain`` runs from the cause to the symptom. ``explains`` holds
    the ids of the events this cause accounts for. ``rivals`` are ids of causes that the same signs allow as long as
    ``missing`` is unknown. ``strength`` orders verdicts of equal certainty: 0..100, how specific the signs are
    (50: an ordinary sign of this cause alone; below: shared with others; above: names this cause literally).
    """

    certainty: Certainty
    component: str | None
    title: str
    chain: tuple[Link, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    explains: tuple[int, ...] = ()
    missing: tuple[Missing, ...] = ()
    rivals: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    not_remedies: tuple[NotARemedy, ...] = ()
    notes: tuple[str, ...] = ()
    strength: int = 50
    memory: tuple[MemoryUse, ...] = ()


class RuledOut(msgspec.Struct, frozen=True):
    """A cause whose signs fit and whose facts do not: why not, by which evidence."""

    why: str
    evidence: tuple[Evidence, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with the id of its cause, its remedies ordered and written for the target, its place among the others."""

    cause: str
    family: str
    component: str | None
    certainty: Certainty
    title: str
    chain: tuple[Link, ...]
    evidence: tuple[Evidence, ...]
    against: tuple[Evidence, ...] = ()
    explains: tuple[int, ...] = ()
    missing: tuple[Missing, ...] = ()
    rivals: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    not_remedies: tuple[NotARemedy, ...] = ()
    notes: tuple[str, ...] = ()
    strength: int = 50
    memory: tuple[MemoryUse, ...] = ()
    """Where memory ran out: where it went, of one GPU or of the host."""
    consequence_of: str = ""
    """The id of the finding that this one follows from, "" when it stands for itself."""
    is_independent: bool = False
    """Another problem beside the first finding's: it explains other events, and neither follows from the other."""


class Excluded(msgspec.Struct, frozen=True):
    """A cause that was considered and ruled out."""

    cause: str
    why: str
    evidence: tuple[Evidence, ...] = ()
