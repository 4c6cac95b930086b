"""What a collection costs here: bytes sent, seconds, memory, by probe; over cold SSH; beside torch's collect_env.

python benchmarks/bench_collector.py
python benchmarks/bench_collector.py --ssh root@gpu-host
python benchmarks/bench_collector.py --torch .lab/seed/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from gpuwhy.collector.bundle import program
from gpuwhy.redaction import Redactor
from gpuwhy.snapshot import Snapshot, collect, facts_of
from gpuwhy.targets.local import LocalTarget
from gpuwhy.targets.pipe import BOOTSTRAP, PYTHON_OPTIONS, framed
from gpuwhy.targets.ssh import SshTarget

RUNS = 7
SENT_BYTES = 150_000
SECONDS = 2.0
MEMORY_MIB = 60
BEYOND_SSH_SECONDS = 3.0
JOURNAL_LINES = 20_000
LINE = (
    "[2026-11-30 06:09:2{0}] Prefill batch, #new-seq: 1, #new-token: {1}, #cached-token: 0, token usage: 0.0{0}, "
    "#running-req: {0}, #queue-req: 0, gen throughput (token/s): {1}.{0}"
)
COLLECT_ENV = "import time; t = time.perf_counter(); from torch.utils.collect_env import get_pretty_env_info; print(get_pretty_env_info()); print('seconds', time.perf_counter() - t)"  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ssh", metavar="HOST", help="also from the command to the diagnosis of a host over cold SSH")
    options.add_argument("--torch", metavar="PYTHON", help="also torch's collect_env, by a Python that has torch")
    chosen = options.parse_args()
    sent = len(framed(program()))
    print(f"program: {len(program().encode())} bytes, sent as {sent} (bar: {SENT_BYTES})")
    collections(RUNS)
    memory()
    redaction(JOURNAL_LINES)
    if chosen.ssh:
        over_ssh(chosen.ssh, RUNS)
    if chosen.torch:
        beside_collect_env(chosen.torch)


def collections(runs: int) -> None:
    taken: list[Snapshot] = []
    seconds: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        taken.append(collect(LocalTarget()))
        seconds.append(time.perf_counter() - started)
    middle, worst = statistics.median(seconds), max(seconds)
    print(f"local collection: median {middle:.3f} s, worst {worst:.3f} s, of {runs} (bar: {SECONDS} s)")
    for probe in sorted(taken[-1].probes, key=lambda each: -each.duration)[:6]:
        print(f"  {probe.name:20} {probe.duration:7.3f} s  {probe.status}")


def memory() -> None:
    """The largest resident size of the collector's own process, and of whatever it ran, as the kernel counted it."""
    data = framed(program()) + json.dumps({"deadline": 8}).encode() + b"\n"
    measured = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdin=sys.stdin, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", measured, sys.executable, *PYTHON_OPTIONS, "-c", BOOTSTRAP]
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    print(f"memory on the target: {int(done.stdout) / 1024:.0f} MiB (bar: {MEMORY_MIB})")


def redaction(lines: int) -> None:
    journal = [LINE.format(number % 10, number) for number in range(lines)]
    size = sum(map(len, journal)) / (1 << 20)
    started = time.perf_counter()
    Redactor().value(journal)
    spent = time.perf_counter() - started
    print(f"redaction: {lines} journal lines ({size:.1f} MiB) in {spent:.3f} s")


def over_ssh(host: str, runs: int) -> None:
    """`ssh HOST true` and `gpuwhy diagnose HOST`, each with a new connection, in turns."""
    bare, whole = [], []
    command = SshTarget(host).command()[:-1]
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([*command, "true"], check=True, stdin=subprocess.DEVNULL)
        bare.append(time.perf_counter() - started)
        started = time.perf_counter()
        words = [sys.executable, "-m", "gpuwhy", "diagnose", host, "--format", "json"]
        subprocess.run(words, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        whole.append(time.perf_counter() - started)
    true, diagnosis = statistics.median(bare), statistics.median(whole)
    print(
        f"ssh {host} true: median {true:.3f} s; gpuwhy diagnose {host}: median {diagnosis:.3f} s, worst {max(whole):.3f} s"
    )
    print(f"  {diagnosis - true:.3f} s beyond ssh (bar: {BEYOND_SSH_SECONDS} s)")


def beside_collect_env(python: str) -> None:
    """torch's own report and a snapshot, on this machine one after the other: seconds, and how many facts each tells."""
    started = time.perf_counter()
    environment = {**os.environ, "PATH": os.path.dirname(os.path.abspath(python)) + ":" + os.environ.get("PATH", "")}
    done = subprocess.run([python, "-c", COLLECT_ENV], capture_output=True, text=True, check=True, env=environment)
    theirs = time.perf_counter() - started
    told = [line for line in done.stdout.splitlines() if told_by(line)]
    started = time.perf_counter()
    sleeper = subprocess.Popen([python, "-c", "import time; time.sleep(60)"], env=environment)
    try:
        taken = collect(LocalTarget(), f"pid:{sleeper.pid}")
    finally:
        sleeper.kill()
        sleeper.wait()
    ours = time.perf_counter() - started
    facts = len(list(facts_of(taken)))
    print(f"collect_env: {len(told)} facts in {theirs:.2f} s; gpuwhy: {facts} facts in {ours:.2f} s")
    print(f"  {facts / max(1, len(told)):.1f} times the facts in {ours / theirs:.2f} of the time")


def told_by(line: str) -> bool:
    """Whether a line of collect_env tells something: a name and a value that is not "could not collect"."""
    name, sign, value = line.partition(": ")
    is_package = line.startswith(("[pip3]", "[conda]"))
    return is_package or bool(name and sign and value.strip() and value.strip() not in ("N/A", "Could not collect"))


if __name__ == "__main__":
    main()
