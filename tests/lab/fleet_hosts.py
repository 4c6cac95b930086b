"""A fleet on one machine: hosts in network namespaces of their own, each with a name and a real sshd.

All traffic stays in the namespaces: nothing of it reaches this machine's network, nor it them. Whoever speaks to the
hosts does so from inside the namespace of :attr:`Fleet.control`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.patience import BUSY

ROOT = Path(__file__).resolve().parents[2]

INTERPRETERS = "/usr/bin/python3* /usr/local/bin/python3* /usr/libexec/platform-python /opt/conda/bin/python3 /root/.pyenv/shims/python*"

SSHD = """\
HostKey {folder}/{key}
PidFile none
AuthorizedKeysFile {folder}/id.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 400:30:600
MaxSessions 400
UseDNS no
PrintMotd no
{more}
"""

SSH = """\
Host *
  User root
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  ConnectTimeout {patience}
"""


class Fleet:
    """Hosts that are up. ``names`` are resolved by the ssh configuration ``config``; ``folder`` holds keys and logs."""

    def __init__(self, folder: Path, control: str, patience: int = 60) -> None:
        self.folder, self.control, self._patience = folder, control, patience
        self.names: list[str] = []
        self.sshds: dict[str, subprocess.Popen[bytes]] = {}
        self.namespaces: list[str] = []
        self._numbers: dict[str, int] = {}
        for key in ("id", "host_key", "other_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)])
        run(["ip", "netns", "add", control])
        self.namespaces.append(control)
        run(["ip", "-n", control, "link", "set", "lo", "up"])
        run(["ip", "-n", control, "link", "add", "br0", "type", "bridge"])
        run(["ip", "-n", control, "addr", "add", "10.77.255.254/16", "dev", "br0"])
        run(["ip", "-n", control, "link", "set", "br0", "up"])

    @property
    def config(self) -> Path:
        return self.folder / "config"

    def add(self, name: str, number: int, more: str = "", setup: str = "true", is_known: bool = True, listens: bool = True, patience: int | None = None) -> None:  # fmt: skip
        """One more host. ``more`` are lines for its sshd, ``setup`` a shell line that is run in its own mounts before that."""
        space, address = f"{self.control}-{number}", f"10.77.0.{number}"
        self._numbers[name] = number
        run(["ip", "netns", "add", space])
        self.namespaces.append(space)
        run(
            [
                "ip",
                "-n",
                self.control,
                "link",
                "add",
                f"v{number}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                space,
            ]
        )
        run(["ip", "-n", self.control, "link", "set", f"v{number}", "master", "br0", "up"])
        run(["ip", "-n", space, "addr", "add", f"{address}/16", "dev", "eth0"])
        run(["ip", "-n", space, "link", "set", "eth0", "up"])
        run(["ip", "-n", space, "link", "set", "lo", "up"])
        if listens:
            self.listen(name, space, [address], more, setup)
        self.know({name: address}, is_known, patience)

    def add_addresses(self, names: Sequence[str], more: str = "") -> None:
        """One sshd in the control namespace that many names lead to, each by an address of its own."""
        addresses = {name: f"10.88.{index // 250}.{index % 250 + 1}" for index, name in enumerate(names)}
        batch = "".join(f"addr add {address}/32 dev lo\n" for address in addresses.values())
        subprocess.run(["ip", "-n", self.control, "-batch", "-"], input=batch.encode(), check=True)
        self.listen("many", self.control, ["0.0.0.0"], more, "true")
        self.know(addresses, True)

    def listen(self, name: str, space: str, addresses: Sequence[str], more: str, setup: str) -> None:
        config = self.folder / f"sshd.{name}"
        listening = "".join(f"ListenAddress {address}\n" for address in addresses)
        config.write_text(listening + SSHD.format(folder=self.folder, key="host_key", more=more))
        script = f"hostname {name}; {setup}; exec /usr/sbin/sshd -D -f {config} -E {self.folder}/log.{name}"
        Path("/run/sshd").mkdir(exist_ok=True)
        self.sshds[name] = subprocess.Popen(
            ["ip", "netns", "exec", space, "unshare", "--uts", "--mount", "sh", "-c", script], start_new_session=True
        )

    def know(self, addresses: Mapping[str, str], is_right: bool, patience: int | None = None) -> None:
        key = (self.folder / ("host_key.pub" if is_right else "other_key.pub")).read_text().rsplit(" ", 1)[0]
        blocks = []
        with (self.folder / "known_hosts").open("a") as known:
            for name, address in addresses.items():
                known.write(f"{name} {key}\n")
                limit = f"  ConnectTimeout {patience}\n" if patience else ""
                blocks.append(f"Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n{limit}")
                self.names.append(name)
        before = (
            self.config.read_text() if self.config.exists() else SSH.format(folder=self.folder, patience=self._patience)
        )
        # the first value counts for ssh: what holds for one host stands before what holds for all
        self.config.write_text("".join(blocks) + before)

    def ready(self, names: Sequence[str]) -> None:
        """Waits until the sshds of ``names`` listen."""
        for name in names:
            until = time.monotonic() + 20 * BUSY
            while "Server listening" not in self.log(name):
                assert time.monotonic() < until, f"{name}: {self.log(name)}"
                time.sleep(0.05)

    def listener(self, name: str) -> int:
        """The process of the host's sshd: ip, unshare and sh have all become it."""
        return self.sshds[name].pid

    def link(self, name: str, state: str) -> None:
        """Cuts a host off, or joins it again: ``down``, ``up``."""
        run(["ip", "-n", self.control, "link", "set", f"v{self._numbers[name]}", state])

    def log(self, name: str) -> str:
        path = self.folder / f"log.{name}"
        return path.read_text() if path.exists() else ""

    def command(self, *arguments: str) -> list[str]:
        """A command line of gpuwhy that runs in the control namespace."""
        return self.inside(sys.executable, "-m", "gpuwhy", *arguments)

    def inside(self, *command: str) -> list[str]:
        """A command line that runs in the control namespace, whose host name is ``control``."""
        return [
            "ip",
            "netns",
            "exec",
            self.control,
            "unshare",
            "--uts",
            "sh",
            "-c",
            'hostname control; exec "$@"',
            "sh",
            *command,
        ]

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "GPUWHY_SSH_OPTIONS": f"-F {self.config}",
            **more,
        }

    def gpuwhy(self, *arguments: str, timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """gpuwhy in the control namespace, which goes on while the test does."""
        return subprocess.Popen(
            self.command(*arguments), env=self.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def collectors(self) -> list[int]:
        """Processes on the hosts that are, or start, a collector."""
        return [pid for space in self.namespaces if space != self.control for pid in collectors_in(space)]

    def down(self) -> None:
        for space in self.namespaces:
            for pid in run(["ip", "netns", "pids", space]).split():
                kill(int(pid))
        for sshd in self.sshds.values():
            kill(sshd.pid)
            sshd.wait(10)
        for space in reversed(self.namespaces):
            run(["ip", "netns", "del", space])


@contextmanager
def fleet(folder: Path, patience: int = 60) -> Iterator[Fleet]:
    """A fleet without hosts, taken down at the end together with all that runs in it."""
    made = Fleet(folder, f"gw{secrets.token_hex(3)}", patience)
    try:
        yield made
    finally:
        made.down()


def without_python() -> str:
    """A shell line after which no interpreter can be started, in the mounts of its shell."""
    return f"for p in {INTERPRETERS}; do test -e $p && mount --bind /dev/null $p; done"


def collectors_in(space: str) -> list[int]:
    """Processes in a network namespace that are, or start, a collector: interpreters and shells, not the ssh to them."""
    found = []
    for pid in map(int, run(["ip", "netns", "pids", space]).split()):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue
        if "zlib.decompress" in " ".join(words) and Path(words[0]).name.startswith(("python", "sh", "platform")):
            found.append(pid)
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command: Sequence[str]) -> str:
    program = shutil.which(command[0]) or command[0]
    ended = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{command}: {ended.stderr}"
    return ended.stdout
