"""What the applier will not do, and that nothing is changed when it does not."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.applier.scratch import DROP_IN, FOLDER, HISTORY, UNIT, Scratch, plan
from tests.patience import AT_MOST

FOREIGN_USER = 54321


def as_link(scratch: Scratch) -> None:
    scratch.path("/srv").mkdir()
    scratch.path(FOLDER).symlink_to(scratch.path("/srv"))


def as_link_to_file(scratch: Scratch) -> None:
    scratch.path(FOLDER).mkdir()
    scratch.path(DROP_IN).symlink_to("/etc/passwd")


def as_file(scratch: Scratch) -> None:
    scratch.path(FOLDER).write_text("")


def of_somebody(scratch: Scratch) -> None:
    """Only root can give a folder away: to anybody else the applier takes itself for another user."""
    scratch.path(FOLDER).mkdir()
    if os.geteuid() == 0:
        os.chown(scratch.path(FOLDER), FOREIGN_USER, FOREIGN_USER)
    else:
        scratch.prelude = f"import os\nos.geteuid = lambda: {FOREIGN_USER}\n"


def for_everybody(scratch: Scratch) -> None:
    scratch.path(FOLDER).mkdir()
    os.chmod(scratch.path(FOLDER), 0o777)


def below_a_folder_for_a_group(scratch: Scratch) -> None:
    os.chmod(scratch.path("/etc/systemd"), 0o775)


def changed_since_the_preview(scratch: Scratch) -> None:
    scratch.write(DROP_IN, "[Service]\nEnvironment=ARCH_LIST=8.0\n")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (as_link, "is a symbolic link"),
        (as_link_to_file, "is a symbolic link (to /etc/passwd)"),
        (as_file, "is not a folder"),
        (of_somebody, "belongs to user "),
        (for_everybody, "can be written by others (mode 777)"),
        (below_a_folder_for_a_group, "/etc/systemd can be written by others"),
        (changed_since_the_preview, "was changed since the preview was made"),
    ],
)
def test_a_place_that_is_not_safe_is_refused_and_left_alone(
    scratch: Scratch, spoil: Callable[[Scratch], None], words: str
) -> None:
    spoil(scratch)
    before = scratch.tree()
    answer = scratch.ask(do="apply", plan=plan())
    assert answer["status"] == "refused"
    assert words in answer["reason"]
    assert answer["advice"] or spoil is as_file
    assert scratch.tree() == before
    assert scratch.systemctl_calls() == []
    assert not scratch.path("/var/lib/gpuwhy").exists()


@pytest.mark.parametrize("request_", [{"do": "undo"}, {"do": "finish", "id": 1}, {"do": "conclude", "id": 1}])
def test_where_nothing_was_changed_nothing_is_made_by_asking(scratch: Scratch, request_: dict[str, Any]) -> None:
    answer = scratch.ask(**request_)
    assert (answer["status"], answer["reason"]) == ("refused", "gpuwhy has changed nothing here")
    assert not scratch.path("/var/lib/gpuwhy").exists()


def with_path(path: str) -> dict[str, Any]:
    made = plan()
    made["steps"][1]["path"] = path
    return made


def with_content(content: str) -> dict[str, Any]:
    return plan(content)


def with_unit(unit: str) -> dict[str, Any]:
    return {**plan(), "unit": unit}


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (with_path("/etc/systemd/../shadow"), "no plain absolute path"),
        (with_path("relative/file"), "no plain absolute path"),
        (with_path("/file"), "nothing is changed there"),
        (with_path("/etc/a\nb/c"), "no plain absolute path"),
        (with_path(FOLDER), "the plan changes one path twice"),
        (
            with_content("[Service]\nEnvironment=HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n"),
            "looks like a secret",
        ),
        (with_unit("--all"), "is not the name of a unit"),
        (with_unit("*.service"), "is not the name of a unit"),
        (with_unit("a.service; reboot"), "is not the name of a unit"),
        ({"unit": "", "manager": "system", "steps": [{"step": "shell"}]}, "unknown kind"),
        ({"unit": "", "manager": "system", "steps": []}, "no steps"),
        ({"unit": "", "manager": "system", "steps": [{"step": "run", "argv": []}]}, "no list of words"),
        ({"steps": "nonsense"}, "no steps"),
        ({"manager": "system", "steps": [{"step": "write"}]}, "KeyError"),
    ],
)
def test_a_plan_that_is_not_one_is_refused(scratch: Scratch, made: dict[str, Any], words: str) -> None:
    before = scratch.tree()
    answer = scratch.ask(do="apply", plan=made)
    assert answer["status"] == "refused"
    assert words in answer["reason"]
    assert scratch.tree() == before


def test_an_old_file_with_a_secret_is_not_copied_into_the_journal(scratch: Scratch) -> None:
    secret = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    scratch.write(DROP_IN, f"[Service]\nEnvironment=HF_TOKEN={secret}\n")
    sha = scratch.ask(do="look", paths=[DROP_IN])["files"][DROP_IN]["sha256"]
    answer = scratch.ask(do="apply", plan=plan(before=sha))
    assert "would be copied into the journal" in answer["reason"]
    kept = [path.read_text() for path in scratch.path(HISTORY).rglob("*") if path.is_file()]
    assert not any(secret in text for text in kept)


def test_an_old_file_with_a_secret_is_not_shown(scratch: Scratch) -> None:
    scratch.write(DROP_IN, "[Service]\nEnvironment=HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n")
    seen = scratch.ask(do="look", paths=[DROP_IN])["files"][DROP_IN]
    assert (seen["has_secret"], seen["text"]) == (True, "")


def test_two_at_once_give_one_change_and_one_clear_error(scratch: Scratch) -> None:
    scratch.ask(do="apply", plan=plan())
    with (scratch.path(HISTORY) / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = scratch.ask(do="undo")
        assert answer["status"] == "refused"
        assert "another gpuwhy is changing this target (process " in answer["reason"]
        assert scratch.ask(do="history")["status"] == "ok"
        assert scratch.ask(do="look", paths=[DROP_IN])["status"] == "ok"
    assert scratch.ask(do="undo")["status"] == "undone"


def test_of_several_at_the_same_moment_one_makes_the_change(scratch: Scratch) -> None:
    racing = [scratch.start({"do": "apply", "plan": plan(), "settle": {"grace": 1, "deadline": 5}}) for _ in range(4)]
    outputs = [process.communicate(timeout=AT_MOST)[0] for process in racing]
    ends = [json.loads(output.splitlines()[-1])["end"]["status"] for output in outputs]
    assert sorted(set(ends)) in (["applied"], ["applied", "refused"], ["applied", "unchanged"], ["applied", "refused", "unchanged"])  # fmt: skip
    assert ends.count("applied") == 1
    assert [record["state"] for record in scratch.records()] == ["applied"]


def test_looking_changes_nothing_and_tells_what_stands_in_the_way(scratch: Scratch) -> None:
    as_link(scratch)
    before = {**scratch.tree()}
    seen = scratch.ask(do="look", paths=[DROP_IN, "/etc/systemd/system/serve.service"], unit=UNIT)
    assert "is a symbolic link" in seen["files"][DROP_IN]["refused"]["reason"]
    assert seen["files"]["/etc/systemd/system/serve.service"]["is"] == "file"
    assert seen["exec_start"] == {
        "status": "ok",
        "value": "/opt/serve --port 1",
        "path": "/etc/systemd/system/serve.service",
    }
    assert seen["unit"]["ActiveState"] == "failed"
    assert scratch.tree() == before
    assert not scratch.path("/var/lib/gpuwhy").exists()


def test_a_record_that_cannot_be_read_does_not_hide_the_others(scratch: Scratch) -> None:
    scratch.ask(do="apply", plan=plan())
    (Path(scratch.path(HISTORY)) / "2.json").write_text("{")
    assert [record["state"] for record in scratch.records()] == ["applied", "unreadable"]
    assert scratch.ask(do="undo", id=2)["status"] == "refused"
    assert scratch.ask(do="undo", id=1)["status"] == "undone"
