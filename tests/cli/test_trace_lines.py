"""``gpuwhy trace --log FILE --lines``: which line of the source wrote each line of a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import Done, gpuwhy

GATE = """
class Gate:
    def __init__(self):
        try:
            probe()
        except Exception as e:
            logger.warning(f"Cannot tell the level: {e}.")
def check():
    raise RuntimeError("this machine is too old")
"""
LOG = """\
2026-11-29 10:04:20 WARNING Cannot tell the level: 0 is not supported.
2026-11-29 10:04:20 WARNING Cannot tell the level: 0 is not supported.
INFO 11-29 10:04:21 [gate.py:70] Cannot tell the level: 1 is not supported.
a line of another program
RuntimeError: this machine is too old
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    (site / "engine").mkdir(parents=True)
    (site / "engine-1.2.dist-info").mkdir()
    (site / "engine" / "__init__.py").write_text("")
    (site / "engine" / "gate.py").write_text(GATE)
    (tmp_path / "crash.log").write_text(LOG)
    return tmp_path


def trace(environment: Path, *more: str) -> Done:
    cache = {"XDG_CACHE_HOME": str(environment / "cache")}
    return gpuwhy(
        "trace", "--log", str(environment / "crash.log"), "--lines", "--venv", str(environment), *more, env=cache
    )


def test_each_line_with_its_place(environment: Path) -> None:
    done = trace(environment)
    assert done.status == 0
    shown = done.out.splitlines()
    assert shown[0].endswith("crash.log:1: Cannot tell the level: 0 is not supported.  (2 times)")
    assert shown[1] == (
        "    engine/gate.py:7 in Gate.__init__: warning; in the except of line 6, which goes on; {} is '0 is not supported'"
    )
    assert "    engine/gate.py:9 in check: raises RuntimeError" in shown
    assert "4 of 5 lines were written by engine 1.2 (2 texts); the others by something else" in shown
    assert "another program" not in done.out


def test_a_log_of_another_release_is_told(environment: Path) -> None:
    done = trace(environment)
    assert "The log was written by another release than engine 1.2: 1 of the 1 places" in done.out
    assert (
        "    line 3: [gate.py:70] Cannot tell the level: 1 is not supported.; that text is at engine/gate.py:7"
        in done.out
    )


def test_json(environment: Path) -> None:
    done = trace(environment, "--format", "json")
    places = json.loads(done.out)["places"]
    assert [origin["spot"]["line"] for origin in places["lines"][0]["origins"]] == [7]
    assert places["lines"][3]["origins"] == []
    assert places["fits"][0]["package"] == "engine"


def test_a_log_that_nothing_here_wrote(environment: Path) -> None:
    (environment / "crash.log").write_text("a line of another program\n")
    assert trace(environment).status == 1


def test_a_log_that_is_not_there(environment: Path) -> None:
    (environment / "crash.log").unlink()
    done = trace(environment)
    assert done.status == 2
    assert "crash.log" in done.err
