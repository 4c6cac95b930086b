"""``gpuwhy fix``, ``undo`` and ``history``: the seed incident's diagnosis, and the applier's own process on a scratch root."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result
from scripts.make_schema import FIX_SCHEMA_FILE, fix_schema_text
from tests.applier.scratch import CURE, HISTORY, Scratch, plan
from tests.cli.running import LOGS, gpuwhy

from gpuwhy.cli.fix import command as fix
from gpuwhy.cli.history import command as history
from gpuwhy.cli.show import command as show
from gpuwhy.cli.undo import command as undo
from gpuwhy.cli.undo import place_and_number
from gpuwhy.investigate import diagnose_log
from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.remedies.applying.site import Site
from gpuwhy.reports import fix as reports
from gpuwhy.targets import HostTarget

UNIT = "serve.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/50-gpuwhy-FLASHINFER_CUDA_ARCH_LIST.conf"
QUICKLY = ("--yes", "--grace", "0.3", "--start", "60")


@pytest.fixture(scope="module")
def seed() -> Diagnosis:
    """The seed incident, as if it had been this machine's."""
    diagnosis = diagnose_log((LOGS / "sglang.log").read_bytes(), "local")
    incident = msgspec.structs.replace(diagnosis.incident, unit=UNIT)
    return msgspec.structs.replace(diagnosis, incident=incident)


