"""Random programs end in the replay as Python ends them, or the replay says that it does not know."""

from __future__ import annotations

import contextlib
import io
import linecache
import logging
import sys
import traceback
import types
import warnings
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.source.replay.programs import Writer
from tests.source.replay.texts import Texts

from gpuwhy.source.replay import NotModelled, Raised, Replay, Returned, replay

STEPS = 20_000


def executed(text: str, call: str) -> dict[str, Any]:
    """How Python ends the program, and what it logs. A program that does not end soon is not one to compare."""
    lines: list[list[Any]] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append([record.levelname.lower(), _message(record), record.lineno])

    logger = logging.getLogger("generated")
    logger.handlers, logger.propagate = [Listener()], False
    logger.setLevel(1)
    module = sys.modules["generated"] = types.ModuleType("generated")
    names = vars(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "generated.py", "exec"), names)
        try:
            result: dict[str, Any] = {"returned": repr(eval(call, names))}
        except Exception as error:  # noqa: BLE001
            frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == "generated.py"]
            line = frames[-1].lineno if frames else 0
            result = {"raised": type(error).__name__, "message": str(error), "line": line}
    linecache.clearcache()
    return {**result, "logged": lines}


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def replayed(text: str, call: str) -> tuple[Replay, dict[str, Any]]:
    result = replay(Texts(generated=text), f"generated:{call}", {}, max_steps=STEPS)
    logged = [[line.level, line.message, line.place.line] for line in result.log_lines()]
    outcome = result.outcome
    if isinstance(outcome, Returned):
        return result, {"returned": outcome.value, "logged": logged}
    if isinstance(outcome, Raised):
        line = outcome.place.line
        return result, {"raised": outcome.type, "message": outcome.message, "line": line, "logged": logged}
    return result, {}


def compare(seed: int) -> bool:
    """Whether the replay decided; it must not decide otherwise than Python."""
    writer = Writer(Random(seed))
    text, call = writer.program(), writer.call()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "generated.py", "exec")
    except SyntaxError:
        return False
    result, found = replayed(text, call)
    if not found:
        return False
    with contextlib.redirect_stdout(io.StringIO()):
        expected = executed(text, call)
    if "returned" in expected:
        shown = expected["returned"]
        expected["returned"] = shown if len(shown) <= 300 else shown[:299] + "…"
        if found.get("returned") == "?":
            # a list that holds itself is not shown: that it is returned is still a claim
            expected["returned"] = "?"
    shown_call = f"seed {seed}\n{text.partition('def generated')[2]}\n{call}\n{result.outcome}"
    assert found == expected, shown_call
    return True


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**40))
def test_a_random_program_ends_as_python_ends_it_or_the_replay_stops(seed: int) -> None:
    compare(seed)


def test_most_random_programs_are_decided() -> None:
    decided = [compare(seed) for seed in range(200)]
    assert sum(decided) > 120


@pytest.mark.parametrize("value", ["re.search('(.)', 'a')", "5", "2.5", "None", "helper", "iter('ab')", "{}", "'abc'"])
@pytest.mark.parametrize("targets", ["a, b", "a, *b"])
def test_what_cannot_be_unpacked_is_refused_in_pythons_words(value: str, targets: str) -> None:
    text = f"import re\n\n\ndef helper():\n    return 1\n\n\ndef generated():\n    try:\n        {targets} = {value}\n    except Exception as error:\n        return str(error)\n"  # fmt: skip
    _, found = replayed(text, "generated()")
    assert found
    assert found == executed(text, "generated()")


@pytest.mark.parametrize("base", ["", "(str)", "(int)", "(Exception)"])
@pytest.mark.parametrize("shown", ["f'{P():>4}'", "format(P(), '>3')", "f'{P()}' == 'x'"])
def test_an_instance_is_formatted_as_python_does_it_or_the_replay_stops(base: str, shown: str) -> None:
    text = f"class P{base}:\n    pass\n\n\ndef generated():\n    try:\n        return {shown}\n    except Exception as error:\n        return str(error)\n"  # fmt: skip
    result, found = replayed(text, "generated()")
    assert isinstance(result.outcome, NotModelled) or found == executed(text, "generated()")


def test_a_message_never_names_a_type_of_the_replay_itself() -> None:
    text = "class Child:\n    pass\n\n\ndef generated():\n    try:\n        return () + Child()\n    except Exception as error:\n        return str(error)\n"  # fmt: skip
    result, found = replayed(text, "generated()")
    assert isinstance(result.outcome, NotModelled) or found == executed(text, "generated()")


@pytest.mark.soak
def test_ten_thousand_random_programs() -> None:
    for seed in range(1_000_000, 1_010_000):
        compare(seed)


def test_a_difference_is_seen() -> None:
    _, found = replayed("def generated(a):\n    return a + 1\n", "generated(1)")
    assert found != executed("def generated(a):\n    return a + 2\n", "generated(1)")


def test_an_endless_loop_stops() -> None:
    result, _ = replayed("def generated():\n    while True:\n        pass\n", "generated()")
    assert isinstance(result.outcome, NotModelled)
    assert "steps" in result.outcome.what
