"""One rank of SGLang: the pool is sized by the fraction, and what comes after it must fit into the rest."""

from __future__ import annotations

from gpuwhy.fit import sglang, sglang_defaults
from gpuwhy.fit.activations import logits_gib, sglang_prefill
from gpuwhy.fit.amount import NOTHING, Amount, combined
from gpuwhy.fit.concluding import OUT_OF_MEMORY, concluded, share_of, weights_check
from gpuwhy.fit.drafts import tokens_each
from gpuwhy.fit.graphs import sglang_batches, sglang_decode_graphs, sglang_prefill_graphs
from gpuwhy.fit.ground import Ground, opening_parts, weight_parts
from gpuwhy.fit.measured import told
from gpuwhy.fit.results import Cache, Check, Estimate, Fraction, Part
from gpuwhy.fit.workspaces import backend, sglang_aiter, sglang_request_table, sglang_triton_mla, sglang_workspace
from gpuwhy.knowledge.engine_memory import SglangMemory, sglang_memory

_STEPS_TO_SETTLE = 24
_LATE, _LATE_ALONE = Amount(0.1, 0.5, 1.5), Amount(0.05, 0.25, 0.7)
"""inferred: communicators, which a single GPU has none of, and kernels that come with the first requests."""

_AITER_PART_NAME = "partial results of aiter"


def sglang_estimate(ground: Ground) -> Estimate:
    """What happens on the heaviest rank."""
    settings, shape, measured, draft = ground.settings, ground.shape, ground.measured, ground.draft
    release, reading = sglang_memory(settings.version)
    chosen = sglang_defaults.defaults(shape, settings, ground.hardware, release)
    fraction = measured.fraction if measured.fraction is not None else chosen.fraction
    symmetric = Amount.exact(4.0) if settings.has_symmetric_memory else NOTHING
    taken = Amount.exact(ground.hardware.taken_gib)
    pre = told(measured.available_before, ground.total - ground.opened - ground.connected - taken - symmetric)
    drafted = told(measured.draft, draft.gib + Amount.exact(draft.copy_gib))
    if not draft.layers:
        drafted = NOTHING
    images = sglang.reserve_for_images(shape, settings, release)
    budget = sglang.pool_budget(pre, ground.held, drafted, fraction, images, release)
    is_budgeted = (
        reading.is_outside
        and backend(shape, ground.hardware, settings.decode_backend or settings.attention_backend) == "aiter"
    )
    if (
        not is_budgeted
        and settings.fraction is not None
        and sglang_defaults.is_lowered_by_aiter(shape, settings, ground.hardware)
    ):
        # whether a given fraction is lowered as the default is, was not read
        lowered = sglang.pool_budget(pre, ground.held, drafted, fraction * sglang_defaults.AITER_SHARE, images, release)
        budget = Amount(lowered.low, budget.expected, budget.high)
    if measured.available_after is not None and measured.available_before is not None:
        budget = Amount.exact(measured.available_after - measured.available_before * (1 - fraction) - images)
    if is_budgeted:
        budget = budget - _aiter_in_budget(ground, budget, release)
    made = sglang.pool(shape, settings, budget, ground.kv, draft.layers, draft.kv_bytes, release)
    late, first = _sglang_after_pool(ground, release, chosen, made)
    if is_budgeted:
        late = [part for part in late if part.name != _AITER_PART_NAME]
    uncounted = NOTHING if release.counts_draft else drafted
    left = _left_beside_pool(ground, pre, fraction, drafted if release.counts_draft else NOTHING, made)
    started = combined(part.gib for part in late)
    after_start = left - uncounted - started
    available = pre.expected - ground.held.expected - (drafted.expected if release.counts_draft else 0.0)
    checks = [
        weights_check(pre - ground.held, "SGLang allocates the weights before it sizes its pool"),
        Check(phase="kv-cache", outcome="oom-kv", margin=budget, says=_budget_says(release, fraction), message=sglang.no_pool_message(release, fraction, available, pre.expected)),
        Check(phase="graphs", outcome="oom-graph", margin=after_start, says="what comes after the pool at start-up must fit beside it", message=_GRAPH_MESSAGE),
        Check(phase="first-prefill", outcome="oom-activation", margin=after_start - first.gib, says="the first long prefill must fit beside all that", message=OUT_OF_MEMORY),
    ]  # fmt: skip
    minimum = sglang.smallest_fraction(pre, ground.held, drafted, release)
    # tables of requests grow with the pool: at the largest fraction they are those of the largest pool
    roomy = pre - ground.held - drafted - started - first.gib
    most = sglang.pool(shape, settings, roomy, ground.kv, draft.layers, draft.kv_bytes, release)
    at_most, _ = _sglang_after_pool(ground, release, chosen, most)
    needed = uncounted + combined(part.gib for part in at_most) + first.gib
    parts = [*opening_parts(ground), *weight_parts(ground)]
    if symmetric.expected:
        parts.append(Part(name="symmetric memory", kind="communication", gib=symmetric, source="allocated ahead when the flag is set"))  # fmt: skip
    if draft.layers:
        parts.append(Part(name="draft model", kind="draft", gib=drafted, source=draft.source, detail="within the fraction" if release.counts_draft else "beside the fraction"))  # fmt: skip
    if images:
        parts.append(Part(name="image features", kind="reserve", gib=Amount.exact(images), source="SGLang keeps it free since 0.5.18"))  # fmt: skip
    parts.append(Part(name="KV cache" + (" and states" if made.states else ""), kind="kv-cache", gib=made.static_gib, source="the budget, in whole pages"))  # fmt: skip
    parts += [*late, first]
    replicas = max(1, settings.data) if settings.has_dp_attention else 1
    cache = Cache(
        gib=made.static_gib,
        tokens=made.tokens,
        bytes_per_token=made.cell_bytes,
        charged_bytes_per_token=made.charged_bytes,
        context=ground.context,
        longest=Amount(
            *(min(each, ground.context) for each in (made.tokens.low, made.tokens.expected, made.tokens.high))
        ),
        concurrency=made.tokens.scaled(replicas / ground.context),
        budget=budget,
        source="GiB free after loading - GiB free before x (1 - fraction)",
    )
    said = Fraction(
        name="--mem-fraction-static",
        value=fraction,
        is_default=settings.fraction is None and measured.fraction is None,
        source=chosen.source if measured.fraction is None else "as the log says",
        minimum=minimum,
        maximum=share_of(pre - needed, pre),
    )
    return concluded(ground, parts, checks, said, cache, reading, release.loads_in_threads, 0.0)


