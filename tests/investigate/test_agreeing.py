"""What a replay does to a finding: a proof raises its certainty, a contradiction lowers it, a missing fact is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.investigate.hosts import PACKAGES, Host, traceback_of

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate.agreeing import with_proof
from gpuwhy.investigate.failing_condition import examined
from gpuwhy.investigate.record import Record
from gpuwhy.investigate.replaying import QUESTION, with_replay
from gpuwhy.logs import find_incidents, read_bytes
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.finding import Certainty, Finding, Link, SourceCheck
from gpuwhy.model.incident import Incident
from gpuwhy.model.source import SourceAnswer
from gpuwhy.reports.condition import brief_rows, condition_rows

NO_RULE = Judgement(findings=(), ruled_out=(), decides=None)
GATE = """
import logging
import os

logger = logging.getLogger(__name__)

def level():
    text = os.environ.get("ENGINE_LEVEL", "1")
    if text == "0":
        raise ValueError(f"level {text} is not supported")
    return int(text)

def check():
    found = None
    try:
        found = level()
    except ValueError as e:
        logger.warning(f"Cannot tell the level: {e}.")
    if not found:
        raise RuntimeError("this machine is too old")
    return found

def run(batch):
    return check() + batch
"""
FRAMES = (("engine/gate.py", "return check() + batch"), ("engine/gate.py", 'raise RuntimeError("this'))
ERROR = "RuntimeError: this machine is too old"
WARNED = "2026-11-29 10:04:20 WARNING Cannot tell the level: level 0 is not supported.\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site-packages"
    (site / "engine").mkdir(parents=True)
    (site / "engine" / "__init__.py").write_text("")
    (site / "engine" / "gate.py").write_text(GATE)
    return site


def facts(**values: Any) -> Facts:
    evidence = Evidence("seen", place=Place("command", "environ"))
    keys = {key.replace("__", "."): value for key, value in values.items()}
    return Facts({key: Fact(key, value, evidence) for key, value in keys.items()})


def answered(
    folder: Path, known: Facts, before: str = WARNED, record: Record | None = None
) -> tuple[SourceAnswer, Incident]:
    log = read_bytes((before + traceback_of([folder], FRAMES, ERROR)).encode(), "crash.log")
    failed, host = find_incidents([log]), Host(folder)
    answer = examined(failed, known, NO_RULE, host, Record(), 120.0)
    answer = with_replay(answer, failed, known, host, record or Record(), 120.0)
    assert answer is not None
    return answer, failed


def finding(failed: Incident, certainty: Certainty = Certainty.LIKELY, **changes: Any) -> Judgement:
    """A rule that has seen the warning, and infers what the code does with it."""
    path = f"{PACKAGES}/engine/gate.py"
    seen = Evidence("the log says so", "Cannot tell the level", Place("log", "crash.log", 1))
    inferred = Evidence("the usual mechanism", standing=Standing.INFERRED)
    installed = Evidence("the installed source", "if not found:", Place("file", path, 19))
    check = SourceCheck(path, "if not found:")
    chain = (Link("the level cannot be told", seen), Link("so none is found", inferred, False, check, installed))
    found = Finding(
        cause="x",
        family="x",
        component=None,
        certainty=certainty,
        title="x",
        chain=chain,
        evidence=(),
        explains=(failed.primary or 0,),
    )
    return msgspec.structs.replace(NO_RULE, findings=(msgspec.structs.replace(found, **changes),))


def test_a_proof_takes_the_place_of_what_was_inferred(folder: Path) -> None:
    answer, failed = answered(folder, facts(env__ENGINE_LEVEL="0"))
    assert answer.replay is not None
    assert answer.replay.entry == "engine.gate:check()"
    assert (answer.replay.agreement, answer.replay.assumed, answer.replay.is_proof) == ("same", (), True)
    (first,) = with_proof(finding(failed), answer, failed).findings
    assert first.certainty is Certainty.PROVEN
    shown = first.chain[1].evidence
    assert shown is not None
    assert shown.standing is Standing.DERIVED
    assert "replayed from the installed source with the facts of this host" in shown.statement
    assert "$ENGINE_LEVEL = '0'" in shown.quote
    assert shown.place == Place("file", "engine/gate.py", 20)


@pytest.mark.parametrize(
    "changes",
    [{"against": (Evidence("something else", place=Place("log")),)}, {"chain": (Link("inferred, of no file"),)}],
    ids=["contradicted", "a link of another kind"],
)
def test_a_proof_is_none_of_what_it_does_not_speak_of(folder: Path, changes: Mapping[str, Any]) -> None:
    answer, failed = answered(folder, facts(env__ENGINE_LEVEL="0"))
    (first,) = with_proof(finding(failed, **changes), answer, failed).findings
    assert first.certainty is Certainty.LIKELY


SHARED = GATE.replace('get("ENGINE_LEVEL", "1")', 'get(NAMES[0], "1")').replace(
    "import os\n", "import os\nNAMES = ['ENGINE_LEVEL']\n"
)


def test_an_assumption_is_no_proof(folder: Path) -> None:
    (folder / "engine" / "gate.py").write_text(SHARED)
    (folder / "engine" / "other.py").write_text(
        "from engine import gate\n\n\ndef rename(name):\n    gate.NAMES[0] = name\n"
    )
    answer, failed = answered(folder, facts(env__ENGINE_LEVEL="0"))
    assert answer.replay is not None
    assert answer.replay.agreement == "same"
    assert "holds what the replayed code put there" in answer.replay.assumed[0]
    (first,) = with_proof(finding(failed), answer, failed).findings
    assert first.certainty is Certainty.LIKELY


def test_a_shared_value_that_nothing_else_changes_is_no_assumption(folder: Path) -> None:
    (folder / "engine" / "gate.py").write_text(SHARED)
    (folder / "engine" / "other.py").write_text(
        "from engine import gate\n\n\ndef shown():\n    return str(gate.NAMES)\n"
    )
    (folder / "engine" / "__main__.py").write_text("from engine import gate\n\ngate.NAMES.clear()\n")
    answer, failed = answered(folder, facts(env__ENGINE_LEVEL="0"))
    assert answer.replay is not None
    assert answer.replay.assumed == ()
    assert [(each.what, each.value) for each in answer.replay.facts if each.key == "source"] == [("what else changes engine.gate.NAMES", "nothing in 4 files")]  # fmt: skip
    (first,) = with_proof(finding(failed), answer, failed).findings
    assert first.certainty is Certainty.PROVEN


def test_a_contradiction_speaks_against_and_lowers_the_certainty(folder: Path) -> None:
    answer, failed = answered(folder, facts(env__ENGINE_LEVEL="3"), before="")
    (first,) = with_proof(finding(failed, Certainty.PROVEN), answer, failed).findings
    assert first.certainty is Certainty.LIKELY
    assert "with $ENGINE_LEVEL = '3': it is not reached" in first.against[0].statement


def test_a_finding_of_another_event_is_left_alone(folder: Path) -> None:
    answer, failed = answered(folder, facts(env__ENGINE_LEVEL="3"), before="")
    judgement = finding(failed, Certainty.PROVEN, explains=(99,))
    assert with_proof(judgement, answer, failed) == judgement


def test_a_fact_that_is_wanted_is_missing_with_its_command(folder: Path) -> None:
    record = Record()
    answer, failed = answered(folder, facts(), record=record)
    (first,) = with_proof(finding(failed), answer, failed).findings
    (missing,) = first.missing
    assert missing.key == "env.ENGINE_LEVEL"
    assert "ENGINE_LEVEL=" in missing.command
    assert with_proof(NO_RULE, answer, failed).decides == missing
    (step,) = [each for each in record.closed().steps if each.question == QUESTION]
    assert (step.outcome, step.where) == ("absent", "engine.gate:check()")


def test_source_that_was_changed_since_contradicts_nothing(folder: Path) -> None:
    log = read_bytes((WARNED + traceback_of([folder], FRAMES, ERROR)).encode(), "crash.log")
    failed, host = find_incidents([log]), Host(folder)
    (folder / "engine" / "gate.py").write_text("# a line more\n" + GATE)
    known = facts(env__ENGINE_LEVEL="3")
    answer = examined(failed, known, NO_RULE, host, Record(), 120.0)
    answer = with_replay(answer, failed, known, host, Record(), 120.0)
    assert answer is not None
    if answer.replay is not None:
        assert answer.replay.agreement == "open"
    judgement = finding(failed, Certainty.PROVEN)
    assert with_proof(judgement, answer, failed).findings[0].certainty is Certainty.PROVEN


def test_the_report_says_why_it_is_reached(folder: Path) -> None:
    answer, _ = answered(folder, facts(env__ENGINE_LEVEL="0"))
    text = "\n".join(row.text for row in condition_rows(answer))
    assert "Replayed with the facts of this host (engine.gate:check()): with $ENGINE_LEVEL = '0': it is reached" in text
    assert "engine/gate.py:10 raises ValueError: level 0 is not supported" in text
    assert "(in the log at crash.log:1)" in text
    assert "it is reached" in "\n".join(row.text for row in brief_rows(answer))


def test_a_failure_of_its_own_is_recorded_and_costs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("nothing")

    monkeypatch.setattr("gpuwhy.investigate.replaying.entry_of", broken)
    record = Record()
    answer, _ = answered(folder, facts(env__ENGINE_LEVEL="0"), record=record)
    assert answer.replay is None
    assert [(each.outcome, each.found) for each in record.closed().steps] == [("failed", "ZeroDivisionError: nothing")]
