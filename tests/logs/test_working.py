"""Signs that a program is at its work, and what they say of what was complained of before."""

from __future__ import annotations

import time

import pytest

from gpuwhy.logs import read_bytes
from gpuwhy.logs.working import ANSWERS, ENOUGH, Work

POST = 'INFO:     192.0.2.7:53130 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def work(*lines: str) -> Work:
    return Work([read_bytes("\n".join(lines).encode(), "x")])


@pytest.mark.parametrize(
    "line",
    [
        POST,
        '203.0.113.9 - - [10/Oct/2026:13:56:32 +0000] "POST /v1/chat/completions HTTP/1.1" 200 2201 "-" "OpenAI/Python 1.40.0"',
        '[GIN] 2026/03/11 - 09:12:30 | 200 |  2.104917s |       127.0.0.1 | POST     "/api/chat"',
        "srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200",
        "[2026-11-29 10:06:30 TP0] Decode batch. #running-req: 1, #token: 137, gen throughput (token/s): 41.93, #queue-req: 0,",
        "INFO 10-14 08:14:00 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 31.0 tokens/s",
        "Output generated in 3.41 seconds (41.05 tokens/s, 140 tokens, context 61, seed 1893111)",
        "Prompt executed in 7.02 seconds",
        "[rank0]: step 20 loss 3.101 lr 1e-4",
        " [2026-06-11 06:02:01] iteration      100/  500000 | lm loss: 9.411E+00 | loss scale: 1.0 |",
        "{'loss': 1.9321, 'grad_norm': 3.1112, 'learning_rate': 1e-05, 'epoch': 0.01}",
        "Epoch 0:  50%|#####     | 100/200 [01:00<01:00,  1.66it/s, v_num=0, train_loss=1.210]",
        "[00:00.000 --> 00:04.820]  Good morning.",
        "n:1:1 [0] NCCL INFO comm 0x55 rank 0 nranks 2 - Init COMPLETE",
        "INFO:     Application startup complete.",
        "Successfully installed flash_attn-2.7.4",
        "-- Build files have been written to: /home/builder/build",
    ],
)
def test_a_line_that_shows_work(line: str) -> None:
    assert work("WARNING: something", line).last("x") == 2


@pytest.mark.parametrize(
    "line",
    [
        'INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error',
        "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1 reqs",
        "Loading safetensors checkpoint shards: 100% Completed | 61/61 [01:31<00:00,  1.51s/it]",
        "ERROR: Failed to build installable wheels",
        "step 200 failed",
        "",
    ],
)
def test_a_line_that_shows_none(line: str) -> None:
    assert work("WARNING: something", line).last("x") == 0


def test_a_log_that_nobody_knows() -> None:
    assert work(POST).last("y") == 0
    assert not work(POST).went_on("y", 0)


def test_some_answers_show_that_it_went_on() -> None:
    assert work("ValueError: a", *[POST] * ENOUGH).went_on("x", 1)
    assert not work("ValueError: a", POST).went_on("x", 1)
    assert not work(*[POST] * 9, "ValueError: a").went_on("x", 10)
    assert work("ValueError: a", "INFO:     Application startup complete.").went_on("x", 1)


def test_before_an_end_it_takes_more_of_them() -> None:
    assert work("ValueError: a", *[POST] * ANSWERS, "Killed").went_on("x", 1, ANSWERS + 2)
    assert not work("ValueError: a", *[POST] * (ANSWERS - 1), "Killed").went_on("x", 1, ANSWERS + 1)
    assert not work("ValueError: a", "Killed", *[POST] * 9).went_on("x", 1, 2)


@pytest.mark.parametrize(("second", "went_on"), [("03", False), ("55", True)])
def test_answers_within_seconds_of_the_end_were_under_way(second: str, went_on: bool) -> None:
    head = "ERROR 08-21 07:32:01 [core.py:1] ValueError: a"
    last = f"INFO 08-21 07:32:{second} [loggers.py:1] Avg generation throughput: 9.1 tokens/s"
    assert work(head, *[POST] * 9, last, "Killed").went_on("x", 1, 12) is went_on


def test_tests_that_passed_and_some_that_did_not() -> None:
    assert work("ERROR x", "=== 6 passed, 1 xfailed, 1 warning in 0.04s ===").has_passed("x", 1)
    assert not work("ERROR x", "=== 1 failed, 6 passed in 0.04s ===").has_passed("x", 1)


def test_work_before_a_line() -> None:
    assert work(POST, "KeyboardInterrupt").had_worked("x", 2)
    assert not work("INFO:     Application startup complete.", "KeyboardInterrupt", POST).had_worked("x", 2)


def test_many_questions_about_a_long_log_take_no_longer() -> None:
    lines = [POST if at % 2 else "ValueError: loss of 200 tokens" for at in range(40_000)]
    asked = work(*lines)
    begun = time.process_time()
    assert all(asked.went_on("x", at, 40_000) for at in range(30_000, 39_000, 3))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "unit", ["step ", "POST /v1", "| 200 |", "gen throughput: 0", "loss", "'loss", "Epoch 1 ", "saved "]
)
def test_lines_made_to_be_slow_are_not(unit: str) -> None:
    asked = work(*[f"{unit * 400} 200 loss" for _ in range(1000)], "ValueError: a")
    begun = time.process_time()
    asked.last("x")
    assert time.process_time() - begun < 5
