"""``gpuwhy fleet collect NODES -o FOLDER``: one snapshot a node, and a row for each that gave none."""

from __future__ import annotations

from typing import Any

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.group import UNREACHABLE


@click.command("collect")
@click.argument("nodes", required=False, default="")
@click.option("--output", "-o", "folder", required=True, metavar="FOLDER", help="Where the snapshots and the index go.")
@click.option("--unit", "-u", default="", help="The systemd unit to examine on every node.")
@click.option(
    "--engine",
    type=click.Choice(["clustershell", "slurm", "ray"]),
    help="What reaches the nodes; clustershell by default.",
)
@click.option("--slurm", is_flag=True, help="One task a node through srun.")
@click.option("--partition", default="", metavar="NAME", help="With Slurm: the nodes of a partition.")
@click.option("--job", default="", metavar="ID", help="With Slurm: the nodes of a running job, beside what it does.")
@click.option(
    "--ray",
    default="",
    metavar="ADDRESS",
    help="One task a node of a Ray cluster: auto, HOST:6379 or ray://HOST:10001.",
)
@click.option(
    "--ray-python", default="", metavar="PATH", help="The Python that has the cluster's Ray; this one by default."
)
@click.option(
    "--inventory",
    default="",
    metavar="FILE",
    help="An Ansible inventory; NODES are then its groups or hosts, all by default.",
)
@click.option(
    "--topology", default="", metavar="FILE", help="ClusterShell's topology file: gateways that pass the work on."
)
@click.option(
    "--concurrency", type=click.IntRange(1, 4096), default=64, show_default=True, help="Nodes at the same time."
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 10000),
    default=0.0,
    metavar="N",
    help="Nodes begun in a second, at most; 0 is no limit.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(0.5, 600),
    default=8.0,
    show_default=True,
    help="Seconds for the probes of a node.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1, 900),
    default=30.0,
    show_default=True,
    help="Seconds after which a node is given up.",
)
@click.option("--sudo", is_flag=True, help="Read with sudo's rights there; never asks for a password.")
@click.option("--resume", is_flag=True, help="Collect only those that FOLDER lacks or that failed.")
def command(
    nodes: str,
    folder: str,
    unit: str,
    engine: str | None,
    concurrency: int,
    rate: float,
    deadline: float,
    timeout: float,
    sudo: bool,
    resume: bool,
    **named: Any,
) -> int:
    """Take a snapshot of each of NODES, on an engine that the cluster already has.

    Over SSH NODES is a node set of ClusterShell: 'gpu[001-064]', gpu1,gpu2, @group, root@gpu[1-8]. A node that refuses,
    hangs or lacks python3 becomes a row with its reason, and stops no other.
    """
    import sys

    from gpuwhy.cli.fleet_progress import shown_fleet
    from gpuwhy.cli.fleet_told import collected
    from gpuwhy.fleet.choosing import Choice, engine_of
    from gpuwhy.fleet.collecting import Asked, collect_fleet
    from gpuwhy.fleet.engines.interface import FleetError, Pace
    from gpuwhy.fleet.store import Store, StoreError

    try:
        chosen = engine_of(Choice(nodes=nodes, engine=engine or "", **named))
        wanted = chosen.nodes()
        with Store(folder, create=True) as store, shown_fleet(len(wanted)) as progress:
            asked = Asked(unit, deadline, timeout, sudo)
            outcome = collect_fleet(chosen, store, asked, Pace(concurrency, rate), resume, progress.on_node, wanted)
            rows = [node for node in store.nodes() if node.name in set(wanted)]
    except (FleetError, StoreError) as error:
        unusable(str(error))
    sys.stderr.write(collected(folder, outcome, rows))
    return 0 if any(row.file for row in rows) else UNREACHABLE
