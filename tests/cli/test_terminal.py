"""Colours, pipes and start-up."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest
from tests.cli.running import LOGS, gpuwhy

SEED = str(LOGS / "sglang.log")


def on_a_terminal(env: dict[str, str]) -> str:
    """What a terminal of 100 columns is sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", "diagnose", SEED],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={
            **{k: v for k, v in os.environ.items() if k != "NO_COLOR"},
            "TERM": "xterm-256color",
            "COLUMNS": "100",
            **env,
        },
    )
    os.close(theirs)
    sent = b""
    try:
        while chunk := os.read(ours, 65536):
            sent += chunk
    except OSError:  # how a terminal says that nobody holds its other end any more
        pass
    finally:
        os.close(ours)
    assert process.wait(30) == 1
    return sent.decode()


def test_colours_only_on_a_terminal_and_only_when_wanted() -> None:
    assert "\x1b[" in on_a_terminal({})
    assert "\x1b" not in on_a_terminal({"NO_COLOR": "1"})
    assert "\x1b" not in on_a_terminal({"TERM": "dumb"})
    assert "\x1b" not in gpuwhy("diagnose", SEED).out


def test_colours_change_no_word() -> None:
    coloured = re.sub(r"\x1b\[[\d;]*m", "", on_a_terminal({}))
    assert coloured == on_a_terminal({"NO_COLOR": "1"})


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_leaves_early_is_no_error(form: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", "diagnose", SEED, "--format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) in (0, 1)


def test_the_version_imports_nothing() -> None:
    code = (
        "import sys; sys.argv = ['gpuwhy', '--version']\n"
        "from gpuwhy.__main__ import main; main()\n"
        "print(sorted({'click', 'msgspec', 'rich', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"gpuwhy \d+\.\d+\.\d+\S*\n\[\]\n", done.stdout)


def test_diagnosing_without_a_terminal_does_not_import_rich() -> None:
    code = (
        f"import sys; sys.argv = ['gpuwhy', 'diagnose', {SEED!r}]\n"
        "from gpuwhy.cli import run; run()\n"
        "sys.stderr.write(str(sorted({'rich', 'yaml'} & set(sys.modules))))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr == "[]"
