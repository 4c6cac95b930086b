"""Seconds and megabytes a second for each stage of a diagnosis, on the seed log and on a log of many megabytes.

Run: ``.venv/bin/python benchmarks/bench_diagnose.py [MEGABYTES]``. Medians of several runs in one process; the first,
cold run of the seed log (imports and compiled patterns included) is printed apart.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOGS = Path(__file__).parents[1] / "tests" / "data" / "logs"


def seconds(work: Callable[[], object], runs: int) -> float:
    """Median wall time of one call."""
    taken = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def enlarged(data: bytes, megabytes: int) -> bytes:
    """Ordinary serving lines, as many as asked for, with the crash of the seed log at their end."""
    ordinary = b"".join(
        b"[2026-11-29 10:%02d:%02d TP%d] Decode batch, #running-req: %d, #token: %d, gen throughput (token/s): %d.11\n"
        % (n // 60 % 60, n % 60, n % 8, n % 64, n * 7 % 90_000, n % 4_000)
        for n in range(10_000)
    )
    return ordinary * (megabytes * 1_000_000 // len(ordinary) + 1) + data


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = (LOGS / "sglang.log").read_bytes()
    begun = time.perf_counter()
    from gpuwhy.investigate import diagnose_log

    diagnose_log(seed, "seed")
    print(f"seed log, cold        {time.perf_counter() - begun:8.3f} s")
    print(f"seed log, warm        {seconds(lambda: diagnose_log(seed, 'seed'), 9):8.3f} s")
    from gpuwhy.causes import catalogue
    from gpuwhy.diagnosis.judging import judge
    from gpuwhy.diagnosis.matching import SignFinder
    from gpuwhy.logs import facts_in, find_incidents, read_bytes
    from gpuwhy.model.fact import Facts

    data = enlarged(seed, megabytes)
    log = read_bytes(data, "large")
    incident = find_incidents([log])
    finder = SignFinder(catalogue().values())
    stages: tuple[tuple[str, Callable[[], object]], ...] = (
        ("read lines", lambda: read_bytes(data, "large")),
        ("find incident", lambda: find_incidents([log])),
        ("stated facts", lambda: facts_in(log)),
        ("find signs", lambda: finder.find(incident)),
        ("judge", lambda: judge(incident, Facts())),
        ("whole diagnosis", lambda: diagnose_log(data, "large")),
    )
    for name, work in stages:
        took = seconds(work, 3)
        print(
            f"{name:<22}{took:8.3f} s {len(data) / 1e6 / took:8.1f} MB/s  ({len(data) / 1e6:.0f} MB, {len(log.lines)} lines)"
        )


if __name__ == "__main__":
    main()
