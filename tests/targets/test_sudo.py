"""Rights of root on a target: asked for without a question, refused in words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpuwhy.targets import TargetError
from gpuwhy.targets.local import LocalTarget
from gpuwhy.targets.pipe import NO_SUDO, shell_line
from gpuwhy.targets.ssh import SshTarget
from gpuwhy.targets.sudo import refusal


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("sudo: a password is required", "asks for a password"),
        ("sudo: no tty present and no askpass program specified", "asks for a password"),
        ("sudo: interactive authentication is required", "asks for a password"),
        ("alice is not in the sudoers file.", "does not allow"),
        ("Sorry, user alice is not allowed to execute '/usr/bin/python3 -I' as root on gpu-host. (sudo)", "does not allow"),
        ("sudo: sorry, you must have a tty to run sudo", "only runs in a terminal"),
        ('sudo: The "no new privileges" flag is set, which prevents sudo from running as root.', "took that away"),
        ("sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set", "lost its rights"),
        ("sudo: /etc/sudoers.d/x:1:9: syntax error", "cannot read its rules"),
        ("sudo: python3: command not found", "does not find the interpreter"),
        (NO_SUDO, "no sudo"),
    ],
)  # fmt: skip
def test_every_refusal_of_sudo_is_explained(said: str, meaning: str) -> None:
    refused = refusal("gpu-host", f"a banner\n{said}\n")
    assert refused is not None
    assert meaning in refused.message
    assert "--sudo" in refused.advice


def test_other_words_are_no_refusal() -> None:
    assert refusal("gpu-host", "Connection refused") is None
    assert refusal("gpu-host", "sudo: unable to resolve host gpu-host: Name or service not known") is None


def test_sudo_goes_before_the_interpreter_alone(tmp_path: Path) -> None:
    """With a sudo that tells how it was called: never without ``-n``, and only the collector is given to it."""
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\nprintf "%s " "$1" "$3" "$4" "$5" >&2\nexit 1\n')
    sudo.chmod(0o755)
    identity = tmp_path / "id"
    identity.write_text("#!/bin/sh\necho 1000\n")
    identity.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", shell_line(sudo=True)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr.strip()) == (1, "-n -I -S -B")
    assert not set(shell_line(sudo=True)) & set("'\\!\n")


def test_who_is_root_needs_no_sudo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "sudo" not in LocalTarget(sudo=True).command()[0]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TargetError, match="no sudo on this machine"):
        LocalTarget(sudo=True).command()
    assert LocalTarget().command()[1:4] == ["-I", "-S", "-B"]


def test_a_remote_collector_gets_sudo_and_the_login_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", "-F /dev/null")
    command = SshTarget("gpu-host", sudo=True).command()
    assert "sudo" not in command[:-1]
    assert "$s $n" in command[-1]
    assert "sudo" not in SshTarget("gpu-host").command()[-1]
