"""Values that modules share are held against the installed packages: what nothing else writes is no assumption."""

from __future__ import annotations

from msgspec.structs import replace

from gpuwhy.investigate.replay_source import InstalledSource
from gpuwhy.source.replay import Replay
from gpuwhy.source.replay.outcome import Assumed, FactUsed, Step
from gpuwhy.source.replay.sharing import written_by


def left_alone(result: Replay, installed: InstalledSource) -> Replay:
    """The replay without the assumptions about shared values that no other code of the packages changes.

    Searched are the packages that the replay may read (FlashInfer, SGLang, vLLM, their kernels), all files of each, on the
    target. Code that changes the value without spelling its name is not seen.
    """
    if any(isinstance(step, Assumed) and step.shared is None for step in result.trail):
        return result  # it is no proof in any case
    return replace(result, trail=tuple(_held(step, installed) for step in result.trail))


def _held(step: Step, installed: InstalledSource) -> Step:
    if not isinstance(step, Assumed) or step.shared is None:
        return step
    found = installed.spelling(step.shared.names)
    if found is None or written_by(step.shared, found[0]):
        return step
    _, searched = found
    what = f"what else changes {step.shared.module}.{step.shared.name}"
    return FactUsed(what, "source", f"nothing in {searched} files", step.place)
