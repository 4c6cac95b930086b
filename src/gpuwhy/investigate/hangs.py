"""A process that lives and does not get on: when it is looked at, what it waits for, and which cause that is.

It is looked at when a process was named, or when a unit is active, has not failed in this life, and has been silent
for :data:`SILENT` seconds. A unit that writes lines, or has failed, costs nothing more than before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from gpuwhy.diagnosis import Judgement, completed, judge
from gpuwhy.diagnosis.judging import deciding
from gpuwhy.investigate.concluding import conclude
from gpuwhy.investigate.hang_lines import FRAME, KIND, ProcessLog, log_of, named
from gpuwhy.investigate.hang_states import waiting_of
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.source import Questioner
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Event, Log, Process, Span
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.finding import Finding, Missing
from gpuwhy.model.hang import Observation, Waiting
from gpuwhy.model.incident import Incident
from gpuwhy.snapshot import Snapshot, journal_entries
from gpuwhy.snapshot.hangs import observation_of, process_asked_about, waiting_request
from gpuwhy.targets import TargetError

SILENT = 60.0
"""Seconds without a line after which an active unit is looked at."""

_OF_DEVICES = re.compile(r"NVRM|\bXid\b|nvidia|pcieport|\bAER\b|IO_PAGE_FAULT|DMAR|nvlink|mlx5|\bnfs\b", re.IGNORECASE)

STARTED_BEFORE = 5.0
"""Seconds by which a line may be older than the process and still be of its life: the manager writes first."""


class Look(msgspec.Struct, frozen=True):
    """A process that was looked at: what was seen, as lines, and what it waits for."""

    seen: Observation
    log: ProcessLog
    waiting: Waiting
    started: float
    """When the process started, in seconds since the epoch by our clock."""


def look_named(snapshot: Snapshot, source: Questioner, record: Record) -> Look | None:
    """The look at the process that was named, or at the one that was looked at when the snapshot was made.

    None when none was named. Raises :class:`gpuwhy.targets.TargetError` when there is none of that number.
    """
    named = snapshot.target.pid
    pid = named if named is not None else process_asked_about(snapshot)
    if pid is None:
        return None
    look = _look(pid, snapshot, source, record)
    if look is None and named is not None:
        raise TargetError(
            _why_not_seen(pid, record), "Inside a container processes have other numbers than on its host."
        )
    return look


def look_at_silent(snapshot: Snapshot, incident: Incident, source: Questioner, record: Record) -> Look | None:
    """The look at the unit's process, when the unit is active, silent, and has not failed in this life."""
    pid = _silent_process(snapshot, incident)
    return _look(pid, snapshot, source, record) if pid is not None else None


def _silent_process(snapshot: Snapshot, incident: Incident) -> int | None:
    unit = snapshot.value("unit")
    properties = unit.get("properties") if isinstance(unit, dict) else None
    if not isinstance(properties, dict) or properties.get("ActiveState") not in ("active", "activating", "reloading"):
        return None
    last = max((time for entry in journal_entries(snapshot) if (time := _time(entry)) is not None), default=None)
    if last is not None and snapshot.started - last < SILENT:
        return None
    if incident.is_failure and incident.ended is None:
        return None
    main = str(properties.get("MainPID") or "")
    return int(main) if main.isdigit() and int(main) > 0 else None


def _time(entry: dict[str, object]) -> float | None:
    told = str(entry.get("__REALTIME_TIMESTAMP") or "")
    return int(told) / 1e6 if told.isdigit() else None


def _ended_before(incident: Incident, started: float) -> bool:
    return incident.ended is not None and incident.ended < started - STARTED_BEFORE


def _look(pid: int, snapshot: Snapshot, source: Questioner, record: Record) -> Look | None:
    with record.step(f"what does process {pid} wait for", f"/proc/{pid} and below, looked at twice") as step:
        reply = source.ask([waiting_request(pid)], 15.0)[0]
        seen = observation_of(reply.value) if reply.status == "ok" else None
        if seen is None:
            step.outcome = reply.status if reply.status != "ok" else "failed"
            step.found = reply.reason or "the answer is not shaped as the collector writes it"
            return None
        at = snapshot.started + snapshot.duration
        log = log_of(seen, at)
        waiting = waiting_of(seen, log)
        step.found = f"{waiting.state}: {waiting.headline}"
        return Look(seen, log, waiting, at - seen.asked.age)


def is_of_now(incident: Incident, look: Look) -> bool:
    """Whether nothing in the logs failed since the process started: then what it does now is the answer.

    A failure without a time is of an earlier life, as the process lives.
    """
    return not incident.is_failure or incident.ended is None or _ended_before(incident, look.started)


def _why_not_seen(pid: int, record: Record) -> str:
    told = [step.found for step in record.closed().steps if step.question == f"what does process {pid} wait for"]
    return f"process {pid} could not be looked at: {told[-1] if told else 'no answer'}"


