"""Runs the commands that change a host, as a user does: gpuwhy here, the host over its own sshd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.lab.gpu_host import GpuHost
from tests.lab.unhurried import UNHURRIED


def gpuwhy(host: GpuHost, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run ``gpuwhy`` with ssh set up for the host."""
    return subprocess.run(
        [sys.executable, *UNHURRIED, *arguments],
        env={**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def answered(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON document that a command printed."""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def start_gpuwhy(host: GpuHost, output: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """As :func:`gpuwhy`, and goes on while the test does; what it says goes into a file."""
    with output.open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "gpuwhy", *arguments],
            env={**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def cut(running: subprocess.Popen[bytes], host: GpuHost) -> None:
    """The command dies here, and every login on the host with it, as when a cable is pulled."""
    running.kill()
    running.wait(timeout=10)
    host.run("pkill -KILL -f '^sshd: root@notty'", check=False)
