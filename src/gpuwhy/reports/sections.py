"""What the short and the full report for a person have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Standing
from gpuwhy.model.finding import Certainty, Link, Missing
from gpuwhy.remedies import setting_of
from gpuwhy.reports.row import Row

MANY = 12
"""Rows of a list that are shown without -v."""


def section(title: str) -> Iterator[Row]:
    """A blank line and a heading."""
    yield Row("")
    yield Row(title, style="heading")


def subject_of(diagnosis: Diagnosis) -> str:
    """The unit and where it runs, or the file that was read. A process without a unit has no name but its command."""
    unit = diagnosis.incident.unit
    if unit.startswith("process/"):
        return diagnosis.where
    return f"{unit} on {diagnosis.where}" if unit and unit not in diagnosis.where else diagnosis.where


def typed_where(diagnosis: Diagnosis) -> str:
    """Where the commands are to be typed, when that is not plainly this shell."""
    setting = setting_of(diagnosis)
    is_for_root = setting.kind == "systemd" and not setting.is_user_unit
    parts = [f"on {setting.host}" if setting.host else "", "as root" if is_for_root else ""]
    return ", ".join(part for part in parts if part)


def to_find_out_first(diagnosis: Diagnosis) -> Missing | None:
    """The fact to get before any remedy is tried: of a mere possibility, where not one remedy is sure to help."""
    decides = diagnosis.decides
    if not diagnosis.findings or decides is None or not decides.command:
        return None
    first = diagnosis.findings[0]
    is_open = first.certainty is Certainty.POSSIBLE and decides.key in [each.key for each in first.missing]
    return decides if is_open and bool(first.remedies) and not first.remedies[0].is_sure else None


def find_out(missing: Missing) -> str:
    """As something to do: ``find out kernel_log: which process the kernel killed, if it did``."""
    return f"find out {missing.key}" + (f": {missing.why}" if missing.why else "")


_BEGUN = re.compile(r"(?:the|a|an|no|it|its|this|one|some|all) ")


def begun(statement: str) -> str:
    """A statement as a line of its own begins: a word of ours with a capital, a name of a program as it is written."""
    return statement[0].upper() + statement[1:] if _BEGUN.match(statement) else statement


def begun_act(act: str) -> str:
    """Something to do, as a line of its own begins."""
    return act[:1].upper() + act[1:]


def marks_of(link: Link) -> str:
    """``  [swallowed, inferred]``: what a reader should know of the link itself."""
    marks = []
    if link.is_swallowed:
        marks.append("swallowed")
    if link.evidence is None or link.evidence.standing is Standing.INFERRED:
        marks.append("inferred")
    return f"  [{', '.join(marks)}]" if marks else ""
