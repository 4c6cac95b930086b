"""What an estimate says: the parts of the memory of one GPU, the checks in the order of the start, the verdict."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from gpuwhy.fit.amount import NOTHING, Amount


class Verdict(str, Enum):
    STARTS = "starts"
    FAILS = "fails"
    CLOSE = "too close to call"


class Part(Struct, frozen=True, kw_only=True):
    """A share of one GPU's memory in GiB. ``kind`` groups parts in a chart; ``source`` says where the number is from."""

    name: str
    kind: str
    """context, communication, weights, draft, kv-cache, graphs, workspace, activation, reserve or taken."""
    gib: Amount
    source: str
    detail: str = ""
    """For weights: what it is divided by."""
    is_static: bool = True
    """Not: it exists only while it is needed."""


class Check(Struct, frozen=True, kw_only=True):
    """One thing that must be true when the start reaches it. ``margin`` in GiB: below zero it fails."""

    phase: str
    """start, weights, kv-cache, context, graphs, first-prefill: in the order of the start."""
    outcome: str
    """What a failure is called: not-free, oom-weights, oom-kv, oom-graph, oom-activation."""
    margin: Amount
    says: str
    """What the check is about, in words."""
    message: str = ""
    """What the engine prints when it fails, in its own words."""

    @property
    def verdict(self) -> Verdict:
        if self.margin.low >= 0:
            return Verdict.STARTS
        return Verdict.FAILS if self.margin.high < 0 else Verdict.CLOSE


class Constraint(Struct, frozen=True, kw_only=True):
    """One that the settings break. ``flag``: what to change; ``message``: what the engine prints."""

    flag: str
    says: str
    message: str


class Fraction(Struct, frozen=True, kw_only=True):
    """``--mem-fraction-static`` or ``--gpu-memory-utilization``: what it is, and between which values it may lie."""

    name: str
    value: float
    is_default: bool
    source: str
    minimum: Amount | None = None
    """Below it the start fails for want of a cache."""
    maximum: Amount | None = None
    """Above it what comes after the cache does not fit."""


class Cache(Struct, frozen=True, kw_only=True):
    """The cache of keys and values, per rank; tokens are those of one replica of the engine."""

    gib: Amount
    tokens: Amount
    bytes_per_token: float
    """That the cache of the model itself takes."""
    charged_bytes_per_token: float
    """That the engine divides its budget by: with a draft's share, where the release charges one."""
    context: int | None
    """The length that the settings ask for."""
    longest: Amount
    """The longest request that the cache holds, in tokens."""
    concurrency: Amount
    """Requests of that length at a time."""
    budget: Amount
    """GiB that the engine would give it, below zero when there is nothing to give."""
    source: str = ""


class HostRisk(Struct, frozen=True, kw_only=True):
    """What a host with so much memory risks while the weights load."""

    host_gb: float
    verdict: Verdict
    says: str


class Host(Struct, frozen=True, kw_only=True):
    """Memory of the host while loading, in GB of 10^9. ``unreclaimable``: anonymous, shared and pinned memory."""

    unreclaimable_gb: Amount
    page_cache_gb: float
    shared_memory_gb: float
    """Files in shared memory: rings of messages between processes, NCCL on one host."""
    compile_gb: Amount
    """Compilers at warm-up, when kernels are not built ahead."""
    parts: tuple[Part, ...]
    risks: tuple[HostRisk, ...]
    advice: tuple[str, ...]


class Estimate(Struct, frozen=True, kw_only=True):
    """``verdict`` with ``reason``; ``decisive`` is the check that it rests on."""

    verdict: Verdict
    reason: str
    decisive: Check | None
    model: str
    engine: str
    version: str
    release: str
    """How well this release is known."""
    is_release_read: bool
    gpu: str
    gpus: int
    gpus_needed: int
    total_gib: Amount
    """Of one GPU."""
    parts: tuple[Part, ...]
    checks: tuple[Check, ...]
    constraints: tuple[Constraint, ...]
    """What the engine refuses before any of the checks: then the memory does not matter."""
    fraction: Fraction
    cache: Cache
    host: Host
    missing: tuple[str, ...]
    """What is not known or was not usable, and what was taken instead."""

    def gib_of(self, kind: str) -> Amount:
        """The sum of the parts of a kind."""
        total = NOTHING
        for part in self.parts:
            if part.kind == kind:
                total = total + part.gib
        return total
