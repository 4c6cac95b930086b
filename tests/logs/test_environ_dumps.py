"""``/proc/PID/environ``, as a file and as people paste it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwhy.logs import read_bytes
from gpuwhy.logs.stated_facts import facts_in

VARIABLES = {
    "CUDA_HOME": "/usr/local/cuda-12.4",
    "TORCH_CUDA_ARCH_LIST": "9.0+PTX",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "MOTD": "two\nlines of it",
    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/opt/x",
}


@pytest.fixture(scope="module")
def environ() -> bytes:
    """The environment of a real process, as the kernel prints it."""
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env=VARIABLES,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        data = Path(f"/proc/{process.pid}/environ").read_bytes()
        process.communicate(os.linesep.encode())
    assert b"\x00" in data
    return data


@pytest.mark.parametrize("separator", ["\x00", "^@", "\ufffd", "\\x00", "\\u0000"])
def test_one_variable_a_line(environ: bytes, separator: str) -> None:
    log = read_bytes(environ.replace(b"\x00", separator.encode()), "environ")
    texts = [line.text for line in log.lines]
    assert {f"{name}={value}" for name, value in VARIABLES.items() if "\n" not in value} <= set(texts)
    assert "lines of it" in texts
    assert log.notes == ()


def test_between_other_lines_and_before_a_prompt(environ: bytes) -> None:
    log = read_bytes(b"$ cat /proc/12/environ\n" + environ + b"root@pod:/# exit\n", "report")
    assert facts_in(log).group("env")["TORCH_CUDA_ARCH_LIST"].value == "9.0+PTX"
    assert [log.lines[0].text, log.lines[-1].text] == ["$ cat /proc/12/environ", "root@pod:/# exit"]


@pytest.mark.parametrize(
    "data",
    [
        b"begin a=1" + b"\x00" * 40 + b"power came back, b=2\n" + b"ordinary line\n" * 9,
        b"bad text \x00here\x00 x=1\n" + b"ordinary line\n" * 9,
        b"read b'A=1\\x00\\x01 raw bytes\\x00B=2'\n",
    ],
)
def test_other_text_with_nul_stays_one_line(data: bytes) -> None:
    assert len(read_bytes(data, "log").lines) == data.count(b"\n")
