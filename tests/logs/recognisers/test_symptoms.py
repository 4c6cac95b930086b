"""Failures without an error: hangs and wrong answers; and what only looks like one."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import events, incident, primary


@pytest.mark.parametrize(
    "text",
    [
        "INFO 08-03 17:45:41 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.\n" * 3,
        "[2025-08-12 10:00:00 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        "[2025-08-12 10:00:00 TP0] Watchdog timeout (self.watchdog_last_forward_ct=1234.5)\n[2025-08-12 10:00:05] Received sigquit from a child process.",
        'Thread 4711 (active): "MainThread"\n    wait_for_engine_startup (vllm/v1/engine/core_client.py:600)\nThread 4720 (idle): "Thread-1"\n    wait (threading.py:327)',
        "Timeout (0:10:00)!\nThread 0x00007fc1a8a14c40 (most recent call first):\n  File \"x.py\", line 1 in <module>",
        "The server hangs at startup, nothing in the log after Init COMPLETE.\nNCCL INFO Init COMPLETE",
        "It just hangs forever and never responds.",
        "# two-rank all_reduce: no output after NCCL init",
        "After the first request the engine is stuck, GPU utilisation 100 %",
    ],
)  # fmt: skip
def test_a_hang_is_a_failure(text: str) -> None:
    assert primary(text).tool == "hang"


@pytest.mark.parametrize(
    "text",
    [
        'output: "!!!!!!!!!!!!!!!!!!!!!!!!"',
        "Since the update the model returns gibberish for every prompt.",
        "With flashinfer we get garbage output, with triton it is fine.",
        "wrong results from the fp8 kernel on sm_120",
        "gsm8k accuracy drops from 0.88 to 0.00",
    ],
)
def test_wrong_answers_are_a_failure(text: str) -> None:
    assert primary(text).tool == "output"


def test_an_error_goes_before_what_the_reporter_says() -> None:
    event = primary("Then it just hangs forever.\nRuntimeError: CUDA error: an illegal memory access was encountered\n")
    assert event.kind == "exception"


def test_the_rows_of_a_table_are_one_statement() -> None:
    event = primary("| arm | score | non-terminal errors |\n| --- | --- | --- |\n| stock | 0.000 | 196 |\nnext line\n")
    assert (event.span.first, event.span.last) == (1, 3)


@pytest.mark.parametrize(
    "line",
    [
        "Capturing CUDA graphs (PIECEWISE): 100%|##########| 7/7 [00:04<00:00, 1.64it/s]",
        "INFO 08-03 17:45:41 [x.py:1] gc.freeze: garbage collection frozen after warm-up",
        "INFO 08-03 17:45:41 [x.py:1] watchdog_timeout=300",
        "--watchdog-timeout 300",
        "[2026-11-29 10:04:09] server_args=ServerArgs(model_path='/m', watchdog_timeout=300)",
        "Set this to avoid a hang on shutdown",
        "############ start ############",
        "mmlu accuracy: 0.71",
        "node1:1:2 [0] NCCL INFO comm hang detection enabled",
    ],
)
def test_what_only_looks_like_one(line: str) -> None:
    assert [event for event in events(line) if event.tool in ("hang", "output")] == []


def test_a_stall_that_passed_is_no_failure() -> None:
    found = incident(
        """\
        INFO 08-03 17:45:41 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.
        INFO:     Application startup complete.
        INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK
        """
    )
    assert not found.is_failure
