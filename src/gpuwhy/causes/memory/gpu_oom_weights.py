"""gpu-oom-weights: the weights do not fit while they are loaded."""

from __future__ import annotations

import math
import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.memory import _allocation as allocations
from gpuwhy.causes.memory import _budget as budgets
from gpuwhy.causes.memory import _hints as hints
from gpuwhy.causes.memory import _options as engine_options
from gpuwhy.causes.memory import _stage as stages
from gpuwhy.causes.memory import _use as uses
from gpuwhy.causes.memory._allocation import GIB, Allocation, gib
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.causes.memory._options import Options
from gpuwhy.causes.memory._stage import Stage, StageRead
from gpuwhy.causes.memory._unified import is_unified
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_memory import COMMAND, GpuHolders
from gpuwhy.model.remedy import NotARemedy, Remedy

_LITERAL = ("loading-says-so", "llama-loading", "trtllm-model")
_DRAFT = lazy_pattern(r"drafter|draft[_ -]model|_mtp\.py|\bMTP\b|eagle|_nextn\.py|speculative|Draft model engine", re.IGNORECASE)  # fmt: skip
_ONLINE = lazy_pattern(
    r"process_weights_after_loading|quant(?:ize|ization)=|create_weights.{0,40}fp8|load_and_quantize|--quantization|in Linear4bit|quanti[sz]e_",
    re.IGNORECASE,
)


_REPACKED = lazy_pattern(r"marlin\w{0,30}repack|repack\w{0,30}marlin|marlin_permute", re.IGNORECASE)


class Failure(Struct, frozen=True):
    """What failed while loading. ``by_driver``: only the kernel's driver module says that memory ran out."""

    match: Match
    stage: StageRead
    allocation: Allocation | None
    is_literal: bool = False
    by_driver: bool = False


