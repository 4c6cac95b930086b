"""Progress on standard error while a target is examined; silent when nobody watches."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gpuwhy.reports import plain
from gpuwhy.reports.columns import cut
from gpuwhy.reports.counting import counted

if TYPE_CHECKING:
    from gpuwhy.snapshot.document import Probe


PATIENCE = 1.5
"""Seconds for which nobody wonders whether anything happens."""


def can_overwrite(stream: TextIO) -> bool:
    """Whether a line that was written can be wiped: a terminal that is not a dumb one (an editor's, a serial console's)."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _columns(stream: TextIO) -> int:
    """Of the terminal that the stream goes to: standard output may be a file, or another one."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def overwrite(line: str, stream: TextIO | None = None) -> None:
    """Shows a line in the place of the one before; cut, as a line that is folded in a narrow pane could not be wiped."""
    stream = stream or sys.stderr
    stream.write(f"\r\x1b[2K{cut(line, _columns(stream) - 1, '')}")
    stream.flush()


@contextmanager
def shown_progress(name: str) -> Iterator[Callable[[Probe], None] | None]:
    """One line that is overwritten with each probe and wiped at the end; None where nobody watches a terminal that can."""
    if not can_overwrite(sys.stderr):
        yield None
        return
    seen = 0

    def show(probe: Probe) -> None:
        nonlocal seen
        seen += 1
        overwrite(f"{cut(plain(name), 40)}: {seen} probes, {plain(probe.name)} {probe.status}")

    try:
        yield show
    finally:
        if seen:
            overwrite("")


@contextmanager
def shown_reading() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar while binaries are read: name, how much, of how much (0 when not known); None when nobody watches."""
    if not can_overwrite(sys.stderr):
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
        bar = f"[{'#' * int(part * 20):20}] {part:4.0%} {done / 1e6:,.0f} MB" if total else counted(done, "file")
        overwrite(f"{bar} {plain(name)[-60:]}")

    try:
        yield show
    finally:
        if due:
            overwrite("")


@contextmanager
def shown_wait(what: str) -> Iterator[Callable[[], None]]:
    """What is being waited for and for how long, from :data:`PATIENCE` on. Gives what wipes the line before something else
    is printed; it comes back after that."""
    if not can_overwrite(sys.stderr):
        yield lambda: None
        return
    begun, over, line = time.monotonic(), threading.Event(), threading.Lock()
    is_shown = False

    def tick() -> None:
        nonlocal is_shown
        wait = PATIENCE
        while not over.wait(wait):
            wait = 1.0
            with line:
                is_shown = True
                overwrite(f"{plain(what)}: {time.monotonic() - begun:.0f} s")

    def wipe() -> None:
        nonlocal is_shown
        with line:
            if is_shown:
                overwrite("")
            is_shown = False

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield wipe
    finally:
        over.set()
        ticker.join()
        wipe()
