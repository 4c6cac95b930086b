"""Every command that the documents show works as it is shown there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.docs.pages import PAGES, commands_of, is_as_shown
from tests.docs.stage import Stage

from gpuwhy.cli.group import COMMANDS, group

WITH_COMMANDS = [page for page in PAGES if commands_of(page)]
CRASHED = re.compile(r"Traceback \(most recent call last\)|Usage: gpuwhy|Try 'gpuwhy")


@pytest.fixture
def stage(page: Path, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, page)
    yield made
    made.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_do_what_the_page_shows(page: Path, stage: Stage) -> None:
    wrong = []
    for shown in commands_of(page):
        if shown.reason:
            continue
        done = stage.run(shown)
        if shown.output and not is_as_shown(shown.output, done.out + done.err):
            wrong.append(f"{shown}\n prints (status {done.status})\n{done.out}{done.err}")
        elif not shown.output and not _is_answer(shown.command, done.status, done.out, done.err):
            wrong.append(f"{shown}\n ends with status {done.status}\n{done.out[-2000:]}{done.err[-2000:]}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_that_are_not_run_are_taken_by_the_parser(page: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(stage.folder)
    for shown in commands_of(page):
        for words in _gpuwhy_calls(stage.typed(shown.command)):
            if shown.reason and not any("DIR" in word for word in words):
                _parsed(words, str(shown))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_what_is_not_run_says_why(page: Path) -> None:
    for shown in commands_of(page):
        assert not shown.reason or len(shown.reason.split()) > 2, shown


def test_every_command_of_the_program_is_in_the_documents() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    unknown = [name for name in COMMANDS if f"gpuwhy {name}" not in text]
    assert not unknown


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (("a", "b"), "a\nb\n", True),
        (("a",), "a\nb\n", False),
        (("a", "..."), "a\nb\nc\n", True),
        (("...", "c"), "a\nb\nc\n", True),
        (("...", "x"), "a\nb\nc\n", False),
        (("took ... s",), "took 1.2 s\n", True),
        (("took ... s",), "took\ns\n", False),
    ],
)
def test_shown_output_is_compared_line_by_line(shown: tuple[str, ...], printed: str, same: bool) -> None:
    assert is_as_shown(shown, printed) is same


def _is_answer(command: str, status: int, out: str, err: str) -> bool:
    """0 and 1 are answers (nothing failed, a failure), 3 one of ``gpuwhy fit``; whatever says nothing is none."""
    answers = (0, 1, 3) if command.startswith("gpuwhy fit ") else (0, 1)
    silent = "-o " in command or ">" in command
    return status in answers and (bool(out.strip()) or silent) and not CRASHED.search(err)


def _gpuwhy_calls(command: str) -> Iterator[list[str]]:
    """The words of each call of gpuwhy in a shell line."""
    call: list[str] | None = None
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    for word in lexer:
        if word == "gpuwhy":
            call = []
        elif set(word) <= set("|&;<>"):
            if call:
                yield call
            call = None
        elif call is not None:
            call.append(word)
    if call:
        yield call


def _parsed(words: list[str], shown: str) -> None:
    if words[0] in ("--version", "--help"):
        return
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, shown
    try:
        command.make_context(f"gpuwhy {words[0]}", words[1:])
    except click.UsageError as error:
        pytest.fail(f"{shown}: {error.format_message()}")