@cause(
    "gpu-oom-weights",
    family="Memory, storage, limits",
    leads_to=("startup-timeout",),
    signs=[
        says(
            "loading-says-so",
            ("failed to load model - not enough gpu memory", "not enough gpu memory to load", "enough vram to load", "are dispatched on the cpu", "offload the whole model", "weights offloaded to the disk"),
            r"Failed to load model - not enough GPU memory|[Nn]ot enough (?:GPU memory|VRAM) to load|[Ss]ome modules are dispatched on the CPU|trying to offload the whole model to (?:the )?(?:disk|CPU)|had weights offloaded to the disk",
        ),
        says(
            "llama-loading",
            ("unable to allocate cuda", "unable to allocate backend buffer", "unable to allocate gpu", "memory layout cannot be allocated", "insufficient vram"),
            r"unable to allocate (?:CUDA\d+|backend|GPU) ?buffer|memory layout cannot be allocated|Insufficient VRAM for model",
        ),
        says("trtllm-model", "could not be created: ", r"could not be created: (?:Model engine|Draft model engine|Drafter)"),
        says("driver-without-memory", "nv_err_no_memory", r"NVRM: .{0,300}\[?NV_ERR_NO_MEMORY"),
        allocations.SIGN,
        *budgets.SIGNS,
    ],
)  # fmt: skip
def gpu_oom_weights(case: Case, holders: GpuHolders | Unknown, experiments: Experiments | Unknown) -> Judgement:
    """The weights (of the model, of its draft model, or their copies while loading) do not fit on the GPU.

    How it shows itself
      `OutOfMemoryError` with `load_model`, `create_weights`, `initialize_model` or `from_pretrained` among the frames, before
      `Model loading took` or `Load weight end`; vLLM adds `Failed to load model - not enough GPU memory`. llama.cpp:
      `error loading model: unable to allocate CUDA0 buffer`. On boards with unified memory only the kernel log says it:
      `NVRM: ... Out of memory [NV_ERR_NO_MEMORY]`.

    Why it happens
      The checkpoint is larger than the card (parameters x bytes: 2 for bf16, 1 for fp8, about 0.55 for 4 bits), divided by
      the number of GPUs it is spread over. The peak while loading is higher: quantising at load needs the unquantised weights
      first, repacking needs a second copy of a layer, a draft or MTP head builds its own vocabulary tables before it
      shares the target's.

    How to be sure
      The stage, and the size of the checkpoint against card x GPUs. `nvidia-smi` before the start: another process may have
      the memory.

    What helps
      A checkpoint that is quantised already; more GPUs (`--tensor-parallel-size`); no draft model; layers in host memory
      (llama.cpp: fewer `--n-gpu-layers`, vLLM: `--cpu-offload-gb`).

    What does not help
      A shorter context or fewer requests: no cache exists yet. Changing the memory fraction: weights are loaded before it
      counts (on unified memory a lower one does help: it is the host's memory as well).

    Not to be confused with
      gpu-oom-kv-cache (the weights are in), gpu-memory-taken (less was free than the card has), host-oom-kill (the kernel
      kills the process; on unified memory the two are one budget).
    """
    failure = _read(case)
    if failure is None:
        return None
    allocation, stage = failure.allocation, failure.stage
    if not failure.is_literal and stage.stage not in (Stage.LOADING, Stage.UNKNOWN):
        return None
    taken = allocation is not None and allocation.is_held_by_others is True
    if taken and isinstance(holders, GpuHolders) and holders.holders:
        return RuledOut("other processes hold the memory that is lacking", (holders.evidence,))
    component = engine_options.component_of(case, case.component_near(failure.match), failure.match.text)
    engine = engine_options.engine_of(case, component)
    options = engine_options.options_of(engine)
    certainty = _certainty(failure, taken)
    quoted = stages.shown(case, failure.match, stage, "the allocation fails while the weights are loaded" if stage.stage is Stage.LOADING else "an allocation fails", allocation.match if allocation else None)  # fmt: skip
    progress = stages.passed(failure.match, stage)
    is_draft = stage.stage is Stage.LOADING and (_is_draft(failure) or _is_second_load(case, failure))
    size = case.fact_evidence("model_bytes", "the size of the checkpoint")
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{'The draft model does' if is_draft else 'The weights do'} not fit on the GPU while {component} loads {'it' if is_draft else 'them'}",
        chain=_chain(quoted, progress, size, is_draft),
        evidence=tuple(each for each in (quoted, progress, size) if each is not None),
        explains=case.explains(failure.match, allocation.match if allocation else None),
        missing=_missing(case, certainty),
        rivals=() if certainty is Certainty.PROVEN else _rivals(case, failure),
        remedies=(*engine_options.tried(experiments), *_remedies(case, options, engine, failure, is_draft)),
        not_remedies=_in_vain(case, options, failure),
        notes=_notes(case, failure),
        strength=_strength(failure),
        memory=uses.gpu_uses(case, engine, Budget(), allocations.total_of(case, (allocation,)), allocation=allocation),
    )


def _strength(failure: Failure) -> int:
    if failure.by_driver:
        return 60
    if failure.is_literal:
        return 88
    return 60 if failure.stage.stage is Stage.LOADING else 30


def _read(case: Case) -> Failure | None:
    allocation = allocations.failed_allocation(case)
    literal = case.found(*_LITERAL)
    if literal is not None:
        match = allocation.match if allocation is not None and literal.sign == "loading-says-so" else literal
        stage = stages.stage_of(case, match)
        if stage.stage not in (Stage.LOADING, Stage.UNKNOWN):
            stage = StageRead(Stage.LOADING)
        return Failure(match, stage, allocation, is_literal=True)
    if allocation is not None:
        return Failure(allocation.match, stages.stage_of(case, allocation.match), allocation)
    driver = case.found("driver-without-memory")
    if driver is None:
        return None
    stage = stages.stage_of(case, driver)
    return Failure(driver, stage, None, by_driver=True) if stage.stage is Stage.LOADING else None


def _certainty(failure: Failure, taken: bool) -> Certainty:
    if taken or (failure.stage.stage is Stage.UNKNOWN and not failure.is_literal):
        return Certainty.POSSIBLE
    if failure.by_driver:
        return Certainty.LIKELY
    is_own = failure.allocation is not None and failure.allocation.is_held_by_others is False
    if is_own and (failure.is_literal or failure.stage.is_by_frame):
        return Certainty.PROVEN
    return Certainty.LIKELY


def _is_draft(failure: Failure) -> bool:
    texts = [failure.match.text, failure.stage.line.text if failure.stage.line else ""]
    texts += [frame.path for frame in failure.match.frames]
    return any(_DRAFT.search(text[:600]) for text in texts)


