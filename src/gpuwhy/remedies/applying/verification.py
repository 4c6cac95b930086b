"""The verification ladder: what was proven of a change, rung by rung, and what remains unproven.

A rung is climbed by a :class:`Verifier`. Those of the rungs ``a`` to ``d`` need no change on the target and run before
one is made (and for ``gpuwhy verify``); those of rung ``e`` look at the service that was started with the change.
A new verifier is one class and one entry in ``VERIFIERS`` of :mod:`gpuwhy.remedies.verifying.ladder`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec

from gpuwhy.model.diagnosis import Diagnosis
from gpuwhy.model.remedy import Remedy
from gpuwhy.remedies.applying.plan import Plan
from gpuwhy.remedies.applying.site import STARTS, Outcome, Site
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
    """What a verifier is given: the remedy in its place. ``outcome`` is None before anything was applied.

    ``plan`` is None where gpuwhy would not carry the remedy out. ``climbed`` are the rungs tried before this one,
    ``deadline`` the seconds that the service may take to come up and ``grace`` those that it must stay up, ``is_building`` whether rungs c and d are wanted.
    """

    remedy: Remedy
    plan: Plan | None
    setting: Setting
    diagnosis: Diagnosis
    site: Site
    outcome: Outcome | None = None
    climbed: tuple[Rung, ...] = ()
    deadline: float = STARTS
    grace: float | None = None
    is_building: bool = False

    @property
    def plan_unit(self) -> str:
        """The unit that the plan restarts; ``""`` for none."""
        return self.plan.unit if self.plan is not None else ""


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
