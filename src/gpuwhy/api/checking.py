"""Whether an environment will run, before anything failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuwhy.api.errors import UnusableError
from gpuwhy.api.places import TIMEOUT, GivenFacts, OnProbe, Where, facts_of, reached

if TYPE_CHECKING:
    from gpuwhy.investigate.checks.results import Forecast

FORECAST = 4.0
"""Seconds that the probes of a check are given."""


def check(
    where: Where | None = None,
    *,
    gpus: Sequence[str] = (),
    driver: str = "",
    cuda: str = "",
    packages: Sequence[str] = (),
    env: Sequence[str] = (),
    requirements: str = "",
    facts: GivenFacts = None,
    unit: str = "",
    via: str = "",
    sudo: bool = False,
    deadline: float = FORECAST,
    timeout: float = TIMEOUT,
    on_probe: OnProbe = None,
) -> Forecast:
    """Whether the environment at ``where`` will run on its GPUs, before anything failed.

    ``gpus`` (``"8 x H100"``, ``"12.0"``), ``driver``, ``cuda``, ``packages`` (``"torch==2.9.1"``), ``env`` (``"NAME=VALUE"``)
    and ``requirements`` (a file) stand in the place of what is there; without ``where`` they are all that is judged.
    """
    from gpuwhy.investigate.checks.forecasting import check_plan, check_target
    from gpuwhy.investigate.checks.plan import Plan, PlanError
    from gpuwhy.reports.check import prescribed

    plan = Plan(tuple(gpus), driver, cuda, tuple(packages), tuple(env), requirements)
    if where is None and plan.is_empty and facts is None:
        raise UnusableError(
            "name what to check: local, a host, a snapshot, or a plan with --gpu, --requirements and so on"
        )
    given = facts_of(facts) if facts is not None else None
    try:
        if where is None:
            return prescribed(check_plan(plan, given))
        with reached(where, via=via, sudo=sudo) as target:
            found = check_target(
                target, plan, unit=unit, facts=given, on_probe=on_probe, deadline=deadline, timeout=timeout
            )
    except PlanError as error:
        raise UnusableError(str(error)) from error
    return prescribed(found)
