"""What changed between two snapshots, ordered by what the diagnosis of the later one says it can cause.

A difference is put to the test: the later failure is judged once more with the earlier value in its place. Where the answer
then falls or weakens, this change alone accounts for it.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

import msgspec

from gpuwhy.diagnosis import Judgement, completed, judge
from gpuwhy.investigate.change_kinds import KINDS, ChangeKind, kind_of
from gpuwhy.investigate.collected_logs import logs_of, unit_of
from gpuwhy.investigate.comparable import NOT_THERE, Comparable, shown
from gpuwhy.investigate.log import judged
from gpuwhy.investigate.record import Record
from gpuwhy.logs import facts_in
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Finding
from gpuwhy.model.host import Resolution
from gpuwhy.model.incident import Incident
from gpuwhy.snapshot import Snapshot

MOST_TESTED = 200
"""Differences that are put to the test; more means another machine, and the rest keep their usual order."""


class Side(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the two: what was examined, when (seconds since the epoch), and what its own logs say failed there."""

    name: str
    kind: str
    started: float
    unit: str = ""
    is_complete: bool = True
    is_failure: bool = False
    cause: str = ""
    certainty: str = ""
    title: str = ""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference. ``before`` and ``after`` as text; ``lines`` where several lines of one thing differ.

    ``undoes`` is the cause that no longer stands (or is less sure) with the earlier value; ``causes`` are those that a
    change of this kind can bring about, with ``is_suspected`` where one of them was found in the later snapshot.
    """

    key: str
    kind: str
    before: str
    after: str
    causes: tuple[str, ...] = ()
    undoes: str = ""
    is_suspected: bool = False
    is_outcome: bool = False
    lines: tuple[str, ...] = ()
    evidence: Evidence | None = None


class Uncompared(msgspec.Struct, frozen=True):
    """A fact that only one side knows, and why the other does not."""

    key: str
    side: str
    why: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``compared`` facts were known on both sides, ``equal`` of them alike; ``changes`` come in the order of suspicion."""

    before: Side
    after: Side
    compared: int
    equal: int
    changes: tuple[Change, ...]
    uncompared: tuple[Uncompared, ...] = ()


def compare(before: Snapshot, after: Snapshot) -> Comparison:
    """What changed from ``before`` to ``after``."""
    earlier, later = Comparable(before), Comparable(after)
    _, earlier_judgement, earlier_incident = _judged(before, earlier)
    known, judgement, incident = _judged(after, later)
    changes: list[Change] = []
    uncompared: list[Uncompared] = []
    compared = 0
    for key in dict.fromkeys([*later.entries, *earlier.entries]):
        old, new = earlier.get(key), later.get(key)
        if isinstance(old, Unknown) or isinstance(new, Unknown):
            side, unknown = ("before", old) if isinstance(old, Unknown) else ("after", new)
            uncompared.append(Uncompared(key, side, unknown.why))
            continue
        compared += 1
        if _differs(key, old, new):
            changes.append(_change(key, old, new, later.entries.get(key) or earlier.entries[key], judgement))
    tested = [
        _tested(change, earlier, known, judgement, incident) if number < MOST_TESTED else change
        for number, change in enumerate(sorted(changes, key=_order))
    ]
    return Comparison(
        before=_side(before, earlier_judgement, earlier_incident),
        after=_side(after, judgement, incident),
        compared=compared,
        equal=compared - len(changes),
        changes=tuple(sorted(tested, key=_order)),
        uncompared=tuple(sorted(uncompared, key=lambda each: _rank(kind_of(each.key)))),
    )


def _judged(snapshot: Snapshot, comparable: Comparable) -> tuple[Facts, Judgement, Incident]:
    """What the logs of a snapshot say failed there; nothing is asked of it that it does not hold."""
    unit = unit_of(snapshot)
    logs = logs_of(snapshot)
    known = Facts()
    for log in logs:
        known = known.merged(facts_in(log))
    incident, judgement, dating = judged(logs, known.merged(comparable.facts), Record(), unit)
    return dating.facts, judgement, incident


def _side(snapshot: Snapshot, judgement: Judgement, incident: Incident) -> Side:
    side = Side(
        snapshot.target.name,
        snapshot.target.kind,
        snapshot.started,
        snapshot.target.unit,
        snapshot.is_complete,
        incident.primary is not None,
    )
    if not judgement.findings:
        return side
    first = judgement.findings[0]
    return msgspec.structs.replace(side, cause=first.cause, certainty=first.certainty.value, title=first.title)


def _differs(key: str, old: Any, new: Any) -> bool:
    """Whether a difference is one: what moves all the time differs only where it moved far."""
    if key in ("gpu_processes", "processes"):
        return _holders(old) != _holders(new)
    if key == "mem_available_bytes":
        return _moved_far(old, new)
    if key.startswith("df.") and isinstance(old, dict) and isinstance(new, dict):
        return _room_differs(old, new)
    return bool(old != new)


