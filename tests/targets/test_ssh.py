"""The ssh command line, and ssh's words turned into what a person can do. A real sshd is in the lab."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import AT_MOST

from gpuwhy.targets import TargetError
from gpuwhy.targets.pipe import REMOTE_COMMAND
from gpuwhy.targets.ssh import SshTarget


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `ssh` that answers `-G` with what `config` says, and else does what `behaviour` says."""
    script = tmp_path / "bin/ssh"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\ncase " $* " in *" -G "*) cat {tmp_path}/config; exit 0;; esac\n. {tmp_path}/behaviour\n'
    )
    script.chmod(0o755)
    (tmp_path / "config").write_text("user root\nconnecttimeout none\nserveraliveinterval 0\n")
    (tmp_path / "behaviour").write_text("exit 0\n")
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("GPUWHY_SSH_OPTIONS", raising=False)
    return tmp_path


def test_the_user_s_client_gets_one_safe_command(client: Path) -> None:
    command = SshTarget("root@gpu-host").command()
    assert command[:2] == [str(client / "bin/ssh"), "-T"]
    assert command[-3:] == ["--", "root@gpu-host", REMOTE_COMMAND]
    assert "ConnectTimeout=10" in command
    assert "ServerAliveInterval=5" in command


def test_what_the_user_configured_is_not_overruled(client: Path) -> None:
    (client / "config").write_text("connecttimeout 3\nserveraliveinterval 30\n")
    command = SshTarget("gpu-host").command()
    assert not [word for word in command if word.startswith(("ConnectTimeout", "ServerAlive"))]


def test_further_options_come_from_the_environment(client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", "-F '/a b/config' -p 2222")
    command = SshTarget("gpu-host").command()
    assert command[2:6] == ["-F", "/a b/config", "-p", "2222"]


SAID = {
    "ssh: connect to host h port 22: Connection refused": "nothing listens",
    "ssh: connect to host h port 22: Connection timed out": "does not answer",
    "ssh: Could not resolve hostname h: Name or service not known": "cannot be resolved",
    "ssh: connect to host h port 22: No route to host": "no way to it",
    "root@h: Permission denied (publickey,password).": "refused the login",
    "Host key verification failed.": "not known yet",
    "@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@\nHost key verification failed.": "not the one known",
    "kex_exchange_identification: Connection closed by remote host": "closed the connection",
    "Timeout, server h not responding: Connection to h timed out": "does not answer",
    "/root/.ssh/config: line 3: Bad configuration option: foo": "does not accept its configuration",
    "gpuwhy: no python3 here": "no python3",
    "sh: 1: sh: not found": "ended with status",
}


@pytest.mark.parametrize(("said", "meaning"), SAID.items())
def test_each_way_to_fail_is_told_apart_with_what_to_do(said: str, meaning: str) -> None:
    error = SshTarget("root@gpu-host").explain(255, said)
    assert meaning in error.message
    assert "gpu-host" in error.message
    assert error.advice


def test_a_client_that_fails_is_explained_through_and_through(client: Path) -> None:
    (client / "behaviour").write_text(
        "echo 'ssh: connect to host gpu-host port 22: Connection refused' >&2\nexit 255\n"
    )
    connection = SshTarget("gpu-host").open("x" * 500_000)
    with pytest.raises(TargetError, match="nothing listens on its SSH port"):
        connection.collect({}, lambda _: None, 60.0)
    connection.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never says a word, as a wedged sshd does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_real_client_against_a_port_where_nobody_is(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", f"-F /dev/null -o ConnectTimeout=1 -p {silent_port}")
    connection = SshTarget("127.0.0.1").open("pass")
    with pytest.raises(TargetError, match=r"does not answer|gave no answer"):
        connection.collect({}, lambda _: None, 3.0)
    connection.close()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("GPUWHY_SSH_OPTIONS", f"-F /dev/null -p {unused.getsockname()[1]}")
        connection = SshTarget("127.0.0.1").open("pass")
        with pytest.raises(TargetError, match="nothing listens"):
            connection.collect({}, lambda _: None, AT_MOST)
        connection.close()


@pytest.mark.parametrize(
    ("destination", "key"),
    [("root@gpu-host", "gpu-host"), ("root@gpu-host:2222", "'[gpu-host]:2222'"), ("[::1]:22", "'[::1]:22'"), ("2001:db8::1", "2001:db8::1")],
)  # fmt: skip
def test_a_changed_key_is_removed_under_the_name_that_it_is_known_by(destination: str, key: str) -> None:
    error = SshTarget(destination).explain(255, "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @")
    assert error.advice.endswith(f"ssh-keygen -R {key}")