def _left_beside_pool(ground: Ground, pre: Amount, fraction: float, counted: Amount, made: sglang.Pool) -> Amount:
    """GiB that neither weights nor pool take. The pool takes up what the weights leave of the fraction, so that an error
    in the weights changes the pool, not the rest; unless the pool is capped.
    """
    dropped = Amount.exact(ground.draft.copy_gib if ground.draft.layers else 0.0)
    if ground.settings.total_tokens and made.tokens.high >= ground.settings.total_tokens:
        return combined((pre, ground.held.negated(), made.static_gib.negated(), counted.negated(), dropped))
    expected = pre.expected - ground.held.expected - made.static_gib.expected - counted.expected + dropped.expected
    share = 1 - fraction
    return Amount(expected - (pre.expected - pre.low) * share, expected, expected + (pre.high - pre.expected) * share)


def _aiter_in_budget(ground: Ground, budget: Amount, release: SglangMemory) -> Amount:
    """measured: a build after the read releases takes aiter's partial results from the budget of the pool, and does not
    lower the fraction; the requests that they are for follow from the tokens that are then left.
    """
    settings, draft = ground.settings, ground.draft
    taken = NOTHING
    for _ in range(_STEPS_TO_SETTLE):
        left = Amount(*(max(0.0, of - by) for of, by in ((budget.low, taken.low), (budget.expected, taken.expected), (budget.high, taken.high))))  # fmt: skip
        tokens = sglang.pool(ground.shape, settings, left, ground.kv, draft.layers, draft.kv_bytes, release).tokens
        slots = [sglang.request_slots(settings, each, ground.context) for each in (tokens.low, tokens.expected, tokens.high)]  # fmt: skip
        taken = Amount(*(sglang_aiter(ground.shape, settings.parallel, each, ground.context) for each in slots))
    return Amount.exact(taken.expected)


