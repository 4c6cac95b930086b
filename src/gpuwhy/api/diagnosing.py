"""Why something failed, and the snapshot from which that can be asked again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from gpuwhy.api.errors import UnreachableError, UnusableError
from gpuwhy.api.places import PROBES, TIMEOUT, GivenFacts, OnProbe, Where, facts_of, reached

if TYPE_CHECKING:
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.snapshot import Snapshot

Outcome: TypeAlias = Literal["failure", "no failure", "not examined"]
"""What came of looking: something failed (or will), nothing did, or not enough could be seen to say so."""


def diagnose(
    where: Where | None = None,
    *,
    unit: str = "",
    logs: Iterable[str | Path] = (),
    facts: GivenFacts = None,
    pid: int | None = None,
    via: str = "",
    sudo: bool = False,
    deadline: float = PROBES,
    timeout: float = TIMEOUT,
    on_probe: OnProbe = None,
) -> Diagnosis:
    """Why the service at ``where`` failed, with remedies in order and written for the place.

    ``unit`` is a systemd unit; without it the failing one is looked for. ``logs`` are further logs of the same failure;
    without ``where`` the first of them is what is diagnosed. ``pid`` is a process of a live place that does not get on.
    ``deadline`` seconds are given to the probes, ``timeout`` to all of it.
    """
    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.investigate import investigate
    from gpuwhy.logs import open_log
    from gpuwhy.remedies import prescribe
    from gpuwhy.targets import FileTarget

    more = [Path(each) for each in logs]
    if where is None and not more:
        raise UnusableError("name what to examine: a log, a snapshot, local, an SSH destination, or --log FILE")
    with reached(more.pop(0) if where is None else where, via=via, sudo=sudo) as target:
        if pid is not None and isinstance(target, FileTarget):
            raise UnusableError("--pid names a process of a live target: local, an SSH destination, a container")
        found = investigate(
            target,
            unit=unit,
            logs=[open_log(path, sign_literals()) for path in more],
            facts=facts_of(facts) if facts is not None else None,
            on_probe=on_probe,
            deadline=deadline,
            timeout=timeout,
            pid=pid,
        )
    return prescribe(found)


def outcome_of(diagnosis: Diagnosis) -> Outcome:
    """What a diagnosis comes to; the exit status of ``gpuwhy diagnose`` follows it."""
    if diagnosis.findings or (diagnosis.incident.is_failure and diagnosis.incident.primary is not None):
        return "failure"
    return "no failure" if diagnosis.is_examined else "not examined"


def collect(
    where: Where,
    *,
    unit: str = "",
    pid: int | None = None,
    via: str = "",
    sudo: bool = False,
    deadline: float = PROBES,
    timeout: float = TIMEOUT,
    on_probe: OnProbe = None,
) -> Snapshot:
    """A snapshot of a live place, with secrets taken out there; ``gpuwhy.snapshot.write`` makes a file of it.

    It holds every file that a diagnosis asked for, so that the diagnosis can be repeated from it.
    """
    from gpuwhy.investigate import examine
    from gpuwhy.targets import HostTarget

    with reached(where, via=via, sudo=sudo) as target:
        if not isinstance(target, HostTarget):
            raise UnusableError(f"{target.name} is a file: there is nothing to collect")
        examined = examine(target, unit=unit, on_probe=on_probe, deadline=deadline, timeout=timeout, pid=pid)
    if examined.snapshot is None:
        raise UnreachableError(f"{target.name}: nothing was collected")
    return examined.snapshot
