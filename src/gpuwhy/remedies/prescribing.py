"""A whole diagnosis with its remedies held against the facts, ordered, and written for the place that was examined."""

from __future__ import annotations

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.finding import Finding
from gpuwhy.remedies.applicability import applicable
from gpuwhy.remedies.circumstances import Circumstances, circumstances_of
from gpuwhy.remedies.ordering import order
from gpuwhy.remedies.setting import Setting, setting_of
from gpuwhy.remedies.writing import written_for


def prescribe(diagnosis: Diagnosis, setting: Setting | None = None) -> Diagnosis:
    """The diagnosis with every finding's applicable remedies in order, with exact commands, undo and checks.

    ``setting`` is where the service runs; by default what the diagnosis itself knows of it. What does not apply there
    joins the finding's ``not_remedies``, with its reason.
    """
    place = setting or setting_of(diagnosis)
    known = circumstances_of(diagnosis, place)
    return msgspec.structs.replace(diagnosis, findings=tuple(_prescribed(f, place, known) for f in diagnosis.findings))


def _prescribed(finding: Finding, setting: Setting, known: Circumstances) -> Finding:
    kept, dropped = applicable(finding.remedies, known)
    told = {each.what for each in finding.not_remedies}
    return msgspec.structs.replace(
        finding,
        remedies=tuple(written_for(remedy, setting) for remedy in order(kept)),
        not_remedies=(*finding.not_remedies, *(each for each in dropped if each.what not in told)),
    )
