"""What grows while it is read: a log file across rotation and truncation, a pipe, what a command prints."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from gpuwhy.targets.interface import TargetError

BLOCK = 1 << 20
_HEAD = 256
"""Bytes by which the beginning of a file is known again."""
_POLL = 0.25
"""Seconds between two looks at a file that did not grow."""


class Growing(Protocol):
    """Bytes that come in pieces."""

    def read(self, timeout: float) -> bytes | None:
        """What came, b"" when nothing did within ``timeout`` seconds, None at the end. Raises TargetError."""
        ...

    @property
    def generation(self) -> int:
        """Goes up when what comes from now on is another file's beginning."""
        ...

    def close(self) -> None:
        """Safe to call twice."""
        ...


class GrowingFile:
    """A file as ``tail -F`` follows it: when another takes its name, the rest of the old one comes first, then the new one
    from its beginning; one that was emptied or written anew begins again."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file: BinaryIO | None = self._opened()
        self._head = b""
        self.generation = 0
        if self._file is None:
            raise TargetError(f"{path}: no such file")

    def read(self, timeout: float) -> bytes | None:
        end = time.monotonic() + timeout
        while True:
            found = self._grown()
            if found or time.monotonic() >= end:
                return found
            time.sleep(min(_POLL, max(0.0, end - time.monotonic())))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _grown(self) -> bytes:
        if self._file is not None:
            if self._was_emptied(self._file):
                self._begin_again(self._file)
            found = self._file.read(BLOCK)
            if found:
                self._head = self._head or os.pread(self._file.fileno(), _HEAD, 0)
                return found
        if self._was_replaced():
            successor = self._opened()
            if successor is not None:
                self.close()
                self._file, self._head = successor, b""
                self.generation += 1
                return self._grown()
        return b""

    def _was_emptied(self, file: BinaryIO) -> bool:
        is_shorter = os.fstat(file.fileno()).st_size < file.tell()
        return is_shorter or (bool(self._head) and not os.pread(file.fileno(), _HEAD, 0).startswith(self._head))

    def _begin_again(self, file: BinaryIO) -> None:
        file.seek(0)
        self._head = b""
        self.generation += 1

    def _was_replaced(self) -> bool:
        if self._file is None:
            return True
        try:
            there = self._path.stat()
        except OSError:
            return False  # between two files: the old one may still be written to
        own = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino)

    def _opened(self) -> BinaryIO | None:
        try:
            if self._path.exists() and not self._path.is_file():
                raise TargetError(f"{self._path} is no file that grows")
            return self._path.open("rb", buffering=0)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise TargetError(f"{self._path}: {getattr(error, 'strerror', None) or error}") from error


class GrowingPipe:
    """What comes through an open file descriptor: standard input."""

    generation = 0

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, timeout: float) -> bytes | None:
        ready, _, _ = select.select([self._descriptor], [], [], timeout)
        if not ready:
            return b""
        return os.read(self._descriptor, BLOCK) or None

    def close(self) -> None:
        """The descriptor is not ours."""


class GrowingOutput:
    """What a command prints until it ends. Its end is an error: it was to go on."""

    generation = 0

    def __init__(self, command: Sequence[str], what: str) -> None:
        self._what = what
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )  # fmt: skip
        except OSError as error:
            raise TargetError(f"{command[0]}: {error.strerror}") from error

    def read(self, timeout: float) -> bytes | None:
        output = self._process.stdout
        if output is None:
            return None
        ready, _, _ = select.select([output], [], [], timeout)
        if not ready:
            return b""
        found = os.read(output.fileno(), BLOCK)
        if found:
            return found
        said = self._process.stderr.read(4096).decode("utf-8", "replace").strip() if self._process.stderr else ""
        status = self._process.wait()
        raise TargetError(f"{self._what} ended with status {status}" + (f": {said.splitlines()[-1]}" if said else ""))

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
