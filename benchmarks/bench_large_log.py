"""A gigabyte of log: processor seconds, megabytes a second on one core and peak memory of the whole command, beside grep and ripgrep that
look for the same literals in the same file.

Run: ``.venv/bin/python -m benchmarks.bench_large_log [MEGABYTES]``; it writes that much to a temporary folder. The
ugly inputs (one line of many megabytes, nothing but tracebacks, ten million short lines that all differ) follow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import large_log


def measured(command: list[str]) -> tuple[float, float, int]:
    """Processor seconds, peak MB and exit status of a command, run alone. (grep stops early when it writes to /dev/null.)"""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode


def diagnose(path: Path) -> float:
    """Print what one diagnosis of ``path`` takes; its processor seconds."""
    size = path.stat().st_size / 1e6
    seconds, peak, status = measured([sys.executable, "-m", "gpuwhy", "diagnose", str(path)])
    print(
        f"{path.name:24} {size:7.0f} MB {seconds:7.2f} s {size / seconds:7.0f} MB/s, peak {peak:4.0f} MB, exit {status}"
    )
    return seconds


def compare(path: Path, seconds: float) -> None:
    """The same literals by grep and ripgrep."""
    from gpuwhy.diagnosis import sign_literals
    from gpuwhy.logs.interest import SHORTEST, literals

    wanted = literals() | {literal for literal in sign_literals() if len(literal) >= SHORTEST}
    signs = path.with_name("SIGNS")
    signs.write_text("\n".join(sorted(sign for sign in wanted if "\n" not in sign)) + "\n")
    for tool, options in (("grep", ["-c", "-i", "-F", "-f"]), ("rg", ["-c", "-i", "-F", "-f"])):
        if shutil.which(tool) is None:
            print(f"{tool}: not installed")
            continue
        taken, peak, _ = measured(["env", "LC_ALL=C", tool, *options, str(signs), str(path)])
        print(
            f"{tool} -c -i -F -f SIGNS     {taken:18.2f} s, peak {peak:4.0f} MB; gpuwhy takes {seconds / taken:.2f} of its time"
        )


def ugly(folder: Path) -> Iterator[Path]:
    """Inputs that a reader by lines does not survive."""
    crash = large_log.SEED.read_bytes()
    one = folder / "one-line.log"
    with one.open("wb") as file:
        file.write(b"tensor([")
        for _ in range(1_000):
            file.write(b"0.1234, " * 12_000)
        file.write(b"])\n" + crash)
    yield one
    one.unlink()
    tracebacks = folder / "tracebacks.log"
    with tracebacks.open("wb") as file:
        for _ in range(100_000_000 // len(crash)):
            file.write(crash)
    yield tracebacks
    tracebacks.unlink()
    short = folder / "short-lines.log"
    with short.open("wb") as file:
        for block in range(100):
            file.write(
                b"".join(b"error %x\n" % ((block * 100_000 + n) * 2654435761 % 4294967291) for n in range(100_000))
            )
        file.write(crash)
    yield short
    short.unlink()


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1074
    with tempfile.TemporaryDirectory(prefix="gpuwhy-bench-") as name:
        path = Path(name) / "server.log"
        large_log.write(path, megabytes)
        compare(path, diagnose(path))
        path.unlink()
        for ugly_path in ugly(Path(name)):
            diagnose(ugly_path)


if __name__ == "__main__":
    main()
