"""The report on a real terminal for a real host, and a real unit that is followed while it fails."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.lab.gpu_host import GAVE_UP, GpuHost, wait_for
from tests.lab.unhurried import UNHURRIED

pytestmark = pytest.mark.lab

ROWS, COLUMNS = 40, 80


def command(host: GpuHost, *options: str) -> list[str]:
    return [sys.executable, *UNHURRIED, "diagnose", host.ssh_destination, "--unit", "sglang.service", *options]


def environment(host: GpuHost) -> dict[str, str]:
    return {**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options, "NO_COLOR": "1", "TERM": "xterm-256color"}


def on_a_terminal(host: GpuHost) -> list[str]:
    """The rows that a terminal of 80x40 shows: longer lines are folded."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        command(host), stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment(host)
    )
    os.close(theirs)
    sent = b""
    try:
        while chunk := os.read(ours, 65536):
            sent += chunk
    except OSError:  # how a terminal says that nobody holds its other end any more
        pass
    finally:
        os.close(ours)
    assert process.wait(300) == 1
    lines = sent.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    return [line[start : start + COLUMNS] for line in lines for start in range(0, max(1, len(line)), COLUMNS)]


def test_a_unit_is_followed_and_its_failure_fits_one_screen(fresh_host: GpuHost, tmp_path: Path) -> None:
    told, said = tmp_path / "told", tmp_path / "said"
    with told.open("wb") as out, said.open("wb") as errors:
        process = subprocess.Popen(
            # whoever starts the tests in the background has an interrupt ignored, and children inherit that
            ["env", "--default-signal=INT", *command(fresh_host, "--follow", "--format", "oneline")],
            stdout=out, stderr=errors, stdin=subprocess.DEVNULL, env=environment(fresh_host),
        )  # fmt: skip
    try:
        wait_for(lambda: "following sglang.service" in said.read_text(), 60, "it says what it follows")
        wait_for(
            lambda: bool(fresh_host.run("pgrep -x journalctl", check=False).stdout),
            60,
            "the journal is followed",
        )
        fresh_host.run("systemctl start sglang.service")
        wait_for(lambda: "\n" in told.read_text(), 240, "the failure is told")
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 1
    finally:
        process.kill()
        process.wait()
    first = told.read_text().splitlines()[0]
    assert "sglang.service on lab-fresh: proven toolkit-too-old-for-arch (flashinfer)" in first
    assert first.endswith("do: FLASHINFER_CUDA_ARCH_LIST=12.0a")
    assert len(said.read_text().splitlines()) == 1
    wait_for(
        lambda: not fresh_host.run("pgrep -x journalctl", check=False).stdout,
        30,
        "nothing is left running there",
    )

    fresh_host.wait_for_message("sglang.service", GAVE_UP)
    shown = on_a_terminal(fresh_host)
    assert len(shown) <= ROWS, "\n".join(shown)
    text = " ".join(" ".join(shown).split())
    for expected in (
        "toolkit-too-old-for-arch, in flashinfer: proven",
        "flashinfer/compilation_context.py:",
        "[swallowed]",
        "What to do first (on lab-fresh, as root) FLASHINFER_CUDA_ARCH_LIST=12.0a",
        "check that it helped",
        "Ruled out: ",
    ):
        assert expected in text, "\n".join(shown)
