"""ulimit: limits of the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate import diagnose_log
from gpuwhy.model.finding import Certainty, Finding
from gpuwhy.remedies import prescribe

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]
CAUSE = "ulimit"


def names(judgement: Judgement) -> list[str]:
    return [found.cause for found in judgement.findings]


def proposed(found: Finding) -> list[tuple[str, str, str]]:
    return [(remedy.kind, remedy.name, remedy.value) for remedy in found.remedies]


VERBS = "worker-0:7100:7172 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n"


@pytest.mark.parametrize("text", [
    VERBS,
    "NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory errno 12\n",
    "E0101 rdma_context.cpp:201] Failed to register memory 0x7f0: Cannot allocate memory [12]\n",
    "NCCL WARN NET/OFI Unable to register memory (type = 2) for device 0. RC: -12, Error: Cannot allocate memory\n",
])  # fmt: skip
def test_memory_that_cannot_be_pinned_asks_for_the_limit(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.POSSIBLE
    assert found.component == "process-limits"
    assert found.missing[0].key == "memlock"
    assert "host-kernel-bug" in found.rivals


@pytest.mark.parametrize("limit", ["8192 kB", "64 kB", "65536", "64 MB"])
def test_a_low_limit_proves_it(judge_report: Judge, finding: Find, limit: str) -> None:
    found = finding(judge_report(VERBS, {"memlock": limit}), CAUSE)
    assert found.certainty is Certainty.PROVEN
    assert ("flag", "--ulimit", "memlock=-1:-1") in proposed(found)
    assert ("config", "LimitMEMLOCK", "infinity") in proposed(found)


@pytest.mark.parametrize("limit", ["unlimited", "infinity", "18446744073709551615"])
def test_an_unlimited_process_rules_it_out(judge_report: Judge, limit: str) -> None:
    judgement = judge_report(VERBS, {"memlock": limit})
    assert CAUSE in [excluded.cause for excluded in judgement.ruled_out]
    assert names(judgement)[0] == "host-kernel-bug"


def test_the_program_names_the_limit(judge_report: Judge, finding: Find) -> None:
    text = "ib_md.c:282  UCX  ERROR ibv_reg_mr(address=0x7f, length=1048576, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 8192 kbytes)\n"  # fmt: skip
    assert finding(judge_report(text), CAUSE).certainty is Certainty.LIKELY


@pytest.mark.parametrize("text", [
    "OSError: [Errno 24] Too many open files\n",
    "RuntimeError: unable to open shared memory object </torch_32_1_2> in read-write mode: Too many open files (24)\n",
    "zmq.error.ZMQError: Too many open files\n",
    "http: Accept error: accept tcp [::]:11434: accept4: too many open files; retrying in 1s\n",
])  # fmt: skip
def test_open_files(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is Certainty.PROVEN
    assert ("config", "LimitNOFILE", "1048576") in proposed(found)


@pytest.mark.parametrize("text", [
    "RuntimeError: can't start new thread\n",
    "libgomp: Thread creation failed: Resource temporarily unavailable\n",
    "OpenBLAS blas_thread_init: pthread_create failed for thread 42 of 64: Resource temporarily unavailable\n",
    "runtime: failed to create new OS thread (have 22 already; errno=11)\n",
])  # fmt: skip
def test_threads(judge_report: Judge, finding: Find, text: str) -> None:
    judgement = judge_report(text)
    found = finding(judgement, CAUSE)
    assert names(judgement)[0] == CAUSE
    assert found.certainty is not Certainty.PROVEN
    assert ("flag", "--pids-limit", "-1") in proposed(found)


def test_watches_are_the_kernels_limit(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report("Error: ENOSPC: System limit for number of file watchers reached, watch '/app'\n"), CAUSE)  # fmt: skip
    assert proposed(found) == [("kernel", "fs.inotify.max_user_watches", "1048576")]


@pytest.mark.parametrize("text", [
    "WARNING [utils.py:72] Found ulimit of 1024 and failed to automatically increase with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n\ntorch.OutOfMemoryError: CUDA out of memory.\n",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 13631488000 bytes. Error code 12 (Cannot allocate memory)\n",
    "NCCL WARN NET/IB : Got completion from peer 192.0.2.1<1> with error 12, opcode 0, len 0, vendor err 129\n",
    "ImportError: /opt/x.so: cannot allocate memory in static TLS block\n",
    "zmq.error.Again: Resource temporarily unavailable\n",
])  # fmt: skip
def test_near_misses(judge_report: Judge, text: str) -> None:
    assert CAUSE not in names(judge_report(text))


def test_editing_limits_conf_alone_does_not_help(judge_report: Judge, finding: Find) -> None:
    assert any("limits.conf" in each.what for each in finding(judge_report(VERBS), CAUSE).not_remedies)


def test_where_no_unit_is_known_the_limits_of_logins_come_first_with_their_commands(
    judge_report: Judge, finding: Find
) -> None:
    first = next(each for each in finding(judge_report(VERBS), CAUSE).remedies if "limits.conf" in each.name)
    assert (
        first.commands[0]
        == "printf '%s\\n' '* soft memlock unlimited' '* hard memlock unlimited' > /etc/security/limits.d/50-gpuwhy-memlock.conf"
    )
    assert first.undo[0] == "rm /etc/security/limits.d/50-gpuwhy-memlock.conf"


def test_of_a_unit_its_own_limit_comes_first() -> None:
    lines = [
        {
            "_SYSTEMD_UNIT": "vllm.service",
            "MESSAGE": VERBS.strip(),
            "__REALTIME_TIMESTAMP": "1700000000000000",
            "_PID": "7",
            "PRIORITY": "6",
        },
        {
            "_SYSTEMD_UNIT": "init.scope",
            "UNIT": "vllm.service",
            "MESSAGE": "vllm.service: Main process exited, code=exited, status=1/FAILURE",
            "__REALTIME_TIMESTAMP": "1700000001000000",
            "_PID": "1",
            "PRIORITY": "4",
        },
    ]
    export = "".join("".join(f"{key}={value}\n" for key, value in line.items()) + "\n" for line in lines)
    diagnosis = prescribe(diagnose_log(export.encode(), "journal.export"))
    assert diagnosis.incident.unit == "vllm.service"
    first = diagnosis.findings[0].remedies[0]
    assert (first.name, first.value) == ("LimitMEMLOCK", "infinity")
    assert any("LimitMEMLOCK=infinity" in each for each in first.commands)