def _is_second_load(case: Case, failure: Failure) -> bool:
    """SGLang loads the draft after the target: the weights that are loaded when others are complete are the draft's."""
    line = failure.stage.line
    if line is None or "Load weight begin" not in line.text:
        return False
    return any("Load weight end" in before.text for before in case.lines_around(failure.match, 600, 0) if before.number < line.number)  # fmt: skip


def _is_pool_there(case: Case, failure: Failure) -> bool:
    """Whether the target's cache was made before: releases that size it first leave the draft what is over."""
    return any(_POOL.search(before.text[:300]) for before in case.lines_around(failure.match, 600, 0))


_POOL = lazy_pattern(r"KV Cache is allocated|Memory pool end|GPU KV cache size")


def _chain(quoted: Evidence, progress: Evidence | None, size: Evidence | None, is_draft: bool) -> tuple[Link, ...]:  # fmt: skip
    first = "The target's weights fill the card, and the draft's tables come on top" if is_draft else "The weights, with what loading needs beside them, are larger than the free memory of the card"  # fmt: skip
    links = [Link(first, size or inferred("follows from the stage"))]
    if progress is not None:
        links.append(Link("The engine was loading weights", progress))
    links.append(Link("An allocation fails before the model is complete", quoted))
    return tuple(links)


