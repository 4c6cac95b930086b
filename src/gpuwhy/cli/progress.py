"""Progress on standard error while a target is examined; silent when nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuwhy.reports import plain
from gpuwhy.snapshot.document import Probe


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
        sys.stderr.write(f"\r\x1b[2K{plain(name)[:40]}: {seen} probes, {plain(probe.name)} {probe.status}"[:100])
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
