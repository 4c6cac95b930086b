"""A whole host for tests: systemd as PID 1, journald and sshd under systemd-nspawn, with a network of its own.

Its root folder is read-only below a layer in memory, so each boot starts from the same state and nothing a test does
remains. Nothing of the machine that runs it is changed: sshd is reached through the host's own loopback, by a `ProxyCommand`.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.patience import BUSY

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / ".lab"

GAVE_UP = "Start request repeated too quickly."
SERVING = "The server is fired up and ready to roll!"

HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SSH_CONFIG = """\
Host {alias}
  HostName {alias}
  HostKeyAlias lab-gpu
  User root
  ProxyCommand nsenter --target {leader} --net nc -N 127.0.0.1 22
  IdentityFile {lab}/ssh/id
  IdentitiesOnly yes
  UserKnownHostsFile {lab}/ssh/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 10
  LogLevel ERROR
"""


LONGEST_WAIT = 300.0
"""Seconds: a test that waits in vain still fails by itself before its time-out."""


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Returns when `condition` holds. On a quiet machine that takes `seconds` at most; fails with `what` after far more."""
    patience = min(seconds * BUSY, LONGEST_WAIT)
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {patience:g} s still not: {what}")
        time.sleep(0.1)


@dataclass(frozen=True)
class Process:
    """A process of the host: its id there, and how it was started."""

    pid: int
    command: str


