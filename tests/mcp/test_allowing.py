"""An agent looks only where whoever started the server said it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.mcp.allowing import NotAllowedError, allowed


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("root@gpu-*", "root@gpu-17"),
        ("local", "local"),
        ("docker:*", "docker:vllm"),
        ("docker:**", "docker:my.vllm-1"),
        ("gpu-*.corp", "gpu-1.corp"),
        ("k8s:prod/*", "k8s:prod/vllm-0"),
        ("ssh://root@gpu-*:2222", "ssh://root@gpu-1:2222"),
    ],
)
def test_a_place_that_fits_a_pattern_may_be_examined(pattern: str, where: str, tmp_path: Path) -> None:
    assert allowed([pattern], [tmp_path]).place(where) == where


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("root@gpu-*", "root@gpu-1.evil.example"),
        ("root@gpu-*", "root@gpu-1@evil"),
        ("gpu-*", "root@gpu-1"),
        ("gpu-*", "gpu-1 -oProxyCommand=x"),
        ("**", "-oProxyCommand=x"),
        ("**", "a b"),
        ("**", "a;b"),
        ("**", "$(reboot)"),
        ("docker:*", "docker:a/../b"),
        ("gpu.1", "gpux1"),
        ("root@gpu-*", "local"),
        ("**", "x" * 300),
        ("*", "a\nb"),
    ],
)
def test_everything_else_is_refused(pattern: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(NotAllowedError, match="not among the places"):
        allowed([pattern], [tmp_path]).place(where)


def test_without_a_pattern_this_machine_alone_is_allowed(tmp_path: Path) -> None:
    guard = allowed([], [tmp_path])
    assert guard.place("local") == "local"
    with pytest.raises(NotAllowedError):
        guard.place("root@host")


def test_a_container_elsewhere_needs_both_to_be_allowed(tmp_path: Path) -> None:
    assert allowed(["docker:*", "gpu-1"], [tmp_path]).place("docker:vllm", "gpu-1") == "docker:vllm"
    with pytest.raises(NotAllowedError, match="gpu-2"):
        allowed(["docker:*", "gpu-1"], [tmp_path]).place("docker:vllm", "gpu-2")


def test_files_are_named_from_the_folder_and_stay_in_it(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "crash.log").write_text("x")
    (tmp_path / "secret").write_text("x")
    (inside / "link").symlink_to(tmp_path / "secret")
    guard = allowed([], [inside])
    assert guard.place("crash.log") == str(inside / "crash.log")
    assert guard.place("./crash.log") == str(inside / "crash.log")
    for outside in ("../secret", "link", str(tmp_path / "secret"), "/etc/passwd"):
        with pytest.raises(NotAllowedError, match="outside the folders"):
            guard.file(outside)


def test_a_file_with_the_name_of_a_place_is_still_held_to_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "local").symlink_to("/etc/passwd")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotAllowedError, match="outside the folders"):
        allowed([], [inside]).place("/etc/passwd")
    with pytest.raises(NotAllowedError):
        allowed([], [inside]).place("../local")


def test_standard_input_is_the_connection(tmp_path: Path) -> None:
    with pytest.raises(NotAllowedError, match="text"):
        allowed(["**"], [tmp_path]).place("-")


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        allowed([], [tmp_path / "missing"])
