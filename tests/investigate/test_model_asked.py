"""A failure that turns on the model: its files are read on the target, and the remedy gets its value from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.causes.memory.test_computed_remedies import REFUSED
from tests.fit.models import KIMI_BYTES, write_kimi
from tests.investigate.test_fitting import HOST, Disk

from gpuwhy.diagnosis import Judgement, completed, sign_literals
from gpuwhy.investigate.binaries_asked import judged_again
from gpuwhy.investigate.log import judged
from gpuwhy.investigate.model_asked import model_facts
from gpuwhy.investigate.record import Record
from gpuwhy.logs import facts_in, read_bytes
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.incident import Incident
from gpuwhy.snapshot.given import given


@pytest.fixture
def kimi(tmp_path: Path) -> str:
    return str(write_kimi(tmp_path / "Kimi-K2.6"))


def failed(log: str, model: str) -> tuple[Incident, Judgement, Facts]:
    command = f"python3 -m sglang.launch_server --model-path {model} --tp 8"
    lines = read_bytes(log.encode(), "crash.log", sign_literals())
    known = facts_in(lines).merged(given({**HOST, "command": command}).facts)
    incident, judgement, dating = judged([lines], known, Record(), "")
    return incident, judgement, dating.facts


def fraction(judgement: Judgement) -> str:
    finding = next(each for each in judgement.findings if each.cause == "gpu-oom-kv-cache")
    return next(each.value for each in finding.remedies if each.name == "--mem-fraction-static")


def test_the_remedy_gets_its_value_from_the_files_of_the_model(kimi: str) -> None:
    incident, judgement, facts = failed(REFUSED, kimi)
    assert fraction(judgement) == "0.80"
    record = Record()
    found = model_facts(judgement, facts, Disk(), record, is_kept=False)
    assert found.value("model_bytes") == KIMI_BYTES
    again = judged_again(incident, judgement, completed(facts.merged(found)), found, record, "of the model")
    assert fraction(again) == "0.86"
    shown = found.get("model.num_hidden_layers") or found.get("model.text_config")
    assert isinstance(shown, Fact)
    assert shown.evidence.place is not None
    assert shown.evidence.place.path == f"{kimi}/config.json"
    assert [step.outcome for step in record.closed().steps if step.question == "what model is served"] == ["ok"]


def test_what_was_given_by_hand_is_not_replaced(kimi: str) -> None:
    _, judgement, facts = failed(REFUSED, kimi)
    facts = facts.merged(given({"model.vocab_size": 5, "model_bytes": 7}).facts)
    found = model_facts(judgement, facts, Disk(), Record(), is_kept=False)
    assert "model_bytes" not in found
    assert "model.vocab_size" not in found


def test_nothing_is_read_for_a_failure_of_another_kind(kimi: str) -> None:
    _, judgement, facts = failed("ImportError: libcudart.so.12: cannot open shared object file\n", kimi)
    disk = Disk()
    assert not len(model_facts(judgement, facts, disk, Record(), is_kept=False))
    assert disk.asked == []
    assert not len(model_facts(judgement, facts, disk, Record(), is_kept=True))
    assert any(each.path == f"{kimi}/config.json" for each in disk.asked), "kept for a check of the snapshot"


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    _, judgement, facts = failed(REFUSED, str(tmp_path / "none"))
    record = Record()
    assert not len(model_facts(judgement, facts, Disk(), record, is_kept=False))
    assert [step.outcome for step in record.closed().steps if step.question == "what model is served"] == ["absent"]
