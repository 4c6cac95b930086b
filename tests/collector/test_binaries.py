"""Binaries examined in place, by the program as it is sent, on every Python at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.binaries import linking
from tests.collector.conftest import collect, interpreters
from tests.investigate.host_of_binaries import coded

from gpuwhy.binaries.code_sets import code_sets
from gpuwhy.binaries.examining import examine
from gpuwhy.binaries.reading import FileSource
from gpuwhy.collector import serving
from gpuwhy.investigate.binaries_sent import sent_binaries
from gpuwhy.investigate.loading import loading_of

DATA = Path(__file__).parents[1] / "data/binaries"


def asked(*asks: tuple[str, Path | str], python: str = "", environment: dict[str, str] | None = None) -> list[Any]:
    """Replies of the program, started for this alone."""
    lines = b"".join(
        json.dumps({"id": number, "ask": ask, "path": str(path)}).encode() + b"\n"
        for number, (ask, path) in enumerate(asks)
    )
    more = {"python": python} if python else {}
    run = collect({"probes": ["system"]}, lines, environment=environment, **more)
    assert run.errors == ""
    return [line for line in run.lines if "id" in line]


@pytest.mark.parametrize("python", interpreters())
def test_every_python_examines_files_and_folders(python: str, tmp_path: Path) -> None:
    packages = linking.environment(tmp_path)
    lib = linking.torch(packages)
    extension = linking.library(packages / "k/k.so", "void f(void) {}", (lib / "libc10.so",))
    (packages / "k/code.so").write_bytes(coded("sm_80", "sm_90a", "compute_90"))
    folder, file, loading = asked(
        ("inspect", packages / "k"), ("inspect", DATA / "libk.so"), ("loading", extension), python=python
    )
    found = {each.name: each for each in sent_binaries(folder["value"])}
    assert found["code.so"].architectures == ("sm_80", "sm_90a", "compute_90")
    assert found["k.so"].needed[0] == "libc10.so"
    (library,) = sent_binaries(file["value"])
    with FileSource(str(DATA / "libk.so")) as source:
        assert library.sets == code_sets(examine(source))
    assert loading_of(loading["value"]).loads is True


def test_what_is_asked_of_files_that_are_no_binaries(tmp_path: Path) -> None:
    (tmp_path / "pointer.so").write_text("version https://git-lfs.github.com/spec/v1\n")
    (tmp_path / "empty.so").touch()
    os.mkfifo(tmp_path / "pipe.so")
    pointer, empty, gone, pipe, private = asked(
        ("inspect", tmp_path / "pointer.so"),
        ("loading", tmp_path / "empty.so"),
        ("inspect", tmp_path / "gone.so"),
        ("inspect", tmp_path / "pipe.so"),
        ("inspect", "/root/.ssh/id.so"),
    )
    (file,) = sent_binaries(pointer["value"])
    assert not file.binary.is_complete
    assert loading_of(empty["value"]).loads is False
    assert gone["status"] == "absent"
    assert pipe["status"] == "failed"
    assert private["status"] == "denied"


def test_a_library_of_hundreds_of_megabytes_is_read_by_its_headers(tmp_path: Path) -> None:
    path = tmp_path / "libhuge.so"
    path.write_bytes(coded("sm_80", "sm_90", containers=400))
    with path.open("ab") as file:
        file.truncate(800 << 20)
    (reply,) = asked(("inspect", path))
    (library,) = sent_binaries(reply["value"])
    assert library.containers == 400
    assert len(json.dumps(reply)) < 4000


def test_the_service_environment_decides_what_is_found(tmp_path: Path) -> None:
    there = linking.library(tmp_path / "opt/libwanted.so.1")
    path = linking.library(tmp_path / "libk.so", "", (there,))
    request = {"ask": "loading", "path": str(path)}
    values = {"environment": {"variables": {"LD_LIBRARY_PATH": str(there.parent)}}, "python_environments": None}
    assert loading_of(serving.answer(request, values)["value"]).loads is True
    without = loading_of(serving.answer(request, {})["value"])
    assert [row.name for row in without.missing] == ["libwanted.so.1"]


def test_an_answer_about_a_snapshot_that_was_edited_is_left_out() -> None:
    assert list(sent_binaries({"files": [{"path": 3}, "x", None]})) == []
    assert list(sent_binaries(None)) == []
    assert list(sent_binaries({"files": {}})) == []
