"""gpu-oom-kv-cache: after weights and the reserve for a forward pass too little is left for the KV cache."""

from __future__ import annotations

import re

import msgspec
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
from gpuwhy.causes.memory import _use as uses
from gpuwhy.causes.memory._allocation import Allocation, gib
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.causes.memory._estimated import Bounds
from gpuwhy.causes.memory._options import Options
from gpuwhy.causes.memory._stage import Stage, StageRead, shown, stage_of
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

GIB = allocations.GIB
_SPARE = GIB // 2
"""A cache of half a GiB: enough to start with, and what a raised fraction has to leave at least."""


class Refusal(Struct, frozen=True):
    """What says that the cache has no room. ``is_literal``: an engine's own budget message."""

    match: Match
    text: str
    is_literal: bool
    allocation: Allocation | None = None
    stage: StageRead | None = None


@cause(
    "gpu-oom-kv-cache",
    family="Memory, storage, limits",
    signs=[
        says(
            "request-does-not-fit",
            ("kv cache is needed", "stored in kv cache", "to serve at least one request", "larger than the maximum number of tokens", "number of tokens that can be stored"),
            r"KV cache is needed, which is larger than|max seq len \(\d{1,9}\) is larger than the maximum number of tokens that can be stored in (?:the )?KV cache"
            r"|To serve at least one request with the model(?:s|'s|s's)? max seq len .{0,200}?KV cache (?:is needed|memory)",
        ),
        says(
            "nothing-left",
            ("no available memory for the cache", "leave no gpu memory for the kv", "increase --mem-fraction-static", "increasing --mem-fraction-static", "cannot hold even one request",
             "enough gpu memory for kv", "not enough memory for kv", "insufficient memory for kv", "available mamba cache blocks", "enough gpu memory for runtime", "impossible to fit", "kv cache memory is not enough", "no enough blocks for", "memory for kv cache", "memory for the kv cache", "memory for kvcache"),
            r"No available memory for the cache blocks|leave no GPU memory for the KV cache|Not enough memory\.? Please try (?:to increase|increasing) --mem-fraction-static|cannot hold even one request"
            r"|(?:[Nn]o(?:t)? enough|[Ii]nsufficient) (?:GPU )?memory for (?:the )?(?:KV|kv)|exceeds available Mamba cache blocks|No enough gpu memory for runtime|Impossible to fit (?:any|even one)\b.{0,40}(?:sequence|kvCache|KV)|KV cache memory is not enough|(?:[Cc]annot|[Ff]ailed to|[Uu]nable to) allocate (?:\w{1,12} )?memory for (?:the )?(?:KV|kv) ?cache|No enough blocks for .{0,3}session_len",
        ),
        says(
            "negative-budget",
            ("reserved for kv cache is -", "available kv cache memory: -", "available kv cache memory: 0.00"),
            r"reserved for KV Cache is -\d|Available KV cache memory: (?:-\d|0\.00? GiB)",
        ),
        says("no-blocks", ("gpu blocks: 0,", "cuda blocks: 0,"), r"# (?:GPU|cuda) blocks: 0,"),
        says(
            "pool-is-full",
            ("prefill out of memory", "decode out of memory", "prefillout of memory", "decodeout of memory", "out of memory. try to lower your batch size"),
            r"(?:Prefill|Decode) ?out of memory\. Try to lower your batch size|^(?:\w{1,40}: )?Out of memory\. Try to lower your batch size",
        ),
        says(
            "llama-cache",
            ("buffer for kv cache", "buffer for the kv cache", "kv_cache_init() failed", "llama_kv_cache_init failed", "kv cache initialization failed", "buffer for rs cache"),
            r"failed to (?:allocate|initiali[sz]e) (?:the )?(?:buffer for )?(?:the )?kv cache|failed to allocate buffer for (?:the )?(?:kv|rs) cache|kv_cache_init\(\) failed",
        ),
        says(
            "trtllm-cache",
            ("could not be created: ", "executor creation failed due to insufficient gpu memory", "kvcachemanager", "free gpu memory before component creation"),
            r"component could not be created: (?:Initial )?KV cache|\[kvCacheManager\.cpp.{0,200}(?:fail|insufficient|not enough)",
        ),
        allocations.SIGN,
        *budgets.SIGNS,
    ],
)  # fmt: skip
def gpu_oom_kv_cache(case: Case, experiments: Experiments | Unknown) -> Judgement:
    """After the weights and the reserve for a forward pass nothing, or too little, is left for the KV cache.

    How it shows itself
      vLLM: `No available memory for the cache blocks`, `To serve at least one request with the model's max seq len (N),
      X GiB KV cache is needed, which is larger than the available KV cache memory (Y GiB)`, `The model's max seq len (N) is
      larger than the maximum number of tokens that can be stored in KV cache (M)`, `# GPU blocks: 0`. SGLang: `Not
      enough memory. Please try to increase --mem-fraction-static`, `Loaded weights leave no GPU memory for the KV cache`.
      llama.cpp: `failed to allocate buffer for kv cache`. TensorRT-LLM: `could not be created: KV cache`. lmdeploy: `No
      enough gpu memory for runtime`.

    Why it happens
      The engine may use a fraction of the card. Weights come first, then a reserve for one forward pass, the rest is
      cache. It is empty where the fraction is too small for the weights, or smaller than one request of the full context
      length. SGLang's default fraction does not look at the weights at all; from 0.5.14 on the weights of a draft model
      count too, so that fractions of older recipes are refused.

    How to be sure
      The message has the figures. vLLM: fraction x card - weights - activation peak. SGLang: the smallest fraction
      is 1 - (free after loading / free before loading), both in the lines `Load weight begin` and `Load weight end`.

    What helps
      A shorter context (`--max-model-len`, `--context-length`): the largest that fits is printed. A HIGHER fraction while
      weights and reserve leave room on the card. An 8-bit cache. Fewer tokens per pass (smaller reserve). More GPUs, or
      a smaller checkpoint.

    What does not help
      A LOWER fraction, which is the remedy for the opposite failure (gpu-oom-graph-or-activation). `expandable_segments`:
      nothing is fragmented here.

    Not to be confused with
      gpu-oom-graph-or-activation (the cache was there already, and something else did not fit), gpu-oom-weights (the
      weights themselves do not fit), gpu-memory-taken (another process has the memory that is lacking).
    """
    refusal = _read(case)
    if refusal is None:
        return None
    component = engine_options.component_of(case, case.component_near(refusal.match), refusal.text)
    engine = engine_options.engine_of(case, component)
    options = engine_options.options_of(engine)
    budget = budgets.read_budget(case, refusal.text)
    quoted = _quoted(case, refusal)
    is_shared = _is_held_by_others(case, refusal)
    certainty = Certainty.LIKELY if is_shared else _certainty(refusal, budget)
    total = allocations.total_of(case, (refusal.allocation,)) or budget.total
    budget = msgspec.structs.replace(budget, total=budget.total or total)
    computed = estimates.bounds_of(case, engine, budget, total) if refusal.match.sign != "pool-is-full" else None
    return Verdict(
        certainty=certainty,
        component=component,
        title=_title(component, budget),
        chain=_chain(case, budget, quoted),
        evidence=(quoted, *_figures(case)),
        explains=case.explains(refusal.match, refusal.allocation.match if refusal.allocation else None),
        missing=_missing(case, certainty),
        rivals=() if certainty is Certainty.PROVEN else ("gpu-oom-graph-or-activation", "gpu-memory-taken"),
        remedies=(*engine_options.tried(experiments), *_remedies(case, options, engine, budget, refusal, computed)),
        not_remedies=_in_vain(case, options, engine, budget, refusal, computed),
        notes=_notes(case, options, engine, budget, refusal, computed),
        strength=66 if is_shared else 90 if refusal.is_literal else 50,
        memory=uses.gpu_uses(
            case, engine, budget, total, fraction=engine_options.fraction_in_use(case), allocation=refusal.allocation
        ),
    )


