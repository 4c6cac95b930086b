"""From the words of a command to the engine that is meant."""

from __future__ import annotations

import msgspec

from gpuwhy.fleet.engines.interface import Engine, FleetError


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What the user named: nodes, and at most one engine with what it needs.

    ``nodes`` may be empty where the engine or an inventory knows them all.
    """

    nodes: str = ""
    engine: str = ""
    slurm: bool = False
    partition: str = ""
    job: str = ""
    ray: str = ""
    ray_python: str = ""
    inventory: str = ""
    topology: str = ""


def engine_of(choice: Choice) -> Engine:
    """The engine of a choice, ready to name its nodes. Raises FleetError for what does not go together."""
    wants_slurm = choice.slurm or bool(choice.partition or choice.job) or choice.engine == "slurm"
    wants_ray = bool(choice.ray) or choice.engine == "ray"
    if (wants_slurm and wants_ray) or (choice.engine == "clustershell" and (wants_slurm or wants_ray)):
        raise FleetError("more than one engine is named", "Use one of --slurm, --ray ADDRESS and --engine.")
    if (wants_slurm or wants_ray) and (choice.inventory or choice.topology):
        raise FleetError("--inventory and --topology are for collecting over SSH", "Leave them out with Slurm and Ray.")
    if choice.partition and choice.job:
        raise FleetError("--partition and --job are both named", "A job has its nodes already: leave out --partition.")
    if wants_slurm:
        from gpuwhy.fleet.engines.slurm import Slurm

        return Slurm(choice.nodes, choice.partition, choice.job)
    if wants_ray:
        from gpuwhy.fleet.engines.ray import Ray

        return Ray(choice.nodes, choice.ray or "auto", choice.ray_python)
    return _over_ssh(choice)


def _over_ssh(choice: Choice) -> Engine:
    from gpuwhy.fleet.engines.clustershell import ClusterShell

    if choice.inventory:
        from gpuwhy.fleet.inventory import read_inventory

        return ClusterShell(choice.nodes, choice.topology, read_inventory(choice.inventory, choice.nodes))
    if not choice.nodes:
        raise FleetError("no nodes are named", "gpuwhy fleet collect 'gpu[001-064]' -o FOLDER, or --inventory, --slurm, --ray")  # fmt: skip
    return ClusterShell(choice.nodes, choice.topology)
