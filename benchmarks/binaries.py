"""CPU seconds and memory of reading device code, against cuobjdump on the same file, in one run.

Run: ``.venv/bin/python benchmarks/binaries.py [FILE|WHEEL|FOLDER ...]``. Without arguments the wheels in the cache of
``make wheels`` are unpacked and read. Three ways are measured: the readers as a script (``python -m gpuwhy.binaries``),
the whole command (``gpuwhy inspect``), and the walk inside one process. Wheels are read from the stream too, and a
folder as a whole, first with its files dropped from the page cache. Medians of a few runs. Exit status 1 below a bar.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from gpuwhy.binaries.device_code import device_code_of
from gpuwhy.binaries.elf import Elf, NotElf
from gpuwhy.binaries.fatbin import read_fatbins
from gpuwhy.binaries.reading import FileSource

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".pytest_cache" / "d" / "wheels"
CUOBJDUMP = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "cuobjdump"
AT_LEAST = 3_000_000
FEW = 400
"""A file of fewer bytes is not compared, and one of fewer images has no bar: start-up is nearly all there is."""
BARS, LIBTORCH_BARS, MOST_MB = (10, 4, 100), (50, 30, 100), 40
"""Times less CPU as a script, as the whole command, and inside a process; and the most memory of the command."""


def main() -> int:
    holds = True
    given = [Path(argument) for argument in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as scratch:
        paths = given or [unpacked(wheel, Path(scratch)) for wheel in sorted(CACHE.glob("*.whl"))]
        for path in given or sorted(CACHE.glob("*.whl")):
            if path.suffix == ".whl":
                wheel_speed(path)
        folders = [path for path in paths if path.is_dir()]
        files = [path for path in paths if path.is_file() and path.suffix != ".whl"]
        files += [file for folder in folders for file in sorted(folder.rglob("*.so*")) if file.is_file()]
        print(
            f"{'file':44} {'MB':>5} {'images':>6} {'script':>9} {'command':>9} {'inside':>9} {'cuobjdump':>9}  times less CPU"
        )
        for file in files:
            if file.stat().st_size >= AT_LEAST and not file.is_symlink():
                holds = compared(file) and holds
        for folder in folders:
            folder_speed(folder)
    return 0 if holds else 1


def unpacked(wheel: Path, scratch: Path) -> Path:
    target = scratch / wheel.name.partition("-")[0]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target, [name for name in archive.namelist() if ".so" in name])
    return target


def compared(file: Path) -> bool:
    """Prints a line; answers whether the bars hold. What cuobjdump does not look at is left out inside the process."""
    with FileSource(str(file)) as source:
        try:
            images = sum(1 for _ in device_code_of(Elf(source), searches=0).images())
        except NotElf:
            return True
    if not images:
        return True
    walk = _own_cpu(lambda: _walk(file))
    script, _ = _cpu([sys.executable, "-m", "gpuwhy.binaries", str(file)], 5)
    command, memory = _cpu([sys.executable, "-m", "gpuwhy", "inspect", str(file)], 5)
    theirs, their_memory = _cpu([str(CUOBJDUMP), "--list-elf", "--list-ptx", str(file)], 2)
    ratios = tuple(theirs / ours for ours in (script, command, walk))
    bars = LIBTORCH_BARS if file.name == "libtorch_cuda.so" else BARS
    holds = memory < MOST_MB and (images < FEW or all(ratio >= bar for ratio, bar in zip(ratios, bars, strict=True)))
    print(
        f"{file.name[:44]:44} {file.stat().st_size / 1e6:5.0f} {images:6} {script * 1e3:6.0f} ms {command * 1e3:6.0f} ms"
        f" {walk * 1e3:6.1f} ms {theirs * 1e3:6.0f} ms  {', '.join(f'{ratio:.0f}' for ratio in ratios)}"
        f"   ({memory:.0f} MB against {their_memory:.0f} MB){'' if holds else '  BELOW THE BAR'}"
    )
    return holds


def _walk(file: Path) -> None:
    with FileSource(str(file)) as source:
        for section in Elf(source).sections():
            if section.name in (".nv_fatbin", "__nv_relfatbin"):
                read_fatbins(source, section.offset, section.size)


def wheel_speed(path: Path) -> None:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "gpuwhy", "inspect", "--requirements", str(path)], stdout=subprocess.DEVNULL, check=True
    )
    directory = time.perf_counter() - started
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist() if ".so" in member.filename)
    seconds, memory = _cpu([sys.executable, "-m", "gpuwhy", "inspect", str(path)], 1)
    print(
        f"{path.name[:60]}: directory {directory:.2f} s (start of Python included), code {size / 1e6:,.0f} MB at {size / 1e6 / seconds:.0f} MB/s in {memory:.0f} MB"
    )


def folder_speed(folder: Path) -> None:
    """A whole folder, cold: what this process can drop of the page cache is dropped first."""
    size = 0
    for file in folder.rglob("*.so*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
            size += file.stat().st_size
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "gpuwhy", "inspect", str(folder)], stdout=subprocess.DEVNULL, check=True)
    print(f"{folder.name}: {size / 1e6:,.0f} MB of libraries, cold: {time.perf_counter() - started:.2f} s")


def _own_cpu(work: Callable[[], None], runs: int = 7) -> float:
    taken = []
    for _ in range(runs):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def _cpu(command: list[str], runs: int) -> tuple[float, float]:
    """Median CPU seconds of a process, user and system, and the most memory in MB that one had."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    taken, memory = [], 0
    for _ in range(runs + 1):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT
        )
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        taken.append(used.ru_utime + used.ru_stime)
        memory = max(memory, used.ru_maxrss)
    return statistics.median(taken[1:]), memory / 1024


if __name__ == "__main__":
    sys.exit(main())
