"""A change made, found in place, and taken back; and what is journalled of it."""

from __future__ import annotations

import hashlib
import json
import os
import stat

import pytest
from tests.applier.scratch import CURE, DROP_IN, FOLDER, HISTORY, UNIT, VALUES, Scratch, plan, plan_of_two_files
from tests.collector.conftest import interpreters

from gpuwhy.applier.services import grace_for

SETTLE = {"grace": 0.3, "deadline": 60}
REMEDIED = f'[Service]\nEnvironment="{CURE}"\n'


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_change_is_what_the_plan_says_and_its_undo_leaves_no_trace(scratch: Scratch) -> None:
    before = scratch.tree()
    answer = scratch.ask(do="apply", plan=plan(), settle=SETTLE)
    assert answer["status"] == "applied"
    assert answer["stability"]["is_stable"]
    assert scratch.text(DROP_IN) == REMEDIED
    assert stat.S_IMODE(scratch.path(DROP_IN).stat().st_mode) == 0o644
    assert set(scratch.tree()) - set(before) == {FOLDER, DROP_IN}
    assert [call.split()[0] for call in scratch.systemctl_calls()] == ["daemon-reload", "reset-failed", "--no-block"]

    assert scratch.ask(do="undo")["status"] == "undone"
    assert scratch.tree() == before
    assert scratch.systemctl_calls()[-1] == f"--no-block restart -- {UNIT}"


@pytest.mark.parametrize("python", interpreters())
def test_every_python_at_hand_makes_the_change(scratch: Scratch, python: str) -> None:
    scratch.python = python
    before = scratch.tree()
    assert scratch.ask(do="apply", plan=plan(), settle=SETTLE)["status"] == "applied"
    assert scratch.ask(do="undo")["status"] == "undone"
    assert scratch.tree() == before


@pytest.mark.parametrize(
    ("began", "ended", "grace"), [("0", "0", 5), ("1000000", "9000000", 12), ("1000000", "9000000000000", 60)]
)
def test_a_service_is_watched_for_longer_than_it_lived(began: str, ended: str, grace: float) -> None:
    life = {"ExecMainStartTimestampMonotonic": began, "ExecMainExitTimestampMonotonic": ended}
    assert grace_for(life) == grace


def test_applied_twice_nothing_changes_the_second_time(scratch: Scratch) -> None:
    scratch.ask(do="apply", plan=plan(), settle=SETTLE)
    after, inode = scratch.tree(), scratch.path(DROP_IN).stat().st_ino
    scratch.systemctl_calls()
    assert scratch.ask(do="apply", plan=plan(), settle=SETTLE)["status"] == "unchanged"
    assert scratch.tree() == after
    assert scratch.path(DROP_IN).stat().st_ino == inode
    assert scratch.systemctl_calls() == []
    assert len(scratch.records()) == 1


def test_a_service_that_does_not_get_well_is_rolled_back_by_itself(scratch: Scratch) -> None:
    before = scratch.tree()
    answer = scratch.ask(do="apply", plan=plan("[Service]\nEnvironment=ARCH_LIST=9.0\n"), settle=SETTLE)
    assert answer["status"] == "undone"
    assert "is failed" in answer["reason"]
    assert scratch.tree() == before


def test_a_service_that_does_not_get_well_keeps_the_change_when_told_to(scratch: Scratch) -> None:
    answer = scratch.ask(
        do="apply", plan=plan("[Service]\nEnvironment=ARCH_LIST=9.0\n"), settle={**SETTLE, "keep": True}
    )
    assert answer["status"] == "applied"
    assert not answer["stability"]["is_stable"]
    assert scratch.text(DROP_IN) is not None


def test_a_service_that_was_off_is_off_again_after_the_undo(scratch: Scratch) -> None:
    scratch.systemctl("stop", UNIT)
    scratch.ask(do="apply", plan=plan(), settle=SETTLE)
    scratch.systemctl_calls()
    scratch.ask(do="undo")
    assert scratch.systemctl_calls()[-1] == f"--no-block stop -- {UNIT}"


def test_an_earlier_drop_in_of_ours_is_replaced_and_comes_back(scratch: Scratch) -> None:
    earlier = "[Service]\nEnvironment=ARCH_LIST=9.0\n"
    scratch.write(DROP_IN, earlier)
    os.chmod(scratch.path(DROP_IN), 0o640)
    scratch.ask(do="apply", plan=plan(before=sha256(earlier)), settle=SETTLE)
    assert scratch.text(DROP_IN) == REMEDIED
    scratch.ask(do="undo")
    assert scratch.text(DROP_IN) == earlier
    assert stat.S_IMODE(scratch.path(DROP_IN).stat().st_mode) == 0o640


