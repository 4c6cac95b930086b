"""gpu-oom-graph-or-activation: beside weights and cache no room is left for graphs, work space or activations."""

from __future__ import annotations

import json
import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.memory import _allocation as allocations
from gpuwhy.causes.memory import _budget as budgets
from gpuwhy.causes.memory import _estimated as estimates
from gpuwhy.causes.memory import _hints as hints
from gpuwhy.causes.memory import _options as engine_options
from gpuwhy.causes.memory import _stage as stages
from gpuwhy.causes.memory import _use as uses
from gpuwhy.causes.memory._allocation import GIB, Allocation, gib
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.causes.memory._estimated import Bounds
from gpuwhy.causes.memory._options import Options
from gpuwhy.causes.memory._stage import Stage, StageRead
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_memory import COMMAND, GpuHolders
from gpuwhy.model.memory_use import MemoryUse
from gpuwhy.model.remedy import NotARemedy, Remedy

_OWN_STAGES = (Stage.PROFILING, Stage.CAPTURE, Stage.WARMUP, Stage.SERVING)
_LITERAL = ("sampler-warm-up", "tokens-of-warm-up", "llama-compute", "trtllm-resources")


class Overflow(Struct, frozen=True):
    """What overflowed. ``is_literal``: the message itself names the step, and not only the allocator's failure."""

    match: Match
    stage: StageRead
    allocation: Allocation | None
    is_literal: bool

    @property
    def is_ours(self) -> bool:
        return self.is_literal or self.stage.stage in _OWN_STAGES


@cause(
    "gpu-oom-graph-or-activation",
    family="Memory, storage, limits",
    leads_to=("startup-timeout",),
    signs=[
        says("sampler-warm-up", "when warming up", r"out of memory occurred when warming up (?:sampler|pooler)\b.{0,120}"),
        says("tokens-of-warm-up", "not enough memory to handle", r"Not enough memory to handle \d{1,9} (?:prefill|total|batch) tokens"),
        says(
            "llama-compute",
            ("compute buffer", "compute pp buffer", "graph_reserve", "compute tg buffer", "gallocr_reserve"),
            r"failed to allocate (?:the )?(?:CUDA\d+ )?compute (?:\w{1,4} )?buffers?|failed to (?:reserve|allocate) (?:initial )?(?:compute )?(?:graph|buffers)|ggml_gallocr_reserve\w{0,4}: failed to allocate CUDA\d",
        ),
        says("still-loading", ("memory layout cannot be allocated", "error loading model"), r"memory layout cannot be allocated|error loading model"),
        says("trtllm-resources", "could not be created: ", r"could not be created: (?:Model resources|Sampler|Additional executor resources|Guided decoder)"),
        allocations.SIGN,
        *budgets.SIGNS,
    ],
)  # fmt: skip
def gpu_oom_graph_or_activation(
    case: Case, holders: GpuHolders | Unknown, experiments: Experiments | Unknown
) -> Judgement:
    """Weights and cache fit, and what comes after them does not: graph capture, warm-up, work space, or a long request.

    How it shows itself
      `CUDA out of memory occurred when warming up sampler with N dummy requests` (vLLM), `Capture cuda graph failed: CUDA
      out of memory` (SGLang), `failed to allocate compute pp buffers` (llama.cpp), `Not enough memory to handle N prefill
      tokens` (TGI), or an `OutOfMemoryError` after `KV Cache is allocated` or `GPU KV cache size`, often on the first
      long request, the first image, or the first step of a draft model. A few MiB to some hundred are free.

    Why it happens
      The cache is sized first, from a measurement or an estimate, and takes what the fraction allows. CUDA graphs, the
      sampler's sort over the vocabulary, work spaces of attention and MoE kernels, logits of long prompts and images come
      later, and part of them is in no estimate. Communicators that are created at their first use count as well.

    How to be sure
      The stage: the last progress line before the failure, or the frames (`capture`, `_dummy_sampler_run`, `execute_model`).
      The size in `Tried to allocate` is only the last straw. Compare `this process has X in use` with the card's total: a gap
      is another process's memory.

    What helps
      A LOWER fraction (`--gpu-memory-utilization`, `--mem-fraction-static`): by what the last request lacked and some reserve.
      Fewer requests at once, a smaller graph batch (`--cuda-graph-max-bs`; first where a draft model is captured), fewer
      tokens per pass (`--max-num-batched-tokens`, `--chunked-prefill-size`), no graphs at all.

    What does not help
      A higher fraction: it makes the cache larger. `expandable_segments`, unless gigabytes are "reserved but unallocated";
      it also stops the engines' custom all-reduce. SGLang prints its list of "possible solutions" for every failed
      capture, whatever the reason.

    Not to be confused with
      gpu-oom-kv-cache (no cache could be made at all: the fraction must go UP), gpu-oom-weights (it stopped while loading),
      gpu-memory-taken, backend-combination-unsupported and ptxas failures under the same `Capture cuda graph failed`.
    """
    overflow = _read(case)
    if overflow is None:
        return None
    allocation, stage = overflow.allocation, overflow.stage
    if not overflow.is_ours and stage.stage is not Stage.UNKNOWN:
        return None
    taken = allocation is not None and allocation.is_held_by_others is True
    if taken and not overflow.is_literal and isinstance(holders, GpuHolders) and holders.holders:
        return RuledOut("other processes hold the memory that is lacking", (holders.evidence,))
    component = engine_options.component_of(case, case.component_near(overflow.match), overflow.match.text)
    engine = engine_options.engine_of(case, component)
    options = engine_options.options_of(engine)
    certainty = _certainty(overflow, taken)
    quoted = stages.shown(
        case, overflow.match, stage, _what_it_shows(overflow), allocation.match if allocation else None
    )
    progress = stages.passed(overflow.match, stage)
    budget = budgets.read_budget(case)
    limits = _limits(case, engine, budget, overflow)
    return Verdict(
        certainty=certainty,
        component=component,
        title=_title(component, overflow),
        chain=_chain(overflow, quoted, progress),
        evidence=tuple(each for each in (quoted, progress) if each is not None),
        explains=case.explains(overflow.match, allocation.match if allocation else None),
        missing=_missing(case, certainty),
        rivals=_rivals(overflow, certainty),
        remedies=(*engine_options.tried(experiments), *_remedies(case, options, engine, overflow, limits)),
        not_remedies=_in_vain(case, options, overflow, limits),
        notes=_notes(overflow, limits),
        strength=85 if overflow.is_literal else 55 if stage.stage in _OWN_STAGES else 34,
        memory=_memory(case, engine, budget, allocation),
    )


