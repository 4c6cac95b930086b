"""Every family of prefix: what comes off, what it tells, and what must stay."""

from __future__ import annotations

import calendar

import pytest

from gpuwhy.logs.lines import split_lines
from gpuwhy.logs.prefixes import peel
from gpuwhy.model.event import LogLine, Process

REFERENCE = float(calendar.timegm((2026, 12, 1, 0, 0, 0)))


def at(year: int, month: int, day: int, hour: int, minute: int, second: float) -> float:
    return calendar.timegm((year, month, day, hour, minute, 0)) + second


@pytest.mark.parametrize(
    ("line", "text", "process", "time", "level"),
    [
        (
            "(EngineCore_DP0 pid=88) INFO 08-03 17:45:53 [gpu_worker.py:378] Using V2 Model Runner",
            "Using V2 Model Runner",
            Process("EngineCore_DP0", 88),
            at(2026, 8, 3, 17, 45, 53),
            "info",
        ),
        (
            "(Worker pid=1360049) (Worker_TP3 pid=1360049) ERROR 03-05 09:56:09 [multiproc_executor.py:880]     self.load()",
            "    self.load()",
            Process("Worker_TP3", 1360049, 3),
            at(2026, 3, 5, 9, 56, 9),
            "error",
        ),
        (
            "(Worker pid=123) ERROR 11-29 10:00:00 CUDA out of memory",
            "CUDA out of memory",
            Process("Worker", 123),
            at(2026, 11, 29, 10, 0, 0),
            "error",
        ),
        (
            '(EngineCore_DP0 pid=88) ERROR 11-29 10:00:00   File "/a/b.py", line 3, in run',
            '  File "/a/b.py", line 3, in run',
            Process("EngineCore_DP0", 88),
            at(2026, 11, 29, 10, 0, 0),
            "error",
        ),
        ("WARNING 11-29 10:00:00.250 - slow", "slow", None, at(2026, 11, 29, 10, 0, 0), "warning"),
        ("(Worker pid=123) ERROR 11-29 10:00:00", "", Process("Worker", 123), at(2026, 11, 29, 10, 0, 0), "error"),
        (
            "(VllmWorker rank=6 pid=1410773) ERROR 05-02 07:54:19 [multiproc_executor.py:435] ValueError: no",
            "ValueError: no",
            Process("VllmWorker", 1410773, 6),
            at(2026, 5, 2, 7, 54, 19),
            "error",
        ),
        (
            "(vllm-test, pid=2150) (EngineCore_0 pid=3966) RuntimeError: x",
            "RuntimeError: x",
            Process("EngineCore_0", 3966),
            None,
            "",
        ),
        (
            "(ServeReplica:app:LLM-8B pid=4288, ip=192.0.2.6)     self.run()",
            "    self.run()",
            Process("ServeReplica:app:LLM-8B", 4288, None, "192.0.2.6"),
            None,
            "",
        ),
        (
            "(RayWorkerWrapper pid=5) hello [repeated 7x across cluster]",
            "hello",
            Process("RayWorkerWrapper", 5),
            None,
            "",
        ),
        ("(raylet) The node is over 95% full", "The node is over 95% full", Process("raylet"), None, ""),
        (
            "            (EngineCore pid=3) ERROR 09-23 10:35:19 [core.py:1374]  /usr/bin/nvcc -c",
            " /usr/bin/nvcc -c",
            Process("EngineCore", 3),
            at(2026, 9, 23, 10, 35, 19),
            "error",
        ),
        ('[rank0]:   File "x.py", line 1, in f', '  File "x.py", line 1, in f', Process("rank0", None, 0), None, ""),
        ("[trainer0|0]:Last error:", "Last error:", Process("trainer0", None, 0), None, ""),
        (
            "[2026-11-29 10:07:46 TP0] Scheduler hit an exception",
            "Scheduler hit an exception",
            Process("TP0", None, 0),
            at(2026, 11, 29, 10, 7, 46),
            "",
        ),
        (
            "[2025-08-28 21:09:10 DP0 TP4 EP4] Entering",
            "Entering",
            Process("DP0 TP4 EP4", None, 4),
            at(2025, 8, 28, 21, 9, 10),
            "",
        ),
        (
            '2025-08-28 21:19:34 ERROR 125765 [ DP10 TP10 EP10 scheduler.py:2655]   File "x", line 3',
            '  File "x", line 3',
            Process("DP10 TP10 EP10", None, 10),
            at(2025, 8, 28, 21, 19, 34),
            "error",
        ),
        ("[ 2882.100153] Out of memory", "Out of memory", None, None, ""),
        ("[Thu Aug 27 00:39:44 2026] NVRM: Xid", "NVRM: Xid", None, at(2026, 8, 27, 0, 39, 44), ""),
        (
            "[rank5]:[E901 04:21:02 ProcessGroupNCCL.cpp:685] [Rank 5] Watchdog",
            "[Rank 5] Watchdog",
            Process("rank5", None, 5),
            at(2026, 9, 1, 4, 21, 2),
            "error",
        ),
        ("[W CudaIPCTypes.cpp:15] Producer", "Producer", None, None, "warning"),
        ("[11/10/2023-11:41:34] [TRT-LLM] [E] bad", "bad", None, at(2023, 11, 10, 11, 41, 34), "error"),
        (
            "2025-07-29 00:56:18,372 - INFO - flashinfer.jit: Fetching",
            "flashinfer.jit: Fetching",
            None,
            at(2025, 7, 29, 0, 56, 18.372),
            "info",
        ),
        (
            "2025-10-30T21:54:45.5Z 2025-10-30 21:54:45,628 - lib.pipeline - ERROR - Failed",
            "Failed",
            None,
            at(2025, 10, 30, 21, 54, 45.5),
            "error",
        ),
        ("2025-10-30T21:54:45.6Z     5 | #include", "    5 | #include", None, at(2025, 10, 30, 21, 54, 45.6), ""),
        ("2024-01-01T00:00:00.0Z stdout F   File", "  File", None, at(2024, 1, 1, 0, 0, 0), ""),
        ("2024-01-01T02:00:00+02:00 hello", "hello", None, at(2024, 1, 1, 0, 0, 0), ""),
        (
            "2024-01-01 12:00:00.250 | ERROR    | my.mod:fn:42 - boom",
            "boom",
            None,
            at(2024, 1, 1, 12, 0, 0.25),
            "error",
        ),
        (
            "2020-06-29 22:20:24.5: I tensorflow/core/x.cc:42] ok",
            "ok",
            None,
            at(2020, 6, 29, 22, 20, 24.5),
            "info",
        ),
        (
            "2026-11-29T10:07:46+0000 gpu-host sglang[123]: hello",
            "hello",
            Process("sglang", 123, None, "gpu-host"),
            at(2026, 11, 29, 10, 7, 46),
            "",
        ),
        (
            "Feb 24 09:28:18 node-1 systemd[1]: Started x.service.",
            "Started x.service.",
            Process("systemd", 1, None, "node-1"),
            at(2026, 2, 24, 9, 28, 18),
            "",
        ),
        (
            "Dec 24 09:28:18 node-1 kernel: NVRM: x",
            "NVRM: x",
            Process("kernel", None, None, "node-1"),
            at(2025, 12, 24, 9, 28, 18),
            "",
        ),
        ("nv-fabricmanager[3228]: bad", "bad", Process("nv-fabricmanager", 3228), None, ""),
        ("18:03:03  kernel: NVRM: Check failed", "NVRM: Check failed", Process("kernel"), None, ""),
        ("0.17.512.848 E CUDA error: no", "CUDA error: no", None, None, "error"),
        (
            "worker-0:7100:7172 [0] misc/ibvwrap.cc:278 NCCL WARN Call failed",
            "misc/ibvwrap.cc:278 NCCL WARN Call failed",
            Process("", 7100, None, "worker-0"),
            None,
            "warning",
        ),
        ("ERROR:        mkdir(name, mode)", "    mkdir(name, mode)", None, None, "error"),
        ("INFO:     Started server process [1]", "Started server process [1]", None, None, "info"),
        ("ERROR:vllm.engine:boom", "boom", None, None, "error"),
        ("ERRO[0000] error waiting", "error waiting", None, None, "error"),
        ("WARNING [model.py] User-specified", "User-specified", None, None, "warning"),
        ("ERROR ... [gpu_model_runner.py:5403] Failed", "Failed", None, None, "error"),
        ("INFO 04-13 12:07:28 config.py:217] Using", "Using", None, at(2026, 4, 13, 12, 7, 28), "info"),
        ("E0619 10:02:11.123456  4711 server.cc:42] bad", "bad", None, at(2026, 6, 19, 10, 2, 11), "error"),
        (
            'time=2024-08-01T10:00:00.000Z level=ERROR source=sched.go:455 msg="error loading" error="x y"',
            'error loading error="x y"',
            None,
            at(2024, 8, 1, 10, 0, 0),
            "error",
        ),
        (
            '{"log":"Traceback (most recent call last):\\n","stream":"stderr","time":"2024-01-01T00:00:00.5Z"}',
            "Traceback (most recent call last):",
            None,
            at(2024, 1, 1, 0, 0, 0.5),
            "",
        ),
        ("Worker_TP0 ERROR ... boom", "boom", Process("Worker_TP0", None, 0), None, "error"),
    ],
)
def test_comes_off(line: str, text: str, process: Process | None, time: float | None, level: str) -> None:
    assert peel(line, REFERENCE) == (text, process, pytest.approx(time) if time is not None else None, level)


