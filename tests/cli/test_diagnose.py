"""``gpuwhy diagnose``: what it prints where, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import LOGS, gpuwhy

SEED = str(LOGS / "sglang.log")


def test_a_failure_is_exit_status_1_and_the_answer_comes_first() -> None:
    done = gpuwhy("diagnose", SEED)
    assert (done.status, done.err) == (1, "")
    assert "toolkit-too-old-for-arch, in flashinfer" in " ".join(done.out.splitlines()[:4])


def test_a_failure_that_nobody_knows_is_exit_status_1_too(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in main\n    f()\nMoonPhaseError: wane\n'
    )
    done = gpuwhy("diagnose", str(log))
    assert done.status == 1
    assert "MoonPhaseError: wane" in done.out.splitlines()[0]
    assert "not in the catalogue" in done.out


def test_no_failure_is_exit_status_0(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("INFO: Application startup complete.\n")
    done = gpuwhy("diagnose", str(log))
    assert (done.status, done.err) == (0, "")
    assert "no failure" in done.out


@pytest.mark.parametrize("form", ["text", "json"])
def test_standard_input(form: str) -> None:
    done = gpuwhy("diagnose", "-", "--format", form, stdin=Path(SEED).read_bytes())
    assert done.status == 1
    assert "toolkit-too-old-for-arch" in done.out
    assert "standard input" in done.out


def test_json_is_alone_on_standard_output(tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text('cc: "12.0"\ncuda_tolkit: "12.8"\n')
    done = gpuwhy("diagnose", SEED, "--facts", str(facts), "--format", "json")
    assert json.loads(done.out)["findings"][0]["cause"] == "toolkit-too-old-for-arch"
    assert "did you mean cuda_toolkit" in done.err


def test_facts_by_hand_change_the_answer(tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text('{"cc": "12.0", "cuda_toolkit": "12.8", "other_toolkits./usr/local/cuda-12.9": "12.9"}')
    done = gpuwhy("diagnose", SEED, "--facts", str(facts), "--format", "json")
    assert json.loads(done.out)["findings"][0]["cause"] == "toolkit-path-wrong"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: [", "neither YAML nor JSON"),
        (b"- 1\n- 2\n", "not a mapping"),
        (b"", "is empty"),
        (b"\xff\xfe\x00", "not a text in UTF-8"),
        (None, "No such file"),
    ],
)
def test_facts_that_cannot_be_used(tmp_path: Path, content: bytes | None, said: str) -> None:
    facts = tmp_path / "facts.yaml"
    if content is not None:
        facts.write_bytes(content)
    done = gpuwhy("diagnose", SEED, "--facts", str(facts))
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "facts.yaml" in done.err


@pytest.mark.parametrize(
    ("content", "name"),
    [(None, "missing.log"), (b"\x7fELF\x02\x01\x01" + bytes(64), "binary.log"), (b"\x1f\x8b\x08broken", "cut.log.gz")],
)
def test_input_that_cannot_be_read(tmp_path: Path, content: bytes | None, name: str) -> None:
    log = tmp_path / name
    if content is not None:
        log.write_bytes(content)
    done = gpuwhy("diagnose", str(log))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("gpuwhy: ")
    assert name in done.err


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    done = gpuwhy("diagnose", str(tmp_path))
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path) in done.err


def test_a_file_of_control_characters_names_itself_harmlessly(tmp_path: Path) -> None:
    done = gpuwhy("diagnose", str(tmp_path / "\x1b]0;owned\x07.log"))
    assert done.status == 2
    assert "\x1b" not in done.err
    assert "\\x1b" in done.err


def test_a_host_that_cannot_be_reached_is_exit_status_3(tmp_path: Path) -> None:
    fake = tmp_path / "ssh"
    fake.write_text("#!/bin/sh\necho 'ssh: connect to host gpu-7 port 22: Connection refused' >&2\nexit 255\n")
    fake.chmod(0o755)
    done = gpuwhy("diagnose", "root@gpu-7", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (done.status, done.out) == (3, "")
    assert "Connection refused" in done.err


def test_a_report_into_a_file(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = gpuwhy("diagnose", SEED, "--format", "json", "-o", str(report))
    assert (done.status, done.out) == (1, "")
    assert json.loads(report.read_text())["findings"]
    done = gpuwhy("diagnose", SEED, "-o", str(tmp_path / "no" / "where.txt"))
    assert done.status == 2
    assert "where.txt" in done.err


def test_verbose_and_show_work_say_more() -> None:
    short, verbose, work = (gpuwhy("diagnose", SEED, *options).out for options in ((), ("-v",), ("--show-work",)))
    assert "Facts used" in verbose
    assert "Facts used" not in short
    assert "How it was found out" in work
    assert "How it was found out" not in verbose


def test_arguments_that_do_not_exist() -> None:
    assert gpuwhy("diagnose").status == 2
    assert gpuwhy("diagnose", SEED, "--format", "xml").status == 2
    assert gpuwhy("diagnoze", SEED).status == 2
