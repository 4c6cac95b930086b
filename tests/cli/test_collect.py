"""``gpuwhy collect``: what is said before anything is collected."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import gpuwhy


def test_a_file_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    done = gpuwhy("collect", "local", "-o", str(tmp_path / "no" / "x.gpuwhy"))
    assert (done.status, done.err) == (2, f"gpuwhy: {tmp_path}/no/x.gpuwhy: there is no folder {tmp_path}/no\n")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    done = gpuwhy("collect", "local", "-o", str(tmp_path))
    assert done.status == 2
    assert done.err.splitlines()[1].strip() == f"Name a file in it: -o {tmp_path}/host.gpuwhy"


def test_a_log_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    done = gpuwhy("trace", "--log", str(tmp_path / "no.log"), "--source", str(tmp_path))
    assert (done.status, done.err) == (2, f"gpuwhy: {tmp_path}/no.log: no such file\n")
