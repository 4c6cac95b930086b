"""Asking CUDA's own tools for their version: ``nvcc --version`` and ``ptxas --version`` print the same last lines.

Cuda compilation tools, release 12.8, V12.8.93
Build cuda_12.8.r12.8/compiler.35583870_0
"""

import os
import re
import stat
import threading
from typing import Dict, Optional

from gpuwhy.collector import commands
from gpuwhy.collector.probing import NoValue


class Version:
    """``release`` as ``12.8``, ``full`` as ``12.8.93``; ``problem`` says why there is none (``not executable`` ...)."""

    def __init__(self, release: Optional[str], full: Optional[str], problem: str = "", kind: str = "") -> None:
        self.release = release
        self.full = full
        self.problem = problem
        self.kind = kind


_answers: Dict[str, Version] = {}
_locks: Dict[str, threading.Lock] = {}
_lock = threading.Lock()


def version_of(path: str) -> Version:
    """The version that the tool at ``path`` prints. Each file is asked once per run, however many probes want to know."""
    real = os.path.realpath(path)
    with _lock:
        own = _locks.setdefault(real, threading.Lock())
    with own:
        if real not in _answers:
            _answers[real] = _ask(path)
        return _answers[real]


def _ask(path: str) -> Version:
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return Version(None, None, "may not be reached by this user", "denied")
    except OSError:
        return Version(None, None, "does not exist", "missing")
    if stat.S_ISDIR(mode):
        return Version(None, None, "is a folder", "unusable")
    if not mode & 0o111:
        return Version(None, None, "is not executable", "not executable")
    try:
        output = commands.run(path, ["--version"], timeout=3.0, most=1 << 16)
    except NoValue as problem:
        return Version(None, None, problem.reason, problem.status)
    release = re.search(r"release (\d+\.\d+),", output.out)
    full = re.search(r"\bV(\d+\.\d+\.\d+)", output.out)
    if release is None:
        return Version(None, None, "printed no version (exit status %d)" % output.status, "unusable")
    return Version(release.group(1), full.group(1) if full else None)
