"""A failure kept at the moment in which it happens: a snapshot and its diagnosis, within a cap on number and room."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from pathlib import Path

from gpuwhy.investigate import examine
from gpuwhy.remedies import prescribe
from gpuwhy.reports.interface import Detail
from gpuwhy.reports.json import render as as_json
from gpuwhy.reports.text import render as as_text
from gpuwhy.snapshot import write
from gpuwhy.targets.local import LocalTarget

TIMEOUT = 60.0
"""Seconds for the whole look: the restart of the unit waits for a part of it."""

_UNIT = re.compile(r"[A-Za-z0-9_.@\\:][A-Za-z0-9:_.\\@-]{0,250}")
_PARTS = (".gpuwhy", ".json", ".txt")


def record_failure(unit: str, below: Path, *, number: int, most_bytes: int) -> str:
    """Keep a snapshot of the unit's failure and its diagnosis below ``below``; says what was done.

    Nothing is kept of a unit that ended well, nor twice of one life of it. Raises :class:`gpuwhy.targets.TargetError`
    and OSError.
    """
    if not _UNIT.fullmatch(unit) or ".." in unit:
        raise ValueError(f"{unit!r} is not the name of a unit")
    state = _state(unit)
    if state.get("Result") == "success":
        return f"{unit} did not fail: nothing to record"
    folder = below / unit
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    life = state.get("InvocationID", "")[:12] or "unknown"
    if life != "unknown" and any(life in each.name for each in folder.iterdir()):
        return f"this failure of {unit} was recorded before"
    examination = examine(LocalTarget(), unit=unit, timeout=TIMEOUT)
    diagnosis = prescribe(examination.diagnosis)
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{life}"
    if examination.snapshot is not None:
        write(examination.snapshot, folder / f"{name}.gpuwhy")
    _write(folder / f"{name}.json", as_json(diagnosis))
    _write(folder / f"{name}.txt", as_text(diagnosis, Detail()))
    removed = prune(folder, number, most_bytes)
    gone = f"; {removed} older ones removed" if removed else ""
    return (
        f"{unit}: {diagnosis.findings[0].title if diagnosis.findings else 'cause not known'} ({folder / name}.*){gone}"
    )


def prune(folder: Path, number: int, most_bytes: int) -> int:
    """Remove the oldest failures until at most ``number`` of them, and ``most_bytes``, are left; the newest stays.

    Gives how many went.
    """
    failures: dict[str, int] = {}
    for each in sorted(folder.iterdir()):
        if each.suffix in _PARTS and not each.is_symlink():
            failures[each.stem] = failures.get(each.stem, 0) + each.stat().st_size
    removed = 0
    for name in list(failures)[:-1]:
        if len(failures) <= number and sum(failures.values()) <= most_bytes:
            break
        for part in _PARTS:
            with contextlib.suppress(FileNotFoundError):
                (folder / f"{name}{part}").unlink()
        del failures[name]
        removed += 1
    return removed


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


def _state(unit: str) -> dict[str, str]:
    """The unit's result and the id of its life; empty where systemd does not answer."""
    asked = ["systemctl", "show", "--no-pager", "-p", "Result,InvocationID", "--", unit]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines() if "=" in line)
