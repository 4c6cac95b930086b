"""collective-mismatch: ranks submit different collectives or sizes where all must submit the same."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.distributed._hang_order import Order, order
from gpuwhy.causes.distributed._watchdog import Mismatch, Report
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_ADVICE = lazy_pattern(r"most likely caused by incorrect usages|for some reason, didn't run|If you (?:believe|suspect)|may be a mismatch in collective|can be caused by", re.IGNORECASE)  # fmt: skip
"""torch and NCCL print the possibility as advice with every time-out."""
_GREETING = lazy_pattern(r"ootstrap|NCCL WARN Message truncated ?: received")
"""NCCL's words while the ranks meet; of the data path it says `message truncated : receiving`."""
_MULTIMODAL = lazy_pattern(r"multimodal|image|vision|mm_|pixel_values|\bVL\b|-VL-", re.IGNORECASE)


class Said(msgspec.Struct, frozen=True):
    """What shows the difference. ``by`` is its kind: ``dumps``, ``check``, ``truncated`` or ``progress``."""

    by: str
    certainty: Certainty
    decisive: Evidence
    other: Evidence | None = None
    match: Match | None = None
    strength: int = 80


@cause(
    "collective-mismatch",
    family="Distributed",
    leads_to=("startup-timeout",),
    signs=[
        says("watchdog", ("watchdog caught collective operation timeout", "last completed nccl work", "last completed work")),
        says(
            "checked",
            ("mismatch between collectives", "collectivefingerprint", "mismatched collective", "collectives differ", "mismatched input", "inconsistent collective"),
            r"Detected mismatch between collectives on ranks|CollectiveFingerPrint\(|Mismatched collective|Collectives differ in the following|(?:collective|op) type mismatch|Inconsistent collective",
        ),
        says(
            "analysed",
            ("not all ranks joining", "culprit rank", "size or syntax mismatch", "ranks have launched", "different collective", "out of sync"),
            r"Not all ranks join\w{0,4} collective|Culprit rank \d|(?:Size or syntax|Collective type|dtype|size) mismatch.{0,120}(?:rank|collective|entry)|ranks? ha(?:s|ve) launched up to operation \d|different collective(?:s| operations?)? (?:on|across|from|at) .{0,40}rank",
        ),
        says(
            "truncated",
            ("op.preamble.length", "message truncated", "mpi_err_truncate", "truncated message"),
            r"op\.preamble\.length <= op\.nbytes\.? ?(?P<got>\d{1,15}) vs\.? (?P<want>\d{1,15})|message truncated ?: receiv\w{2,3} (?P<got2>\d{1,15}) bytes instead of (?P<want2>\d{1,15})|MPI_ERR_TRUNCATE",
        ),
    ],
)  # fmt: skip
def collective_mismatch(case: Case) -> Judgement:
    """Ranks submit different collectives, or different sizes, where all must submit the same: a bug of the program.

    How it shows itself
      The NCCL watchdog ends the job after its limit, and the dumps of two ranks differ at one sequence number of one process
      group: another OpType, or another NumelIn. With Gloo `op.preamble.length <= op.nbytes. 8192 vs 8`, with MPI
      `MPI_ERR_TRUNCATE`, with TORCH_DISTRIBUTED_DEBUG=DETAIL `Detected mismatch between collectives on ranks`.

    Why it happens
      A collective ends when all ranks of the group have joined it with the same operation and size. Where the ranks of an
      engine disagree about the batch (chunked prefill of multimodal requests, data-parallel padding, a request that one rank
      aborted), one of them submits something else, and all wait for ever. GPUs and network are healthy.

    How to be sure
      The watchdog's line of every rank, not of one: compare SeqNum, OpType, NumelIn within one process group. The odd one
      out is the rank whose state was wrong. TORCH_NCCL_TRACE_BUFFER_SIZE=2000 keeps a record that names the call.

    What helps
      A release with the fix; until then without the feature that makes the ranks disagree.

    What does not help
      A longer NCCL time-out: the call can never complete. NCCL_P2P_DISABLE, NCCL_IB_DISABLE, another network card.

    Not to be confused with
      startup-timeout (all ranks submit the same, one comes late), p2p-iommu (the first tiny collective after initialisation),
      rdma-link-fault, nccl-version (`Message truncated` while the ranks meet: two releases of NCCL). A rank that died.
    """
    asked = order(case)
    said = _from_dumps(asked) or _from_check(case) or _from_sizes(case) or _from_progress(asked)
    if said is None:
        return _undecided(case, asked)
    evidence = (said.decisive, said.other) if said.other is not None else (said.decisive,)
    return Verdict(
        certainty=said.certainty,
        component=_component(case),
        title="Ranks submit different collectives: they can never complete",
        chain=(
            Link("The ranks disagree about the batch or about the next step", inferred("why they do, is a bug of the program")),
            Link("One rank submits another call than the rest", said.decisive),
            Link("Everybody waits until the limit, and the watchdog ends the job", said.other),
        ),
        evidence=evidence,
        explains=_explains(case, said.match),
        missing=_missing(said),
        rivals=() if said.certainty is Certainty.PROVEN else ("startup-timeout",),
        remedies=_remedies(case),
        not_remedies=_IN_VAIN,
        strength=said.strength,
    )  # fmt: skip


