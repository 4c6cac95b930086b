"""``gpuwhy fleet``: collects from many nodes, and says what is different among them."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "collect": "Take a snapshot of each of many nodes, over ClusterShell, Slurm or Ray.",
    "report": "What is alike and what is different among them, with the findings of each group.",
    "query": "Ask the collected fleet in SQL.",
}


class FleetGroup(click.Group):
    """Imports ``gpuwhy.cli.fleet_NAME`` when the command NAME is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"gpuwhy.cli.fleet_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command("fleet", cls=FleetGroup)
def command() -> None:
    """Many nodes at once: collect from them, and find the one that differs."""
