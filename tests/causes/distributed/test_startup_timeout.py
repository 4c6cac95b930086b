"""Slow but healthy ranks: waits of several programs, and everything that must be excluded first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.model.finding import Certainty, Finding

Judge = Callable[..., Judgement]
Find = Callable[[Judgement, str], Finding]

READY = "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).\n"
LOADING = "ValueError: TP rank 3 could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.\n"
RUNNER = 'time=2025-08-01 level=ERROR source=sched.go:455 msg="error loading llama server" error="timed out waiting for llama runner to start - progress 0.42 - "\n'
PROBE = "Normal   Killing    2m  kubelet  Container vllm failed startup probe, will be restarted\n"
UNIT = "sglang.service: start operation timed out. Terminating.\n"
WATCHDOG = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90, OpType=ALLREDUCE, NumelIn=50000, NumelOut=50000, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
BANNER = "[2025-08-28 21:09:10 TP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time (typically 10-20 mins)\n"
COMPILERS = {"processes": ["rank 3: nvcc, cicc and ptxas children"]}


@pytest.mark.parametrize(
    ("report", "certainty", "remedy"),
    [
        (READY, Certainty.LIKELY, "VLLM_ENGINE_READY_TIMEOUT_S"),
        (LOADING, Certainty.POSSIBLE, "process-group or dispatch timeout"),
        (RUNNER, Certainty.LIKELY, "OLLAMA_LOAD_TIMEOUT"),
        (PROBE, Certainty.POSSIBLE, "startupProbe.failureThreshold"),
        (UNIT, Certainty.POSSIBLE, "TimeoutStartSec"),
        (BANNER + WATCHDOG, Certainty.POSSIBLE, "deep_gemm kernels"),
    ],
)
def test_each_wait_has_its_own_setting(
    judge_report: Judge, finding: Find, report: str, certainty: Certainty, remedy: str
) -> None:
    found = finding(judge_report(report), "startup-timeout")
    assert found.certainty is certainty
    assert remedy in [each.name for each in found.remedies]


def test_a_time_out_alone_asks_what_the_others_did(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(BANNER + WATCHDOG), "startup-timeout")
    assert [each.key for each in found.missing] == ["processes", "kernel_log"]
    assert "collective-mismatch" in found.rivals
    assert found.component == "deepgemm"
    assert found.evidence[0].quote.startswith("Entering DeepGEMM")


def test_compilers_at_the_moment_of_expiry_prove_it(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(BANNER + WATCHDOG, COMPILERS), "startup-timeout")
    assert found.certainty is Certainty.PROVEN
    assert any("cicc" in each.quote for each in found.evidence)


def test_weights_over_a_network_file_system(judge_report: Judge, finding: Find) -> None:
    found = finding(judge_report(LOADING, {"fs./models": "nfs4"}), "startup-timeout")
    assert (found.component, found.certainty) == ("storage", Certainty.LIKELY)
    assert "weights" in [each.name for each in found.remedies]


@pytest.mark.parametrize(
    ("report", "facts"),
    [
        # a rank died first
        ('Traceback (most recent call last):\n  File "a.py", line 1, in <module>\ntorch.OutOfMemoryError: CUDA out of memory.\n' + LOADING, {}),
        (LOADING, {"kernel_log": ["Out of memory: Killed process 77 (python3) total-vm:1kB"]}),
    ],
)  # fmt: skip
def test_a_rank_that_died_rules_it_out(judge_report: Judge, report: str, facts: dict[str, object]) -> None:
    judgement = judge_report(report, facts)
    assert "startup-timeout" not in [each.cause for each in judgement.findings]
    assert "startup-timeout" in [each.cause for each in judgement.ruled_out]


@pytest.mark.parametrize(
    "report",
    [
        # the other steps of the order
        WATCHDOG + WATCHDOG.replace("Rank 0", "Rank 1").replace("50000", "70000"),
        WATCHDOG.replace("SeqNum=90", "SeqNum=1").replace("50000", "1"),
        "node:1:1 [0] NCCL WARN NET/IB : mlx5_3:1 Got async error event: port error\n" + WATCHDOG,
        # it had served
        'INFO: 127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' + WATCHDOG,
        # ollama names a reason behind the colon
        'error="timed out waiting for llama runner to start: cudaMalloc failed: out of memory"\n',
    ],
)
def test_near_misses(judge_report: Judge, report: str) -> None:
    assert "startup-timeout" not in [each.cause for each in judge_report(report).findings]


def test_the_servers_own_first_request(judge_report: Judge, finding: Find) -> None:
    report = (
        "[2025-05-01 10:10:00] Initialization failed. warmup error: Traceback (most recent call last):\n"
        '  File "/opt/sglang/python/sglang/srt/entrypoints/http_server.py", line 1000, in _execute_server_warmup\n'
        "requests.exceptions.ReadTimeout: HTTPConnectionPool(host='127.0.0.1', port=30000): Read timed out. (read timeout=600)\n"
    )
    assert finding(judge_report(report), "startup-timeout").certainty is Certainty.POSSIBLE


def test_a_second_start_that_succeeds(judge_report: Judge, finding: Find) -> None:
    facts = {"tests.longer time-out": "the identical start succeeds"}
    assert finding(judge_report(BANNER + WATCHDOG, facts), "startup-timeout").certainty is Certainty.LIKELY


def test_loading_asks_after_the_storage(judge_report: Judge, finding: Find) -> None:
    assert "fs.MODEL_PATH" in [each.key for each in finding(judge_report(LOADING), "startup-timeout").missing]


def test_sglangs_own_watchdog_tells_nothing_of_why(judge_report: Judge, finding: Find) -> None:
    report = "[2025-12-01 11:00:03 TP0] Watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n[2025-12-01 11:00:08] Received sigquit from a child process. It usually means the child failed.\n"
    found = finding(judge_report(report), "startup-timeout")
    assert (found.certainty, found.component) == (Certainty.POSSIBLE, "sglang")
    assert {"collective-mismatch", "p2p-iommu"} <= set(found.rivals)
    assert [(each.name, each.value) for each in found.remedies] == [("--watchdog-timeout", "1200")]


def test_a_failure_before_that_watchdog_is_the_answer(judge_report: Judge) -> None:
    report = "RuntimeError: CUDA error: an illegal memory access was encountered\n[2025-12-01 11:00:03 TP0] Watchdog timeout (self.watchdog_timeout=300)\n"
    assert "startup-timeout" not in [found.cause for found in judge_report(report).findings]


def test_the_handshake_of_vllms_engines_has_a_constant_limit(judge_report: Judge, finding: Find) -> None:
    report = "RuntimeError: Did not receive response from front-end process within 5 minutes\n"
    found = finding(judge_report(report), "startup-timeout")
    assert (found.certainty, found.component) == (Certainty.POSSIBLE, "vllm")
    assert found.remedies[0].kind == "patch"


def test_an_announced_autotuning_is_the_earliest_sign(judge_report: Judge, finding: Find) -> None:
    tuning = "(Worker_TP3 pid=911) INFO 12-12 09:05:11 [autotuner.py:256] flashinfer.jit: [Autotuner]: Autotuning process starts ...\n"
    found = finding(judge_report(tuning + WATCHDOG), "startup-timeout")
    assert "Autotuning process starts" in found.evidence[0].quote
    assert found.component == "flashinfer"


def test_the_barrier_that_expires_is_no_rank_that_died(judge_report: Judge) -> None:
    barrier = "Traceback (most recent call last):\nRuntimeError: Rank 0 failed to pass monitoredBarrier in 300000 ms\n\nThe above exception was the direct cause of the following exception:\n\n"
    assert (
        judge_report(barrier + "Traceback (most recent call last):\n" + LOADING).findings[0].cause == "startup-timeout"
    )


def test_a_connection_that_waits_for_a_rank_that_still_loads(judge_report: Judge) -> None:
    text = "Loading safetensors checkpoint shards:  61% Completed | 99/163 [27:40<18:20, 17.20s/it]\nRuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete\n"
    assert judge_report(text).findings[0].cause == "startup-timeout"
