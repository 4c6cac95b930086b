"""The shell completes commands, places, formats and causes, and a slip of the pen is answered with what was meant."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.cli.running import LOGS, gpuwhy

from gpuwhy.reports.columns import columns_of


def completed(*words: str) -> list[str]:
    """What a shell offers for the last word."""
    asked = {"_GPUWHY_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["gpuwhy", *words]), "COMP_CWORD": str(len(words))}  # fmt: skip
    command = "from gpuwhy.cli.group import group; group.main(prog_name='gpuwhy')"
    done = subprocess.run([sys.executable, "-c", command], env={**os.environ, **asked}, capture_output=True, text=True, check=False)  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("dia",), ["plain,diagnose"]),
        (("diagnose", "crash"), ["file,crash"]),
        (("diagnose", "lo"), ["plain,local", "file,lo"]),
        (("diagnose", "x", "--format", "m"), ["plain,markdown"]),
        (("check", "x", "--format", "ju"), ["plain,junit"]),
        (("check", "x", "--facts", "fa"), ["file,fa"]),
        (("cause", "toolkit-too"), ["plain,toolkit-too-old-for-arch", "plain,toolkit-too-old-for-library"]),
        (("report", "x", "--for", "v"), ["plain,vllm"]),
    ],
)
def test_a_shell_is_offered_what_fits(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_a_command_that_is_none_is_answered_with_those_that_may_be_meant() -> None:
    done = gpuwhy("diagnos", "crash.log")
    assert (done.status, done.out) == (2, "")
    assert "Did you mean diagnose?" in done.err
    assert "Did you mean" not in gpuwhy("frobnicate").err


def test_output_that_cannot_be_written_is_said_in_words() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "gpuwhy", "diagnose", str(LOGS / "sglang.log")], stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "gpuwhy: standard output: No space left on device\n"


def test_a_document_of_a_cause_follows_the_width() -> None:
    lines = gpuwhy("cause", "ulimit").out.splitlines()
    assert max(map(columns_of, lines)) <= 100
    assert "How it shows itself" in lines
    assert lines[-1].strip()
