"""What a check answers: it passed, it found a problem, or it could not look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from gpuwhy.fit.results import Estimate
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.remedy import NotARemedy, Remedy


class Passed(msgspec.Struct, frozen=True):
    """Something that was held against the facts and is in order."""

    what: str
    why: str = ""
    """By what: a sentence with the versions that were compared."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of the catalogue whose conditions are there already, before anything failed.

    ``certainty``: ``proven`` where facts and measured knowledge leave no other outcome once the part is used,
    ``likely`` where one link is inferred, ``possible`` where it bites in some uses only.
    """

    cause: str
    component: str | None
    certainty: Certainty
    title: str
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    not_remedies: tuple[NotARemedy, ...] = ()


class Unchecked(msgspec.Struct, frozen=True):
    """Something that could not be examined, which is no pass: why, the fact that is missing, and how to get it."""

    what: str
    why: str
    key: str = ""
    command: str = ""


Result: TypeAlias = Passed | Problem | Unchecked
Check: TypeAlias = Callable[[Facts], Iterator[Result]]
"""Looks at facts only; it runs nothing and reads no file."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was asked of an environment and its GPUs. ``problems`` are in order, the surest first."""

    where: str
    problems: tuple[Problem, ...]
    passed: tuple[Passed, ...]
    unchecked: tuple[Unchecked, ...]
    facts: tuple[Fact, ...]
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    """Of the memory of the service's model, where its command and its config.json are known."""

    @property
    def is_examined(self) -> bool:
        """Whether anything at all could be said: without that, finding no problem means nothing."""
        return bool(self.problems or self.passed)


def unchecked(what: str, unknown: Unknown) -> Unchecked:
    """What a missing fact leaves open."""
    return Unchecked(what, unknown.why, unknown.key, unknown.command)


def first_unknown(*views: object) -> Unknown:
    """The reason of the first view that is not known."""
    return next((each for each in views if isinstance(each, Unknown)), Unknown("not examined"))


def by_the_tables(why: str, provenance: str) -> Evidence:
    """A statement of the measured compatibility data."""
    return Evidence(why, "", Place("knowledge", provenance), Standing.DERIVED)


def shown(facts: Facts, *keys: str) -> tuple[Evidence, ...]:
    """The evidence of the facts that are known among these."""
    found = (facts.get(key) for key in keys)
    return tuple(fact.evidence for fact in found if isinstance(fact, Fact))


def is_for_certain(facts: Facts, name: str) -> bool:
    """Whether a variable is known to be unset or what it is: otherwise it may change the outcome."""
    return f"env.{name}" in facts or facts.value("environment_complete") is True
