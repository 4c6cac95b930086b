"""``gpuwhy inspect``: a line for each file, JSON that its schema describes, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.binaries.test_wheel import make_wheel
from tests.binaries.truth import HERE
from tests.binaries.writing import Part, container, entry, library
from tests.cli.running import gpuwhy

SCHEMA = Path(__file__).parents[2] / "docs" / "inspect.schema.json"
LIBRARY = str(HERE / "libk.so")


def test_a_library_is_one_line() -> None:
    done = gpuwhy("inspect", LIBRARY)
    assert (done.status, done.err) == (0, "")
    (line,) = done.out.splitlines()
    assert line.split() == [LIBRARY, "2", "libcudart.so.13", "sm_80", "sm_90a", "sm_120f", "compute_80"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--gpu", "RTX PRO 6000 Blackwell", "--driver", "580.65"), 0, "runs (2 native)"),
        (("--for", "10.0"), 0, "runs, compiled from PTX (1 PTX, 1 none)"),
        (("--for", "10.0", "--driver", "580.65"), 1, "CANNOT RUN: PTX too new for the driver (1 blocked, 1 none)"),
        (("--gpu", "NVIDIA GeForce GTX 1080 Ti"), 1, "CANNOT RUN: no kernel image (2 none)"),
        (("--gpu", "H100", "--driver", "570.86"), 1, "CANNOT RUN: driver too old (2 native)"),
    ],
)
def test_the_verdict_and_the_exit_status(arguments: tuple[str, ...], status: int, words: str) -> None:
    done = gpuwhy("inspect", LIBRARY, *arguments)
    assert done.status == status, done.err
    assert words in done.out


def test_json_is_what_its_schema_describes() -> None:
    paths = [str(path) for path in sorted(HERE.iterdir()) if path.suffix not in (".md", ".json")]
    done = gpuwhy("inspect", *paths, "--for", "12.0", "--driver", "580.65", "--format", "json", "--kernel", "k2")
    document = json.loads(done.out)
    published = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.Draft202012Validator(published).validate(document)
    assert len(document["files"]) == len(paths)
    file = next(each for each in document["files"] if each["path"] == LIBRARY)
    assert file["architectures"] == ["sm_80", "sm_90a", "sm_120f", "compute_80"]
    assert file["containers"] == 2
    assert file["complete"] is True
    assert file["needed"][0] == "libcudart.so.13"
    assert file["verdict"]["outcome"] == "native"
    assert file["kernels"][0]["name"] == "_Z2k2Pf"


def test_details_on_request() -> None:
    out = gpuwhy("inspect", LIBRARY, "-v", "--for", "12.0").out
    for words in (
        "made by CUDA 13.5",
        "needs libcudart.so.13",
        "GLIBC",
        ".nv_fatbin from 0x",
        "PTX versions: compute_80 9.5",
        "2 containers registered",
    ):
        assert words in out


def test_a_wheel_by_what_it_says_of_itself(tmp_path: Path) -> None:
    path = make_wheel(tmp_path / "pack.whl", {"pack/libk.so": (HERE / "libk.so").read_bytes()})
    done = gpuwhy("inspect", str(path), "--requirements", "-v")
    assert done.status == 0
    assert "pack 1.2, 1 binaries" in done.out
    assert "requires torch==2.8.0" in done.out
    assert "sm_80" not in done.out
    assert "sm_80" in gpuwhy("inspect", str(path)).out


def test_an_environment_by_its_folder(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.12" / "site-packages" / "pack"
    packages.mkdir(parents=True)
    (packages / "libk.so").write_bytes((HERE / "libk.so").read_bytes())
    (packages / "plain.so").write_bytes(library(("libc.so.6",)))
    done = gpuwhy("inspect", "--venv", str(tmp_path))
    assert done.status == 0
    assert "libk.so" in done.out
    assert "1 more file without device code" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a file"),
        (("/no/such/file",), "no such file"),
        ((LIBRARY, "--gpu", "RTX 99999"), "unknown"),
        ((LIBRARY, "--for", "twelve"), "unknown"),
        ((LIBRARY, "--driver", "570.86"), "name the GPU too"),
        ((LIBRARY, "--for", "12.0", "--driver", "new"), "not a driver version"),
        (("--venv", "/usr/share"), "no Python environment"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: tuple[str, ...], message: str) -> None:
    done = gpuwhy("inspect", *arguments)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_damaged_file_says_incomplete_and_a_hostile_name_stays_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad\x1b[31m\nname.so"
    path.write_bytes(library(extra=(Part(".nv_fatbin", container(entry(arch=80))),))[:700])
    done = gpuwhy("inspect", str(path), "--for", "12.0")
    assert "incomplete" in done.out
    assert "unknown" in done.out
    assert "\x1b" not in done.out
    assert done.status == 0
    assert json.loads(gpuwhy("inspect", str(path), "--format", "json").out)["files"][0]["complete"] is False


def test_a_file_that_is_no_binary_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    done = gpuwhy("inspect", str(path))
    assert "unknown" in done.out
    assert "text, no binary" in done.out