def _missing(case: Case, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    asked = (
        case.missing("gpu_processes", "whether another process holds memory on this GPU", COMMAND),
        case.missing("model_bytes", "the size of the checkpoint against that of the card", "du -sbL MODEL_DIRECTORY"),
        case.missing("kernel_log", "whether the driver or the kernel ran out of memory", "journalctl -k -b"),
    )
    return tuple(each for each in asked if each is not None)


def _rivals(case: Case, failure: Failure) -> tuple[str, ...]:
    if failure.by_driver or is_unified(case):
        return ("host-oom-kill", "gpu-memory-taken")
    if failure.stage.stage is Stage.UNKNOWN:
        return ("gpu-oom-graph-or-activation", "gpu-memory-taken")
    return ("gpu-memory-taken",)


def _remedies(case: Case, options: Options, engine: str, failure: Failure, is_draft: bool) -> tuple[Remedy, ...]:
    change = engine_options.change
    is_llama = engine in ("llama.cpp", "ollama")
    shares_memory = failure.by_driver or is_unified(case)
    # Releases that size the cache first leave the draft what is over: it is the cache that has to be smaller.
    makes_room = is_draft and not shares_memory and _is_pool_there(case, failure)
    remedies = [
        *(change(options, options.draft, "remove", "Serve without the draft model", rank=1 if shares_memory or makes_room else 0, cost="slower decoding") if is_draft else ()),
        *(change(options, options.fraction, "lower", "Reserve less: the board's memory is the host's as well", rank=0) if shares_memory else ()),
        *(change(options, options.fraction, _room_for_draft(case, failure), "Leave the draft model room: the cache is sized before it is loaded", rank=0, cost="a smaller cache") if makes_room else ()),
        *change(options, options.offload, _layers_that_fit(case, failure) if is_llama else options.offload_value or "set", "Keep part of the layers in host memory", rank=0 if is_llama else 5, cost="slower", sure=is_llama),
        *change(options, options.split, _gpus_needed(case, failure), "Spread the weights over more GPUs", rank=2, sure=not is_draft and not _exceeds_host(case, failure)),
        *(change(options, options.length, "lower", "A shorter context leaves more layers on the GPU", rank=6, sure=False) if is_llama else ()),
    ]  # fmt: skip
    if shares_memory:
        remedies += change(options, options.tokens, "lower", "Fewer tokens per forward pass", rank=3, sure=False)
    remedies.append(Remedy(kind="files", name="checkpoint", value="smaller or more quantised", summary="A checkpoint that is quantised already, or a smaller model", is_sure=not is_draft))  # fmt: skip
    return tuple(remedies)


_DRAFT_ROOM = GIB
"""The rest of a draft, its cache and its graphs: what failed is only the first of it."""


def _room_for_draft(case: Case, failure: Failure) -> str:
    """The fraction that leaves what the draft lacked, and a GiB for what comes after it."""
    budget = budgets.read_budget(case)
    current = engine_options.fraction_in_use(case) or budget.static_fraction
    shortfall = failure.allocation.shortfall if failure.allocation else None
    total = budget.before or allocations.total_of(case, (failure.allocation,))
    value = engine_options.lowered(current, None if shortfall is None else shortfall + _DRAFT_ROOM, total)
    least = budget.smallest_static_fraction
    return "lower" if least is not None and value != "lower" and float(value) <= least else value


_LAYERS = lazy_pattern(r"offloading (\d{1,4}) repeating layers|\bn_layer\s{0,16}= ?(\d{1,4})\b")
_FREE = lazy_pattern(r"using device CUDA\d{1,2} .{0,120}- (\d{1,7}) MiB free")
_LLAMA_BESIDE = GIB
"""Cache and work space of a short context."""


def _layers_that_fit(case: Case, failure: Failure) -> str:
    """llama.cpp on one GPU: the share of the layers whose weights go into what was free; ``lower`` when it is not printed."""
    asked = failure.allocation.asked if failure.allocation else None
    lines = [line.text[:600] for _, line in case.lines()]
    layers = next((int(found[1] or found[2]) for text in lines if (found := _LAYERS.search(text))), None)
    free = [int(found[1]) << 20 for text in lines if (found := _FREE.search(text))]
    if not asked or not layers or len(free) != 1:
        return "lower"
    fitting = layers * (free[0] - _LLAMA_BESIDE) // asked
    return str(fitting) if 0 < fitting <= layers else "lower"


def _gpus_needed(case: Case, failure: Failure) -> str:
    """How many cards hold the checkpoint with a tenth to spare, as a power of two; at least twice as many where its size is unknown."""
    size = case.facts.value("model_bytes")
    total = allocations.total_of(case, (failure.allocation,))
    if not isinstance(size, int) or isinstance(size, bool) or not total or size <= 0:
        return engine_options.twice_the_ranks(case)
    return str(2 ** max(0, math.ceil(math.log2(size / (0.9 * total)))))


def _exceeds_host(case: Case, failure: Failure) -> bool:
    """Whether the host is known to have fewer GPUs than that."""
    needed, listed = _gpus_needed(case, failure), case.facts.value("gpus")
    return needed.isdigit() and isinstance(listed, list | tuple) and len(listed) < int(needed)


def _in_vain(case: Case, options: Options, failure: Failure) -> tuple[NotARemedy, ...]:
    if failure.stage.stage is Stage.UNKNOWN and not failure.is_literal:
        return ()
    vain = [NotARemedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "the card is full, not fragmented")]
    hint = hints.hint_of(case, failure.match)
    if options.fraction and not failure.by_driver and not is_unified(case) and not _is_pool_there(case, failure):
        said = hint.lowers or hint.raises
        if said:
            vain.append(NotARemedy(f"the engine's own hint ({said})", "the fraction divides what is left after loading: it frees nothing for weights"))  # fmt: skip
        vain.append(NotARemedy(f"another {options.fraction}", "weights are loaded before the fraction counts"))
    return tuple(vain)


def _notes(case: Case, failure: Failure) -> tuple[str, ...]:
    notes = []
    near = [line.text[:600] for line in case.lines_around(failure.match, 80, 5)]
    if any(_REPACKED.search(text) for text in near):
        notes.append("The weights are in: what fails is their repacking for the kernel, which holds the tensors of one layer twice.")  # fmt: skip
    elif any(_ONLINE.search(text) for text in near):
        notes.append("Quantising while loading needs the unquantised weights on the GPU first.")
    if failure.allocation is not None and failure.allocation.asked is not None:
        notes.append(
            f"{gib(failure.allocation.asked)} is the tensor that no longer fitted, not what is lacking in all."
        )
    if case.facts.value("model_bytes") is None and engine_options.twice_the_ranks(case) != "higher" and not _is_pool_there(case, failure):  # fmt: skip
        notes.append("How many GPUs are enough follows from the size of the checkpoint (du -sbL MODEL_DIRECTORY): twice as many is the least. `gpuwhy fit FOLDER` computes it.")  # fmt: skip
    return tuple(notes)
