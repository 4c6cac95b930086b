"""Frames become facts where nothing else tells the release, and notes where they contradict what does."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuwhy.investigate import diagnose_log, investigate
from gpuwhy.investigate.dating import described
from gpuwhy.knowledge.releases_by_frames import Match
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.event import Frame
from gpuwhy.model.evidence import Standing
from gpuwhy.model.fact import Fact
from gpuwhy.snapshot import Probe, Snapshot
from gpuwhy.snapshot.document import Subject
from gpuwhy.snapshot.file import write
from gpuwhy.snapshot.given import given
from gpuwhy.targets.file import PathTarget

TESTS = Path(__file__).parents[1]
TRITON = (TESTS / "knowledge/tracebacks/python3.12.log").read_bytes()
"""Real tracebacks: Triton 3.6.0, transformers 5.10.2."""
FRAMES = [Frame("a.py", number, "f", "g()") for number in range(9)]


def case(name: str) -> bytes:
    return str(yaml.safe_load((TESTS / f"cases/{name}.yaml").read_text())["report"]).encode()


def fact(diagnosis: Diagnosis, key: str) -> Fact | None:
    return next((each for each in diagnosis.facts if each.key == key), None)


def test_one_release_that_fits_is_a_fact_with_the_frame_that_shows_it() -> None:
    found = fact(diagnose_log(TRITON, "crash.log"), "packages.triton")
    assert found is not None
    assert found.value == "3.6.0"
    assert found.evidence.standing is Standing.DERIVED
    assert "frames match triton 3.6.0 only, of the 10 releases from 3.3.0 to 3.9.0" in found.evidence.statement
    assert found.evidence.place is not None
    assert found.evidence.place.line is not None
    quoted = TRITON.decode().splitlines()[found.evidence.place.line - 1]
    assert quoted.strip() == found.evidence.quote


def test_several_releases_that_fit_are_a_range_under_a_key_of_its_own() -> None:
    diagnosis = diagnose_log(TRITON, "crash.log")
    assert fact(diagnosis, "packages.transformers") is None
    found = fact(diagnosis, "release_range.transformers")
    assert found is not None
    assert found.value == "5.10.1 to 5.10.4"


def test_the_release_of_flashinfer_behind_a_misleading_message() -> None:
    diagnosis = diagnose_log(case("flashinfer-3674"), "crash.log")
    found = fact(diagnosis, "release_range.flashinfer-python")
    assert found is not None
    assert found.value == "0.6.11.post1 to 0.6.12"
    assert "5 frames match" in found.evidence.statement
    assert fact(diagnosis, "packages.flashinfer-python") is None


@pytest.mark.parametrize("stated", ["3.6.0", "3.6.0+git12ab"])
def test_a_version_that_is_given_stays_and_agrees(stated: str) -> None:
    diagnosis = diagnose_log(TRITON, "crash.log", given({"packages.triton": stated}).facts)
    found = fact(diagnosis, "packages.triton")
    assert found is not None
    assert found.evidence.standing is Standing.GIVEN
    assert diagnosis.notes == ()


def test_a_given_version_that_the_frames_contradict_is_kept_and_noted() -> None:
    diagnosis = diagnose_log(TRITON, "crash.log", given({"packages.triton": "3.5.0"}).facts)
    found = fact(diagnosis, "packages.triton")
    assert found is not None
    assert found.value == "3.5.0"
    assert [note for note in diagnosis.notes if "triton" in note] == [
        "10 frames of the traceback are not those of triton 3.5.0 as given; they match 3.6.0"
    ]


def test_a_stated_version_that_the_frames_contradict_is_noted() -> None:
    diagnosis = diagnose_log(b"vLLM API server version 0.10.0\nTriton version: 3.5.1\n" + TRITON, "crash.log")
    assert "are not those of triton 3.5.1 as stated; they match 3.6.0" in " ".join(diagnosis.notes)


@pytest.mark.parametrize("stated", ["3.2.0", "3.6", "3.6.0.dev20260101", "main", None])
def test_a_version_that_cannot_be_compared_is_not_contradicted(stated: str | None) -> None:
    diagnosis = diagnose_log(TRITON, "crash.log", given({"packages.triton": stated}).facts)
    assert diagnosis.notes == ()
    found = fact(diagnosis, "packages.triton")
    assert found is not None
    assert found.value == stated


def test_torch_is_known_under_its_own_key() -> None:
    log = (TESTS / "knowledge/tracebacks/python3.11.log").read_bytes()
    found = fact(diagnose_log(log, "crash.log"), "torch")
    assert found is not None
    assert found.value == "2.13.0"
    stated = diagnose_log(log, "crash.log", given({"torch": "2.13.0+cu130"}).facts)
    assert [each.value for each in stated.facts if each.key == "torch"] == ["2.13.0+cu130"]
    assert stated.notes == ()


def test_one_edited_frame_and_the_package_is_not_dated() -> None:
    edited = TRITON.replace(b"self._default = _create_driver()", b"self._default = my_driver()")
    assert edited != TRITON
    diagnosis = diagnose_log(edited, "crash.log", given({"packages.triton": "3.5.0"}).facts)
    assert not [note for note in diagnosis.notes if "triton" in note]
    assert fact(diagnose_log(edited, "crash.log"), "packages.triton") is None
    assert fact(diagnose_log(edited, "crash.log"), "release_range.triton") is None


def test_a_single_frame_dates_nothing() -> None:
    one = b"""\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/triton/runtime/driver.py", line 22, in default
    self._default = _create_driver()
