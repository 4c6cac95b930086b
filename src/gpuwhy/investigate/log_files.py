"""The log files of the examined service, which its manager's configuration or its own descriptors name."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.diagnosis import sign_literals
from gpuwhy.logs import UnreadableLog, read_bytes
from gpuwhy.model.event import Log
from gpuwhy.snapshot import Snapshot, service_logs


def log_files(snapshot: Snapshot) -> Iterator[Log]:
    """One log for each file. What has no time of its own is taken to end when it was last written to, so that it stands in
    its place among what the manager and the kernel say."""
    for file in service_logs(snapshot):
        try:
            log = read_bytes(file.text.encode("utf-8", "replace"), file.path, sign_literals())
        except UnreadableLog:
            continue
        if file.modified is not None and not any(line.time is not None for line in log.lines):
            lines = tuple(msgspec.structs.replace(line, time=file.modified) for line in log.lines)
            log = msgspec.structs.replace(log, lines=lines)
        if log.lines:
            yield log
