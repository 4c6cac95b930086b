"""``gpuwhy collect WHERE -o FILE``: a snapshot, to be read, sent and diagnosed elsewhere."""

from __future__ import annotations

import click

from gpuwhy.cli.failing import unreachable, unusable


@click.command("collect")
@click.argument("where")
@click.option("--unit", "-u", default="", help="The systemd unit to examine.")
@click.option("--output", "-o", required=True, metavar="FILE", help="The snapshot to write, by custom NAME.gpuwhy.")
@click.option("--deadline", type=click.FloatRange(0.5, 600), default=8.0, show_default=True, help="Seconds for probes.")
def command(where: str, unit: str, output: str, deadline: float) -> int:
    """Take a snapshot of WHERE (local or an SSH destination), with secrets taken out before they leave it."""
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.investigate import examine
    from gpuwhy.snapshot import SnapshotError, write
    from gpuwhy.targets import HostTarget, TargetError, parse_where

    try:
        target = parse_where(where)
        if not isinstance(target, HostTarget):
            unusable(f"{where} is a file: there is nothing to collect")
        with shown_progress(target.name) as on_probe:
            snapshot = examine(target, unit=unit, on_probe=on_probe, deadline=deadline).snapshot
        if snapshot is not None:
            write(snapshot, output)
    except TargetError as error:
        unreachable(str(error))
    except (SnapshotError, OSError) as error:
        unusable(f"{output}: {error}")
    if snapshot is not None:
        redacted = sum(snapshot.redacted.values())
        click.echo(f"gpuwhy: {output}: {len(snapshot.probes)} probes, {redacted} secrets taken out", err=True)
    return 0
