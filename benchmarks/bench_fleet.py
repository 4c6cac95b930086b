"""What gpuwhy adds to the engine that it runs on: 200 hosts over ClusterShell, beside ClusterShell alone. Needs root and sshd.

python benchmarks/bench_fleet.py
python benchmarks/bench_fleet.py --hosts 500 --real

The hosts are addresses of one sshd in a network namespace. Both sides send them the same bytes and get the same answer: one
that a collector gave, with a megabyte of log in it, read from a file there, so that the work of 200 collectors on the cores
of one machine is no part of the comparison. ``--real`` lets them run nevertheless.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.lab.fleet_hosts import Fleet, fleet  # noqa: E402

from gpuwhy.collector.framing import LONG_LINE, Framer  # noqa: E402
from gpuwhy.fleet.answers import read_answers  # noqa: E402
from gpuwhy.fleet.collecting import Asked, payload  # noqa: E402
from gpuwhy.fleet.store import Store  # noqa: E402

RATIO, MEMORY_MB = 1.25, 150

CLUSTERSHELL = """\
import sys
from ClusterShell.Event import EventHandler
from ClusterShell.Task import task_self
class Handler(EventHandler):
    got = 0
    def ev_read(self, worker, node, sname, msg):
        Handler.got += len(msg) + 1 if sname == "stdout" else 0
task = task_self()
for stream in ("stdout_msgtree", "stderr_msgtree"):
    task.set_default(stream, False)
task.set_info("fanout", int(sys.argv[3]))
task.set_info("ssh_options", sys.argv[4])
worker = task.shell(sys.argv[5], nodes=sys.argv[1], handler=Handler(), timeout=300, stderr=True, stdin=True)
worker.write(open(sys.argv[2], "rb").read())
worker.set_write_eof()
task.run()
print(Handler.got)
"""


class Run:
    """Wall-clock seconds, processor seconds with those of ssh, and the most memory of one process in MB."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        begun = time.perf_counter()
        with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            self.output = process.stdout.read().decode()
            _, self.status, usage = os.wait4(process.pid, 0)
            process.returncode = self.status
        self.seconds = time.perf_counter() - begun
        self.processor = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss / 1000


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hosts", type=int, default=200)
    options.add_argument("--concurrency", type=int, default=32)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--log", type=int, default=1_000_000, help="bytes of log in the answer")
    options.add_argument("--real", action="store_true", help="also with real collectors")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwhy-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        answer = recorded(folder, chosen.log)
        with fleet(folder, patience=30) as hosts:
            nodes = [f"n{number:04}" for number in range(1, chosen.hosts + 1)]
            hosts.add_addresses(nodes, f"ForceCommand sh -c {shlex.quote(f'cat >/dev/null; cat {answer}')}")
            hosts.ready(["many"])
            is_within = compared(hosts, folder, chosen)
        if chosen.real:
            real(folder, chosen)
    return 0 if is_within else 1


def recorded(folder: Path, size: int) -> Path:
    """The answer of a collector that ran here, with a log of ``size`` bytes whose lines differ as those of a server do."""
    asked = payload(Asked(), "clustershell")
    said = subprocess.run(["sh", "-c", asked.line], input=asked.stdin, capture_output=True, check=True).stdout
    answers = read_answers(said)
    assert answers.is_whole
    chance = random.Random(1)
    line = "[2026-11-30 06:09:{0:02}] Prefill batch, #new-seq: 1, #new-token: {1}, #cached-token: {2}, gen throughput (token/s): {3}\n"
    lines: list[str] = []
    while size > 0:
        lines.append(line.format(len(lines) % 60, chance.randrange(9999), chance.randrange(9999), chance.random()))
        size -= len(lines[-1])
    log = {"path": "/var/log/sglang.log", "size": 1, "modified": 0.0, "head": "".join(lines), "tail": "", "left_out": 0}
    results = [each for each in answers.results if each["probe"] != "service_log"]
    results.append(
        {"probe": "service_log", "status": "ok", "value": {"service": "sglang", "selector": "", "files": [log]}}
    )
    framer = Framer(LONG_LINE)
    path = folder / "answer"
    frames = [framer.pack(msgspec.json.encode(each) + b"\n") for each in [*results, {"end": answers.end}]]
    path.write_bytes(b"".join(frames) + framer.finish())
    return path


def compared(hosts: Fleet, folder: Path, chosen: argparse.Namespace) -> bool:
    asked = payload(Asked(), "clustershell")
    (folder / "stdin").write_bytes(asked.stdin)
    nodes = f"n[0001-{chosen.hosts:04}]"
    options = f"-F {hosts.config} -oServerAliveInterval=5 -oServerAliveCountMax=2 -oLogLevel=ERROR"
    script = [
        sys.executable,
        "-c",
        CLUSTERSHELL,
        nodes,
        str(folder / "stdin"),
        str(chosen.concurrency),
        options,
        "true",
    ]
    size = (folder / "answer").stat().st_size
    print(f"{chosen.hosts} hosts, {chosen.concurrency} at a time; sent {len(asked.stdin)} bytes, answered {size} bytes")
    alone: list[Run] = []
    ours: list[Run] = []
    # by turns, so that what else the machine does falls on both
    for number in range(chosen.runs):
        alone.append(Run(hosts.inside(*script), hosts.environment()))
        assert int(alone[-1].output) == chosen.hosts * size, alone[-1].output
        out = folder / f"out{number}"
        command = ["fleet", "collect", nodes, "-o", str(out), "--concurrency", str(chosen.concurrency)]
        ours.append(Run(hosts.command(*command), hosts.environment()))
        with Store(out) as store:
            assert len(store.nodes("ok")) == chosen.hosts
    for label, runs in (("ClusterShell `true`", alone), ("gpuwhy", ours)):
        print(
            f"{label:20} wall {', '.join(f'{run.seconds:.1f}' for run in runs)} s; processor "
            f"{statistics.median(run.processor for run in runs):.1f} s; memory {max(run.memory for run in runs):.0f} MB"
        )
    ratio = statistics.median(run.seconds for run in ours) / statistics.median(run.seconds for run in alone)
    memory = max(run.memory for run in ours)
    print(f"ratio {ratio:.2f} (bar: {RATIO}), memory {memory:.0f} MB (bar: {MEMORY_MB})")
    return ratio <= RATIO and memory < MEMORY_MB


def real(folder: Path, chosen: argparse.Namespace) -> None:
    (folder / "real").mkdir(mode=0o755)
    with fleet(folder / "real", patience=30) as hosts:
        hosts.add_addresses([f"n{number:04}" for number in range(1, chosen.hosts + 1)])
        hosts.ready(["many"])
        out = folder / "real" / "out"
        command = [
            "fleet",
            "collect",
            f"n[0001-{chosen.hosts:04}]",
            "-o",
            str(out),
            "--timeout",
            "120",
            "--deadline",
            "60",
        ]
        run = Run(hosts.command(*command, "--concurrency", "8"), hosts.environment())
        with Store(out) as store:
            whole = len(store.nodes("ok"))
        print(
            f"real collectors, 8 at a time: {run.seconds:.1f} s, {whole} of {chosen.hosts} whole, memory {run.memory:.0f} MB"
        )


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    sys.exit(main())