@dataclass(frozen=True)
class GpuHost:
    """A booted host. `leader` is the process id of its systemd as seen from the machine that runs it."""

    leader: int
    ssh_destination: str
    ssh_config: Path

    @property
    def ssh_options(self) -> str:
        """What `GPUWHY_SSH_OPTIONS` must hold for gpuwhy's ssh to reach this host."""
        return f"-F {shlex.quote(str(self.ssh_config))}"

    def run(
        self, command: str, *, check: bool = True, timeout: float = 120, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a shell command in the host as root, in all its namespaces, with a bare environment."""
        enter = ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"]
        shell = ["env", "-i", f"PATH={HOST_PATH}", "HOME=/root", "sh", "-c", command]
        done = subprocess.run(
            [*enter, *shell], check=False, capture_output=True, text=True, timeout=timeout, input=stdin or ""
        )
        if check and done.returncode:
            raise AssertionError(f"{command!r} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """The unit's properties, as `systemctl show` prints them."""
        lines = self.run(f"systemctl show {unit} -p {','.join(names)}").stdout.splitlines()
        return dict(line.split("=", 1) for line in lines)

    def journal(self, unit: str) -> str:
        """The messages of and about a unit, oldest first."""
        return self.run(f"journalctl --unit {unit} --output cat --no-pager").stdout

    def kernel_log(self) -> str:
        """The kernel's messages as the host's journal has them: shared with the machine, so older than the host too."""
        return self.run("journalctl --dmesg --output cat --no-pager").stdout

    def wait_for_message(self, unit: str, message: str, seconds: float = 180) -> None:
        """Returns when a unit's journal holds `message`."""
        wait_for(lambda: message in self.journal(unit), seconds, f"{message!r} in the journal of {unit}")

    def write(self, path: str, content: str, mode: str = "644") -> None:
        """Puts a file into the host, in the layer that ends with it."""
        self.run(f"install -D -m {mode} /dev/stdin {shlex.quote(path)}", stdin=content)

    def processes(self) -> set[Process]:
        """Every process in the host but the listing itself and the kernel's view of it."""
        listed = set()
        for line in self.run("ps -eo pid=,args=").stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            if not command.startswith(("ps -eo", "sh -c ps -eo")):
                listed.add(Process(int(pid), command))
        return listed

    def logins(self) -> int:
        """How many ssh connections were let in since boot."""
        return self.journal("ssh.service").count("Accepted publickey")

    def outer_pid(self, pid: int) -> int:
        """The id that a process of the host has on the machine that runs the host."""
        namespace = (Path("/proc") / str(self.leader) / "ns/pid").readlink()
        for status in Path("/proc").glob("[0-9]*/status"):
            with suppress(OSError):
                if (status.parent / "ns/pid").readlink() != namespace:
                    continue
                ids = next(line for line in status.read_text().splitlines() if line.startswith("NSpid:"))
                if ids.split()[-1] == str(pid):
                    return int(status.parent.name)
        raise LookupError(f"the host has no process {pid}")


def _leader_of(nspawn: subprocess.Popen[bytes]) -> int | None:
    """The child of systemd-nspawn that is PID 1 of the host, once it is there."""
    with suppress(OSError):
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
        for child in children:
            status = Path(f"/proc/{child}/status").read_text()
            ids = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
            if len(ids) > 1 and ids[-1] == "1":
                return int(child)
    return None


@contextmanager
def booted(
    name: str, mounts: Sequence[str] = (), machine_id: str | None = None, *, hears_kernel: bool = False
) -> Iterator[GpuHost]:
    """Boots a host and yields it when systemd says it is up; powers it off at the end, whatever happened.

    `mounts` are options of systemd-nspawn. `hears_kernel`: the kernel log can be read there. It is the one thing that a
    host shares with the machine it runs on, so what other hosts and containers did there stands in it too. Takes one to
    two seconds.
    """
    machine = f"{name}-{os.getpid()}"
    console = LAB / f"{machine}.console"
    config = LAB / "ssh" / f"config.{machine}"
    arguments = [
        *("--boot", "--quiet", "--register=no", "--keep-unit", "--private-network", "--volatile=overlay"),
        f"--machine={machine}",
        f"--directory={LAB / 'host'}",
        *(["--bind=/dev/kmsg", "--capability=CAP_SYSLOG", "--system-call-filter=syslog"] if hears_kernel else []),
        *mounts,
        *([f"--uuid={machine_id}"] if machine_id else []),
    ]
    with console.open("wb") as output:
        # pdeathsig: should the tests be killed, the host still shuts down.
        nspawn = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", "systemd-nspawn", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield _wait_until_up(nspawn, name, config, console)
    finally:
        _shut_down(nspawn)
        config.unlink(missing_ok=True)
        console.unlink(missing_ok=True)


def _wait_until_up(nspawn: subprocess.Popen[bytes], name: str, config: Path, console: Path) -> GpuHost:
    deadline = time.monotonic() + 30 * BUSY
    state = "not started"
    while time.monotonic() < deadline and nspawn.poll() is None:
        leader = _leader_of(nspawn)
        if leader is not None:
            config.write_text(SSH_CONFIG.format(alias=name, leader=leader, lab=LAB))
            host = GpuHost(leader, name, config)
            state = host.run("systemctl is-system-running", check=False).stdout.strip()
            if state in {"running", "degraded"}:
                return host
        time.sleep(0.1)
    raise RuntimeError(f"host {name} is not up ({state}); its console:\n{console.read_text(errors='replace')[-4000:]}")


def _shut_down(nspawn: subprocess.Popen[bytes]) -> None:
    leader = _leader_of(nspawn)
    nspawn.terminate()  # systemd-nspawn hands this on as an orderly poweroff
    try:
        nspawn.wait(timeout=30)
    except subprocess.TimeoutExpired:
        if leader is not None:
            os.kill(leader, signal.SIGKILL)
        nspawn.kill()
        nspawn.wait(timeout=10)


@contextmanager
def memory_limit(process: int, limit: int) -> Iterator[None]:
    """Confines a process of the machine to `limit` bytes; the kernel kills it, for real, when it wants more."""
    group = Path("/sys/fs/cgroup/memory") / f"gpuwhy-lab-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        (group / "cgroup.procs").write_text(str(process))
        yield
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), 10, f"{group} has no process left")
        group.rmdir()
