"""``gpuwhy show SNAPSHOT``: what a snapshot holds, so that it can be read before it is sent."""

from __future__ import annotations

import sys

import click

from gpuwhy.cli.failing import unusable


@click.command("show")
@click.argument("file")
@click.option("--probe", "-p", metavar="NAME", default="", help="All that one question brought, as JSON.")
@click.option("--redactions", is_flag=True, help="How many secrets were taken out, of which kinds, and where.")
@click.option("--redact", metavar="KINDS", default="", help="For the public: take out hosts,ips,users,paths, or all.")
@click.option("--output", "-o", metavar="FILE", default="", help="Write the snapshot, so redacted, to a file.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(file: str, probe: str, redactions: bool, redact: str, output: str, form: str) -> int:
    """What the snapshot FILE holds: every question, its outcome, and the secrets that were taken out.

    With --redact KINDS --output FILE, a copy without the names of hosts, addresses, users or paths is written.
    """
    from gpuwhy.reports import snapshot as report
    from gpuwhy.snapshot import SnapshotError, read, write
    from gpuwhy.snapshot.anonymising import anonymised, parse_kinds

    try:
        snapshot = read(file)
        snapshot = anonymised(snapshot, parse_kinds(redact)) if redact else snapshot
        if output:
            write(snapshot, output)
            return 0
    except SnapshotError as error:
        unusable(str(error))
    except ValueError as error:
        unusable(f"--redact {error}")
    except OSError as error:
        unusable(f"{output}: {error.strerror}")
    if probe:
        found = snapshot.probe(probe)
        if found is None:
            unusable(f"{file} has no probe {probe}; it has {', '.join(sorted(each.name for each in snapshot.probes))}")
        text = report.probe_value(found)
    elif redactions:
        text = report.redactions(snapshot)
    else:
        text = report.whole(snapshot) if form == "json" else report.overview(snapshot)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    return 0
