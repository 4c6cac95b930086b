"""How long a collection takes here: whole, by probe, and what redaction costs on a long journal.

python benchmarks/bench_collector.py
"""

from __future__ import annotations

import statistics
import time

from gpuwhy.collector.bundle import program
from gpuwhy.redaction import Redactor
from gpuwhy.snapshot import Snapshot, collect
from gpuwhy.targets.local import LocalTarget

RUNS = 7
JOURNAL_LINES = 20_000
LINE = (
    "[2026-11-30 06:09:2{0}] Prefill batch, #new-seq: 1, #new-token: {1}, #cached-token: 0, token usage: 0.0{0}, "
    "#running-req: {0}, #queue-req: 0, gen throughput (token/s): {1}.{0}"
)


def main() -> None:
    print(f"program: {len(program().encode()) / 1024:.0f} KiB")
    collections(RUNS)
    redaction(JOURNAL_LINES)


def collections(runs: int) -> None:
    taken: list[Snapshot] = []
    seconds: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        taken.append(collect(LocalTarget()))
        seconds.append(time.perf_counter() - started)
    print(f"local collection: median {statistics.median(seconds):.3f} s, worst {max(seconds):.3f} s, of {runs}")
    for probe in sorted(taken[-1].probes, key=lambda each: -each.duration)[:6]:
        print(f"  {probe.name:20} {probe.duration:7.3f} s  {probe.status}")


def redaction(lines: int) -> None:
    journal = [LINE.format(number % 10, number) for number in range(lines)]
    size = sum(map(len, journal)) / (1 << 20)
    started = time.perf_counter()
    Redactor().value(journal)
    spent = time.perf_counter() - started
    print(f"redaction: {lines} journal lines ({size:.1f} MiB) in {spent:.3f} s")


if __name__ == "__main__":
    main()
