"""This machine."""

from __future__ import annotations

import os
import shutil
import sys

from gpuwhy.targets.interface import Connection, TargetError
from gpuwhy.targets.pipe import BOOTSTRAP, PYTHON_OPTIONS, PipeConnection
from gpuwhy.targets.sudo import refusal


class LocalTarget:
    """The machine that gpuwhy runs on. The collector runs as a process of its own, as it does anywhere else.

    With ``sudo`` that process alone has root's rights; gpuwhy itself keeps those it was started with.
    """

    name = "local"
    kind = "local"

    def __init__(self, sudo: bool = False) -> None:
        self.sudo = sudo

    def open(self, program: str) -> Connection:
        return PipeConnection(self.command(), program, explain)

    def command(self) -> list[str]:
        """The command that starts the collector. Raises TargetError where sudo was asked for and is not there."""
        started = [sys.executable, *PYTHON_OPTIONS, "-c", BOOTSTRAP]
        if not self.sudo or os.geteuid() == 0:
            return started
        sudo = shutil.which("sudo")
        if sudo is None:
            raise TargetError(
                "there is no sudo on this machine",
                "Run gpuwhy without --sudo, or as root: it names what it may not read.",
            )
        return [sudo, "-n", "--", *started]


def explain(status: int | None, errors: str) -> TargetError:
    refused = refusal("this machine", errors, sys.executable)
    if refused is not None:
        return refused
    last = errors.strip().splitlines()[-1:] or ["it said nothing"]
    return TargetError(f"the collector ended with status {status} on this machine: {last[0]}")
