"""Containers of real engines: running, ended, killed for memory, in a crash loop, without Python; here and on a host over ssh."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lab import engines
from tests.lab.conftest import MOUNTS
from tests.lab.engines import Engine, files_of, processes_of
from tests.lab.gpu_host import GpuHost, booted, wait_for

from gpuwhy.collector.engines import Container, ask
from gpuwhy.collector.probing import Notes
from gpuwhy.snapshot import Session
from gpuwhy.targets import Ask
from gpuwhy.targets.container import ContainerTarget

pytestmark = pytest.mark.lab

SECRET = "hf_LabLabLabLabLabLabLabLabLabLabLabL"
SEED = ["sh", "-c", "cat /logs/seed_crash_fake128.log >&2; exit 3"]
GREEDY = "print('loading weights', flush=True); held = bytearray(400 << 20); held[::4096] = b'1' * len(held[::4096])"

SUPERVISED = r"""
printf '[supervisord]\nlogfile=/tmp/supervisord.log\n[program:sglang]\ncommand=python3 -m sglang.launch_server\nredirect_stderr=true\nstdout_logfile=/logs/seed_crash_fake128.log\n' > /etc/supervisord.conf
echo '2026-11-30 06:09:21,123 INFO gave up: sglang entered FATAL state, too many start retries too quickly' > /tmp/supervisord.log
exec sleep 600
"""

UNIT = """\
[Unit]
Description=vLLM in a container
[Service]
ExecStart=/usr/bin/docker run --name lab-of-unit --network none --volume {logs}:/logs:ro {image} {words}
"""


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    """A dockerd with one container of each kind, all of them settled."""
    with engines.docker() as engine:
        engine.start("lab-running", ["sh", "-c", f"echo serving; echo {SECRET} >&2; exec sleep 600"], "--env", f"HF_TOKEN={SECRET}")  # fmt: skip
        engine.start("lab-seed", SEED, "--shm-size", "64m")
        engine.start("lab-greedy", ["python3", "-c", GREEDY], "--memory", "40m")
        engine.start("lab-loop", ["sh", "-c", "echo starting; echo 'ValueError: no such model' >&2; exit 7"], "--restart", "always")  # fmt: skip
        engine.start("lab-bare", ["sleep", "600"], "--volume", "/dev/null:/usr/bin/python3.11:ro")
        for name in ("lab-seed", "lab-greedy"):
            engine.wait_until_ended(name)
        yield engine


@pytest.fixture(scope="module")
def docker_host(docker: Engine) -> Iterator[GpuHost]:
    """A host with the client of that dockerd, and its socket where the client looks for it."""
    socket = docker.variables["DOCKER_HOST"].removeprefix("unix://")
    binds = ["--bind-ro=/usr/bin/docker:/usr/bin/docker", f"--bind={socket}:/run/docker.sock"]
    with booted("lab-docker", [*MOUNTS, *binds]) as host:
        yield host


def test_the_log_of_an_ended_container_gives_the_cause(docker: Engine) -> None:
    examined = docker.diagnose("docker:lab-seed")
    assert examined.status == 1, examined.errors
    assert examined.causes[0] == "toolkit-too-old-for-arch"
    facts = examined.facts
    assert (facts["container.exit_code"], facts["container.oom_killed"]) == (3, False)
    assert (facts["container.image"], facts["shm_bytes"]) == (engines.IMAGE, 64 << 20)
    assert facts["mem_total_bytes"] > 0, "the host's part"
    notes = " ".join(examined.document["notes"])
    assert "The inside of docker container lab-seed was not visible" in notes


def test_a_service_named_beside_a_container_is_one_in_it_or_refused(docker: Engine) -> None:
    """The program's log is not the container's own: without its name nothing of it is seen."""
    docker.start("lab-supervised", ["sh", "-c", SUPERVISED])
    named = docker.diagnose("docker:lab-supervised", "--unit", "sglang")
    assert named.status == 1, named.errors
    assert named.causes[0] == "toolkit-too-old-for-arch"
    for verb, container, unit, why in (
        ("diagnose", "lab-supervised", "vllm", "supervisord has no program vllm; it has sglang"),
        ("check", "lab-running", "vllm.service", "supervisord has no program vllm.service"),
        ("diagnose", "lab-seed", "vllm", "it does not run: it is exited"),
    ):
        refused = docker.gpuwhy(verb, f"docker:{container}", "--unit", unit)
        assert refused.status == 3, refused.text
        assert why in refused.errors
        assert "Of a container --unit takes" in refused.errors


def test_a_kill_for_memory_is_told_by_the_engine_and_the_kernel(docker: Engine) -> None:
    assert docker.state("lab-greedy")["OOMKilled"] is True
    examined = docker.diagnose("docker:lab-greedy")
    assert examined.causes[0] == "host-oom-kill"
    assert examined.document["findings"][0]["certainty"] == "proven"
    facts = examined.facts
    assert (facts["container.oom_killed"], facts["container.exit_code"]) == (True, 137)
    assert facts["memory_limit_bytes"] == 40 << 20


def test_a_kill_in_one_container_is_no_sign_in_another(docker: Engine) -> None:
    examined = docker.diagnose("docker:lab-running")
    assert (examined.status, examined.causes) == (0, []), examined.text


def test_a_crash_loop_is_examined_whatever_it_does_at_the_moment(docker: Engine) -> None:
    examined = docker.diagnose("docker:lab-loop")
    assert examined.status == 1
    assert "no such model" in examined.text
    assert examined.facts["container.restarts"] > 0
    assert examined.facts["container.exit_code"] == 7


def printed(log: dict[str, Any]) -> list[str]:
    """The lines of a container's log; those of its two streams come in an order that the engine does not promise."""
    return [entry[5] for entry in log["entries"]]


