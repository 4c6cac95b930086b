"""Milliseconds of processor time from a diagnosis to its report: HTML of the seed case and of an incident of 500 events, text of the seed.

Run: ``.venv/bin/python -m benchmarks.bench_reports``. Each figure is of a process of its own that has rendered nothing
before, so its imports count; bytecode of modules and templates is kept as in any installation, and the first process, which
makes it, is told apart. The least of several is taken, as other work on the machine only adds. Bars: HTML of the seed 150 ms, of 500 events 600 ms, text 120 ms. Exits with 1 when any breaks it.
"""

from __future__ import annotations

import os
import subprocess
import sys

RUNS = 9
BARS = {("html", "seed"): 150.0, ("html", "large"): 600.0, ("text", "seed"): 120.0}
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_ONE = """
import sys, time
from tests.reports.html import samples
diagnosis = getattr(samples, sys.argv[2])()
begun = time.process_time()
from gpuwhy.reports import render
text = render(diagnosis, sys.argv[1])
print((time.process_time() - begun) * 1e3, len(text.encode()))
"""


def main() -> int:
    is_slow = False
    for (form, name), bar in BARS.items():
        fresh, _ = _measured(form, name)
        figures = sorted(_measured(form, name) for _ in range(RUNS))
        least, size = figures[0]
        is_slow = is_slow or least > bar
        middle = figures[len(figures) // 2][0]
        print(
            f"{form:5} {name:6} {least:6.1f} ms (median {middle:.1f}, the first process {fresh:.1f}, bar {bar:.0f}), {size / 1000:,.0f} kB"
        )
    return int(is_slow)


def _measured(form: str, name: str) -> tuple[float, int]:
    """Milliseconds and bytes of one report, in a fresh process."""
    ran = subprocess.run(
        [sys.executable, "-c", _ONE, form, name],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=_ENVIRONMENT,
    )
    milliseconds, size = ran.stdout.split()
    return float(milliseconds), int(size)


if __name__ == "__main__":
    sys.exit(main())
