"""``gpuwhy diff BEFORE AFTER``: it worked yesterday; what changed?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.examination_options import deadline_option, unit_option, where_argument
from gpuwhy.cli.failing import unreachable, unusable
from gpuwhy.cli.group import FAILURE
from gpuwhy.cli.report_options import report_options, write_report
from gpuwhy.cli.target_options import Reach, target_options

if TYPE_CHECKING:
    from gpuwhy.snapshot import Snapshot


@click.command("diff")
@where_argument(name="before")
@where_argument(name="after")
@unit_option("to examine, where a side is a host")
@deadline_option()
@click.option("--verbose", "-v", is_flag=True, help="Every change and line, and all that could not be compared.")
@report_options("comparison")
@target_options
def command(
    before: str, after: str, unit: str, deadline: float, verbose: bool, form: str, output: Path | None, reach: Reach
) -> int:
    """What changed from BEFORE to AFTER, ordered by what it can cause.

    Each is a snapshot, or a host (local, an SSH destination, a container, a pod). A host is taken as the unit of the other side, unless --unit
    names one. Exit status 1 when something differs or nothing could be compared, 0 when all that was compared is equal.
    """
    from gpuwhy.investigate.differences import compare
    from gpuwhy.reports import Detail

    files = {where: _of_file(where) for where in (before, after)}
    known = next((each.target.unit for each in files.values() if each is not None and each.target.unit), "")
    first, second = (files[where] or _of_host(where, unit or known, deadline, reach) for where in (before, after))
    comparison = compare(first, second)
    write_report(comparison, form, Detail(verbose=verbose), output)
    return FAILURE if comparison.changes or not comparison.compared else 0


def _of_file(where: str) -> Snapshot | None:
    """The snapshot in a file; None where a host is named."""
    from gpuwhy.snapshot import SnapshotError, read
    from gpuwhy.targets import PathTarget, TargetError, parse_where

    try:
        target = parse_where(where)
        return read(where) if isinstance(target, PathTarget) else None
    except TargetError as error:
        unreachable(str(error))
    except SnapshotError as error:
        unusable(str(error))


def _of_host(where: str, unit: str, deadline: float, reach: Reach) -> Snapshot:
    from gpuwhy.cli.progress import shown_progress
    from gpuwhy.snapshot import collect
    from gpuwhy.targets import HostTarget, TargetError

    try:
        target = reach.target(where)
        if not isinstance(target, HostTarget):
            unusable(f"{where} is neither a snapshot nor a host")
        with shown_progress(target.name) as on_probe:
            return collect(target, unit, on_probe, deadline, reach.timeout)
    except TargetError as error:
        unreachable(str(error))
