"""Investigate a target: collect, judge, look up in the installed source what is only inferred, conclude."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from gpuwhy.diagnosis import sign_literals
from gpuwhy.investigate.examined_service import expect_inside, expect_written
from gpuwhy.investigate.log import diagnose_logs
from gpuwhy.investigate.preparing import prepare
from gpuwhy.logs import find_events, read_stream
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.fact import Facts
from gpuwhy.snapshot import (
    Probe,
    Session,
    Snapshot,
    decode,
    is_snapshot,
)
from gpuwhy.snapshot.collecting import DEADLINE, TIMEOUT
from gpuwhy.snapshot.document import Excerpt
from gpuwhy.targets import Ask, FileTarget, HostTarget, Reply, Target, TargetError

SNAPSHOT_HEAD = 64 << 10
"""Bytes by which a snapshot is known from a log."""

OnProbe = Callable[[Probe], None]


def investigate(
    target: Target,
    *,
    unit: str = "",
    logs: Sequence[Log] = (),
    facts: Facts | None = None,
    on_probe: OnProbe | None = None,
    deadline: float = DEADLINE,
    timeout: float = TIMEOUT,
    pid: int | None = None,
) -> Diagnosis:
    """Find out why a service failed. ``facts`` given by hand win over what is collected.

    ``logs`` are further logs of the same failure (of another rank, the kernel's). ``pid`` names a process that lives and
    perhaps does not get on: it is looked at for what it waits for.

    Raises :class:`gpuwhy.targets.TargetError` when the target cannot be reached or read, and
    :class:`gpuwhy.logs.UnreadableLog` or :class:`gpuwhy.snapshot.SnapshotError` for a file that is neither log nor
    snapshot.
    """
    return examine(
        target, unit=unit, logs=logs, facts=facts, on_probe=on_probe, deadline=deadline, timeout=timeout, pid=pid
    ).diagnosis


class Examination(msgspec.Struct, frozen=True):
    """A diagnosis, and the snapshot it stands on: with every file that was asked for, so that it can be repeated.

    ``snapshot`` is None where a log was diagnosed.
    """

    diagnosis: Diagnosis
    snapshot: Snapshot | None = None


def examine(
    target: Target,
    *,
    unit: str = "",
    logs: Sequence[Log] = (),
    facts: Facts | None = None,
    on_probe: OnProbe | None = None,
    deadline: float = DEADLINE,
    timeout: float = TIMEOUT,
    pid: int | None = None,
) -> Examination:
    """As :func:`investigate`, and hands back the snapshot too."""
    if isinstance(target, FileTarget):
        return _of_file(target, unit, logs, facts)
    if not isinstance(target, HostTarget):
        raise TargetError(f"{target.name} is no place that can be examined")
    # these modules are of no use to a log alone, which does not wait for them
    from gpuwhy.investigate.collected import diagnosed

    with Session(target, unit, timeout, pid) as session:
        prepare()
        snapshot = session.collect(on_probe, deadline)
        # loaded meanwhile; a log alone, which has no use for it, does not wait for it
        from gpuwhy.investigate.collected import diagnosed

        expect_inside(snapshot, target.name)
        diagnosis = diagnosed(snapshot, session, logs, facts, target.name)
        return Examination(diagnosis, session.snapshot)


def _of_file(target: FileTarget, unit: str, logs: Sequence[Log], facts: Facts | None) -> Examination:
    with target.stream() as stream:
        try:
            begun = stream.read(SNAPSHOT_HEAD)
            if is_snapshot(begun):
                from gpuwhy.investigate.collected import diagnosed

                snapshot = decode(begun + stream.read(), target.name)
                expect_written(snapshot, unit, target.name)
                return Examination(diagnosed(snapshot, Excerpts(snapshot), logs, facts, target.name), snapshot)
            name = target.name if target.name != "-" else "standard input"
            log = read_stream(stream, name, sign_literals(), begun)
        except OSError as error:
            raise TargetError(f"{target.name}: {error.strerror or error}") from error
    return Examination(diagnose_logs([log, *logs], name, facts, _as_logged(unit, [log, *logs], name)))


def _as_logged(unit: str, logs: Sequence[Log], where: str) -> str:
    """The unit as the logs write it; one that they do not speak of is refused where they speak of others.

    A log that names no unit is taken for the named one's: the remedies are then written for it.
    """
    if not unit:
        return ""
    named = {event.unit for log in logs for event in find_events(log) if event.unit and event.kind != "kernel"}
    if not named or unit in named:
        return unit
    if f"{unit}.service" in named:
        return f"{unit}.service"
    raise TargetError(
        f"{where} tells nothing of {unit}: it speaks of {', '.join(sorted(named)[:5])}",
        "Leave --unit out, or name one of these.",
    )


class Excerpts:
    """Answers from what a snapshot kept; what was not asked then cannot be asked now."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_key: dict[tuple[object, ...], Excerpt] = {_key(each): each for each in snapshot.excerpts}

    def ask(self, asks: list[Ask], deadline: float = 10.0) -> list[Reply]:
        del deadline
        replies = []
        for ask in asks:
            kept = self._by_key.get(_key(ask))
            replies.append(
                Reply(status="absent", reason="not in this snapshot")
                if kept is None
                else Reply(status=kept.status, reason=kept.reason, value=kept.value)
            )
        return replies


def _key(asked: Ask | Excerpt) -> tuple[object, ...]:
    return (asked.ask, asked.path, asked.first, asked.last, asked.offset, asked.length, asked.queries)
