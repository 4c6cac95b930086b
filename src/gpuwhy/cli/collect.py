"""``gpuwhy collect WHERE -o FILE``: a snapshot, to be read, sent and diagnosed elsewhere."""

from __future__ import annotations

import click

from gpuwhy.cli.examination_options import deadline_option, unit_option, where_argument
from gpuwhy.cli.failing import fail, unusable
from gpuwhy.cli.target_options import Reach, target_options


@click.command("collect")
@where_argument()
@unit_option("to examine")
@click.option(
    "--pid", type=click.IntRange(1, 2**22), help="A process that runs and does not get on: what it waits for."
)
@click.option("--output", "-o", required=True, metavar="FILE", help="The snapshot to write, by custom NAME.gpuwhy.")
@deadline_option()
@click.option("--redact", metavar="KINDS", default="", help="For the public: take out hosts,ips,users,paths, or all.")
@target_options
def command(where: str, unit: str, pid: int | None, output: str, deadline: float, redact: str, reach: Reach) -> int:
    """Take a snapshot of WHERE (local, an SSH destination, a container or a pod), with secrets taken out before they leave it."""
    from gpuwhy import api
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.snapshot import SnapshotError, write
    from gpuwhy.snapshot.anonymising import anonymised, parse_kinds

    try:
        kinds = parse_kinds(redact) if redact else ()
        with shown_progress(where) as on_probe:
            snapshot = api.collect(
                where,
                unit=unit,
                pid=pid,
                via=reach.via,
                sudo=reach.sudo,
                deadline=deadline,
                timeout=reach.timeout,
                on_probe=on_probe,
            )
        snapshot = anonymised(snapshot, kinds) if kinds else snapshot
        write(snapshot, output)
    except api.GpuwhyError as error:
        fail(error)
    except ValueError as error:
        unusable(f"--redact {error}")
    except (SnapshotError, OSError) as error:
        unusable(f"{output}: {error}")
    names = sum(snapshot.redacted.get(kind, 0) for kind in kinds)
    secrets = sum(snapshot.redacted.values()) - names
    others = f", {names} names replaced" if kinds else ""
    click.echo(f"gpuwhy: {output}: {len(snapshot.probes)} probes, {secrets} secrets taken out{others}", err=True)
    return 0
