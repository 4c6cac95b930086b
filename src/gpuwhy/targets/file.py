"""A file that stands for a target (a log, a report, a snapshot), and standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from gpuwhy.targets.interface import TargetError


class PathTarget:
    """A file by its path."""

    kind = "file"

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def name(self) -> str:
        return str(self.path)

    def stream(self) -> BinaryIO:
        try:
            if self.path.is_dir():
                raise TargetError(f"{self.name} is a folder", "Name the log or snapshot in it.")
            return self.path.open("rb")
        except OSError as error:
            raise TargetError(f"{self.name}: {error.strerror}") from error
        except ValueError as error:
            raise TargetError(f"{self.name!r} is no path") from error


class StandardInputTarget:
    """What is piped into gpuwhy."""

    kind = "stdin"
    name = "-"

    def stream(self) -> BinaryIO:
        if sys.stdin is None or sys.stdin.isatty():
            raise TargetError(
                "standard input is a terminal", "Pipe a log into it: journalctl -u UNIT | gpuwhy diagnose -"
            )
        return sys.stdin.buffer
