"""Which few settings fit: those nearest to the user's command first, each with what it costs.

Every candidate is the user's command with some settings changed. Candidates are estimated in the order of their
distance from it, so that a search that must stop has seen the small changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from enum import Enum

import msgspec
from msgspec import Struct
from packaging.version import Version

from gpuwhy.fit.constraints import broken
from gpuwhy.fit.estimate import estimate
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.kv_cache import element_bytes
from gpuwhy.fit.model import Model
from gpuwhy.fit.results import Estimate, Verdict
from gpuwhy.fit.settings import Settings
from gpuwhy.knowledge.engine_memory import release_of

MOST_ESTIMATES = 500
MOST_PROPOSALS = 6
_MOST_CHANGES = 3
"""Of a command, beside its fraction."""
_BETTER = 1.05
"""A larger change is proposed only where it gives so much more of the goal."""
_MARGIN_GIB = 0.25
"""For headroom: more than that counts as more."""
_FEWEST_GRAPHS = 16
_HIGHEST = 0.95
"""Above it nothing is left for what no estimate knows."""
_SMALLEST_CONTEXT = 2048
_SHORTENED_TABLE = 16384
_DECODE_IN_NAMES = Version("0.5.23")
"""SGLang's flag for the largest graph has another name in it; from which release on was not read."""


class Goal(str, Enum):
    """``CONTEXT``: the longest request. ``CONCURRENCY``: tokens of all requests. ``HEADROOM``: the narrowest margin in GiB."""

    CONTEXT = "context"
    CONCURRENCY = "concurrency"
    HEADROOM = "headroom"


class Change(Struct, frozen=True, kw_only=True):
    """One setting. ``value`` is as it is typed, "" for a switch, ``remove`` for a flag to leave out."""

    flag: str
    value: str
    costs: str


class Proposal(Struct, frozen=True, kw_only=True):
    """``achieved`` is what the goal counts: tokens, or GiB of headroom. ``margin_gib``: the narrowest, unfavourably taken."""

    changes: tuple[Change, ...]
    verdict: Verdict
    reason: str
    achieved: float
    tokens: float
    longest: float
    concurrency: float
    margin_gib: float


class Search(Struct, frozen=True, kw_only=True):
    """``refused``: candidates that break a constraint, and were not estimated."""

    goal: Goal
    proposals: tuple[Proposal, ...]
    estimated: int
    refused: int
    says: str


class _Option(Struct, frozen=True):
    """A value of one setting. ``distance`` says how much of a change it is; 0: as the user has it."""

    distance: int
    settings: tuple[tuple[str, object], ...] = ()
    changes: tuple[Change, ...] = ()


def search(model: Model, hardware: Hardware, settings: Settings, goal: Goal) -> Search:
    """At most :data:`MOST_ESTIMATES` estimates, and few proposals. Never raises on a model, however wrong its config is."""
    begun = estimate(model, hardware, settings)
    axes = _axes(model, hardware, settings, begun, goal)
    if not begun.cache.bytes_per_token:
        return Search(goal=goal, proposals=(), estimated=1, refused=0, says="the model's cache is not known: there is nothing to search by")  # fmt: skip
    estimated, refused = 1, 0
    seen: list[tuple[int, Proposal]] = []
    for distance, chosen in _combined(axes):
        if estimated + 2 > MOST_ESTIMATES:
            break
        candidate = msgspec.structs.replace(settings, **dict(pair for option in chosen for pair in option.settings))
        if broken(model.shape, candidate, hardware) or candidate.gpus > hardware.gpus * candidate.nodes:
            refused += 1
            continue
        changes = tuple(change for option in chosen for change in option.changes)
        found = begun if not changes else estimate(model, hardware, candidate)
        estimated += bool(changes)
        seen.append((distance, _proposal(changes, found, goal)))
        tuned = _with_fraction(found, goal)
        if tuned is not None:
            estimated += 1
            fraction, change = tuned
            better = estimate(model, hardware, msgspec.structs.replace(candidate, fraction=fraction))
            seen.append((distance + 1, _proposal((*changes, change), better, goal)))
    return Search(goal=goal, proposals=_chosen(seen, goal), estimated=estimated, refused=refused, says=_says(seen, begun))  # fmt: skip


def _combined(axes: list[list[_Option]]) -> Iterator[tuple[int, tuple[_Option, ...]]]:
    rows = [
        (sum(option.distance for option in row), row)
        for row in itertools.product(*axes)
        if sum(option.distance > 0 for option in row) <= _MOST_CHANGES
    ]
    return iter(sorted(rows, key=lambda each: each[0]))


