"""What commands have in common that need a diagnosis: of a live target, of a log or snapshot, or one that was saved as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import unusable

if TYPE_CHECKING:
    from gpuwhy.cli.target_options import Reach
    from gpuwhy.model.diagnosis import Diagnosis


def diagnosed(where: str, unit: str, facts_file: str | None, deadline: float, reach: Reach) -> Diagnosis:
    """The diagnosis of WHERE with its remedies; ends the command when WHERE cannot be examined."""
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.investigate import investigate
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.remedies import prescribe
    from gpuwhy.snapshot import SnapshotError, read_given
    from gpuwhy.targets import TargetError

    saved = saved_diagnosis(where)
    if saved is not None:
        return saved
    try:
        given = read_given(facts_file) if facts_file else None
        for warning in given.warnings if given else ():
            click.echo(f"gpuwhy: {warning}", err=True)
        target = reach.target(where)
        with shown_progress(target.name) as on_probe:
            facts = given.facts if given else None
            found = investigate(
                target, unit=unit, facts=facts, on_probe=on_probe, deadline=deadline, timeout=reach.timeout
            )
    except (UnreadableLog, SnapshotError) as error:
        unusable(str(error))
    except TargetError as error:
        reach.fail(where, error)
    return prescribe(found)


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