def _from_dumps(asked: Order) -> Said | None:
    found: Mismatch | None = asked.mismatch
    if found is None:
        return None
    odd, other = found.odd, found.other
    return Said(
        by="dumps",
        certainty=Certainty.PROVEN if found.is_same_group else Certainty.LIKELY,
        decisive=odd.seen.evidence(f"{_name(odd)} submits {odd.call} as number {odd.sequence}"),
        other=other.seen.evidence(f"{_name(other)} submits {other.call} under the same number"),
        strength=95,
    )


def _name(report: Report) -> str:
    return f"rank {report.rank}" + (f" of group {report.group}" if report.group else "")


def _from_check(case: Case) -> Said | None:
    match = next((m for m in case.all("checked", "analysed") if not m.is_code and not _ADVICE.search(m.text[:1600])), None)  # fmt: skip
    if match is None:
        return None
    is_check = match.sign == "checked"
    return Said(
        by="check",
        certainty=Certainty.PROVEN if is_check else Certainty.LIKELY,
        decisive=case.evidence(match, "a comparison of the ranks' calls found the difference"),
        match=match,
        strength=90,
    )


def _from_sizes(case: Case) -> Said | None:
    """A transport that received more bytes than its rank waits for."""
    match = next((m for m in case.all("truncated") if not m.is_code and not _GREETING.search(m.text)), None)
    if match is None:
        return None
    got, want = match.group("got") or match.group("got2"), match.group("want") or match.group("want2")
    sizes = f": {got} bytes arrive, {want} are awaited" if got and want else ""
    return Said(
        by="truncated",
        certainty=Certainty.LIKELY,
        decisive=case.evidence(match, f"a peer sends another size than this rank awaits{sizes}"),
        match=match,
        strength=75,
    )


def _from_progress(asked: Order) -> Said | None:
    """Two ranks of one group that time out in different calls: one of them left a call out, or made one more."""
    by_group: dict[str, list[Report]] = {}
    for report in asked.reports:
        if report.sequence is not None and report.group and report.rank is not None:
            by_group.setdefault(report.group, []).append(report)
    for ranks in by_group.values():
        lowest = min(ranks, key=lambda r: r.sequence or 0)
        highest = max(ranks, key=lambda r: r.sequence or 0)
        if lowest.rank != highest.rank and lowest.sequence != highest.sequence:
            return Said(
                by="progress",
                certainty=Certainty.POSSIBLE,
                decisive=lowest.seen.evidence(f"{_name(lowest)} waits in call {lowest.sequence}"),
                other=highest.seen.evidence(f"{_name(highest)} waits in call {highest.sequence}"),
                strength=55,
            )
    return None


def _undecided(case: Case, asked: Order) -> Judgement:
    """A time-out in the middle of serving, of which too few ranks are shown to compare."""
    if not asked.reports or asked.decided_by in ("b", "c", "d", "e") or asked.other_failure is not None:
        return None
    ranks = {report.rank for report in asked.reports}
    if len(ranks) > 1 and not asked.was_serving:
        return None  # they were compared, and are equal
    first = asked.reports[0]
    seen = first.seen.evidence(f"rank {first.rank} waits in vain for the others in {first.call or 'a collective'}")
    others = Missing("journal", "grep -h 'Watchdog caught collective' LOG_OF_EVERY_RANK", "whether all ranks wait in the same call: SeqNum, OpType and NumelIn of each")  # fmt: skip
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component=_component(case),
        title="A collective timed out; whether the ranks submitted the same is not shown",
        evidence=(seen,),
        explains=_explains(case, None),
        missing=(others,),
        rivals=("p2p-iommu", "startup-timeout", "rdma-link-fault"),
        remedies=_remedies(case),
        not_remedies=_IN_VAIN[1:],
        strength=30,
    )


def _component(case: Case) -> str:
    if case.engine:
        return case.engine
    if any(line.raw.find("sigquit") >= 0 for _, line in case.lines()):
        return "sglang"  # its launcher's words, and nobody else's
    return "user-program"


def _explains(case: Case, match: Match | None) -> tuple[int, ...]:
    return case.explains(match, *case.all("watchdog"))


def _missing(said: Said) -> tuple[Missing, ...]:
    if said.by != "progress":
        return ()
    return (Missing("journal", "grep -h 'Watchdog caught collective' LOG_OF_EVERY_RANK", "which call the rank that is behind left out"),)  # fmt: skip


def _remedies(case: Case) -> tuple[Remedy, ...]:
    engine = _component(case)
    newer = Remedy(
        kind="package",
        name=engine,
        value="newer",
        summary="A release in which the ranks agree; report it with the dumps of all ranks if the newest one does it too",
        is_sure=False,
    )
    if engine == "user-program":
        newer = Remedy(kind="patch", name="user program", value="same collectives on all ranks", summary="Let every rank of the group make the same calls with the same sizes")  # fmt: skip
    near = [line.text for _, line in case.lines()]
    if any(_MULTIMODAL.search(text[:300]) for text in near):
        chunked = Remedy(kind="config", name="chunked prefill of multimodal requests", value="off", summary="Do not split prompts that hold images (--chunked-prefill-size -1)", cost="long prompts delay others", is_sure=False)  # fmt: skip
        return (chunked, newer)
    return (newer,)


_IN_VAIN = (
    NotARemedy("a longer NCCL time-out", "calls that differ never complete"),
    NotARemedy("NCCL_P2P_DISABLE, NCCL_IB_DISABLE, another interface", "the network carries what it is given"),
)