@pytest.fixture
def scratch(tmp_path: Path, seed: Diagnosis, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    """A scratch root in the place of this machine's own, with the seed incident's service in it."""
    made = Scratch(tmp_path)
    (made.systemd / "cure").write_text("FLASHINFER_CUDA_ARCH_LIST=12.0a")
    monkeypatch.setenv("PATH", f"{made.systemd}/bin:{os.environ['PATH']}")
    real = Site.__init__

    def on_scratch(site: Site, target: HostTarget) -> None:
        real(site, target, root=str(made.root))

    monkeypatch.setattr(Site, "__init__", on_scratch)
    # nothing answers on the port that the service names: it is not waited for
    monkeypatch.setattr("gpuwhy.remedies.verifying.service.is_server", lambda _: False)
    monkeypatch.setattr("gpuwhy.remedies.verifying.service.SHORT", 0.2)
    monkeypatch.setattr("gpuwhy.investigate.target.investigate", lambda *_, **__: seed)
    return made


def run(command: Any, *arguments: str) -> Result:
    """A command as a script runs it: nobody is there to answer."""
    return CliRunner().invoke(command, list(arguments), standalone_mode=False)


def number_of(name: str, value: str) -> str:
    document = json.loads(run(fix, "local", "--format", "json").stdout)
    return str(
        next(each["number"] for each in document["remedies"] if (each["name"], each.get("value")) == (name, value))
    )


@pytest.fixture
def number(scratch: Scratch) -> str:
    return number_of("FLASHINFER_CUDA_ARCH_LIST", "12.0a")


def test_the_numbers_are_those_of_the_report(scratch: Scratch, seed: Diagnosis) -> None:
    from gpuwhy.remedies import prescribe

    document = json.loads(run(fix, "local", "--format", "json").stdout)
    reported = prescribe(seed).findings[0].remedies
    assert [(each["number"], each["kind"], each["name"]) for each in document["remedies"]] == [
        (number, remedy.kind, remedy.name) for number, remedy in enumerate(reported, 1)
    ]


def test_without_apply_nothing_changes(scratch: Scratch, number: str) -> None:
    before = scratch.tree()
    done = run(fix, "local", "--remedy", number)
    assert done.return_value == 1
    assert f"+++ {DROP_IN}" in done.stdout
    assert '+Environment="FLASHINFER_CUDA_ARCH_LIST=12.0a"' in done.stdout
    assert f"Restarted: {UNIT}, nothing else." in done.stdout
    assert f"gpuwhy fix local --unit {UNIT} --remedy FLASHINFER_CUDA_ARCH_LIST=12.0a --apply" in done.stdout
    assert scratch.tree() == before
    assert scratch.systemctl_calls() == []
    assert not scratch.path("/var/lib/gpuwhy").exists()


def test_a_remedy_is_known_by_its_name_too(scratch: Scratch) -> None:
    done = run(fix, "local", "--remedy", "FLASHINFER_CUDA_ARCH_LIST=12.0a", "--apply", *QUICKLY)
    assert done.return_value == 0, done.output
    assert scratch.text(DROP_IN) is not None
    gone = run(fix, "local", "--remedy", "NCCL_DEBUG=INFO", "--apply", *QUICKLY)
    assert gone.return_value == 2


def test_without_a_remedy_they_are_listed_and_nobody_is_asked(scratch: Scratch) -> None:
    done = run(fix, "local")
    assert done.return_value == 1
    assert ". env FLASHINFER_CUDA_ARCH_LIST=12.0a" in done.stdout
    assert "[explained only]" in done.stdout
    assert scratch.systemctl_calls() == []


def test_applied_the_service_runs_and_undone_it_fails_again(scratch: Scratch, number: str) -> None:
    before = scratch.tree()
    done = run(fix, "local", "--remedy", number, "--apply", *QUICKLY)
    assert done.return_value == 0, done.output
    assert "reached rung e: active" in done.stdout
    assert "unproven: facts" in done.stdout
    assert "gpuwhy undo local 1\n" in done.stdout
    assert scratch.text(DROP_IN) == '[Service]\nEnvironment="FLASHINFER_CUDA_ARCH_LIST=12.0a"\n'
    listed = run(history, "local")
    assert "verified" in listed.stdout
    assert "FLASHINFER_CUDA_ARCH_LIST=12.0a" in listed.stdout
    again = run(fix, "local", "--remedy", number, "--apply", *QUICKLY)
    assert again.return_value == 0
    assert "in place already" in again.stdout
    taken_back = run(undo, "1")
    assert taken_back.return_value == 0
    assert "Undone: change 1" in taken_back.stdout
    assert scratch.tree() == before
    assert run(undo).return_value == 3


def test_a_remedy_that_does_not_help_is_rolled_back_and_the_next_is_named(scratch: Scratch, number: str) -> None:
    (scratch.systemd / "cure").write_text("something else")
    before = scratch.tree()
    done = run(fix, "local", "--remedy", number, "--apply", *QUICKLY)
    assert done.return_value == 1
    assert "Rolled back" in done.stdout
    assert f"The next one is remedy {int(number) + 1}" in done.stdout
    assert scratch.tree() == before


def test_kept_though_it_does_not_help(scratch: Scratch, number: str) -> None:
    (scratch.systemd / "cure").write_text("something else")
    done = run(fix, "local", "--remedy", number, "--apply", "--keep", *QUICKLY)
    assert done.return_value == 1
    assert "kept, though it did not help" in done.stdout
    assert scratch.text(DROP_IN) is not None


def test_the_document_tells_what_came_of_it(scratch: Scratch, number: str) -> None:
    done = run(fix, "local", "--remedy", number, "--apply", "--format", "json", *QUICKLY)
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(FIX_SCHEMA_FILE.read_text()))
    assert document["cause"] == "toolkit-too-old-for-arch"
    chosen = document["remedies"][document["chosen"] - 1]
    assert chosen["plan"]["files"][0]["path"] == DROP_IN
    assert chosen["plan"]["restarts"] == UNIT
    assert document["result"]["status"] == "verified"
    assert document["result"]["verification"]["reached"] == "e: active"
    (change,) = json.loads(run(history, "local", "--format", "json").stdout)["changes"]
    assert (change["id"], change["state"], change["remedy"]["cause"]) == (1, "verified", "toolkit-too-old-for-arch")
    assert json.loads(run(undo, "--format", "json").stdout)["outcome"]["status"] == "undone"