@pytest.mark.parametrize(
    "line",
    [
        '  File "/opt/x.py", line 3, in f',
        "(container) $ nvidia-smi -L",
        "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
        "E   ImportError: x",
        "Error: exception error loading model",
        "[1/4] nvcc -c x.cu",
        "[sgl_kernel] CRITICAL: Could not load",
        "[TensorRT-LLM][ERROR] Assertion failed",
        "[Errno 2] No such file",
        "| stock | 0.000 | 196 |",
        '{"error":{"message":"nested"}}',
        "2. set --cuda-graph-max-bs to a smaller value",
        "      ^^^^^^^^^^^^",
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.",
        "(hangs here, no further output)",
        "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        "",
        "(",
        "[",
        "{",
    ],
)
def test_stays(line: str) -> None:
    assert peel(line, REFERENCE) == (line, None, None, "")


def texts(text: str) -> list[str]:
    return [line.text for line in split_lines(text, REFERENCE)[0]]


def test_docker_compose() -> None:
    lines, _ = split_lines("vllm-1  | INFO:     up\nvllm-1  |   File\nother text", REFERENCE)
    assert [line.text for line in lines] == ["up", "  File", "other text"]
    assert lines[0].process == Process("vllm-1")


def test_docker_compose_with_a_name_of_its_own() -> None:
    text = "\n".join(["server  | INFO:     up"] * 5)
    assert texts(text) == ["up"] * 5


