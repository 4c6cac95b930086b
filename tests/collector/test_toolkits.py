"""Toolkits and who takes which: each library's own order, with real files and scripts that answer as nvcc does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.collector.conftest import executable, nvcc

from gpuwhy.collector import resolutions, toolkits
from gpuwhy.collector.probing import Absent, Notes

NOWHERE = "/nowhere"


@pytest.fixture(autouse=True)
def no_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`/usr/local/cuda` is wherever a test puts it."""
    monkeypatch.setattr(resolutions, "DEFAULT_ROOT", str(tmp_path / "default"))


def flashinfer(torch_cuda: str | None = "12.8", **variables: str) -> tuple[Any, ...]:
    found = resolutions.flashinfer({"PATH": NOWHERE, **variables}, torch_cuda)
    return found["root"], found["version"], found["by"], found["nvcc_problem"]


def test_the_variables_come_before_the_path(tmp_path: Path) -> None:
    home, other, path = (
        str(nvcc(tmp_path / name, version)) for name, version in (("a", "12.8"), ("b", "12.9"), ("c", "13.0"))
    )
    search = f"{path}/bin"
    assert flashinfer(CUDA_HOME=home, CUDA_PATH=other, PATH=search) == (home, "12.8", "CUDA_HOME", "")
    assert flashinfer(CUDA_HOME="", CUDA_PATH=other, PATH=search) == (other, "12.9", "CUDA_PATH", "")
    assert flashinfer(PATH=search) == (path, "13.0", "PATH", "")
    assert flashinfer(CUDA_HOME="", PATH=search) == (path, "13.0", "PATH", "")


def test_an_empty_cuda_path_ends_the_search(tmp_path: Path) -> None:
    search = f"{nvcc(tmp_path)}/bin"
    assert flashinfer(CUDA_PATH="", PATH=search) == ("", "12.8", "torch.version.cuda", "missing")


def test_the_usual_folder_comes_last_of_all(tmp_path: Path) -> None:
    default = str(nvcc(tmp_path / "default", "12.4"))
    assert flashinfer() == (default, "12.4", default, "")


def test_a_folder_without_nvcc_silently_gives_way_to_torch(tmp_path: Path) -> None:
    assert flashinfer(CUDA_HOME=str(tmp_path)) == (str(tmp_path), "12.8", "torch.version.cuda", "missing")
    assert flashinfer(None, CUDA_HOME=str(tmp_path)) == (str(tmp_path), None, "none", "missing")
    assert flashinfer() == (None, "12.8", "torch.version.cuda", "missing")


def test_an_nvcc_that_prints_nothing_useful_gives_way_too(tmp_path: Path) -> None:
    executable(tmp_path / "bin/nvcc", "#!/bin/sh\necho hello\n")
    assert flashinfer(CUDA_HOME=str(tmp_path))[1:] == ("12.8", "torch.version.cuda", "unusable")


def test_an_nvcc_that_may_not_be_executed_does_not(tmp_path: Path) -> None:
    nvcc(tmp_path)
    (tmp_path / "bin/nvcc").chmod(0o644)
    assert flashinfer(CUDA_HOME=str(tmp_path)) == (str(tmp_path), None, "CUDA_HOME", "not executable")


def test_a_variable_written_like_a_search_path_is_no_folder(tmp_path: Path) -> None:
    root = nvcc(tmp_path / "cuda")
    assert flashinfer(CUDA_HOME=f":{root}")[2:] == ("torch.version.cuda", "missing")


def test_an_nvcc_that_hangs_is_said_to(tmp_path: Path) -> None:
    executable(tmp_path / "bin/nvcc", "#!/bin/sh\nsleep 60\n")
    assert flashinfer(CUDA_HOME=str(tmp_path))[3] == "timed out"


def test_torch_takes_no_toolkit_when_it_was_built_without_cuda(tmp_path: Path) -> None:
    variables = {"CUDA_HOME": str(nvcc(tmp_path))}
    assert resolutions.torch_extensions(variables, True)["version"] is None
    assert resolutions.torch_extensions(variables, False)["version"] == "12.8"


def test_deepgemm_s_own_variable_wins(tmp_path: Path) -> None:
    own, other = nvcc(tmp_path / "own", "12.9"), nvcc(tmp_path / "other", "12.4")
    found = resolutions.deepgemm({"DG_JIT_NVCC_COMPILER": f"{own}/bin/nvcc", "CUDA_HOME": str(other)})
    assert (found["version"], found["by"]) == ("12.9", "DG_JIT_NVCC_COMPILER")


def test_triton_takes_the_named_assembler_only_if_it_runs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    banner = "#!/bin/sh\necho 'Cuda compilation tools, release {}, V{}.86'\n"
    bundled = executable(site / "triton/backends/nvidia/bin/ptxas-blackwell", banner.format("12.9", "12.9"))
    named = executable(tmp_path / "ptxas", banner.format("13.1", "13.1"))

    def found(**variables: str) -> tuple[Any, Any]:
        answer = resolutions.triton("ptxas-blackwell", "TRITON_PTXAS_BLACKWELL_PATH", variables, [str(site)])
        assert answer is not None
        return answer["root"], answer["version"]

    assert found() == (str(bundled), "12.9")
    assert found(TRITON_PTXAS_BLACKWELL_PATH=str(named)) == (str(named), "13.1")
    assert found(TRITON_PTXAS_BLACKWELL_PATH="/nowhere/ptxas") == (str(bundled), "12.9")
    assert resolutions.triton("ptxas", "TRITON_PTXAS_PATH", {}, [str(site)]) is None


def test_every_toolkit_is_listed_once_with_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, bare, dead = nvcc(tmp_path / "cuda-12.8"), nvcc(tmp_path / "cuda-12.4", "12.4", "131"), tmp_path / "cuda-11.8"
    (full / "include").mkdir()
    (full / "include/cuda_runtime.h").write_text("")
    (full / "lib64").mkdir()
    (full / "lib64/libcudart.so.12").write_text("")
    executable(dead / "bin/nvcc", "not a program")
    (dead / "version.json").write_text(
        '{"cuda": {"name": "CUDA SDK", "version": "11.8.20220929"}, "cuda_nvcc": {"name": "nvcc", "version": "11.8.89"}}'
    )
    (tmp_path / "cuda").symlink_to(full)
    (tmp_path / "cuda-empty").mkdir()
    monkeypatch.setattr(toolkits, "PATTERNS", (f"{tmp_path}/cuda", f"{tmp_path}/cuda-*"))
    variables = {"PATH": NOWHERE, "CUDA_HOME": str(full), "HOME": str(tmp_path)}
    found = {
        each["root"]: each
        for each in toolkits.toolkits({}, Notes(), {"variables": variables}, [])
        if each["root"].startswith(str(tmp_path))
    }
    assert set(found) == {str(tmp_path / "cuda"), str(bare), str(dead)}
    first = found[str(tmp_path / "cuda")]
    assert (first["version"], first["full_version"], first["aliases"]) == ("12.8", "12.8.93", [str(full)])
    assert (first["has_headers"], first["has_cudart"], first["has_curand"]) == (True, True, False)
    assert found[str(bare)]["has_headers"] is False
    assert (found[str(dead)]["version"], found[str(dead)]["version_from"]) == ("11.8", "version file")


def test_a_host_without_a_toolkit_says_where_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkits, "PATTERNS", ("/nowhere/cuda",))
    monkeypatch.setattr(os.path, "exists", lambda _: False)
    with pytest.raises(Absent, match="/nowhere/cuda"):
        toolkits.toolkits({}, Notes(), {"variables": {"PATH": NOWHERE}}, [])
