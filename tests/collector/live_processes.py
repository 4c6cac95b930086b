"""Real processes that wait for something, started for a test and ended after it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.patience import until

HOLDER = """
import fcntl, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(600)
"""
"""Takes a lock as a build does, and keeps it."""

FILELOCK = '''
import fcntl, os, sys, time


class FileLock:
    """As filelock's UnixFileLock does it: open, try without blocking, close, sleep 50 ms, again."""

    def __init__(self, path):
        self.path = path

    def acquire(self):
        while True:
            file = os.open(self.path, os.O_RDWR)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                os.close(file)
            time.sleep(0.05)
'''
"""The module of a waiter, to be written into a folder called filelock, so that its frames read as the real one's."""

BATON = '''
import os, time


class FileBaton:
    """As torch.utils.file_baton does it: wait while the file is there."""

    def __init__(self, path):
        self.path = path

    def wait(self):
        while os.path.exists(self.path):
            time.sleep(0.1)
'''

SPINNING = "print('ready', flush=True)\ndef circle():\n    while True:\n        pass\ncircle()\n"

READING = """
import sys, time
file = open(sys.argv[1], "rb", buffering=0)
print("ready", flush=True)
while file.read(1 << 20):
    time.sleep(0.05)
time.sleep(600)
"""
"""Reads a file at about 20 MiB a second."""


@contextlib.contextmanager
def running(*arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process of its own group; it is ended with all its children, also when it is stopped."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, **(environment or {})}
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def python(program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """A Python program that has said "ready"; its process number."""
    with running(sys.executable, "-c", program, *arguments, environment=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid


def stop(pid: int) -> None:
    """Stops a process for good, and returns when it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T", f"process {pid} is stopped")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def flashinfer_lock(home: Path, name: str = "sampling") -> Path:
    """A lock file where FlashInfer 0.6 has it."""
    lock = home / ".cache/flashinfer/0.6.18/120f/cached_ops/tmp" / f"{name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    return lock


def waiter_of_filelock(folder: Path, lock: Path) -> str:
    """A program that waits for ``lock`` in code of a package called filelock."""
    package = folder / "site-packages/filelock"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "_unix.py").write_text(FILELOCK)
    return (
        f"import sys; sys.path.insert(0, {str(package.parent)!r})\nfrom filelock._unix import FileLock\n"
        f"print('ready', flush=True)\nFileLock({str(lock)!r}).acquire()\n"
    )


def waiter_of_baton(folder: Path, lock: Path) -> str:
    """A program that waits for a baton in code of a package called torch."""
    package = folder / "site-packages/torch/utils"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package.parent / "__init__.py").write_text("")
    (package / "file_baton.py").write_text(BATON)
    return (
        f"import sys; sys.path.insert(0, {str(package.parents[1])!r})\nfrom torch.utils.file_baton import FileBaton\n"
        f"print('ready', flush=True)\nFileBaton({str(lock)!r}).wait()\n"
    )
