"""Milliseconds of one estimate of memory, and of reading a model's shape: every start of the scored file, and the seed.

Run: ``.venv/bin/python -m benchmarks.bench_fit``. The bars are 50 ms for an estimate and two
seconds for a search; exits with 1 when any breaks it.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

from scripts.score_fit import POINTS, hardware_of_row, model_of, models_beside, settings_of_row

from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.search import MOST_ESTIMATES, Goal, search

BAR = 50.0
SEARCH_BAR = 2000.0
SEARCHES = 43
"""How many of the starts are searched from, at most."""


def main() -> int:
    models = models_beside(POINTS, [])
    read: list[float] = []
    estimated: list[float] = []
    searched: list[float] = []
    for line in POINTS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        begun = time.perf_counter()
        model = model_of(row, models)
        read.append((time.perf_counter() - begun) * 1e3)
        settings = settings_of_row(row)
        hardware = hardware_of_row(row, settings)
        if model is None or hardware is None:
            continue
        begun = time.perf_counter()
        estimate(model, hardware, settings)
        estimated.append((time.perf_counter() - begun) * 1e3)
        if len(searched) < SEARCHES:
            begun = time.perf_counter()
            search(model, hardware, settings, Goal.CONCURRENCY)
            searched.append((time.perf_counter() - begun) * 1e3)
    print(
        f"{len(estimated)} estimates: median {statistics.median(estimated):.2f} ms, most {max(estimated):.2f} ms (bar {BAR:.0f}); "
        f"reading a shape: median {statistics.median(read):.2f} ms, most {max(read):.2f} ms"
    )
    print(f"{len(searched)} searches of up to {MOST_ESTIMATES} settings: median {statistics.median(searched):.0f} ms, most {max(searched):.0f} ms (bar {SEARCH_BAR:.0f})")  # fmt: skip
    return int(max(estimated) > BAR or max(searched) > SEARCH_BAR)


if __name__ == "__main__":
    sys.exit(main())
