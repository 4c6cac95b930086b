"""A remedy verified to the build and to the answering service, and undone; packages, caches, the watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.lab.conftest import MOUNTS
from tests.lab.fixing import answered, gpuwhy
from tests.lab.gpu_host import GAVE_UP, HOST_PATH, LAB, GpuHost, booted, wait_for
from tests.patience import BUSY

pytestmark = pytest.mark.lab

UNIT = "answering.service"
REMEDY = "FLASHINFER_CUDA_ARCH_LIST=12.0a"
PORT = 30517
MOST_BUILD_SECONDS = 180.0
COMPILING = [
    *(mount for mount in MOUNTS if "/usr/local/cuda-12.8" not in mount),
    f"--bind-ro={LAB}/cuda-12.8-compiling:/usr/local/cuda-12.8",
    f"--bind-ro={LAB}/cuda-13.2:/usr/local/cuda-13.2",
]
"""nvcc 12.8's stand-in in front of the real 13.2, with its headers."""

SERVICE = f"""\
[Unit]
StartLimitIntervalSec=600
StartLimitBurst=2

[Service]
StateDirectory=answering
DynamicUser=no
User=serving
Environment=HOME=/var/lib/answering
Environment=CUDA_HOME=/usr/local/cuda-12.8
Environment=FAKE_GPUS=8x12.0 FAKE_TORCH_CUDA=12.8
Environment=HF_TOKEN=hf_LabLabLabLabLabLabLabLabLabLabLabL
ExecStart=/opt/sglang/bin/python /opt/lab/serve_http.py --port {PORT}
Restart=on-failure
RestartSec=1
"""


@pytest.fixture(scope="module")
def host() -> Iterator[GpuHost]:
    """A host whose service, of a user of its own, has crashed until systemd gave up."""
    with booted("lab-verify", COMPILING) as started:
        started.run("useradd --system --home-dir /var/lib/answering serving")
        started.write(f"/etc/systemd/system/{UNIT}", SERVICE)
        started.run(f"systemctl daemon-reload && systemctl start {UNIT}")
        started.wait_for_message(UNIT, GAVE_UP)
        yield started


def state_of(host: GpuHost) -> str:
    return host.show(UNIT, "ActiveState")["ActiveState"]


def left_behind(host: GpuHost) -> str:
    """What a trial may have left: its folders, its processes, what it wrote beside the service."""
    return host.run("ls -d /tmp/gpuwhy-trial-* 2>/dev/null; find /var/lib/answering -newer /etc/hostname | sort", check=False).stdout  # fmt: skip


def rungs_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each rung by its name, printed with the seconds that it took."""
    rungs = {rung["name"]: rung for rung in document["result"]["verification"]["rungs"]}
    for name, rung in rungs.items():
        print(f"\n{name}: {rung['outcome']} ({rung.get('seconds')} s): {rung.get('words')}", end="")
    return rungs


NINJA = """\
#!/bin/sh
echo 'FAILED: sampling.cuda.o'
echo "nvcc fatal   : Unsupported gpu architecture 'compute_120a'"
exit 1
"""
"""STAND-IN for ninja: the compiler that it would start refuses."""


def test_what_the_build_shows_refutes_a_remedy_and_speaks_against_the_diagnosis(host: GpuHost) -> None:
    """The check passes with 12.0a, and the build still fails."""
    host.write("/usr/local/bin/ninja", NINJA, "755")
    done = gpuwhy(
        host, "verify", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY, "--format", "json", timeout=900
    )
    host.run("rm /usr/local/bin/ninja")
    document = answered(done)
    rungs = rungs_of(document)
    assert done.returncode == 1, done.stderr
    assert document["result"]["status"] == "refuted"
    assert rungs["guard"]["outcome"] == "passed"
    assert rungs["build"]["outcome"] == "failed"
    assert "Ninja build failed" in rungs["build"]["words"]
    assert [each["statement"] for each in document["against"]] == [f"{REMEDY} was tried and does not help"]
    assert [step["question"] for step in document["tried"]][-1] == f"does {REMEDY} help (build)"


@pytest.mark.soak  # minutes of compiling
def test_a_remedy_is_verified_up_to_the_build_without_changing_anything(host: GpuHost) -> None:
    """What 13.2 builds in the place of 12.8 needs 13's runtime library: the trial loads what it built, so it would tell."""
    host.write(
        f"/etc/systemd/system/{UNIT}.d/10-path.conf",
        f"[Service]\nEnvironment=PATH=/opt/sglang/bin:{HOST_PATH}\nEnvironment=LD_LIBRARY_PATH=/usr/local/cuda-13.2/lib\n",
    )
    host.run("systemctl daemon-reload")
    before = left_behind(host)
    done = gpuwhy(
        host, "verify", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY, "--format", "json", timeout=900
    )
    document = answered(done)
    rungs = rungs_of(document)
    assert done.returncode == 0, done.stdout + done.stderr
    assert rungs["facts"]["outcome"] == "passed"
    assert "check_cuda_arch() in /opt/sglang/bin/python" in rungs["guard"]["words"]
    assert rungs["build"]["outcome"] == "passed"
    assert "sm_120a" in rungs["build"]["words"]
    assert rungs["build"]["seconds"] < MOST_BUILD_SECONDS * BUSY
    assert rungs["launch"]["outcome"] == "not possible"
    assert document["result"]["verification"]["reached"] == "c: build"
    assert state_of(host) == "failed"
    assert left_behind(host) == before


