"""From a start command to the Python that runs in the end, by files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collector.conftest import executable

from gpuwhy.collector.launching import expand, launch_of

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment as far as its files tell, with a console script in it."""
    root = tmp_path / "venv"
    executable(root / "bin/python", "")
    executable(root / "bin/vllm", f"#!{root}/bin/python\nimport sys\n")
    executable(root / "bin/long", f"#!/bin/sh\n'''exec' \"{root}/bin/python\" \"$0\" \"$@\"\n' '''\n")
    (root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    (root / "bin/activate").write_text("")
    return root


@pytest.mark.parametrize(
    "command",
    [
        ["{v}/bin/python", "-m", "sglang.launch_server"],
        ["{v}/bin/vllm", "serve", "/models/x"],
        ["{v}/bin/long"],
        ["@{v}/bin/python", "-m", "x"],
        ["/usr/bin/env", "CUDA_HOME=/opt/cuda", "{v}/bin/python"],
        ["/usr/bin/env", "-u", "X", "{v}/bin/vllm"],
        ["/usr/bin/numactl", "--cpunodebind=0", "--membind=0", "{v}/bin/python", "x.py"],
        ["nice", "-n", "5", "ionice", "-c2", "{v}/bin/vllm"],
        ["/usr/bin/tini", "--", "{v}/bin/vllm", "serve"],
        ["/bin/bash", "-c", "source", "{v}/bin/activate", "&&", "exec", "vllm", "serve", "/m"],
        ["/bin/bash", "-lc", ". {v}/bin/activate; python -m vllm"],
        ["/bin/sh", "-c", "cd /tmp && CUDA_VISIBLE_DEVICES=0 {v}/bin/python -m vllm 2>&1 | tee /tmp/log"],
        ["/bin/bash", "-c", "export PATH={v}/bin:$PATH; vllm serve x"],
        ["uv", "run", "--project", "{t}", "vllm", "serve"],
        ["/opt/uv", "run", "--no-sync", "python", "x.py"],
    ],
    ids=lambda command: " ".join(command)[:40],
)
def test_the_interpreter_is_found_behind_whatever_starts_it(command: list[str], venv: Path, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(venv)
    filled = [word.format(v=venv, t=tmp_path) for word in command]
    found = launch_of(filled, PATH, str(tmp_path)).interpreter
    assert found is not None
    assert Path(found).resolve() == (venv / "bin/python").resolve()


def test_a_start_script_is_followed_and_what_it_sets_is_known(venv: Path, tmp_path: Path) -> None:
    script = executable(
        tmp_path / "start.sh",
        f"#!/usr/bin/env bash\nset -euo pipefail\n# a comment with 'a quote\nexport CUDA_HOME=/usr/local/cuda-12.8\n"
        f"export PATH=$CUDA_HOME/bin:$PATH\nsource {venv}/bin/activate\nexec python -m sglang.launch_server \\\n  --model x\n",
    )
    launch = launch_of([str(script)], PATH)
    assert launch.interpreter == f"{venv}/bin/python"
    assert launch.variables["CUDA_HOME"] == "/usr/local/cuda-12.8"
    assert launch.variables["VIRTUAL_ENV"] == str(venv)
    assert launch.variables["PATH"].startswith(f"{venv}/bin:/usr/local/cuda-12.8/bin:")
    assert not launch.is_opaque


@pytest.mark.parametrize(
    "line",
    [
        "export CUDA_HOME=$(dirname $(which nvcc))",
        "if [ -d /x ]; then export CUDA_HOME=/x; fi",
        "source /nowhere/setup.sh",
        "eval `cat env`",
    ],
)
def test_what_only_a_shell_can_compute_makes_the_environment_incomplete(line: str, venv: Path, tmp_path: Path) -> None:
    script = executable(tmp_path / "start.sh", f"#!/bin/bash\n{line}\nexec {venv}/bin/python x.py\n")
    launch = launch_of([str(script)], PATH)
    assert launch.is_opaque
    assert launch.interpreter == f"{venv}/bin/python"


def test_a_conda_environment_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "miniconda3/envs/serve/conda-meta").mkdir(parents=True)
    executable(tmp_path / "miniconda3/envs/serve/bin/python3", "")
    launch = launch_of(["conda", "run", "-n", "serve", "python", "x.py"], {**PATH, "HOME": str(tmp_path)})
    assert launch.prefix == str(tmp_path / "miniconda3/envs/serve")
    assert launch.variables["CONDA_PREFIX"] == launch.prefix


def test_a_container_that_a_unit_starts_is_named_as_one() -> None:
    assert launch_of(["/usr/bin/docker", "run", "--gpus", "all", "vllm/vllm-openai"], PATH).container == "docker"


@pytest.mark.parametrize(
    "command",
    [
        [],
        [""],
        ["/nowhere/python-like"],
        ["bash"],
        ["bash", "-c"],
        ["env"],
        ["env", "env", "env"],
        ["bash", "-c", "'unmatched"],
        ["uv", "run"],
        ["\0"],
    ],
)
def test_commands_that_lead_nowhere_end_without_an_error(command: list[str]) -> None:
    assert launch_of(command, PATH).interpreter is None


def test_a_script_that_starts_itself_ends(tmp_path: Path) -> None:
    script = tmp_path / "loop.sh"
    executable(script, f"#!/bin/bash\nexec {script}\n")
    assert launch_of([str(script)], PATH).interpreter is None


def test_variables_are_expanded_as_far_as_they_are_plain() -> None:
    known = {"A": "1", "HOME": "/root"}
    assert expand("$A/${A}/${B:-2}/~", known) == "1/1/2/~"
    assert expand("~/x", known) == "/root/x"
    assert expand("$(date)", known) is None
