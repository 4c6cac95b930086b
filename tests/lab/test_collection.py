"""A collection on a real host: what an account may read, with sudo and without, in bad places, and that nothing of it remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.lab.gpu_host import LAB, ROOT, GpuHost, booted, wait_for
from tests.lab.reaching import Run, add_account, changed, files, gpuwhy, start_gpuwhy
from tests.patience import BUSY

from gpuwhy import snapshot

pytestmark = pytest.mark.lab

HANGING = "#!/bin/sh\ntrap '' HUP INT TERM\nwhile :; do sleep 600; done\n"
SUDOERS = "alice ALL=(root) NOPASSWD: /usr/bin/python3\n"
TIME_OF_THE_WAY = 4.0 * BUSY
"""Seconds by which a run may take longer than its time-out and the judging of what was found: ending ssh, a busy machine."""


@pytest.fixture(scope="module")
def host() -> Iterator[GpuHost]:
    """A host with two ordinary accounts: bob may use sudo with his password, alice once a test allows it."""
    mounts = [f"--bind-ro={LAB}/gpuwhy:/opt/gpuwhy", f"--bind-ro={ROOT}/src:/opt/gpuwhy-source"]
    with booted("lab-accounts", mounts, hears_kernel=True) as found:
        for name in ("alice", "bob"):
            add_account(found, name)
        found.run("echo bob:secret | chpasswd; usermod -aG sudo bob")
        found.write(
            "/etc/systemd/system/vllm.service", "[Service]\nExecStart=/bin/sh -c 'echo RuntimeError: no; exit 1'\n"
        )
        found.run(
            "systemctl daemon-reload; systemctl start vllm; dmesg -n 1; sysctl -qw kernel.dmesg_restrict=1", check=False
        )
        yield found


@pytest.fixture
def hanging(host: GpuHost) -> Iterator[None]:
    """An nvidia-smi that ends on nothing but SIGKILL: a collection is in its middle for some seconds."""
    host.write("/usr/bin/nvidia-smi", HANGING, "755")
    yield
    host.run("rm /usr/bin/nvidia-smi")


def settled(host: GpuHost, before: set[str], seconds: float = 15) -> None:
    """Returns when the host has no process that it did not have before."""
    wait_for(lambda: not commands(host) - before, seconds, f"nothing is left: {commands(host) - before}")


def commands(host: GpuHost) -> set[str]:
    """The command lines in the host but for those of systemd's and sshd's own, which come and go."""
    own = ("/lib/systemd/", "(sd-", "sshd:", "/usr/sbin/sshd", "[", "nc ", "ps ")
    return {each.command for each in host.processes() if not each.command.startswith(own)}


def test_what_an_ordinary_account_may_not_read_is_named_with_what_would_allow_it(host: GpuHost, tmp_path: Path) -> None:
    run = gpuwhy(host, "diagnose", "bob@HOST", "--unit", "vllm", "--format", "json")
    assert "journal: " in run.notes
    assert "sudo usermod -aG systemd-journal bob" in run.notes
    assert "gpuwhy with --sudo" in run.notes
    assert "kernel_log: " in run.notes
    assert gpuwhy(host, "collect", "bob@HOST", "--unit", "pid:1", "-o", str(tmp_path / "x.gpuwhy")).status == 0
    taken = snapshot.read(tmp_path / "x.gpuwhy")
    named = {probe.name for probe in taken.probes if probe.denied}
    assert {"process", "environment", "kernel_log"} <= named
    assert all("--sudo" in denial.allow for probe in taken.probes for denial in probe.denied)


def test_with_sudo_the_collector_alone_is_root_and_no_password_is_asked_for(host: GpuHost, tmp_path: Path) -> None:
    refused = gpuwhy(host, "diagnose", "bob@HOST", "--unit", "vllm", "--sudo")
    assert refused.status == 3
    assert "sudo on bob@lab-accounts asks for a password" in refused.err
    assert "NOPASSWD" in refused.err
    assert refused.seconds < 8 * BUSY
    not_allowed = gpuwhy(host, "diagnose", "alice@HOST", "--unit", "vllm", "--sudo")
    assert not_allowed.status == 3
    assert "sudo" in not_allowed.err
    host.write("/etc/sudoers.d/gpuwhy", SUDOERS, "440")
    assert (
        gpuwhy(host, "collect", "alice@HOST", "--unit", "vllm", "--sudo", "-o", str(tmp_path / "x.gpuwhy")).status == 0
    )
    taken = snapshot.read(tmp_path / "x.gpuwhy")
    assert taken.value("system")["is_root"] is True
    assert "RuntimeError: no" in str(taken.value("journal"))
    assert not [denial for probe in taken.probes for denial in probe.denied if denial.allow]


def test_on_this_machine_too_sudo_never_asks(host: GpuHost) -> None:
    """With gpuwhy run by bob in the host itself: it says what stands in the way, and is not asked for a password."""
    program = "/opt/gpuwhy/bin/python -m gpuwhy diagnose local --sudo"
    enter = "setpriv --reuid=bob --regid=bob --init-groups env PYTHONPATH=/opt/gpuwhy-source HOME=/home/bob"
    started = time.monotonic()
    done = host.run(f"{enter} {program}", check=False)
    assert done.returncode == 3
    assert "sudo on this machine asks for a password" in done.stderr
    assert time.monotonic() - started < 8 * BUSY


def test_collecting_writes_nothing_and_leaves_no_process(host: GpuHost) -> None:
    subprocess.run(
        ["ssh", "-F", str(host.ssh_config), host.ssh_destination, "true"], check=True, capture_output=True
    )  # what a login itself writes is there from now on
    processes, before = commands(host), files(host)
    login = files_of_a_login(host)
    run = gpuwhy(host, "diagnose", "HOST", "--format", "json")
    assert run.status in (0, 1), run.err
    after = files(host)
    settled(host, processes)
    assert changed(before, after) - login == set()


def files_of_a_login(host: GpuHost) -> set[str]:
    """What sshd, PAM and logind write for a login that does nothing at all."""
    before = files(host)
    subprocess.run(["ssh", "-F", str(host.ssh_config), host.ssh_destination, "true"], check=True, capture_output=True)
    time.sleep(1)
    after = files(host)
    sessions = {path for path in after if path.startswith(("/run/systemd/sessions", "/run/systemd/users", "/run/systemd/units", "/run/systemd/transient", "/run/user"))}  # fmt: skip
    return changed(before, after) | sessions


@pytest.mark.usefixtures("hanging")
@pytest.mark.parametrize("how", ["the client is killed", "the connection is cut", "gpuwhy is killed"])
def test_a_collection_cut_in_the_middle_leaves_no_process_on_either_side(host: GpuHost, how: str) -> None:
    before = commands(host)
    process = start_gpuwhy(host, ["diagnose", "HOST"])
    wait_for(
        lambda: any("nvidia-smi" in each for each in commands(host) - before), 20, "the collection is in its middle"
    )
    wait_for(lambda: has_answered(host), 20, "the first answers are under way")
    time.sleep(0.2)
    mine = below(process.pid)
    client = next(pid for pid, name in mine.items() if name == "ssh")
    proxy = next(pid for pid, name in mine.items() if name in ("nc", "nsenter"))
    target = {"the client is killed": client, "the connection is cut": proxy, "gpuwhy is killed": process.pid}[how]
    os.kill(target, signal.SIGKILL)
    out, err = process.communicate(timeout=30 * BUSY)
    assert process.returncode in ((-9,) if how == "gpuwhy is killed" else (0, 1, 3)), err
    if how != "gpuwhy is killed":
        assert "ended early" in out
    settled(host, before)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in mine), 10, f"nothing of ours is left: {mine}")


def has_answered(host: GpuHost) -> bool:
    """Whether a collector on the host has written anything."""
    written = "for p in $(pgrep -f zlib.decompress); do grep ^wchar /proc/$p/io; done"
    return any(int(line.split()[1]) > 500 for line in host.run(written, check=False).stdout.splitlines())


def below(pid: int) -> dict[int, str]:
    """The processes below one, by number, with their names."""
    found: dict[int, str] = {}
    with suppress(OSError):  # it has ended meanwhile
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found |= below(int(child))
            found[int(child)] = Path(f"/proc/{child}/comm").read_text().strip()
    return found


def knows_the_unit(document: dict[str, Any]) -> bool:
    """Whether the report has what was found of the service and of the host."""
    facts = {fact["key"]: fact["value"] for fact in document["facts"]}
    return document["incident"]["unit"] == "vllm.service" and {"service.result", "mem_total_bytes"} <= facts.keys()


@pytest.mark.usefixtures("hanging")
def test_the_time_out_is_a_hard_stop_with_everything_found_so_far(host: GpuHost, tmp_path: Path) -> None:
    before = commands(host)
    kept = str(tmp_path / "x.gpuwhy")
    assert gpuwhy(host, "collect", "HOST", "--unit", "vllm", "-o", kept).status == 0
    judging = gpuwhy(host, "diagnose", kept).seconds
    run = gpuwhy(host, "diagnose", "HOST", "--unit", "vllm", "--timeout", "3", "--format", "json")
    assert run.status == 1, run.err
    assert run.seconds < 3 + judging + TIME_OF_THE_WAY
    assert knows_the_unit(run.document)
    settled(host, before)


def test_a_host_that_is_silent_is_given_up_at_the_time_out(host: GpuHost) -> None:
    host.run("pkill -STOP -o -x sshd")
    try:
        run = gpuwhy(host, "diagnose", "HOST", "--timeout", "3")
    finally:
        host.run("pkill -CONT -o -x sshd")
    assert run.status == 3
    assert run.seconds < 3 + 2 * TIME_OF_THE_WAY
    assert "lab-accounts" in run.err


def judged(host: GpuHost) -> Run:
    run = gpuwhy(host, "diagnose", "HOST", "--unit", "vllm", "--format", "json")
    assert run.status == 1, run.err
    assert "RuntimeError: no" in run.out
    return run


def test_a_full_disk_does_not_matter(host: GpuHost) -> None:
    host.run("cp -a /root/.ssh /run/keys")
    for place, mode in (("/root", "700"), ("/var/tmp", "1777"), ("/dev/shm", "1777"), ("/tmp", "1777")):
        host.run(f"mount -t tmpfs -o size=64k,mode={mode} tmpfs {place}")
    host.run("cp -a /run/keys /root/.ssh")
    try:
        for place in ("/root", "/var/tmp", "/dev/shm", "/tmp"):
            assert "No space left" in host.run(f"dd if=/dev/zero of={place}/full bs=1k", check=False).stderr
        judged = gpuwhy(host, "diagnose", "HOST", "--unit", "vllm", "--format", "json")
    finally:
        host.run("umount /root /var/tmp /dev/shm /tmp")
    assert judged.status == 1, judged.err
    assert knows_the_unit(judged.document)


def test_a_read_only_root_does_not_matter(host: GpuHost) -> None:
    """In a mount namespace of its own: in the host's, systemd has files open for writing."""
    read_only = (
        "mount -o remount,bind,ro / && ! touch /srv/x && PYTHONPATH=/opt/gpuwhy-source exec /opt/gpuwhy/bin/python"
    )
    line = f"{read_only} -m gpuwhy diagnose local --unit vllm --format json"
    done = host.run(f"unshare --mount sh -c '{line}'", check=False)
    assert done.returncode == 1, done.stderr
    assert knows_the_unit(json.loads(done.stdout))


def test_without_python_it_is_said_what_can_be_done(host: GpuHost) -> None:
    """The last one: the host has no Python from here on."""
    host.run("for p in /usr/bin/python3*; do mv $p $p.gone; done")
    run = gpuwhy(host, "diagnose", "HOST")
    host.run("for p in /usr/bin/python3*.gone; do mv $p ${p%.gone}; done")
    assert run.status == 3
    assert "has no python3" in run.err
    assert "journalctl -u UNIT -o json" in run.err
