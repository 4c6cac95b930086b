"""A failure that no cause fits: the report says what is known of it, and what to find out next."""

from __future__ import annotations

import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.reports import Detail
from gpuwhy.reports.text import render
from gpuwhy.snapshot.given import given

UNKNOWN = b"""\
(Worker_TP3 pid=4711) ERROR 11-29 10:05:09 [multiproc_executor.py:880] Traceback (most recent call last):
(Worker_TP3 pid=4711) ERROR 11-29 10:05:09 [multiproc_executor.py:880]   File "/opt/venv/lib/python3.12/site-packages/flash_attn/frob/core.py", line 12, in run
(Worker_TP3 pid=4711) ERROR 11-29 10:05:09 [multiproc_executor.py:880]     raise FrobError("the frobnicator is empty")
(Worker_TP3 pid=4711) ERROR 11-29 10:05:09 [multiproc_executor.py:880] flash_attn.frob.core.FrobError: the frobnicator is empty
(EngineCore_0 pid=4700) RuntimeError: Engine core initialization failed. See root cause above.
Nvidia driver version: 570.86.15
"""


def keys(report: bytes, facts: dict[str, object] | None = None) -> list[str]:
    diagnosis = diagnose_log(report, "report", given(facts).facts if facts else None)
    assert not diagnosis.findings
    return [missing.key for missing in diagnosis.to_go_on]


def test_the_report_tells_who_when_what_died_what_is_known_and_what_is_missing() -> None:
    text = render(diagnose_log(UNKNOWN, "crash.log"), Detail())
    for said in (
        "FrobError: the frobnicator is empty",
        "in Worker_TP3, pid 4711",
        "-11-29 10:05:09",
        "What died because of it",
        "Engine core initialization failed",
        "driver: 570.86.15  [crash.log:6]",
        "python -m pip show flash-attn",
    ):
        assert said in text


def test_known_facts_are_not_asked_for() -> None:
    assert "packages.flash-attn" in keys(UNKNOWN)
    assert "packages.flash-attn" not in keys(UNKNOWN, {"packages.flash-attn": "2.8.3"})
    assert "driver" not in keys(UNKNOWN)


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (b"Segmentation fault (core dumped)\n", "kernel_log"),
        (b"RuntimeError: the frobnicator timed out after 300 s\n", "tests.stacks"),
        (b'Traceback (most recent call last):\n  File "/opt/x.py", line 3, in run\n    frobnicate()\n', "journal"),
        (
            b"FileNotFoundError: [Errno 2] No such file or directory: '/etc/frob/frob.toml'\n",
            "files./etc/frob/frob.toml",
        ),
        (
            b"rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1032\n",
            "gpus",
        ),
    ],
)
def test_the_kind_of_the_failure_decides_what_is_asked_first(report: bytes, first: str) -> None:
    assert keys(report)[0] == first


def test_a_hostile_unit_name_does_not_get_into_the_command() -> None:
    diagnosis = diagnose_log(UNKNOWN, "report")
    for missing in diagnosis.to_go_on:
        assert "`" not in missing.command
        assert "$(" not in missing.command


def test_a_crash_of_another_makers_gpu_is_not_asked_for_facts_of_nvidia() -> None:
    diagnosis = diagnose_log(b"RuntimeError: HIP error: invalid device function\n", "report")
    commands = " ".join(missing.command for missing in diagnosis.to_go_on)
    assert "rocminfo" in commands
    assert "nvidia" not in commands


def test_a_crashed_process_is_asked_for_its_stack() -> None:
    assert "tests.stacks" in keys(b"Segmentation fault (core dumped)\n")


def test_a_path_that_a_shell_would_read_otherwise_is_not_put_into_a_command() -> None:
    report = b"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/$(reboot)'\n"
    assert not any(key.startswith("files.") for key in keys(report))
