"""Running the real program, as it is sent, with any Python at hand."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.collector.bundle import program
from gpuwhy.targets.pipe import BOOTSTRAP, PYTHON_OPTIONS, framed


@dataclass(frozen=True)
class Run:
    """What the program printed, and how it ended."""

    status: int
    lines: list[dict[str, Any]]
    raw: str
    errors: str
    seconds: float

    def probe(self, name: str) -> dict[str, Any]:
        return next(line for line in self.lines if line.get("probe") == name)

    def value(self, name: str) -> Any:
        found = self.probe(name)
        assert found["status"] == "ok", found
        return found["value"]

    @property
    def end(self) -> dict[str, Any]:
        end: dict[str, Any] = next(line["end"] for line in self.lines if "end" in line)
        return end


def start(python: str = sys.executable, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """The collector as a process that has its program and waits for its request."""
    process = subprocess.Popen(
        [python, *PYTHON_OPTIONS, "-c", BOOTSTRAP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdin is not None
    process.stdin.write(framed(program()))
    process.stdin.flush()
    return process


def collect(
    request: Mapping[str, Any] | bytes | None = None,
    asks: bytes = b"",
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Runs the program to its end, with its input closed after the last request."""
    first = request if isinstance(request, bytes) else json.dumps(request or {}).encode()
    started = time.monotonic()
    process = start(python, environment)
    out, err = process.communicate(first + b"\n" + asks, timeout=60)
    raw = out.decode("ascii")
    lines = [json.loads(line) for line in raw.splitlines()]
    return Run(process.returncode, lines, raw, err.decode(), time.monotonic() - started)


def interpreters() -> list[str]:
    """Every Python >= 3.6 on this machine, the oldest first, one for each minor version."""
    folders = [
        *os.environ.get("PATH", "").split(":"),
        "/usr/bin",
        "/usr/local/bin",
        *glob.glob("/root/.pyenv/versions/*/bin"),
        *glob.glob("/home/*/.pyenv/versions/*/bin"),
    ]
    found: dict[tuple[int, int], str] = {}
    for folder in folders:
        for path in sorted(glob.glob(f"{folder}/python3*")):
            if re.fullmatch(r"python3(\.\d+)?", os.path.basename(path)) and "shims" not in path:
                version = _version(path)
                if version is not None and version >= (3, 6):
                    found.setdefault(version, path)
    return [found[version] for version in sorted(found)]


def _version(python: str) -> tuple[int, int] | None:
    show = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-I", "-S", "-c", show], capture_output=True, text=True, timeout=300, check=True)
        major, minor = done.stdout.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return int(major), int(minor)


def executable(path: Path, text: str) -> Path:
    """Writes a script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def nvcc(root: Path, version: str = "12.8", patch: str = "93") -> Path:
    """A toolkit of that version, as far as being asked for its version goes."""
    banner = f"nvcc: NVIDIA (R) Cuda compiler driver\\nCuda compilation tools, release {version}, V{version}.{patch}\\n"
    executable(root / "bin/nvcc", f"#!/bin/sh\nprintf '{banner}'\n")
    return root


@pytest.fixture
def sleeper(tmp_path: Path) -> Any:
    """Starts a process that waits, with exactly the environment given; ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(**variables: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "print(flush=True); import time; time.sleep(60)"],
            env=variables,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process.pid

    yield run
    for process in started:
        process.kill()
        process.communicate()