_LITERAL = ("request-does-not-fit", "nothing-left", "llama-cache", "trtllm-cache")
_BLOCKS = lazy_pattern(r"available Mamba cache blocks \((\d{1,7})\)")


def _read(case: Case) -> Refusal | None:
    negative = case.found("negative-budget")
    literal = case.found(*_LITERAL)
    match = negative or literal or case.found("no-blocks", "pool-is-full")
    if match is not None:
        text = _whole(case, match if negative is None or literal is None else literal, negative)
        return Refusal(match, text, is_literal=match.sign not in ("pool-is-full",))
    allocation = allocations.failed_allocation(case)
    if allocation is None:
        return None
    stage = stage_of(case, allocation.match)
    if stage.stage is not Stage.POOL or allocation.is_held_by_others:
        return None
    return Refusal(allocation.match, allocation.text, is_literal=False, allocation=allocation, stage=stage)


def _whole(case: Case, match: Match, other: Match | None) -> str:
    text = allocations.message(case, match)
    first = next(iter(case.all("request-does-not-fit")), None)
    if first is not None and first.line.number < match.line.number:
        text = first.text + "\n" + text
    return text if other is None else f"{other.text}\n{text}"


def _quoted(case: Case, refusal: Refusal) -> Evidence:
    if refusal.stage is not None and refusal.stage.line is not None and refusal.stage.is_by_frame:
        quote = f"{refusal.match.text}\n{refusal.stage.line.text.strip()}"
        return Evidence("the allocation of the cache itself fails", quote, refusal.match.place)
    if refusal.match.sign == "request-does-not-fit":
        return _quoted_request(case, refusal.match)
    if refusal.match.sign in ("llama-cache", "trtllm-cache"):
        before = allocations.failed_allocation(case)
        return shown(
            case,
            refusal.match,
            StageRead(Stage.POOL),
            "the cache itself finds no room",
            before.match if before else None,
        )
    return case.evidence(refusal.match, "the engine's own budget has no room for the cache")