def shown(document: str, folder: Path, *more: str) -> str:
    """What ``gpuwhy show`` makes of a saved document."""
    (folder / "saved.json").write_text(document)
    return run(show, str(folder / "saved.json"), *more).stdout


def test_saved_documents_are_shown_again(scratch: Scratch, number: str, tmp_path: Path) -> None:
    listed = run(fix, "local", "--format", "json").stdout
    told = shown(listed, tmp_path)
    assert f"{UNIT} on local: proven" in told or f"{UNIT} on local: likely" in told
    assert ". env FLASHINFER_CUDA_ARCH_LIST=12.0a" in told
    previewed = run(fix, "local", "--remedy", number, "--format", "json").stdout
    for line in (
        f"+++ {DROP_IN}",
        '+Environment="FLASHINFER_CUDA_ARCH_LIST=12.0a"',
        f"Restarted: {UNIT}, nothing else.",
    ):
        assert line in shown(previewed, tmp_path)
    applied = run(fix, "local", "--remedy", number, "--apply", "--format", "json", *QUICKLY).stdout
    told = shown(applied, tmp_path)
    assert "Applied, and it holds" in told
    assert "reached rung e: active" in told
    assert "gpuwhy undo local 1" in told
    made = run(history, "local", "--format", "json").stdout
    assert shown(made, tmp_path) == run(history, "local").stdout
    taken_back = run(undo, "--format", "json").stdout
    assert "Undone: change 1" in shown(taken_back, tmp_path)
    for document in (listed, previewed, applied, made, taken_back):
        assert json.loads(shown(document, tmp_path, "--format", "json")) == json.loads(document)
    refused = run(show, str(tmp_path / "saved.json"), "--format", "junit")
    assert refused.return_value == 2
    assert "choose of text, json" in refused.output


def test_a_trial_that_refuted_a_remedy_is_shown_again(scratch: Scratch, number: str, tmp_path: Path) -> None:
    (scratch.systemd / "cure").write_text("something else")
    told = shown(run(fix, "local", "--remedy", number, "--apply", "--format", "json", *QUICKLY).stdout, tmp_path)
    assert "Rolled back" in told
    assert "failed at rung" in told


def test_the_published_schema_is_that_of_the_types() -> None:
    assert FIX_SCHEMA_FILE.read_text() == fix_schema_text(), "run `make schema`"


def test_what_is_only_explained_says_why_and_changes_nothing(scratch: Scratch) -> None:
    document = json.loads(run(fix, "local", "--format", "json").stdout)
    number = next(str(each["number"]) for each in document["remedies"] if each["is_explained_only"])
    before = scratch.tree()
    done = run(fix, "local", "--remedy", number, "--apply", "--yes")
    assert done.return_value == 1
    assert f"Remedy {number} is not applied by gpuwhy" in done.stdout
    assert scratch.tree() == before


def test_an_interrupted_change_is_found_and_finished_or_undone_before_another(scratch: Scratch, number: str) -> None:
    left = scratch.interrupt(plan())
    told = run(fix, "local", "--remedy", number, "--apply", "--yes")
    assert told.return_value == 3
    assert f"Change {left['id']} ({CURE}) was interrupted" in told.stdout
    assert f"gpuwhy fix local --finish {left['id']} --apply" in told.stdout
    assert f"gpuwhy undo local {left['id']}" in told.stdout
    finished = run(fix, "local", "--finish", str(left["id"]), "--apply", "--yes", "--grace", "0.2", "--keep")
    assert finished.return_value == 1  # its value does not cure this service, and it was kept
    assert "is in force" in finished.stdout
    assert run(undo).return_value == 0


def test_a_file_changed_by_hand_is_shown_and_needs_force(scratch: Scratch, number: str) -> None:
    run(fix, "local", "--remedy", number, "--apply", *QUICKLY)
    scratch.write(DROP_IN, "[Service]\nEnvironment=A=\x1b[31m1\n")
    refused = run(undo, "local", "1")
    assert refused.return_value == 3
    assert "was changed by hand" in " ".join(refused.stdout.split())
    assert "+Environment=A=\\x1b[31m1" in refused.stdout
    assert run(undo, "local", "1", "--force").return_value == 0
    assert scratch.text(DROP_IN) is None