def test_a_running_container_is_seen_from_inside_and_outside_and_left_as_it_was(docker: Engine, tmp_path: Path) -> None:
    files, processes = files_of(docker, "lab-running"), processes_of(docker, "lab-running")
    kept = tmp_path / "running.gpuwhy"
    collected = docker.gpuwhy("collect", "docker:lab-running", "-o", str(kept))
    assert collected.status == 0, collected.errors
    wait_for(lambda: processes_of(docker, "lab-running") == processes, 5, "no process of ours is left inside")
    assert files_of(docker, "lab-running") == files
    shown = docker.gpuwhy("show", str(kept), "--format", "json")
    probes = {each["probe"]: each for each in shown.document["probes"]}
    assert probes["inside"]["status"] == "ok"
    assert probes["process"]["value"]["command"][0] == "sleep"
    assert probes["environment"]["value"]["source"] == "process"
    assert probes["system"]["subject"] == "container:docker:lab-running"
    assert probes["host.system"]["subject"] == "host"
    assert probes["system"]["value"]["host"] != probes["host.system"]["value"]["host"]
    assert "serving" in printed(probes["container_log"]["value"])


def test_a_cut_in_the_middle_leaves_no_process_inside(docker: Engine, tmp_path: Path) -> None:
    processes = processes_of(docker, "lab-running")
    collecting = subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", "collect", "docker:lab-running", "-o", str(tmp_path / "x.gpuwhy")],
        env={**os.environ, **docker.variables, "PATH": engines.PATH},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: processes_of(docker, "lab-running") != processes, 30, "the collector runs inside")
    collecting.kill()
    collecting.wait()
    wait_for(lambda: processes_of(docker, "lab-running") == processes, 20, "no process of ours is left inside")


def test_a_secret_of_the_environment_is_one_token_in_log_and_inspect(docker: Engine, tmp_path: Path) -> None:
    kept = tmp_path / "running.gpuwhy"
    docker.gpuwhy("collect", "docker:lab-running", "-o", str(kept))
    text = docker.gpuwhy("show", str(kept), "--format", "json").text
    assert SECRET not in text
    shown = docker.gpuwhy("show", str(kept), "--format", "json").document
    probes = {each["probe"]: each["value"] for each in shown["probes"] if each["status"] == "ok"}
    token = probes["container_state"]["variables"]["HF_TOKEN"]
    assert token.startswith("<redacted:")
    assert probes["environment"]["variables"]["HF_TOKEN"] == token
    assert token in printed(probes["container_log"])


def test_without_python_inside_the_outside_is_examined(docker: Engine) -> None:
    examined = docker.diagnose("docker:lab-bare")
    assert examined.status == 0, examined.errors
    assert "no python3 (3.6 or later) inside" in " ".join(examined.document["notes"])
    assert examined.facts["container.state"] == "running"


def test_an_unknown_name_is_answered_with_similar_ones(docker: Engine) -> None:
    examined = docker.diagnose("docker:lab-sed")
    assert examined.status == 3
    assert "there is no docker container lab-sed; it knows lab-seed" in examined.errors


def test_a_daemon_that_is_down_is_said_to_be(docker: Engine) -> None:
    examined = docker.diagnose("docker:lab-seed", DOCKER_HOST="unix:///run/none.sock")
    assert examined.status == 3
    assert "docker has no daemon to ask" in examined.errors
    assert "systemctl status docker" in examined.errors


def test_a_restart_between_two_questions_breaks_nothing(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker.variables["DOCKER_HOST"])
    monkeypatch.setenv("PATH", engines.PATH)
    docker.start("lab-restarted", ["sleep", "600"])
    with Session(ContainerTarget("docker", "lab-restarted")) as session:
        assert session.collect().value("inside") is not None
        assert session.ask([Ask("stat", "/usr/bin")])[0].status == "ok"
        docker.run("restart", "--time", "0", "lab-restarted")
        replies = session.ask([Ask("stat", "/usr/lib"), Ask("list", "/usr/share")])
    assert {reply.status for reply in replies} == {"failed"}
    assert "restarted" in replies[0].reason


