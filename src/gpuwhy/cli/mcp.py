"""``gpuwhy mcp``: the verbs as tools for an agent."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from gpuwhy.cli.failing import unusable

TOKEN_VARIABLE = "GPUWHY_MCP_TOKEN"  # noqa: S105 - the name of the variable


@click.command("mcp")
@click.option("--allow", "places", metavar="PATTERN", multiple=True, help="A place that may be examined: 'root@gpu-*', docker:vllm, local (repeatable); without it local alone. * is any text without @ : / and dots, ** with dots.")  # fmt: skip
@click.option("--folder", "folders", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="A folder whose files may be read (repeatable); snapshots are written to the first. By default the current one.")  # fmt: skip
@click.option("--http", "address", metavar="[HOST:]PORT", default="", help=f"Streamable HTTP on this machine, with a token (in {TOKEN_VARIABLE}, else made and printed); 0 is any free port.")  # fmt: skip
@click.option("--allow-apply", is_flag=True, help="propose_fix may change hosts, with the token of a preview.")
@click.option("--sudo", is_flag=True, help="Read with sudo's rights on hosts; never asks for a password.")
@click.option("--timeout", type=click.FloatRange(0.5, 900), default=30.0, show_default=True, metavar="SECONDS", help="Hard stop of each call, with everything found so far.")  # fmt: skip
@click.option("--budget", type=click.IntRange(1500, 200_000), default=3600, show_default=True, metavar="BYTES", help="The most that an answer may have; the rest comes by pages.")  # fmt: skip
def command(
    places: tuple[str, ...],
    folders: tuple[Path, ...],
    address: str,
    allow_apply: bool,
    sudo: bool,
    timeout: float,
    budget: int,
) -> None:
    """Serve gpuwhy's verbs to an agent over the Model Context Protocol, on standard input and output or on HTTP.

    It runs no shell for the agent, examines only what --allow and --folder name, and changes nothing without
    --allow-apply. It needs the extra: pip install 'gpuwhy[mcp]'.
    """
    import gc

    # thousands of classes are made below: collecting meanwhile is a fifth of the start
    gc.disable()
    try:
        import anyio
        import pydantic

        # the SDK's models, of which a session uses a few, are built when they are used: another sixth
        pydantic.BaseModel.model_config["defer_build"] = True
        from gpuwhy.mcp.allowing import allowed
        from gpuwhy.mcp.answering import Desk, Manner, working_folder
        from gpuwhy.mcp.sdk import serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "anyio", "pydantic"):
            raise
        unusable("the agents' protocol is an extra: pip install 'gpuwhy[mcp]'")
    try:
        named = allowed(places, working_folder(folders))
    except (OSError, ValueError) as error:
        unusable(f"--folder {error}")
    desk = Desk(named, Manner(sudo=sudo, timeout=timeout, budget=budget, allow_apply=allow_apply))
    gc.freeze()
    gc.enable()
    if not address:
        anyio.run(serve_stdio, desk)
        return
    from gpuwhy.mcp.http import PATH, AddressError, authority_of, bound, serve_http

    try:
        listening = bound(address)
    except AddressError as error:
        unusable(f"--http {error}")
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and len(token) < 16:
        unusable(f"{TOKEN_VARIABLE} has {len(token)} characters; at least 16 are needed")
    click.echo(f"gpuwhy: http://{authority_of(listening)}{PATH}", err=True)
    if not token:
        token = secrets.token_urlsafe(24)
        click.echo(f"gpuwhy: token {token}", err=True)
    anyio.run(serve_http, desk, listening, token)