@pytest.mark.parametrize("arguments", [("--apply",), ("--remedy", "99"), ("--finish", "1")])
def test_arguments_that_make_no_sense_are_named(scratch: Scratch, arguments: tuple[str, ...]) -> None:
    done = run(fix, "local", *arguments)
    assert done.return_value == 2
    assert not scratch.path(HISTORY).exists()


def test_a_log_cannot_be_fixed() -> None:
    done = gpuwhy("fix", str(LOGS / "sglang.log"))
    assert done.status == 2
    assert "only a live place can be changed" in done.err
    assert gpuwhy("undo", "a", "b").status == 2


def test_a_place_and_a_change_are_told_apart() -> None:
    assert place_and_number(()) == ("local", None)
    assert place_and_number(("3",)) == ("local", 3)
    assert place_and_number(("root@host",)) == ("root@host", None)
    assert place_and_number(("root@host", "12")) == ("root@host", 12)


@pytest.fixture
def attended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person at a terminal; what they type comes from the test."""
    monkeypatch.setattr("gpuwhy.cli.changing.is_attended", lambda: True)
    monkeypatch.setattr("gpuwhy.cli.fix.is_attended", lambda: True)
    monkeypatch.setattr("gpuwhy.cli.undo.is_attended", lambda: True)


def typed(command: Any, text: str, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), input=text, standalone_mode=False)


@pytest.mark.usefixtures("attended")
def test_a_person_is_asked_which_remedy_and_whether(scratch: Scratch) -> None:
    number = number_of("FLASHINFER_CUDA_ARCH_LIST", "12.0a")
    before = scratch.tree()
    declined = typed(fix, f"99\n{number}\nn\n", "local", "--apply")
    assert declined.return_value == 1
    assert "Nothing was changed" in declined.stdout
    assert scratch.tree() == before
    assert typed(fix, "\n", "local").return_value == 1
    agreed = typed(fix, f"{number}\ny\n", "local", "--apply", "--grace", "0.3", "--start", "60")
    assert agreed.return_value == 0, agreed.output
    assert typed(undo, "n\n").return_value == 0
    assert scratch.text(DROP_IN) is not None
    undone = typed(undo, "y\n")
    assert "Undo change 1 (FLASHINFER_CUDA_ARCH_LIST=12.0a) of serve.service?" in undone.stdout
    assert scratch.tree() == before


@pytest.mark.usefixtures("attended")
def test_a_person_is_offered_to_undo_what_was_interrupted(scratch: Scratch, number: str) -> None:
    scratch.interrupt(plan())
    done = typed(fix, "undo\ny\n", "local", "--remedy", number, "--apply", "--grace", "0.3", "--start", "60")
    assert done.return_value == 0, done.output
    assert "Undone: change" in done.stdout
    assert scratch.text(DROP_IN) is not None


def test_the_command_that_goes_on_names_what_was_diagnosed() -> None:
    crashed = diagnose_log((LOGS / "seed_crash.log").read_bytes(), "x")
    incident = msgspec.structs.replace(crashed.incident, unit="sglang.service")
    for where, via, expected in (
        ("root@gpu", "", "gpuwhy fix root@gpu --unit sglang.service --remedy 2 --apply"),
        ("docker:vllm", "", "gpuwhy fix docker:vllm --unit sglang.service --remedy 2 --apply"),
        ("docker:vllm", "root@gpu", "gpuwhy fix --via root@gpu docker:vllm --unit sglang.service --remedy 2 --apply"),
    ):
        told = msgspec.structs.replace(crashed, where=where, incident=incident)
        assert [row.text for row in reports.how_to_go_on(told, "2", via)][-1] == expected
