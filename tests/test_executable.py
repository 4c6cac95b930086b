"""What counts as a remedy that can be carried out as it is printed."""

from __future__ import annotations

import pytest
from scripts.executable import is_executable

from gpuwhy.model.remedy import Remedy


@pytest.mark.parametrize(
    "commands",
    [
        ("export NCCL_P2P_DISABLE=1", "# start the service again from this shell"),
        ("unset NUMA",),
        ("cd /srv && docker compose -f compose.yaml up -d vllm",),
        ("""printf '%s\\n' '[Service]' 'Environment="A=1"' > /etc/systemd/system/a.service.d/b.conf""",),
        ("docker inspect --format '{{json .Config}}' vllm  # how it was started",),
    ],
)
def test_whole_commands_are_executable(commands: tuple[str, ...]) -> None:
    assert is_executable(Remedy(kind="env", name="A", summary="", commands=commands))


@pytest.mark.parametrize(
    "commands",
    [
        (),
        ("# start the service again from this shell",),
        ("# add to the start command: --parallel 4",),
        ("nvidia-smi --gpu-reset -i INDEX",),
        ("ollama pull MODEL",),
        ("cp <file> /etc",),
        ("vllm serve ...",),
        ("cat /path/PATH/x",),
        ("echo 'open",),
    ],
)
def test_instructions_and_templates_are_not(commands: tuple[str, ...]) -> None:
    assert not is_executable(Remedy(kind="env", name="A", summary="", commands=commands))
