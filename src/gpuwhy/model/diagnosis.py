"""A diagnosis: the ranked findings of an incident, what was ruled out, and what would settle the rest."""

from __future__ import annotations

import msgspec

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact
from gpuwhy.model.finding import Excluded, Finding, Missing
from gpuwhy.model.hang import Waiting
from gpuwhy.model.incident import Incident
from gpuwhy.model.investigation import Investigation
from gpuwhy.model.source import SourceAnswer


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. ``findings`` ranked, the first is the answer; empty when nothing in the catalogue fits.

    ``unrecognised`` describes the primary event in that case. ``decides`` is the one observation that would settle
    most. ``outside`` names a platform that the catalogue does not cover (ROCm, XPU, Ascend, Metal).
    """

    where: str
    incident: Incident
    findings: tuple[Finding, ...]
    ruled_out: tuple[Excluded, ...] = ()
    decides: Missing | None = None
    to_go_on: tuple[Missing, ...] = ()
    """Without findings: what to find out next, the most telling first."""
    facts: tuple[Fact, ...] = ()
    investigation: Investigation = Investigation()
    before: tuple[Evidence, ...] = ()
    """What came before this incident and is not its cause (an OOM kill of another service)."""
    notes: tuple[str, ...] = ()
    outside: str = ""
    source: SourceAnswer | None = None
    """What the installed source says of the primary exception, where it can be reached."""
    waiting: Waiting | None = None
    """What the process waits for, where one that lives was looked at."""
    is_examined: bool = True
    """False when the target could not be examined far enough to say anything."""
