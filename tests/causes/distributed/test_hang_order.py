"""The order in which a hang is decided: each of its six questions answered with yes and with no."""

from __future__ import annotations

import pytest

from gpuwhy.causes import Case
from gpuwhy.causes.distributed._hang_order import Order, order
from gpuwhy.causes.distributed._watchdog import progress, reports
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.evidence import Evidence, Place
from gpuwhy.model.fact import Fact, Facts

STUCK = "[rank{0}]:[E817 10:00:00.0 ProcessGroupNCCL.cpp:616] [PG ID 2 PG GUID 3(tp) Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn={2}, NumelOut={2}, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"


def case_of(text: str, **facts: object) -> Case:
    known = {key: Fact(key, value, Evidence(key, str(value), Place("facts", key))) for key, value in facts.items()}
    return Case(find_incidents([read_bytes(text.encode(), "a.log")]), Facts(known), {})


def asked(text: str, **facts: object) -> Order:
    return order(case_of(text, **facts))


ALIKE = STUCK.format(0, 900, 50000) + STUCK.format(1, 900, 50000)
MISMATCH = STUCK.format(0, 900, 50000) + STUCK.format(1, 900, 70000)
FIRST = STUCK.format(0, 1, 1) + STUCK.format(1, 1, 1)
PORT_ERROR = "node:1:1 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : mlx5_3:1 Got async error event: port error\n"
BANNER = "Entering DeepGEMM JIT Pre-Compile session. It may take a long time\n"
DIED = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: too bad\n'
SERVED = 'INFO: 127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
CHOSE = "node:1:1 [0] NCCL INFO Bootstrap : Using eth0:192.0.2.8<0>\n"
COMPLETE = "node:1:1 [0] NCCL INFO ncclCommInitRank rank 0 nranks 2 - Init COMPLETE\n"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (MISMATCH, "a"),
        (FIRST, "b"),
        (DIED + ALIKE, "c"),
        (PORT_ERROR + ALIKE, "d"),
        (BANNER + ALIKE, "e"),
        (CHOSE, "f"),
        (CHOSE + COMPLETE, "f"),
        (ALIKE, ""),
        ("nothing of the kind\n", ""),
    ],
)
def test_the_first_question_answered_with_yes_decides(text: str, step: str) -> None:
    assert asked(text).decided_by == step


def test_a_different_calls() -> None:
    assert asked(MISMATCH).mismatch is not None
    assert asked(ALIKE).mismatch is None


def test_a_comes_before_everything_else() -> None:
    assert asked(BANNER + PORT_ERROR + MISMATCH).decided_by == "a"


def test_b_the_first_tiny_collective() -> None:
    assert asked(FIRST).first_collective is not None
    assert asked(STUCK.format(0, 1, 5_000_000)).first_collective is None
    assert asked(STUCK.format(0, 900, 1)).first_collective is None


def test_c_a_failure_before_the_first_watchdog_line() -> None:
    assert asked(DIED + ALIKE).earlier_failure is not None
    assert asked(ALIKE + DIED).earlier_failure is None


def test_d_a_link_that_failed() -> None:
    assert asked(PORT_ERROR + ALIKE).link is not None
    assert asked("NCCL WARN NET/IB : mlx5_3:1 Got async error event: GID table change\n" + ALIKE).link is None


def test_e_others_are_compiling() -> None:
    assert asked(BANNER + ALIKE).decided_by == "e"
    assert asked(ALIKE, processes=["rank 3: cicc and ptxas children"]).decided_by == "e"
    assert asked(ALIKE, processes=["nothing but sleeping workers"]).decided_by == ""


def test_e_is_no_answer_once_requests_were_served() -> None:
    assert asked(BANNER + SERVED + ALIKE).decided_by == ""


def test_f_where_the_output_stopped() -> None:
    assert asked(CHOSE).stage == "bootstrap"
    assert asked(CHOSE + COMPLETE).stage == "initialised"
    assert asked(CHOSE + SERVED).decided_by == ""
    assert asked("loading\n").stage == ""


@pytest.mark.parametrize(
    ("line", "rank", "group", "sequence", "operation", "sizes"),
    [
        ("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out.", 3, "", None, "ALLREDUCE", ()),
        ("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, TensorShape=[2, 8], Timeout(ms)=1800000) ran for 1 milliseconds", 3, "", 7, "BROADCAST", (16,)),
        ("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=8, Timeout(ms)=1) ran for 1 milliseconds", 3, "", 7, "_ALLGATHER_BASE", (4, 8)),
        ("[PG 1 Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=1)", 3, "PG 1", 7, "ALLREDUCE", (4, 4)),
        ("[rank9]:[E817 10:00:00.0 ProcessGroupNCCL.cpp:616] [PG ID 2 PG GUID 3(tp) Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=1)", 9, "3(tp)", 7, "ALLREDUCE", (4, 4)),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 1] Watchdog caught collective operation timeout:\nWorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4,\nNumelOut=4, Timeout(ms)=1)", 1, "0(default_pg)", 7, "ALLREDUCE", (4, 4)),
    ],
)  # fmt: skip
def test_the_dumps_of_every_release(
    line: str, rank: int, group: str, sequence: int | None, operation: str, sizes: tuple[int, ...]
) -> None:
    (report,) = reports(case_of(line + "\n"))
    assert (report.rank, report.group, report.sequence) == (rank, group, sequence)
    assert (report.operation, report.sizes) == (operation, sizes)


def test_how_far_a_rank_had_come() -> None:
    text = "[rank2]:[E817 10:00:00.0 ProcessGroupNCCL.cpp:670] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from rank 5 and we will try our best to dump the debug info. Last enqueued NCCL work: 7, last completed NCCL work: 6.\n"
    (found,) = progress(case_of(text))
    assert (found.rank, found.group, found.enqueued, found.completed) == (2, "0(default_pg)", 7, 6)
