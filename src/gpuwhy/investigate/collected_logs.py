"""The logs in a snapshot that belong to the examined service: of its unit or its container, and the kernel's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuwhy.investigate.examined_service import is_unknown_unit
from gpuwhy.investigate.log_files import log_files, log_owner
from gpuwhy.logs import journal_lines
from gpuwhy.model.event import Log
from gpuwhy.snapshot import Snapshot, journal_entries, kernel_entries
from gpuwhy.snapshot.containers import (
    container_entries,
    engine_entries,
    kernel_entries_for,
    log_name,
    report_name,
)


def unit_of(snapshot: Snapshot) -> str:
    """The unit whose journal was read, the one that was named or the failing one that was found; else who wrote the log."""
    journal = snapshot.value("journal")
    return str(journal.get("unit", "")) if isinstance(journal, dict) else log_owner(snapshot)


def logs_of(snapshot: Snapshot) -> list[Log]:
    """All logs that tell of the examined service. A unit that is not there did not fail: what the kernel says is about others."""
    if is_unknown_unit(snapshot):
        return []
    return [*collected_logs(snapshot, unit_of(snapshot)), *log_files(snapshot)]


def collected_logs(snapshot: Snapshot, unit: str) -> list[Log]:
    """Each log by the name of the command that shows it; one without a line is left out."""
    printed = journal_lines(container_entries(snapshot), log_name(snapshot))
    of_unit = journal_entries(snapshot)
    logs = [
        # `docker run` repeats in the unit's journal what the container prints: once is enough
        journal_lines(_of_manager(of_unit) if printed.lines else of_unit, f"journal of {unit}" if unit else "journal"),
        printed,
        journal_lines(engine_entries(snapshot), report_name(snapshot)),
        journal_lines(kernel_entries_for(snapshot, kernel_entries(snapshot)), "kernel log"),
    ]
    return [log for log in logs if log.lines]


def _of_manager(entries: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (entry for entry in entries if entry.get("_TRANSPORT") == "journal" and "UNIT" in entry)
