"""From a crash loop to a running service with one command, and back with another; on a real systemd, over a real sshd."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lab.fixing import answered, cut, gpuwhy, start_gpuwhy
from tests.lab.gpu_host import SERVING, GpuHost, wait_for
from tests.lab.reaching import add_account, as_account
from tests.patience import BUSY

from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies import Setting
from gpuwhy.remedies.applying.plan import NotApplied, Plan
from gpuwhy.remedies.applying.planning import plan_for
from gpuwhy.remedies.applying.site import Site
from gpuwhy.targets.ssh import SshTarget

pytestmark = pytest.mark.lab

UNIT = "sglang.service"
GATE = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/50-gpuwhy-FLASHINFER_CUDA_ARCH_LIST.conf"
REMEDY = "FLASHINFER_CUDA_ARCH_LIST=12.0a"
MOST_SECONDS_BEYOND_THE_START = 30.0 * BUSY


@pytest.fixture
def host(crashed_host: GpuHost) -> GpuHost:
    return crashed_host


def is_given_up(host: GpuHost) -> bool:
    """Whether systemd starts the crashing service no more: only then is what is diagnosed the same every time."""
    return host.show(UNIT, "ActiveState")["ActiveState"] == "failed"


def changes(host: GpuHost) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answered(gpuwhy(host, "history", host.ssh_destination, "--format", "json"))["changes"]
    return found


def last_change(host: GpuHost) -> dict[str, Any]:
    return changes(host)[-1]


def configuration(host: GpuHost) -> str:
    """Every file below /etc with its owner, mode and content, and what systemd makes of the unit."""
    listing = "find /etc -xdev -printf '%p %u:%g %m %l\\n' | sort; find /etc -xdev -type f | sort | xargs sha256sum"
    return host.run(f"{listing}; systemctl cat {UNIT}").stdout


def life_of(host: GpuHost) -> float:
    """Seconds from the start of the unit's process until it said that it serves."""
    shown = host.show(UNIT, "ExecMainStartTimestampMonotonic")
    lines = host.run(f"journalctl --unit {UNIT} --output json --no-pager").stdout.splitlines()
    serving = [entry for entry in map(json.loads, lines) if SERVING in str(entry.get("MESSAGE"))]
    return (int(serving[-1]["__MONOTONIC_TIMESTAMP"]) - int(shown["ExecMainStartTimestampMonotonic"])) / 1e6


@contextmanager
def spoilt(host: GpuHost, spoil: str, mend: str) -> Iterator[None]:
    """Makes the host such that it cannot be changed, and mends it whatever comes of it."""
    host.run(spoil)
    try:
        yield
    finally:
        host.run(mend)


def test_a_crash_loop_is_fixed_with_one_command_and_undone_with_another(host: GpuHost) -> None:
    kept = "find /var/lib/gpuwhy"
    before, records = configuration(host), host.run(kept, check=False).stdout
    shown = gpuwhy(host, "fix", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY)
    assert shown.returncode == 1, shown.stderr
    assert f"+++ {DROP_IN}" in shown.stdout
    assert '+Environment="FLASHINFER_CUDA_ARCH_LIST=12.0a"' in shown.stdout
    assert f"systemctl restart {UNIT}" in shown.stdout
    assert configuration(host) == before
    assert host.run(kept, check=False).stdout == records

    crashes = host.journal(UNIT).count(GATE)
    begun = time.monotonic()
    done = gpuwhy(host, "fix", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY, "--apply", "--yes")
    took = time.monotonic() - begun
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reached rung e: active" in done.stdout
    assert host.show(UNIT, "ActiveState")["ActiveState"] == "active"
    assert SERVING in host.journal(UNIT)
    assert host.journal(UNIT).count(GATE) == crashes
    start = life_of(host)
    print(f"\nfix: {took:.1f} s, of which the service's own start {start:.1f} s")
    assert took - start < MOST_SECONDS_BEYOND_THE_START

    assert host.run("grep -r hf_Lab /var/lib/gpuwhy /etc/systemd/system/*.d", check=False).returncode == 1
    change = last_change(host)
    assert (change["state"], change["unit"]) == ("verified", UNIT)

    undone = gpuwhy(host, "undo", host.ssh_destination, str(change["id"]))
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert configuration(host) == before
    wait_for(lambda: host.journal(UNIT).count(GATE) > crashes, 120, "the failure is back")
    wait_for(lambda: is_given_up(host), 120, "systemd gives up")


