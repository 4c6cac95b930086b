"""What ``check`` and ``diagnose`` say of one node: the same functions as the commands, on the node's snapshot."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpuwhy.model.fleet import FleetFinding


class Judged(msgspec.Struct, frozen=True):
    """``findings`` are free of doubles, those of ``diagnose`` first; ``fault`` says why it could not be judged."""

    findings: tuple[FleetFinding, ...] = ()
    is_failure: bool = False
    fault: str = ""


def judged(path: Path) -> Judged:
    """The findings of the snapshot in ``path``. A fault in one of the two leaves what the other says."""
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.snapshot import SnapshotError
    from gpuwhy.targets import TargetError

    try:
        found, is_failure = _diagnosed(path)
        return Judged(_each_once([*found, *_forecast(path)]), is_failure)
    except (SnapshotError, TargetError, UnreadableLog) as error:
        return Judged(fault=str(error))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        # a snapshot that was edited by hand must not stop the other 4,999
        return Judged(fault=f"it could not be judged: {type(error).__name__}: {error}"[:300])


def _diagnosed(path: Path) -> tuple[list[FleetFinding], bool]:
    from gpuwhy.investigate import investigate
    from gpuwhy.remedies import prescribe
    from gpuwhy.reports.remedy_words import change_of
    from gpuwhy.targets import PathTarget

    diagnosis = prescribe(investigate(PathTarget(str(path))))
    found = [
        FleetFinding("diagnose", each.cause, each.certainty.value, each.title, each.component or "", change_of(each.remedies[0]) if each.remedies else "")
        for each in diagnosis.findings
        if not each.consequence_of
    ]  # fmt: skip
    primary = diagnosis.incident.primary_event
    if primary is not None and not found:
        first = primary.text.partition("\n")[0][:300]
        found = [FleetFinding("diagnose", "unrecognised", "possible", f"a failure that no cause explains: {first}")]
    return found, primary is not None or bool(found)


def _forecast(path: Path) -> list[FleetFinding]:
    from gpuwhy.investigate.checks.forecasting import check_target
    from gpuwhy.investigate.checks.plan import Plan
    from gpuwhy.reports.check import prescribed
    from gpuwhy.reports.remedy_words import change_of
    from gpuwhy.targets import PathTarget

    return [
        FleetFinding("check", each.cause, each.certainty.value, each.title, each.component or "", change_of(each.remedies[0]) if each.remedies else "")
        for each in prescribed(check_target(PathTarget(str(path)), Plan())).problems
    ]  # fmt: skip


def _each_once(findings: list[FleetFinding]) -> tuple[FleetFinding, ...]:
    """A cause of a component once: a diagnosis has seen what the check foresees."""
    kept: dict[tuple[str, str], FleetFinding] = {}
    diagnosed = {each.cause for each in findings if each.source == "diagnose"}
    for each in findings:
        if each.source == "diagnose" or each.cause not in diagnosed:
            kept.setdefault((each.cause, each.component), each)
    return tuple(kept.values())
