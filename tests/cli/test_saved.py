"""Answers that were saved as JSON, in other formats; and the bug form of a project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import LOGS, gpuwhy
from tests.reports.html.fleet_sample import fleet

from gpuwhy.reports import Detail, render

SEED = str(LOGS / "sglang.log")
SNAPSHOT = str(LOGS.parent / "snapshots" / "schema-0.1.json")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "seed.json"
    assert gpuwhy("diagnose", SEED, "--format", "json", "-o", str(path)).status == 1
    return path


@pytest.mark.parametrize(
    "options", [(), ("-v",), ("--show-work",), ("--format", "sarif"), ("--format", "markdown"), ("--format", "json")]
)
def test_a_saved_diagnosis_is_shown_as_it_was(saved: Path, options: tuple[str, ...]) -> None:
    again = gpuwhy("show", str(saved), *options)
    assert again.status == 0
    if options[:1] == ("--show-work",):  # durations are measured anew
        assert "How it was found out" in again.out
        return
    first = gpuwhy("diagnose", SEED, *options).out
    if options == ("--format", "json"):
        for document in (one := json.loads(first)), (two := json.loads(again.out)):
            document["investigation"] = None
            for log in document["incident"]["logs"]:
                log["lines"] = 0
        assert one == two
        return
    # what took how long is said at the end of an issue
    assert again.out.partition("How it was found out")[0] == first.partition("How it was found out")[0]


def test_a_saved_check_inspection_and_difference_are_shown(tmp_path: Path) -> None:
    for arguments in (
        ("check", "--gpu", "B200", "--driver", "535.104.05"),
        ("inspect", str(LOGS.parent / "binaries")),
        ("diff", SNAPSHOT, SNAPSHOT),
    ):
        document = tmp_path / f"{arguments[0]}.json"
        document.write_text(gpuwhy(*arguments, "--format", "json").out)
        assert gpuwhy("show", str(document)).out == gpuwhy(*arguments).out
        line = gpuwhy("show", str(document), "--format", "oneline").out
        assert line.count("\n") == 1
    assert "<testsuite" in gpuwhy("show", str(tmp_path / "check.json"), "--format", "junit").out


def test_the_saved_report_of_a_fleet_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(render(fleet(), "json"))
    assert gpuwhy("show", str(path), "--format", "json").out == path.read_text()
    assert gpuwhy("show", str(path)).out == render(fleet(), "text")
    assert "<testsuite" in gpuwhy("show", str(path), "--format", "junit").out
    assert gpuwhy("show", str(path), "--format", "markdown", "--private").out == render(
        fleet(), "markdown", Detail(is_private=True)
    )


def test_a_format_that_does_not_fit_says_which_do(saved: Path) -> None:
    done = gpuwhy("show", str(saved), "--format", "junit")
    assert done.status == 2
    assert "choose of text" in done.err
    assert gpuwhy("show", str(saved), "--format", "xml").status == 2


def test_a_snapshot_in_another_format_is_its_diagnosis(tmp_path: Path) -> None:
    assert gpuwhy("show", SNAPSHOT, "--format", "oneline").out.endswith("ok: no failure in what was examined\n")
    page = tmp_path / "page.md"
    assert gpuwhy("show", SNAPSHOT, "--redact", "all", "--format", "markdown", "-o", str(page)).status == 0
    assert page.read_text().startswith("## ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "is no diagnosis, check, inspection, difference, estimate, trace, change, report of a fleet or snapshot"),
        ('{"findings": [], "incident": {}, "schema_version": "7.0"}', "schema version '7.0'"),
        ('{"findings": [{}], "incident": {}, "schema_version": "0.1", "gpuwhy_version": "0.0.9"}', "written by gpuwhy 0.0.9, cannot be read"),
        ('{"findings": ', "is no JSON document"),
        ("[1]", "is no snapshot"),
    ],
)  # fmt: skip
def test_another_document_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    done = gpuwhy("show", str(path))
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_the_form_of_a_project_is_filled_from_a_log_and_from_what_was_saved(saved: Path, tmp_path: Path) -> None:
    done = gpuwhy("report", SEED, "--for", "sglang")
    assert done.status == 0
    assert done.out.startswith("<!-- title --> [Bug] FlashInfer finds a CUDA version")
    assert "python3 -m sglang.check_env" in done.err
    assert "tests/data/logs" not in done.out
    again = gpuwhy("report", str(saved), "--for", "sglang", "-o", str(tmp_path / "issue.md"))
    assert again.out == ""
    assert (tmp_path / "issue.md").read_text().splitlines()[:20] == done.out.splitlines()[:20]
    assert gpuwhy("report", SEED, "--for", "nobody").status == 2
