"""A remedy tried on a real process of the applier: verified, refuted, rolled back, kept."""

from __future__ import annotations

import pytest
from tests.applier.scratch import CURE, FOLDER, UNIT, Scratch

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.incident import Incident
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting, written_for
from gpuwhy.remedies.applying.fixing import Choice, Tried, Trying, planned, try_remedy
from gpuwhy.remedies.applying.site import Site, StepReport
from gpuwhy.remedies.applying.verification import Rung, ServiceStays, Trial
from gpuwhy.remedies.verifying import ladder

SETTING = Setting(kind="systemd", unit=UNIT, exec_start="/opt/serve --port 1")
DIAGNOSIS = Diagnosis(where="local", incident=Incident(logs=(), events=(), unit=UNIT), findings=())
TRYING = Trying(grace=0.3, deadline=60)


def tried(site: Site, value: str = "12.0a", trying: Trying = TRYING, steps: list[StepReport] | None = None) -> Tried:
    remedy = written_for(Remedy(kind="env", name="ARCH_LIST", value=value, summary=""), SETTING)
    choice = planned(Choice(3, remedy), DIAGNOSIS, site, SETTING)
    heard = [] if steps is None else steps
    return try_remedy(choice, DIAGNOSIS, site, trying, heard.append)


class Guard:
    """Stands for a verifier of rung b with a verdict of its own."""

    name = "guard"
    needs_change = False

    def __init__(self, rung: Rung | None) -> None:
        self._rung = rung

    def verify(self, trial: Trial) -> Rung | None:
        return self._rung


def with_guard(monkeypatch: pytest.MonkeyPatch, rung: Rung | None) -> None:
    monkeypatch.setattr(ladder, "VERIFIERS", (Guard(rung), ServiceStays()))


def test_a_remedy_that_helps_is_verified_and_the_journal_says_how_far(scratch: Scratch, site: Site) -> None:
    steps: list[StepReport] = []
    result = tried(site, steps=steps)
    assert result.is_proven
    assert result.verification.reached == "e: active"
    assert result.verification.unproven == ("facts", "guard", "build", "launch", "health", "request")
    assert [step.name for step in steps][:2] == [f"folder {FOLDER}", f"write {FOLDER}/50-gpuwhy-ARCH_LIST.conf"]
    (record,) = site.history()
    assert (record.state, record.remedy["number"], record.title) == ("verified", 3, CURE)
    assert record.verification["reached"] == "e: active"


def test_a_remedy_that_does_not_help_is_rolled_back_and_refuted(scratch: Scratch, site: Site) -> None:
    before = scratch.tree()
    result = tried(site, "9.0")
    assert not result.is_in_force
    assert result.verification.refuted is not None
    assert result.outcome is not None
    assert result.outcome.status == "undone"
    assert scratch.tree() == before


def test_a_remedy_that_does_not_help_is_kept_when_asked(scratch: Scratch, site: Site) -> None:
    result = tried(site, "9.0", Trying(grace=0.3, deadline=60, keep=True))
    assert result.is_in_force
    assert not result.is_proven
    assert site.history()[0].state == "applied"


def test_what_the_guard_refutes_is_never_applied(scratch: Scratch, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with_guard(monkeypatch, Rung("b", "guard", "failed", "it still raises"))
    before = scratch.tree()
    result = tried(site)
    assert result.outcome is None
    assert result.verification.refuted is not None
    assert scratch.tree() == before
    assert site.history() == ()


def test_a_rung_that_is_not_possible_stays_unproven_and_stops_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_guard(monkeypatch, Rung("b", "guard", "not possible", "the environment has no interpreter"))
    result = tried(site)
    assert result.is_proven
    assert "guard" in result.verification.unproven


def test_a_failing_rung_after_the_change_takes_it_back(
    scratch: Scratch, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Health(Guard):
        name = "health"
        needs_change = True

    rung = Rung("e", "health", "failed", "status 503")
    monkeypatch.setattr(ladder, "VERIFIERS", (ServiceStays(), Health(rung)))
    before = scratch.tree()
    result = tried(site)
    assert not result.is_in_force
    assert scratch.tree() == before
    (record,) = site.history()
    assert (record.state, record.reason) == ("undone", "health: status 503")


def test_tried_twice_it_is_in_place_the_second_time(scratch: Scratch, site: Site) -> None:
    tried(site)
    again = tried(site)
    assert again.outcome is not None
    assert again.outcome.status == "unchanged"
    assert again.is_proven
    assert len(site.history()) == 1
    scratch.systemctl("stop", UNIT)
    assert not tried(site).is_proven
