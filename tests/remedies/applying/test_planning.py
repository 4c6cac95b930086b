"""From a remedy to the files and commands that carry it out, or to the reason why only a person does."""

from __future__ import annotations

import msgspec
import pytest
from tests.applier.scratch import FOLDER, UNIT, Scratch

from gpuwhy.model.remedy import KINDS, Remedy
from gpuwhy.remedies import Setting, written_for
from gpuwhy.remedies.applying.plan import NotApplied, Plan
from gpuwhy.remedies.applying.planning import NEVER, plan_for
from gpuwhy.remedies.applying.site import Site

SETTING = Setting(kind="systemd", unit=UNIT, exec_start="/opt/serve --port 1", fragment=f"/etc/systemd/system/{UNIT}")
EXEC_START = f"{FOLDER}/50-gpuwhy-exec-start.conf"


def env(name: str, value: str) -> Remedy:
    return Remedy(kind="env", name=name, value=value, summary="")


def flag(name: str, value: str = "") -> Remedy:
    return Remedy(kind="flag", name=name, value=value, summary="")


def plan(remedy: Remedy, site: Site, setting: Setting = SETTING) -> Plan:
    found = plan_for(written_for(remedy, setting), setting, site)
    assert isinstance(found, Plan), found
    return found


def refusal(remedy: Remedy, site: Site, setting: Setting = SETTING) -> str:
    found = plan_for(written_for(remedy, setting), setting, site)
    assert isinstance(found, NotApplied), found
    return found.why


def start_command(scratch: Scratch, *lines: str) -> None:
    scratch.write(f"/etc/systemd/system/{UNIT}", "[Service]\n" + "\n".join(lines) + "\n")


def test_a_variable_is_one_file_shown_as_a_diff_and_three_commands(site: Site) -> None:
    made = plan(env("ARCH_LIST", "12.0a"), site)
    (change,) = made.files
    assert change.diff() == [
        "--- /dev/null",
        f"+++ {FOLDER}/50-gpuwhy-ARCH_LIST.conf",
        "@@ -0,0 +1,2 @@",
        "+[Service]",
        '+Environment="ARCH_LIST=12.0a"',
    ]
    assert list(made.commands()) == [
        "systemctl daemon-reload",
        f"systemctl reset-failed {UNIT}",
        f"systemctl restart {UNIT}",
    ]
    assert made.variables == {"ARCH_LIST": "12.0a"}
    assert made.unit == UNIT


def test_the_files_are_those_that_the_printed_commands_write(scratch: Scratch, site: Site) -> None:
    """What the report prints and what gpuwhy does are one thing: done by hand first, there is nothing left to do."""
    remedy = written_for(env("ARCH_LIST", "a%e$f:g,h"), SETTING)
    for command in remedy.commands:
        if not command.startswith("systemctl"):
            scratch.shell(command.replace("/etc/systemd", f"{scratch.root}/etc/systemd"))
    assert plan(env("ARCH_LIST", "a%e$f:g,h"), site).is_in_place


def test_beside_an_environment_file_the_value_is_written_before_what_names_it(site: Site) -> None:
    setting = msgspec.structs.replace(SETTING, environment_files=("/etc/default/serve",))
    made = plan(env("ARCH_LIST", "12.0a"), site, setting)
    assert [change.path.rpartition(".")[2] for change in made.files] == ["env", "conf"]
    assert made.files[0].after == 'ARCH_LIST="12.0a"\n'
    assert made.files[1].after == f"[Service]\nEnvironmentFile={FOLDER}/50-gpuwhy-ARCH_LIST.env\n"


def test_an_option_repeats_the_start_command_as_its_file_has_it(scratch: Scratch, site: Site) -> None:
    start_command(scratch, "ExecStart=/opt/serve --name 'a  b' \\", "  --host %H --port ${PORT}")
    made = plan(flag("--attention-backend", "triton"), site)
    (change,) = made.files
    assert change.path == EXEC_START
    after = str(change.after).splitlines()
    assert after[:2] == ["[Service]", "ExecStart="]
    assert after[2].startswith("ExecStart=/opt/serve --name 'a  b'")
    assert after[2].endswith("--host %H --port ${PORT} --attention-backend triton")


def test_a_second_option_joins_the_first_in_our_file(scratch: Scratch, site: Site) -> None:
    first = plan(flag("--a", "1"), site)
    scratch.write(EXEC_START, str(first.files[0].after))
    (change,) = plan(flag("--b", "2"), site).files
    assert change.before == "[Service]\nExecStart=\nExecStart=/opt/serve --port 1 --a 1\n"
    assert change.after == "[Service]\nExecStart=\nExecStart=/opt/serve --port 1 --a 1 --b 2\n"


