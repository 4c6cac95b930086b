"""A whole diagnosis with its remedies held against the facts, ordered, and written for the place that was examined."""

from __future__ import annotations

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.finding import Finding
from gpuwhy.model.incident import Incident
from gpuwhy.remedies.applicability import applicable
from gpuwhy.remedies.circumstances import Circumstances, circumstances_of
from gpuwhy.remedies.ordering import order
from gpuwhy.remedies.proving import started_again
from gpuwhy.remedies.setting import Setting, setting_of
from gpuwhy.remedies.writing import written_for


def prescribe(diagnosis: Diagnosis, setting: Setting | None = None) -> Diagnosis:
    """The diagnosis with every finding's applicable remedies in order, with exact commands, undo and checks.

    ``setting`` is where the service runs; by default what the diagnosis itself knows of it. What does not apply there
    joins the finding's ``not_remedies``, with its reason.
    """
    place = setting or setting_of(diagnosis)
    known = circumstances_of(diagnosis, place)
    return msgspec.structs.replace(
        diagnosis, findings=tuple(_prescribed(f, place, known, diagnosis.incident) for f in diagnosis.findings)
    )


def _prescribed(finding: Finding, setting: Setting, known: Circumstances, incident: Incident) -> Finding:
    kept, dropped = applicable(finding.remedies, known)
    told = {each.what for each in finding.not_remedies}
    written = [written_for(remedy, setting) for remedy in order(kept)]
    proof = started_again(finding, incident, setting)
    return msgspec.structs.replace(
        finding,
        remedies=tuple(each if each.check else msgspec.structs.replace(each, check=proof) for each in written),
        not_remedies=(*finding.not_remedies, *(each for each in dropped if each.what not in told)),
    )
