"""The options of every command that takes WHERE: through which host, with which rights, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from gpuwhy.cli.failing import unreachable, unusable

if TYPE_CHECKING:
    from gpuwhy.targets import Target, TargetError

TIMEOUT = 30.0
"""Seconds after which a command ends with everything found so far."""


class Reach(msgspec.Struct, frozen=True):
    """How the targets of a command are reached. ``timeout`` is in seconds, from the first connection to the last answer."""

    via: str = ""
    sudo: bool = False
    timeout: float = TIMEOUT

    def target(self, where: str) -> Target:
        """What WHERE means. Raises :class:`gpuwhy.targets.TargetError`."""
        from gpuwhy.targets import parse_where

        return parse_where(where, via=self.via, sudo=self.sudo)

    def fail(self, where: str | None, error: TargetError) -> NoReturn:
        """Ends the command: exit status 3 where WHERE is a live place, 2 where it is a file or names nothing."""
        (unreachable if where and self._is_live(where) else unusable)(str(error))

    def _is_live(self, where: str) -> bool:
        from gpuwhy.targets import FileTarget, TargetError

        try:
            return not isinstance(self.target(where), FileTarget)
        except TargetError:
            return False


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--via``, ``--sudo`` and ``--timeout`` to a command, which is given them as one argument, ``reach``."""

    @wraps(command)
    def with_reach(*, via: str, sudo: bool, timeout: float, **arguments: Any) -> Any:
        return command(reach=Reach(via, sudo, timeout), **arguments)

    seconds = click.FloatRange(0.5, 900)
    for option in (
        click.option("--timeout", type=seconds, default=TIMEOUT, show_default=True, metavar="SECONDS", help="Hard stop, with everything found so far."),
        click.option("--sudo", is_flag=True, help="Read with sudo's rights there; never asks for a password."),
        click.option("--via", metavar="HOST", default="", help="The host of the engine or of kubectl, over SSH: --via root@gpu-host docker:vllm"),
    ):  # fmt: skip
        with_reach = option(with_reach)
    return with_reach