def _quoted_request(case: Case, match: Match) -> Evidence:
    """The sentence with the figures; all its lines when a paste has broken it."""
    lines = [match.text]
    for line in sorted(case.lines_around(match, 0, 2), key=lambda each: each.number):
        if "available KV cache memory" in lines[-1] or not re.search(r"KV cache|available", line.text):
            break
        lines.append(line.text.strip()[:500])
    return Evidence("one request of the full length needs more than is left", "\n".join(lines), match.place)


def _is_held_by_others(case: Case, refusal: Refusal) -> bool:
    """An allocation of the same report fails because another process has the card: the budget is then its echo."""
    allocation = allocations.failed_allocation(case) if refusal.allocation is None else None
    return allocation is not None and bool(allocation.is_held_by_others)


def _certainty(refusal: Refusal, budget: Budget) -> Certainty:
    if refusal.match.sign == "pool-is-full":
        return Certainty.LIKELY
    if not refusal.is_literal:
        return Certainty.LIKELY if refusal.stage is not None and refusal.stage.is_by_frame else Certainty.POSSIBLE
    if budget.outside is not None and budget.total and budget.outside > budget.total // 5:
        return Certainty.LIKELY  # so much outside torch is rather another process's
    return Certainty.PROVEN


def _title(component: str, budget: Budget) -> str:
    if budget.needed is not None and budget.available is not None:
        length = f" of {budget.length} tokens" if budget.length else ""
        return f"{component}: one request{length} needs {gib(budget.needed)} of KV cache, and {gib(budget.available)} are left"
    if budget.fits is not None:
        return f"{component}: the KV cache holds {budget.fits} tokens, fewer than the model's full length"
    if budget.available is not None and budget.available <= 0:
        return f"{component}: weights and activations leave {gib(budget.available)} for the KV cache"
    return f"{component}: too little GPU memory is left for the KV cache"


def _figures(case: Case) -> tuple[Evidence, ...]:
    found = [
        case.evidence(match, "what the start had printed before")
        for match in (
            *case.all("v0-budget"),
            *case.all("v1-usage"),
            *case.all("load-begin")[:1],
            *case.all("load-end")[:1],
        )
    ]
    return tuple(found[:3])  # fmt: skip


def _chain(case: Case, budget: Budget, quoted: Evidence) -> tuple[Link, ...]:
    took = case.found("load-end", "v0-budget", "model-took")
    weights = (
        f"The weights take {gib(budget.weights)}" if budget.weights else "The weights take their part of the budget"
    )
    return (
        Link(weights, case.evidence(took, "") if took else inferred("the order in which engines divide memory")),
        Link("The engine keeps room for one forward pass and may not go beyond its fraction of the card", inferred("the budget of the engine")),
        Link("What is left does not hold the KV cache that is asked for", quoted),
    )  # fmt: skip


