"""A real Slurm on one machine: munged, slurmctld and several slurmd (Debian's), in a network namespace of their own."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.fleet_hosts import collectors_in, kill, run
from tests.patience import BUSY

CONFIG = """\
ClusterName=lab
SlurmctldHost=control(10.79.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=300
KillWait=3
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
{nodes}
NodeName=gone NodeAddr=10.79.0.1 NodeHostname=gone Port=16900 CPUs=2 State=DOWN Reason="its fans failed"
PartitionName=gpu Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""

NODE = "NodeName={name} NodeAddr=10.79.0.1 NodeHostname=control Port={port} CPUs=2 RealMemory=1000 State=UNKNOWN\n"


class SlurmCluster:
    """Nodes that are up, a partition ``gpu`` of them, and in it ``gone``, which is down."""

    def __init__(self, folder: Path, space: str, names: Sequence[str]) -> None:
        self.folder, self.space, self.names = folder, space, list(names)
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("state", "munge"):
            (folder / name).mkdir(mode=0o700)
        nodes = "".join(NODE.format(name=name, port=16901 + index) for index, name in enumerate(names))
        (folder / "slurm.conf").write_text(CONFIG.format(folder=folder, nodes=nodes))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        run(["ip", "netns", "add", space])
        run(["ip", "-n", space, "link", "set", "lo", "up"])
        # Slurm resolves names for the families that an interface has an address of, and the loopback's do not count
        run(["ip", "-n", space, "link", "add", "lab0", "type", "bridge"])
        run(["ip", "-n", space, "addr", "add", "10.79.0.1/24", "dev", "lab0"])
        run(["ip", "-n", space, "link", "set", "lab0", "up"])
        (folder / "hosts").write_text("127.0.0.1 localhost\n10.79.0.1 control\n")

    def up(self) -> None:
        own = self.folder / "munge"
        self._start(
            "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", f"--key-file={own}/key",
            f"--pid-file={own}/pid", f"--seed-file={own}/seed", f"--log-file={own}/log",
        )  # fmt: skip
        self._wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._start("slurmctld", "-D", "-c", "-f", f"{self.folder}/slurm.conf")
        for name in self.names:
            self._start("slurmd", "-D", "-N", name, "-f", f"{self.folder}/slurm.conf")
        self._wait(lambda: self.states().count("idle") == len(self.names), "idle nodes")

    def states(self) -> list[str]:
        return self.run("sinfo", "-h", "-N", "-o", "%t").stdout.split()

    def inside(self, *command: str) -> list[str]:
        """A command line that runs in the cluster's namespace, under the host name ``control``."""
        script = f'hostname control; mount --bind {self.folder}/hosts /etc/hosts; exec "$@"'
        return ["ip", "netns", "exec", self.space, "unshare", "--uts", "--mount", "sh", "-c", script, "sh", *command]

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf"}

    def run(self, *command: str, timeout: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.inside(*command), env={**self.environment, **more}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def collectors(self) -> list[int]:
        """Processes that are, or start, a collector."""
        return collectors_in(self.space)

    def lose(self, name: str) -> None:
        """A node dies: its slurmd, the steps on it, and what they started."""
        found = {}
        for pid in map(int, run(["ip", "netns", "pids", self.space]).split()):
            environment = of_process(pid, "environ").split(b"\0")
            words = of_process(pid, "cmdline").split(b"\0")
            is_daemon = words[0].endswith(b"slurmd") and name.encode() in words
            if is_daemon or f"SLURMD_NODENAME={name}".encode() in environment:
                found[pid] = words
        stepds = [pid for pid in self._with_name("slurmstepd") if set(children(pid)) & set(found)]
        for pid in [*stepds, *found]:
            kill(pid)

    def _with_name(self, name: str) -> list[int]:
        pids = map(int, run(["ip", "netns", "pids", self.space]).split())
        return [pid for pid in pids if of_process(pid, "comm").strip() == name.encode()]

    def clients(self) -> list[int]:
        """The sruns that run."""
        return self._with_name("srun")

    def down(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        for pid in run(["ip", "netns", "pids", self.space]).split():
            kill(int(pid))
        run(["ip", "netns", "del", self.space])

    def _start(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.out").open("ab") as log:
            started = subprocess.Popen(
                self.inside(program, *arguments), env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._processes.append(started)

    def _wait(self, condition: object, what: str) -> None:
        assert callable(condition)
        until = time.monotonic() + 40 * BUSY
        while not condition():
            assert time.monotonic() < until, f"{what}: {self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        files = [*self.folder.glob("*.out"), *self.folder.glob("*.log"), *self.folder.glob("munge/log")]
        return "\n".join(f"{file.name}: {file.read_text(errors='replace')[-1500:]}" for file in files)


def children(pid: int) -> list[int]:
    """The processes that a process started itself."""
    return [int(child) for child in of_process(pid, f"task/{pid}/children").split()]


def of_process(pid: int, file: str) -> bytes:
    """A file of ``/proc/PID``; empty when the process has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""


@contextmanager
def slurm_cluster(folder: Path, names: Sequence[str]) -> Iterator[SlurmCluster]:
    """A Slurm that is up, taken down at the end."""
    made = SlurmCluster(folder, f"gws{secrets.token_hex(3)}", names)
    try:
        made.up()
        yield made
    finally:
        made.down()
