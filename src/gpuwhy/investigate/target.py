"""Investigate a target: collect, judge, look up in the installed source what is only inferred, conclude."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from gpuwhy.diagnosis import completed, sign_literals
from gpuwhy.investigate.binaries_asked import binary_facts, judged_again
from gpuwhy.investigate.collected_logs import logs_of, unit_of
from gpuwhy.investigate.concluding import conclude
from gpuwhy.investigate.examined_service import expect_inside, expect_written, notes_on_named, notes_on_services
from gpuwhy.investigate.log import diagnose_logs, judged
from gpuwhy.investigate.model_asked import model_facts
from gpuwhy.investigate.preparing import prepare
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.source import Questioner, confirmed
from gpuwhy.logs import facts_in, find_events, read_stream
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.fact import Facts
from gpuwhy.snapshot import (
    Probe,
    Session,
    Snapshot,
    decode,
    denials,
    facts_of,
    failing_services,
    is_snapshot,
)
from gpuwhy.snapshot.collecting import DEADLINE, TIMEOUT
from gpuwhy.snapshot.containers import container_notes
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
    with Session(target, unit, timeout, pid) as session:
        prepare()
        snapshot = session.collect(on_probe, deadline)
        expect_inside(snapshot, target.name)
        diagnosis = _diagnosed(snapshot, session, logs, facts, target.name)
        return Examination(diagnosis, session.snapshot)


def _of_file(target: FileTarget, unit: str, logs: Sequence[Log], facts: Facts | None) -> Examination:
    with target.stream() as stream:
        try:
            begun = stream.read(SNAPSHOT_HEAD)
            if is_snapshot(begun):
                snapshot = decode(begun + stream.read(), target.name)
                expect_written(snapshot, unit, target.name)
                return Examination(_diagnosed(snapshot, Excerpts(snapshot), logs, facts, target.name), snapshot)
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


def _diagnosed(
    snapshot: Snapshot, source: Questioner, more: Sequence[Log], given: Facts | None, where: str
) -> Diagnosis:
    record = Record()
    for probe in snapshot.probes:
        record.add(
            f"probe {probe.name}",
            ", ".join(probe.sources[:6]) or probe.subject,
            probe.status,
            probe.reason or "; ".join(probe.remarks),
            duration=probe.duration,
        )
    # read only where there is a target: a log alone does not wait for these modules
    from gpuwhy.investigate import hangs

    unit = unit_of(snapshot)
    look = hangs.look_named(snapshot, source, record)
    logs = hangs.of_this_life([*logs_of(snapshot), *more], look, unit)
    known = Facts()
    for log in logs:
        known = known.merged(facts_in(log))
    known = known.merged(facts_of(snapshot))
    if given is not None:
        known = known.merged(given)
        record.add("what is known of the host", "facts given by hand", "ok", f"{len(given)} facts")
    incident, judgement, dating = judged(logs, known, record, unit)
    facts = dating.facts
    if look is None:
        look = hangs.look_at_silent(snapshot, incident, source, record)
    if look is not None and hangs.is_of_now(incident, look):
        return hangs.concluded(where, look, incident, facts, record, [*_notes(snapshot), *dating.notes])
    of_binaries = binary_facts(incident, judgement, snapshot, completed(facts), source, record)
    if len(of_binaries):
        facts = facts.merged(of_binaries).merged(given or Facts())
        judgement = judged_again(incident, judgement, facts, of_binaries, record)
    of_model = model_facts(judgement, completed(facts), source, record, is_kept=isinstance(source, Session))
    if len(of_model):
        facts = facts.merged(of_model).merged(given or Facts())
        judgement = judged_again(incident, judgement, facts, of_model, record, "of the model")
    judgement = confirmed(judgement, source, record)
    # read only where there is a target to ask: a log alone does not wait for these modules
    from gpuwhy.investigate.agreeing import weighed, with_proof
    from gpuwhy.investigate.failing_condition import examined
    from gpuwhy.investigate.replaying import with_replay

    answer = examined(incident, facts, judgement, source, record)
    answer = with_replay(answer, incident, completed(facts), source, record)
    judgement = with_proof(weighed(judgement, answer, source), answer, incident)
    return conclude(
        where,
        incident,
        judgement,
        completed(facts),
        record,
        is_examined=bool(judgement.findings) or _is_examined(snapshot),
        notes=[*_notes(snapshot), *dating.notes],
        source=answer,
        waiting=look.waiting if look is not None else None,
    )


def _is_examined(snapshot: Snapshot) -> bool:
    """Whether enough was seen to say "no failure": the service's own words, or its manager's."""
    told = (snapshot.probe(name) for name in ("journal", "unit", "container_state", "service_log"))
    return any(probe is not None and probe.status == "ok" for probe in told)


def _notes(snapshot: Snapshot) -> list[str]:
    notes = container_notes(snapshot)
    notes += notes_on_services(failing_services(snapshot)) + notes_on_named(snapshot)
    if not snapshot.is_complete:
        notes.append("The collection ended early; what is missing was not looked at, and does not read as absent.")
    for name in ("journal", "kernel_log", "gpus", "environment"):
        probe = snapshot.probe(name)
        if probe is not None and probe.status in ("timed out", "failed"):
            notes.append(f"{name}: {probe.reason or probe.status} ({probe.status})")
    return notes + denials(snapshot)


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
