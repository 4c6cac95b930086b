"""What a snapshot, or a live target, tells of a process that may hang: the answers to ``waiting``."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gpuwhy.model.hang import Observation
from gpuwhy.snapshot.document import Snapshot
from gpuwhy.targets import Ask

_PROCESS = re.compile(r"/proc/(\d{1,10})")


def waiting_request(pid: int) -> Ask:
    """The request for what process ``pid`` waits for."""
    return Ask("waiting", f"/proc/{pid}")


def observation_of(value: Any) -> Observation | None:
    """The answer to :func:`waiting_request`; None when it is not shaped as the collector writes it."""
    try:
        observation = msgspec.convert(value, Observation)
    except msgspec.ValidationError:
        return None
    return observation if observation.processes else None


def process_asked_about(snapshot: Snapshot) -> int | None:
    """The process whose waiting was looked into when the snapshot was made, None when none was."""
    for excerpt in snapshot.excerpts:
        found = _PROCESS.fullmatch(excerpt.path) if excerpt.ask == "waiting" else None
        if found is not None:
            return int(found[1])
    return None
