"""A service in a container that compose manages: fixed by an override file, verified, and undone; by Debian's docker-compose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab import engines
from tests.lab.engines import Engine
from tests.lab.gpu_host import LAB, ROOT, SERVING, wait_for

pytestmark = pytest.mark.lab

REMEDY = "FLASHINFER_CUDA_ARCH_LIST=12.0a"
OWN_JOURNAL = 'mkdir -p /var/lib/gpuwhy && mount --bind "$0" /var/lib/gpuwhy && exec "$@"'
"""The machine's own journal of changes is not touched: another folder lies over it while gpuwhy runs."""

PROJECT = f"""\
version: "2.4"
services:
  engine:
    image: {engines.IMAGE}
    container_name: lab-composed
    network_mode: none
    restart: "no"
    command: [/opt/sglang/bin/python, /opt/lab/serve.py]
    environment:
      HOME: /tmp
      CUDA_HOME: /usr/local/cuda-12.8
      FAKE_GPUS: 8x12.0
      FAKE_TORCH_CUDA: "12.8"
    volumes:
      - {LAB}/seed:/opt/sglang:ro
      - {LAB}/cuda-12.8:/usr/local/cuda-12.8:ro
      - {ROOT}/tests/lab/stand_ins/serve.py:/opt/lab/serve.py:ro
"""


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    with engines.docker() as engine:
        yield engine


def run(engine: Engine, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command with docker's own variables, and a journal of changes in the folder."""
    (folder / "journal").mkdir(exist_ok=True)
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", OWN_JOURNAL, str(folder / "journal"), *words],
        env={**os.environ, **engine.variables, "PATH": engines.PATH},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def test_a_composed_service_is_fixed_by_an_override_and_undone(docker: Engine, tmp_path: Path) -> None:
    (tmp_path / "docker-compose.yml").write_text(PROJECT)
    up = run(docker, tmp_path, "docker-compose", "--project-directory", str(tmp_path), "-f", str(tmp_path / "docker-compose.yml"), "-p", "lab", "up", "-d")  # fmt: skip
    assert up.returncode == 0, up.stderr
    docker.wait_until_ended("lab-composed")

    def gpuwhy(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(docker, tmp_path, sys.executable, "-m", "gpuwhy", *arguments)

    shown = gpuwhy("fix", "docker:lab-composed", "--remedy", REMEDY)
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert '+    environment: {FLASHINFER_CUDA_ARCH_LIST: "12.0a"}' in shown.stdout
    assert "docker-compose -p lab" in shown.stdout
    assert not (tmp_path / "compose.gpuwhy.yaml").exists()

    done = gpuwhy(
        "fix", "docker:lab-composed", "--remedy", REMEDY, "--apply", "--yes", "--grace", "5", "--format", "json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["result"]["verification"]["reached"] == "e: active"
    wait_for(lambda: SERVING in docker.run("logs", "lab-composed"), 60, "the service serves")

    undone = gpuwhy("undo")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert not (tmp_path / "compose.gpuwhy.yaml").exists()
    docker.wait_until_ended("lab-composed")


def test_a_container_of_nobody_gets_the_command_that_makes_it_anew(docker: Engine, tmp_path: Path) -> None:
    seed = ("cat /logs/sglang.log >&2; exit 1",)
    docker.start("lab-single", ["sh", "-c", *seed], "--shm-size", "64m", "--env", "HF_TOKEN=hf_LabLabLabLabLabLabLabLabLabLabLabL")  # fmt: skip
    docker.wait_until_ended("lab-single")
    shown = run(docker, tmp_path, sys.executable, "-m", "gpuwhy", "fix", "docker:lab-single", "--remedy", REMEDY)
    assert shown.returncode == 1, shown.stdout + shown.stderr
    told = " ".join(shown.stdout.split())
    assert "not managed by compose" in told, told
    assert f"docker run --detach --name lab-single --network=none --volume={engines.LOGS}:/logs:ro" in told, told
    assert "--env=FLASHINFER_CUDA_ARCH_LIST=12.0a" in told
    assert "hf_Lab" not in told
