"""The verification ladder: what was proven of a change, rung by rung, and what remains unproven.

A rung is climbed by a :class:`Verifier`. Those of the rungs ``a`` to ``d`` need no change on the target and run before
one is made (and for ``gpuwhy verify``); those of rung ``e`` look at the service that was started with the change.
A new verifier is one class and one entry in :data:`VERIFIERS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.plan import Plan
from gpuwhy.remedies.applying.site import Outcome, Site
from gpuwhy.remedies.setting import Setting

Passed = Literal["passed", "failed", "not possible", "not run"]

RUNGS = (
    ("a", "facts", "the facts recomputed with the change"),
    ("b", "guard", "the failing check itself, run in the service's interpreter with the change"),
    ("c", "build", "the build, its result loaded and read"),
    ("d", "launch", "one launch on the GPU"),
    ("e", "active", "the service active and stable"),
    ("e", "health", "its health endpoint answers"),
    ("e", "request", "a request through the path that failed"),
)
"""Letter, name, and what is shown by it, from the cheapest to the strongest."""


class Rung(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rung and how it went. ``words``: what was seen, or why it was not possible; ``seconds`` it took."""

    letter: str
    name: str
    outcome: Passed
    words: str = ""
    seconds: float = 0.0


class Verification(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rungs that were tried, in order."""

    rungs: tuple[Rung, ...] = ()

    @property
    def reached(self) -> str:
        """The highest rung that held, as ``e: active``; ``""`` for none."""
        held = [rung for rung in self.rungs if rung.outcome == "passed"]
        return f"{held[-1].letter}: {held[-1].name}" if held else ""

    @property
    def refuted(self) -> Rung | None:
        """The first rung that failed: the change does not help, or does not help here."""
        return next((rung for rung in self.rungs if rung.outcome == "failed"), None)

    @property
    def unproven(self) -> tuple[str, ...]:
        """The names of the rungs that nothing was shown on."""
        held = {rung.name for rung in self.rungs if rung.outcome == "passed"}
        return tuple(name for _, name, _ in RUNGS if name not in held)

    def with_rungs(self, more: Iterable[Rung]) -> Verification:
        """These rungs and further ones, in the order of the ladder."""
        order = {name: number for number, (_, name, _) in enumerate(RUNGS)}
        rungs = sorted((*self.rungs, *more), key=lambda rung: order.get(rung.name, len(order)))
        return Verification(tuple(rungs))


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier is given: the remedy in its place. ``outcome`` is None before anything was applied."""

    remedy: Remedy
    plan: Plan
    setting: Setting
    diagnosis: Diagnosis
    site: Site
    outcome: Outcome | None = None


class Verifier(Protocol):
    """Climbs one rung. ``name`` is one of :data:`RUNGS`; ``needs_change``: whether the change must be in force."""

    @property
    def name(self) -> str: ...

    @property
    def needs_change(self) -> bool: ...

    def verify(self, trial: Trial) -> Rung | None:
        """How it went; None where the rung says nothing of this remedy. Raises TargetError when the target is lost."""
        ...


class ServiceStays:
    """The service, started with the change, is active and stays so for longer than it lived before."""

    name = "active"
    needs_change = True

    def verify(self, trial: Trial) -> Rung | None:
        stability = trial.outcome.stability if trial.outcome is not None else None
        if stability is None:
            return None
        seconds = stability.seen.get("seconds")
        return Rung("e", self.name, "passed" if stability.is_stable else "failed", stability.words, float(seconds or 0))


VERIFIERS: tuple[Verifier, ...] = (ServiceStays(),)
"""Who climbs which rung, from the lowest to the highest."""

OnRung = Callable[[Rung], None]


def climb(trial: Trial, *, with_change: bool, on_rung: OnRung | None = None) -> Verification:
    """The rungs that need the change in force, or those that do not; ends at the first that fails."""
    rungs: list[Rung] = []
    for verifier in VERIFIERS:
        if verifier.needs_change != with_change:
            continue
        begun = time.monotonic()
        rung = verifier.verify(trial)
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