def test_a_snapshot_of_an_ended_container_gives_the_same_answer_elsewhere(docker: Engine, tmp_path: Path) -> None:
    kept = tmp_path / "seed.gpuwhy"
    assert docker.gpuwhy("collect", "docker:lab-seed", "-o", str(kept)).status == 0
    there = docker.diagnose("docker:lab-seed").document
    here = docker.diagnose(str(kept), DOCKER_HOST="unix:///run/none.sock").document
    assert [each["cause"] for each in here["findings"]] == [each["cause"] for each in there["findings"]]
    assert here["notes"] == there["notes"]


def test_via_a_host_over_ssh_it_is_one_connection_and_the_same_answer(docker: Engine, docker_host: GpuHost) -> None:
    before = docker_host.logins()
    for name, status in (("lab-seed", 1), ("lab-running", 0)):
        examined = docker.diagnose(
            "--via", docker_host.ssh_destination, f"docker:{name}", GPUWHY_SSH_OPTIONS=docker_host.ssh_options, DOCKER_HOST="unix:///run/none.sock"
        )  # fmt: skip
        assert examined.status == status, examined.errors
        assert examined.document["where"] == f"docker:{name} on lab-docker"
        if status:
            assert examined.causes[0] == "toolkit-too-old-for-arch"
    assert docker_host.logins() == before + 2


def test_a_unit_that_runs_a_container_leads_into_it(docker: Engine, docker_host: GpuHost) -> None:
    words = shlex.join(SEED)
    docker_host.write("/etc/systemd/system/vllm-lab.service", UNIT.format(logs=engines.LOGS, image=engines.IMAGE, words=words))  # fmt: skip
    docker_host.run("systemctl daemon-reload && systemctl start vllm-lab.service")
    wait_for(lambda: docker_host.show("vllm-lab.service", "ActiveState")["ActiveState"] == "failed", 60, "the unit failed")  # fmt: skip
    examined = docker.diagnose(
        docker_host.ssh_destination, "--unit", "vllm-lab.service", GPUWHY_SSH_OPTIONS=docker_host.ssh_options
    )
    assert examined.status == 1, examined.errors
    assert examined.causes[0] == "toolkit-too-old-for-arch"
    assert examined.facts["container.name"] == "docker:lab-of-unit"
    assert examined.facts["container.exit_code"] == 3
    assert "vllm-lab.service runs it" in " ".join(examined.document["notes"])


def test_who_may_not_ask_docker_is_told_so(docker_host: GpuHost) -> None:
    program = "PYTHONPATH=/opt/gpuwhy-source /opt/gpuwhy/bin/python -m gpuwhy diagnose docker:lab-seed"
    done = docker_host.run(f"su --shell /bin/sh nobody --command {shlex.quote(program)}", check=False)
    assert done.returncode == 3
    assert "may not ask docker" in done.stderr
    assert "--sudo" in done.stderr


def test_containers_of_a_rootless_account_are_asked_as_that_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is a stand-in that says who it is: a real rootless podman needs user namespaces that a build machine may lack."""
    tmp_path.chmod(0o755)
    client = tmp_path / "podman"
    client.write_text('#!/bin/sh\necho $(id -u) $(id -G) $(pwd) $HOME $XDG_RUNTIME_DIR "$@"\n')
    client.chmod(0o755)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{engines.PATH}")
    said = ask(Container("podman", "vllm", account="games"), ["ps"], Notes()).split()
    assert said == ["5", "60", "/", "/usr/games", "/run/user/5", "ps"]
    assert ask(Container("podman", "vllm", account="root"), ["ps"], Notes()).split()[0] == "0"
    assert ask(Container("podman", "vllm"), ["ps"], Notes()).split()[0] == "0"


def test_podman_ended_running_and_unknown() -> None:
    with engines.podman() as podman:
        podman.start("lab-seed", SEED)
        podman.start("lab-running", ["sleep", "600"])
        podman.wait_until_ended("lab-seed")
        ended = podman.diagnose("podman:lab-seed")
        assert ended.status == 1, ended.errors
        assert ended.causes[0] == "toolkit-too-old-for-arch"
        assert ended.facts["container.exit_code"] == 3
        files = files_of(podman, "lab-running")
        running = podman.diagnose("podman:lab-running")
        assert running.status == 0, running.errors
        assert "not visible" not in " ".join(running.document["notes"])
        assert files_of(podman, "lab-running") == files
        unknown = podman.diagnose("podman:lab-sed")
        assert unknown.status == 3
        assert "there is no podman container lab-sed; it knows lab-seed" in unknown.errors