def _room_differs(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Another size; or so little left that it matters, and much less or more than before."""
    size, left = new.get("size_bytes"), new.get("avail_bytes")
    if not isinstance(size, int) or not isinstance(left, int) or old.get("size_bytes") != size:
        return old != new
    return left * 20 < size and _moved_far(old.get("avail_bytes"), left)


def _moved_far(old: Any, new: Any) -> bool:
    if not isinstance(old, int) or not isinstance(new, int):
        return bool(old != new)
    return not old // 2 <= new <= old * 2


def _holders(value: Any) -> list[str]:
    """Who runs or holds memory, without process numbers, times and amounts: these change with every start and every second."""
    return sorted(
        re.sub(r"process \d{1,9}| holds \d{1,9} MiB|; [^():]{1,60} of CPU(?=\))", "", str(each)) for each in value or ()
    )


def _change(key: str, old: Any, new: Any, fact: Fact, judgement: Judgement) -> Change:
    kind = kind_of(key)
    found = {finding.cause for finding in judgement.findings}
    rests = any(
        fact.evidence in (*each.evidence, *(link.evidence for link in each.chain)) for each in judgement.findings
    )
    return Change(
        key,
        kind.name,
        shown(old),
        shown(new),
        kind.causes,
        is_suspected=rests or bool(found & set(kind.causes)),
        is_outcome=kind.is_outcome,
        lines=_lines(key, old, new),
        evidence=None if new is None else fact.evidence,
    )


def _lines(key: str, old: Any, new: Any) -> tuple[str, ...]:
    """The lines that came and went, of a unit file; the entries, of a cache or a list of options."""
    if old is None or new is None:
        return ()
    if key.startswith("unit_file."):
        return _line_changes(old, new)
    if key == "command":
        return _line_changes(str(old).split(), str(new).split())
    if key in ("env.PATH", "env.LD_LIBRARY_PATH", "env.PYTHONPATH"):
        return _line_changes(str(old).split(":"), str(new).split(":"))
    if key.startswith("jit_cache.") and isinstance(old, dict) and isinstance(new, dict):
        return _line_changes(sorted(f"{name}: {each}" for name, each in old.items()), sorted(f"{name}: {each}" for name, each in new.items()))  # fmt: skip
    return ()


def _line_changes(old: list[str], new: list[str]) -> tuple[str, ...]:
    matcher = difflib.SequenceMatcher(None, old[:2000], new[:2000], autojunk=False)
    changed: list[str] = []
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag != "equal":
            changed += [f"- {each}" for each in old[first:last]] + [f"+ {each}" for each in new[start:end]]
    return tuple(changed)


def _tested(change: Change, earlier: Comparable, known: Facts, judgement: Judgement, incident: Incident) -> Change:
    """The change, with the finding that does not stand when it is undone."""
    if change.is_outcome or not judgement.findings:
        return change
    undone = {key: _earlier_fact(key, earlier) for key in _companions(change.key, earlier.facts, known)}
    again = judge(incident, completed(known.merged(Facts(undone))))
    for finding in judgement.findings:
        if not finding.consequence_of and _falls(finding, again):
            return msgspec.structs.replace(change, undoes=finding.cause)
    return change


def _earlier_fact(key: str, earlier: Comparable) -> Fact:
    found = earlier.facts.get(key)
    return found if isinstance(found, Fact) else Fact(key, None, Evidence(f"{key} was {NOT_THERE} before"))


_TOGETHER = (
    ("gpus", "gpu", "cc"),
    ("driver", "driver_cuda"),
    ("torch", "torch_cuda", "torch_arch_list", "packages.torch"),
)


def _companions(key: str, earlier: Facts, later: Facts) -> list[str]:
    """The facts that change with ``key``: undoing a variable that chose the toolkit undoes the choice."""
    resolved = [each for facts in (earlier, later) for each in facts if each.key.startswith("toolkit_resolved.")]
    chosen = ["cuda_toolkit", "cuda_home", "nvcc_path", *(each.key for each in resolved)]
    if key.startswith("toolkit_resolved.") or key in chosen:
        return list(dict.fromkeys([key, *chosen]))
    name = key.removeprefix("env.")
    if key.startswith("env.") and any(isinstance(r.value, Resolution) and r.value.by == name for r in resolved):
        return list(dict.fromkeys([key, *chosen]))
    return next((list(group) for group in _TOGETHER if key in group), [key])


def _falls(finding: Finding, again: Judgement) -> bool:
    same = next((each for each in again.findings if each.cause == finding.cause), None)
    return same is None or same.certainty.order > finding.certainty.order


def _order(change: Change) -> tuple[Any, ...]:
    rank = _rank(kind_of(change.key))
    return (not change.undoes, change.is_outcome, not change.is_suspected, rank, change.key)


def _rank(kind: ChangeKind) -> int:
    return KINDS.index(kind)
