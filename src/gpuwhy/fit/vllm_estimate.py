"""One rank of vLLM: a share of the GPU is asked for, and the cache gets what weights and a profile run leave of it."""

from __future__ import annotations

from gpuwhy.fit import vllm
from gpuwhy.fit.activations import hidden_gib, logits_gib, vllm_peak
from gpuwhy.fit.amount import GIB, NOTHING, Amount, combined
from gpuwhy.fit.concluding import OUT_OF_MEMORY, concluded, share_of, weights_check
from gpuwhy.fit.drafts import tokens_each
from gpuwhy.fit.graphs import first_engine_graphs, vllm_batches, vllm_graphs
from gpuwhy.fit.ground import Ground, opening_parts, weight_parts
from gpuwhy.fit.measured import told
from gpuwhy.fit.results import Cache, Check, Estimate, Fraction, Part
from gpuwhy.fit.vllm_engines import engine_of
from gpuwhy.fit.workspaces import backend, vllm_triton_mla
from gpuwhy.knowledge.engine_memory import VllmMemory, vllm_memory

_WARM_UP, _WARM_UP_OF_FP4 = Amount(0.0, 0.2, 0.8), Amount(0.0, 1.5, 5.5)
"""inferred: what kernels keep that are tuned or compiled after the profile. A start of gpt-oss whose figures left 6.2 GiB
beside the cache, of 79.2, died on the 0.77 GiB of the sampler's logits.
"""

_TOKENS_OF_WARM_UP = 8192


def vllm_estimate(ground: Ground) -> Estimate:
    """What happens on the heaviest rank."""
    settings, shape, measured, hardware = ground.settings, ground.shape, ground.measured, ground.hardware
    release, reading = engine_of(*vllm_memory(settings.version), settings, shape, hardware)
    chosen = vllm.defaults(settings, hardware, ground.context, release)
    utilization = measured.fraction if measured.fraction is not None else chosen.utilization
    each = tokens_each(settings)
    asked = vllm.requested(ground.total, utilization)
    outside = ground.opened + (ground.connected if release.snapshot_after_communication else NOTHING)
    free = told(measured.available_before, ground.total - outside - Amount.exact(hardware.taken_gib))
    held = ground.held + ground.draft.gib if measured.weights is None else ground.held
    splits = _split_buffers(ground, release, chosen.requests * each) if measured.activation is None else NOTHING
    activation = told(measured.activation, _vllm_activation(ground, release, chosen))
    other = told(measured.non_torch, _beside_pytorch(ground, release))
    batches = vllm_batches(chosen.requests, each, chosen.prefill_tokens, chosen.capture_cap, release.graph_sizes) if settings.has_graphs else ()  # fmt: skip
    if settings.graph_batches and settings.has_graphs:
        batches = settings.graph_batches
    usual = first_engine_graphs(len(batches)) if release.is_first_engine else vllm_graphs(shape, len(batches))
    graphs = told(measured.graphs, usual)
    budget = vllm.kv_budget(asked, held, activation + splits, other, graphs, release)
    if settings.kv_cache_bytes:
        budget = Amount.exact(settings.kv_cache_bytes / GIB)
    in_flight = chosen.prefill_tokens * vllm.batches_in_flight(settings, release)
    kept = vllm.kept(ground.kv, shape.is_chunked, settings, release)
    made = vllm.pool(settings, budget, kept, ground.context, in_flight, ground.draft.kv_bytes, release)
    length, is_fitted = ground.context, settings.is_context_fitted and release.fits_context
    if is_fitted and 0 < made.longest.expected < length:
        length = int(made.longest.expected)
        made = vllm.pool(settings, budget, kept, length, in_flight, ground.draft.kv_bytes, release)
    cache_gib = budget.at_least(0)
    # the peak is free again when graphs are captured; what NCCL took is part of what is not PyTorch's
    sampled = release.sampler_logits * logits_gib(shape, min(chosen.requests, chosen.prefill_tokens))
    if release.is_first_engine or not release.warms_sampler:
        sampled = 0.0
    late = _vllm_late(
        ground,
        release,
        asked,
        activation,
        NOTHING if release.subtracts_graphs else graphs,
        sampled,
        chosen.prefill_tokens,
    )
    checks = [] if not release.checks_what_is_free else [
        Check(phase="start", outcome="not-free", margin=free - asked, says=f"{utilization:g} of the GPU must be free when the worker starts", message=vllm.not_free_message(release, free.expected, ground.total.expected, utilization)),
    ]  # fmt: skip
    checks += [
        weights_check(free - held, "the weights must fit into what is free"),
        Check(phase="kv-cache", outcome="oom-kv", margin=budget, says="weights, activation peak and the rest must leave something of what is asked for", message=vllm.no_cache_message(release)),
        Check(phase="graphs", outcome="oom-graph", margin=late, says="graphs, warm-up and the sampler must fit beside the cache", message=OUT_OF_MEMORY),
    ]  # fmt: skip
    if not is_fitted:
        checks.insert(-1, Check(phase="context", outcome="oom-kv", margin=budget - Amount.exact(made.needed_gib), says=f"one request of {ground.context} tokens must fit into the cache", message=vllm.too_long_message(release, ground.context, made.needed_gib, max(0.0, budget.expected), made.longest.expected)))  # fmt: skip
    parts = [*opening_parts(ground), *weight_parts(ground)]
    if ground.draft.layers and measured.weights is None:
        parts.append(Part(name="draft model", kind="draft", gib=ground.draft.gib, source=ground.draft.source))
    parts += [
        Part(name="KV cache", kind="kv-cache", gib=cache_gib, source="what is asked for, less all that is counted"),
        Part(name="Triton MLA split buffers", kind="workspace", gib=splits, source=f"{chosen.requests * each} rows x heads x splits x the latent width, float32"),
        Part(name="activation peak", kind="activation", gib=activation, source=f"{chosen.prefill_tokens} tokens forward, {chosen.requests} requests sampled", is_static=False),
        Part(name="what is not PyTorch's", kind="communication", gib=_without(other, ground.connected.expected), source="measured on H100"),
        Part(name="CUDA graphs", kind="graphs", gib=graphs, source=f"{len(batches)} sizes; " + ("counted" if release.subtracts_graphs else "not counted by this release")),
    ]  # fmt: skip
    cache = Cache(
        gib=cache_gib,
        tokens=made.tokens,
        bytes_per_token=made.bytes_per_token,
        charged_bytes_per_token=made.bytes_per_token,
        context=length,
        longest=made.longest,
        concurrency=made.concurrency,
        budget=budget,
        source="GiB of the GPU x utilization - weights - activation - not PyTorch's" + (" - graphs" if release.subtracts_graphs else ""),
    )  # fmt: skip
    said = Fraction(
        name="--gpu-memory-utilization",
        value=utilization,
        is_default=settings.fraction is None and measured.fraction is None,
        source=chosen.source if measured.fraction is None else "as the log says",
        minimum=share_of(asked - budget + Amount.exact(0.0 if is_fitted else made.needed_gib), ground.total),
        maximum=share_of(
            combined((asked, late)) if late.expected < free.expected - asked.expected else free, ground.total
        ),
    )
    return concluded(
        ground,
        [part for part in parts if part.gib.high > 0],
        checks,
        said,
        cache,
        reading,
        False,
        float(release.swap_gib),
    )


