"""Whether a file runs on a GPU with a driver: each container by itself, then the sum."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.binaries.code_sets import CodeSet, loaded_sets
from gpuwhy.binaries.examining import Binary
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.knowledge.loading import choose, runtime_starts
from gpuwhy.model.inspection import Outcome, Verdict


def verdict(binary: Binary, sets: Sequence[CodeSet], gpu: ComputeCapability, driver: str) -> Verdict:
    """The counts of all containers that are loaded, and what they come to.

    Hidden code (``.cask_resource``, bare cubins in data) is chosen by the library itself, so it counts only where
    there is no other. A file that could not be read in full is never said not to run.
    """
    counts = dict.fromkeys(Outcome, 0)
    whys: dict[Outcome, str] = {}
    for each in loaded_sets(sets):
        choice = choose(each.codes, gpu, driver)
        counts[choice.outcome] += each.containers
        whys.setdefault(choice.outcome, choice.why)
    total = sum(counts.values())
    outcome, why = _sum(binary, counts, whys, total, gpu)
    started = runtime_starts(driver, binary.runtime.major)
    if total and started.value is False:
        outcome, why = Outcome.DRIVER_TOO_OLD, started.why
    if outcome in (Outcome.NONE, Outcome.JIT_BLOCKED):
        outcome, why = (outcome, why) if binary.is_complete else (Outcome.UNKNOWN, f"read in part; of that {why}")
    runs = {Outcome.NATIVE: True, Outcome.JIT: True, Outcome.UNKNOWN: None, Outcome.NO_DEVICE_CODE: None}
    return Verdict(
        outcome,
        runs.get(outcome, False),
        total,
        counts[Outcome.NATIVE],
        counts[Outcome.JIT],
        counts[Outcome.JIT_BLOCKED],
        counts[Outcome.NONE],
        counts[Outcome.UNKNOWN],
        why,
    )


def _sum(
    binary: Binary, counts: dict[Outcome, int], whys: dict[Outcome, str], total: int, gpu: ComputeCapability
) -> tuple[Outcome, str]:
    if not total:
        if not binary.is_complete:
            return Outcome.UNKNOWN, "it could not be read in full"
        return Outcome.NO_DEVICE_CODE, "it holds no code for NVIDIA GPUs"
    parts = [f"{counts[outcome]} {words}" for outcome, words in _WORDS.items() if counts[outcome]]
    said = f"of {total} containers {', '.join(parts)}" if total > 1 else ""
    for outcome in (Outcome.NATIVE, Outcome.JIT, Outcome.UNKNOWN, Outcome.JIT_BLOCKED):
        if counts[outcome]:
            return outcome, "; ".join(filter(None, (said, whys[outcome])))
    many = f"none of {total} containers has" if total > 1 else "it has no"
    article = " an image" if total > 1 else " image"
    return Outcome.NONE, f"{many}{article} for {gpu}; {whys[Outcome.NONE]}"


_WORDS = {
    Outcome.NATIVE: "have machine code",
    Outcome.JIT: "are compiled from PTX",
    Outcome.JIT_BLOCKED: "have only PTX that is too new",
    Outcome.NONE: "have no image",
    Outcome.UNKNOWN: "are undecided",
}
