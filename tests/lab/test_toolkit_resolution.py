"""The collector's mirrors of how FlashInfer and PyTorch find a toolkit, against the real libraries, setting by setting."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lab.gpu_host import LAB

from gpuwhy.collector import resolutions

pytestmark = pytest.mark.lab

ASK_THE_LIBRARIES = """
import json, os, sys
import torch.utils.cpp_extension
from flashinfer.jit import cpp_ext

def ask(function):
    try:
        return str(function())
    except (RuntimeError, OSError) as error:
        return type(error).__name__

def answers(setting):
    for name in ("CUDA_HOME", "CUDA_PATH", "PATH"):
        os.environ.pop(name, None)
    os.environ.update(setting)
    cpp_ext.get_cuda_path.cache_clear()
    cpp_ext.get_cuda_version.cache_clear()
    return [ask(cpp_ext.get_cuda_path), ask(cpp_ext.get_cuda_version), ask(torch.utils.cpp_extension._find_cuda_home)]

print(json.dumps([answers(setting) for setting in json.load(sys.stdin)]))
"""
TORCH_CUDA = "12.8"


def install(root: Path, script: str, mode: int = 0o755) -> Path:
    nvcc = root / "bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(script)
    nvcc.chmod(mode)
    return root


@pytest.fixture
def settings(tmp_path: Path) -> list[dict[str, str]]:
    """Every combination of the three variables that the libraries ask, over toolkits in every state."""
    old, seed = f"{LAB}/cuda-12.4", f"{LAB}/cuda-12.8"
    silent = install(tmp_path / "silent", "#!/bin/sh\n")
    failing = install(tmp_path / "failing", "#!/bin/sh\nexit 3\n")
    locked = install(tmp_path / "locked", "#!/bin/sh\n", mode=0o644)
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "nvcc").symlink_to(f"{seed}/bin/nvcc")
    homes = [None, "", old, seed, f"{seed}/", "/nowhere", str(silent), str(failing), str(locked)]
    paths = [None, "", seed, "/nowhere"]
    searched = ["/usr/bin:/bin", f"{old}/bin:/usr/bin:/bin", f"/usr/bin:/bin:{linked}", f"{locked}/bin:/usr/bin:/bin"]
    return [
        {
            name: value
            for name, value in (("CUDA_HOME", home), ("CUDA_PATH", path), ("PATH", search))
            if value is not None
        }
        for home in homes
        for path in paths
        for search in searched
    ]


def test_the_mirrors_agree_with_the_libraries(
    settings: list[dict[str, str]], seed_environment: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = seed_environment(ASK_THE_LIBRARIES, stdin=json.dumps(settings), FAKE_TORCH_CUDA=TORCH_CUDA)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert len(answers) == len(settings)
    differences = [
        (setting, real, mirrored)
        for setting, real in zip(settings, answers, strict=True)
        if (mirrored := mirror(setting)) != real
    ]
    assert not differences
    # The settings do tell the steps apart: each of them decides somewhere.
    deciders = {resolutions.flashinfer(setting, TORCH_CUDA)["by"] for setting in settings}
    assert {"CUDA_HOME", "CUDA_PATH", "PATH", "torch.version.cuda"} <= deciders


def mirror(setting: dict[str, str]) -> list[str]:
    """The collector's answers in the words of `ASK_THE_LIBRARIES`."""
    flashinfer: dict[str, Any] = resolutions.flashinfer(setting, TORCH_CUDA)
    torch: dict[str, Any] = resolutions.torch_extensions(setting, False)
    version = flashinfer["version"]
    if version is None:
        version = {"not executable": "PermissionError"}[flashinfer["nvcc_problem"]]
    root = flashinfer["root"]
    return ["RuntimeError" if root is None else root, version, str(torch["root"])]


def test_a_torch_without_cuda_takes_no_toolkit(
    seed_environment: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    setting = {"CUDA_HOME": f"{LAB}/cuda-12.8", "PATH": os.defpath}
    done = seed_environment(
        "from torch.utils import cpp_extension as e; print(e.CUDA_HOME)", **setting, FAKE_GPUS="", FAKE_TORCH_CUDA=""
    )
    assert done.stdout.strip() == str(resolutions.torch_extensions(setting, True)["root"])
