"""The program as it is sent: on every Python at hand, with tools that hang, requests that are nonsense, pipes that close."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collector.conftest import collect, executable, interpreters, nvcc, start
from tests.patience import AT_MOST, BUSY, until

from gpuwhy.collector.commands import DIRECTORIES
from gpuwhy.collector.program import PROBES

NAMES = {probe.name for probe in PROBES}
STATUSES = {"ok", "absent", "denied", "timed out", "failed"}
LOCAL_SECONDS = 3.0 * BUSY
WORST_SECONDS = 10.0 * BUSY


@pytest.mark.parametrize("python", interpreters())
def test_every_python_at_hand_runs_the_program(python: str) -> None:
    run = collect(python=python)
    assert run.status == 0
    assert run.errors == ""
    assert {line["probe"] for line in run.lines if "probe" in line} == NAMES
    assert not [line for line in run.lines if line.get("status") == "failed"]
    assert run.value("memory")["total"] > 0


def test_every_probe_says_how_it_ended_and_why() -> None:
    run = collect()
    for line in run.lines[:-1]:
        assert line["status"] in STATUSES
        assert (line["status"] == "ok") == (line["reason"] == "")
        assert line["duration"] >= 0
    assert set(run.lines[-1]) == {"end"}


def test_a_machine_without_anything_of_note_is_read_in_time() -> None:
    assert collect().seconds <= LOCAL_SECONDS


def processes_of(mark: str) -> list[int]:
    """The processes whose command line holds `mark`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in (Path("/proc") / name / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(name))
    return found


@pytest.fixture
def hanging_tools(tmp_path: Path) -> Path:
    """An nvidia-smi that ends on nothing but SIGKILL and has a child of its own, found by PATH."""
    folder = tmp_path / "bin"
    executable(folder / "nvidia-smi", "#!/bin/sh\ntrap '' HUP INT TERM\nsleep 600 &\nwhile :; do sleep 600; done\n")
    return folder


def test_a_hanging_tool_costs_only_its_own_answer_and_leaves_no_process(hanging_tools: Path) -> None:
    is_found_by_path = not any((Path(folder) / "nvidia-smi").exists() for folder in DIRECTORIES)
    run = collect(environment={"PATH": f"{hanging_tools}:{os.environ['PATH']}"})
    assert run.seconds <= WORST_SECONDS
    assert (run.probe("nvidia_smi")["status"] == "timed out") is is_found_by_path
    assert (run.probe("gpus")["status"] == "timed out") is is_found_by_path
    assert run.value("memory")["total"] > 0
    assert run.probe("system")["duration"] < 2 * BUSY
    assert not processes_of(str(hanging_tools))


def wait_until_gone(process: subprocess.Popen[bytes], mark: str) -> None:
    process.wait(timeout=AT_MOST)
    until(lambda: not processes_of(mark), f"{mark} is gone")


def begun(hanging_tools: Path) -> subprocess.Popen[bytes]:
    """A collection that is waiting for a hanging tool."""
    process = start(environment={"PATH": f"{hanging_tools}:{os.environ['PATH']}"})
    assert process.stdin is not None
    process.stdin.write(b"{}\n")
    process.stdin.flush()
    until(lambda: processes_of(str(hanging_tools)), "the tool runs")
    return process


def test_it_ends_when_nobody_reads_any_more(hanging_tools: Path) -> None:
    process = begun(hanging_tools)
    assert process.stdout is not None
    process.stdout.close()
    wait_until_gone(process, str(hanging_tools))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_on_a_signal_with_everything_it_started(hanging_tools: Path, number: signal.Signals) -> None:
    process = begun(hanging_tools)
    process.send_signal(number)
    wait_until_gone(process, str(hanging_tools))
    process.communicate()


def test_it_does_not_wait_for_ever_for_the_next_request() -> None:
    process = start()
    assert process.stdin is not None
    process.stdin.write(b'{"idle": 0.2, "probes": ["memory"]}\n')
    process.stdin.flush()
    assert process.wait(timeout=AT_MOST) == 0
    process.communicate()


@pytest.mark.parametrize(
    "request_line",
    [
        b"",
        b"nonsense",
        b"[1]",
        b'{"unit": "../../etc; rm -rf /"}',
        b'{"unit": "-h"}',
        b'{"unit": 5}',
        b'{"pid": 999999999}',
        b"\xff\xfe\x00",
        b'{"probes": ["none such"]}',
        b'{"deadline": "x"}',
    ],
)
def test_a_request_that_makes_no_sense_still_ends_in_order(request_line: bytes) -> None:
    run = collect(request_line)
    assert run.status == 0, run.errors
    assert "end" in run.lines[-1]


