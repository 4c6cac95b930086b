"""RDMA ports and paths that fail: which side says what, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

PORT = "prefill-2:311:405 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : mlx5_3:1 Got async error event: port error\n"
BACK = PORT.replace("port error", "port active")
TRACEBACK = 'WorkerProc hit an exception.\nTraceback (most recent call last):\n  File "/opt/vllm/v1/worker/gpu_worker.py", line 363, in execute_model\n    output = run(\n'
ERROR_12 = "node3:88:99 [4] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 192.0.2.9<45555> with error 12, opcode 0, len 0, vendor err 129 (Recv)\n"
NEWER_ERROR_12 = "node3:88:99 [4] transport/net_ib.cc:1896 NCCL WARN NET/IB: Got completion from peer 192.0.2.9<45555> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129 hca mlx5_2\n"
UCX = "ib_mlx5_log.c:171 UCX ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)\n"
MOONCAKE = "worker_pool.cpp:300] Worker: Process failed for slice (opcode: 0, local_nic: mlx5_bond_0, peer_nic: 192.0.2.3:15555@mlx5_bond_1): transport retry counter exceeded\n"
NO_PATH = "node3:88:99 [4] NCCL WARN Call to ibv_modify_qp failed with error Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3\n"
CABLE = "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged\n"


def test_a_port_that_failed_and_came_back(judge_report: Judge, finding: Find) -> None:
    judgement = judge_report(PORT + BACK + TRACEBACK)
    assert judgement.findings[0].cause == "rdma-link-fault"
    found = finding(judgement, "rdma-link-fault")
    assert (found.certainty, found.component) == (Certainty.PROVEN, "network")
    assert "port error" in found.evidence[0].quote
    assert "flaps" in found.evidence[1].statement
    assert (found.remedies[0].name, found.remedies[0].value) == ("NCCL_IB_HCA", "^mlx5_3:1")


@pytest.mark.parametrize("report", [ERROR_12, NEWER_ERROR_12, UCX, MOONCAKE, NO_PATH])
def test_a_peer_that_does_not_answer_is_likely_and_asks_its_node(
    judge_report: Judge, finding: Find, report: str
) -> None:
    found = finding(judge_report(report), "rdma-link-fault")
    assert found.certainty is Certainty.LIKELY
    assert found.missing[0].key == "kernel_log"


def test_the_peer_is_named_in_the_question(judge_report: Judge, finding: Find) -> None:
    assert "192.0.2.9" in finding(judge_report(ERROR_12), "rdma-link-fault").missing[0].why


def test_the_kernel_names_the_cable(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(CABLE + ERROR_12), "rdma-link-fault").certainty is Certainty.PROVEN


def test_roce_without_a_path_wants_another_address_first(judge_report: Judge, finding: Find) -> None:
    assert finding(judge_report(NO_PATH), "rdma-link-fault").remedies[0].name == "NCCL_IB_GID_INDEX"


def test_error_12_after_a_process_died_is_only_possible(judge_report: Judge, finding: Find) -> None:
    died = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: broken batch\n'
    found = finding(judge_report(died + ERROR_12), "rdma-link-fault")
    assert found.certainty is Certainty.POSSIBLE
    assert found.notes


@pytest.mark.parametrize(
    "report",
    [
        "node:1:1 [0] NCCL INFO NET/IB : No device found.\nRuntimeError: x\n",
        "node:1:1 [0] NCCL WARN NET/IB : Got completion from peer 192.0.2.9<4> with error 5, opcode 0, len 0, vendor err 249\n",
        "node:1:1 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n",
        "node:1:1 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 192.0.2.11<43213> failed : No route to host\n",
        "node:1:1 [0] NCCL WARN NET/IB : mlx5_3:1 Got async error event: GID table change\nRuntimeError: x\n",
    ],
)
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "rdma-link-fault" not in [each.cause for each in judge_report(report).findings]


def test_a_cable_that_nobody_misses_is_no_cause(judge_report: Judge) -> None:
    failed = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no such model\n'
    for report in (CABLE, CABLE + failed, "mlx5_core 0000:5e:00.1 ens1f1: Link down\n" + failed):
        assert "rdma-link-fault" not in [each.cause for each in judge_report(report).findings]


def test_a_port_error_beside_another_failure_is_only_possible(judge_report: Judge, finding: Find) -> None:
    failed = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no such model\n'
    assert finding(judge_report(PORT + failed), "rdma-link-fault").certainty is Certainty.POSSIBLE


def test_nvshmem_gets_no_queue_pair(judge_report: Judge, finding: Find) -> None:
    text = "/opt/nvshmem_src/src/modules/transport/ibgda/ibgda.cpp:2312: non-zero status: 7 ibgda_create_qp failed\n"
    found = finding(judge_report(text), "rdma-link-fault")
    assert found.certainty is Certainty.POSSIBLE
    assert found.missing
    told = {"kernel_log": ["mlx5_core 0000:18:00.0: Port module event: module 0, Cable unplugged"]}
    assert finding(judge_report(text, told), "rdma-link-fault").certainty is Certainty.LIKELY


def test_the_kernel_that_waits_for_another_node(judge_report: Judge) -> None:
    text = (
        "DeepEP timeout for combine RDMA sender, channel: 2, rank: 3, nvl: 1, dst RDMA lane: 0\n"
        "RuntimeError: CUDA error: unspecified launch failure\n"
    )
    first = judge_report(text).findings[0]
    assert (first.cause, first.certainty) == ("rdma-link-fault", Certainty.POSSIBLE)
