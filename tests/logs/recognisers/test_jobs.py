"""Slurm, MPI, torchrun, Ray and Go: how launchers tell of an end."""

from __future__ import annotations

import pytest
from tests.logs.recognisers.reading import events, only


@pytest.mark.parametrize(
    ("line", "tool", "is_echo", "detail"),
    [
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.0. Some of your processes may have been killed by the cgroup out-of-memory handler.", "memory", False, {"signal": "9", "result": "oom-kill"}),
        ("srun: error: node1: task 3: Out Of Memory", "memory", False, {"signal": "9", "result": "oom-kill"}),
        ("(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 3)", "memory", False, {"signal": "9", "result": "oom-kill"}),
        ("slurmstepd: error: *** JOB 4711 ON node1 CANCELLED AT 2025-08-12T10:00:00 DUE TO TIME LIMIT ***", "slurm", False, {"job": "4711", "node": "node1", "result": "time limit"}),
        ("mpirun noticed that process rank 3 with PID 0 on node node1 exited on signal 11 (Segmentation fault).", "mpi", True, {"signal": "11", "rank": "3"}),
        ("  exitcode  : -9 (pid: 4711)", "torchrun", True, {"exit_code": "-9", "pid": "4711", "signal": "9"}),
    ],
)  # fmt: skip
def test_launchers(line: str, tool: str, is_echo: bool, detail: dict[str, str]) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_echo, event.is_fatal) == ("death", tool, is_echo, True)
    assert event.detail == detail


def test_nobody_was_killed() -> None:
    assert [event for event in events("(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM)") if event.tool == "memory"] == []  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "panic: runtime error: invalid memory address or nil pointer dereference",
        "fatal error: unexpected signal during runtime execution",
        "fatal error: all goroutines are asleep - deadlock!",
    ],
)
def test_go(line: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_fatal) == ("crash", "go", True)
