"""``gpuwhy undo [WHERE] [ID]``: a change taken back, from what the target's own journal kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpuwhy.cli.changing import ask_whether, changed_host, is_attended, print_outcome, told_steps
from gpuwhy.cli.failing import unreachable, unusable
from gpuwhy.cli.group import UNREACHABLE
from gpuwhy.cli.target_options import Reach, target_options
from gpuwhy.reports import plain

if TYPE_CHECKING:
    from gpuwhy.remedies.applying.site import Record


@click.command("undo")
@click.argument("words", metavar="[WHERE] [ID]", nargs=-1)
@click.option("--force", is_flag=True, help="Also take back a file that was changed by hand since; it is kept beside.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@target_options
def command(words: tuple[str, ...], force: bool, yes: bool, form: str, reach: Reach) -> int:
    """Take back the change ID of gpuwhy's at WHERE (default: local), or the last one that is in force.

    What the change replaced comes back as it was, and the unit is started again, or stopped if it was not running.

    Exit status: 0 undone (or undone before), 2 the arguments are unusable, 3 it was refused, or not possible to its end.
    """
    from gpuwhy.remedies.applying.site import Site
    from gpuwhy.targets import TargetError

    where, number = place_and_number(words)
    try:
        with Site(changed_host(where, reach)) as site:
            if is_attended() and not yes and not ask_whether(_question(site.history(), number)):
                return 0
            with told_steps(form) as (on_step, _):
                outcome = site.undo(number, force=force, on_step=on_step)
    except TargetError as error:
        unreachable(str(error))
    print_outcome(where, outcome, form)
    return 0 if outcome.status in ("undone", "unchanged") else UNREACHABLE


def place_and_number(words: tuple[str, ...]) -> tuple[str, int | None]:
    """``[WHERE] [ID]``: the last word is the number of a change when it consists of digits."""
    rest = list(words)
    number = int(rest.pop()) if rest and rest[-1].isascii() and rest[-1].isdigit() and len(rest[-1]) < 10 else None
    if len(rest) > 1:
        unusable("name one place, and at most one change by its number: gpuwhy undo [WHERE] [ID]")
    return (rest[0] if rest else "local"), number


def _question(records: tuple[Record, ...], number: int | None) -> str:
    in_force = [record for record in records if record.state not in ("undone", "prepared", "unreadable")]
    for record in reversed(in_force):
        if number is None or record.id == number:
            return f"Undo change {record.id} ({plain(record.title)}) of {plain(record.unit) or 'the target'}?"
    return f"Undo change {number}?" if number is not None else "Undo the last change?"