def test_a_table_is_no_docker_compose() -> None:
    assert texts("arm | errors\nstock | 196\nbare text\nmore\nmore") == [
        "arm | errors",
        "stock | 196",
        "bare text",
        "more",
        "more",
    ]


def test_unknown_prefix_is_learnt_from_tracebacks_behind_it() -> None:
    text = (
        "Some tool error: Traceback (most recent call last):\n"
        'Some tool error:   File "a.py", line 1, in a\n'
        "Some tool error:     b()\n"
        'Some tool error:   File "b.py", line 2, in b\n'
        "Some tool error: RuntimeError: boom\n"
    )
    assert texts(text) == [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in a',
        "    b()",
        '  File "b.py", line 2, in b',
        "RuntimeError: boom",
    ]


def test_a_json_record_of_several_lines_keeps_its_number() -> None:
    lines, _ = split_lines('ok\n{"level": "ERROR", "message": "Traceback\\n  File"}\nend', REFERENCE)
    assert [(line.number, line.text, line.level) for line in lines] == [
        (1, "ok", ""),
        (2, "Traceback", "error"),
        (2, "  File", "error"),
        (3, "end", ""),
    ]


def test_raw_is_the_line_as_it_stood() -> None:
    (line,), _ = split_lines("\x1b[31m(APIServer pid=7)\x1b[0m INFO:     Shutting down", REFERENCE)
    assert line == LogLine(
        1, "Shutting down", "(APIServer pid=7) INFO:     Shutting down", Process("APIServer", 7), None, "info"
    )


def test_progress_bar_that_overwrites_itself() -> None:
    assert texts("Loading:   0%|  | 0/2\rLoading: 100%|##| 2/2\nnext") == ["Loading: 100%|##| 2/2", "next"]
    assert texts("Loading: 50%|# | 1/2\rRuntimeError: boom\rLoading: 50%|# | 1/2\n") == ["RuntimeError: boom"]


def test_29_february_without_a_year() -> None:
    assert peel("Feb 29 01:02:03 h kernel: x", REFERENCE)[2] == at(2024, 2, 29, 1, 2, 3)
