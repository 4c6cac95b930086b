"""The start command among shells, containers and assignments; what is none is none."""

from __future__ import annotations

import pytest

from gpuwhy.fit.commands import read_start


@pytest.mark.parametrize(
    ("command", "engine", "model"),
    [
        ("vllm serve org/name -tp 2", "vllm", "org/name"),
        ("env A=1 numactl -N 0 python -m vllm.entrypoints.openai.api_server --model=/m/K", "vllm", "/m/K"),
        ("/bin/bash -c 'source /venv/bin/activate && exec vllm serve org/name -tp 2'", "vllm", "org/name"),
        ("docker run --rm --gpus all -v /m:/m -p 1:1 -e A=1 -e B=2 lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path /m/K", "sglang", "/m/K"),
        ("'unclosed vllm serve x", "vllm", "x"),
    ],
)  # fmt: skip
def test_what_wraps_a_command_is_taken_off(command: str, engine: str, model: str) -> None:
    found = read_start(command)
    assert found is not None
    assert (found.engine, found.model) == (engine, model)


@pytest.mark.parametrize("command", ["", "sh -c", "/opt/start.sh", "python serve.py --model /m/K", "vllm serve --port 8000", "bash -c ''"])  # fmt: skip
def test_a_command_of_something_else_is_none(command: str) -> None:
    assert read_start(command) is None
