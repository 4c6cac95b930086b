"""`gpuwhy fit --on` and `gpuwhy check` on a real host over its own sshd, and on a snapshot of it.

The files of the model are its config.json and its index, as its folder has them; the weights themselves are not there, and
nobody reads them. The service that failed is a stand-in: a program that prints what SGLang 0.5.15 prints up to its refusal. The eight GPUs are those of the lab's stand-in for NVIDIA's library (stand_ins/nvml.c), which lists no process:
what others hold of a GPU is tested in tests/investigate/test_fitting.py. The service is a unit that was never started: its
start command is read from systemd.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fit.models import write_kimi
from tests.lab.conftest import MOUNTS
from tests.lab.gpu_host import GpuHost, booted, wait_for
from tests.lab.unhurried import UNHURRIED

pytestmark = pytest.mark.lab

MODEL = "/models/Kimi-K2.6"
UNIT = "kimi.service"
COMMAND = f"/opt/sglang/bin/python -m sglang.launch_server --model-path {MODEL} --tp 8"
ENGINE = "sglang==0.5.23"
"""Named by hand: the host has no SGLang."""
FAILED = "kimi-failed.service"
PROGRAM = """\
import sys
print("[2026-11-29 10:05:00 TP0] Load weight begin. avail mem=93.52 GB")
print("[2026-11-29 10:09:00 TP0] Load weight end. elapsed=240.00 s, type=KimiK25ForConditionalGeneration, avail mem=21.82 GB, mem usage=71.70 GB.")
sys.stdout.flush()
raise ValueError(
    "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.75. Raise --mem-fraction-static above 0.7667 "
    "(minimum viable = 1 - 21.82/93.52 = 0.7667). If using speculative decoding, draft weights are now counted."
)
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHost]:
    folder = write_kimi(tmp_path_factory.mktemp("kimi"))
    with booted("lab-fit", MOUNTS) as found:
        for name in ("config.json", "model.safetensors.index.json"):
            found.write(f"{MODEL}/{name}", (folder / name).read_text(encoding="utf-8"))
        found.write(f"/etc/systemd/system/{UNIT}", f"[Service]\nExecStart={COMMAND}\n")
        found.write("/opt/stand-in/sglang/launch_server.py", PROGRAM)
        started = "/usr/bin/python3 /opt/stand-in/sglang/launch_server.py"
        flags = f"--model-path {MODEL} --tp 8 --mem-fraction-static 0.75"
        found.write(f"/etc/systemd/system/{FAILED}", f"[Service]\nExecStart={started} {flags}\n")
        found.run("systemctl daemon-reload")
        found.run(f"systemctl start {FAILED}")
        wait_for(lambda: "minimum viable" in found.journal(FAILED), 20, "the service refuses its start")
        yield found


def gpuwhy(host: GpuHost, *arguments: str) -> tuple[int, str]:
    """Exit status and standard output of `gpuwhy` on this machine, over the user's own ssh."""
    done = subprocess.run(
        [sys.executable, *UNHURRIED, *arguments],
        env={**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (0, 1, 3), f"exit status {done.returncode}\n{done.stderr}"
    return done.returncode, done.stdout


def estimated(host: GpuHost, *arguments: str) -> dict[str, Any]:
    _, text = gpuwhy(host, "fit", *arguments, "--engine", ENGINE, "--format", "json")
    document: dict[str, Any] = json.loads(text)
    found: dict[str, Any] = document["estimate"]
    return found


@pytest.fixture(scope="module")
def of_service(host: GpuHost) -> dict[str, Any]:
    """No model and no flag is typed."""
    return estimated(host, "--on", host.ssh_destination, "--unit", UNIT)


def test_a_service_is_judged_by_its_own_start_command(host: GpuHost, of_service: dict[str, Any]) -> None:
    """Model and flags are those of ExecStart=, the GPUs and the memory are the host's."""
    found = of_service
    assert (found["gpus"], found["gpu"]) == (8, "NVIDIA RTX PRO 6000 Blackwell Server Edition")
    assert (found["verdict"], found["decisive"]["phase"]) == ("fails", "kv-cache")  # at the default fraction
    kib = int(host.run("awk '/MemTotal/ {print $2}' /proc/meminfo").stdout)
    assert [each["host_gb"] for each in found["host"]["risks"]] == [pytest.approx(kib * 1024 / 1e9, rel=0.02)]


def test_what_is_typed_wins_over_the_command_and_the_host(host: GpuHost) -> None:
    typed = ("--mem-fraction-static", "0.85", "--host-memory", "512")
    found = estimated(host, "--on", host.ssh_destination, "--unit", UNIT, *typed)
    assert (found["verdict"], found["fraction"]["value"]) == ("starts", 0.85)
    assert [each["host_gb"] for each in found["host"]["risks"]] == [pytest.approx(512, rel=0.01)]


def test_a_folder_of_the_host_with_flags_of_ones_own(host: GpuHost) -> None:
    found = estimated(host, MODEL, "--on", host.ssh_destination, "--tp", "4")
    assert (found["gpus_needed"], found["verdict"], found["decisive"]["phase"]) == (4, "fails", "weights")


def test_a_snapshot_says_the_same_afterwards(host: GpuHost, of_service: dict[str, Any], tmp_path: Path) -> None:
    kept = tmp_path / "host.gpuwhy"
    gpuwhy(host, "collect", host.ssh_destination, "--unit", UNIT, "--output", str(kept))
    assert estimated(host, "--on", str(kept)) == of_service


def test_check_judges_the_memory_of_the_service(host: GpuHost) -> None:
    """Which SGLang it is, nobody says: so the start fails only perhaps."""
    status, text = gpuwhy(host, "check", host.ssh_destination, "--unit", UNIT, "--format", "json")
    document = json.loads(text)
    problem = next(each for each in document["problems"] if each["cause"] == "gpu-oom-kv-cache")
    assert status == 1
    assert problem["certainty"] == "possible"
    assert document["estimate"]["gpus"] == 8


def test_after_the_crash_the_remedy_is_computed_from_the_model_on_the_host(host: GpuHost) -> None:
    """Two lines of the log give the least fraction; the model's files there, over the same connection, the most."""
    _, text = gpuwhy(host, "diagnose", host.ssh_destination, "--unit", FAILED, "--format", "json")
    first = json.loads(text)["findings"][0]
    assert (first["cause"], first["certainty"]) == ("gpu-oom-kv-cache", "proven")
    remedy = first["remedies"][0]
    assert remedy["name"] == "--mem-fraction-static"
    assert 0.80 < float(remedy["value"]) < 0.95
    assert any("mem-fraction-static 0.75" not in line and f"--mem-fraction-static {remedy['value']}" in line for line in remedy["commands"])  # fmt: skip
    assert any("0.767" in note for note in first["notes"])
    assert any("tokens" in note for note in first["notes"])
