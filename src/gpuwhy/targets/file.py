"""A file that stands for a target (a log, a report, a snapshot), and standard input."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from gpuwhy.targets.interface import TargetError

MOST_BYTES = 4 << 30
"""Larger files are refused: nothing that a service logs before one crash is that long."""


class PathTarget:
    """A file by its path."""

    kind = "file"

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def name(self) -> str:
        return str(self.path)

    def read(self) -> bytes:
        try:
            mode = self.path.stat()
            if stat.S_ISDIR(mode.st_mode):
                raise TargetError(f"{self.name} is a folder", "Name the log or snapshot in it.")
            if mode.st_size > MOST_BYTES:
                raise TargetError(
                    f"{self.name} is larger than 4 GiB",
                    f"Cut it to the part around the crash: tail -c 500M {self.name}",
                )
            return self.path.read_bytes()
        except OSError as error:
            raise TargetError(f"{self.name}: {error.strerror}") from error
        except ValueError as error:
            raise TargetError(f"{self.name!r} is no path") from error


class StandardInputTarget:
    """What is piped into gpuwhy."""

    kind = "stdin"
    name = "-"

    def read(self) -> bytes:
        if sys.stdin is None or sys.stdin.isatty():
            raise TargetError(
                "standard input is a terminal", "Pipe a log into it: journalctl -u UNIT | gpuwhy diagnose -"
            )
        try:
            return sys.stdin.buffer.read()
        except OSError as error:
            raise TargetError(f"standard input: {error.strerror}") from error
