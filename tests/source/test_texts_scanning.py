"""The texts that a file writes, without parsing the whole file."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from gpuwhy.source.messages import Template
from gpuwhy.source.texts_scanning import Scanner, Text


def texts(source: str) -> tuple[Text, ...]:
    return Scanner().texts_of(dedent(source).encode())


def patterns(source: str) -> list[str]:
    return [pattern.shown for text in texts(source) for pattern in text.choices]


@pytest.mark.parametrize(
    ("source", "kind", "name", "shown"),
    [
        ('logger.warning(f"Failed to get device capability: {e}.")', "log", "warning", "Failed to get device capability: {}."),
        ('logger.info("took %.2f s of %d%%", a, b)', "log", "info", "took {} s of {}%"),
        ('logger.info("100%")', "log", "info", "100%"),
        ('logger.error("{} is not {}".format(a, b))', "log", "error", "{} is not {}"),
        ('self.logger.debug("at " + where)', "log", "debug", "at {}"),
        ('get_logger("x").warning("old")', "log", "warning", "old"),
        ('logger.info_once("seen %s", x)', "log", "info", "seen {}"),
        ('logger.log(logging.WARNING, "now %s", x)', "log", "", "now {}"),
        ('log_info_on_rank0(logger, f"Init {x}")', "log", "info", "Init {}"),
        ('print_warning_once("slow path")', "log", "warning", "slow path"),
        ('warnings.warn("deprecated", stacklevel=2)', "log", "warnings.warn", "deprecated"),
        ('print("no", file=sys.stderr)', "log", "print", "no"),
        ('raise RuntimeError("bad %s" % x)', "raise", "RuntimeError", "bad {}"),
        ('raise errors.Missing(f"no {x!r}") from e', "raise", "Missing", "no {}"),
        ('assert x, f"got {x}"', "raise", "AssertionError", "got {}"),
        ('assert (x == "a"), (\n    "needs a, "\n    "not b"\n)', "raise", "AssertionError", "needs a, not b"),
        ('if x: raise ValueError("short")', "raise", "ValueError", "short"),
        ('sys.exit("cannot go on")', "raise", "SystemExit", "cannot go on"),
        ('super().__init__(f"{name} is missing")', "raise", "", "{} is missing"),
    ],
)  # fmt: skip
def test_how_a_text_is_written(source: str, kind: str, name: str, shown: str) -> None:
    (found,) = texts(source)
    assert (found.kind, found.name, [pattern.shown for pattern in found.choices]) == (kind, name, [shown])


def test_lines_of_a_call() -> None:
    (found,) = texts(
        """
        x = 1
        logger.warning(
            "a (b) \\")\\" %s",  # not here )
            {"k": [1, 2]},
        )
        """
    )
    assert (found.line, found.last, found.choices) == (3, 6, (Template(('a (b) ")" ', "")),))


def test_a_text_of_several_lines_is_one_pattern_a_line() -> None:
    assert patterns('raise RuntimeError(f"Capture failed: {e}\\nPossible solutions:\\n1. set --x to {v} or less")') == [
        "Capture failed: {}",
        "Possible solutions:",
        "1. set --x to {} or less",
    ]


def test_a_text_that_was_chosen_before() -> None:
    source = """
        def f(x):
            if x:
                msg = f"cannot load {x}"
            else:
                msg = "nothing to load"
            raise ValueError(msg)

        def g():
            msg = "of another function"
    """
    assert patterns(source) == ["cannot load {}", "nothing to load"]


def test_a_text_that_is_added_to() -> None:
    source = """
        def f(x):
            msg = f"Prefill batch, {x}, "
            if x:
                msg += f"#queue: {x}"
            logger.info(msg)
    """
    assert patterns(source) == ["Prefill batch, {}, {}", "{}#queue: {}{}"]


def test_a_text_of_the_module_and_a_choice() -> None:
    assert patterns('TEXT = "not here"\ndef f():\n    raise KeyError(TEXT)\n') == ["not here"]
    assert patterns('logger.info("on" if x else "switched off")') == ["on", "switched off"]


def test_a_constant_of_the_module_is_written_by_others() -> None:
    (found,) = texts('ADVICE = (\n    "1. set --x\\n"\n    "2. or not"\n)\nother = (\n    1)\n')
    assert (found.kind, found.name, [pattern.shown for pattern in found.choices]) == ("text", "ADVICE", ["1. set --x", "2. or not"])  # fmt: skip


def test_a_text_that_is_only_a_value_has_no_pattern() -> None:
    assert [text.choices for text in texts("raise ValueError(x)\nlogger.error(e)\nraise StopIteration\n")] == [()] * 3


@pytest.mark.parametrize(
    "source",
    [
        "# raise ValueError('no')",
        "reraise = catalog.fatal_error",
        "x = table.log(3)",
        "self.raise_on_error('x')",
        "math.log(2, 'x')",
        "blueprint('x')",
        "raise_error('x')",
    ],
)
def test_what_writes_nothing(source: str) -> None:
    assert texts(source) == ()


@pytest.mark.parametrize(
    "source",
    ["raise X(" * 20_000, "logger.info('" + "\\" * 50_000, "print(f'''" * 10_000, "raise X(" + "(" * 9_000, "assert " * 30_000,
     "def f():\n" + "    raise ValueError(message)\n" * 60_000],
    ids=["unclosed", "backslashes", "triple", "deep", "asserts", "names"],
)  # fmt: skip
def test_hostile_files_take_linear_time(source: str) -> None:
    begun = time.process_time()
    texts(source)
    assert time.process_time() - begun < 10
