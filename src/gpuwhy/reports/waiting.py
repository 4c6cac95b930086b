"""What a live process waits for, as rows of the report: the first line says it, the lines that show it follow."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.hang import Waiting
from gpuwhy.reports.row import Row

SHOWN_FRAMES = 14

_STATES = {
    "stuck": "It is stuck",
    "progressing": "It is not stuck: it gets on",
    "idle": "It is not stuck: it has nothing to do",
    "unclear": "Whether it is stuck, one look does not tell",
}


def waiting_rows(diagnosis: Diagnosis, waiting: Waiting, subject: str) -> Iterator[Row]:
    """The answer, what it amounts to, and what was seen."""
    yield Row(f"{subject}: {waiting.headline}", style="answer")
    if diagnosis.findings:
        rest = "the cause is below" if waiting.state == "stuck" else "what was found beside that is below"
        said = f"{_STATES.get(waiting.state, waiting.state)}; {rest}."
    elif waiting.state == "stuck":
        said = f"{_STATES['stuck']}. Why is not in the catalogue; what was seen is below."
    else:
        said = f"{_STATES.get(waiting.state, waiting.state)}."
    yield Row(said, style="possible" if waiting.state in ("stuck", "unclear") else "")
    if waiting.evidence:
        yield Row("")
        yield Row("What was seen", style="heading")
        for evidence in waiting.evidence:
            yield Row(f"- {evidence.statement}", 2, hang=2)
            place = f"{evidence.place}: " if evidence.place is not None else ""
            yield Row(f"{place}{evidence.quote[:400]}", 4, "quote", 2)
    for remark in waiting.remarks:
        yield Row(remark, 2, "note", 2)
    if diagnosis.findings:
        yield from stack_rows(waiting)
        yield Row("")


def stack_rows(waiting: Waiting) -> Iterator[Row]:
    """The Python stack of the thread that waits, innermost first."""
    if not waiting.stack:
        return
    yield Row("")
    yield Row(f"Where its Python code stands (process {waiting.pid}, the innermost call first)", style="heading")
    for frame in waiting.stack[:SHOWN_FRAMES]:
        yield Row(frame[:300], 2, "quote", 2)
    if len(waiting.stack) > SHOWN_FRAMES:
        yield Row(f"and {len(waiting.stack) - SHOWN_FRAMES} more", 2)