def of_this_life(logs: Sequence[Log], look: Look | None, unit: str) -> list[Log]:
    """The logs without the lines of before the process started: an earlier failure is not why this one waits.

    Without a ``unit`` what the kernel did to processes is left out too: nothing says that they belong to this one.
    """
    if look is None:
        return list(logs)
    begin = look.started - STARTED_BEFORE
    kept = []
    for log in logs:
        is_of_all = "kernel log" in (log.kind, log.name) and not unit
        lines = tuple(
            line
            for line in log.lines
            if (line.time is None or line.time >= begin) and (not is_of_all or _OF_DEVICES.search(line.text[:1000]))
        )
        left_out = len(log.lines) - len(lines)
        note = (f"{left_out} lines of before the process started, or of others, left out",) if left_out else ()
        if lines:
            kept.append(Log(log.name, log.kind, lines, (*log.notes, *note)))
    return kept


def concluded(
    where: str, look: Look, incident: Incident, facts: Facts, record: Record, notes: Sequence[str]
) -> Diagnosis:
    """The diagnosis of a process that lives: a failure when it is stuck, else what it is busy with."""
    waiting = look.waiting
    facts = facts.merged(_facts(look))
    event = _event(look)
    own = msgspec.structs.replace(
        incident,
        logs=(*of_this_life(incident.logs, look, incident.unit), look.log.log),
        events=(event,),
        primary=event.id if waiting.state == "stuck" else None,
        before=(),
        started=look.started,
        ended=None,
        is_failure=waiting.state == "stuck",
    )
    judgement = _judged(own, event, look.log.log, facts, record) if waiting.state in ("stuck", "unclear") else _NOTHING
    diagnosis = conclude(
        where, own, judgement, completed(facts), record, notes=[*notes, *_earlier(incident, look)], waiting=waiting
    )
    to_go_on = _to_go_on(look) if not judgement.findings and waiting.state in ("stuck", "unclear") else ()
    return msgspec.structs.replace(
        diagnosis,
        to_go_on=to_go_on,
        decides=judgement.decides or next(iter(to_go_on), None),
    )


_NOTHING = Judgement((), (), None)


def _event(look: Look) -> Event:
    """That it waits, as an event that stands over all lines of what was seen."""
    lines = look.log.log.lines
    first = look.waiting.evidence[0].place if look.waiting.evidence else None
    return Event(
        id=0,
        kind="warning",
        text=look.waiting.headline,
        place=first or Place(KIND, look.log.log.name, 1),
        span=Span(look.log.log.name, 1, max(1, len(lines))),
        time=lines[0].time if lines else None,
        process=Process(look.seen.asked.name, look.waiting.pid),
        tool="hang",
        is_fatal=False,
    )


def _judged(incident: Incident, event: Event, log: Log, facts: Facts, record: Record) -> Judgement:
    """What the catalogue says of it: only findings that rest on what was seen of the process now."""
    with record.step("which causes fit what the process waits for", f"{len(incident.logs)} logs") as step:
        judgement = judge(incident, completed(facts))
        kept = tuple(each for each in judgement.findings if _rests_on(each, event, log))
        step.found = f"{judgement.considered} causes had a sign, {len(kept)} fit"
    if len(kept) == len(judgement.findings):
        return judgement
    return msgspec.structs.replace(judgement, findings=kept, decides=deciding(kept))


def _rests_on(finding: Finding, event: Event, log: Log) -> bool:
    """Whether a finding is about what was seen of the process; a word in the path of a frame is no sign of anything."""
    frames = {line.number for line in log.lines if line.text.startswith(FRAME)}
    places = [each.place for each in finding.evidence if each.place is not None]
    seen = [place for place in places if place.source == KIND]
    if not seen:
        return event.id in finding.explains
    return any(place.line not in frames for place in seen)


def _facts(look: Look) -> Facts:
    """``processes``: what runs, as causes know it; only these processes and the holders of their locks."""
    shown = [f"{each.pid} {each.state} {' '.join(each.command)[:200] or each.name}" for each in look.seen.processes]
    shown += [f"{each.pid} {each.state} {each.tool} {each.output}".rstrip() for each in look.seen.compilers]
    compilers = len(look.seen.compilers)
    said = (
        f"{compilers} compilers run" if compilers else "no compiler runs below the process or below who holds its lock"
    )
    asked = look.seen.asked
    quote = f"{asked.pid} {named(asked.command, asked.name)} and {len(look.seen.processes) - 1} more"
    evidence = Evidence(said, quote, Place(KIND, look.log.log.name))
    return Facts({"processes": Fact("processes", tuple(shown), evidence, f"process:{look.seen.pid}")})


def _earlier(incident: Incident, look: Look) -> list[str]:
    event = incident.primary_event
    if event is None or not _ended_before(incident, look.started):
        return []
    headline = event.text.partition("\n")[0][:160]
    return [f"An earlier life of the service failed ({headline}); this is about the process that runs now."]


def _to_go_on(look: Look) -> tuple[Missing, ...]:
    """What a person can find out where the stacks are not known. No signal is proposed that could end the process."""
    pid = look.waiting.pid
    asked = [Missing("tests.again", f"gpuwhy diagnose local --pid {pid}", "whether anything moved since: look again in a minute")]  # fmt: skip
    if look.waiting.what == "peer":
        asked.insert(0, Missing("tests.peer", "gpuwhy diagnose local --pid PID_OF_THE_OTHER_RANK", "what the other end does: the rank that waits elsewhere is the lead"))  # fmt: skip
    if not look.waiting.stack:
        asked.insert(0, Missing("tests.stacks", f"py-spy dump --pid {pid}", "where its Python code stands (pip install py-spy; as root or its user)"))  # fmt: skip
    return tuple(asked)
