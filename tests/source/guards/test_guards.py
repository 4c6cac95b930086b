"""Guards of raise statements sampled from real releases, against the real functions executed with made-up values.

Whenever the raise is reached every condition of its guard holds; whenever the function ends otherwise one of them does
not. Sites where that cannot be decided are counted, and the counts must not fall.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.source.guards.sites import SEED, Site, Told, sampled

RUNNING = Path(__file__).with_name("running.py")
SITES = 60
TRIALS = 300
EXECUTED, BOTH = 0.875, 0.575
"""Shares of the sites that can be run alone, and of those where both ends are met."""


def executed(sites: Sequence[Site], trials: int) -> list[dict[str, Any]]:
    """How the trials of each site ended, from a child process."""
    asked = msgspec.json.encode({"sites": sites, "trials": trials})
    done = subprocess.run([sys.executable, "-B", str(RUNNING)], input=asked, capture_output=True, timeout=1800, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


class Counts(msgspec.Struct):
    """``both``: reached in some trials and left in others; ``only_reached``, ``only_left``: one of them; ``neither``:
    no trial decided anything (the rest of the sites cannot be run alone at all)."""

    sites: int = 0
    both: int = 0
    only_reached: int = 0
    only_left: int = 0
    neither: int = 0
    wrong: list[str] = []

    @property
    def executed(self) -> int:
        return self.both + self.only_reached + self.only_left


def counted(sites: Sequence[Site | str], results: Sequence[dict[str, Any]]) -> Counts:
    counts = Counts(sites=len(sites), wrong=[])
    for site, result in zip((each for each in sites if isinstance(each, Site)), results, strict=True):
        is_reached, is_left = result["reached"] > 0, result["left"] > 0
        counts.both += is_reached and is_left
        counts.only_reached += is_reached and not is_left
        counts.only_left += is_left and not is_reached
        counts.neither += not is_reached and not is_left
        guard = [each.text for each in site.guard]
        counts.wrong += [f"{site.file}:{site.line}: {each}\n  {guard}" for each in result["wrong"][:1]]
    return counts


@functools.cache
def the_sample() -> tuple[tuple[Site | str, ...], tuple[dict[str, Any], ...]]:
    sites = sampled(SITES)
    return tuple(sites), tuple(executed([each for each in sites if isinstance(each, Site)], TRIALS))


def test_every_executed_raise_agrees_with_its_guard() -> None:
    counts = counted(*the_sample())
    print(counts)
    assert not counts.wrong, "\n".join(counts.wrong)
    assert counts.sites == SITES
    assert counts.executed >= EXECUTED * SITES
    assert counts.both >= BOTH * SITES


@pytest.mark.parametrize(("change", "least"), [("turned", 0.9), ("dropped", 0.7)])
def test_a_guard_that_is_wrong_is_found(change: str, least: float) -> None:
    """The check can fail: with its innermost condition turned round, or left out, a guard is refuted."""
    sites, results = the_sample()
    known = [each for each in sites if isinstance(each, Site)]
    able = [site for site, result in zip(known, results, strict=True) if result["reached"] and result["left"] and site.guard and site.guard[0].kind == "plain"]  # fmt: skip
    broken = [msgspec.structs.replace(site, guard=tuple(_broken(site.guard, change))) for site in able]
    found = [result for result in executed(broken, TRIALS) if result["wrong"]]
    assert len(able) >= 25
    assert len(found) >= least * len(able)


def _broken(guard: Sequence[Told], change: str) -> list[Told]:
    first, *others = guard
    if change == "dropped":
        return others
    return [msgspec.structs.replace(first, text=f"not ({first.text})"), *others]


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_many_more_guards(seed: int) -> None:
    sites = sampled(400, seed)
    counts = counted(sites, executed([each for each in sites if isinstance(each, Site)], TRIALS))
    print(counts)
    assert not counts.wrong, "\n".join(counts.wrong)
    assert counts.executed >= 0.85 * len(sites)
    assert counts.both >= BOTH * len(sites)
