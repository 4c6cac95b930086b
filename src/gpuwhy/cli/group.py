"""The ``gpuwhy`` command, its subcommands loaded lazily, and errors in words for people."""

from __future__ import annotations

import importlib
import os
import sys

import click

from gpuwhy import __version__

COMMANDS = {
    "diagnose": "Find out why a service crashed or will not start.",
    "fix": "Apply a remedy, prove it, and be able to go back.",
    "verify": "Try a remedy without making it.",
    "undo": "Take back a change that gpuwhy made.",
    "watch": "Diagnose a service at the moment it fails.",
    "history": "What gpuwhy changed on a target.",
    "collect": "Take a snapshot of a target, to diagnose it elsewhere.",
    "show": "What a snapshot holds; a saved answer in any format.",
    "report": "Fill the bug form of a project, without names and secrets.",
    "check": "Forecast: will this environment run on these GPUs?",
    "fit": "Will a model fit on these GPUs, under this engine and these settings?",
    "diff": "What changed between two snapshots, or a snapshot and a host.",
    "inspect": "Which GPUs binaries have code for, and whether yours runs them.",
    "trace": "From a traceback or a line of source to what makes it fail.",
    "fleet": "Collect from many nodes, and find the one that differs.",
    "mcp": "Serve these verbs to an agent (Model Context Protocol).",
    "cause": "Print the documentation of a cause.",
    "causes": "List the catalogue of causes.",
    "case": "Give back: a crash with its right answer, for the project's cases.",
}
FAILURE, UNUSABLE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130
"""Exit statuses besides 0; see docs/json.md."""


class LazyGroup(click.Group):
    """Imports ``gpuwhy.cli.NAME`` when the command NAME is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"gpuwhy.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it; of a word that is no command, those that may have been meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, 3, 0.6)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gpuwhy", message="%(prog)s %(version)s")
def group() -> None:
    """Why did this GPU inference service crash, and what is the smallest change that fixes it?"""


def run() -> int:
    """Run the command line and return the exit status. An interrupt and a closed pipe end it in silence."""
    try:
        status = group.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return UNUSABLE
    except BrokenPipeError:
        # the reader has what it wanted; keep Python from complaining when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status if isinstance(status, int) else 0
