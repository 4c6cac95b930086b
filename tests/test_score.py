"""The scorer on small invented cases, and the bars it must show on the labelled ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts import score
from scripts.score import MODES, Score, is_compatible, read_cases, score_case

GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
WARNING = "Failed to get device capability: SM 12.x requires CUDA >= 12.9."
HOST = {"cc": "12.0", "cuda_toolkit": "12.8", "packages.flashinfer-python": "0.6.12"}


def case(report: str, **truth: Any) -> dict[str, Any]:
    """A case of the gate; ``truth`` replaces single answers."""
    answers = {
        "cause": "toolkit-too-old-for-arch",
        "accept": [],
        "component": "flashinfer",
        "decisive_line": report.splitlines()[0],
        "secondary_lines": [],
        "needs_host": False,
        "remedies": [{"kind": "env", "name": "FLASHINFER_CUDA_ARCH_LIST", "value": "12.0a"}],
        **truth,
    }
    return {"id": "made-up-1", "quality": "verbatim", "report": report, "truth": answers}


def test_a_right_answer() -> None:
    found = score_case(case(f"{WARNING}\n{GATE}\n"), "report")
    assert (found.top1, found.accepted, found.top3, found.component) == (True, True, True, True)
    assert (found.false_certainty, found.secondary, score.failure(found)) == (False, False, "")
    assert found.family == "Toolchain"


def test_an_accepted_id_is_not_top_1() -> None:
    found = score_case(
        case(f"{WARNING}\n{GATE}\n", cause="no-such-cause", accept=["toolkit-too-old-for-arch"]), "report"
    )
    assert (found.top1, found.accepted, found.top3, found.component) == (False, True, True, None)
    assert not found.in_catalogue


def test_a_wrong_answer_is_told() -> None:
    found = score_case(
        case(f"{WARNING}\n{GATE}\n", cause="no-such-cause", remedies=[{"kind": "hardware", "name": "gpu"}]), "report"
    )
    assert (found.top1, found.accepted, found.top3, found.remedy3) == (False, False, False, False)
    assert score.failure(found).startswith(
        "made-up-1 (report): cause, remedy; is no-such-cause, got toolkit-too-old-for-arch"
    )


def test_a_case_that_needs_its_host_is_right_when_the_missing_fact_is_named() -> None:
    needing = case(GATE, needs_host=True)
    needing["given_host"] = HOST
    found = score_case(needing, "report")
    assert found.top1
    needing["given_host"] = {"firewall": "closed"}
    found = score_case(needing, "report")
    assert found.top1 is (found.got[0] == "toolkit-too-old-for-arch")


def test_facts_reach_the_diagnosis_and_synthetic_ones_do_not() -> None:
    needing = case(GATE, needs_host=True)
    needing["given_host"] = HOST
    assert score_case(needing, "facts").certainty in ("likely", "proven")
    needing["given_host"] = {**HOST, "synthetic": list(HOST)}
    assert score_case(needing, "facts").certainty == "possible"


def test_proven_and_wrong_is_false_certainty() -> None:
    text = "PermissionError: [Errno 13] Permission denied: '/.triton'\n"
    right = score_case(case(text, cause="cache-dir-unusable"), "report")
    assert (right.certainty, right.false_certainty) == ("proven", False)
    assert score_case(case(text, cause="disk-full"), "report").false_certainty
    assert not score_case(case(text, cause="disk-full", accept=["cache-dir-unusable"]), "report").false_certainty
    hasty = case(text, cause="cache-dir-unusable", needs_host=True)
    assert score_case(hasty, "report").false_certainty
    assert not score_case(hasty, "facts").false_certainty


def test_evidence_and_secondary_lines() -> None:
    text = "PermissionError: [Errno 13] Permission denied: '/.triton'\n"
    assert score_case(case(text, cause="cache-dir-unusable"), "report").evidence is True
    other = case(text, cause="cache-dir-unusable", decisive_line="something else", secondary_lines=[text.strip()])
    found = score_case(other, "report")
    assert (found.evidence, found.secondary) == (False, True)
    assert score_case(case(text, decisive_line=None), "report").evidence is None


@pytest.mark.parametrize(
    ("proposed", "listed", "compatible"),
    [
        (">=12.9", ">=12.8", True),
        ("<=0.6.6", ">=0.7.1", False),
        (">=12.8,<13", ">=13", False),
        (">2.10,<2.12", "==2.11.*", True),
        ("lower", "higher", False),
        ("lower", "0.8", True),
        ("12.0a", "12.0a", True),
        ("/usr/local/cuda-12.9", "toolkit >= 12.9", True),
        ("", "newer", True),
    ],
)
def test_values_that_contradict(proposed: str, listed: str, compatible: bool) -> None:
    assert is_compatible(proposed, listed) is compatible


def test_text_that_says_nothing_is_a_miss_and_no_error() -> None:
    found = score_case(case("Application startup complete.\n"), "report")
    assert (found.got, found.top1, found.false_certainty, found.evidence) == ((), False, False, False)


def folder_of(tmp_path: Path, *cases: dict[str, Any]) -> Path:
    for number, each in enumerate(cases):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(each))
    return tmp_path


def test_the_table_and_the_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(tmp_path, case(f"{WARNING}\n{GATE}\n"), case(f"{WARNING}\n{GATE}\n", cause="no-such-cause"))
    assert score.main([str(folder), "--failures"]) == 0
    shown = capsys.readouterr().out
    assert "remedy@3" in shown
    assert "family: Toolchain" in shown
    assert "quality: verbatim" in shown
    assert "is no-such-cause, got toolkit-too-old-for-arch" in shown


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score.main([str(folder_of(tmp_path, case(f"{WARNING}\n{GATE}\n"))), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["catalogue"]["all"]["report"]["top-1"] == {"hits": 1, "of": 1}
    assert [each["mode"] for each in document["scores"]] == ["report", "facts"]


def test_folders_that_cannot_be_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score.main([str(tmp_path)]) == 2
    (tmp_path / "a.yaml").write_text("[1, 2]")
    assert score.main([str(tmp_path)]) == 2
    (tmp_path / "a.yaml").write_text("a: [")
    assert score.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("score: ") == 3


@pytest.fixture(scope="module")
def labelled() -> list[Score]:
    return [score_case(each, mode) for each in read_cases(score.CASES) for mode in MODES]


@pytest.mark.parametrize(("mode", "bar"), [("report", 0.85), ("facts", 0.90)])
def test_the_bars_hold(labelled: list[Score], mode: str, bar: float) -> None:
    ours = [each for each in labelled if each.in_catalogue and each.mode == mode]
    wrong = [score.failure(each) for each in ours if not each.accepted]
    assert len(ours) >= 50
    assert len(wrong) <= (1 - bar) * len(ours), wrong


def test_nothing_wrong_is_called_proven(labelled: list[Score]) -> None:
    assert [score.failure(each) for each in labelled if each.false_certainty] == []
