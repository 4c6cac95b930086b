"""What is read of a container's description and log, and which container a unit runs. Real engines are in the lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collector.conftest import collect, executable
from tests.patience import BUSY

from gpuwhy.collector import container_log, container_of, container_state
from gpuwhy.collector.engines import Container, last_words, requested
from gpuwhy.collector.inside import why_not
from gpuwhy.collector.probing import Absent, Failed, Notes

INSPECTED: dict[str, Any] = {
    "Id": "ab" * 32,
    "Created": "2026-05-08T13:00:00.123456789Z",
    "Path": "/opt/entry.sh",
    "Args": ["vllm", "serve", "org/model"],
    "State": {
        "Status": "exited",
        "Running": False,
        "OOMKilled": True,
        "Pid": 0,
        "ExitCode": 137,
        "Error": "",
        "StartedAt": "2026-05-08T14:00:00.5Z",
        "FinishedAt": "2026-05-08T14:02:11Z",
        "Health": {"Status": "unhealthy", "Log": [{"ExitCode": 1, "Output": "curl: (7) Failed to connect"}]},
    },
    "Image": "sha256:cd",
    "Name": "/vllm",
    "RestartCount": 3,
    "HostConfig": {
        "NetworkMode": "host",
        "IpcMode": "private",
        "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 5},
        "Runtime": "nvidia",
        "ShmSize": 67108864,
        "Memory": 68719476736,
        "NanoCpus": 8000000000,
        "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}],
        "DeviceRequests": [{"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}],
        "LogConfig": {"Type": "json-file", "Config": {}},
    },
    "Mounts": [{"Type": "bind", "Source": "/data/models", "Destination": "/models", "Mode": "ro", "RW": False}],
    "Config": {
        "Env": [
            "NVIDIA_VISIBLE_DEVICES=0,1",
            "HF_TOKEN=hf_secretsecretsecretsecretsecretsecr",
            "COLOUR=red",
            "no sign",
        ],
        "Image": "vllm/vllm-openai:v0.10.0",
        "Labels": {"com.docker.compose.project": "llm", "secret.note": "x"},
    },
}


def test_a_description_of_docker_is_read() -> None:
    notes = Notes()
    found = container_state.described(Container("docker", "vllm"), INSPECTED, notes)
    state = found["state"]
    assert (found["name"], found["image"]) == ("vllm", "vllm/vllm-openai:v0.10.0")
    assert (state["status"], state["exit_code"], state["oom_killed"], state["restarts"]) == ("exited", 137, True, 3)
    assert (state["restart_policy"], state["health"]) == ("on-failure:5", "unhealthy")
    assert state["finished_at"] - state["started_at"] == 130.5
    assert found["command"] == ["/opt/entry.sh", "vllm", "serve", "org/model"]
    assert found["limits"] == {"memory": 64 << 30, "memory_and_swap": None, "shm": 64 << 20, "cpus": 8.0, "processes": None, "ulimits": {"memlock": [-1, -1]}}  # fmt: skip
    assert found["gpus"]["requests"] == [{"driver": None, "count": -1, "devices": [], "capabilities": ["gpu"]}]
    assert (found["gpus"]["runtime"], found["gpus"]["visible"]) == ("nvidia", "0,1")
    assert found["mounts"][0]["source"] == "/data/models"
    assert found["labels"] == {"com.docker.compose.project": "llm"}
    assert found["other_names"] == ["COLOUR"]
    assert notes.secrets == ["hf_secretsecretsecretsecretsecretsecr"]


def test_podman_names_limits_otherwise_and_never_is_no_time() -> None:
    inspected = {
        "ImageName": "docker.io/vllm:1",
        "State": {"Status": "created", "StartedAt": "0001-01-01T00:00:00Z"},
        "HostConfig": {"Ulimits": [{"Name": "RLIMIT_NOFILE", "Soft": 1024, "Hard": 4096}]},
    }
    found = container_state.described(Container("podman", "vllm"), inspected, Notes())
    assert found["limits"]["ulimits"] == {"nofile": [1024, 4096]}
    assert (found["state"]["started"], found["state"]["started_at"]) == (None, None)
    assert found["image"] == "docker.io/vllm:1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(keys=st.lists(st.sampled_from(sorted(INSPECTED)), max_size=4), inner=st.sampled_from(sorted(INSPECTED["HostConfig"])), odd=JSON)  # fmt: skip
def test_a_description_of_any_shape_is_read(keys: list[str], inner: str, odd: Any) -> None:
    document = {**INSPECTED, "HostConfig": {**INSPECTED["HostConfig"], inner: odd}, **dict.fromkeys(keys, odd)}
    found = container_state.described(Container("docker", "vllm"), document, Notes())
    json.dumps(found)


@pytest.mark.parametrize(
    ("line", "time", "text"),
    [
        ("2026-05-08T14:02:11.123456789Z ERROR failed", 1778248931.123457, "ERROR failed"),
        ("2026-05-08T16:02:11.5+02:00 at", 1778248931.5, "at"),
        ("2026-05-08T14:02:11Z", 1778248931.0, ""),
        ("no time here", None, "no time here"),
        ("2026-13-45T99:99:99Z x", None, "2026-13-45T99:99:99Z x"),
        ("0001-01-01T00:00:00Z x", None, "0001-01-01T00:00:00Z x"),
    ],
)
def test_a_line_has_its_time_in_front(line: str, time: float | None, text: str) -> None:
    entry = container_log.entry(line)
    assert (entry[0], entry[5]) == (time, text)


def words_of(*command: str) -> list[str]:
    return container_of.engine_words(command)


def test_the_engine_is_found_behind_wrappers_shells_and_scripts(tmp_path: Path) -> None:
    run = ["docker", "run", "--name", "vllm", "img"]
    assert words_of("/usr/bin/docker", *run[1:]) == run
    assert words_of("/usr/bin/env", "A=b", "/usr/bin/docker", *run[1:]) == run
    assert words_of("/bin/bash", "-c", "docker pull img && exec docker run --name vllm img") == run
    assert words_of("/usr/bin/docker-compose", "up") == ["docker", "compose", "up"]
    script = executable(tmp_path / "start.sh", "#!/bin/bash\nset -e\n# docker run old\ndocker rm -f vllm || true\nexec docker run \\\n  --name vllm \\\n  img\n")  # fmt: skip
    assert words_of(str(script)) == run
    assert words_of("/bin/bash", str(script)) == run
    assert words_of("/opt/venv/bin/python", "-m", "sglang.launch_server") == []


def unit(*command: str, **properties: str) -> dict[str, Any]:
    return {"name": "vllm.service", "commands": [list(command)], "properties": properties, "files": []}


@pytest.mark.parametrize(
    ("command", "engine", "name"),
    [
        (("docker", "run", "--rm", "--name", "vllm", "--gpus", "all", "img"), "docker", "vllm"),
        (("/usr/bin/podman", "run", "--name=systemd-vllm", "--cidfile=/run/x.cid", "img"), "podman", "systemd-vllm"),
        (("/usr/bin/docker", "start", "--attach", "vllm"), "docker", "vllm"),
        (("/usr/bin/nerdctl", "--namespace", "k8s.io", "run", "--name", "a", "img"), "nerdctl", "a"),
    ],
)
def test_the_container_of_a_unit_is_named_by_its_command(command: tuple[str, ...], engine: str, name: str) -> None:
    found = container_of.of_unit(unit(*command), Notes())
    assert found is not None
    assert (found.engine, found.name) == (engine, name)
    assert "vllm.service" in found.found_by


LISTING = """#!/bin/sh
[ "$1" = ps ] || exit 9
case "$*" in
*working_dir=/srv/llm*) printf 'llm-proxy-1\\tUp 2 hours\\nllm-vllm-1\\tExited (1) 2 minutes ago\\n' ;;
*PODMAN_SYSTEMD_UNIT=vllm.service*) echo from-label ;;
*label=*) ;;
*) printf 'newest\\tother/img:2\\nbrave_hopper\\tvllm/img:1\\n' ;;
esac
"""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("docker", "run", "--gpus", "all", "vllm/img:1", "--model", "m"), "brave_hopper"),
        (("docker", "compose", "--project-directory", "/srv/llm", "up"), "llm-vllm-1"),
        (("docker", "compose", "-f", "/srv/llm/compose.yml", "up"), "llm-vllm-1"),
        (("podman", "kube", "play", "/srv/pod.yml"), "from-label"),
    ],
)
def test_a_container_without_a_name_in_the_command_is_looked_up(
    command: tuple[str, ...], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine in ("docker", "podman"):
        executable(tmp_path / engine, LISTING)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = container_of.of_unit(unit(*command), Notes())
    assert found is not None
    assert found.name == name


def test_a_unit_without_a_container_leads_into_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert container_of.of_unit(unit("/opt/venv/bin/vllm", "serve", "m"), Notes()) is None
    assert container_of.of_unit(unit("docker", "run", "--name", "$(id)", "img"), Notes()) is None
    with pytest.raises(Absent):
        container_of.container_of({}, Notes(), None, None)


@pytest.mark.parametrize("asked", [{"engine": "docker", "name": "--privileged"}, {"engine": "sh", "name": "a"}, {"engine": "k8s", "name": "a", "namespace": "-x"}, {"engine": "docker"}])  # fmt: skip
def test_a_request_that_names_no_container_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(Failed):
        requested({"container": asked})


def test_the_sentence_that_says_why_is_found_among_a_clients_noise() -> None:
    said = 'E1130 10:46:40.5 1 memcache.go:265] "Unhandled Error"\nThe connection to the server x was refused\n'
    assert last_words(said) == "The connection to the server x was refused"
    assert last_words("Unable to connect: exec: executable a not found\n\nIt looks like\nadvice\nmore\nurl").startswith("Unable to connect: exec")  # fmt: skip
    assert last_words("") == ""


@pytest.mark.parametrize(
    ("status", "errors", "reason"),
    [
        (127, "gpuwhy: no python3 here", "no python3 (3.6 or later) inside"),
        (126, 'OCI runtime exec failed: exec: "sh": executable file not found in $PATH: unknown', "neither a shell nor python3"),
        (1, "Error response from daemon: Container ab is not running", "does not run"),
        (1, "Error response from daemon: Container ab is restarting, wait until the container is running", "does not run"),
        (255, "Error: can only create exec sessions on running containers: container state improper", "does not run"),
        (137, "", "status 137: it said nothing"),
    ],
)  # fmt: skip
def test_an_exec_that_gave_no_answer_is_explained(status: int, errors: str, reason: str) -> None:
    assert reason in why_not(status, errors).reason


ENGINE = """#!/bin/sh
case "$1 $2" in
"container inspect") [ "$3" = vllm ] || {{ echo "Error: No such container: $3" >&2; exit 1; }}; cat {inspected} ;;
"image inspect") echo "Error: No such image" >&2; exit 1 ;;
"exec -i") shift 3; exec "$@" ;;
logs*) echo '2026-05-08T14:00:00Z starting'; echo '2026-05-08T14:00:01Z token hf_secretsecretsecretsecretsecretsecr' >&2 ;;
"ps --all") echo vllm ;;
*) exit 9 ;;
esac
"""


@pytest.fixture
def engine(tmp_path: Path) -> dict[str, str]:
    """Variables with which the client called docker is a stand-in that runs "inside" on this machine."""
    running = {**INSPECTED, "State": {"Status": "running", "Running": True, "StartedAt": "2026-05-08T14:00:00Z"}}
    (tmp_path / "inspected").write_text(json.dumps([running]))
    executable(tmp_path / "docker", ENGINE.format(inspected=tmp_path / "inspected"))
    return {"PATH": f"{tmp_path}:/usr/bin:/bin"}


def request(**more: Any) -> dict[str, Any]:
    from gpuwhy.targets.pipe import SHELL_LINE

    return {"container": {"engine": "docker", "name": "vllm"}, "shell": SHELL_LINE, "deadline": 8, **more}


def test_the_inside_is_asked_through_the_engine_and_marked(engine: dict[str, str]) -> None:
    run = collect(request(), asks=b'{"id": 5, "ask": "stat", "path": "/usr"}\n', environment=engine)
    inside = {line["probe"] for line in run.lines if line.get("inside")}
    outside = {line["probe"] for line in run.lines if "probe" in line and not line.get("inside")}
    assert {"process", "environment", "packages", "system"} <= inside
    assert {"container_state", "container_log", "inside", "kernel_log", "system"} <= outside
    assert not {"packages", "toolkits", "journal"} & outside
    assert run.probe("inside")["status"] == "ok"
    assert [line["value"]["kind"] for line in run.lines if line.get("id") == 5] == ["folder"]


def test_one_redactor_serves_inside_and_outside(engine: dict[str, str]) -> None:
    run = collect(request(), environment=engine)
    assert "hf_secretsecret" not in run.raw
    log = run.value("container_log")["entries"][1][5]
    assert log == "token " + run.value("container_state")["variables"]["HF_TOKEN"]


def test_an_engine_that_hangs_is_given_up(tmp_path: Path) -> None:
    executable(tmp_path / "docker", "#!/bin/sh\nexec sleep 60\n")
    run = collect(request(deadline=1.5), environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert run.probe("container_state")["status"] == "timed out"
    assert run.seconds < 6 * BUSY


def test_a_container_that_is_not_there_ends_the_collection_at_once(engine: dict[str, str]) -> None:
    run = collect({"container": {"engine": "docker", "name": "vlm"}}, environment=engine)
    assert run.probe("container_state")["status"] == "absent"
    assert "it knows vllm" in run.probe("container_state")["remarks"]
    assert run.seconds < 5 * BUSY
