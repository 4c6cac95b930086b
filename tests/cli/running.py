"""Runs the command as a user does: a process of its own, with its own standard streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

LOGS = Path(__file__).parents[1] / "data" / "logs"


class Done(NamedTuple):
    status: int
    out: str
    err: str


def gpuwhy(*arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
    """Run ``gpuwhy`` with ``arguments``; ``env`` is added to the environment."""
    done = subprocess.run(
        [sys.executable, "-m", "gpuwhy", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        check=False,
        timeout=60,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
