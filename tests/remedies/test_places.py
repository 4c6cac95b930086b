"""Remedies in a shell, a container, a compose project and a pod."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, written_for

SHELL = Setting(kind="shell", command=("vllm", "serve", "m", "--max-num-seqs", "256"), variables={"MAX_JOBS": "64"})
CONTAINER = Setting(kind="docker", container="vllm-1", engine="podman")
COMPOSE = Setting(kind="compose", container="p-vllm-1", compose_service="vllm", compose_directory="/srv/my stack")
POD = Setting(kind="kubernetes", container="llm/vllm-7d9f6c9b5d-x2x4z")


def env(name: str, value: str) -> Remedy:
    return Remedy(kind="env", name=name, value=value, summary="")


def flag(name: str, value: str = "") -> Remedy:
    return Remedy(kind="flag", name=name, value=value, summary="")


def test_a_shell_exports_and_goes_back_to_what_was() -> None:
    written = written_for(env("MAX_JOBS", "4"), SHELL)
    assert written.commands == ("export MAX_JOBS=4", "vllm serve m --max-num-seqs 256")
    assert written.undo[0] == "export MAX_JOBS=64"
    assert written_for(env("NCCL_P2P_DISABLE", "1"), SHELL).undo[0] == "unset NCCL_P2P_DISABLE"


def test_a_shell_repeats_the_command_with_the_option() -> None:
    assert written_for(flag("--max-num-seqs", "64"), SHELL).commands == ("vllm serve m --max-num-seqs 64",)
    assert written_for(flag("--max-num-seqs", "remove"), SHELL).commands == ("vllm serve m",)
    assert written_for(flag("--enforce-eager"), SHELL).commands == ("vllm serve m --max-num-seqs 256 --enforce-eager",)


def test_without_a_known_command_the_option_is_an_instruction() -> None:
    written = written_for(flag("--enforce-eager"), Setting(kind="shell"))
    assert written.commands == ("# add to the start command: --enforce-eager",)


def test_a_container_is_kept_under_another_name_and_run_again() -> None:
    written = written_for(env("MAX_JOBS", "4"), CONTAINER)
    assert "podman rename vllm-1 vllm-1-before-gpuwhy" in written.commands
    assert written.commands[-1].startswith("# ")
    assert "--env=MAX_JOBS=4" in written.commands[-1]
    assert written.undo[-2:] == ("podman rename vllm-1-before-gpuwhy vllm-1", "podman start vllm-1")
    assert written.check[0] == "podman exec vllm-1 printenv MAX_JOBS"


def test_options_of_run_stand_before_the_image_and_those_of_the_engine_after() -> None:
    assert "--shm-size=16g before the image" in written_for(flag("--shm-size", "16g"), CONTAINER).commands[-1]
    assert "--max-num-seqs 64 at the end" in written_for(flag("--max-num-seqs", "64"), CONTAINER).commands[-1]


def test_compose_takes_an_override_file() -> None:
    written = written_for(env("X", 'a"b$c'), COMPOSE)
    assert written.commands[0].startswith("cd '/srv/my stack' && test ! -e compose.gpuwhy.yaml")
    assert 'environment: {X: "a\\"b$$c"}' in shlex.split(written.commands[0])[-3]
    assert "shm_size" in written_for(flag("--shm-size", "16g"), COMPOSE).commands[0]


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("llm/vllm-7d9f6c9b5d-x2x4z", "deployment/vllm"),
        ("llm/vllm-0", "statefulset/vllm"),
        ("llm/alone", "pod/alone"),
    ],
)
def test_the_change_goes_to_what_made_the_pod(pod: str, workload: str) -> None:
    written = written_for(env("MAX_JOBS", "4"), Setting(kind="kubernetes", container=pod))
    assert written.commands[0] == f"kubectl -n llm set env {workload} MAX_JOBS=4"
    assert written.undo == (f"kubectl -n llm rollout undo {workload}",)
    unset = written_for(env("MAX_JOBS", "unset"), Setting(kind="kubernetes", container=pod))
    assert unset.commands[0].endswith(" MAX_JOBS-")


@pytest.mark.parametrize("setting", [SHELL, CONTAINER, COMPOSE, POD])
@pytest.mark.parametrize("value", ["$(reboot)", "`reboot`", "';reboot;'", "a|b", "&x"])
def test_values_stay_one_word(setting: Setting, value: str) -> None:
    """Whatever the shell would split or expand stands inside quotes."""
    for command in written_for(env("X", value), setting).commands:
        words = shlex.split(command, comments=True)
        assert not {"reboot", "&&x", ";reboot;"} & set(words)
        if value in command and not command.startswith("#"):
            assert any(value in word for word in words)


def test_a_check_of_the_services_python_runs_inside() -> None:
    remedy = Remedy(kind="env", name="X", value="1", summary="", check=("python3 -c 'print(1)'", "the build ends"))
    written = written_for(remedy, CONTAINER)
    assert written.check[1].startswith("podman exec vllm-1 sh -c ")
    assert written.check[2] == "# the build ends"


def test_ports_are_filled_in_and_what_nobody_knows_is_a_comment() -> None:
    remedy = Remedy(kind="env", name="X", value="1", summary="", check=("curl http://127.0.0.1:PORT/health",))
    assert written_for(remedy, Setting(kind="shell", port=8000)).check[-1] == "curl http://127.0.0.1:8000/health"
    assert written_for(remedy, Setting(kind="shell")).check[-1].startswith("# with its port and model: ")


def test_a_value_that_the_log_shows_is_named_as_what_it_was() -> None:
    setting = Setting(kind="shell", arguments={"mem_fraction_static": "0.75"})
    written = written_for(flag("--mem-fraction-static", "0.80"), setting)
    assert written.commands == ("# set in the start command: --mem-fraction-static 0.80 (this start had 0.75)",)


def test_a_value_of_a_log_cannot_end_the_comment_it_stands_in() -> None:
    setting = Setting(kind="shell", arguments={"mem_fraction_static": "0.75\nreboot"})
    written = written_for(flag("--mem-fraction-static", "0.80"), setting)
    assert written.commands == ("# add to the start command: --mem-fraction-static 0.80",)


def test_the_way_back_from_an_unset_variable_sets_it_again_and_its_check_wants_it_gone() -> None:
    assert written_for(env("A", "unset"), SHELL).undo[0] == "# export A again, as it was"
    known = msgspec.structs.replace(SHELL, variables={"A": "x y"})
    assert written_for(env("A", "unset"), known).undo[0] == "export A='x y'"
    for setting in (
        Setting(kind="docker", container="vllm"),
        Setting(kind="compose", container="vllm", compose_service="vllm", compose_directory="/srv"),
        Setting(kind="kubernetes", container="ns/pod"),
        Setting(kind="shell", command=("docker", "run", "--name", "vllm", "-eA=1", "img")),
        Setting(kind="systemd", unit="a.service"),
        SHELL,
    ):
        check = written_for(env("A", "unset"), setting).check[-1]
        assert "! " in check, (setting.kind, check)
