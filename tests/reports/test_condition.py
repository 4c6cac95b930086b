"""The section on the failing condition, as a person reads it."""

from __future__ import annotations

import msgspec
import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.evidence import Place
from gpuwhy.model.source import (
    HiddenRaise,
    SearchedPackage,
    SeenInLog,
    SourceAnswer,
    SourceCondition,
    SourceLine,
    SourceStep,
    SourceSwitch,
    SourceWhatIf,
    Speaker,
    SwallowedException,
)
from gpuwhy.remedies import prescribe
from gpuwhy.reports import Detail, render
from gpuwhy.reports.json import document_of

UNKNOWN = b"""Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/engine/gate.py", line 18, in check
    raise RuntimeError("this machine is too old")
RuntimeError: this machine is too old
"""
RAISED = HiddenRaise(
    "ValueError",
    "level {} is not supported",
    SourceLine("engine/probing.py", 5, "level"),
    (SourceCondition('text == "0"', 4),),
)
ANSWER = SourceAnswer(
    place=SourceLine("engine/gate.py", 18, "check", 'raise RuntimeError("this machine is too old")'),
    raises="RuntimeError",
    message="this machine is too old",
    conditions=(SourceCondition("not gate.levels", 17), SourceCondition("gate is not None", 3, is_weak=True)),
    what_ifs=(SourceWhatIf("gate.levels", ("empty",), "always"),),
    origin=(SourceStep("write", "self.levels = set()", 2, SourceLine("engine/gate.py", 7)),),
    swallowed=(
        SwallowedException(
            SourceLine("engine/gate.py", 11),
            ("Exception",),
            skips="self.levels.add(level)",
            logs=("warning: Cannot tell the level: {}.",),
            hides=(RAISED,),
            seen=(SeenInLog("Cannot tell the level: level 0 is not supported.", Place("log", "a.log", 1), "level 0 is not supported", RAISED, 3),),
        ),
        SwallowedException(SourceLine("engine/probing.py", 30), ("ImportError",), may_hide=("import nvml (engine/probing.py:29)",)),
    ),
    switches=(
        SourceSwitch("environment", "ENGINE_LEVEL", (SourceLine("engine/gate.py", 10),), '"1"', ("0", "1"), value="0", read_when="on import of engine.gate"),
        SourceSwitch("flag", "--level", is_by_name=True),
    ),
    speakers=(Speaker("Falling back.", Place("log", "a.log", 4), "warning", SourceLine("engine/x.py", 9, "f"), True),),
    confirmed=("ENGINE_LEVEL",),
    disagreements=("line 18 of the traceback is line 19 here",),
    packages=(SearchedPackage("engine", "1.2", "/opt/venv/lib/python3.12/site-packages", 3),),
    limits=("3 files were read, in 2 requests",),
)  # fmt: skip
HOSTILE = "\x1b[2J\u202e\x9b31m\r\n\x00 [bold]x[/bold]"


def with_source(answer: SourceAnswer, log: bytes = UNKNOWN) -> Diagnosis:
    return prescribe(msgspec.structs.replace(diagnose_log(log, "a.log"), source=answer))


def text(answer: SourceAnswer) -> str:
    return " ".join(render(with_source(answer), "text", Detail(width=0)).split())


@pytest.mark.parametrize(
    "said",
    [
        "engine/gate.py:18 in check raises RuntimeError, when this holds: not gate.levels (line 17)",
        "If gate.levels is empty, it always comes to this.",
        "engine/gate.py:7: self.levels = set()",
        "a.log:1: Cannot tell the level: level 0 is not supported. (3 times)",
        "written at engine/gate.py:11, except Exception, which then goes on",
        'raised at engine/probing.py:5 in level: ValueError: level {} is not supported if text == "0"',
        "so this is not done: self.levels.add(level)",
        "engine/probing.py:30: except ImportError; hides import nvml (engine/probing.py:29); it logs nothing",
        "ENGINE_LEVEL (environment variable; here '0'; default \"1\"; one of 0, 1; read on import of engine.gate)",
        "--level (option; a step on the way was matched by name only)",
        "a.log:4: Falling back. engine/x.py:9 in f, in a handler that goes on",
        "What does not fit: - line 18 of the traceback is line 19 here",
        "How far was looked: - 3 files were read, in 2 requests",
    ],
)
def test_an_unknown_failure_shows_its_condition(said: str) -> None:
    assert said in text(ANSWER)


def test_nothing_that_reaches_it_is_said_in_words() -> None:
    bare = msgspec.structs.replace(ANSWER, switches=(), swallowed=())
    assert "No variable, option, file or command was found that reaches it." in text(bare)


def test_where_the_place_is_not_found_the_reason_stands() -> None:
    assert "no frame of the traceback is in the packages" in text(
        SourceAnswer(problem="no frame of the traceback is in the packages", limits=("x",))
    )


def test_a_known_failure_shows_what_the_source_confirms() -> None:
    seed = b"Failed to get device capability: SM 12.x requires CUDA >= 12.9.\n" + UNKNOWN.replace(
        b"this machine is too old", b"FlashInfer requires GPUs with sm75 or higher"
    ).replace(b"engine/gate.py", b"flashinfer/jit/core.py")
    diagnosis = with_source(ANSWER, seed)
    assert diagnosis.findings
    shown = " ".join(render(diagnosis, "text", Detail(width=0)).split())
    assert "engine/probing.py:5 raises what engine/gate.py:11 swallows" in shown
    assert "engine/gate.py:18 raises RuntimeError when not gate.levels" in shown
    assert "does not fit: line 18 of the traceback is line 19 here" in shown
    assert "How far was looked" not in shown
    assert "How far was looked" in render(diagnosis, "text", Detail(verbose=True))
    assert "How far was looked" in render(diagnosis, "text", Detail(width=0, verbose=True))


def test_hostile_source_does_no_harm() -> None:
    line = SourceLine(HOSTILE, 1, HOSTILE, HOSTILE)
    condition = SourceCondition(HOSTILE, 1)
    answer = SourceAnswer(
        place=line, raises=HOSTILE, message=HOSTILE, conditions=(condition,), what_ifs=(SourceWhatIf(HOSTILE, (HOSTILE,), "always"),),
        origin=(SourceStep("write", HOSTILE, 0, line, (condition,), HOSTILE),),
        swallowed=(SwallowedException(line, (HOSTILE,), HOSTILE, (HOSTILE,), (HiddenRaise(HOSTILE, HOSTILE, line),), (HOSTILE,)),),
        switches=(SourceSwitch(HOSTILE, HOSTILE, (line,), HOSTILE, (HOSTILE,), value=HOSTILE),),
        speakers=(Speaker(HOSTILE, Place("log", HOSTILE, 1), HOSTILE, line),), disagreements=(HOSTILE,), limits=(HOSTILE,),
    )  # fmt: skip
    shown = render(with_source(answer), "text", Detail())
    assert not set("\x1b\u202e\x9b\r\x00") & set(shown)


def test_json_has_the_answer() -> None:
    assert document_of(with_source(ANSWER)).source == ANSWER
    assert document_of(prescribe(diagnose_log(UNKNOWN, "a.log"))).source is None
