"""gpuwhy inspect --needs on real libraries: what is missing, what would bring it, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.binaries import linking
from tests.snapshot.test_snapshot import PreparedTarget

from gpuwhy.cli.inspect import command
from gpuwhy.investigate.loading import Explainer, loading_of
from gpuwhy.investigate.service_search import search_of_unit
from gpuwhy.targets import TargetError

CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_"


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    """Compiled for CUDA 12 and torch 2.9, in an environment with CUDA 13 and torch 2.14."""
    packages = linking.environment(tmp_path)
    cudart = linking.library(packages / "nvidia/cu13/lib/libcudart.so.13", "int cudaMalloc(void) { return 0; }")
    lib = linking.torch(packages, cuda=(cudart,), cuda_defines=f"{CHECK}jbPNS0_19CUDAErrorLogCaptureE")
    linking.distribution(packages, "torch", "2.14.1", (lib / "libc10.so",))
    gone = linking.library(tmp_path / "gone/libcudart.so.12")
    source = f"void {CHECK}ib(void); int cudaFree(void); int f(void) {{ {CHECK}ib(); return cudaFree(); }}"
    path = linking.library(packages / "sgl_kernel/flash_ops.abi3.so", source, (gone, lib / "libc10_cuda.so", lib / "libc10.so"), runpath="$ORIGIN/../torch/lib")  # fmt: skip
    linking.distribution(packages, "sgl-kernel", "0.3.21", (path,), ("torch==2.9.1",))
    gone.unlink()
    return path


def test_the_missing_library_and_the_symbol_are_told_apart(extension: Path) -> None:
    loading = Explainer().explain(str(extension))
    assert loading.loads is False
    assert [(row.name, row.brought_by) for row in loading.missing] == [
        ("libcudart.so.12", "nvidia-cuda-runtime-cu12 of CUDA 12")
    ]
    (broken,) = loading.broken_symbols
    assert broken.readable == "c10::cuda::c10_cuda_check_implementation"
    assert broken.owner == "torch"
    assert "torch 2.9.1 or earlier" in broken.provided_by
    assert "torch==2.9.1" in broken.provided_by
    assert {symbol.name: symbol.comes_with for symbol in loading.undefined}["cudaFree"] == "libcudart.so.12"
    assert (loading.torch, loading.built_for_torch, loading.package) == ("2.14.1", "2.9.1 or earlier", "sgl-kernel")


def test_the_command_says_it_and_fails(extension: Path) -> None:
    done = CliRunner().invoke(command, ["--needs", str(extension)], standalone_mode=False)
    assert done.return_value == 1
    assert "libcudart.so.12 is not found (nvidia-cuda-runtime-cu12 of CUDA 12)" in done.output
    assert "undefined symbol: " + CHECK + "ib = c10::cuda::c10_cuda_check_implementation" in done.output
    assert "installed is torch 2.14.1" in done.output


def test_the_services_search_path_is_given_by_hand(extension: Path, tmp_path: Path) -> None:
    linking.library(tmp_path / "cuda12/libcudart.so.12", "int cudaMalloc(void) { return 0; }")
    found = ["--needs", "--env", f"LD_LIBRARY_PATH={tmp_path / 'cuda12'}", "--format", "json", str(extension)]
    done = CliRunner().invoke(command, found, standalone_mode=False)
    loading = json.loads(done.output)["files"][0]["loading"]
    assert {row["name"]: row.get("how") for row in loading["libraries"]}["libcudart.so.12"] == "LD_LIBRARY_PATH"
    assert loading["loads"] is False  # the symbol of another torch stays


def test_a_library_of_the_system_loads() -> None:
    done = CliRunner().invoke(command, ["--needs", "/bin/bash"], standalone_mode=False)
    assert done.return_value == 0
    assert "loads (" in done.output


def test_without_the_driver_it_stays_open(tmp_path: Path) -> None:
    gone = linking.library(tmp_path / "gone/libcuda.so.1")
    path = linking.library(tmp_path / "libk.so", "int cuInit(unsigned); int f(void) { return cuInit(0); }", (gone,))
    gone.unlink()
    loading = Explainer().explain(str(path))
    assert loading.loads is None
    assert loading.missing[0].brought_by == "the NVIDIA driver"
    assert loading.broken_symbols == ()


@pytest.mark.parametrize("arguments", [["--env", "LD_LIBRARY_PATH=/x", "/bin/ls"], ["--needs", "--env", "HOME=/x", "/bin/ls"], ["--needs", "--env", "LD_LIBRARY_PATH", "/bin/ls"]])  # fmt: skip
def test_what_is_no_search_path_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2


def test_an_answer_that_no_reader_writes_is_refused() -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        loading_of({"path": "/x", "libraries": [{"name": 3}], "undefined": [], "undefined_count": 0})


def test_a_unit_whose_environment_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--needs", "--unit", "gpuwhy-no-such-unit", "/bin/ls"])
    assert done.exit_code == 3


def test_the_search_path_of_a_unit() -> None:
    variables = {"variables": {"LD_LIBRARY_PATH": "/opt/lib", "PATH": "/bin"}}
    prepared = PreparedTarget([{"probe": "environment", "status": "ok", "value": variables}], {"python": "3.11"})
    assert search_of_unit("sglang", prepared) == ("/opt/lib", "")
    denied = PreparedTarget([{"probe": "environment", "status": "denied", "reason": "/proc/7/environ"}], {})
    with pytest.raises(TargetError, match="/proc/7/environ"):
        search_of_unit("sglang", denied)


def test_the_wheels_of_this_environment_load() -> None:
    """Real wheels in the environment that runs the tests: their extensions are imported here, so they load."""
    import ahocorasick_rs
    import msgspec
    import zstandard

    explainer = Explainer()
    folders = [Path(str(module.__file__)).parent for module in (ahocorasick_rs, msgspec, zstandard)]
    extensions = [path for folder in folders for path in sorted(folder.rglob("*.so"))]
    assert len(extensions) >= 3
    for path in extensions:
        loading = explainer.explain(str(path))
        assert loading.loads is True, (path, loading)
        assert loading.package.lower().replace("-", "_") in ("ahocorasick_rs", "msgspec", "zstandard")
