"""Prefixes that could not be produced here, written as the programs' own format strings print them."""

from __future__ import annotations

import calendar
import json

import pytest

from gpuwhy.logs import journal_lines
from gpuwhy.logs.lines import split_lines
from gpuwhy.logs.prefixes import peel
from gpuwhy.model.event import Process

REFERENCE = float(calendar.timegm((2026, 12, 1, 0, 0, 0)))
NOON = float(calendar.timegm((2026, 11, 29, 10, 7, 46)))
SHORT = NOON + 0.123


@pytest.mark.parametrize(
    ("prefix", "process", "time", "level"),
    [
        # SGLang, vLLM and their launchers
        ("[2026-11-29 10:07:46 DP1 TP3 EP1] ", Process("DP1 TP3 EP1", rank=3), NOON, ""),
        ("[2026-11-29 10:07:46 TP3 ATTN_CP_RANK0] ", Process("TP3 ATTN_CP_RANK0", rank=3), NOON, ""),
        ("(EngineCore_0 pid=88) ", Process("EngineCore_0", 88), None, ""),
        ("[1,3]<stderr>:", Process("task 3", rank=3), None, ""),
        ("[1,3]<stdout>: ", Process("task 3", rank=3), None, ""),
        # Ray
        ("(MyActor(1) pid=88) ", Process("MyActor(1)", 88), None, ""),
        ("(Map(fn)->Write pid=88, ip=192.0.2.6) ", Process("Map(fn)->Write", 88, None, "192.0.2.6"), None, ""),
        ("(pid=gcs_server) ", Process("gcs_server"), None, ""),
        ("(raylet, ip=192.0.2.6) ", Process("raylet", host="192.0.2.6"), None, ""),
        ("[2026-11-29 10:07:46,123 E 4711 4720] core_worker.cc:149: ", Process("", 4711), SHORT, "error"),
        ("[2026-11-29 10:07:46,123 W 4711 4720] (raylet) node_manager.cc:3065: ", Process("raylet", 4711), SHORT, "warning"),
        ("2026-11-29 10:07:46,123\tERROR worker.py:2038 -- ", None, SHORT, "error"),
        # Kubernetes
        ("[pod/vllm-0/server] ", Process("server", host="vllm-0"), None, ""),
        ("[pod/vllm-0/server] 2026-11-29T10:07:46.123000000Z ", Process("server", host="vllm-0"), SHORT, ""),
        ("2026-11-29T10:07:46.123000000Z stderr F ", None, SHORT, ""),
        # syslog and the journal
        ("<11>Nov 29 10:07:46 gpu-host sglang[2101]: ", Process("sglang", 2101, None, "gpu-host"), NOON, "error"),
        ("Nov 29 10:07:46 gpu-host sglang: ", Process("sglang", host="gpu-host"), NOON, ""),
        ("<14>1 2026-11-29T10:07:46.123Z gpu-host sglang 2101 ID47 - ", Process("sglang", 2101, None, "gpu-host"), SHORT, "info"),
        ('<12>1 2026-11-29T10:07:46.123Z gpu-host sglang - - [a@1 b="c \\" d"][e f="g"] ', Process("sglang", host="gpu-host"), SHORT, "warning"),
        ("<30>1 - - - - - - ", None, None, "info"),
        ("2026-11-29T10:07:46.123000+00:00 gpu-host sglang: ", Process("sglang", host="gpu-host"), SHORT, ""),
        ("<3>[ 2882.100153] ", None, None, "error"),
        # Go, Rust, C++
        ("2026-11-29T10:07:46.123Z\tERROR\tapp/main.go:12\t", None, SHORT, "error"),
        ("2026-11-29T10:07:46.123+0000\tinfo\t", None, SHORT, "info"),
        ("[2026-11-29T10:07:46Z ERROR router] ", None, NOON, "error"),
        ("[2026-11-29T10:07:46Z WARN  router::worker] ", None, NOON, "warning"),
        ("E1129 10:07:46.123 4711 server.cc:42] ", None, NOON, "error"),
        ("E1129 10:07:46.123456 server.cc:42] ", None, NOON, "error"),
        ("I20261129 10:07:46.123456  4711 server.cc:42] ", None, NOON, "info"),
        ("E0000 00:00:1795946866.123000    4711 cuda_dnn.cc:8310] ", None, SHORT, "error"),
        ("[11/29/2026-10:07:46] [TRT-LLM] [RANK 3] [E] ", Process("rank3", rank=3), NOON, "error"),
        ("[11/29/2026-10:07:46] [E] [TRT] ", None, NOON, "error"),
        # Python's web servers and libraries
        ("[2026-11-29 10:07:46 +0000] [4711] [ERROR] ", Process("", 4711), NOON, "error"),
        ("[2026-11-29 10:07:46,123: ERROR/ForkPoolWorker-1] ", Process("ForkPoolWorker-1"), SHORT, "error"),
        ("[2026-11-29 10:07:46,123] ERROR in app: ", None, SHORT, "error"),
        ("[2026-11-29 10:07:46,123] [INFO] [real_accelerator.py:222:get_accelerator] ", None, SHORT, "info"),
        ("[INFO|trainer.py:45] 2026-11-29 10:07:46,123 >> ", None, SHORT, "info"),
        ("2026-11-29 10:07:46,123 Thread-4 (run) ERROR ", None, SHORT, "error"),
    ],
)  # fmt: skip
def test_comes_off(prefix: str, process: Process | None, time: float | None, level: str) -> None:
    expected = pytest.approx(time) if time is not None else None
    assert peel(prefix + "hello there", REFERENCE) == ("hello there", process, expected, level)
    assert peel(prefix + '  File "a.py", line 1, in f', REFERENCE)[0].endswith('  File "a.py", line 1, in f')


