"""The report of a replay: how the call would end on this host, and what led there."""

from __future__ import annotations

from gpuwhy.reports.neutral import plain
from gpuwhy.source.replay import Assumed, Branch, Caught, FactUsed, LogLine, NeedsFact, NotModelled, Raised, Replay

MANY = 40
"""Steps of the trail that are shown without -v."""


def render(replayed: Replay, *, verbose: bool) -> str:
    """The replay as text; for programs see :mod:`gpuwhy.reports.trace_json`."""
    return "\n".join(plain(line) for line in _lines(replayed, verbose)) + "\n"


def _lines(replayed: Replay, verbose: bool) -> list[str]:
    lines = [f"{replayed.entry}: {_ending(replayed)}"]
    shown = [step for step in replayed.trail if verbose or not isinstance(step, Branch)]
    for step in shown[: None if verbose else MANY]:
        if isinstance(step, FactUsed):
            lines.append(f"  fact     {step.what} = {step.value} ({step.key})  {step.place}")
        elif isinstance(step, Caught):
            lines.append(f"  caught   {step.type}: {step.message}  raised {step.raised_at}, caught {step.place}")
        elif isinstance(step, LogLine):
            lines.append(f"  {step.level:<8} {step.message}  {step.place}")
        elif isinstance(step, Branch):
            lines.append(f"  {'if' if step.taken else 'if not':<8} {step.condition}  {step.place}")
        elif isinstance(step, Assumed):
            lines.append(f"  assumed  {step.what}  {step.place}")
    left = len(shown) - MANY
    if left > 0 and not verbose:
        lines.append(f"  and {left} steps more (-v)")
    return lines


def _ending(replayed: Replay) -> str:
    outcome = replayed.outcome
    if isinstance(outcome, Raised):
        return f"raises {outcome.type}: {outcome.message}  {outcome.place}"
    if isinstance(outcome, NeedsFact):
        how = f": {outcome.command}" if outcome.command else ""
        return f"needs the fact {outcome.key}, asked at {outcome.place}{how}"
    if isinstance(outcome, NotModelled):
        return f"cannot be decided: {outcome.what} is not modelled  {outcome.place}"
    return f"returns {outcome.value}"
