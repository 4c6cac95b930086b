"""Progress is one line that can be wiped, on a terminal that can, and nothing anywhere else."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
import time
from collections.abc import Callable

import pytest

from gpuwhy.cli import progress
from gpuwhy.cli.progress import can_overwrite, shown_progress
from gpuwhy.reports.columns import columns_of
from gpuwhy.snapshot.document import Probe


def shown(monkeypatch: pytest.MonkeyPatch, during: Callable[[], None], columns: int = 40, term: str = "xterm") -> str:
    """What a terminal of that width is sent on standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    monkeypatch.setenv("TERM", term)
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        during()
        stream.write("end")
        stream.flush()
        sent = b""
        while not sent.endswith(b"end"):
            sent += os.read(ours, 65536)
    os.close(ours)
    return sent.decode()[: -len("end")]


def probes(count: int) -> None:
    with shown_progress("主机" * 30) as on_probe:
        for _ in range(count):
            assert on_probe is not None
            on_probe(Probe("packages", "ok"))


def test_a_line_fits_the_pane_whatever_the_name_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, lambda: probes(2)).split("\r\x1b[2K")
    assert len(lines) == 4
    assert lines[1].startswith("主机")
    assert all(columns_of(line) < 40 for line in lines)
    assert lines[-1] == ""


def test_without_a_probe_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, lambda: probes(0)) == ""


def test_a_dumb_terminal_is_sent_nothing_that_it_would_print(monkeypatch: pytest.MonkeyPatch) -> None:
    def during() -> None:
        with shown_progress("host") as on_probe:
            assert on_probe is None
        assert not can_overwrite(sys.stderr)

    assert shown(monkeypatch, during, term="dumb") == ""


def test_a_long_search_says_that_it_goes_on_and_makes_room_for_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.02)

    def during() -> None:
        with progress.shown_wait("searching") as wipe:
            time.sleep(0.2)
            wipe()
            sys.stderr.write("answer\n")

    sent = shown(monkeypatch, during)
    assert sent == "\r\x1b[2Ksearching: 0 s\r\x1b[2Kanswer\r\n"


def test_a_short_search_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def during() -> None:
        with progress.shown_wait("searching") as wipe:
            wipe()

    assert shown(monkeypatch, during) == ""
