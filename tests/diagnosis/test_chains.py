"""Findings that explain each other, a second problem beside the first, and the question that separates most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from gpuwhy.causes import CauseEntry
from gpuwhy.diagnosis.chains import chained
from gpuwhy.diagnosis.judging import deciding
from gpuwhy.model.event import Event, Span
from gpuwhy.model.evidence import Place
from gpuwhy.model.finding import Certainty, Finding, Missing
from gpuwhy.model.incident import Incident

CAUSES = cast("dict[str, CauseEntry]", {"kill": SimpleNamespace(leads_to=("timeout",)), "timeout": SimpleNamespace(leads_to=()), "disk": SimpleNamespace(leads_to=())})  # fmt: skip


def event(identity: int, line: int, time: float | None = None, log: str = "log") -> Event:
    return Event(
        id=identity, kind="crash", text="x", place=Place("log", log, line), span=Span(log, line, line), time=time
    )


def finding(cause: str, certainty: Certainty, *explains: int, **more: Any) -> Finding:
    return Finding(cause=cause, family="", component=None, certainty=certainty, title=cause, chain=(), evidence=(), explains=explains, **more)  # fmt: skip


def incident(*events: Event) -> Incident:
    return Incident(logs=(), events=events)


KILL = finding("kill", Certainty.LIKELY, 0)
TIMEOUT = finding("timeout", Certainty.LIKELY, 1)


def test_the_root_is_moved_before_what_follows_from_it() -> None:
    first, second = chained([TIMEOUT, KILL], incident(event(0, 10), event(1, 20)), CAUSES)
    assert (first.cause, second.cause) == ("kill", "timeout")
    assert (first.consequence_of, second.consequence_of) == ("", "kill")
    assert not second.is_independent


def test_what_comes_later_is_no_root() -> None:
    first, second = chained([TIMEOUT, KILL], incident(event(0, 30), event(1, 20)), CAUSES)
    assert first.cause == "timeout"
    assert second.consequence_of == first.consequence_of == ""


def test_times_count_across_logs() -> None:
    events = (event(0, 900, 100.0, "dmesg"), event(1, 3, 160.0, "engine"))
    assert chained([TIMEOUT, KILL], incident(*events), CAUSES)[0].cause == "kill"
    events = (event(0, 900, 200.0, "dmesg"), event(1, 3, 160.0, "engine"))
    assert chained([TIMEOUT, KILL], incident(*events), CAUSES)[0].cause == "timeout"


def test_a_mere_possibility_explains_nothing() -> None:
    possible = finding("kill", Certainty.POSSIBLE, 0)
    assert [each.consequence_of for each in chained([TIMEOUT, possible], incident(event(0, 1), event(1, 2)), CAUSES)] == ["", ""]  # fmt: skip


def test_a_sure_finding_of_other_events_is_a_second_problem() -> None:
    disk = finding("disk", Certainty.LIKELY, 1)
    assert chained([KILL, disk], incident(event(0, 1), event(1, 2)), CAUSES)[1].is_independent
    rival = finding("disk", Certainty.LIKELY, 1, rivals=("kill",))
    assert not chained([KILL, rival], incident(event(0, 1), event(1, 2)), CAUSES)[1].is_independent
    same = finding("disk", Certainty.LIKELY, 0)
    assert not chained([KILL, same], incident(event(0, 1)), CAUSES)[1].is_independent
    assert chained([], incident(), CAUSES) == ()


def test_what_can_be_read_off_is_asked_before_an_experiment() -> None:
    toolkit, gpu, experiment = (Missing(key, "command") for key in ("cuda_toolkit", "cc", "tests.blocking"))
    leader = finding("kill", Certainty.POSSIBLE, missing=(toolkit, gpu))
    other = finding("disk", Certainty.POSSIBLE, missing=(gpu,))
    assert deciding((leader, other)) == toolkit
    assert deciding((leader,)) == toolkit
    assert deciding((finding("kill", Certainty.POSSIBLE, missing=(experiment, gpu)),)) == gpu
    assert deciding((KILL, other)) == gpu
    assert deciding((KILL,)) is None