def _missing(case: Case, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    asked = (
        case.missing("gpu_processes", "whether another process held memory at the start", "nvidia-smi --query-compute-apps=gpu_bus_id,pid,process_name,used_memory --format=csv"),
        case.missing("command", "the memory fraction and the context length in use", "tr '\\0' ' ' < /proc/PID/cmdline"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


class Least(Struct, frozen=True):
    """The fraction that leaves the cache that is needed. ``is_bound``: surely enough, and perhaps more than that, because
    the memory of the card is not known. ``lacking``: bytes; None where the figures are not known."""

    value: float | None = None
    is_bound: bool = False
    lacking: int | None = None

    @property
    def is_too_much(self) -> bool:
        """No card has it. A bound says nothing of what is needed at least."""
        return self.value is not None and self.value > engine_options.HIGHEST and not self.is_bound


def _least_fraction(case: Case, engine: str, budget: Budget, computed: Bounds | None = None) -> Least:
    """The fraction that leaves the cache that is needed, or half a GiB of it; the estimate's where the model is known."""
    if computed is not None and budget.needed is None:
        return Least(computed.proposed if computed.proposed is not None else 1.0)
    if engine == "sglang":
        smallest = budget.smallest_static_fraction
        if smallest is None:
            return Least()
        spare = _SPARE / budget.before if budget.before else 0.03
        return Least(smallest + max(spare, 0.03))
    current = engine_options.fraction_in_use(case) or engine_options.default_fraction(case, engine)
    total = budget.total
    lacking = None if budget.available is None else max(0, (budget.needed or _SPARE) - budget.available)
    if budget.used is not None and total:
        return Least((budget.used + (budget.needed or _SPARE)) / total, lacking=lacking)
    if current is None or lacking is None:
        return Least(lacking=lacking)
    if total:
        return Least(current + lacking / total, lacking=lacking)
    card = budget.card_at_least(current)
    return Least(current + lacking / card if card else None, is_bound=True, lacking=lacking)


def _remedies(case: Case, options: Options, engine: str, budget: Budget, refusal: Refusal, computed: Bounds | None) -> tuple[Remedy, ...]:  # fmt: skip
    change = engine_options.change
    if refusal.match.sign == "pool-is-full":
        return (
            *change(options, options.requests, "lower", "Fewer requests at once", rank=0),
            *change(options, options.fraction, "higher", "A larger cache, while the card has room for it", rank=2, sure=False),
            *change(options, options.length, "lower", "Shorter contexts", rank=3),
        )  # fmt: skip
    least = _least_fraction(case, engine, budget, computed)
    fits_one = str(budget.fits) if budget.fits else _length_that_fits(case, budget, refusal, computed)
    is_length = refusal.match.sign == "request-does-not-fit" or engine in ("llama.cpp", "ollama")
    # An allocation that fails was sized by the engine: it took the pool for smaller than what is free.
    is_overfull = _is_overfull(options, refusal)
    is_empty = _is_empty(engine, budget, refusal)
    is_count = "Mamba cache blocks" in refusal.text
    blocks = _BLOCKS.search(refusal.text)
    is_below_default = _is_below_default(case, engine, least)
    length = change(
        options, options.length, fits_one,
        f"Shorten the context to {budget.fits} tokens or less" if budget.fits else "Shorten the context: the cache grows with it",
        rank=1 if is_length and is_below_default else 0 if is_length else 3, cost="longer requests are refused", sure=not is_empty,
    )  # fmt: skip
    fraction = change(
        options, options.fraction, _less(case, engine, budget, refusal) if is_overfull else engine_options.raised(least.value),
        "Give the cache less: it was sized beyond what is free" if is_overfull else "Give weights and cache a larger part of the card",
        rank=0 if is_below_default else 1, cost="" if is_overfull else "less is left for graphs and peaks: if it then fails after the cache was sized, it was too much",
        sure=is_overfull or not (least.is_bound and engine_options.raised(least.value) == "higher"),
    )  # fmt: skip
    return (
        *(length if not is_empty or engine != "sglang" else ()),
        *(fraction if not least.is_too_much or is_overfull else ()),
        *(change(options, options.cache_type, options.cache_value, "Keep the cache in 8 bits: half its size", rank=2 if is_length else 5, sure=False) if not is_empty else ()),
        *(change(options, options.requests, blocks[1] if blocks else "lower", "Fewer requests at once: a smaller reserve for the forward pass", rank=0 if is_count else 4, sure=not is_length) if not is_empty or engine != "sglang" else ()),
        *(change(options, options.draft, "remove", "Start without the draft model: its weights count too", rank=6, sure=False) if "draft weights" in refusal.text and least.is_too_much else ()),
        *(change(options, options.tokens, engine_options.halved(engine_options.in_use(case, "tokens"), 512), "Fewer tokens per forward pass: a smaller reserve", rank=6, sure=False) if not (is_empty and _is_typed(case, options.fraction)) else ()),
        *change(options, options.split, engine_options.twice_the_ranks(case), "Spread weights and cache over more GPUs", rank=2 if least.is_too_much else 7, sure=least.is_too_much),
        *(change(options, options.offload, "lower", "Leave more layers in host memory", rank=8) if engine in ("llama.cpp", "ollama") else ()),
        Remedy(kind="files", name="checkpoint", value="smaller or more quantised", summary="A checkpoint with smaller weights leaves room for the cache", is_sure=False),
    )  # fmt: skip


_REST_OF_POOL = GIB
"""The layers whose part of the cache was not allocated yet."""


def _less(case: Case, engine: str, budget: Budget, refusal: Refusal) -> str:
    """The fraction that leaves what the pool lacked, and a GiB for the rest of it."""
    current = engine_options.fraction_in_use(case) or engine_options.default_fraction(case, engine)
    shortfall = refusal.allocation.shortfall if refusal.allocation else None
    value = engine_options.lowered(current, None if shortfall is None else shortfall + _REST_OF_POOL, budget.total)
    least = budget.smallest_static_fraction
    return "lower" if least is not None and value != "lower" and float(value) <= least else value


def _is_typed(case: Case, option: str) -> bool:
    """SGLang: a fraction that is given is not computed from chunks and graphs, as the default is."""
    return option == "--mem-fraction-static" and option in str(case.facts.value("command") or "")


def _is_overfull(options: Options, refusal: Refusal) -> bool:
    return bool(options.fraction) and (refusal.allocation is not None or refusal.match.sign == "trtllm-cache")


_EMPTY = lazy_pattern(r"No available memory for the cache blocks|leave no GPU memory|(?:to increase|increasing) --mem-fraction-static")  # fmt: skip


def _is_empty(engine: str, budget: Budget, refusal: Refusal) -> bool:
    """Not one byte is left: what makes a cache smaller does not help where there is none."""
    if budget.available is not None and budget.needed is None:
        return budget.available <= 0
    return engine in ("vllm", "sglang") and _EMPTY.search(refusal.text) is not None and budget.needed is None


def _is_below_default(case: Case, engine: str, least: Least) -> bool:
    """The command gives the engine less than it takes by itself, and that would be enough."""
    current, default = engine_options.fraction_in_use(case), engine_options.default_fraction(case, engine)
    return None not in (current, default, least.value) and current < least.value <= default  # type: ignore[operator]


def _length_that_fits(case: Case, budget: Budget, refusal: Refusal, computed: Bounds | None) -> str:
    """The context that the cache holds, where the message has not said it: in proportion to what it needs."""
    length = budget.length or engine_options.in_use(case, "length")
    if budget.needed and budget.available and 0 < budget.available < budget.needed and length:
        return str(length * budget.available // budget.needed // 256 * 256)
    if computed is not None and computed.proposed is not None and length and 0 < computed.longest < length:
        return str(computed.longest // 256 * 256)
    return _context_beside_layers(case) if refusal.match.sign == "llama-cache" else "lower"


_FREE = lazy_pattern(r"using device CUDA\d{1,2} .{0,120}- (\d{1,7}) MiB free")
_MODEL_BUFFER = lazy_pattern(r"CUDA\d{1,2} model buffer size = {1,8}(\d{1,7})\.\d\d MiB")
_WORK_SPACE = GIB
"""llama.cpp's compute buffers, which come after the cache: some hundred MiB as a rule."""


def _context_beside_layers(case: Case) -> str:
    """llama.cpp on one GPU: the context whose cache goes beside the layers; ``lower`` where its log does not print what is free."""
    failed = allocations.failed_allocation(case)
    length = engine_options.in_use(case, "length")
    lines = [line.text[:600] for _, line in case.lines()]
    free = [int(found[1]) << 20 for text in lines if (found := _FREE.search(text))]
    layers = [int(found[1]) << 20 for text in lines if (found := _MODEL_BUFFER.search(text))]
    if failed is None or not failed.asked or not length or len(free) != 1 or not layers:
        return "lower"
    fitting = length * (free[0] - sum(layers) - _WORK_SPACE) // failed.asked // 256 * 256
    return str(fitting) if 0 < fitting < length else "lower"


def _in_vain(
    case: Case, options: Options, engine: str, budget: Budget, refusal: Refusal, computed: Bounds | None
) -> tuple[NotARemedy, ...]:
    vain = [NotARemedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "nothing is fragmented: the budget is too small, and the option breaks the custom all-reduce")]  # fmt: skip
    if options.fraction and not _is_overfull(options, refusal):
        vain.append(NotARemedy(f"a lower {options.fraction}", "it makes the room for the cache smaller still"))
    if engine == "sglang" and _is_empty(engine, budget, refusal):
        vain.append(NotARemedy(f"a shorter {options.length}, fewer requests, an 8-bit cache", "weights alone use up the fraction: there is no cache that could be smaller"))  # fmt: skip
    hint = hints.hint_of(case, refusal.match, refusal.text)
    least = _least_fraction(case, engine, budget, computed)
    if hint.raises and options.fraction and least.value is not None and least.is_too_much:
        needed = "what comes after the cache needs the rest" if computed is not None else f"{least.value:.2f} of the card would be needed"  # fmt: skip
        vain.append(NotARemedy(f"a higher {options.fraction}, as the engine advises ({hint.raises})", f"no value is enough: {needed}"))  # fmt: skip
    return tuple(vain)


def _notes(case: Case, options: Options, engine: str, budget: Budget, refusal: Refusal, computed: Bounds | None) -> tuple[str, ...]:  # fmt: skip
    notes = []
    smallest = budget.smallest_static_fraction
    if smallest is not None:
        notes.append(f"Smallest --mem-fraction-static for these weights: {smallest:.3f} (1 - free after loading / free before).")  # fmt: skip
    if computed is not None:
        notes.append(computed.sentence)
    hint = hints.hint_of(case, refusal.match, refusal.text)
    least = _least_fraction(case, engine, budget, computed)
    value = engine_options.raised(least.value)
    if hint.raises and refusal.allocation is None and value != "higher":
        notes.append(f"The engine's own hint ({hint.raises}) has the right direction and no value: {value} is enough, and much more than that takes the room of graphs and activations.")  # fmt: skip
    if options.fraction and refusal.match.sign != "pool-is-full" and not _is_overfull(options, refusal) and (value == "higher" or least.is_bound) and not least.is_too_much:  # fmt: skip
        notes.append(_what_is_open(options, engine, budget, least, value))
    if hint.lowers:
        notes.append(f"The engine's own hint ({hint.lowers}) is for the opposite failure: here it leaves the cache less.")  # fmt: skip
    return tuple(notes)


_ASKS_FOR_SIZE = "`nvidia-smi --query-gpu=name,memory.total --format=csv`"


def _what_is_open(options: Options, engine: str, budget: Budget, least: Least, value: str) -> str:
    """Why a value is a bound, or what is missing for one."""
    if value != "higher" and least.lacking is not None:
        return f"{value} is enough on any card that holds this model at the fraction in use; {gib(least.lacking)} are lacking: with the card's memory ({_ASKS_FOR_SIZE}) it is that fraction + {least.lacking / GIB:.2f} GiB / memory."  # fmt: skip
    if engine == "sglang":
        return "For a value: the lines `Load weight begin` and `Load weight end` of the log (1 - free after / free before, and some cache)."  # fmt: skip
    if least.lacking is not None:
        return f"For a value: the memory of the card ({_ASKS_FOR_SIZE}). {options.fraction} has to grow by {least.lacking / GIB:.2f} GiB / that memory."  # fmt: skip
    known = f" The weights alone take {gib(budget.weights)}." if budget.weights else ""
    return f"For a value: the memory of the card ({_ASKS_FOR_SIZE}), and the lines of the log that say what weights and activations take.{known}"  # fmt: skip
