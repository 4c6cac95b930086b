"""What a start of gpuwhy costs over a start of Python, and what the seed log costs over that.

Run: ``.venv/bin/python benchmarks/bench_start.py [RUNS]``. Medians of processes that are started by turns, so that a
machine that is busy for a while slows all of them. Exit status 1 when a bar is broken.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEED = str(ROOT / "tests" / "data" / "logs" / "sglang.log")
NOTHING = "python -c pass"
COMMANDS = {
    NOTHING: ["-c", "pass"],
    "gpuwhy --version": ["-m", "gpuwhy", "--version"],
    "gpuwhy diagnose sglang.log": ["-m", "gpuwhy", "diagnose", SEED],
}
BARS = {"gpuwhy --version": 0.060, "gpuwhy diagnose sglang.log": 0.250}
"""Most seconds over ``python -c pass``."""


def seconds(arguments: list[str]) -> float:
    """Wall time of one process."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        check=False,
    )
    return time.perf_counter() - begun


def measured(runs: int) -> dict[str, float]:
    """The median of each command. One round before the count warms the file cache and writes the bytecode,
    which an installed package has too."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(runs + 1):
        for name, arguments in COMMANDS.items():
            took = seconds(arguments)
            if number:
                taken[name].append(took)
    return {name: statistics.median(each) for name, each in taken.items()}


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    medians = measured(runs)
    is_broken = False
    for name, median in medians.items():
        line = f"{name:<28}{median * 1000:8.0f} ms"
        if name in BARS:
            over = median - medians[NOTHING]
            is_broken |= over > BARS[name]
            line += f"   {over * 1000:+5.0f} ms, bar {BARS[name] * 1000:.0f} ms{' BROKEN' if over > BARS[name] else ''}"
        print(line)
    return 1 if is_broken else 0


if __name__ == "__main__":
    sys.exit(main())