def _beside_pytorch(ground: Ground, release: VllmMemory) -> Amount:
    """With the communicators where they come after the first measurement, and with all that is in use where that counts."""
    settings = ground.settings
    ranks = settings.tensor * settings.pipeline
    found = vllm.non_torch(ground.hardware, ranks, ground.shape.vocabulary or 0, release, settings.tensor > 1)
    if release.is_first_engine:
        return found
    if not release.snapshot_after_communication:
        found = found + ground.connected
    if release.counts_all_in_use:
        found = found + ground.opened + Amount.exact(ground.hardware.taken_gib)
    return found


def _vllm_late(
    ground: Ground, release: VllmMemory, asked: Amount, activation: Amount, graphs: Amount, sampled: float, tokens: int
) -> Amount:
    """What is outside the request, and the peak that is free again. Buffers of NCCL may be outside it too.

    The sampler is warmed up last. How much of its peak the allocator still holds from the profile is not known.
    """
    again = Amount(0.0, min(sampled, activation.expected) / 2, min(sampled, activation.expected))
    warmed = _WARM_UP_OF_FP4.scaled(min(1.0, tokens / _TOKENS_OF_WARM_UP)) if _has_fp4_experts(ground) else _WARM_UP
    opened = NOTHING if release.counts_all_in_use else ground.opened
    spent = (asked, opened, graphs, again, warmed)
    outside = combined((ground.total, activation, *(each.negated() for each in spent)))
    if release.counts_all_in_use:
        return outside
    linked = ground.connected.high if release.snapshot_after_communication else 0.0
    return outside - Amount.exact(ground.hardware.taken_gib) - Amount(0.0, 0.0, linked)


def _without(other: Amount, shown: float) -> Amount:
    """What is not PyTorch's, less the communicators that a part of their own shows already."""
    rest = max(0.0, other.expected - shown)
    return Amount(min(rest, max(0.0, other.low - shown)), rest, max(rest, other.high - shown))


def _has_fp4_experts(ground: Ground) -> bool:
    shape = ground.shape
    at = next((index for index, layer in enumerate(shape.layers) if layer.feed == "experts"), None)
    if at is None:
        return False
    return "fp4" in shape.quantization.format_of(f"model.layers.{at}.mlp.experts.0.up_proj").name


def _vllm_activation(ground: Ground, release: VllmMemory, chosen: vllm.Defaults) -> Amount:
    settings, shape, parallel = ground.settings, ground.shape, ground.settings.parallel
    block = max(1, settings.page or vllm.DEFAULT_BLOCK)
    peak = vllm_peak(
        shape, parallel, chosen.prefill_tokens, chosen.requests, ground.context, block, release.sampler_logits
    )
    if shape.is_multimodal and not settings.is_language_only:
        peak = peak + Amount(0.0, hidden_gib(shape, chosen.prefill_tokens), 0.6)
    return peak


def _split_buffers(ground: Ground, release: VllmMemory, rows: int) -> Amount:
    """Reserved in the profile run and kept: counted with the peak, but not free again after it."""
    name = backend(ground.shape, ground.hardware, ground.settings.attention_backend)
    if not (release.has_split_workspace and ground.shape.mla and "triton" in name):
        return NOTHING
    return Amount.exact(vllm_triton_mla(ground.shape, ground.settings.parallel, ground.hardware, rows, ground.context))
