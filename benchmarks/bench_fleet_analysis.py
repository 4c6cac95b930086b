"""Analysis of a fleet: how long and in how much memory, how it grows, and whether what was planted is found.

Run: ``.venv/bin/python -m benchmarks.bench_fleet_analysis [--nodes 500 5000] [--fleets 100] [--size 96]``. The bars:
5,000 snapshots grouped, judged and reported in 120 s on two processors in 500 MB (all processes together), ten times the
nodes in no more than 13 times the processor time; in 100 random fleets with one to five planted deviations among fifty harmless differences at least
98 % of the planted ones among the first ten outliers. Exits with 1 when one is broken.

Wall-clock time on a machine that does other things as well says little: the processor time is printed beside it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.fleet.generating import Planted, generate, names, plan

from gpuwhy.model.fleet import FleetReport

BAR_SECONDS, BAR_BYTES, BAR_GROWTH, BAR_FOUND = 120.0, 500 << 20, 1.3, 0.98
FIRST = 10
CRASHES = 0.01


class Measured(NamedTuple):
    """One analysis: seconds by the clock and of all processors, and the most memory of all its processes together."""

    nodes: int
    wall: float
    processor: float
    memory: int
    report: FleetReport


def measured(folder: Path, nodes: int) -> Measured:
    """Analyses a folder in a child of its own, so that the memory is that of the analysis alone."""
    import msgspec

    reading, writing = os.pipe()
    began, before = time.monotonic(), _processor()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _analyse_in_child(folder, writing)
    os.close(writing)
    most = [0]
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(child, most, over))
    watch.start()
    with os.fdopen(reading, "rb") as answers:
        data = answers.read()
    os.waitpid(child, 0)
    wall = time.monotonic() - began
    over.set()
    watch.join()
    return Measured(nodes, wall, _processor() - before, most[0], msgspec.json.decode(data, type=FleetReport))


def _analyse_in_child(folder: Path, writing: int) -> None:
    import msgspec

    from gpuwhy.fleet.analysing import analyse
    from gpuwhy.reports import render

    status = 1
    try:
        report = analyse(folder, processes=2)
        for form in ("text", "json", "html"):
            (folder / f"report.{form}").write_text(render(report, form))
        with os.fdopen(writing, "wb") as answers:
            answers.write(msgspec.json.encode(report))
        status = 0
    finally:
        os._exit(status)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(parent: int, most: list[int], over: threading.Event) -> None:
    while not over.wait(0.1):
        most[0] = max(most[0], sum(_proportional(each) for each in _family(parent)))


def _family(parent: int) -> list[int]:
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return []
    return [parent, *map(int, children)]


def _proportional(pid: int) -> int:
    """What a process has in memory, pages that it shares counted in parts: the sum over processes is what they take."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:")), 0)


def found(report: FleetReport, planted: Planted, first: int = FIRST) -> bool:
    """Whether the first outliers name the nodes of what was planted, with the fact in which it shows."""
    wanted = set(planted.nodes)
    for outlier in report.outliers[:first]:
        if wanted & set(outlier.nodes) and any(each.key in planted.fault.keys for each in outlier.deviations):
            wanted -= set(outlier.nodes)
    return not wanted


def accuracy(fleets: int, size: int, folder: Path, missed: Callable[[int, Planted], None]) -> tuple[int, int]:
    """How many of the planted deviations were found, and how many there were."""
    from gpuwhy.fleet.analysing import analyse

    right = total = 0
    for seed in range(fleets):
        planted = plan(seed, names(size))
        place = folder / f"fleet-{seed}"
        generate(place, size, seed, planted)
        report = analyse(place)
        for each in planted:
            total += 1
            if found(report, each):
                right += 1
            else:
                missed(seed, each)
        shutil.rmtree(place)
    return right, total


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--nodes", type=int, nargs="*", default=[500, 5000])
    options.add_argument("--fleets", type=int, default=100)
    options.add_argument("--size", type=int, default=64, help="nodes of each of the random fleets")
    asked = options.parse_args()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gpuwhy-fleets-") as temporary:
        folder = Path(temporary)
        broken += _scale(asked.nodes, folder)
        if asked.fleets:
            right, total = accuracy(asked.fleets, asked.size, folder, _missed)
            sys.stdout.write(f"{asked.fleets} fleets of {asked.size} nodes: {right} of {total} planted deviations among the first {FIRST} outliers ({right / total:.1%}, bar {BAR_FOUND:.0%})\n")  # fmt: skip
            broken += [] if right >= BAR_FOUND * total else ["planted deviations were missed"]
    sys.stdout.write("".join(f"broken: {each}\n" for each in broken))
    return 1 if broken else 0


def _missed(seed: int, planted: Planted) -> None:
    sys.stdout.write(f"missed in fleet {seed}: {planted.fault.name} on {', '.join(planted.nodes)}\n")


def _scale(sizes: list[int], folder: Path) -> list[str]:
    broken: list[str] = []
    results: list[Measured] = []
    for nodes in sizes:
        place = folder / f"nodes-{nodes}"
        planted = plan(nodes, names(nodes))
        generate(place, nodes, nodes, planted, crashes=max(1, round(nodes * CRASHES)))
        result = measured(place, nodes)
        shutil.rmtree(place)
        results.append(result)
        right = sum(found(result.report, each) for each in planted)
        sys.stdout.write(f"{nodes:>6} nodes: {result.wall:6.1f} s, {result.processor:6.1f} s of processors, {result.memory >> 20} MB; {result.report.judged} hosts judged, {right} of {len(planted)} planted found\n")  # fmt: skip
        sys.stdout.flush()
        if result.wall > BAR_SECONDS:
            broken.append(f"{nodes} nodes took {result.wall:.0f} s")
        if result.memory > BAR_BYTES:
            broken.append(f"{nodes} nodes took {result.memory >> 20} MB")
    for small, large in pairwise(results):
        growth = (large.processor / small.processor) / (large.nodes / small.nodes)
        sys.stdout.write(f"{large.nodes / small.nodes:g} times the nodes: {large.processor / small.processor:.1f} times the processor time\n")  # fmt: skip
        if growth > BAR_GROWTH:
            broken.append(f"it grows {growth:.2f} times faster than the fleet")
    return broken


if __name__ == "__main__":
    sys.exit(main())
