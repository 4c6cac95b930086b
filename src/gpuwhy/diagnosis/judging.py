"""Ask every cause whose signs were found, and put their verdicts in order."""

from __future__ import annotations

import functools

import msgspec

from gpuwhy.causes import Case, catalogue
from gpuwhy.causes._case import telling_lines
from gpuwhy.diagnosis.chains import chained
from gpuwhy.diagnosis.matching import SignFinder
from gpuwhy.diagnosis.ranking import ranked
from gpuwhy.diagnosis.roles import of_an_earlier_life, without_excluded
from gpuwhy.diagnosis.surviving import parted
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Excluded, Finding, Missing, RuledOut, Verdict
from gpuwhy.model.incident import Incident


class Judgement(msgspec.Struct, frozen=True):
    """Ranked findings, what was considered and ruled out, and the one observation that would settle most."""

    findings: tuple[Finding, ...]
    ruled_out: tuple[Excluded, ...]
    decides: Missing | None
    considered: int = 0
    """How many causes had a sign in the logs."""
    dismissed: tuple[str, ...] = ()
    """Causes whose signs were found and turned out to be none of theirs."""
    survived: tuple[str, ...] = ()
    """Causes whose signs were seen, and after them the program at its work."""
    faults: tuple[str, ...] = ()
    """Causes that failed while judging; the others are not lost for it."""


def judge(incident: Incident, facts: Facts) -> Judgement:
    """Judge an incident by all causes of the catalogue. A cause that raises is recorded as a fault."""
    causes = catalogue()
    found = _finder().find(incident)
    telling = telling_lines(incident) if found else ()
    findings: list[Finding] = []
    excluded: list[Excluded] = []
    dismissed: list[str] = []
    faults: list[str] = []
    for identity, matches in found.items():
        entry = causes[identity]
        try:
            verdict = entry.judge(Case(incident, facts, matches, telling))
        except Exception as error:  # noqa: BLE001 - a cause may be a plug-in, and its bug must not cost the diagnosis
            faults.append(f"{identity} could not be judged: {type(error).__name__}: {error}")
            continue
        if isinstance(verdict, RuledOut):
            excluded.append(Excluded(identity, verdict.why, verdict.evidence))
        elif isinstance(verdict, Verdict):
            findings.append(_finding(identity, entry.family, verdict))
        else:
            dismissed.append(identity)
    kept, survived = parted(findings, incident)
    ordered = chained(ranked(kept, incident), incident, causes)
    past = of_an_earlier_life(ordered, incident)
    if past:
        ordered = chained([each for each in ordered if each.cause not in past], incident, causes)
    ordered = without_excluded(ordered, excluded)
    return Judgement(
        ordered, tuple(excluded), deciding(ordered), len(found), tuple(dismissed), (*survived, *past), tuple(faults)
    )


@functools.cache
def _finder() -> SignFinder:
    return SignFinder(catalogue().values())


def sign_literals() -> frozenset[str]:
    """The literals by which the signs of all causes are found: lines that hold one must not be passed over."""
    return frozenset(
        literal.lower()
        for entry in catalogue().values()
        for sign in entry.signs
        if not sign.is_prose
        for literal in sign.literals
    )


def _finding(identity: str, family: str, verdict: Verdict) -> Finding:
    return Finding(
        cause=identity,
        family=family,
        **{name: getattr(verdict, name) for name in Verdict.__struct_fields__},
    )


_EXPERIMENTS = ("tests", "p2p_test")
"""Groups of facts that cost an experiment; the others are read off in a second."""


def deciding(findings: tuple[Finding, ...]) -> Missing | None:
    """The observation to ask for first: the cheapest of those that decide.

    A cause names its missing facts with the one first that separates it best from its rivals, so the leader's first is
    it, unless that costs an experiment and another can be read off. Where the leader waits for nothing, it is the fact
    that most of the other findings wait for.
    """
    if findings and findings[0].missing:
        asked = findings[0].missing
        return next((each for each in asked if each.key.partition(".")[0] not in _EXPERIMENTS), asked[0])
    votes: dict[str, int] = {}
    first: dict[str, Missing] = {}
    for missing in (each for finding in findings for each in finding.missing):
        votes[missing.key] = votes.get(missing.key, 0) + 1
        first.setdefault(missing.key, missing)
    return first[max(votes, key=lambda key: votes[key])] if votes else None
