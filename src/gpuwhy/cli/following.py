"""``gpuwhy diagnose WHERE --follow``: tells of each incident when it is complete, until it is interrupted."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuwhy.cli.failing import unreachable, unusable, warn
from gpuwhy.cli.group import FAILURE
from gpuwhy.cli.report_options import write_report

if TYPE_CHECKING:
    from gpuwhy.cli.target_options import Reach
    from gpuwhy.model.diagnosis import Diagnosis
    from gpuwhy.model.fact import Facts
    from gpuwhy.reports import Detail
    from gpuwhy.targets import Target
    from gpuwhy.targets.growing import Growing

_MAGICS = (b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def follow(
    where: str, unit: str, facts: Facts | None, form: str, detail: Detail, output: Path | None, deadline: float, reach: Reach
) -> int:  # fmt: skip
    """Follow a log, standard input, or a unit of this machine or of a host. Exit status 1 when something failed meanwhile."""
    from gpuwhy.logs import UnreadableLog
    from gpuwhy.targets import TargetError

    told = 0
    try:
        target = reach.target(where)
        source = _source(target, unit)
        warn(f"following {unit + ' on ' if unit else ''}{target.name}; Ctrl-C ends it")
        try:
            for diagnosis in _failures(target, source, unit, facts, deadline, reach):
                _tell(diagnosis, form, detail, output, is_first=not told)
                told += 1
        finally:
            source.close()
    except KeyboardInterrupt:
        pass
    except UnreadableLog as error:
        unusable(str(error))
    except TargetError as error:
        unreachable(str(error)) if unit else unusable(str(error))
    return FAILURE if told else 0


def _source(target: Target, unit: str) -> Growing:
    from gpuwhy.targets import FileTarget, PathTarget, TargetError
    from gpuwhy.targets.growing import GrowingFile, GrowingOutput, GrowingPipe
    from gpuwhy.targets.local import LocalTarget
    from gpuwhy.targets.ssh import SshTarget

    if isinstance(target, PathTarget):
        with target.stream() as stream:
            if stream.read(8).startswith(_MAGICS):
                raise TargetError(
                    f"{target.name} is compressed: it does not grow", "Follow the log before it is packed."
                )
        return GrowingFile(target.path)
    if isinstance(target, FileTarget):
        target.stream()  # says what is wrong where standard input is a terminal
        return GrowingPipe(sys.stdin.fileno())
    if not isinstance(target, (LocalTarget, SshTarget)):
        raise TargetError(
            f"{target.name}: only a log, standard input, or a unit of a host can be followed",
            "Pipe its log: docker logs -f NAME 2>&1 | gpuwhy diagnose - --follow",
        )
    if not unit:
        raise TargetError(f"{target.name}: name the unit to follow", "gpuwhy diagnose WHERE --unit NAME --follow")
    journal = [
        "journalctl",
        "--quiet",
        "--follow",
        "--lines=0",
        "--output=cat",
        f"--unit={unit}",
        f"--user-unit={unit}",
    ]
    journal = ["sudo", "-n", *journal] if target.sudo else journal
    command = [*target.command()[:-1], shlex.join(journal)] if isinstance(target, SshTarget) else journal
    return GrowingOutput(command, f"the journal of {unit} on {target.name}")


def _failures(
    target: Target, source: Growing, unit: str, facts: Facts | None, deadline: float, reach: Reach
) -> Iterator[Diagnosis]:
    from gpuwhy.investigate import investigate
    from gpuwhy.investigate.following import follow_log, follow_unit
    from gpuwhy.remedies import prescribe
    from gpuwhy.targets import FileTarget

    def examine() -> Diagnosis:
        return investigate(target, unit=unit, facts=facts, deadline=deadline, timeout=reach.timeout)

    if isinstance(target, FileTarget):
        found = follow_log(source, "standard input" if target.name == "-" else target.name, facts)
    else:
        found = follow_unit(source, examine)
    for diagnosis in found:
        yield prescribe(diagnosis)


def _tell(diagnosis: Diagnosis, form: str, detail: Detail, output: Path | None, *, is_first: bool) -> None:
    if form == "text" and output is None:
        click.echo(("" if is_first else "\n") + f"--- {time.strftime('%Y-%m-%d %H:%M:%S')}")
    write_report(diagnosis, form, detail, output)
