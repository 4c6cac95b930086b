"""The lab: a real systemd host, the real FlashInfer and the real journal, for `make lab`.

Everything is built by `tests/lab/setup` under `.lab`. What cannot be had without a GPU is a stand-in and says so:
`stand_ins/` holds them all.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.lab.gpu_host import GAVE_UP, LAB, SERVING, GpuHost, booted, memory_limit, wait_for  # noqa: E402

INCIDENT = ROOT / "tests" / "data" / "logs" / "incident.export"
JOURNAL_INSIDE = "/opt/lab/journal"  # where the hosts find the incident's journal folder
JOURNAL_MACHINE = "2" * 32  # the machine id in incident.export
MOUNTS = [
    f"--overlay-ro={LAB}/seed:{LAB}/disguise:/opt/sglang",
    f"--bind-ro={LAB}/cuda-12.8:/usr/local/cuda-12.8",
    f"--bind-ro={LAB}/cuda-12.4:/usr/local/cuda-12.4",
    f"--bind-ro={LAB}/gpuwhy:/opt/gpuwhy",
    f"--bind-ro={ROOT}/src:/opt/gpuwhy-source",
]
MEMORY_LIMIT = 64 << 20


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Lab tests run when asked for by marker, and have more time than others: FlashInfer alone takes 8 s to import."""
    here = Path(__file__).parent
    mine = [item for item in items if item.path.is_relative_to(here)]
    if "lab" not in config.option.markexpr:
        items[:] = [item for item in items if item not in mine]
        config.hook.pytest_deselected(items=mine)
        return
    for item in mine:
        item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def gpu_host(journal_directory: Path) -> Iterator[GpuHost]:
    """The host of the seed case, some minutes into its incident. Not to be changed by a test.

    `sglang-eagle3.service` was killed by the kernel for want of memory; after it `sglang.service` (nvcc 12.8) and
    `sglang-124.service` (nvcc 12.4) crashed until systemd gave up; `sglang-ok.service` is healthy.
    """
    with booted("lab-gpu", [*MOUNTS, f"--bind-ro={journal_directory}:{JOURNAL_INSIDE}"], hears_kernel=True) as host:
        kill_for_memory(host, "sglang-eagle3.service")
        host.run("systemctl start sglang.service sglang-124.service sglang-ok.service")
        for unit in ("sglang.service", "sglang-124.service"):
            host.wait_for_message(unit, GAVE_UP)
        host.wait_for_message("sglang-ok.service", SERVING)
        yield host


@pytest.fixture
def fresh_host() -> Iterator[GpuHost]:
    """A host of its own, just booted, no service started: a test may change it as it likes."""
    with booted("lab-fresh", MOUNTS) as host:
        yield host


@pytest.fixture(scope="session")
def crashing_host() -> Iterator[GpuHost]:
    """A host on which `sglang.service` crashes until systemd gives up, after the second start."""
    with booted("lab-crashed", MOUNTS) as host:
        host.run("sed -i s/^StartLimitBurst=.*/StartLimitBurst=2/ /etc/systemd/system/sglang.service")
        host.run("systemctl daemon-reload && systemctl start sglang.service")
        yield host


@pytest.fixture
def crashed_host(crashing_host: GpuHost) -> GpuHost:
    """That host with `sglang.service` given up. A test leaves it as it found it: what it tests is how to change and undo."""

    def is_given_up() -> bool:
        return crashing_host.show("sglang.service", "ActiveState")["ActiveState"] == "failed"

    wait_for(is_given_up, 60, "systemd gives up")
    return crashing_host


def kill_for_memory(host: GpuHost, unit: str) -> None:
    host.run(f"systemctl start {unit}")
    process = host.outer_pid(int(host.show(unit, "MainPID")["MainPID"]))
    with memory_limit(process, MEMORY_LIMIT):
        host.run("touch /run/lab-confined")
        wait_for(lambda: host.show(unit, "ActiveState")["ActiveState"] == "failed", 60, f"{unit} is killed")
    told = f"Killed process {process} (sglang::schedul)"
    wait_for(lambda: told in host.kernel_log(), 10, "the kernel log tells of the kill")


@pytest.fixture(scope="session")
def journal_directory() -> Path:
    """`incident.export` as a real journal file, in a folder as `journalctl --directory` takes it."""
    directory = LAB / "journal"
    directory.mkdir(exist_ok=True)
    journal = directory / "incident.journal"
    if journal.exists():
        return directory
    loader = "/lib/systemd/systemd-journal-remote"
    loading = LAB / f"incident-{os.getpid()}.journal"
    subprocess.run([loader, f"--output={loading}", str(INCIDENT)], check=True, capture_output=True)
    loading.rename(journal)
    return directory


@pytest.fixture(scope="session")
def journal_host(journal_directory: Path) -> Iterator[GpuHost]:
    """A host whose own journal holds the incident: the same machine id, so plain `journalctl` reads it as its past."""
    journal = f"--bind-ro={journal_directory}/incident.journal:/var/log/journal/{JOURNAL_MACHINE}/incident.journal"
    with booted("lab-journal", [*MOUNTS, journal], JOURNAL_MACHINE) as host:
        yield host


def run_in_seed(home: Path, program: str, *, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python text in the seed environment (the real torch and FlashInfer), with only the variables given.

    The pretended host has eight GPUs of compute capability 12.0, and a torch built for CUDA 12.8.
    """
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "FAKE_GPUS": "8x12.0",
        "FAKE_TORCH_CUDA": "12.8",
        **variables,
    }
    return subprocess.run(
        [str(LAB / "seed/bin/python"), "-c", program],
        env=environment,
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def seed_environment(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """:func:`run_in_seed` with a home of the test's."""
    return functools.partial(run_in_seed, tmp_path)
