"""Running the checkout's `gpuwhy diagnose` on a lab host, as a user would: over ssh from here, or inside it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from tests.lab.gpu_host import GpuHost
from tests.lab.unhurried import UNHURRIED

ANSWERED = {0, 1}


@dataclass(frozen=True)
class Examined:
    """What a run gave: its exit status, its JSON document as text, and how many seconds it took."""

    status: int
    text: str
    seconds: float

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document

    @property
    def first(self) -> dict[str, Any]:
        """The first finding."""
        first: dict[str, Any] = self.document["findings"][0]
        return first


def _examined(done: subprocess.CompletedProcess[str], started: float) -> Examined:
    assert done.returncode in ANSWERED, f"exit status {done.returncode}\n{done.stderr}"
    return Examined(done.returncode, done.stdout, time.monotonic() - started)


def diagnose_over_ssh(host: GpuHost, *arguments: str) -> Examined:
    """`gpuwhy diagnose HOST` on this machine, over the user's own ssh."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, *UNHURRIED, "diagnose", host.ssh_destination, *arguments, "--format", "json"],
        env={**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    return _examined(done, started)


def diagnose_inside(host: GpuHost, *arguments: str, **variables: str) -> Examined:
    """`gpuwhy diagnose local` in the host itself, with the checkout's source and the host's own Python."""
    started = time.monotonic()
    settings = [f"{name}={value}" for name, value in {"PYTHONPATH": "/opt/gpuwhy-source", **variables}.items()]
    program = ["/opt/gpuwhy/bin/python", *UNHURRIED, "diagnose", "local", *arguments, "--format", "json"]
    return _examined(host.run(shlex.join(["env", *settings, *program]), check=False), started)
