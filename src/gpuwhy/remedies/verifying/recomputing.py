"""Rung a: the facts with the change in them, and what the failing code does with those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwhy.investigate.replaying import installed_source, replayed_with
from gpuwhy.model.evidence import Evidence, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.remedies.applying.verification import Rung, Trial
from gpuwhy.remedies.verifying.changes import changes_of
from gpuwhy.snapshot.collecting import Session

SECONDS = 20.0

_ENVIRONMENT = ("python_environments",)


class FactsRecomputed:
    """The failing code replayed with the changed facts; where it cannot be, the case judged again with them."""

    name = "facts"
    needs_change = False

    def verify(self, trial: Trial) -> Rung | None:
        change = changes_of(trial.remedy)
        if change is None:
            return None
        facts = Facts({fact.key: fact for fact in trial.diagnosis.facts})
        if change.variables:
            return self._replayed(trial, facts, change.facts)
        return self._judged(trial, facts, change.facts)

    def _replayed(self, trial: Trial, facts: Facts, changes: Mapping[str, Any]) -> Rung:
        source = trial.diagnosis.source
        replay = source.replay if source is not None else None
        if replay is None or replay.agreement not in ("same", "partly"):
            why = "the failing code could not be replayed with the facts as they are"
            return Rung("a", self.name, "not possible", why)
        with Session(trial.site.target, trial.setting.unit, SECONDS) as session:
            session.collect(probes=_ENVIRONMENT)
            installed = installed_source(trial.diagnosis.incident, session)
            if installed is None:
                return Rung("a", self.name, "not possible", "the failing source is not at hand")
            verdict = replayed_with(facts, installed, replay.entry, changes, target=session)
        if verdict.kind == "not reached":
            resting = f"; assuming that {'; that '.join(verdict.rests_on[:2])}" if verdict.rests_on else ""
            return Rung("a", self.name, "passed", verdict.why + resting)
        if verdict.kind in ("reached", "other exception"):
            return Rung("a", self.name, "failed", f"with the change the code still ends in {verdict.why}")
        return Rung("a", self.name, "not possible", verdict.why)

    def _judged(self, trial: Trial, facts: Facts, changes: Mapping[str, Any]) -> Rung:
        # read only where it is needed: judging loads the whole catalogue
        from gpuwhy.diagnosis import judge

        finding = trial.diagnosis.findings[0]
        evidence = Evidence("as it would be", standing=Standing.GIVEN)
        changed = facts.merged(Facts({key: Fact(key, value, evidence, "change") for key, value in changes.items()}))
        judgement = judge(trial.diagnosis.incident, changed)
        out = next((each for each in judgement.ruled_out if each.cause == finding.cause), None)
        if out is not None:
            return Rung("a", self.name, "passed", f"with the change {finding.cause} is ruled out: {out.why}")
        return Rung("a", self.name, "not possible", "what is known of the releases does not decide it")
