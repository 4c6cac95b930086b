"""Containers: the line of an override, and the run command that makes one anew, from what an engine says."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying import composing
from gpuwhy.remedies.applying.recreating import recreated
from gpuwhy.remedies.applying.site import Inspected

CONFIG: dict[str, Any] = {
    "Image": "vllm/vllm-openai:v0.10.0",
    "Cmd": ["--model", "m", "--max-model-len", "8192"],
    "Entrypoint": ["vllm", "serve"],
    "Env": ["PATH=/bin", "HF_TOKEN=<redacted:1>", "A=b c"],
    "Labels": {},
}
HOST: dict[str, Any] = {
    "Binds": ["/models:/models:ro"],
    "PortBindings": {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8000"}]},
    "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3},
    "IpcMode": "host",
    "ShmSize": 1 << 30,
    "DeviceRequests": [{"Count": -1}],
    "NetworkMode": "default",
}
IMAGE: dict[str, Any] = {"Entrypoint": ["vllm", "serve"], "Env": ["PATH=/bin"]}
FOUND = Inspected("ok", container={"name": "vllm", "config": CONFIG, "host": HOST, "image": IMAGE})


def remedy(kind: str, name: str, value: str) -> Remedy:
    return Remedy(kind=kind, name=name, value=value, summary="")


def test_the_container_is_made_anew_as_it_is_with_one_thing_changed() -> None:
    lines = recreated(FOUND, "docker", remedy("env", "VLLM_USE_V1", "0"))
    assert lines == (
        "# set these in the shell first, their values were cut out: HF_TOKEN",
        "docker stop vllm",
        "docker rename vllm vllm-before-gpuwhy",
        (
            "docker run --detach --name vllm --restart=on-failure:3 --gpus=all --ipc=host --shm-size=1073741824 "
            "--volume=/models:/models:ro --publish=127.0.0.1:8000:8000/tcp --env=HF_TOKEN '--env=A=b c' --env=VLLM_USE_V1=0 "
            "vllm/vllm-openai:v0.10.0 --model m --max-model-len 8192"
        ),
    )


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (remedy("env", "A", "1$x"), 'environment: {A: "1$$x"}'),
        (remedy("env", "A", "unset"), None),
        (remedy("env", "A", "lower"), None),
        (remedy("flag", "--max-model-len", "4096"), 'command: ["--model", "m", "--max-model-len", "4096"]'),
        (remedy("flag", "--max-model-len", "remove"), 'command: ["--model", "m"]'),
        (
            remedy("flag", "--enforce-eager", "set"),
            'command: ["--model", "m", "--max-model-len", "8192", "--enforce-eager"]',
        ),
        (remedy("container", "--shm-size", "16g"), 'shm_size: "16g"'),
        (remedy("container", "user", "owner of site-packages"), None),
    ],
)
def test_an_override_says_what_it_can(change: Remedy, line: str | None) -> None:
    assert composing._line(change, FOUND) == line


def test_a_shell_as_command_is_left_alone() -> None:
    found = Inspected("ok", container={"config": {"Cmd": ["sh", "-c", "vllm serve m"]}})
    assert composing._line(remedy("flag", "--enforce-eager", "set"), found) is None
