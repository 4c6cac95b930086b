"""An inspection of binaries as a page: the architectures against the GPU as a table, then each file in words."""

from __future__ import annotations

from gpuwhy.model.inspection import Inspection
from gpuwhy.reports import binaries
from gpuwhy.reports.counting import counted
from gpuwhy.reports.html.architectures import matrix_of
from gpuwhy.reports.html.page import written

_STYLES = {binaries.GOOD: "good", binaries.BAD: "bad", binaries.UNSURE: "warn", binaries.HEADING: "heading", binaries.NOTE: "note"}  # fmt: skip
MOST_LINES = 2_000


def render(inspection: Inspection) -> str:
    """The page."""
    failing = sum(file.verdict is not None and file.verdict.runs is False for file in inspection.files)
    number = len(inspection.files)
    said = f"{counted(number, 'file')} read"
    if failing:
        headline, level = f"{failing} of {counted(number, 'file')} cannot run on this GPU", "proven"
    else:
        headline, level = said, "fine" if inspection.compute_capability else "unknown"
    where = ", ".join(filter(None, (inspection.gpu, inspection.compute_capability and f"compute capability {inspection.compute_capability}", inspection.driver and f"driver {inspection.driver}")))  # fmt: skip
    matrix = matrix_of(inspection)
    lines = [(line, _STYLES.get(style, "")) for line, style in binaries.lines(inspection, verbose=True)]
    sections = (*((("binaries", "Binaries and GPUs"),) if matrix is not None else ()), ("report", "The files"))
    return written(
        "lines.html.jinja",
        subject=", ".join(file.path for file in inspection.files[:3]) or "no file",
        kind="inspection of binaries",
        headline=headline,
        level=level,
        remark=f"For {where}." if where else "No GPU was named: no verdict.",
        matrix=matrix,
        title="The files",
        lines=lines[:MOST_LINES],
        left_out=max(0, len(lines) - MOST_LINES),
        sections=sections,
    )
