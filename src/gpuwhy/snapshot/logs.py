"""The logs in a snapshot, in the form that the log reader takes: entries as ``journalctl -o json`` has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from gpuwhy.snapshot.document import Snapshot

FIELDS = ("time", "pid", "process", "priority", "origin", "text")


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A service that fails. ``kind``: ``systemd unit``, ``docker container`` ...; ``when`` in seconds since the epoch."""

    kind: str
    name: str
    state: str = ""
    result: str = ""
    restarts: int = 0
    status: str = ""
    command: str = ""
    when: float | None = None
    is_engine: bool = False


def journal_entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The entries of the examined unit's journal, oldest first."""
    found = snapshot.value("journal")
    if isinstance(found, dict):
        yield from _entries(found, str(found.get("unit", "")))


def kernel_entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The kernel's lines that can matter, oldest first."""
    found = snapshot.value("kernel_log")
    if isinstance(found, dict):
        yield from _entries(found, "")


def failing_services(snapshot: Snapshot) -> tuple[Candidate, ...]:
    """The services that fail on the target, the one examined first; empty when a unit was named."""
    found = snapshot.value("failing_services")
    read = (_candidate(each) for each in (found if isinstance(found, list) else []))
    return tuple(each for each in read if each is not None)


def _candidate(value: Any) -> Candidate | None:
    try:
        return msgspec.convert(value, Candidate)
    except msgspec.ValidationError:
        return None


def _entries(found: dict[str, Any], unit: str) -> Iterator[dict[str, Any]]:
    entries = found.get("entries")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, list) or len(entry) != len(FIELDS) or not isinstance(entry[5], str):
            continue
        time, pid, process, priority, origin, text = entry
        fields: dict[str, Any] = {"MESSAGE": text, "SYSLOG_IDENTIFIER": str(process)}
        if isinstance(time, (int, float)):
            fields["__REALTIME_TIMESTAMP"] = str(round(time * 1e6))
        if isinstance(pid, int):
            fields["_PID"] = str(pid)
        if isinstance(priority, int):
            fields["PRIORITY"] = str(priority)
        if origin == "systemd":
            fields |= {"_TRANSPORT": "journal", "UNIT": unit}
        else:
            fields["_TRANSPORT"] = str(origin)
            if unit and origin != "kernel":
                fields["_SYSTEMD_UNIT"] = unit
        yield fields
