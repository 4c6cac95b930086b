"""The ladder: who climbs which rung, and how far it was climbed."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from gpuwhy.remedies.applying.verification import Rung, ServiceStays, Trial, Verification, Verifier
from gpuwhy.remedies.verifying.build import Builds, Launches
from gpuwhy.remedies.verifying.guard import GuardHolds, GuardHoldsAfterwards
from gpuwhy.remedies.verifying.recomputing import FactsRecomputed
from gpuwhy.remedies.verifying.service import AnswersHealth, AnswersRequest, ContainerStays

VERIFIERS: tuple[Verifier, ...] = (
    FactsRecomputed(),
    GuardHolds(),
    GuardHoldsAfterwards(),
    Builds(),
    Launches(),
    ServiceStays(),
    ContainerStays(),
    AnswersHealth(),
    AnswersRequest(),
)
"""From the lowest rung to the highest."""

OnRung = Callable[[Rung], None]


def climb(trial: Trial, *, with_change: bool, on_rung: OnRung | None = None) -> Verification:
    """The rungs that need the change in force, or those that do not; ends at the first that fails."""
    rungs: list[Rung] = []
    for verifier in VERIFIERS:
        if verifier.needs_change != with_change:
            continue
        begun = time.monotonic()
        rung = verifier.verify(msgspec.structs.replace(trial, climbed=tuple(rungs)))
        if rung is None:
            continue
        if not rung.seconds:
            rung = msgspec.structs.replace(rung, seconds=round(time.monotonic() - begun, 2))
        rungs.append(rung)
        if on_rung is not None:
            on_rung(rung)
        if rung.outcome == "failed":
            break
    return Verification(tuple(rungs))