_GRAPH_MESSAGE = "Exception: Capture cuda graph failed: CUDA out of memory. Possible solutions: 1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7) 2. set --cuda-graph-max-bs to a smaller value (e.g., 16)"  # fmt: skip


def _budget_says(release: SglangMemory, fraction: float) -> str:
    counted = "weights and draft" if release.counts_draft else "weights"
    return f"{counted} must leave something of the {fraction:.4g} of the memory that is free before loading"


def _sglang_after_pool(ground: Ground, release: SglangMemory, chosen: sglang_defaults.Defaults, made: sglang.Pool) -> tuple[list[Part], Part]:  # fmt: skip
    """What is allocated at start-up after the pool, and the first prefill."""
    settings, shape, parallel = ground.settings, ground.shape, ground.settings.parallel
    each, speculates = tokens_each(settings), settings.speculation is not None
    rows = chosen.captured_batch * each
    name = backend(shape, ground.hardware, settings.decode_backend or settings.attention_backend)
    batches = sglang_batches(chosen.captured_batch, speculates) if chosen.captured_batch else ()
    parts = [
        Part(name=f"workspace of {name}", kind="workspace", gib=sglang_workspace(name, settings.is_deterministic).scaled(2 if ground.draft.layers else 1), source="the backend's own size"),
        Part(name="decode graphs", kind="graphs", gib=sglang_decode_graphs(shape, len(batches), each), source=f"inferred: {len(batches)} batch sizes to {chosen.captured_batch}"),
        Part(name="prefill graphs", kind="graphs", gib=sglang_prefill_graphs(chosen.has_prefill_graphs, chosen.prefill_tokens), source="measured on 0.5.13 and 0.5.19"),
        Part(name="logits of the graphs", kind="workspace", gib=Amount.exact(logits_gib(shape, rows)), source=f"{rows} rows of float32 logits"),
    ]  # fmt: skip
    if name == "triton" and shape.mla:
        split = sglang_triton_mla(
            shape, parallel, ground.hardware, max(rows, 1), ground.context, release.splits_by_context
        )
        parts.append(Part(name="Triton MLA split buffers", kind="workspace", gib=Amount.exact(split), source=f"{rows} rows x heads x splits x the latent width, float32"))  # fmt: skip
    slots = Amount(*(sglang.request_slots(settings, each, ground.context, made.states) for each in (made.tokens.low, made.tokens.expected, made.tokens.high)))  # fmt: skip
    parts.append(Part(name="table of requests", kind="workspace", gib=slots.scaled(sglang_request_table(1, ground.context)), source=f"{slots.expected:.0f} requests x {ground.context} tokens, int32"))  # fmt: skip
    if name == "aiter":
        parts.append(Part(name=_AITER_PART_NAME, kind="workspace", gib=slots.scaled(sglang_aiter(shape, parallel, 1, ground.context)), source=f"{slots.expected:.0f} requests x heads x parts of the context, float32"))  # fmt: skip
    parts.append(
        Part(
            name="late communicators and kernels",
            kind="communication",
            gib=_LATE if settings.tensor * settings.pipeline > 1 else _LATE_ALONE,
            source="inferred",
        )
    )
    first = Part(name="prefill", kind="activation", gib=sglang_prefill(shape, parallel, min(chosen.prefill_tokens, ground.context)), source=f"inferred: {chosen.prefill_tokens} tokens at a time", is_static=False)  # fmt: skip
    return [part for part in parts if part.gib.high > 0], first
