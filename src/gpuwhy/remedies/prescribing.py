"""A whole diagnosis with its remedies ordered and written for the place that was examined."""

from __future__ import annotations

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.finding import Finding
from gpuwhy.remedies.ordering import order
from gpuwhy.remedies.setting import Setting, setting_of
from gpuwhy.remedies.writing import written_for


def prescribe(diagnosis: Diagnosis, setting: Setting | None = None) -> Diagnosis:
    """The diagnosis with every finding's remedies in order, with exact commands, undo and checks.

    ``setting`` is where the service runs; by default what the diagnosis itself knows of it.
    """
    place = setting or setting_of(diagnosis)
    return msgspec.structs.replace(diagnosis, findings=tuple(_prescribed(f, place) for f in diagnosis.findings))


def _prescribed(finding: Finding, setting: Setting) -> Finding:
    return msgspec.structs.replace(
        finding, remedies=tuple(written_for(remedy, setting) for remedy in order(finding.remedies))
    )