def _read(case: Case) -> Overflow | None:
    allocation = allocations.failed_allocation(case)
    literal = case.found(*_LITERAL)
    is_loading = literal is not None and literal.sign == "llama-compute" and case.found("still-loading") is not None
    if literal is not None and not is_loading:
        return Overflow(literal, stages.stage_of(case, literal), allocation, is_literal=True)
    if allocation is None:
        return None
    return Overflow(allocation.match, stages.stage_of(case, allocation.match), allocation, is_literal=False)


def _certainty(overflow: Overflow, taken: bool) -> Certainty:
    if taken:
        return Certainty.POSSIBLE
    if overflow.is_literal:
        return Certainty.PROVEN
    if overflow.stage.stage is Stage.UNKNOWN:
        return Certainty.POSSIBLE
    is_own_memory = overflow.allocation is not None and overflow.allocation.is_held_by_others is False
    if overflow.stage.is_by_frame and is_own_memory:
        return Certainty.PROVEN
    return Certainty.LIKELY


def _what_it_shows(overflow: Overflow) -> str:
    stage = overflow.stage.stage
    if overflow.is_literal:
        return "the message names the step that found no room"
    return "the allocation fails" if stage is Stage.UNKNOWN else f"the allocation fails while {stage.value}"


def _title(component: str, overflow: Overflow) -> str:
    allocation, stage = overflow.allocation, overflow.stage.stage
    size = f": {gib(allocation.asked)} asked for, {gib(allocation.free)} free" if allocation and allocation.asked and allocation.free is not None else ""  # fmt: skip
    when = "after start" if stage is Stage.UNKNOWN or stage not in _OWN_STAGES else f"while {stage.value}"
    return f"{component} runs out of GPU memory {when}{size}"


