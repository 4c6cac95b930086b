"""Progress of a fleet on standard error: how many nodes are done, with what, and which are the slowest."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gpuwhy.cli.progress import can_overwrite, overwrite
from gpuwhy.reports import plain
from gpuwhy.reports.columns import cut

if TYPE_CHECKING:
    from gpuwhy.fleet.store import Node

ON_TERMINAL, IN_LOG = 0.2, 10.0
"""Seconds between two showings: a line that is overwritten, and lines that stay."""

SLOWEST = 3


class FleetProgress:
    """Counts what :func:`gpuwhy.fleet.collecting.collect_fleet` tells; a thread of its own shows it, as engines block."""

    def __init__(self, total: int, stream: TextIO, every: float) -> None:
        self._total, self._stream, self._every = total, stream, every
        self._is_terminal = can_overwrite(stream)
        self._begun: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show_until_over, daemon=True)

    def on_node(self, name: str, node: Node | None) -> None:
        """A node is begun, or (with its row) done with."""
        with self._lock:
            if node is None:
                self._begun[name] = time.monotonic()
            else:
                self._begun.pop(name, None)
                self._counts[node.status] = self._counts.get(node.status, 0) + 1

    def line(self) -> str:
        """``12 of 200 done (11 ok, 1 refused), 64 under way, slowest gpu017 9 s, gpu003 4 s``."""
        with self._lock:
            counts, begun = dict(self._counts), sorted(self._begun.items(), key=lambda item: item[1])
        done = sum(counts.values())
        kinds = ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=lambda item: -item[1]))
        text = f"{done} of {self._total} done" + (f" ({kinds})" if kinds else "")
        if begun:
            now = time.monotonic()
            slowest = ", ".join(f"{cut(plain(name), 40)} {now - since:.0f} s" for name, since in begun[:SLOWEST])
            text += f", {len(begun)} under way, slowest {slowest}"
        return text

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        if self._is_terminal:
            overwrite("", self._stream)

    def _show_until_over(self) -> None:
        while not self._over.wait(self._every):
            text = self.line()
            if self._is_terminal:
                overwrite(text, self._stream)
            else:
                self._stream.write(f"gpuwhy: {text}\n")
                self._stream.flush()


@contextmanager
def shown_fleet(total: int, every: float | None = None) -> Iterator[FleetProgress]:
    """Shows progress until the block is left; ``every`` are the seconds between two showings."""
    terminal = can_overwrite(sys.stderr)
    progress = FleetProgress(total, sys.stderr, every or (ON_TERMINAL if terminal else IN_LOG))
    progress.start()
    try:
        yield progress
    finally:
        progress.stop()