def test_only_the_probes_asked_for_and_their_needs_run() -> None:
    run = collect({"probes": ["disks"]})
    assert {line["probe"] for line in run.lines if "probe" in line} == {
        "disks",
        "unit",
        "process",
        "environment",
        "failing_services",
    }


def test_the_deadline_of_the_whole_run_is_kept(hanging_tools: Path) -> None:
    run = collect({"deadline": 1.0}, environment={"PATH": f"{hanging_tools}:{os.environ['PATH']}"})
    assert run.seconds <= 3.5 * BUSY
    assert {line["probe"] for line in run.lines if "probe" in line} == NAMES


def test_a_service_is_read_from_its_process(sleeper: Callable[..., int], tmp_path: Path) -> None:
    toolkit = nvcc(tmp_path / "cuda-12.8")
    pid = sleeper(
        CUDA_HOME=str(toolkit),
        HF_TOKEN="hf_" + "aB3" * 12,
        PATH="/usr/bin:/bin",
        HOME=str(tmp_path),
        UNRELATED="of-no-concern",
    )
    run = collect({"pid": pid})
    environment = run.value("environment")
    assert environment["source"] == "process"
    assert environment["complete"] is True
    assert environment["variables"]["CUDA_HOME"] == str(toolkit)
    assert environment["variables"]["HF_TOKEN"] == "<redacted:1>"
    assert "UNRELATED" in environment["other_names"]
    assert "of-no-concern" not in run.raw
    resolved = run.value("resolutions")["consumers"]["flashinfer"]
    assert (resolved["root"], resolved["version"], resolved["by"]) == (str(toolkit), "12.8", "CUDA_HOME")
    assert run.value("limits")["nofile"].isdigit()
    assert run.value("process")["command"][0] == sys.executable
    assert run.end["redacted"]["by name"] >= 1


def test_a_secret_of_the_service_is_gone_from_every_answer(sleeper: Callable[..., int], tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    (tmp_path / secret).mkdir()
    pid = sleeper(
        DB_PASSWORD=secret,
        TRITON_CACHE_DIR=str(tmp_path / secret),
        LD_LIBRARY_PATH=f"/{secret}/lib",
        HOME=str(tmp_path),
    )
    log = tmp_path / "service.log"
    log.write_text(f"connecting with {secret}\n")
    run = collect({"pid": pid}, json.dumps({"id": 1, "ask": "read", "path": str(log)}).encode() + b"\nquit\n")
    assert secret not in run.raw
    assert run.lines[-1]["value"]["lines"] == ["connecting with <redacted:1>"]


def test_what_is_no_text_comes_as_text(sleeper: Callable[..., int], tmp_path: Path) -> None:
    pid = sleeper(
        CUDA_HOME=b"/opt/\xff\xfe\x1b[31m".decode(errors="surrogateescape"), HOME=str(tmp_path), NCCL_X="y" * 100_000
    )
    variables = collect({"pid": pid}).value("environment")["variables"]
    assert variables["CUDA_HOME"] == "/opt/\ufffd\ufffd\x1b[31m"
    assert len(variables["NCCL_X"]) < 100_000


def test_nothing_is_written(tmp_path: Path, sleeper: Callable[..., int]) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    pid = sleeper(HOME=str(home), TMPDIR=str(temporary))
    collect({"pid": pid}, environment={"HOME": str(home), "TMPDIR": str(temporary)})
    assert list(home.rglob("*")) == []
    assert list(temporary.rglob("*")) == []


def test_later_requests_are_answered_in_order(tmp_path: Path) -> None:
    source = tmp_path / "compilation_context.py"
    source.write_text("".join(f"line {number}\n" for number in range(1, 201)))
    asks = [
        {"id": 1, "ask": "read", "path": str(source), "first": 60, "last": 62},
        {"id": 2, "ask": "list", "path": str(tmp_path)},
        {"id": 3, "ask": "stat", "path": str(source)},
        {"id": 4, "ask": "read", "path": str(tmp_path / "none.py")},
        {"id": 5, "ask": "bytes", "path": str(source), "offset": 5, "length": 4},
        {"id": 6, "ask": "run", "path": "/bin/sh"},
    ]
    run = collect({"probes": ["memory"]}, b"".join(json.dumps(ask).encode() + b"\n" for ask in asks) + b"quit\n")
    answers = {line["id"]: line for line in run.lines if "id" in line}
    assert answers[1]["value"]["lines"] == ["line 60", "line 61", "line 62"]
    assert answers[1]["value"]["count"] == 200
    assert "compilation_context.py" in answers[2]["value"]["names"]
    assert answers[3]["value"]["kind"] == "file"
    assert answers[4]["status"] == "absent"
    assert answers[5]["value"]["base64"] == "IDFcbg==" or answers[5]["value"]["size"] == source.stat().st_size
    assert answers[6]["status"] == "failed"