def _chain(overflow: Overflow, quoted: Evidence, progress: Evidence | None) -> tuple[Link, ...]:
    if overflow.stage.stage is Stage.PROFILING:
        return (
            Link("The weights are loaded", progress or inferred("the order of a start")),
            Link("One forward pass of the largest batch needs more than is left of the card", quoted),
        )
    return (
        Link("Weights and cache take what the memory fraction allows", progress or inferred("the order in which engines divide memory")),
        Link("Graphs, work space and activations come after that, and are not all in the engine's estimate", inferred("how the engines size their cache")),
        Link("The next allocation finds no room", quoted),
    )  # fmt: skip


def _missing(case: Case, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    asked = (
        case.missing("gpu_processes", "whether another process holds memory on this GPU", COMMAND),
        case.missing("command", "the memory fraction and batch sizes in use", "tr '\\0' ' ' < /proc/PID/cmdline"),
    )
    return tuple(each for each in asked if each is not None)


def _rivals(overflow: Overflow, certainty: Certainty) -> tuple[str, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    unknown = ("gpu-oom-weights",) if overflow.stage.stage is Stage.UNKNOWN else ()
    return (*unknown, "gpu-memory-taken")


_GRAPHS_TO_COME = GIB // 2
"""Capture stopped in the middle: the graphs that were not captured yet need room as well."""


class Limits(Struct, frozen=True):
    """``current``: the fraction in use. ``least``: the fraction below which the weights leave no cache; ``value``: the one to set, or ``lower``.

    ``is_too_low``: what the failed request lacked cannot be taken from the cache, which has not so much.
    """

    current: float | None
    least: float | None
    value: str
    is_too_low: bool
    computed: Bounds | None
    base: int | None = None
    """Bytes that the fraction is a share of."""
    is_known: bool = True
    """The log or the command has the fraction; else it is the release's default."""


def _limits(case: Case, engine: str, budget: Budget, overflow: Overflow) -> Limits:
    known = engine_options.fraction_in_use(case) or budget.static_fraction
    current = known or engine_options.default_fraction(case, engine)
    allocation = overflow.allocation
    total = allocations.total_of(case, (allocation,)) or budget.total
    still_to_come = _GRAPHS_TO_COME if overflow.stage.stage is Stage.CAPTURE else 0
    shortfall = allocation.shortfall if allocation else None
    # SGLang's fraction is one of what was free before the weights were loaded, and not of the card
    base = budget.before or total
    value = engine_options.lowered(current, None if shortfall is None else shortfall + still_to_come, base)
    if engine != "sglang":
        return Limits(current, None, value, False, None, total, known is not None)
    computed = estimates.bounds_of(case, engine, budget, total, current)
    if computed is not None and computed.proposed is not None and current is not None and computed.proposed < current:
        value = f"{min(computed.proposed, float(value) if value[:1] == '0' else 1.0):.2f}"
    least = budget.smallest_static_fraction
    is_too_low = least is not None and value[:1] == "0" and float(value) <= least
    return Limits(current, least, "lower" if is_too_low else value, is_too_low, computed, base)


def _memory(case: Case, engine: str, budget: Budget, allocation: Allocation | None) -> tuple[MemoryUse, ...]:
    current = engine_options.fraction_in_use(case) or budget.static_fraction
    total = allocations.total_of(case, (allocation,)) or budget.total
    return uses.gpu_uses(case, engine, budget, total, fraction=current, allocation=allocation)


def _remedies(case: Case, options: Options, engine: str, overflow: Overflow, limits: Limits) -> tuple[Remedy, ...]:
    change = engine_options.change
    stage, allocation = overflow.stage.stage, overflow.allocation
    is_profiling = stage is Stage.PROFILING
    fraction = change(options, options.fraction, limits.value, "Give weights and cache a smaller part of the card, so that the rest finds room", cost="a smaller cache: fewer or shorter requests at once", rank=8 if is_profiling or limits.is_too_low else 1, sure=not is_profiling and not limits.is_too_low)  # fmt: skip
    graphs_first = stage is Stage.CAPTURE and engine == "sglang"
    graphs = "" if engine == "vllm" and stage is not Stage.CAPTURE else options.graphs
    graph_value = (
        "set" if graphs == "--enforce-eager" else engine_options.halved(engine_options.in_use(case, "graphs"), 4)
    )
    is_sampler, is_llama = stage is Stage.WARMUP, engine in ("llama.cpp", "ollama")
    return (
        *_allocator(allocation),
        *(_fewer_pictures(case, overflow, engine) if is_profiling else ()),
        *fraction,
        *change(options, options.requests, _fewer_requests(case, overflow), "Fewer requests at once: smaller logits, graphs and work spaces", rank=2 if is_sampler else 7 if is_llama else 3, sure=not is_llama),
        *change(options, graphs, graph_value, "Capture fewer or smaller graphs", rank=0 if graphs_first else 4, cost="slower decoding of large batches", sure=stage is Stage.CAPTURE),
        *change(options, options.tokens, _fewer_tokens(case, overflow), "Fewer tokens per forward pass: smaller activations", rank=0 if is_profiling or is_llama or _names(overflow, options.tokens) else 5, sure=stage is not Stage.CAPTURE),
        *change(options, options.length, "lower", "Shorter contexts", rank=6, sure=engine in ("llama.cpp", "ollama")),
        *(change(options, options.offload, options.offload_value or "set", "Leave more of the model in host memory", rank=7) if engine in ("llama.cpp", "ollama", "comfyui") else ()),
        *(change(options, options.draft, "remove", "Start without the draft model", rank=9, sure=False) if _names_draft(case, overflow) else ()),
        *(_plain_program() if not options.fraction and engine not in ("llama.cpp", "ollama", "comfyui") else ()),
    )  # fmt: skip


def _names(overflow: Overflow, option: str) -> bool:
    """Whether the message itself asks for this option."""
    return bool(option) and option in overflow.match.text


_ENCODES = lazy_pattern(r"multimodal|profile_encoder|encoder_outputs|vision|visual|image_embed|\bmm_", re.IGNORECASE)
_MODALITIES = ("image", "video", "audio")


def _fewer_pictures(case: Case, overflow: Overflow, engine: str) -> tuple[Remedy, ...]:
    """vLLM measures the encoder with as many items as one request may have: where that is what fails, half of them."""
    near = [line.text[:400] for line in case.lines_around(overflow.match, 40, 5)]
    if engine != "vllm" or not any(_ENCODES.search(text) for text in near):
        return ()
    limits = case.facts.value("server_args.limit_mm_per_prompt")
    each = {name: int(limits[name]) for name in _MODALITIES if isinstance(limits.get(name), int)} if isinstance(limits, dict) else {}  # fmt: skip
    value = json.dumps({name: max(1, number // 2) for name, number in each.items()}) if any(number > 1 for number in each.values()) else "lower"  # fmt: skip
    return (Remedy(kind="flag", name="--limit-mm-per-prompt", value=value, summary="Fewer pictures in one request: the encoder is measured with that many", cost="requests with more are refused", rank=0),)  # fmt: skip


_DUMMIES = lazy_pattern(r"with (\d{1,6}) dummy requests")
_HANDLED = lazy_pattern(r"Not enough memory to handle (\d{1,7}) (?:prefill|total|batch) tokens")


def _fewer_requests(case: Case, overflow: Overflow) -> str:
    """Half of those that the sampler was warmed up with, or that the command allows."""
    tried = _DUMMIES.search(overflow.match.text)
    return engine_options.halved(int(tried[1]) if tried else engine_options.in_use(case, "requests"), 4)


def _fewer_tokens(case: Case, overflow: Overflow) -> str:
    tried = _HANDLED.search(overflow.match.text)
    return engine_options.halved(
        int(tried[1]) if tried else engine_options.in_use(case, "tokens"),
        64 if overflow.match.sign == "llama-compute" else 512,
    )


def _allocator(allocation: Allocation | None) -> tuple[Remedy, ...]:
    """Only where more idle memory is held than was asked for: then it is in pieces."""
    if allocation is None or not allocation.is_fragmented:
        return ()
    return (
        Remedy(
            kind="env", name="PYTORCH_CUDA_ALLOC_CONF", value="expandable_segments:True",
            summary=f"Let the allocator grow its segments: {gib(allocation.idle)} are reserved and idle",
            limits=("the engines' custom all-reduce cannot share such memory: use it on one GPU, or without that all-reduce",),
        ),
    )  # fmt: skip


def _plain_program() -> tuple[Remedy, ...]:
    return (
        Remedy(kind="config", name="batch size", value="lower", summary="Smaller batches, or shorter inputs", rank=0),
        Remedy(kind="files", name="checkpoint", value="smaller or more quantised", summary="A smaller checkpoint", is_sure=False),
    )  # fmt: skip


def _names_draft(case: Case, overflow: Overflow) -> bool:
    given = [case.facts.value(f"server_args.{name}") for name in ("speculative_algorithm", "speculative_config", "speculative_model")]  # fmt: skip
    if any(given):
        return True
    # an echo of all arguments names every option, whether it is on or not
    near = (overflow.match.text, *(line.text for line in case.lines_around(overflow.match, 80, 10) if not _ECHO.search(line.text[:400])))  # fmt: skip
    return any(word in text.lower() for text in near for word in ("draft", "eagle", "mtp", "speculative"))


_ECHO = lazy_pattern(r"ServerArgs\(|Namespace\(|non-default args|server_args=|Initializing a\w{0,2} (?:V1 )?LLM engine")


def _in_vain(case: Case, options: Options, overflow: Overflow, limits: Limits) -> tuple[NotARemedy, ...]:
    vain = []
    hint = hints.hint_of(case, overflow.match)
    starving = [f"{each:g}" for each in hint.examples if limits.least is not None and each <= limits.least]
    if starving and limits.least is not None:
        vain.append(NotARemedy(f"{options.fraction} {' or '.join(starving)}, as the engine's own hint says", f"the weights alone need {limits.least:.3f}: below it the start fails at the cache"))  # fmt: skip
    costly = min((each for each in hint.examples if limits.least is None or each > limits.least), default=None)
    if costly is not None and limits.base and limits.value[:1] == "0" and costly < float(limits.value) - 0.02:
        lost = int((float(limits.value) - costly) * limits.base)
        vain.append(NotARemedy(f"{options.fraction} {costly:g}, as the engine's own hint says", f"the direction is right; {limits.value} leaves what was lacking, and {costly:g} takes {gib(lost)} more from the cache"))  # fmt: skip
    if hint.raises and options.fraction and overflow.stage.stage is not Stage.PROFILING:
        vain.append(NotARemedy(f"the engine's own hint ({hint.raises})", "it is for a cache that finds no room; here the cache was made, and what comes after it found none"))  # fmt: skip
    if options.fraction and overflow.stage.stage is not Stage.PROFILING:
        vain.append(
            NotARemedy(f"a higher {options.fraction}", "the cache grows, and less is left for what comes after")
        )
    if overflow.allocation is None or not overflow.allocation.is_fragmented:
        vain.append(NotARemedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "little is reserved and idle, and the option breaks the custom all-reduce"))  # fmt: skip
    return tuple(vain)


def _notes(overflow: Overflow, limits: Limits) -> tuple[str, ...]:
    notes = []
    if overflow.allocation is not None and overflow.allocation.asked is not None:
        notes.append(f"{gib(overflow.allocation.asked)} is the request that failed, not what is lacking in all.")
    if not limits.is_known and limits.current is not None and limits.value[:1] == "0":
        notes.append(f"The fraction of this start is not printed: {limits.value} is computed from the default {limits.current:g}. From another one take {limits.current - float(limits.value):.2f} off.")  # fmt: skip
    if limits.computed is not None:
        notes.append(limits.computed.sentence)
    elif limits.least is not None:
        notes.append(f"Not below {limits.least:.3f}: the weights alone need that much (1 - free after loading / free before).")  # fmt: skip
    if limits.is_too_low:
        notes.append("What is lacking cannot be taken from the cache alone: smaller graphs, smaller chunks or fewer requests must give it.")  # fmt: skip
    return tuple(notes)
