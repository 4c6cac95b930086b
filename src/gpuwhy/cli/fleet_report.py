"""``gpuwhy fleet report FOLDER``: who is alike, who is not, and what that causes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gpuwhy.cli.failing import unusable
from gpuwhy.cli.group import FAILURE, UNREACHABLE
from gpuwhy.cli.progress import can_overwrite, overwrite
from gpuwhy.cli.report_options import report_options, write_report


@click.command("report")
@click.argument("folder", type=click.Path())
@report_options("fleet")
@click.option("--verbose", "-v", is_flag=True, help="Every outlier, every deviation, all that has no majority.")
@click.option("--private", is_flag=True, help="With markdown: leave names of hosts, addresses, users and folders as they are.")  # fmt: skip
@click.option("--processes", type=click.IntRange(0, 64), default=0, metavar="N", help="Processes that work at once; 0: one for each processor, up to 4.")  # fmt: skip
def command(folder: str, form: str, output: Path | None, verbose: bool, private: bool, processes: int) -> int:
    """What is alike and what is different among the nodes that were collected in FOLDER.

    Nodes are compared with those that have the same GPUs and the same unit. What differs by nature (names, addresses,
    serial numbers, times) is left out. Each kind of host is judged once, as gpuwhy check and gpuwhy diagnose judge it.
    The answer is also kept in FOLDER for gpuwhy fleet query.

    Exit status: 0 all are alike and nothing failed, 1 something deviates or failed, 2 FOLDER is unusable, 3 nothing could be compared.
    """
    from gpuwhy.fleet.analysing import analyse
    from gpuwhy.fleet.store import StoreError
    from gpuwhy.reports import Detail

    try:
        report = analyse(folder, _counter(), processes)
    except StoreError as error:
        unusable(str(error))
    write_report(report, form, Detail(verbose=verbose, is_private=private), output)
    if not report.compared:
        return UNREACHABLE
    return FAILURE if report.outliers or report.failing else 0


class _Counter:
    """Shows on a terminal how far the work is, a few times in a second."""

    def __init__(self) -> None:
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        import time

        now = time.monotonic()
        if done < total and now - self._shown < 0.2:
            return
        self._shown = now
        overwrite("" if done == total else f"gpuwhy: {done:,} of {total:,} {what}")


def _counter() -> _Counter | None:
    return _Counter() if can_overwrite(sys.stderr) else None