def test_open_mpi_says_who_received_a_signal() -> None:
    text, process, _, _ = peel("[gpu-host:04711] *** Process received signal ***", REFERENCE)
    assert (text, process) == ("*** Process received signal ***", Process("", 4711, None, "gpu-host"))


@pytest.mark.parametrize(
    "line",
    [
        "<module> is not callable",
        "<200>no priority is so high",
        "<details>",
        "[gpu-host:8000] is the address",
        "[2026] was a good year",
        "[1,3] is no rank",
        "[pod/x] has no container",
        "Sun is a company",
        "Mon Nov is no date",
        "2026 was a good year",
        "(see (nested) parentheses)",
        "name - not a level - text",
        "1795946866.123 is a number",
        "E1129 is a part number",
        "node - INFO",
    ],
)
def test_stays(line: str) -> None:
    assert peel(line, REFERENCE) == (line, None, None, "")


@pytest.mark.parametrize(
    ("record", "text", "process", "level"),
    [
        ({"level": 50, "time": 1795946866123, "pid": 7, "hostname": "h", "msg": "x"}, "x", Process("", 7, None, "h"), "error"),
        ({"L": "WARN", "T": "2026-11-29T10:07:46.123Z", "M": "x"}, "x", None, "warning"),
        ({"timestamp": "2026-11-29T10:07:46.123Z", "level": "ERROR", "fields": {"message": "x"}}, "x", None, "error"),
        ({"@timestamp": "2026-11-29T10:07:46.123Z", "log.level": "error", "message": "x", "process": {"pid": 7}}, "x", Process("", 7), "error"),
        ({"timestamp": {"seconds": 1795946866.123}, "severity": "ERROR", "message": "x"}, "x", None, "error"),
        ({"level": "error", "ts": 1795946866.123, "msg": "x", "stacktrace": "main.main\n\tx.go:1"}, "x\nmain.main\n\tx.go:1", None, "error"),
        ({"log": "x\n", "stream": "stderr", "attrs": {"tag": "t"}, "time": "2026-11-29T10:07:46.123Z"}, "x", None, ""),
        ({"log": "10%|#  |\r50%|#  |\r", "stream": "stderr", "time": "2026-11-29T10:07:46.123Z"}, "50%|#  |", None, ""),
    ],
)  # fmt: skip
def test_records(record: dict[str, object], text: str, process: Process | None, level: str) -> None:
    said, writer, time, severity = peel(json.dumps(record), REFERENCE)
    assert (said, writer, severity) == (text, process, level)
    assert time == pytest.approx(SHORT)