def test_the_service_answers_after_the_fix_and_fails_again_after_the_undo(host: GpuHost) -> None:
    done = gpuwhy(host, "fix", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY, "--apply", "--yes", "--format", "json", timeout=900)  # fmt: skip
    document = answered(done)
    rungs = rungs_of(document)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: rung["outcome"] for name, rung in rungs.items()} == {
        "facts": "passed", "guard": "passed", "active": "passed", "health": "passed", "request": "passed",
    }  # fmt: skip
    assert document["result"]["verification"]["reached"] == "e: request"
    assert "sampled" in host.journal(UNIT)
    undone = gpuwhy(host, "undo", host.ssh_destination)
    assert undone.returncode == 0, undone.stdout + undone.stderr
    wait_for(lambda: state_of(host) == "failed", 120, "systemd gives up again")


GPUWHY = """\
#!/bin/sh
PYTHONPATH=/opt/gpuwhy-source exec /opt/gpuwhy/bin/python -m gpuwhy "$@"
"""
KEPT = f"/var/lib/gpuwhy/watch/{UNIT}"


def test_a_watched_unit_is_looked_at_when_it_fails_once_for_each_life(host: GpuHost) -> None:
    host.write("/usr/local/bin/gpuwhy", GPUWHY, "755")
    files = "find /etc/systemd/system -type f -newer /etc/hostname | sort"
    before = host.run(files).stdout
    missing = gpuwhy(host, "watch", "install", UNIT, host.ssh_destination, "--gpuwhy", "/opt/none/gpuwhy")
    assert missing.returncode == 2
    assert "does not run at" in missing.stderr
    arguments = ("watch", "install", UNIT, host.ssh_destination, "--gpuwhy", "/usr/local/bin/gpuwhy", "--keep", "2")
    shown = gpuwhy(host, *arguments)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "+OnFailure=gpuwhy-watch@%n.service" in shown.stdout
    assert host.run(files).stdout == before
    done = gpuwhy(host, *arguments, "--apply", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert UNIT in gpuwhy(host, "watch", "list", host.ssh_destination).stdout

    host.run(f"systemctl reset-failed {UNIT}; systemctl start {UNIT}")
    wait_for(lambda: state_of(host) == "failed", 240, "the service has failed and systemd gave up")
    wait_for(lambda: host.run(f"ls {KEPT}/*.txt", check=False).returncode == 0, 60, "a diagnosis is kept")
    told = host.run(f"cat {KEPT}/*.txt").stdout
    assert "FlashInfer" in told
    kept = host.run(f"ls -l {KEPT}").stdout
    assert kept.count(".gpuwhy") <= 2
    assert host.run(f"grep -rl hf_Lab {KEPT}", check=False).stdout == ""

    removed = gpuwhy(host, "watch", "remove", UNIT, host.ssh_destination, "--apply", "--yes")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert host.run(files).stdout == before
    assert "no unit is watched" in gpuwhy(host, "watch", "list", host.ssh_destination).stdout
