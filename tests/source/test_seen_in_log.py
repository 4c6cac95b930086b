"""Lines of the log are tied to the handler that wrote them, and to the raise that it hid."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import gpuwhy
from tests.source.asking import cache, package

from gpuwhy.logs import read_bytes
from gpuwhy.source import Trace, tracing
from gpuwhy.source.asking import exceptions_of
from gpuwhy.source.seen_in_log import seen_in
from gpuwhy.source.tracing import Question, trace

CORE = """\
import logging

LEVELS = set()


def probe(version):
    if version < 12:
        raise RuntimeError("needs version 12, has " + str(version))
    if version > 99:
        raise RuntimeError("no such version: " + str(version))
    return version


try:
    LEVELS.add(probe(VERSION))
except Exception as error:
    logging.warning("Failed to probe the levels: %s", error)


def check():
    if not LEVELS:
        raise RuntimeError("no level is left")
"""
LOG = """\
Failed to probe the levels: needs version 12, has 11
Failed to probe the levels: something else
Failed to probe the levels: needs version 12, has 11
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/pkg/core.py", line 22, in check
    raise RuntimeError("no level is left")
RuntimeError: no level is left
"""


def test_a_line_of_the_log_leads_to_the_raise_that_was_swallowed() -> None:
    log = read_bytes(LOG.encode(), "crash.log")
    (raised,) = exceptions_of(log)
    answer = seen_in(trace(package({"__init__.py": "", "core.py": CORE}), Question(raised=raised), cache()), [log])
    (text,) = [text for swallow in answer.swallowed for text in swallow.logs]
    told = [(each.log, each.line, each.times, each.raised_at.line if each.raised_at else 0) for each in text.seen]
    assert told == [("crash.log", 1, 2, 8), ("crash.log", 2, 1, 0)]


def test_the_command_shows_it(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "core.py").write_text(CORE)
    (tmp_path / "crash.log").write_text(LOG)
    done = gpuwhy("trace", "--log", str(tmp_path / "crash.log"), "--source", str(tmp_path), "--follow", "pkg")
    assert done.status == 0, done.err
    assert f"in the log: {tmp_path}/crash.log:1 (2 times) Failed to probe the levels: needs version 12, has 11   raised at pkg/core.py:8" in done.out  # fmt: skip


def test_what_is_told_first_is_told_again_until_there_is_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "PATIENCE", 0.0)
    there = package({"__init__.py": "", "core.py": CORE})
    told: list[Trace] = []
    answer = trace(there, Question(symbol="pkg.core:check"), cache(), told.append)
    first, since = told
    assert first.guard == since.guard == answer.guard
    assert (first.swallowed, first.users) == ((), ())
    assert since.swallowed or since.users
