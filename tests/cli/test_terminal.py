"""Colours, pipes and start-up."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.cli.running import LOGS, gpuwhy
from tests.patience import AT_MOST, until

SEED = str(LOGS / "sglang.log")
_LINKING = ("TERM_PROGRAM", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "FORCE_HYPERLINK")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def rows_of(sent: str, columns: int) -> list[str]:
    """What a terminal of that width shows: longer lines are folded."""
    lines = _COLOURS.sub("", sent).replace("\r\n", "\n").rstrip("\n").split("\n")
    return [line[start : start + columns] for line in lines for start in range(0, max(1, len(line)), columns)]


def on_a_terminal(env: dict[str, str], *options: str, rows: int = 40, columns: int = 100) -> str:
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", "diagnose", SEED, *options],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={
            **{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES", "TMUX", *_LINKING)},
            "TERM": "xterm-256color",
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
    assert process.wait(AT_MOST) == 1
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
    assert process.wait(AT_MOST) in (0, 1)


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


@pytest.mark.parametrize("facts", ["", 'cc: "12.0"\ncuda_toolkit: "12.8"\n'])
def test_the_seed_fits_one_screen_and_says_what_matters(tmp_path: Path, facts: str) -> None:
    given = tmp_path / "facts.yaml"
    given.write_text(facts or "{}")
    shown = rows_of(on_a_terminal({}, "--facts", str(given), rows=40, columns=80), 80)
    assert len(shown) <= 40
    said = " ".join(" ".join(shown).split())
    for expected in (
        "toolkit-too-old-for-arch, in flashinfer: likely",
        "sglang.log:1: Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        "[swallowed]",
        "What to do first",
        "check that it helped",
        "Ruled out: gpu-too-old",
        "Not known: ",
    ):
        assert expected in said
    assert ("FLASHINFER_CUDA_ARCH_LIST=12.0a" if facts else "--sampling-backend pytorch") in said


def test_a_narrow_pane_cuts_no_word_and_folds_commands_alone() -> None:
    sent = _COLOURS.sub("", on_a_terminal({}, columns=50)).replace("\r\n", "\n")
    longer = [line for line in sent.splitlines() if len(line) > 50]
    assert longer
    assert all(line.startswith("    ") for line in longer)
    assert "toolkit-too-old-for-arch" in sent


def test_places_are_links_where_the_terminal_shows_them() -> None:
    linked = on_a_terminal({"VTE_VERSION": "7600"})
    assert re.search(r"\x1b\]8;;file://[^\x1b]+/sglang\.log\x1b\\sglang\.log:1\x1b\]8;;\x1b\\", linked)
    assert "\x1b]8" in on_a_terminal({"FORCE_HYPERLINK": "1", "TMUX": "x"})
    for without in (
        {},
        {"VTE_VERSION": "4800"},
        {"VTE_VERSION": "7600", "TMUX": "x"},
        {"VTE_VERSION": "7600", "NO_COLOR": "1"},
    ):
        assert "\x1b]8" not in on_a_terminal(without)


def test_a_followed_log_is_told_of_until_it_is_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("INFO: up\n")
    told = tmp_path / "told"
    with told.open("wb") as out:
        process = subprocess.Popen(
            # whoever starts the tests in the background has an interrupt ignored, and children inherit that
            ["env", "--default-signal=INT", sys.executable, "-m", "gpuwhy", "diagnose", str(log), "--follow", "--format", "oneline"],
            stdout=out, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stderr is not None
        assert b"following" in process.stderr.readline()
        with log.open("ab") as file:
            file.write(Path(SEED).read_bytes())
        until(lambda: told.stat().st_size, "the failure is told")
        process.send_signal(signal.SIGINT)
        assert process.wait(AT_MOST) == 1
        assert process.stderr.read() == b""
    assert re.fullmatch(rf"{re.escape(str(log))}: likely toolkit-too-old-for-arch .*\n", told.read_text())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.log", "--follow"), "no SSH destination|name the unit"),
        (("./nowhere.log", "--follow"), "no such file|No such file"),
        (("local", "--follow"), "name the unit to follow"),
        (("docker:x", "--follow"), "only a log, standard input, or a unit"),
        ((SEED, "--log", SEED, "--follow"), "takes one WHERE"),
    ],
)
def test_what_cannot_be_followed_is_said(arguments: tuple[str, ...], said: str) -> None:
    done = gpuwhy("diagnose", *arguments)
    assert done.status == 2
    assert re.search(said, done.err)
    assert "Traceback" not in done.err
