"""What runs in a room: in the service's interpreter, with the change, within limits, and nothing of it is left."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.patience import AT_MOST

from gpuwhy.applier.refusing import Refused
from gpuwhy.verifier import guarding
from gpuwhy.verifier.bundle import program
from gpuwhy.verifier.room import Room
from gpuwhy.verifier.service import Service

GATE = """
import os, time
def check():
    if os.environ.get("ARCHS") != "12.0a":
        raise RuntimeError("no such architecture")
    return sorted(os.environ.get("FLASHINFER_WORKSPACE_BASE", ""))[:1]
def grow():
    return len(bytearray(1 << 30))
def wait():
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "613.5")
    time.sleep(60)
def crash():
    os.abort()
def where():
    return os.getcwd()
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service whose interpreter finds the module `gate`; trials go below a folder of the test's."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "gate.py").write_text(GATE)
    (tmp_path / "trials").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "trials"))
    made = Service({"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "modules")}, sys.executable)
    monkeypatch.setattr(guarding, "service_of", lambda request: made)
    return made


def commands() -> list[bytes]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            found.append(each.read_bytes())
    return found


def called(name: str) -> dict[str, Any]:
    return {"act": "call", "module": "gate", "names": [name], "arguments": [], "keywords": {}, "is_call": True}


def test_the_same_call_runs_with_the_change_and_without_it(service: Service, tmp_path: Path) -> None:
    call = {key: value for key, value in called("check").items() if key != "act"}
    answer = guarding.guard({"variables": {"ARCHS": "12.0a"}, "call": call, "seconds": 30})
    assert answer["without"]["status"] == "raised"
    assert (answer["without"]["type"], answer["without"]["message"]) == ("RuntimeError", "no such architecture")
    assert answer["with"]["status"] == "returned"
    assert list((tmp_path / "trials").iterdir()) == []


def test_what_takes_too_long_is_ended_with_all_that_it_started(service: Service, tmp_path: Path) -> None:
    with Room(service, 1 << 33) as room:
        ended = room.start("wait", called("wait"), {}).ended(time.monotonic() + 2)
    assert ended["status"] == "timed out"
    assert b"sleep\x00613.5\x00" not in commands()
    assert list((tmp_path / "trials").iterdir()) == []


def test_memory_is_limited_and_a_crash_is_told(service: Service) -> None:
    with Room(service, 200 << 20) as room:
        until = time.monotonic() + AT_MOST
        assert room.start("grow", called("grow"), {}).ended(until)["type"] == "MemoryError"
        crashed = room.start("crash", called("crash"), {}).ended(until)
        assert (crashed["status"], crashed["signal"]) == ("died", 6)
        where = room.start("where", called("where"), {}).ended(until)
        assert where["value"].startswith(f"'{room.path}")


def test_an_interpreter_that_cannot_be_started_is_refused(tmp_path: Path) -> None:
    with (
        Room(Service({}, str(tmp_path / "none")), 1 << 30) as room,
        pytest.raises(Refused, match="could not be started"),
    ):
        room.start("x", called("check"), {})


def test_the_answer_of_a_trial_may_be_no_link_to_another_file(service: Service, tmp_path: Path) -> None:
    """A process of the service's user may put anything into its folder, and root reads it."""
    with Room(service, 1 << 33) as room:
        trial = room.start("where", called("where"), {})
        trial.process.wait(timeout=AT_MOST)
        answer = Path(trial.folder) / "answer.json"
        (tmp_path / "secret").write_text('{"status": "returned", "value": "hf_secret"}')
        answer.unlink()
        answer.symlink_to(tmp_path / "secret")
        assert trial.ended(time.monotonic() + 1)["status"] == "died"


def test_the_program_that_is_sent_holds_all_it_needs() -> None:
    compile(program(), "verifier", "exec")
    for name in (
        "gpuwhy.verifier.within",
        "gpuwhy.collector.unit",
        "gpuwhy.binaries.examining",
        "gpuwhy.applier.services",
    ):
        assert f"{name!r}:" in program()