def _chosen(seen: list[tuple[int, Proposal]], goal: Goal) -> tuple[Proposal, ...]:
    """Those that start, nearest first, each better than all nearer ones; those that may, where none does for certain."""
    for wanted in (Verdict.STARTS, Verdict.CLOSE):
        # of equally large changes the best comes first; of equally good ones that with fewer changes
        rows = sorted((each for each in seen if each[1].verdict is wanted), key=lambda each: (each[0], -each[1].achieved))  # fmt: skip
        kept: list[Proposal] = []
        for _, each in rows:
            if not kept or _is_better(each, kept[-1], goal):
                kept.append(each)
        if kept:
            return tuple(kept[:MOST_PROPOSALS])
    return ()


def _is_better(one: Proposal, other: Proposal, goal: Goal) -> bool:
    if goal is Goal.HEADROOM:
        return one.achieved > other.achieved + _MARGIN_GIB
    return one.achieved > max(1.0, other.achieved) * _BETTER


def _says(seen: list[tuple[int, Proposal]], begun: Estimate) -> str:
    if any(each.verdict is Verdict.STARTS for _, each in seen):
        return "as it is, it " + {Verdict.STARTS: "starts", Verdict.FAILS: "fails", Verdict.CLOSE: "may fail"}[begun.verdict]  # fmt: skip
    if any(each.verdict is Verdict.CLOSE for _, each in seen):
        return "nothing starts for certain; these may"
    return "nothing that was tried starts: more GPUs, or a smaller checkpoint"


def _proposal(changes: tuple[Change, ...], found: Estimate, goal: Goal) -> Proposal:
    margin = min((check.margin.low for check in found.checks), default=0.0)
    cache = found.cache
    tokens = cache.concurrency.expected * (cache.context or 0)
    longest = min(cache.longest.expected, cache.context or math.inf)
    achieved = {Goal.CONTEXT: longest, Goal.CONCURRENCY: tokens, Goal.HEADROOM: margin}[goal]
    return Proposal(changes=changes, verdict=found.verdict, reason=found.reason, achieved=achieved, tokens=cache.tokens.expected,
                    longest=longest, concurrency=cache.concurrency.expected, margin_gib=margin)  # fmt: skip


def _with_fraction(found: Estimate, goal: Goal) -> tuple[float, Change] | None:
    """The fraction that the estimate allows: the largest for the cache, the middle of both bounds for headroom."""
    said = found.fraction
    if said.minimum is None or said.maximum is None or found.constraints:
        return None
    low, high = said.minimum.high, said.maximum.low
    wanted = (low + high) / 2 if goal is Goal.HEADROOM else high
    value = math.floor(wanted * 100 - 1e-9) / 100
    if value <= said.minimum.expected or not 0.05 < value <= _HIGHEST or abs(value - said.value) < 0.005:
        return None
    costs = "less is left for graphs and peaks" if value > said.value else "the cache holds fewer tokens"
    return value, Change(flag=said.name, value=f"{value:.2f}", costs=costs)


def _axes(model: Model, hardware: Hardware, settings: Settings, begun: Estimate, goal: Goal) -> list[list[_Option]]:
    kept = _Option(0)
    is_vllm = settings.engine == "vllm"
    axes = [
        [kept, *_graphs(settings, is_vllm)],
        [kept, *_requests(settings, is_vllm)],
        [kept, *_chunks(settings, is_vllm)],
        [kept, *_contexts(model, settings, begun, goal, is_vllm)],
        [kept, *_cache_types(model, settings)],
        [kept, *_drafts(settings, is_vllm)],
        [kept, *_parallel(model, hardware, settings, is_vllm)],
    ]
    return [axis for axis in axes if len(axis) > 1]


def _graphs(settings: Settings, is_vllm: bool) -> Iterator[_Option]:
    if not settings.has_graphs:
        return
    newer = "--cuda-graph-sizes" if settings.version.startswith("0.10.") else "--max-cudagraph-capture-size"
    release = release_of(settings.version)
    renamed = "--cuda-graph-max-bs-decode" if release is None or release >= _DECODE_IN_NAMES else "--cuda-graph-max-bs"
    flag = newer if is_vllm else renamed
    for size in (64, _FEWEST_GRAPHS):
        if settings.graph_batch is None or settings.graph_batch > size:
            changed = (("graph_batch", size), ("graph_batches", _sizes(size) if is_vllm else ()))
            yield _Option(1, changed, (Change(flag=flag, value=str(size), costs=f"more than {size} requests at once are decoded without graphs: slower"),))  # fmt: skip


def _sizes(largest: int) -> tuple[int, ...]:
    return tuple(size for size in (1, 2, 4, *range(8, 257, 8), *range(272, 1025, 16)) if size <= largest)


def _requests(settings: Settings, is_vllm: bool) -> Iterator[_Option]:
    flag = "--max-num-seqs" if is_vllm else "--max-running-requests"
    for number in (128, 32):
        if settings.requests is None or settings.requests > number:
            yield _Option(1, (("requests", number),), (Change(flag=flag, value=str(number), costs=f"more than {number} requests wait"),))  # fmt: skip