def test_a_start_command_with_a_secret_is_not_repeated_but_a_variable_can_be_set(scratch: Scratch, site: Site) -> None:
    start_command(scratch, "ExecStart=/opt/serve --api-key sk-0123456789abcdef0123456789")
    setting = msgspec.structs.replace(SETTING, exec_start="/opt/serve --api-key <redacted:1>")
    assert "holds what looks like a secret" in refusal(flag("--a", "1"), site, setting)
    made = plan(env("ARCH_LIST", "12.0a"), site, setting)
    assert "sk-" not in str(made)


def test_a_value_that_was_taken_out_as_a_secret_is_not_written_back(site: Site) -> None:
    assert "secret" in refusal(env("HF_TOKEN", "<redacted:3>"), site)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("ExecStart=/bin/sh -c 'exec serve'",), "starts a script or a shell"),
        (("ExecStart=/opt/start.sh",), "starts a script or a shell"),
        (("ExecStart=/opt/a", "ExecStart=/opt/b"), "has 2 start commands"),
        (("ExecStart=/opt/a", "ExecStart="), "has 0 start commands"),
    ],
)
def test_a_start_command_that_is_none_is_left_to_a_person(
    scratch: Scratch, site: Site, lines: tuple[str, ...], words: str
) -> None:
    start_command(scratch, *lines)
    setting = msgspec.structs.replace(SETTING, exec_start=lines[0].partition("=")[2])
    assert words in refusal(flag("--a", "1"), site, setting)


def test_what_stands_in_the_way_on_the_host_is_the_reason(scratch: Scratch, site: Site) -> None:
    scratch.path("/srv").mkdir()
    scratch.path(FOLDER).symlink_to(scratch.path("/srv"))
    assert "is a symbolic link" in refusal(env("ARCH_LIST", "12.0a"), site)


def test_our_file_that_somebody_put_a_secret_into_is_left_alone(scratch: Scratch, site: Site) -> None:
    scratch.write(
        f"{FOLDER}/50-gpuwhy-ARCH_LIST.conf", "[Service]\nEnvironment=API_KEY=sk-0123456789abcdef0123456789\n"
    )
    scratch.path(FOLDER).chmod(0o755)
    assert "looks like a secret" in refusal(env("ARCH_LIST", "12.0a"), site)


def test_what_a_cause_wrote_out_itself_is_not_taken_for_a_setting(site: Site) -> None:
    remedy = msgspec.structs.replace(env("CUDA_HOME", "/usr/local/cuda-12.9"), commands=("apt-get install cuda",))
    assert "more than a setting" in refusal(remedy, site)


@pytest.mark.parametrize("kind", sorted(NEVER))
def test_what_reaches_further_than_the_service_is_explained_and_never_done(site: Site, kind: str) -> None:
    found = plan_for(Remedy(kind=kind, name="x", summary="", commands=("reboot",)), SETTING, site)
    assert isinstance(found, NotApplied)
    assert "gpuwhy never does this" in found.why
    assert found.instead == ("reboot",)


def test_every_kind_has_a_plan_or_a_reason(site: Site) -> None:
    for kind in KINDS:
        remedy = Remedy(kind=kind, name="x", value="y", summary="")
        for place in ("systemd", "shell", "kubernetes", "unknown"):
            found = plan_for(remedy, msgspec.structs.replace(SETTING, kind=place), site)
            assert isinstance(found, Plan) or found.why


def test_no_unit_but_the_named_one_is_restarted(site: Site) -> None:
    restart = Remedy(kind="service", name=UNIT, value="restart", summary="")
    assert list(plan(restart, site).commands()) == [f"systemctl reset-failed {UNIT}", f"systemctl restart {UNIT}"]
    other = Remedy(kind="service", name="nvidia-fabricmanager", value="restart", summary="")
    assert "restarts no unit but" in refusal(other, site)


def test_a_users_unit_is_changed_in_the_users_own_folder(scratch: Scratch, site: Site) -> None:
    scratch.path(site.look().home).mkdir(parents=True)
    made = plan(env("ARCH_LIST", "12.0a"), site, msgspec.structs.replace(SETTING, is_user_unit=True))
    assert made.files[0].path.endswith(f"/.config/systemd/user/{UNIT}.d/50-gpuwhy-ARCH_LIST.conf")
    assert next(iter(made.commands())) == "systemctl --user daemon-reload"


def test_a_unit_that_systemd_does_not_know_there_is_not_changed(scratch: Scratch, site: Site) -> None:
    (scratch.systemd / "properties").write_text("LoadState=not-found\nActiveState=inactive\n")
    assert "does not know" in refusal(env("ARCH_LIST", "12.0a"), site)
    user_unit = msgspec.structs.replace(SETTING, is_user_unit=True)
    assert "it is another user's" in refusal(env("ARCH_LIST", "12.0a"), site, user_unit)
