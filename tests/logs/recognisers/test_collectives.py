"""Process groups: what a watchdog's rank was in, the ranks side by side, NCCL's warnings, rendezvous, Gloo."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import events, incident, only, primary


def watchdog(rank: int, sequence: int, collective: str, numel: int) -> str:
    return (
        f"[rank{rank}]:[E517 09:11:02.401 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={sequence}, OpType={collective}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
    )


def test_what_the_rank_was_in() -> None:
    assert only(watchdog(5, 1320347, "ALLREDUCE", 8171520)).detail == {
        "rank": "5",
        "sequence": "1320347",
        "collective": "ALLREDUCE",
        "numel_in": "8171520",
        "numel_out": "8171520",
        "timeout_ms": "600000",
        "ran_ms": "600001",
        "level": "error",
    }


def test_the_rank_with_other_sizes_is_the_primary() -> None:
    text = watchdog(0, 7, "ALLREDUCE", 4) + watchdog(5, 7, "ALLREDUCE", 8) + watchdog(7, 7, "ALLREDUCE", 4)
    event = primary(text)
    assert event.detail["rank"] == "5"
    assert event.detail["ranks"] == "0: #7 ALLREDUCE of 4; 5: #7 ALLREDUCE of 8; 7: #7 ALLREDUCE of 4"
    assert event.detail["odd"] == "5"


def test_the_rank_that_is_behind_is_the_primary() -> None:
    event = primary(watchdog(0, 9, "ALLREDUCE", 4) + watchdog(1, 8, "ALLGATHER", 4) + watchdog(2, 9, "ALLREDUCE", 4))
    assert event.detail["rank"] == "1"


def test_equal_ranks_and_two_that_differ_accuse_nobody() -> None:
    equal = primary(watchdog(0, 7, "ALLREDUCE", 4) + watchdog(1, 7, "ALLREDUCE", 4))
    assert (equal.detail["rank"], "odd" in equal.detail, "differ" in equal.detail) == ("0", False, False)
    two = primary(watchdog(0, 7, "ALLREDUCE", 4) + watchdog(1, 7, "ALLREDUCE", 8))
    assert (two.detail["rank"], "odd" in two.detail, two.detail["differ"]) == ("0", False, "yes")


def test_the_state_of_a_group_only_repeats_the_timeout() -> None:
    event = only(
        "[rank0]:[E517 09:11:02.403 ProcessGroupNCCL.cpp:2270] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 7, last completed work: 6"
    )
    assert event.is_echo
    assert (event.detail["group"], event.detail["enqueued"], event.detail["completed"]) == ("0(default_pg)", "7", "6")


def test_nccl_warnings() -> None:
    event = only(
        "node1:100:120 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<49910> with status=12 opcode=0 len=0 vendor err 129 (Send)"
    )
    assert (event.kind, event.tool) == ("warning", "nccl")
    assert event.detail["site"] == "transport/net_ib.cc:1295"
    assert (event.detail["peer"], event.detail["status"], event.detail["vendor_error"]) == (
        "10.0.0.2<49910>",
        "12",
        "129",
    )


def test_layers_of_one_source_file_tell_of_one_failure() -> None:
    event = only(
        """\
        node1:1:2 [3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device
        node1:1:2 [3] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-1 (size 9637888)
        """
    )
    assert "segment nccl-shm-recv-1" in event.text


def test_the_warning_says_what_the_exception_does_not() -> None:
    event = primary(
        """\
        node1:1:2 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory
        RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)
        """
    )
    assert event.tool == "nccl"
    assert "ibv_reg_mr_iova2" in event.text


@pytest.mark.parametrize(
    ("line", "kind", "tool", "detail"),
    [
        (
            "[W socket.cpp:663] [c10d] The client socket has failed to connect to [node0]:29500 (errno: 111 - Connection refused).",
            "warning",
            "rendezvous",
            {"host": "node0", "port": "29500"},
        ),
        (
            "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500).",
            "exception",
            "rendezvous",
            {"host": "10.0.0.1", "port": "29500"},
        ),
        (
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
            "exception",
            "rendezvous",
            {},
        ),
        (
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/device.cc:83] Unable to find address for: eth9",
            "exception",
            "gloo",
            {},
        ),
    ],
)
def test_rendezvous_and_gloo(line: str, kind: str, tool: str, detail: dict[str, str]) -> None:
    event = only(line)
    assert (event.kind, event.tool) == (kind, tool)
    assert detail.items() <= event.detail.items()


def test_a_peer_that_is_gone_is_never_the_reason() -> None:
    line = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711"
    assert only(line).is_echo


def test_an_ordinary_nccl_log_says_nothing() -> None:
    found = incident("node1:1:2 [0] NCCL INFO Connected all rings\nnode1:1:2 [0] NCCL INFO NET/IB : No device found.\n")
    assert not found.is_failure
    assert all(event.is_echo for event in events("node1:1:2 [0] NCCL INFO NET/Plugin : No plugin found"))
