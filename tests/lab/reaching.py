"""A lab host as others see it: accounts with a key of the lab, gpuwhy run against it, and what a run leaves there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.lab.gpu_host import LAB, GpuHost, wait_for

LIST_FILES = "find / /tmp /dev/shm /run -xdev -printf '%p %y %s %m %U %T@ %C@\\n' 2>/dev/null | sort -u"
"""Every file with its times of change; ctime is moved by anything but reading."""

CLOCKS = ("/proc/", "/sys/", "/run/log/journal/", "/var/log/journal/", "/run/systemd/journal/")
"""What a running system itself writes from one moment to the next."""


@dataclass(frozen=True)
class Run:
    """A finished run of gpuwhy: its exit status, what it printed, and how many seconds it took."""

    status: int
    out: str
    err: str
    seconds: float

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def notes(self) -> str:
        return "\n".join(self.document["notes"])


def add_account(host: GpuHost, name: str) -> None:
    """An ordinary account that the lab's key opens, with a systemd manager of its own that outlives its logins."""
    host.run(f"useradd --create-home --shell /bin/bash --password '*' {name}")
    host.write(f"/home/{name}/.ssh/authorized_keys", (LAB / "ssh/id.pub").read_text(), "600")
    host.run(f"chown -R {name} /home/{name}; loginctl enable-linger {name}")
    wait_for(lambda: as_account(host, name, "systemctl --user is-system-running", check=False).strip() in ("running", "degraded"), 20, f"the manager of {name} runs")  # fmt: skip


def as_account(host: GpuHost, name: str, command: str, *, check: bool = True) -> str:
    """Runs a command in the host as an account, with its manager at hand. Gives what it printed."""
    enter = f"setpriv --reuid={name} --regid={name} --init-groups env HOME=/home/{name} XDG_RUNTIME_DIR=/run/user/$(id -u {name})"  # fmt: skip
    return host.run(f"cd /home/{name}; {enter} {command}", check=check).stdout


def start_gpuwhy(host: GpuHost, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """The checkout's gpuwhy on this machine; ``HOST`` in the arguments stands for the host's destination."""
    words = [word.replace("HOST", host.ssh_destination) for word in arguments]
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", *words],
        env={**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def gpuwhy(host: GpuHost, *arguments: str) -> Run:
    """Runs gpuwhy to its end, at most five minutes."""
    started = time.monotonic()
    process = start_gpuwhy(host, arguments)
    out, err = process.communicate(timeout=300)
    return Run(process.returncode, out, err, time.monotonic() - started)


def files(host: GpuHost) -> dict[str, str]:
    """Every file of the host by its path, with size, mode, owner and times."""
    lines = host.run(LIST_FILES).stdout.splitlines()
    return {line.split(" ", 1)[0]: line for line in lines if not line.startswith(CLOCKS)}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The paths that are new, gone or different."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