def _chunks(settings: Settings, is_vllm: bool) -> Iterator[_Option]:
    flag, tokens = ("--max-num-batched-tokens", 2048) if is_vllm else ("--chunked-prefill-size", 4096)
    if settings.prefill_tokens is None or settings.prefill_tokens > tokens:
        yield _Option(1, (("prefill_tokens", tokens),), (Change(flag=flag, value=str(tokens), costs="long prompts take more steps"),))  # fmt: skip


def _contexts(model: Model, settings: Settings, begun: Estimate, goal: Goal, is_vllm: bool) -> Iterator[_Option]:
    """Longer ones where context is the goal, shorter ones where the start fails: else they change nothing that counts."""
    flag = "--max-model-len" if is_vllm else "--context-length"
    now, most = begun.cache.context or 0, model.shape.context or 0
    if goal is Goal.CONTEXT and settings.context and most > now:
        yield _Option(2, (("context", most),), (Change(flag=flag, value=str(most), costs="one request may take the whole cache"),))  # fmt: skip
    if begun.verdict is Verdict.STARTS:
        return
    if not is_vllm:
        # its tables of requests grow with the context, the pool does not
        for length in (now // 2, now // 4):
            if length >= _SHORTENED_TABLE:
                yield _Option(2, (("context", length),), (Change(flag=flag, value=str(length), costs=f"requests longer than {length} tokens are refused"),))  # fmt: skip
        return
    fits = begun.cache.longest
    shorter = {int(each) // 256 * 256 for each in (now / 2, now / 4, now / 8, fits.expected / 2, fits.low)}
    for length in sorted((each for each in shorter if _SMALLEST_CONTEXT <= each < now), reverse=True):
        distance = 2 if length * 2 >= now else 3 if length * 8 >= now else 4
        yield _Option(distance, (("context", length),), (Change(flag=flag, value=str(length), costs=f"requests longer than {length} tokens are refused"),))  # fmt: skip


def _cache_types(model: Model, settings: Settings) -> Iterator[_Option]:
    each = element_bytes(settings.kv_dtype, model.shape) or 2.0
    if each > 1:
        name = "fp8" if settings.engine == "vllm" else "fp8_e4m3"
        yield _Option(2, (("kv_dtype", name),), (Change(flag="--kv-cache-dtype", value=name, costs="some accuracy, and not every attention backend takes it"),))  # fmt: skip


def _drafts(settings: Settings, is_vllm: bool) -> Iterator[_Option]:
    if settings.speculation:
        flag = "--speculative-config" if is_vllm else "--speculative-algorithm"
        yield _Option(3, (("speculation", None),), (Change(flag=flag, value="remove", costs="slower decoding: no draft"),))  # fmt: skip


def _parallel(model: Model, hardware: Hardware, settings: Settings, is_vllm: bool) -> Iterator[_Option]:
    """All the GPUs that are there, divided otherwise."""
    ranks = hardware.gpus
    tensor_flag, stages_flag = ("--tensor-parallel-size", "--pipeline-parallel-size") if is_vllm else ("--tp-size", "--pp-size")  # fmt: skip
    used = (settings.tensor, settings.pipeline)
    for stages in (1, 2, 4, 8):
        tensor = ranks // stages
        if ranks % stages or tensor < 1 or (tensor, stages) == used or settings.has_dp_attention or settings.data > 1:
            continue
        costs = f"{ranks} GPUs are taken" if stages == 1 else "stages wait for each other: more latency, less speed at few requests"  # fmt: skip
        divided = [Change(flag=tensor_flag, value=str(tensor), costs=costs)] if tensor != settings.tensor else []
        if stages != settings.pipeline:
            divided.append(Change(flag=stages_flag, value=str(stages), costs=costs))
        yield _Option(3 if stages == 1 else 4, (("tensor", tensor), ("pipeline", stages)), tuple(divided))  # fmt: skip
    if not is_vllm and model.shape.mla and settings.tensor > 1 and not settings.has_dp_attention and settings.pipeline == 1:  # fmt: skip
        costs = "every GPU holds the attention whole; slower at few requests"
        changed = (("has_dp_attention", True), ("data", settings.tensor))
        yield _Option(4, changed, (Change(flag="--enable-dp-attention", value="", costs=costs), Change(flag="--dp-size", value=str(settings.tensor), costs=costs)))  # fmt: skip
    if is_vllm and model.shape.experts and not settings.is_expert_parallel:
        yield _Option(3, (("is_expert_parallel", True),), (Change(flag="--enable-expert-parallel", value="", costs="GPUs wait for those whose experts are busiest"),))  # fmt: skip
    if not is_vllm and model.shape.experts and settings.expert == 1 and settings.tensor > 1:
        yield _Option(3, (("expert", settings.tensor),), (Change(flag="--ep-size", value=str(settings.tensor), costs="GPUs wait for those whose experts are busiest"),))  # fmt: skip
