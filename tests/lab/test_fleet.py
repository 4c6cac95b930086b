"""Collecting from a fleet, for real: sixteen hosts of which six are broken, gateways, many hosts, an interrupted run, Slurm, Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lab.fleet_hosts import ROOT, Fleet, collectors_in, fleet, without_python
from tests.lab.gpu_host import wait_for
from tests.lab.ray_cluster import FAILING, PYTHON, RayCluster, ray_cluster
from tests.lab.slurm_cluster import SlurmCluster, slurm_cluster

from gpuwhy.fleet.store import Node, Store
from gpuwhy.snapshot import service_logs

HEALTHY = [f"gpu{number:03}" for number in range(1, 11)]
GATEWAYS = ["gw1", "gw2"]
HALF = 'ForceCommand sh -c "$SSH_ORIGINAL_COMMAND" | head -c 4000'
BROKEN = {
    "gpu011": "refused",
    "gpu012": "unreachable",
    "gpu013": "no python",
    "gpu014": "denied",
    "gpu015": "partial",
    "gpu016": "timed out",
}

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with fleet(folder) as made:
        for number, name in enumerate(HEALTHY, start=1):
            made.add(name, number)
        made.add("gpu011", 11, listens=False)
        made.add("gpu012", 12, patience=3)
        made.add("gpu013", 13, setup=without_python())
        made.add("gpu014", 14, is_known=False)
        made.add("gpu015", 15, more=HALF)
        made.add("gpu016", 16, more="ForceCommand sleep 600")
        for number, name in enumerate(GATEWAYS, start=21):
            made.add(name, number)
        made.ready([name for name in made.names if name != "gpu011"])
        # it accepts connections, and says nothing any more
        os.kill(made.listener("gpu012"), signal.SIGSTOP)
        yield made
        os.kill(made.listener("gpu012"), signal.SIGCONT)


def rows(folder: Path) -> dict[str, Node]:
    with Store(folder) as store:
        return {node.name: node for node in store.nodes()}


def snapshots(folder: Path) -> set[str]:
    with Store(folder) as store:
        return {node.name for node, snapshot in store.snapshots() if snapshot.value("system") and snapshot.is_complete}


def statuses(folder: Path) -> dict[str, str]:
    return {name: node.status for name, node in rows(folder).items()}


def test_the_broken_ones_are_rows_and_stop_no_other(hosts: Fleet, tmp_path: Path) -> None:
    out, silent = tmp_path / "fleet", tmp_path / "silent"
    # one that says nothing is given up when its time is over; the others have all the time that a busy machine needs
    beside = hosts.start("fleet", "collect", "gpu016", "-o", str(silent), "--timeout", "8", "--deadline", "4")
    ended = hosts.gpuwhy("fleet", "collect", "gpu[001-015]", "-o", str(out), "--timeout", "120", "--deadline", "60")
    assert ended.returncode == 0, ended.stderr
    assert beside.wait(60) == 3
    assert {**statuses(out), **statuses(silent)} == {**dict.fromkeys(HEALTHY, "ok"), **BROKEN}, ended.stderr
    assert snapshots(out) == set(HEALTHY)
    found = rows(out)
    assert "nothing listens on its SSH port" in found["gpu011"].reason
    assert "does not answer" in found["gpu012"].reason
    assert "python3" in found["gpu013"].reason
    assert "host key is not the one known" in found["gpu014"].reason
    assert "probes came, not the end" in found["gpu015"].reason
    assert found["gpu015"].file
    assert "15 nodes: 10 ok" in ended.stderr
    wait_for(lambda: not hosts.collectors(), 20, "no collector is left on any host")


def test_a_client_that_is_killed_leaves_no_orphan_and_its_run_goes_on_where_it_was(
    hosts: Fleet, tmp_path: Path
) -> None:
    out = tmp_path / "fleet"
    arguments = ["fleet", "collect", "gpu[001-006]", "-o", str(out), "--timeout", "300", "--deadline", "60", "--concurrency", "1"]  # fmt: skip
    process = hosts.start(*arguments)
    index = out / "index.sqlite"
    wait_for(lambda: index.exists() and len(rows(out)) >= 2, 90, "some nodes are there")
    process.kill()
    process.wait()
    before = rows(out)
    assert 2 <= len(before) < 6
    # their ssh ends with its input and output gone, and the collectors with their connections
    wait_for(lambda: not hosts.collectors(), 45, "no collector is left on any host")

    refused = hosts.gpuwhy(*arguments)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    again = hosts.gpuwhy(*arguments, "--resume")
    assert again.returncode == 0, again.stderr
    assert snapshots(out) == set(HEALTHY[:6])
    after = rows(out)
    assert all(after[name] == before[name] for name in before), "those that were whole are not asked again"
    assert f"{len(before)} were there already" in again.stderr


def test_a_host_that_is_cut_off_ends_its_collector_by_itself(hosts: Fleet, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    arguments = ["fleet", "collect", "gpu010", "-o", str(out), "--timeout", "10", "--deadline", "10"]
    process = hosts.start(*arguments)
    wait_for(lambda: bool(hosts.collectors()), 20, "the collector runs")
    hosts.link("gpu010", "down")
    try:
        assert process.wait(300) == 3 or statuses(out) == {"gpu010": "partial"}
        assert statuses(out)["gpu010"] in ("unreachable", "timed out", "partial")
        wait_for(lambda: not hosts.collectors(), 20, "no collector is left, though nobody told it that we are gone")
    finally:
        hosts.link("gpu010", "up")


def test_an_interrupt_ends_the_run_and_keeps_what_came(hosts: Fleet, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    arguments = ["fleet", "collect", "gpu[001-003],gpu016", "-o", str(out), "--timeout", "100"]
    process = subprocess.Popen(
        # whoever starts the tests in the background has an interrupt ignored, and children inherit that
        ["env", "--default-signal=INT", *hosts.command(*arguments)],
        env=hosts.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    index = out / "index.sqlite"
    wait_for(lambda: index.exists() and len(rows(out)) == 3, 60, "the good ones are there")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert set(statuses(out).values()) == {"ok"}


def test_gateways_pass_the_work_on(hosts: Fleet, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    topology = tmp_path / "topology.conf"
    topology.write_text("[routes]\ncontrol: gw[1-2]\ngw[1-2]: gpu[001-016]\n")
    path = f"{ROOT}/src:{next(place for place in sys.path if place.endswith('site-packages'))}"
    ended = hosts.gpuwhy(
        "fleet", "collect", "gpu[001-004,011,013-014]", "-o", str(out), "--topology", str(topology), "--timeout", "60",
        "--deadline", "20", CLUSTERSHELL_GW_PYTHON_EXECUTABLE=sys.executable, PYTHONPATH=path,
    )  # fmt: skip
    assert snapshots(out) == set(HEALTHY[:4]), ended.stderr
    assert {name: status for name, status in statuses(out).items() if name in BROKEN} == {
        name: BROKEN[name] for name in ("gpu011", "gpu013", "gpu014")
    }
    through = [gateway for gateway in GATEWAYS if "Accepted publickey" in hosts.log(gateway)]
    assert through == GATEWAYS
    logins = hosts.log("gpu001").split("Accepted publickey for root from ")[-1]
    assert logins.startswith(("10.77.0.21 ", "10.77.0.22 ")), "the last one who came was a gateway"


def test_an_inventory_names_hosts_and_how_to_reach_them(hosts: Fleet, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(
        "[gpu]\nnode[001:002]\n[gpu:vars]\nansible_user=root\n[others]\ngpu003\n[node1]\nnode001 ansible_host=10.77.0.1\n"
        "[node2]\nnode002 ansible_host=10.77.0.2 ansible_ssh_common_args='-o HostKeyAlias=gpu002'\n"
        "[node1:vars]\nansible_ssh_extra_args=-oHostKeyAlias=gpu001\n"
    )
    ended = hosts.gpuwhy("fleet", "collect", "gpu", "--inventory", str(inventory), "-o", str(out), "--timeout", "60")
    assert ended.returncode == 0, ended.stderr
    assert snapshots(out) == {"node001", "node002"}, ended.stderr


@pytest.mark.soak  # minutes of key exchange
def test_two_hundred_hosts(tmp_path: Path) -> None:
    """Recorded answers: how soon 200 collectors get through on two cores says nothing about the fleet."""
    from benchmarks.bench_fleet import recorded

    answer = recorded(tmp_path, 200_000)
    names = [f"n{number:03}" for number in range(1, 201)]
    out = tmp_path / "fleet"
    with fleet(tmp_path, patience=60) as many:
        many.add_addresses(names, f"ForceCommand sh -c 'cat >/dev/null; cat {answer}'")
        many.ready(["many"])
        ended = many.gpuwhy("fleet", "collect", "n[001-200]", "-o", str(out), "--concurrency", "32", timeout=280)
    assert snapshots(out) == set(names), ended.stderr
    assert len(list((out / "nodes").iterdir())) == 200


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), ["n1", "n2", "n3"]) as made:
        yield made


def on(cluster: SlurmCluster | RayCluster) -> Callable[..., subprocess.CompletedProcess[str]]:
    """gpuwhy, run where the cluster is."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return cluster.run(sys.executable, "-m", "gpuwhy", *arguments, timeout=200, PYTHONPATH=str(ROOT / "src"))

    return run


