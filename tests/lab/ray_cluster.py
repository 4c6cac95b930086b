"""A real Ray cluster of several nodes on one machine, in a network namespace of its own, run by a Python of its own."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.fleet_hosts import ROOT, kill, run

PYTHON = ROOT / ".lab" / "ray" / "bin" / "python"

HOLDING = """\
import sys
from ray.cluster_utils import Cluster
names = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "node_name": names[0], "include_dashboard": False})
nodes = {name: cluster.add_node(num_cpus=1, node_name=name) for name in names[1:]}
print("address", cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(nodes[line.strip()])
    print("removed", line.strip(), flush=True)
"""

FAILING = """\
import ray, sys
ray.init(address=sys.argv[1], log_to_driver=False)
@ray.remote(num_cpus=1)
class EngineCore:
    def step(self):
        print("RuntimeError: Engine core initialization failed in the lab", file=sys.stderr, flush=True)
        raise RuntimeError("Engine core initialization failed in the lab")
try:
    ray.get(EngineCore.remote().step.remote())
except Exception as error:
    print(type(error).__name__)
"""


class RayCluster:
    """A cluster that is up at ``address``; the first of ``names`` is its head."""

    def __init__(self, folder: Path, space: str, names: Sequence[str]) -> None:
        self.folder, self.space = folder, space
        run(["ip", "netns", "add", space])
        run(["ip", "-n", space, "link", "set", "lo", "up"])
        with (folder / "ray.log").open("wb") as log:
            self._process = subprocess.Popen(
                self.inside(str(PYTHON), "-c", HOLDING, *names), env=self.environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        self.address = self._heard("address")

    def remove(self, name: str) -> None:
        """Ends a node as a power failure would be seen by the others: the cluster keeps it as dead."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        self._heard("removed")

    def inside(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.space, *command]

    @property
    def environment(self) -> Mapping[str, str]:
        # Ray's sockets have to fit into 107 characters
        return {**os.environ, "RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0"}

    def run(self, *command: str, timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.inside(*command), env={**self.environment, **more}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def down(self) -> None:
        for pid in run(["ip", "netns", "pids", self.space]).split():
            kill(int(pid))
        self._process.wait(10)
        run(["ip", "netns", "del", self.space])

    def _heard(self, word: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(f"{word} "):
                return line.split()[1]
        raise AssertionError((self.folder / "ray.log").read_text()[-3000:])


@contextmanager
def ray_cluster(folder: Path, names: Sequence[str]) -> Iterator[RayCluster]:
    """A Ray that is up, taken down at the end."""
    made = RayCluster(folder, f"gwr{secrets.token_hex(3)}", names)
    try:
        yield made
    finally:
        made.down()