@pytest.mark.parametrize(
    "record",
    [{"msg": 5}, {"fields": {"message": None}}, {"level": [], "msg": "x"}, {"exception": [5, {}], "msg": "x"}, {"pid": -1, "hostname": 3, "msg": "x"}, {"time": {}, "msg": "x"}],
)  # fmt: skip
def test_records_of_nonsense(record: dict[str, object]) -> None:
    text, process, time, level = peel(json.dumps(record), REFERENCE)
    assert (process, time, level) == (None, None, "")
    assert text


def test_a_chain_of_exceptions_as_objects() -> None:
    frame = {"filename": "/opt/a.py", "lineno": 3, "name": "f"}
    chain = [
        {"exc_type": "ValueError", "exc_value": "second", "frames": [frame], "is_cause": False},
        {"exc_type": "KeyError", "exc_value": "'first'", "frames": [frame], "is_cause": True},
    ]
    text = peel(json.dumps({"event": "died", "exception": chain}), REFERENCE)[0]
    assert text.split("\n") == [
        "died",
        "Traceback (most recent call last):",
        '  File "/opt/a.py", line 3, in f',
        "KeyError: 'first'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        '  File "/opt/a.py", line 3, in f',
        "ValueError: second",
    ]


def record(stream: str, text: str, end: str = "\n") -> str:
    return json.dumps({"log": text + end, "stream": stream, "time": "2026-11-29T10:07:46.1Z"}, separators=(",", ":"))


def test_cut_records_of_two_streams_alternate() -> None:
    text = "\n".join(
        [record("stdout", "a", ""), record("stderr", "b", ""), record("stdout", "A"), record("stderr", "B")]
    )
    assert [(line.number, line.text) for line in split_lines(text)[0]] == [(1, "aA"), (2, "bB")]


def test_a_cut_record_without_its_end() -> None:
    stamp = "2026-11-29T10:07:46.1Z stdout"
    lines, _ = split_lines(f"{stamp} F first\n{stamp} P a\n{stamp} P b")
    assert [(line.number, line.text) for line in lines] == [(1, "first"), (2, "ab")]


def test_a_line_that_never_ends_fills_no_memory() -> None:
    stamp = "2026-11-29T10:07:46.1Z stdout P "
    lines, _ = split_lines("\n".join(stamp + "x" * 16384 for _ in range(100)))
    assert len(lines) == 1
    assert len(lines[0].text) < 1 << 16


@pytest.mark.parametrize(
    "cut",
    [
        {"_LINE_BREAK": "line-max", "_TRANSPORT": "stdout", "_STREAM_ID": "a"},
        {"CONTAINER_PARTIAL_MESSAGE": "true", "CONTAINER_ID_FULL": "a"},
        {"CONTAINER_PARTIAL_LAST": "false", "CONTAINER_PARTIAL_ID": "a"},
    ],
)
def test_cut_entries_of_the_journal(cut: dict[str, str]) -> None:
    last = {**cut, "_LINE_BREAK": "", "CONTAINER_PARTIAL_MESSAGE": "", "CONTAINER_PARTIAL_LAST": "true"}
    last = {key: value for key, value in last.items() if key in cut and value} | (
        {
            key: cut[key]
            for key in ("_TRANSPORT", "_STREAM_ID", "CONTAINER_ID_FULL", "CONTAINER_PARTIAL_ID")
            if key in cut
        }
    )
    log = journal_lines(
        [{"MESSAGE": "a", **cut}, {"MESSAGE": "other"}, {"MESSAGE": "b", **last}, {"MESSAGE": "c", **cut}]
    )
    assert [line.text for line in log.lines] == ["other", "ab", "c"]
