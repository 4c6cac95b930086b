"""Order of findings, and which observation is asked for first."""

from __future__ import annotations

from gpuwhy.diagnosis.judging import deciding
from gpuwhy.diagnosis.ranking import ranked
from gpuwhy.model.event import Event, Span
from gpuwhy.model.evidence import Place
from gpuwhy.model.finding import Certainty, Finding, Missing
from gpuwhy.model.incident import Incident


def finding(cause: str, certainty: Certainty = Certainty.POSSIBLE, *, explains: tuple[int, ...] = (), strength: int = 50,
            missing: tuple[str, ...] = ()) -> Finding:  # fmt: skip
    return Finding(cause=cause, family="F", component=None, certainty=certainty, title=cause, chain=(), evidence=(),
                   explains=explains, strength=strength, missing=tuple(Missing(k, f"get {k}") for k in missing))  # fmt: skip


def incident(primary: int | None = None) -> Incident:
    events = tuple(
        Event(id=i, kind="exception", text="", place=Place("log"), span=Span("l", 10 * i + 1, 10 * i + 2))
        for i in range(3)
    )
    return Incident(logs=(), events=events, primary=primary)


def order(findings: list[Finding], of: Incident) -> list[str]:
    return [f.cause for f in ranked(findings, of)]


def test_the_surer_finding_comes_first() -> None:
    assert order([finding("b", Certainty.LIKELY), finding("a", Certainty.PROVEN)], incident()) == ["a", "b"]


def test_among_equals_the_one_that_explains_the_primary_event() -> None:
    assert (
        order([finding("side", explains=(0,), strength=70), finding("main", explains=(1,))], incident(1))[0] == "main"
    )


def test_what_is_proven_of_a_side_event_beats_a_mere_possibility() -> None:
    sure = finding("sure", Certainty.PROVEN, explains=(0,))
    assert order([finding("maybe", explains=(1,)), sure], incident(1))[0] == "sure"


def test_the_earlier_event_wins_a_tie() -> None:
    assert order([finding("late", explains=(2,)), finding("early", explains=(0,))], incident()) == ["early", "late"]


def test_the_leader_s_most_decisive_fact_is_asked_first() -> None:
    asked = deciding(
        (finding("a", missing=("cuda_toolkit", "cc")), finding("b", missing=("cc",)), finding("c", missing=("cc",)))
    )
    assert asked is not None
    assert asked.key == "cuda_toolkit"


def test_where_the_leader_waits_for_nothing_the_fact_that_most_others_wait_for() -> None:
    asked = deciding((finding("a"), finding("b", missing=("driver", "cc")), finding("c", missing=("cc",))))
    assert asked is not None
    assert asked.key == "cc"


def test_a_fact_that_only_a_trailing_finding_wants_does_not_come_before_the_leader_s() -> None:
    asked = deciding(
        (finding("a", missing=("cc",)), finding("b", missing=("driver",)), finding("c", missing=("driver",)))
    )
    assert asked is not None
    assert asked.key == "cc"


def test_nothing_is_asked_when_nothing_is_open() -> None:
    assert deciding((finding("a", Certainty.PROVEN),)) is None
