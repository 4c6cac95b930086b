"""A start command as people paste it into reports, and what a remedy makes of it."""

from __future__ import annotations

import shlex

import pytest

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, written_for
from gpuwhy.remedies.typed_command import read_command, words_of


def setting(text: str) -> Setting:
    found = read_command(text)
    return Setting(kind="shell", command=words_of(text) if found is None else found.words)


def commands(text: str, kind: str, name: str, value: str = "") -> tuple[str, ...]:
    return written_for(Remedy(kind=kind, name=name, value=value, summary=""), setting(text)).commands


DOCKER = "docker run --gpus all -p 8000:8000 -e HF_TOKEN=$HF_TOKEN -v ~/models:/models registry.example:5000/vllm/vllm-openai:v0.9.2 --model m"
PODMAN = "podman run --rm -it --device nvidia.com/gpu=all docker.io/lmsysorg/sglang@sha256:0123abcd python3 -m sglang.launch_server --tp 2"


def test_a_containers_variable_stands_before_the_image() -> None:
    (line,) = commands(DOCKER, "env", "NCCL_P2P_DISABLE", "1")
    assert "--env NCCL_P2P_DISABLE=1 registry.example:5000/vllm/vllm-openai:v0.9.2 --model m" in line
    assert "export" not in line
    (line,) = commands(PODMAN, "env", "X", "a=1 b=2")
    assert "--env 'X=a=1 b=2' docker.io/lmsysorg/sglang@sha256:0123abcd python3 -m" in line


def test_what_the_person_left_to_the_shell_stays_with_it() -> None:
    (line,) = commands(DOCKER, "env", "X", "1")
    assert '-e "HF_TOKEN=$HF_TOKEN" -v ~/models:/models' in line


def test_a_containers_limits_stand_before_the_image_and_the_engines_options_at_the_end() -> None:
    assert "--shm-size 16g registry.example" in commands(DOCKER, "flag", "--shm-size", "16g")[0]
    assert commands(DOCKER, "flag", "--max-num-seqs", "64")[0].endswith("v0.9.2 --model m --max-num-seqs 64")
    assert commands(PODMAN, "flag", "--tensor-parallel-size", "4")[0].endswith("launch_server --tensor-parallel-size 4")


def test_what_is_given_already_is_replaced() -> None:
    text = "docker run --shm-size=1g -e MAX_JOBS=64 --ulimit stack=1 img --runtime x --seed 1"
    assert commands(text, "flag", "--shm-size", "16g") == (
        "docker run --shm-size 16g -e MAX_JOBS=64 --ulimit stack=1 img --runtime x --seed 1",
    )
    assert "-e MAX_JOBS" not in commands(text, "env", "MAX_JOBS", "4")[0]
    assert commands(text, "env", "MAX_JOBS", "4")[0].count("MAX_JOBS") == 1
    assert "--ulimit stack=1 --ulimit memlock=-1 img" in commands(text, "flag", "--ulimit", "memlock=-1")[0]
    assert commands(text, "flag", "--seed", "2")[0].endswith("img --runtime x --seed 2")


def test_a_variable_is_taken_out_of_the_container() -> None:
    assert commands("docker run -eA=1 --gpus all img serve", "env", "A", "unset") == (
        "docker run --gpus all img serve",
    )
    # The image sets it: only an empty value gets the better of that.
    assert commands("docker run img serve", "env", "A", "unset") == ("docker run --env A= img serve",)


def test_an_option_of_run_goes_before_two_dashes() -> None:
    assert commands("docker run --gpus all -- img --x 1", "flag", "--ipc", "host") == (
        "docker run --gpus all --ipc host -- img --x 1",
    )


def test_a_named_container_makes_way_and_comes_back() -> None:
    written = written_for(
        Remedy(kind="env", name="A", value="1", summary=""), setting("sudo docker run -d --name q --gpus all img serve")
    )
    assert written.commands == (
        "sudo docker stop q",
        "sudo docker rename q q-before-gpuwhy",
        "sudo docker run -d --name q --gpus all --env A=1 img serve",
    )
    assert written.undo == (
        "sudo docker rm --force q",
        "sudo docker rename q-before-gpuwhy q",
        "sudo docker start q",
    )
    assert written.check == ("sudo docker exec q printenv A",)


