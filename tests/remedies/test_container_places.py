"""Options of ``docker run`` in a unit, a compose project and a pod: each has its own word for them."""

from __future__ import annotations

import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, unit_file, written_for

COMPOSE = Setting(kind="compose", container="p-vllm-1", compose_service="vllm", compose_directory="/srv/p")
POD = Setting(kind="kubernetes", container="llm/vllm-0")
RUN = "/usr/bin/docker run --name v --shm-size=1g -e A=1 --gpus all vllm/vllm-openai:v0.9.2 --model m --max-num-seqs 8"


def written(setting: Setting, kind: str, name: str, value: str = "") -> Remedy:
    return written_for(Remedy(kind=kind, name=name, value=value, summary=""), setting)


def unit(exec_start: str) -> Setting:
    return Setting(kind="systemd", unit="v.service", exec_start=exec_start)


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("--shm-size", "16g", 'shm_size: "16g"'),
        ("--ulimit", "memlock=-1", 'ulimits: {"memlock": -1}'),
        ("--cap-add", "SYS_NICE", 'cap_add: ["SYS_NICE"]'),
        ("--privileged", "", "privileged: true"),
        ("--network", "host", 'network_mode: "host"'),
        ("--gpus", "all", "capabilities: [gpu]"),
    ],
)
def test_compose_has_a_key_of_its_own(option: str, value: str, line: str) -> None:
    assert line in written(COMPOSE, "flag", option, value).commands[0]


@pytest.mark.parametrize(
    "option", ["--gpus", "--ulimit", "--cap-add", "--ipc", "--privileged", "--network", "--shm-size"]
)
def test_a_pods_arguments_never_get_an_option_of_docker(option: str) -> None:
    first = " ".join(written(POD, "flag", option, "" if option == "--privileged" else "x").commands)
    assert "container's args" not in first
    assert f"{option} x" not in first


def test_the_engines_options_still_go_to_its_command() -> None:
    assert "--max-num-seqs 64 to the service's command:" in written(COMPOSE, "flag", "--max-num-seqs", "64").commands[0]
    assert "--max-num-seqs 64 to the container's args" in " ".join(
        written(POD, "flag", "--max-num-seqs", "64").commands
    )


def test_a_unit_that_runs_a_container_gets_its_own_options_replaced() -> None:
    """Of two ``--shm-size`` docker takes the last, so another one further to the front would change nothing."""
    line = written(unit(RUN), "flag", "--shm-size", "16g").commands[1]
    assert "--shm-size=16g" in line
    assert "--shm-size=1g" not in line
    line = written(unit(RUN), "env", "A", "2").commands[1]
    assert "--env=A=2" in line
    assert "-e A=1" not in line


def test_a_variable_of_a_units_container_is_taken_out_of_run() -> None:
    line = written(unit(RUN), "env", "A", "unset").commands[1]
    assert "A=1" not in line
    assert "UnsetEnvironment" not in line
    assert "--env=B=" in written(unit(RUN), "env", "B", "unset").commands[1]


def test_the_engines_options_in_a_unit_are_looked_for_after_the_image() -> None:
    command = "docker run --runtime nvidia img serve --x 1"
    assert unit_file.with_option(command, "--runtime", "y") == f"{command} --runtime y"
    assert written(unit(RUN), "flag", "--max-num-seqs", "4").commands[1].endswith("50-gpuwhy-exec-start.conf")
    assert "--max-num-seqs 4" in written(unit(RUN), "flag", "--max-num-seqs", "4").commands[1]


@pytest.mark.parametrize("exec_start", ["/usr/bin/docker compose up", "/usr/bin/docker start -a vllm"])
def test_a_unit_that_only_starts_a_container_changes_nothing_in_it(exec_start: str) -> None:
    for kind, name in (("flag", "--seed"), ("env", "A")):
        assert written(unit(exec_start), kind, name, "1").commands[0].startswith("# ")


def test_a_unit_without_a_container_of_its_own_says_where_the_option_belongs() -> None:
    (line,) = written(unit("/opt/vllm/start.sh"), "flag", "--shm-size", "16g").commands
    assert line.startswith("# add to the command that starts the container")


def test_a_package_for_a_units_container_goes_into_its_image() -> None:
    assert "Dockerfile" in written(unit(RUN), "package", "torch", ">=2.7").commands[0]
