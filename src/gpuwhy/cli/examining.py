"""What commands have in common that need a diagnosis: of a live target, of a log or snapshot, or one that was saved as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpuwhy.cli.failing import fail, warn

if TYPE_CHECKING:
    from gpuwhy.cli.target_options import Reach
    from gpuwhy.model.diagnosis import Diagnosis


def diagnosed(where: str, unit: str, facts_file: str | None, deadline: float, reach: Reach) -> Diagnosis:
    """The diagnosis of WHERE with its remedies; ends the command when WHERE cannot be examined."""
    from gpuwhy import api
    from gpuwhy.cli.progress import shown_progress

    saved = saved_diagnosis(where)
    if saved is not None:
        return saved
    try:
        given = api.facts_of(facts_file, warn) if facts_file else None
        with shown_progress(where) as on_probe:
            return api.diagnose(
                where,
                unit=unit,
                facts=given,
                via=reach.via,
                sudo=reach.sudo,
                deadline=deadline,
                timeout=reach.timeout,
                on_probe=on_probe,
            )
    except api.GpuwhyError as error:
        fail(error)


def saved_diagnosis(where: str) -> Diagnosis | None:
    """The diagnosis that a file holds as JSON; None for everything else."""
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.reports.reading import UnreadableReportError, read_answer

    path = Path(where)
    try:
        if not path.is_file() or not _begins_as_document(path):
            return None
        answer = read_answer(path.read_bytes(), where)
    except (UnreadableReportError, OSError, ValueError):
        return None
    return answer if isinstance(answer, Diagnosis) else None


def _begins_as_document(path: Path) -> bool:
    """Every document of ours names its schema first: a log of JSON lines is not read twice for this."""
    with path.open("rb") as file:
        return b'"schema_version"' in file.read(64)