def test_a_check_in_a_container_that_died_makes_one_for_the_question() -> None:
    remedy = Remedy(kind="env", name="A", value="1", summary="", check=("python3 -c 'print(1)'",))
    (check,) = written_for(remedy, setting("docker run -d --restart always -p 80:80 --gpus all img serve")).check
    assert shlex.split(check) == [
        "docker", "run", "--rm", "--entrypoint", "sh", "--gpus", "all", "img", "-c", "python3 -c 'print(1)'",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["package", "cache", "toolkit"])
def test_what_is_installed_into_a_typed_container_goes_into_its_image(kind: str) -> None:
    name, value = {"package": ("torch", ">=2.7"), "cache": ("flashinfer", "delete"), "toolkit": ("cuda", ">=12.8")}[
        kind
    ]
    written = written_for(Remedy(kind=kind, name=name, value=value, summary=""), setting(DOCKER))
    assert not any(line.startswith(("python3 -m pip", "apt-get", "mv ", "rm ")) for line in written.commands)


def test_an_assignment_before_the_program_is_changed_where_it_stands() -> None:
    assert commands("CUDA_VISIBLE_DEVICES=0,1 vllm serve m", "env", "CUDA_VISIBLE_DEVICES", "1") == (
        "CUDA_VISIBLE_DEVICES=1 vllm serve m",
    )
    assert commands("A=1 vllm serve m", "env", "A", "unset") == ("unset A", "vllm serve m")
    assert commands("A='x y' vllm serve m", "flag", "--seed", "1") == ("A='x y' vllm serve m --seed 1",)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            "python -m vllm.entrypoints.openai.api_server --model m",
            "python -m vllm.entrypoints.openai.api_server --model m",
        ),
        (
            "torchrun --nproc-per-node 8 -m sglang.launch_server --tp 8",
            "torchrun --nproc-per-node 8 -m sglang.launch_server --tp 8",
        ),
        ("cd /srv && export A=1 && vllm serve m 2>&1 | tee log", "vllm serve m"),
        ("nohup vllm serve m \\\n  --port 80 > log 2>&1 &", "nohup vllm serve m --port 80"),
        ("uv run vllm serve m", "uv run vllm serve m"),
    ],
)
def test_an_option_is_added_to_the_command_that_starts_the_service(text: str, changed: str) -> None:
    assert commands(text, "flag", "--seed", "7") == (f"{changed} --seed 7",)


@pytest.mark.parametrize(
    "text",
    [
        "bash start.sh", "./serve.sh --fast", "sh -c 'vllm serve m'", "docker run img bash -c 'pip list; vllm serve m'",
        "docker run --entrypoint /bin/bash img -c 'vllm serve m'",
    ],
)  # fmt: skip
def test_options_behind_a_script_or_a_shell_line_are_an_instruction(text: str) -> None:
    first, again = commands(text, "flag", "--seed", "7")
    assert first.startswith("# add to the engine's options in ")
    assert again == read_command(text).text()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "python -m sglang.launch_server ... --deepep-mode normal",
        "vllm serve <gpt-oss> (attention backend chosen by default)",
        "vllm serve $(reboot)",
        "curl -s https://evil.example/x",
        "vllm",
        "'unclosed vllm serve",
        "",
    ],
)
def test_what_is_no_whole_start_command_is_not_repeated(text: str) -> None:
    (line,) = commands(text, "flag", "--seed", "7")
    assert line == "# add to the start command: --seed 7"


def test_an_option_of_docker_is_never_given_to_an_engine() -> None:
    (line,) = commands("vllm serve m", "flag", "--shm-size", "16g")
    assert line.startswith("# add to the command that starts the container, before the image's name: --shm-size=16g")


def test_values_that_only_say_where_to_go_are_not_typed() -> None:
    assert commands("vllm serve m", "flag", "--attention-backend", "another") == ()
    assert commands("vllm serve m", "flag", "--trust-remote-code", "set") == ("vllm serve m --trust-remote-code",)


def test_spellings_of_one_argument_replace_each_other() -> None:
    assert commands("vllm serve m -tp 2 --seed 1", "flag", "--tensor-parallel-size", "4") == (
        "vllm serve m --tensor-parallel-size 4 --seed 1",
    )


def test_short_options_of_llama_are_replaced_and_not_doubled() -> None:
    command = read_command("llama-server -m /models/q.gguf -ngl 99 -c 32768 -ub 1024")
    assert command is not None
    changed = command.with_engine_option("--ubatch-size", "512").with_engine_option("--n-gpu-layers", "40")
    assert changed.text() == "llama-server -m /models/q.gguf --n-gpu-layers 40 -c 32768 --ubatch-size 512"