def test_slurm_by_partition_and_beside_a_job(slurm: SlurmCluster, tmp_path: Path) -> None:
    out = tmp_path / "partition"
    ended = on(slurm)(
        "fleet", "collect", "--slurm", "--partition", "gpu", "-o", str(out), "--timeout", "60", "--deadline", "20"
    )
    assert snapshots(out) == {"n1", "n2", "n3"}, ended.stderr
    assert (rows(out)["gone"].status, rows(out)["gone"].reason) == (
        "unreachable",
        "Slurm has it as down (its fans failed)",
    )

    allocation = subprocess.Popen(
        slurm.inside("salloc", "--no-shell", "--nodelist=n2,n3", "--nodes=2", "--ntasks=4", "--job-name=lab"),
        env=slurm.environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert allocation.wait(150) == 0
    job = slurm.run("squeue", "--noheader", "--name=lab", "--format=%A").stdout.strip()
    try:
        beside = on(slurm)(
            "fleet", "collect", "--job", job, "-o", str(tmp_path / "job"), "--timeout", "60", "--deadline", "20"
        )
        assert snapshots(tmp_path / "job") == {"n2", "n3"}, beside.stderr
        busy = on(slurm)(
            "fleet", "collect", "n[1-2]", "--slurm", "-o", str(tmp_path / "busy"), "--timeout", "60", "--deadline", "20"
        )
        assert statuses(tmp_path / "busy") == {"n1": "ok", "n2": "refused"}, busy.stderr
    finally:
        slurm.run("scancel", job)
    unknown = on(slurm)("fleet", "collect", "--job", "4711", "-o", str(tmp_path / "none"))
    assert unknown.returncode == 2
    assert "4711" in unknown.stderr


ECHOING = """\
import os, sys
from gpuwhy.collector.framing import LINE
from gpuwhy.fleet.engines.interface import Pace, Payload
from gpuwhy.fleet.engines.slurm import Slurm
class Watcher:
    def started(self, node): pass
    def ended(self, ended): print(ended.node, ended.status, ended.output == sent.rstrip(b"\\n"), len(ended.output), ended.reason)
sent = b"".join(b"gpuwhy:" + os.urandom(LINE // 2).hex().encode() + b"\\n" for _ in range(4000))
Slurm("n[1-3]", "gpu").run(["n1", "n2", "n3"], Payload("cat", sent, 60.0), Pace(), Watcher())
"""


def test_slurm_carries_megabytes_of_three_nodes_at_once_unharmed(slurm: SlurmCluster) -> None:
    ended = slurm.run(sys.executable, "-c", ECHOING, PYTHONPATH=str(ROOT / "src"))
    assert sorted(ended.stdout.splitlines()) == [f"n{n} ok True {4000 * 728 - 1} " for n in (1, 2, 3)], ended.stderr


def test_a_slurm_node_that_dies_meanwhile_stops_no_other(slurm: SlurmCluster, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    arguments = ["fleet", "collect", "--slurm", "-o", str(out), "--timeout", "10", "--deadline", "8"]
    process = subprocess.Popen(
        slurm.inside(sys.executable, "-m", "gpuwhy", *arguments), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**slurm.environment, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    wait_for(lambda: len(slurm.collectors()) >= 3, 30, "collectors run")
    slurm.lose("n3")
    process.wait(300)
    assert {name: status for name, status in statuses(out).items() if name in ("n1", "n2")} == {"n1": "ok", "n2": "ok"}
    assert statuses(out)["n3"] in ("unreachable", "timed out", "failed", "partial")
    assert rows(out)["n3"].reason


@pytest.mark.soak  # it ends when its life is over, as tests/collector/test_once.py shows in seconds
def test_slurm_leaves_nothing_on_a_node_when_its_client_is_killed(slurm: SlurmCluster, tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    arguments = ["fleet", "collect", "n[1-2]", "--slurm", "-o", str(out), "--timeout", "6", "--deadline", "5"]
    process = subprocess.Popen(
        slurm.inside(sys.executable, "-m", "gpuwhy", *arguments), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**slurm.environment, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    wait_for(lambda: bool(slurm.collectors()), 30, "collectors run")
    process.kill()
    process.wait()
    for srun in slurm.clients():
        os.kill(srun, signal.SIGKILL)
    wait_for(lambda: not slurm.collectors(), 30, "no collector is left")


def test_ray_a_task_a_node_with_the_logs_of_its_session(tmp_path: Path) -> None:
    # Ray's sockets lie in its folder, and their paths have to be short
    with tempfile.TemporaryDirectory(prefix="gwr") as short, ray_cluster(Path(short), ["head", "w1", "w2"]) as cluster:
        missing = on(cluster)("fleet", "collect", "--ray", cluster.address, "-o", str(tmp_path / "none"))
        assert missing.returncode == 2
        assert "--ray-python" in missing.stderr
        assert "RayTaskError" in cluster.run(str(PYTHON), "-c", FAILING, cluster.address).stdout
        cluster.remove("w2")
        out = tmp_path / "fleet"
        ended = on(cluster)(
            "fleet", "collect", "--ray", cluster.address, "--ray-python", str(PYTHON), "-o", str(out), "--timeout", "60",
            "--deadline", "20",
        )  # fmt: skip
        assert snapshots(out) == {"head", "w1"}, ended.stderr
        assert rows(out)["w2"].status == "unreachable"
        assert "Ray has lost it" in rows(out)["w2"].reason
        process = subprocess.Popen(
            cluster.inside(sys.executable, "-m", "gpuwhy", "fleet", "collect", "--ray", cluster.address, "--ray-python", str(PYTHON), "-o", str(tmp_path / "killed"), "--timeout", "5"),
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**cluster.environment, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        wait_for(lambda: bool(collectors_in(cluster.space)), 60, "collectors run")
        process.kill()
        process.wait()
        wait_for(lambda: not collectors_in(cluster.space), 20, "no collector is left")
    with Store(out) as store:
        logs = service_logs(next(snapshot for node, snapshot in store.snapshots() if node.name == "head"))
    assert any("Engine core initialization failed in the lab" in log.text for log in logs)
