"""What the operator has tried: the view of ``tests.NAME``."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Facts, Unknown
from gpuwhy.model.remedy import Remedy

_BAD = re.compile(
    r"\bfail|crash|illegal|\berrors?\b|damaged|wrong|nonsense|garbage|gibberish|\bhang|corrupt|\bstill\b|\bworse\b|broken|not (?:work|start|help)|\bdies\b|out of memory|\bkilled\b",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"\bworks?\b|\bworked\b|\bpass(?:es|ed)?\b|\bok(?:ay)?\b|\bclean\b|\bfine\b|\bgood\b|\bcorrect\b|\bstarts\b|\bsucceeds?\b|\bno (?:error|crash|damage)|\bstable\b|\bcured?\b|\bhelps?\b|\bnormal\b|\b0 of \d",
    re.IGNORECASE,
)
_RELEASE = re.compile(r"\b([A-Za-z][\w-]{1,40}?)(?:[ =]{1,3}|[- ])v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,2}(?:\.?(?:post|rc|dev)\d{1,4})?)\b", re.ASCII)  # fmt: skip
_OFF = re.compile(
    r"(?P<name>-{0,2}[A-Za-z][\w.-]{2,60})(?: (?:pass|backend|feature|kernels?|option))? (?:is |was )?(?:disabled|off|removed|unset|switched off)\b|\b(?:without|no|disable) (?P<other>-{0,2}[A-Za-z][\w.-]{2,60})",
    re.IGNORECASE | re.ASCII,
)
_VARIABLE = re.compile(r"\b([A-Z][A-Z0-9_]{3,60})=([\w.:/+-]{1,60})", re.ASCII)
_FLAG = re.compile(r"(--[a-z][a-z0-9-]{2,60})(?:[ =]([\w.:/+-]{1,60}))?", re.ASCII)
_NONE_OF_IT = re.compile(r"\b(?:no|without|0 of \d{1,9}|zero) (?:\w{1,20} ){0,2}(?:error|crash|hang|damage|wrong|failure|garbage)\w{0,3}", re.IGNORECASE)  # fmt: skip
LONGEST = 500


class Experiment(Struct, frozen=True):
    """One thing that was tried. ``is_good``: it cured the fault, or went well; None where the outcome does not say."""

    name: str
    outcome: str
    is_good: bool | None
    evidence: Evidence

    @property
    def release(self) -> tuple[str, str] | None:
        """Package and version, where another release was tried: ``vllm 0.24.0, same machine``."""
        found = _RELEASE.search(self.name[:LONGEST])
        return None if found is None else (found[1].lower(), found[2])

    @property
    def switched_off(self) -> str | None:
        """What was left out: ``fuse_allreduce_rms`` of ``fuse_allreduce_rms pass disabled``."""
        found = _OFF.search(self.name[:LONGEST])
        return None if found is None else found["name"] or found["other"]

    @property
    def variable(self) -> tuple[str, str] | None:
        """``("NCCL_P2P_DISABLE", "1")`` of ``NCCL_P2P_DISABLE=1``."""
        found = _VARIABLE.search(self.name[:LONGEST])
        return None if found is None else (found[1], found[2])

    @property
    def flag(self) -> tuple[str, str] | None:
        """``("--attention-backend", "TRITON_ATTN")``; the value is empty where there is none."""
        found = _FLAG.search(self.name[:LONGEST])
        return None if found is None else (found[1], found[2] or "")


class Experiments(Struct, frozen=True):
    """All that was tried, in the order given."""

    tried: tuple[Experiment, ...]

    @classmethod
    def of(cls, facts: Facts) -> Experiments | Unknown:
        """From ``tests.NAME``: the outcome in words, or true and false."""
        group = facts.group("tests")
        if not group:
            return Unknown("nobody has tried variants", "tests", "")
        return cls(
            tuple(Experiment(name, str(fact.value), is_good(fact.value), fact.evidence) for name, fact in group.items())
        )

    @property
    def good(self) -> tuple[Experiment, ...]:
        return tuple(each for each in self.tried if each.is_good)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What is known to help because it was tried and went well, in the order given."""
        return tuple(remedy for each in self.good if (remedy := _remedy(each)) is not None)

    @property
    def bad(self) -> tuple[Experiment, ...]:
        return tuple(each for each in self.tried if each.is_good is False)


_FINDS_ONLY = frozenset({"CUDA_LAUNCH_BLOCKING", "TORCH_USE_CUDA_DSA", "NCCL_DEBUG"})
"""Variables that help to find a fault, and cure none."""


def _remedy(each: Experiment) -> Remedy | None:
    said = f"Tried here: {each.outcome[:200]}"
    if each.variable is not None:
        name, value = each.variable
        return None if name in _FINDS_ONLY else Remedy(kind="env", name=name, value=value, summary=said)
    if each.switched_off is not None:
        if each.switched_off.startswith("--"):
            return Remedy(kind="flag", name=each.switched_off, value="remove", summary=said)
        return Remedy(kind="config", name=each.switched_off, value="false", summary=f"Leave it off. {said}")
    if each.flag is not None:
        return Remedy(kind="flag", name=each.flag[0], value=each.flag[1] or "set", summary=said)
    if each.release is not None:
        cost = "another release changes other things too"
        return Remedy(kind="package", name=each.release[0], value=f"=={each.release[1]}", summary=said, cost=cost)
    return None


def is_good(outcome: object) -> bool | None:
    """Whether an outcome in words is a good one; None where it does not say."""
    if isinstance(outcome, bool):
        return outcome
    text = str(outcome)[:LONGEST]
    rest = _NONE_OF_IT.sub("", text)
    if rest != text and not _BAD.search(rest):
        return True
    if _BAD.search(text):
        return False
    return True if _GOOD.search(text) else None
