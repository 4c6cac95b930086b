"""Signs are found in one pass: literals first, patterns decide, wrapped lines are joined, quoted code comes last."""

from __future__ import annotations

import pytest

from gpuwhy.causes import CauseEntry, Sign, kernel, raised, says
from gpuwhy.diagnosis.matching import MATCHES_PER_SIGN, SignFinder
from gpuwhy.model.event import Event, Frame, Log, LogLine, Process, RaisedException, Span
from gpuwhy.model.evidence import Place
from gpuwhy.model.incident import Incident


def entry(*signs: Sign) -> CauseEntry:
    return CauseEntry("a-cause", "Family", signs, lambda case: None, ())


def log_of(*texts: str, processes: tuple[Process | None, ...] = ()) -> Log:
    lines = tuple(
        LogLine(number, text, text, processes[number - 1] if processes else None)
        for number, text in enumerate(texts, 1)
    )
    return Log("crash.log", "log", lines)


def incident_of(log: Log, *events: Event) -> Incident:
    return Incident(logs=(log,), events=events)


def test_the_literal_alone_decides_when_there_is_no_pattern() -> None:
    log = log_of("all is well", "NVCC not found anywhere")
    found = SignFinder([entry(says("s", "nvcc not found"))]).find(incident_of(log))
    assert [m.line.number for m in found["a-cause"]["s"]] == [2]


def test_a_pattern_must_match_too_and_gives_its_groups() -> None:
    log = log_of("Unsupported gpu architecture of the past", "nvcc fatal : Unsupported gpu architecture 'compute_120'")
    sign = says("s", "unsupported gpu architecture", r"architecture '(?P<target>\w+)'")
    matches = SignFinder([entry(sign)]).find(incident_of(log))["a-cause"]["s"]
    assert [(m.line.number, m.groups) for m in matches] == [(2, {"target": "compute_120"})]


def test_a_wrapped_message_is_joined_within_its_own_process() -> None:
    one, other = Process("TP0"), Process("TP1")
    log = log_of(
        "detected CUDA version", "noise of a rank", "(12.8) mismatches the version", processes=(one, other, one)
    )
    sign = says("s", "detected cuda version", r"CUDA version \((?P<nvcc>[\d.]+)\) mismatches the version")
    matches = SignFinder([entry(sign)]).find(incident_of(log))["a-cause"]["s"]
    assert matches[0].groups == {"nvcc": "12.8"}


def test_code_that_a_traceback_quotes_comes_after_what_was_said() -> None:
    log = log_of('    raise RuntimeError("too old")', "RuntimeError: too old")
    block = RaisedException("RuntimeError", "too old", (Frame("a.py", 1, "f", 'raise RuntimeError("too old")'),))
    event = Event(id=0, kind="exception", text="RuntimeError: too old", place=Place("log", "crash.log", 2),
                  span=Span("crash.log", 1, 2), exceptions=(block,))  # fmt: skip
    matches = SignFinder([entry(says("s", "too old"))]).find(incident_of(log, event))["a-cause"]["s"]
    assert [(m.line.number, m.is_code) for m in matches] == [(2, False), (1, True)]


def test_the_statement_under_a_bare_assertion_is_its_message() -> None:
    code = "assert in_features % group_size == 0"
    log = log_of("    check(layer)", f"    {code}", "AssertionError")
    frames = (Frame("a.py", 1, "f", "check(layer)"), Frame("b.py", 2, "check", code))
    event = Event(id=0, kind="exception", text="AssertionError", place=Place("log", "crash.log", 3),
                  span=Span("crash.log", 1, 3), exceptions=(RaisedException("AssertionError", "", frames),))  # fmt: skip
    found = SignFinder([entry(says("s", "group_size"), says("outer", "check(layer)"))]).find(incident_of(log, event))
    assert [m.is_code for m in found["a-cause"]["s"]] == [False]
    assert [m.is_code for m in found["a-cause"]["outer"]] == [True]


@pytest.mark.parametrize(("sign", "kind", "is_found"), [
    (raised("s", "boom"), "exception", True),
    (raised("s", "boom"), "warning", False),
    (kernel("s", "boom"), "kernel", True),
    (kernel("s", "boom"), "exception", False),
    (says("s", "boom"), "warning", True),
])  # fmt: skip
def test_a_sign_may_be_limited_to_kinds_of_events(sign: Sign, kind: str, is_found: bool) -> None:
    log = log_of("boom")
    event = Event(id=0, kind=kind, text="boom", place=Place("log"), span=Span("crash.log", 1, 1))
    assert bool(SignFinder([entry(sign)]).find(incident_of(log, event))) is is_found


def test_the_narrowest_event_claims_a_line() -> None:
    log = log_of("a", "boom", "c")
    wide = Event(id=0, kind="exception", text="", place=Place("log"), span=Span("crash.log", 1, 3))
    narrow = Event(id=1, kind="warning", text="", place=Place("log"), span=Span("crash.log", 2, 2))
    match = SignFinder([entry(says("s", "boom"))]).find(incident_of(log, wide, narrow))["a-cause"]["s"][0]
    assert match.event is not None
    assert match.event.id == 1


def test_a_crash_loop_does_not_flood_the_case() -> None:
    log = log_of(*["boom"] * 1000)
    matches = SignFinder([entry(says("s", "boom"))]).find(incident_of(log))["a-cause"]["s"]
    assert len(matches) == MATCHES_PER_SIGN
    assert matches[0].line.number == 1


def test_a_line_of_megabytes_is_searched_near_its_literal() -> None:
    log = log_of("x" * 2_000_000 + " Unknown option '--compress-mode=size' " + "y" * 2_000_000)
    sign = says("s", "unknown option", r"Unknown option '(?P<option>[\w=-]+)'")
    matches = SignFinder([entry(sign)]).find(incident_of(log))["a-cause"]["s"]
    assert matches[0].groups == {"option": "--compress-mode=size"}


def test_a_heading_that_repeats_the_message_comes_after_the_program_that_says_it() -> None:
    log = log_of("[Bug]: nvcc not found on my host", "", "It happens at once.", "/bin/sh: 1: nvcc not found")
    heading = Event(id=0, kind="warning", text="nvcc not found", place=Place("log", "crash.log", 1), span=Span("crash.log", 1, 1))  # fmt: skip
    said = Event(id=1, kind="build", text="nvcc not found", place=Place("log", "crash.log", 4), span=Span("crash.log", 4, 4))  # fmt: skip
    matches = SignFinder([entry(says("s", "nvcc not found"))]).find(incident_of(log, heading, said))["a-cause"]["s"]
    assert [m.line.number for m in matches] == [4, 1]


def test_a_first_line_without_an_empty_one_behind_it_is_no_heading() -> None:
    log = log_of("/bin/sh: 1: nvcc not found", "ninja: build stopped", "/bin/sh: 2: nvcc not found")
    matches = SignFinder([entry(says("s", "nvcc not found"))]).find(incident_of(log))["a-cause"]["s"]
    assert [m.line.number for m in matches] == [1, 3]