def test_changes_are_undone_in_the_order_that_their_files_allow(scratch: Scratch) -> None:
    scratch.ask(do="apply", plan=plan("[Service]\nEnvironment=A=1\n"))
    scratch.ask(do="apply", plan=plan(before=sha256("[Service]\nEnvironment=A=1\n")))
    refused = scratch.ask(do="undo", id=1)
    assert (refused["status"], refused["advice"]) == ("refused", "Undo change 2 first.")
    assert scratch.ask(do="undo")["record"]["id"] == 2
    assert scratch.text(DROP_IN) == "[Service]\nEnvironment=A=1\n"
    assert scratch.ask(do="undo")["record"]["id"] == 1
    assert scratch.ask(do="undo")["status"] == "refused"
    assert scratch.ask(do="undo", id=1)["status"] == "unchanged"


def test_a_file_changed_by_hand_is_not_undone_without_force_and_then_kept(scratch: Scratch) -> None:
    scratch.ask(do="apply", plan=plan_of_two_files())
    edited = f"[Service]\nEnvironmentFile={VALUES}\nEnvironment=B=2\n"
    scratch.write(DROP_IN, edited)
    tree = scratch.tree()
    refused = scratch.ask(do="undo")
    assert refused["status"] == "refused"
    assert "+Environment=B=2" in refused["detail"]["diff"]
    assert scratch.tree() == tree
    assert scratch.ask(do="undo", force=True)["status"] == "undone"
    assert scratch.text(DROP_IN) is None
    assert scratch.text(VALUES) is None
    assert scratch.text(DROP_IN + ".edited") == edited


def test_what_was_moved_aside_comes_back_and_what_was_made_meanwhile_stays(scratch: Scratch) -> None:
    cache, aside = "/var/cache/jit", "/var/cache/jit.gpuwhy-aside"
    scratch.write(cache + "/old.so", "old")
    made = {"unit": "", "manager": "system", "steps": [{"step": "move-aside", "path": cache, "to": aside}]}
    assert scratch.ask(do="apply", plan=made)["status"] == "applied"
    assert scratch.text(aside + "/old.so") == "old"
    scratch.write(cache + "/new.so", "new")
    assert scratch.ask(do="undo")["status"] == "undone"
    assert scratch.text(cache + "/old.so") == "old"
    assert scratch.text(aside + ".after/new.so") == "new"


def test_a_command_is_run_as_its_words_and_taken_back_by_its_own_undo(scratch: Scratch) -> None:
    scratch.write("/srv/a", "")
    touched = str(scratch.path("/srv/b; touch c"))
    made = {
        "unit": "",
        "manager": "system",
        "steps": [{"step": "run", "argv": ["touch", touched], "undo": ["rm", touched]}],
    }
    assert scratch.ask(do="apply", plan=made)["status"] == "applied"
    assert sorted(os.listdir(scratch.path("/srv"))) == ["a", "b; touch c"]
    scratch.ask(do="undo")
    assert os.listdir(scratch.path("/srv")) == ["a"]


def test_a_command_that_fails_takes_the_steps_before_it_back(scratch: Scratch) -> None:
    before = scratch.tree()
    made = plan()
    made["steps"].append({"step": "run", "argv": ["sh", "-c", "echo the disk is on fire; exit 3"]})
    answer = scratch.ask(do="apply", plan=made, settle=SETTLE)
    assert answer["status"] == "undone"
    assert "status 3: the disk is on fire" in answer["reason"]
    assert scratch.tree() == before


def test_the_journal_is_private_and_tells_states_with_times(scratch: Scratch) -> None:
    scratch.ask(do="apply", plan=plan(), settle=SETTLE)
    scratch.ask(do="conclude", id=1, is_verified=True, verification={"rungs": [{"letter": "e"}]})
    file = scratch.path(HISTORY) / "1.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    record = json.loads(file.read_text())
    assert [each["state"] for each in record["states"]] == ["prepared", "applying", "applied", "verified"]
    assert [step["state"] for step in record["steps"]] == ["done"] * 5
    assert record["steps"][1]["replaces"] == {"is": "absent"}
    assert record["verification"] == {"rungs": [{"letter": "e"}]}
    (shown,) = scratch.records()
    assert "content" not in shown["steps"][1]
