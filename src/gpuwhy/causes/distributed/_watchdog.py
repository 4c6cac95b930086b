"""What torch's NCCL watchdog prints of each rank, whatever the release's layout.

| torch | layout |
| --- | --- |
| 1.13 | ``[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for ...`` |
| 2.0 | ``WorkNCCL(SeqNum=1, OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000)`` |
| 2.1, 2.2 | ``WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000)`` |
| 2.3 | the same behind ``[PG 0 Rank 0]`` |
| 2.4 and later | the same behind ``[PG ID 2 PG GUID 3(tp) Rank 0]`` |

The layouts are those of ``ProcessGroupNCCL.cpp`` in those releases.
"""

from __future__ import annotations

import bisect

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed._log_lines import SHOWN, Seen, holding, matching

_REPORT = lazy_pattern(
    r"(?:\[(?P<group>[^\[\]]{0,120}?)Rank (?P<rank>\d{1,6})\]\s{0,4})?Watchdog caught collective operation timeout:\s{0,4}"
    r"WorkNCCL\((?P<fields>.{0,300}?)Timeout\(ms\)=(?P<limit>\d{1,12})\)(?: ran for (?P<ran>\d{1,12}) milli)?"
)
_WATCHDOG = "Watchdog caught collective operation timeout"
_FIELD = lazy_pattern(r"(SeqNum|OpType|NumelIn|NumelOut)=(\w{1,40})")
_SHAPE = lazy_pattern(r"TensorShape=\[([\d, ]{0,80})\]")
_GUID = lazy_pattern(r"PG GUID (\S{1,80})")
_PROGRESS = lazy_pattern(
    r"\[(?P<group>[^\[\]]{0,120}?)Rank (?P<rank>\d{1,6})\].{0,700}?[Ll]ast enqueued(?: NCCL)? work: (?P<enqueued>-?\d{1,12}), "
    r"last completed(?: NCCL)? work: (?P<completed>-?\d{1,12})"
)
_POINT_TO_POINT = frozenset({"SEND", "RECV", "RECVANYSOURCE", "COALESCED", "UNKNOWN"})
_UNEVEN = frozenset({"GATHER", "SCATTER", "ALLTOALL", "ALLTOALL_BASE", "ALLGATHER", "REDUCE_SCATTER"})
"""Operations whose sizes may differ between ranks of one correct call."""


class Report(msgspec.Struct, frozen=True):
    """One rank's time-out. ``sizes`` are NumelIn and NumelOut (or the element count of a shape), empty when not printed."""

    seen: Seen
    rank: int | None
    group: str
    sequence: int | None
    operation: str
    sizes: tuple[int, ...]
    limit_ms: int
    ran_ms: int | None

    @property
    def call(self) -> str:
        """``ALLREDUCE of 4501504 elements``."""
        return f"{self.operation or 'a collective'} of {self.sizes[0]} elements" if self.sizes else self.operation


class Progress(msgspec.Struct, frozen=True):
    """How far one rank had come in a group when it was asked: numbers of the last enqueued and last completed work."""

    seen: Seen
    rank: int | None
    group: str
    enqueued: int
    completed: int


class Mismatch(msgspec.Struct, frozen=True):
    """Two reports of one sequence number that submit different calls. ``odd`` is the one that fewer ranks submit."""

    odd: Report
    other: Report
    is_same_group: bool
    """Both reports name the process group; the oldest layouts do not."""


def reports(case: Case) -> tuple[Report, ...]:
    """The first time-out that each rank reports of each sequence number of each group."""
    found: dict[tuple[int | None, str, int | None], Report] = {}
    for seen in holding(case, (_WATCHDOG,)):
        report = _report(seen, seen.line.text[:SHOWN]) or _report(seen, _unwrapped(case, seen))
        if report is not None:
            found.setdefault((report.rank, report.group, report.sequence), report)
    return tuple(found.values())


def _unwrapped(case: Case, seen: Seen) -> str:
    """A line that a paste wrapped, joined with the next ones of its process."""
    log = next(log for log in case.incident.logs if log.name == seen.place.path)
    at = bisect.bisect_left(log.lines, seen.line.number, key=lambda line: line.number)
    following = (line.text.strip()[:SHOWN] for line in log.lines[at : at + 4] if line.process == seen.line.process)
    return " ".join(following)


def _report(seen: Seen, text: str) -> Report | None:
    found = _REPORT.search(text)
    if found is None:
        return None
    fields = dict(_FIELD.findall(found["fields"]))
    ran = found["ran"]
    return Report(
        seen=seen,
        rank=_rank(seen, found["rank"]),
        group=_group(found["group"] or ""),
        sequence=int(fields["SeqNum"]) if fields.get("SeqNum", "").isdigit() else None,
        operation=fields.get("OpType", ""),
        sizes=_sizes(fields, found["fields"]),
        limit_ms=int(found["limit"]),
        ran_ms=int(ran) if ran else None,
    )


def _rank(seen: Seen, printed: str | None) -> int | None:
    """The global rank that the launcher prints before the line; the number inside is the rank within the group."""
    return seen.rank if seen.rank is not None else (int(printed) if printed else None)


def _group(head: str) -> str:
    """``3(tp)`` of ``PG ID 2 PG GUID 3(tp) ``: the GUID is the same on all ranks, the ID is local to one."""
    guid = _GUID.search(head)
    return guid.group(1) if guid else head.strip()


def _sizes(fields: dict[str, str], text: str) -> tuple[int, ...]:
    numbers = tuple(int(fields[name]) for name in ("NumelIn", "NumelOut") if fields.get(name, "").isdigit())
    shape = _SHAPE.search(text)
    if numbers or shape is None:
        return numbers
    count = 1
    for size in shape.group(1).split(","):
        count *= int(size) if size.strip().isdigit() else 1
    return (count,)


def progress(case: Case) -> tuple[Progress, ...]:
    """How far each rank had come, the last word of each rank in each group."""
    found: dict[tuple[int | None, str], Progress] = {}
    for seen in matching(case, _PROGRESS, ("last completed",)):
        rank, group = _rank(seen, seen.groups.get("rank")), _group(seen.groups.get("group", ""))
        found[rank, group] = Progress(seen, rank, group, int(seen.groups["enqueued"]), int(seen.groups["completed"]))
    return tuple(found.values())


def mismatch(of: tuple[Report, ...]) -> Mismatch | None:
    """Two ranks that submit different operations, or different sizes, under one sequence number of one group."""
    by_call: dict[tuple[str, int], list[Report]] = {}
    for report in of:
        if report.sequence is not None and report.rank is not None and report.operation not in _POINT_TO_POINT:
            by_call.setdefault((report.group, report.sequence), []).append(report)
    for (group, _), ranks in by_call.items():
        found = _difference(ranks)
        if found is not None:
            return Mismatch(*found, is_same_group=bool(group))
    return None


def _difference(ranks: list[Report]) -> tuple[Report, Report] | None:
    kinds: dict[tuple[str, tuple[int, ...]], list[Report]] = {}
    for report in ranks:
        sizes = () if report.operation.lstrip("_") in _UNEVEN else report.sizes
        kinds.setdefault((report.operation, sizes), []).append(report)
    if len(kinds) < 2 or len({report.rank for report in ranks}) < 2:
        return None
    ordered = sorted(kinds.values(), key=len)
    return ordered[0][0], ordered[-1][0] if ordered[-1] is not ordered[0] else ordered[1][0]
