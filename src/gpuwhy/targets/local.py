"""This machine."""

from __future__ import annotations

import sys

from gpuwhy.targets.interface import Connection, TargetError
from gpuwhy.targets.pipe import BOOTSTRAP, PipeConnection


class LocalTarget:
    """The machine that gpuwhy runs on. The collector runs as a process of its own, as it does anywhere else."""

    name = "local"
    kind = "local"

    def open(self, program: str) -> Connection:
        return PipeConnection([sys.executable, "-I", "-S", "-c", BOOTSTRAP], program, explain)


def explain(status: int | None, errors: str) -> TargetError:
    last = errors.strip().splitlines()[-1:] or ["it said nothing"]
    return TargetError(f"the collector ended with status {status} on this machine: {last[0]}")
