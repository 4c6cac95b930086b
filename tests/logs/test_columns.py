"""Columns that only the whole text gives away, and texts that look as if they had one."""

from __future__ import annotations

import pytest

from gpuwhy.logs.lines import split_lines
from gpuwhy.model.event import LogLine, Process

MESSAGES = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "RuntimeError: boom"]


def lines(text: str) -> tuple[LogLine, ...]:
    return split_lines(text, 1796000000.0)[0]


def written(column: str) -> str:
    return "\n".join(column + message for message in MESSAGES)


@pytest.mark.parametrize(
    ("column", "process"),
    [
        ("vllm-1  | ", Process("vllm-1")),
        ("vllm_1  | ", Process("vllm_1")),
        ("server  | ", Process("server")),
        ("vllm.1.x7k2q@gpu-host    | ", Process("vllm.1.x7k2q@gpu-host")),
        ("vllm-7d9f-x2x4q server ", Process("server", host="vllm-7d9f-x2x4q")),
        ("inference vllm-0 server ", Process("server", host="vllm-0")),
        ("node07: ", Process(host="node07")),
        ("gpu3.cluster: ", Process(host="gpu3.cluster")),
        (" 3: ", Process("task 3", rank=3)),
    ],
)
def test_writers(column: str, process: Process) -> None:
    found = lines(written(column))
    assert [line.text for line in found] == MESSAGES
    assert {line.process for line in found} == {process}


@pytest.mark.parametrize("column", ["{n}:", "{n:>6}\t", "{n:>4} | ", "{n:>4}  "])
def test_line_numbers_name_nobody(column: str) -> None:
    found = lines("\n".join(column.format(n=n) + message for n, message in enumerate(MESSAGES, 98)))
    assert [line.text for line in found] == MESSAGES
    assert {line.process for line in found} == {None}


def test_stern_says_what_it_follows() -> None:
    found = lines(
        "+ vllm-0 › server\n+ vllm-1 › server\nvllm-0 server RuntimeError: boom\nvllm-1 server ok\n- vllm-0 › server\n"
    )
    assert (found[2].text, found[2].process) == ("RuntimeError: boom", Process("server", host="vllm-0"))
    assert (found[3].text, found[3].process) == ("ok", Process("server", host="vllm-1"))
    assert found[4].process is None


def test_a_program_in_a_service_has_both_names() -> None:
    prefill, decode = lines(
        "prefill-1  | [2026-11-29 10:07:46 TP0] hello\ndecode-1   | [2026-11-29 10:07:46 TP0] hello"
    )
    assert prefill.process == Process("TP0", rank=0, host="prefill-1")
    assert decode.process == Process("TP0", rank=0, host="decode-1")


@pytest.mark.parametrize(
    "text",
    [
        "18:03:00  first\n18:03:03  second\n18:03:38  third",
        "node23:12098:12141 [2] NCCL INFO a\nnode23:12098:12141 [2] NCCL INFO b\nnode23:12098:12141 [2] NCCL INFO c",
        "error: one\nerror: two\nerror: three",
        "libcuda.so.1: cannot open\nother\nother again",
        "x.cu:1: error\nx.cu:2: error\nx.cu:3: error",
        "1. install\n2. run\n3. crash",
        "8 x H100 in one host\n8 x H100 in another\n8 x H100 in a third",
        "my-app starts now\nmy-app stops now\nit died",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_no_columns(text: str) -> None:
    assert all(line.process is None or line.process.pid for line in lines(text))
    assert [line.text.split()[-1] for line in lines(text)] == [line.split()[-1] for line in text.split("\n")]


def test_further_lines_of_a_message_in_the_journal() -> None:
    found = lines(
        "Nov 29 10:07:46 gpu-host agent[2200]: [rank3]: engine died\n"
        "                                      RuntimeError: boom\n"
        "                                        note\n"
        "                 other\n"
    )
    assert [line.text for line in found] == ["engine died", "RuntimeError: boom", "  note", "                 other"]
    assert found[1].process == found[0].process == Process("rank3", 2200, 3, "gpu-host")
    assert found[1].time == found[0].time is not None
    assert found[3].process is None
