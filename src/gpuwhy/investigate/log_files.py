"""The log files of the examined service, which its manager's configuration or its own descriptors name."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.diagnosis import sign_literals
from gpuwhy.logs import UnreadableLog, read_bytes
from gpuwhy.model.event import Log
from gpuwhy.snapshot import Snapshot, service_logs

_SCHEMES = {"supervisor": "supervisord", "pid": "process"}


def log_files(snapshot: Snapshot) -> Iterator[Log]:
    """One log for each file. What has no time of its own is taken to end when it was last written to, so that it stands in
    its place among what the manager and the kernel say."""
    owner = log_owner(snapshot)
    for file in service_logs(snapshot):
        try:
            log = read_bytes(file.text.encode("utf-8", "replace"), file.path, sign_literals())
        except UnreadableLog:
            continue
        if not log.lines:
            continue
        is_timed = any(line.time is not None for line in log.lines)
        ended = None if is_timed else file.modified
        lines = tuple(
            msgspec.structs.replace(line, unit=line.unit or owner, time=line.time if ended is None else ended)
            for line in log.lines
        )
        yield msgspec.structs.replace(log, lines=lines)


def log_owner(snapshot: Snapshot) -> str:
    """Whose the log files are: the unit's name, else ``supervisord/NAME``, ``process/PID``, the path of the log itself."""
    found = snapshot.value("service_log")
    selector = str(found.get("selector", "")) if isinstance(found, dict) else ""
    scheme, colon, name = selector.partition(":")
    if colon and scheme in _SCHEMES:
        return f"{_SCHEMES[scheme]}/{name}"
    return name.rpartition("/")[2] if colon and scheme == "user" else selector
