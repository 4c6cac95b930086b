"""What tests of causes share: judge a report, with facts given by hand, by the whole catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gpuwhy.diagnosis import Judgement
from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.finding import Finding


def given(facts: Mapping[str, Any]) -> Facts:
    """Facts as ``--facts`` gives them."""
    return Facts(
        {
            key: Fact(key, value, Evidence(f"{key} is {value}", str(value), Place("facts", key), Standing.GIVEN))
            for key, value in facts.items()
        }
    )


@pytest.fixture(scope="session")
def judge_report() -> Callable[..., Judgement]:
    """``judge_report(text, facts={})``: the judgement of a pasted report."""

    def judge(text: str, facts: Mapping[str, Any] | None = None) -> Judgement:
        diagnosis = diagnose_log(text.encode(), "report", given(facts or {}))
        return Judgement(diagnosis.findings, diagnosis.ruled_out, diagnosis.decides)

    return judge


@pytest.fixture(scope="session")
def diagnose_report() -> Callable[..., Diagnosis]:
    """``diagnose_report(text, facts={})``: the whole diagnosis of a pasted report."""

    def diagnose(text: str, facts: Mapping[str, Any] | None = None) -> Diagnosis:
        return diagnose_log(text.encode(), "report", given(facts or {}))

    return diagnose


@pytest.fixture(scope="session")
def finding() -> Callable[[Judgement, str], Finding]:
    """``finding(judgement, id)``: the finding of that cause; fails the test when it is not there."""

    def find(judgement: Judgement, identity: str) -> Finding:
        for found in judgement.findings:
            if found.cause == identity:
                return found
        said = [f"{f.cause} ({f.certainty.value})" for f in judgement.findings]
        ruled_out = [f"{x.cause}: {x.why}" for x in judgement.ruled_out]
        pytest.fail(f"{identity} not found; found {said}, ruled out {ruled_out}")

    return find
