"""``gpuwhy collect WHERE -o FILE``: a snapshot, to be read, sent and diagnosed elsewhere."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from gpuwhy.cli.examination_options import deadline_option, unit_option, where_argument
from gpuwhy.cli.failing import fail, unusable, warn
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
    from gpuwhy.investigate.examined_service import notes_on_named
    from gpuwhy.snapshot import SnapshotError, write
    from gpuwhy.snapshot.anonymising import anonymised, parse_kinds
    from gpuwhy.snapshot.denials import denials

    _expect_room_for(output)
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
    except OSError as error:
        unusable(f"{output}: {error.strerror or error}")
    except SnapshotError as error:
        unusable(f"{output}: {error}")
    names = sum(snapshot.redacted.get(kind, 0) for kind in kinds)
    secrets = sum(snapshot.redacted.values()) - names
    others = f", {names} names replaced" if kinds else ""
    click.echo(f"gpuwhy: {output}: {len(snapshot.probes)} probes, {secrets} secrets taken out{others}", err=True)
    for note in [*notes_on_named(snapshot), *denials(snapshot)]:
        warn(note)
    return 0


def _expect_room_for(output: str) -> None:
    """Says before the collection, and not after it, that its file could not be written."""
    file = Path(output)
    if file.is_dir():
        unusable(f"{output} is a folder\nName a file in it: -o {shlex.quote(str(file / 'host.gpuwhy'))}")
    if not file.parent.is_dir():
        unusable(f"{output}: there is no folder {file.parent}")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        unusable(f"{output}: nothing may be written to {file.parent}")
