"""What reading logs costs: lines and events of a large log, and the whole of a short one in a fresh interpreter.

    python benchmarks/bench_logs.py [MEGABYTES]

Prints one line a measurement: what, value, unit, bar. Exits 1 when a bar is missed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SEED_LOG = Path(__file__).parents[1] / "tests" / "data" / "logs" / "sglang.log"
READ_BAR = 20.0
"""Megabytes a second, lines without their prefixes."""
SHORT_BAR = 30.0
"""Milliseconds for the 100-line log beyond what its libraries cost, imports included."""
RUNS = 7


def ordinary_lines(rng: random.Random) -> Iterator[str]:
    """A vLLM server with eight workers: progress bars, access lines, scheduler statistics."""
    second = 0
    while True:
        second += 1
        clock = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        rank = rng.randrange(8)
        yield f"(EngineCore_DP0 pid=88) INFO 08-03 {clock} [loggers.py:118] Engine 000: Avg prompt throughput: {rng.random() * 900:.1f} tokens/s, Running: {rng.randrange(99)} reqs, GPU KV cache usage: {rng.random() * 100:.1f}%"
        yield f"(Worker pid={4000 + rank}) (Worker_TP{rank} pid={4000 + rank}) INFO 08-03 {clock} [gpu_model_runner.py:2007] Model loading took {rng.random() * 90:.4f} GiB and {rng.random() * 90:.6f} seconds"
        yield f'(APIServer pid=7) INFO:     192.0.2.{rng.randrange(255)}:{rng.randrange(60000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        yield f"[2026-11-29 {clock} TP{rank}] Decode batch. #running-req: {rng.randrange(64)}, #token: {rng.randrange(99999)}, token usage: 0.{rng.randrange(99):02d}, gen throughput (token/s): {rng.random() * 900:.2f}"
        yield f"Capturing CUDA graphs (decode, FULL): {rng.randrange(100)}%|████      | {rng.randrange(67)}/67 [00:03<00:00,  {rng.random() * 9:.2f}it/s]"


def large_log(megabytes: int) -> str:
    rng = random.Random(1)
    lines: list[str] = []
    size = 0
    for line in ordinary_lines(rng):
        lines.append(line)
        size += len(line) + 1
        if size > megabytes << 20:
            break
    lines.extend(SEED_LOG.read_text().splitlines())
    return "\n".join(lines)


def milliseconds(program: str, bytecode: str) -> float:
    """The fastest of some runs in fresh interpreters, with bytecode at hand as an installed package has it."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    best = float("inf")
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, env=environment)
        best = min(best, time.perf_counter() - begin)
    return best * 1000


def main() -> int:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    from gpuwhy.logs import facts_in, find_incidents, read_bytes

    data = large_log(megabytes).encode()
    size = len(data) / 1e6
    begin = time.perf_counter()
    log = read_bytes(data, "large")
    read = time.perf_counter()
    incident = find_incidents([log])
    found = time.perf_counter()
    facts_in(log)
    stated = time.perf_counter()
    assert incident.primary_event is not None
    assert incident.primary_event.detail["surfaced_as"].startswith("RuntimeError: FlashInfer requires GPUs")
    diagnosis = (
        "from gpuwhy.logs import facts_in, find_incidents, open_log\n"
        f"log = open_log({str(SEED_LOG)!r}); find_incidents([log]); facts_in(log)"
    )
    with tempfile.TemporaryDirectory() as bytecode:
        libraries = milliseconds("import msgspec, ahocorasick_rs, pathlib", bytecode)
        short = milliseconds(diagnosis, bytecode)
    rate = size / (read - begin)
    cost = short - libraries
    print(f"lines of a {size:.0f} MB log\t{rate:.1f}\tMB/s\t>= {READ_BAR:.0f}")
    print(f"events of it\t{size / (found - read):.1f}\tMB/s\t")
    print(f"stated facts of it\t{size / (stated - found):.1f}\tMB/s\t")
    print(f"the 100-line log, imports included\t{cost:.1f}\tms\t<= {SHORT_BAR:.0f}")
    return 0 if rate >= READ_BAR and cost <= SHORT_BAR else 1


if __name__ == "__main__":
    sys.exit(main())
