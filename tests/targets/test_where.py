"""What the user calls a place, and what that means."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.targets import FileTarget, HostTarget, TargetError, parse_where
from gpuwhy.targets.ssh import SshTarget


@pytest.mark.parametrize(
    ("where", "kind", "name"),
    [
        ("-", "stdin", "-"),
        ("local", "local", "local"),
        ("./local", "file", "local"),
        ("/var/log/none.log", "file", "/var/log/none.log"),
        ("root@gpu-host", "ssh", "root@gpu-host"),
        ("gpu-host", "ssh", "gpu-host"),
        ("ssh://root@gpu-host:2222", "ssh", "ssh://root@gpu-host:2222"),
        ("root@[2001:db8::1]", "ssh", "root@[2001:db8::1]"),
        ("docker:vllm", "docker", "docker:vllm"),
        ("podman:vllm-1", "podman", "podman:vllm-1"),
    ],
)
def test_a_word_names_one_kind_of_target(where: str, kind: str, name: str) -> None:
    target = parse_where(where)
    assert (target.kind, target.name) == (kind, name)
    assert isinstance(target, FileTarget if kind in ("file", "stdin") else HostTarget)


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        ("gpu-host", "gpu-host"),
        ("root@gpu-host:2222", "ssh://root@gpu-host:2222"),
        ("10.1.2.3:22", "ssh://10.1.2.3:22"),
        ("root@[2001:db8::1]", "ssh://root@[2001:db8::1]"),
        ("[fe80::1%eth0]:2222", "ssh://[fe80::1%eth0]:2222"),
        ("2001:db8::1", "2001:db8::1"),
        ("root@2001:db8::22", "root@2001:db8::22"),
        ("ssh://root@gpu-host:2222", "ssh://root@gpu-host:2222"),
        ("gpu-host:log", "gpu-host:log"),
    ],
)
def test_a_port_behind_a_host_is_one(where: str, taken: str) -> None:
    target = parse_where(where)
    assert isinstance(target, SshTarget)
    assert (target.name, target.destination) == (where, taken)


@pytest.mark.parametrize("where", ["gpu-host:0", "root@gpu-host:99999"])
def test_a_port_that_is_none_is_said(where: str) -> None:
    with pytest.raises(TargetError, match="is no port"):
        parse_where(where)


def test_an_existing_file_wins_over_a_host_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpu-host").write_text("log")
    (tmp_path / "local").write_text("log")
    assert parse_where("gpu-host").kind == "file"
    assert parse_where("local").kind == "file"


@pytest.mark.parametrize(
    "where",
    [
        "",
        "-oProxyCommand=touch /tmp/x",
        "host;rm -rf /",
        "host name",
        "$(id)",
        "host\nname",
        "docker:-x",
        "docker:",
        "podman:a b",
        "`id`",
        "host\0",
        "ssh://-oX",
    ],
)
def test_what_cannot_be_a_target_is_refused_in_words(where: str) -> None:
    with pytest.raises(TargetError) as raised:
        parse_where(where)
    assert raised.value.message


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    for path in (tmp_path / "none.log", tmp_path):
        target = parse_where(str(path))
        assert isinstance(target, FileTarget)
        with pytest.raises(TargetError, match=str(path)):
            target.stream()