def test_a_host_that_does_not_let_itself_be_changed_is_left_as_it_was(
    host: GpuHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", host.ssh_options)
    folder = f"/etc/systemd/system/{UNIT}.d"
    remedy = Remedy(kind="env", name="FLASHINFER_CUDA_ARCH_LIST", value="12.0a", summary="")

    def is_refused(words: str) -> None:
        before = configuration(host)
        with Site(SshTarget(host.ssh_destination)) as site:
            plan = plan_for(remedy, Setting(kind="systemd", unit=UNIT), site)
            told = plan.why if isinstance(plan, NotApplied) else site.apply(plan, {}).reason
        assert words in told
        assert configuration(host) == before

    read_only = "mount --bind /etc/systemd/system /etc/systemd/system && mount -o remount,bind,ro /etc/systemd/system"
    with spoilt(host, read_only, "umount /etc/systemd/system"):
        is_refused("read-only")
    full = f"mkdir -p {folder} && mount -t tmpfs -o size=64k tmpfs {folder} && head -c 60k /dev/zero > {folder}/full"
    with spoilt(host, full, f"umount {folder}"):
        is_refused("no space is left")
    with spoilt(host, f"useradd somebody && chown somebody {folder}", f"chown root {folder}; userdel somebody"):
        is_refused(f"{folder} belongs to user somebody")


def test_a_change_that_another_file_overrules_is_rolled_back(host: GpuHost) -> None:
    local = f"/etc/systemd/system/{UNIT}.d/90-local.conf"
    host.write(local, "[Service]\nEnvironment=FLASHINFER_CUDA_ARCH_LIST=12.0a\\x20\n")
    host.run("systemctl daemon-reload")
    before = configuration(host)
    done = gpuwhy(host, "fix", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY, "--apply", "--yes")
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, told
    assert "has the last word" in told or "is failed" in told or "auto-restart" in told
    assert "Rolled back" in told
    assert configuration(host) == before
    host.run(f"rm {local} && systemctl daemon-reload")
    assert last_change(host)["state"] == "undone"


def test_a_connection_that_is_cut_leaves_a_whole_change_and_a_record_of_it(host: GpuHost, tmp_path: Path) -> None:
    known, served = max((each["id"] for each in changes(host)), default=0), host.journal(UNIT).count(SERVING)
    arguments = ("fix", host.ssh_destination, "--unit", UNIT, "--remedy", REMEDY, "--apply", "--yes")
    running = start_gpuwhy(host, tmp_path / "said", *arguments)
    record = f"/var/lib/gpuwhy/history/{known + 1}.json"
    wait_for(
        lambda: running.poll() is not None or host.run(f"ls {record}", check=False).returncode == 0, 60, "a record"
    )
    assert running.poll() is None, (tmp_path / "said").read_text()
    cut(running, host)

    def state() -> str:
        return str(last_change(host)["state"])

    wait_for(lambda: state() == "applied", 60, "the change is made to its end")
    wait_for(lambda: host.journal(UNIT).count(SERVING) > served, 60, "the service serves")
    assert host.run(f"cat {DROP_IN}").stdout == '[Service]\nEnvironment="FLASHINFER_CUDA_ARCH_LIST=12.0a"\n'
    # until it has watched the service for long enough, nobody else may change the host
    wait_for(lambda: gpuwhy(host, "undo", host.ssh_destination, "--yes").returncode == 0, 60, "the undo")
    assert state() == "undone"


ODD_UNIT = """\
[Service]
EnvironmentFile=/etc/default/odd
Environment=OTHER=1
ExecStart=/usr/bin/python3 -c "import time; time.sleep(1e6)" 'a  b' %p $$x \\
    "${OTHER}"
"""
ODD_VALUE = '12.0a;%h$OTHER\\"x'


def test_systemd_reads_what_was_written_to_the_letter(crashing_host: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Percent and dollar signs, quotes, two blanks, a continued line, an environment file that would win."""
    host = crashing_host
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", host.ssh_options)
    host.write("/etc/systemd/system/odd.service", ODD_UNIT)
    host.write("/etc/default/odd", "ARCH=9.0\nAPI_KEY=sk-0123456789abcdef0123456789\n", "600")
    host.run("systemctl daemon-reload && systemctl start odd.service")
    setting = Setting(kind="systemd", unit="odd.service", environment_files=("/etc/default/odd",))

    def process_file(name: str) -> list[str]:
        process = host.show("odd.service", "MainPID")["MainPID"]
        return host.run(f"cat /proc/{process}/{name}").stdout.rstrip("\0").split("\0")

    words = process_file("cmdline")
    assert words[-4:] == ["a  b", "odd", "$x", "1"]
    with Site(SshTarget(host.ssh_destination)) as site:
        for kind, name, value in (("env", "ARCH", ODD_VALUE), ("flag", "--new", "v%1$y")):
            remedy = Remedy(kind=kind, name=name, value=value, summary="")
            plan = plan_for(remedy, setting, site)
            assert isinstance(plan, Plan), plan
            outcome = site.apply(plan, {}, grace=1.0)
            assert outcome.stability is not None, outcome
            assert outcome.stability.is_stable, outcome.stability
        assert f"ARCH={ODD_VALUE}" in process_file("environ")
        assert process_file("cmdline") == [*words, "--new", "v%1$y"]
        for _ in range(2):
            assert site.undo().status == "undone"
    wait_for(lambda: process_file("cmdline") == words, 10, "the old command")
    assert "ARCH=9.0" in process_file("environ")
    assert host.run("ls -d /etc/systemd/system/odd.service.d", check=False).returncode != 0
    assert host.run("grep -r sk-01 /var/lib/gpuwhy", check=False).returncode == 1


def test_a_users_own_unit_is_changed_without_root(crashing_host: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host = crashing_host
    monkeypatch.setenv("GPUWHY_SSH_OPTIONS", host.ssh_options)
    add_account(host, "alice")
    unit = "[Service]\nEnvironmentFile=%h/values\nExecStart=/usr/bin/sleep 1000000\n"
    host.write("/home/alice/.config/systemd/user/own.service", unit)
    host.write("/home/alice/values", "ARCH=9.0\n")
    host.run("chown -R alice /home/alice/.config /home/alice/values")
    as_account(host, "alice", "systemctl --user daemon-reload")
    as_account(host, "alice", "systemctl --user start own")
    before = host.run("ls -lRA --time-style=+ /home/alice/.config").stdout
    setting = Setting(kind="systemd", unit="own.service", is_user_unit=True, environment_files=("/home/alice/values",))
    remedy = Remedy(kind="env", name="ARCH", value="12.0a", summary="")

    with Site(SshTarget(host.ssh_destination)) as of_root:
        refused = plan_for(remedy, setting, of_root)
        assert isinstance(refused, NotApplied)
        assert "it is another user's" in refused.why
    with Site(SshTarget(f"alice@{host.ssh_destination}")) as site:
        plan = plan_for(remedy, setting, site)
        assert isinstance(plan, Plan), plan
        outcome = site.apply(plan, {}, grace=1.0)
        assert outcome.stability is not None, outcome
        assert outcome.stability.is_stable, outcome.stability
        assert site.look().history == "/home/alice/.local/state/gpuwhy/history"
        assert site.undo().status == "undone"
        refused = plan_for(remedy, msgspec.structs.replace(setting, unit=UNIT, is_user_unit=False), site)
        assert isinstance(refused, NotApplied)
        assert "permission denied" in refused.why
    assert host.run("ls -lRA --time-style=+ /home/alice/.config").stdout == before
