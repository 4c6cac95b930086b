"""`gpuwhy trace` of packages that are only on the host: over its sshd, writing nothing there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.lab.gpu_host import GpuHost, wait_for
from tests.lab.test_diagnose import LIST_FILES

pytestmark = pytest.mark.lab

MOST_TRIPS = 10
MOST_CHARACTERS = 2_000_000


def trace(host: GpuHost, cache: Path, *arguments: str, status: int = 0) -> str:
    """`gpuwhy trace` on this machine, with a cache of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "gpuwhy", "trace", host.ssh_destination, *arguments, "--timeout", "120"],
        env={**os.environ, "GPUWHY_SSH_OPTIONS": host.ssh_options, "XDG_CACHE_HOME": str(cache)},
        check=False, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def document(host: GpuHost, cache: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trace(host, cache, *arguments, "--format", "json", status=status))
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def answer(gpu_host: GpuHost, cache: Path) -> dict[str, Any]:
    """The trace of the unit's failure, made first: nothing is kept on this machine yet."""
    found: dict[str, Any] = document(gpu_host, cache, "--unit", "sglang.service")["trace"]
    return found


def test_the_failure_of_a_unit_is_traced_to_its_condition(answer: dict[str, Any]) -> None:
    guard = answer["guard"]
    assert (guard["spot"]["path"], guard["spot"]["function"]) == ("flashinfer/jit/core.py", "check_cuda_arch")
    assert guard["requires"][0]["text"] == "not eligible"
    assert any("empty" in guess["values"] and guess["outcome"] == "always" for guess in guard["what_ifs"])


def test_the_four_raises_that_were_swallowed_are_named(answer: dict[str, Any]) -> None:
    first = next(each for each in answer["swallowed"] if each["spot"]["path"] == "flashinfer/compilation_context.py")
    hidden = [(each["spot"]["path"], each["spot"]["line"]) for each in first["hides"]]
    assert len(hidden) == 4
    assert hidden[0] == ("flashinfer/compilation_context.py", 83)
    assert {path for path, _ in hidden[1:]} == {"flashinfer/jit/cpp_ext.py"}


def test_the_switches_are_named(answer: dict[str, Any]) -> None:
    names = {each["name"] for each in answer["switches"]}
    assert {"FLASHINFER_CUDA_ARCH_LIST", "CUDA_HOME", "CUDA_PATH", "which nvcc", "torch.version.cuda"} <= names


def test_the_answer_tells_how_much_of_the_package_it_rests_on(answer: dict[str, Any]) -> None:
    package = next(each for each in answer["scope"]["packages"] if each["name"] == "flashinfer")
    assert package["version"] == "0.6.18.post1"
    assert package["files"] < 60 < package["installed"]
    assert not package["is_complete"]
    assert package["place"].endswith("site-packages")


def test_it_takes_few_trips_and_little_of_the_package(answer: dict[str, Any]) -> None:
    fetched = answer["scope"]["fetched"]
    assert fetched["trips"] <= MOST_TRIPS
    assert 0 < fetched["characters"] <= MOST_CHARACTERS


def test_the_second_time_no_file_comes_again(gpu_host: GpuHost, cache: Path, answer: dict[str, Any]) -> None:
    again = document(gpu_host, cache, "--unit", "sglang.service")["trace"]
    fetched = again["scope"]["fetched"]
    assert (fetched["files"], fetched["trips"]) == (0, 2)
    assert fetched["kept"] == answer["scope"]["fetched"]["files"]
    assert fetched["characters"] < answer["scope"]["fetched"]["characters"] / 3
    assert (again["guard"], again["switches"]) == (answer["guard"], answer["switches"])


def test_a_file_that_was_changed_there_comes_again(fresh_host: GpuHost, tmp_path: Path) -> None:
    place = "flashinfer/jit/core.py:109"
    python = ("--venv", "/opt/sglang")
    document(fresh_host, tmp_path, place, *python)
    path = fresh_host.run("ls /opt/sglang/lib/python3*/site-packages/flashinfer/jit/core.py").stdout.strip()
    text = fresh_host.run(f"cat {path}").stdout.replace("with sm75 or higher", "with sm99 or higher")
    fresh_host.run("mkdir -p /run/changed")
    fresh_host.write("/run/changed/core.py", text)
    fresh_host.run(f"mount --bind /run/changed/core.py {path}")
    changed = document(fresh_host, tmp_path, place, *python)["trace"]
    assert changed["guard"]["message"] == "FlashInfer requires GPUs with sm99 or higher"
    assert changed["scope"]["fetched"]["files"] == 1


def test_a_place_a_variable_a_name_and_the_lines(gpu_host: GpuHost, cache: Path) -> None:
    unit = ("--unit", "sglang.service")
    text = trace(gpu_host, cache, *unit, "flashinfer/jit/core.py:109")
    assert "hides RuntimeError: SM 12.x requires CUDA >= 12.9" in text
    reads = document(gpu_host, cache, *unit, "flashinfer", "--reads", "FLASHINFER_CUDA_ARCH_LIST")["reads"]
    assert not reads["is_absent"]
    assert {each["spot"]["path"] for each in reads["occurrences"]} >= {"flashinfer/compilation_context.py"}
    moved = document(gpu_host, cache, *unit, "--import", "flashinfer.jit.core:CompilationContext")["moved"]
    assert moved["here"] or moved["elsewhere"]
    places = document(gpu_host, cache, *unit, "--lines")["places"]
    told = [line for line in places["lines"] if "Failed to get device capability" in line["text"]]
    assert told[0]["origins"][0]["spot"]["path"] == "flashinfer/compilation_context.py"


def test_a_replay_with_the_facts_of_the_host(gpu_host: GpuHost, cache: Path) -> None:
    """The facts are the host's own; what it cannot tell without running anything is named."""
    found = document(
        gpu_host, cache, "--unit", "sglang.service", "--replay", "flashinfer.jit.core:check_cuda_arch", status=1
    )["replay"]
    assert found["outcome"]["kind"] in ("raised", "needs_fact")
    assert "flashinfer.jit.core" in found["modules"]


def test_nothing_is_written_on_the_host_and_no_process_stays(gpu_host: GpuHost, tmp_path: Path) -> None:
    files = gpu_host.run(LIST_FILES).stdout.splitlines()
    processes = gpu_host.processes()
    before = gpu_host.logins()
    trace(gpu_host, tmp_path, "--unit", "sglang.service")
    assert gpu_host.logins() == before + 1
    assert gpu_host.run(LIST_FILES).stdout.splitlines() == files
    wait_for(lambda: gpu_host.processes() <= processes, 5, "the processes of the trace ended")
