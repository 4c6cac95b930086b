"""The logs in a snapshot, in the form that the log reader takes: entries as ``journalctl -o json`` has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from gpuwhy.snapshot.document import Snapshot

FIELDS = ("time", "pid", "process", "priority", "origin", "text")


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A service that fails, or (``is_failing`` false) one that runs.

    ``kind`` is ``systemd unit``, ``user unit``, ``supervisord program``, ``docker container``, ``process``, ``log``;
    ``selector`` what ``--unit`` takes to choose it; ``log`` the file it writes; ``when`` in seconds since the epoch.
    """

    kind: str
    name: str
    state: str = ""
    result: str = ""
    restarts: int = 0
    status: str = ""
    command: str = ""
    when: float | None = None
    is_engine: bool = False
    is_failing: bool = True
    selector: str = ""
    log: str = ""
    note: str = ""


class ServiceLog(msgspec.Struct, frozen=True):
    """A log file of the examined service, as far as it was taken: its path, its text, and when it was last written to."""

    path: str
    text: str
    modified: float | None = None


def journal_entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The entries of the examined unit's journal, oldest first."""
    found = snapshot.value("journal")
    if isinstance(found, dict):
        yield from entries_in(found, str(found.get("unit", "")))


def kernel_entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The kernel's lines that can matter, oldest first."""
    found = snapshot.value("kernel_log")
    if isinstance(found, dict):
        yield from entries_in(found, "")


def service_logs(snapshot: Snapshot) -> tuple[ServiceLog, ...]:
    """The files that the examined service writes, and on a node of Ray what its workers printed; of a long one its
    beginning and its end, with a line that says so."""
    read: dict[str, ServiceLog] = {}
    for name in ("service_log", "ray_log"):
        found = snapshot.value(name)
        files = found.get("files") if isinstance(found, dict) else None
        for each in files if isinstance(files, list) else []:
            log = _service_log(each)
            if log is not None:
                read.setdefault(log.path, log)
    return tuple(read.values())


def _service_log(value: Any) -> ServiceLog | None:
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("path", "head", "tail")):
        return None
    left_out, modified = value.get("left_out"), value.get("modified")
    gap = f"[gpuwhy: {left_out} bytes are left out here]\n" if isinstance(left_out, int) and left_out > 0 else ""
    when = float(modified) if isinstance(modified, (int, float)) and not isinstance(modified, bool) else None
    return ServiceLog(value["path"], value["head"] + gap + value["tail"], when)


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


def entries_in(found: dict[str, Any], unit: str) -> Iterator[dict[str, Any]]:
    """The entries of a probe that brought a log, as ``journalctl -o json`` has them; one that is not shaped so is left out."""
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
