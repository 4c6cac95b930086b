"""Progress on standard error while a target is examined; silent when nobody watches."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpuwhy.reports import plain

if TYPE_CHECKING:
    from gpuwhy.snapshot.document import Probe


def _overwrite(line: str) -> None:
    """A line that wraps in a narrow pane could not be wiped."""
    sys.stderr.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}")
    sys.stderr.flush()


@contextmanager
def shown_progress(name: str) -> Iterator[Callable[[Probe], None] | None]:
    """One line that is overwritten with each probe and wiped at the end; None when standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    seen = 0

    def show(probe: Probe) -> None:
        nonlocal seen
        seen += 1
        _overwrite(f"{plain(name)[:40]}: {seen} probes, {plain(probe.name)} {probe.status}")

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


@contextmanager
def shown_reading() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar while binaries are read: name, how much, of how much (0 when not known); None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    due = 0.0

    def show(name: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now < due:
            return
        due = now + 0.1
        part = min(done / total, 1) if total else 0
        bar = f"[{'#' * int(part * 20):20}] {part:4.0%} {done / 1e6:,.0f} MB" if total else f"{done} files"
        _overwrite(f"{bar} {plain(name)[-60:]}")

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
