"""Milliseconds to judge one case by all causes, after it was read: every labelled case, and each in a long log.

Run: ``.venv/bin/python -m benchmarks.bench_judge``. The bar is 15 ms for a case; exits with 1 when the median or the
95th percentile breaks it. The first case, which compiles patterns, is judged twice and counted once.
"""

from __future__ import annotations

import statistics
import sys
import time

from scripts.score import CASES, read_cases
from scripts.variations import buried

from gpuwhy.causes import catalogue
from gpuwhy.diagnosis import completed, judge
from gpuwhy.logs import facts_in, find_incidents, read_bytes

BAR = 15.0


def milliseconds(report: str) -> float:
    """What the judgement alone takes; the reading is not counted."""
    log = read_bytes(report.encode(), "report")
    facts = completed(facts_in(log))
    incident = find_incidents([log])
    judge(incident, facts)
    begun = time.perf_counter()
    judge(incident, facts)
    return (time.perf_counter() - begun) * 1e3


def main() -> int:
    cases = read_cases(CASES)
    taken = sorted((milliseconds(case["report"]), case["id"]) for case in cases)
    times = [each for each, _ in taken]
    late = times[int(0.95 * len(times))]
    print(
        f"{len(cases)} cases, {len(catalogue())} causes: median {statistics.median(times):.1f} ms, 95 % under {late:.1f} ms"
    )
    print("slowest: " + ", ".join(f"{name} {each:.1f} ms" for each, name in taken[-3:]))
    long = [milliseconds(buried(case["report"])) for case in cases[::12]]
    print(f"in a log of 5,000 lines: median {statistics.median(long):.1f} ms, slowest {max(long):.1f} ms")
    return int(statistics.median(times) > BAR or late > BAR)


if __name__ == "__main__":
    sys.exit(main())