RuntimeError: 0 active drivers ([]). There should only be one.
"""
    diagnosis = diagnose_log(one, "crash.log")
    assert not [each.key for each in diagnosis.facts if "triton" in each.key]


def test_the_record_tells_what_was_asked_and_what_came_of_it() -> None:
    steps = diagnose_log(TRITON, "crash.log").investigation.steps
    step = next(each for each in steps if each.question == "which releases are the frames of")
    assert set(step.found.split("; ")) == {"transformers: 5.10.1 to 5.10.4", "triton: 3.6.0"}
    assert "packages.triton" in step.changed


def match(releases: str, known: str, *, is_oldest: bool = False, is_newest: bool = False) -> Match:
    return Match("p", tuple(releases.split()), tuple(FRAMES), (), tuple(known.split()), is_oldest, is_newest)


@pytest.mark.parametrize(
    ("fitting", "edges", "words"),
    [
        ("1.1", {}, "1.1"),
        ("1.1 1.2rc1 1.2", {}, "1.1 to 1.2"),
        ("1.2rc1", {}, "1.2rc1"),
        ("1.1 1.3", {}, "1.1, 1.3"),
        ("1.3 1.4", {"is_newest": True}, "1.3 or newer"),
        ("1.0 1.1", {"is_oldest": True}, "1.1 or older"),
        ("1.0 1.1 1.2rc1 1.2 1.3 1.4", {"is_oldest": True, "is_newest": True}, ""),
        ("", {}, ""),
    ],
)
def test_releases_in_words(fitting: str, edges: dict[str, bool], words: str) -> None:
    assert described(match(fitting, "1.0 1.1 1.2rc1 1.2 1.3 1.4", **edges)) == words


def test_no_stated_version_of_a_labelled_case_is_contradicted() -> None:
    """The versions stated in these reports are those that ran: a note about one of them would be wrong."""
    checked = 0
    for path in sorted((TESTS / "cases").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        if "line " not in content["report"] or "File" not in content["report"]:
            continue
        packages = (content.get("environment") or {}).get("packages") or {}
        facts = {f"packages.{name}": str(version) for name, version in packages.items()}
        diagnosis = diagnose_log(content["report"].encode(), path.name, given(facts).facts)
        assert not [note for note in diagnosis.notes if "frames of the traceback" in note], path.name
        checked += 1
    assert checked >= 20


@pytest.mark.parametrize(
    ("installed", "notes"),
    [
        ("3.6.0", []),
        ("3.5.1", ["10 frames of the traceback are not those of triton 3.5.1 as installed; they match 3.6.0"]),
    ],
)
def test_a_host_whose_package_was_changed_after_the_failure(tmp_path: Path, installed: str, notes: list[str]) -> None:
    lines = TRITON.decode().splitlines()
    entries = [[1795946281.0 + at / 1000, 77, "python", 6, "stdout", line] for at, line in enumerate(lines)]
    values = {
        "journal": {"unit": "x.service", "fields": [], "entries": entries, "cut": "", "gap_after": None},
        "packages": [
            {"prefix": "/opt/venv", "versions": {"triton": installed}, "origins": {}, "shadowed": [], "torch": None}
        ],
    }
    probes = tuple(Probe(name=name, status="ok", value=value, sources=("/x",)) for name, value in values.items())
    snapshot = Snapshot(target=Subject("ssh", "gpu-host", "x.service"), started=1795946300.0, probes=probes)
    write(snapshot, tmp_path / "host.gpuwhy")
    diagnosis = investigate(PathTarget(tmp_path / "host.gpuwhy"))
    assert [note for note in diagnosis.notes if "frames" in note] == notes
    found = fact(diagnosis, "packages.triton")
    assert found is not None
    assert found.value == installed
