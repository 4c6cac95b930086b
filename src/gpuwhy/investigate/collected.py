"""Judge what was collected from a target, and look up in its binaries, model and source what is only inferred."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.diagnosis import completed
from gpuwhy.investigate import hangs
from gpuwhy.investigate.agreeing import weighed, with_proof
from gpuwhy.investigate.binaries_asked import binary_facts, judged_again
from gpuwhy.investigate.collected_logs import logs_of, unit_of
from gpuwhy.investigate.concluding import conclude
from gpuwhy.investigate.examined_service import notes_on_named, notes_on_services
from gpuwhy.investigate.failing_condition import examined
from gpuwhy.investigate.log import judged
from gpuwhy.investigate.model_asked import model_facts
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.replaying import with_replay
from gpuwhy.investigate.source import Questioner, confirmed
from gpuwhy.logs import facts_in
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Log
from gpuwhy.model.fact import Facts
from gpuwhy.snapshot import Session, Snapshot, denials, facts_of, failing_services
from gpuwhy.snapshot.containers import container_notes


def diagnosed(
    snapshot: Snapshot, source: Questioner, more: Sequence[Log], given: Facts | None, where: str
) -> Diagnosis:
    """What a snapshot and further logs come to; ``source`` answers what is asked besides."""
    record = Record()
    for probe in snapshot.probes:
        record.add(
            f"probe {probe.name}",
            ", ".join(probe.sources[:6]) or probe.subject,
            probe.status,
            probe.reason or "; ".join(probe.remarks),
            duration=probe.duration,
        )
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
