"""How long a test waits: what has to come may take long on a busy machine, and its coming ends the wait.

How long things take on a quiet machine is measured by ``benchmarks/``. A test only tells what comes from what never does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

BUSY = 5.0
"""How many times as long as on a quiet machine something may take."""

AT_MOST = 60.0
"""Seconds after which what is waited for will not come: far more than any of it takes on a machine with other work too."""


def until(holds: Callable[[], object], what: str = "it", seconds: float = AT_MOST) -> None:
    """Returns when ``holds`` does; fails, naming ``what``, when it does not within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"after {seconds:g} s still not: {what}"
        time.sleep(0.02)
