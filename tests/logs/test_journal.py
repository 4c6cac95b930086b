"""The journal in its three machine formats, and as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuwhy.logs import journal_lines, read_bytes
from gpuwhy.model.event import Process

DATA = Path(__file__).parents[1] / "data" / "logs"


def entry(message: object, **fields: object) -> dict[str, object]:
    return {
        "MESSAGE": message,
        "__REALTIME_TIMESTAMP": "1795946531000002",
        "_PID": "7",
        "_COMM": "python3",
        "_TRANSPORT": "stdout",
        "_SYSTEMD_UNIT": "sglang.service",
        "PRIORITY": "6",
        **fields,
    }


def test_message_as_text_bytes_and_null() -> None:
    log = journal_lines([entry("plain"), entry([27, 91, 51, 49, 109, 82, 195, 188]), entry(None)])
    assert [line.text for line in log.lines] == ["plain", "Rü", ""]
    assert log.kind == "journal"
    assert "1 entries without their text" in log.notes[0]


def test_message_of_several_lines() -> None:
    log = journal_lines([entry("a\n  b"), entry("c")])
    assert [(line.number, line.text) for line in log.lines] == [(1, "a"), (1, "  b"), (2, "c")]


def test_fields_land_in_the_line() -> None:
    (line,) = journal_lines([entry("[2026-11-29 10:15:46 TP3] hello")]).lines
    assert line.text == "hello"
    assert line.time == 1795946531.000002
    assert line.process == Process("TP3", 7, 3)
    assert line.unit == "sglang.service"
    assert line.level == ""  # priority 6 is what every line on standard output gets


def test_kernel_and_manager_lines() -> None:
    kernel, manager = journal_lines(
        [
            entry("NVRM: x", _TRANSPORT="kernel", PRIORITY="3", _PID=None),
            entry(
                "Started x",
                UNIT="sglang.service",
                _SYSTEMD_UNIT="init.scope",
                SYSLOG_IDENTIFIER="systemd",
                _TRANSPORT="journal",
            ),
        ]
    ).lines
    assert (kernel.process, kernel.level, kernel.unit) == (Process("kernel"), "error", "")
    assert (manager.process and manager.process.name, manager.unit) == ("systemd", "sglang.service")


def test_nonsense_entries() -> None:
    entries: list[Any] = [
        {},
        {"MESSAGE": 5},
        {"MESSAGE": [[1, 2], "x"]},
        {"MESSAGE": [999, -1, "a"]},
        "no entry",
        {"MESSAGE": "x", "__REALTIME_TIMESTAMP": "-", "_PID": "many"},
    ]
    log = journal_lines(entries)
    assert log.lines[-1].text == "x"
    assert log.lines[-1].time is None


def test_export_format() -> None:
    log = read_bytes((DATA / "incident.export").read_bytes(), "incident.export")
    assert log.kind == "journal"
    assert len(log.lines) == 318
    assert log.lines[0].text == "Started sglang-eagle3.service - SGLang Kimi K2.6 with EAGLE-3."


def test_export_format_with_binary_fields() -> None:
    message = b"two\nlines"
    data = (
        b"__REALTIME_TIMESTAMP=1795946531000002\n_PID=1\nMESSAGE\n"
        + len(message).to_bytes(8, "little")
        + message
        + b"\n\n"
        b"__REALTIME_TIMESTAMP=1795946532000002\nMESSAGE=next\n\n"
        b"__REALTIME_TIMESTAMP=1795946533000002\nMESSAGE\n" + (1 << 60).to_bytes(8, "little") + b"cut"
    )
    assert [line.text for line in read_bytes(data, "x").lines][:3] == ["two", "lines", "next"]


def test_json_lines_in_a_file() -> None:
    text = "\n".join(json.dumps(entry(f"line {at}")) for at in range(3)) + "\nnot json\n"
    log = read_bytes(text.encode(), "j.json")
    assert (log.kind, [line.text for line in log.lines]) == ("journal", ["line 0", "line 1", "line 2"])
    sequence = "".join(f"\x1e{json.dumps(entry('s'))}\n" for _ in range(2))
    assert [line.text for line in read_bytes(sequence.encode(), "j").lines] == ["s", "s"]


def test_short_text() -> None:
    text = (
        "Nov 29 10:07:46 gpu-host sglang[2101]: [2026-11-29 10:07:46 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        'Nov 29 10:07:46 gpu-host sglang[2101]:   File "a.py", line 1, in f\n'
        "Nov 29 10:07:46 gpu-host sglang[2101]: RuntimeError: boom\n"
        "Nov 29 10:07:47 gpu-host systemd[1]: sglang.service: Main process exited, code=exited, status=1/FAILURE\n"
    )
    lines = read_bytes(text.encode(), "x").lines
    assert lines[1].text == '  File "a.py", line 1, in f'
    assert lines[0].process == Process("TP0", 2101, 0, "gpu-host")
    assert lines[3].process == Process("systemd", 1, None, "gpu-host")
