"""Killed at any point, on a disk that fills up at any point: the unit's configuration is the old or the new one."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.applier.scratch import CURE, DROP_IN, FOLDER, VALUES, Scratch, plan, plan_of_two_files
from tests.applier.test_changing import REMEDIED, SETTLE, sha256
from tests.patience import AT_MOST, until

EARLIER = "[Service]\nEnvironment=ARCH_LIST=9.0\n"

Plan = Callable[[], dict[str, Any]]


def replacing() -> dict[str, Any]:
    return plan(before=sha256(EARLIER))


def prepare(scratch: Scratch, make: Plan) -> None:
    if make is replacing:
        scratch.write(DROP_IN, EARLIER)
        os.chmod(scratch.path(FOLDER), 0o755)


def effective(scratch: Scratch) -> str:
    """What systemd would read: ``old``, ``new``, or what else there is."""
    drop_ins = sorted(scratch.path(FOLDER).glob("*.conf")) if scratch.path(FOLDER).is_dir() else []
    texts = [each.read_text() for each in drop_ins]
    if texts in ([], [EARLIER]):
        return "old"
    if texts == [REMEDIED]:
        return "new"
    is_named = texts == [f"[Service]\nEnvironmentFile={VALUES}\n"]
    return "new" if is_named and CURE in (scratch.text(VALUES) or "") else f"lost: {texts}"


def told(scratch: Scratch) -> set[str]:
    """What the journal says that the configuration can be."""
    records = scratch.records()
    state = records[-1]["state"] if records else "prepared"
    if state in ("prepared", "undone"):
        return {"old"}
    if state in ("applied", "verified"):
        return {"new"}
    last = [step for step in records[-1]["steps"] if step["step"] == "write"][-1]
    if state == "applying":
        return {"waiting": {"old"}, "doing": {"old", "new"}, "done": {"new"}}[last["state"]]
    return {"old", "new"}


def check(scratch: Scratch, told_before: set[str] | None = None) -> None:
    assert effective(scratch) in ("old", "new")
    assert effective(scratch) in (told_before or told(scratch))


def recover(scratch: Scratch, before: dict[str, Any], make: Plan, *, is_finished: bool) -> None:
    """The next run finds what was left half done, and finishes it or takes it back; then all goes on as ever."""
    interrupted = scratch.ask(do="look")["interrupted"]
    if interrupted:
        answer = scratch.ask(do="apply", plan=make())
        assert answer["status"] == "interrupted"
        number = answer["record"]["id"]
        direction = interrupted[0]["state"]
        answer = scratch.ask(do="finish" if is_finished else "undo", id=number)
        assert answer["status"] == ("applied" if is_finished and direction == "applying" else "undone")
        check(scratch)
    if effective(scratch) == "old":
        assert scratch.tree() == before
        assert scratch.ask(do="apply", plan=make(), settle=SETTLE)["status"] == "applied"
    assert effective(scratch) == "new"
    assert scratch.ask(do="apply", plan=make())["status"] == "unchanged"
    assert scratch.ask(do="undo")["status"] == "undone"
    assert scratch.tree() == before


def ready(scratch: Scratch, make: Plan, is_undo: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The root as it is before the change, and the request that makes it, or that takes it back once it was made."""
    prepare(scratch, make)
    before = scratch.tree()
    request = {"do": "apply", "plan": make(), "settle": SETTLE}
    if is_undo:
        scratch.ask(**request)
    return before, {"do": "undo"} if is_undo else request


@cache
def calls(make: Plan, is_undo: bool) -> int:
    """At how many calls to the system such a run can be interrupted: learned from a rehearsal."""
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Scratch(Path(folder))
        _, request = ready(rehearsal, make, is_undo)
        return rehearsal.calls_of(**request)


def kill_and_recover(folder: Path, seed: int) -> None:
    """One kill, in an apply or an undo of one of the kinds of plan, chosen by ``seed``; and what comes after it."""
    chance = random.Random(seed)
    make = chance.choice([plan, plan_of_two_files, replacing])
    scratch = Scratch(folder)
    before, request = ready(scratch, make, is_undo := chance.random() < 0.5)
    point, most = chance.randint(1, calls(make, is_undo)), calls(make, is_undo)
    # the more time passes between two looks at the service, the fewer there are: the last calls need not come
    assert scratch.killed(point, **request) or point > 0.7 * most
    check(scratch)
    recover(scratch, before, make, is_finished=chance.random() < 0.5)


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_a_random_call_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    kill_and_recover(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_killed_at_each_of_many_calls_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    kill_and_recover(tmp_path, seed)


@pytest.mark.parametrize("milliseconds", [0, 40])
def test_killed_at_a_random_moment_nothing_is_lost(scratch: Scratch, milliseconds: int) -> None:
    before = scratch.tree()
    process = scratch.start({"do": "apply", "plan": plan(), "settle": SETTLE})
    assert process.stdout is not None
    process.stdout.readline()  # the first step was done: from here on it is chance
    time.sleep(milliseconds / 1000)
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
    process.communicate(timeout=AT_MOST)
    check(scratch)
    recover(scratch, before, plan, is_finished=bool(milliseconds % 2))


def test_a_lost_connection_does_not_leave_half_a_change(scratch: Scratch) -> None:
    process = scratch.start({"do": "apply", "plan": plan("[Service]\nEnvironment=A=1\n"), "settle": SETTLE})
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.kill()  # the process that the connection knows of; the one that works goes on without it
    process.wait(timeout=AT_MOST)
    until(lambda: scratch.records()[-1]["state"] == "undone", "it is undone")
    assert effective(scratch) == "old"


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_disk_that_fills_up_on_the_way_loses_nothing(scratch: Scratch, seed: int) -> None:
    chance = random.Random(seed)
    make = [plan, replacing, plan_of_two_files][seed % 3]
    before, request = ready(scratch, make, is_undo := seed >= 5)
    answer = scratch.on_a_disk_full_from(chance.randint(1, calls(make, is_undo)), **request)
    assert effective(scratch) in ("old", "new")
    if answer["status"] in ("refused", "failed"):
        assert "no space is left on the device" in answer["reason"]
    # once there is room again
    if any(record["state"] not in ("undone", "prepared") for record in scratch.records()):
        assert scratch.ask(do="undo")["status"] == "undone"
    assert effective(scratch) == "old"
    assert scratch.tree() == before
