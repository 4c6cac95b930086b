"""Ranks that submit different collectives: every layout of the dumps, and the other programs that notice it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]


def dump(head: str, call: str) -> str:
    return f"{head} Watchdog caught collective operation timeout: WorkNCCL({call}, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"


OF_2_0 = dump("[Rank 0]", "SeqNum=55, OpType=ALLREDUCE, TensorShape=[1024, 4096]") + dump("[Rank 1]", "SeqNum=55, OpType=ALLREDUCE, TensorShape=[512, 4096]")  # fmt: skip
OF_2_1 = (
    dump("[Rank 0]", "SeqNum=9000, OpType=ALLREDUCE, NumelIn=100, NumelOut=100")
    + dump("[Rank 1]", "SeqNum=9000, OpType=ALLREDUCE, NumelIn=200, NumelOut=200")
    + dump("[Rank 2]", "SeqNum=9000, OpType=ALLREDUCE, NumelIn=100, NumelOut=100")
)
OF_2_4 = (
    dump("[rank1]:[E817 10:00:00.0 ProcessGroupNCCL.cpp:616] [PG ID 2 PG GUID 3(tp) Rank 1]", "SeqNum=881, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096")
    + dump("[rank0]:[E817 10:00:00.0 ProcessGroupNCCL.cpp:616] [PG ID 2 PG GUID 3(tp) Rank 0]", "SeqNum=881, OpType=BROADCAST, NumelIn=4096, NumelOut=4096")
)  # fmt: skip
GLOO = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 8192 vs 8\n"
CHECKED = "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=BROADCAST).\n"
MPI = "*** An error occurred in MPI_Bcast\n*** MPI_ERR_TRUNCATE: message truncated\n"


@pytest.mark.parametrize(
    ("report", "certainty"),
    [
        (OF_2_0, Certainty.LIKELY),
        (OF_2_1, Certainty.LIKELY),
        (OF_2_4, Certainty.PROVEN),
        (GLOO, Certainty.LIKELY),
        (CHECKED, Certainty.PROVEN),
        (MPI, Certainty.LIKELY),
    ],
)
def test_the_difference_is_found(judge_report: Judge, finding: Find, report: str, certainty: Certainty) -> None:
    judgement = judge_report(report)
    assert judgement.findings[0].cause == "collective-mismatch"
    assert finding(judgement, "collective-mismatch").certainty is certainty


def test_the_odd_rank_is_quoted_first(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(OF_2_1), "collective-mismatch")
    assert "[Rank 1]" in found.evidence[0].quote
    assert "NumelIn=100" in found.evidence[1].quote


def test_a_longer_limit_is_no_remedy(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(OF_2_4), "collective-mismatch")
    assert any("time-out" in each.what for each in found.not_remedies)
    assert not [each for each in found.remedies if "timeout" in each.name.lower()]


def test_one_rank_alone_asks_for_the_others(judge_report: Judge, finding: Find) -> None:
    report = dump("[Rank 3]", "SeqNum=9000, OpType=ALLREDUCE, NumelIn=100000, NumelOut=100000")
    found = finding(judge_report(report), "collective-mismatch")
    assert found.certainty is Certainty.POSSIBLE
    assert "Watchdog" in found.missing[0].command


@pytest.mark.parametrize(
    "report",
    [
        # the same call on both ranks
        dump("[PG ID 1 PG GUID 1 Rank 0]", "SeqNum=7, OpType=ALLREDUCE, NumelIn=9999, NumelOut=9999")
        + dump("[PG ID 1 PG GUID 1 Rank 1]", "SeqNum=7, OpType=ALLREDUCE, NumelIn=9999, NumelOut=9999"),
        # the two ends of one transfer
        dump("[PG ID 1 PG GUID 1 Rank 0]", "SeqNum=7, OpType=SEND, NumelIn=9999, NumelOut=9999")
        + dump("[PG ID 1 PG GUID 1 Rank 1]", "SeqNum=7, OpType=RECV, NumelIn=9999, NumelOut=9999"),
        # groups of their own
        dump("[PG ID 1 PG GUID 1(tp) Rank 0]", "SeqNum=7, OpType=ALLREDUCE, NumelIn=9999, NumelOut=9999")
        + dump("[PG ID 1 PG GUID 2(tp) Rank 1]", "SeqNum=7, OpType=ALLREDUCE, NumelIn=5555, NumelOut=5555"),
        # an exchange of uneven parts
        dump("[PG ID 1 PG GUID 1 Rank 0]", "SeqNum=7, OpType=ALLTOALL_BASE, NumelIn=9999, NumelOut=9999")
        + dump("[PG ID 1 PG GUID 1 Rank 1]", "SeqNum=7, OpType=ALLTOALL_BASE, NumelIn=5555, NumelOut=5555"),
    ],
)  # fmt: skip
def test_what_may_differ_is_no_mismatch(judge_report: Judge, report: str) -> None:
    findings = [each for each in judge_report(report).findings if each.cause == "collective-mismatch"]
    assert all(each.certainty is Certainty.POSSIBLE for each in findings)


def test_torchs_advice_is_no_evidence(judge_report: Judge) -> None:
    report = "[Rank 0] Received a dump signal due to a collective timeout from rank 5. This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, mismatched collective calls\nRuntimeError: x\n"
    assert "collective-mismatch" not in [each.cause for each in judge_report(report).findings]


def test_two_releases_of_nccl_are_another_cause(judge_report: Judge) -> None:
    report = "node:1:1 [0] bootstrap.cc:160 NCCL WARN Bootstrap : Message truncated : received 80 bytes instead of 64\n"
    assert [each.cause for each in judge_report(report).findings][:1] == ["nccl-version"]
