"""What SGLang chooses for itself: tokens of a chunk, graphs, and the fraction, by the release's own rules."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.graphs import sglang_prefill_sizes
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.settings import Settings
from gpuwhy.fit.workspaces import backend
from gpuwhy.knowledge.engine_memory import SglangMemory

DEFAULT_SPECULATIVE_REQUESTS = 48
"""``--max-running-requests`` when speculating (speculative_hook.py)."""
AITER_LONG_CONTEXT, AITER_SHARE = 8192, 0.85
"""Under aiter a longer context lowers the fraction to that share (attention_hook.py)."""
_FEWEST_TOKENS, _WHOLE_PREFILL = 2048, 16384
"""That the default fraction reserves for; that are computed at a time without chunks, unless more are asked for."""
_TIERS = ((20, 2048, 8, 8), (60, 4096, 32, 160), (90, 8192, 256, 512), (160, 8192, 256, 512))
_LARGEST_TIER = (16384, 512, 512)
_TIER_OF_RELEASE_GIB = 35
_GIB = 1024
"""In MiB."""
_BY_PARTS, _BY_TIERS, _BY_RANKS = "by parts", "by tiers", "by ranks"
_AND_SIZE = ("by ranks and size", "by ranks, size and draft")
_OF_RANKS = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
"""The default fraction up to 80 GiB before 0.4.7.post1."""
_OF_TIERS = ((35, 2.8, 0.1), (90, 9.5, 0.5), (160, 12.0, 0.5))
"""GiB of a GPU, GiB that are reserved, and for each rank more, before 0.5.3."""
_VALIDATED_ALL_TO_ALL = ("", "none", "deepep", "megamoe", "flashinfer")


class Defaults(Struct, frozen=True):
    """What the settings leave to the engine, and what follows."""

    prefill_tokens: int
    graph_batch: int
    """That the fraction is computed with."""
    captured_batch: int
    """That graphs are captured for: no more than requests may run."""
    has_prefill_graphs: bool
    fraction: float
    reserve_mib: float
    source: str


def defaults(shape: Architecture, settings: Settings, hardware: Hardware, release: SglangMemory) -> Defaults:
    """The release's own choices for this GPU (server_args.py, arg_groups/memory_hook.py)."""
    tier_tokens, tier_batch = _tier(hardware.gpu.smi_mib, settings, release)
    chunk = _FEWEST_TOKENS if settings.is_unchunked else settings.prefill_tokens or tier_tokens
    tokens = settings.whole_prefill_tokens or _WHOLE_PREFILL if settings.is_unchunked else chunk
    batch = settings.graph_batch or tier_batch
    if release.caps_graphs_by_requests and settings.requests and not settings.graph_batch:
        batch = min(batch, settings.requests)
    captured = batch
    requests = settings.requests or (DEFAULT_SPECULATIVE_REQUESTS if settings.speculation else None)
    if requests:
        captured = min(batch, requests)
    prefill_graphs = has_prefill_graphs(shape, settings, hardware, release)
    if not settings.has_graphs:
        captured = 0
    fraction, source = _plain_fraction(shape, settings, hardware.gpu.smi_mib, release, chunk, batch, prefill_graphs)
    reserve = hardware.gpu.smi_mib * (1 - fraction)
    if settings.fraction is not None:
        fraction, source = settings.fraction, "as given"
    else:
        fraction, source = _lowered(shape, settings, hardware, release, fraction, source)
    return Defaults(tokens, batch, captured, prefill_graphs, fraction, reserve, source)


def _tier(mib: int, settings: Settings, release: SglangMemory) -> tuple[int, int]:
    """Tokens of a chunk, and the largest batch that graphs are captured for."""
    if release.reserve_rule != _BY_PARTS:
        return _old_tier(mib, settings, release.reserve_rule)
    if 20 * _GIB <= mib < _TIER_OF_RELEASE_GIB * _GIB:
        tokens, few, many = release.tier_under_35_gib
    else:
        tokens, few, many = next((tier[1:] for tier in _TIERS if mib < tier[0] * _GIB), _LARGEST_TIER)
    return tokens, few if settings.tensor < 4 else many


def _old_tier(mib: int, settings: Settings, rule: str) -> tuple[int, int]:
    """Before 0.5.3, whose list of batches ended by the size of the GPU (cuda_graph_runner.py)."""
    small = 8 if settings.tensor < 4 else 80
    if rule == _BY_TIERS:
        if mib < _TIER_OF_RELEASE_GIB * _GIB:
            return 2048, small
        return 8192 if mib < 160 * _GIB else 16384, 512 if mib > 160_000 else 256 if mib > 90 * _GIB else 160
    if mib < 25_000:
        return 2048, small
    if rule == _BY_RANKS:
        return 8192, 256 if mib > 81_920 and settings.data == 1 else 160
    batch = 256 if mib > 96 * _GIB else 160
    return (16384, 512) if rule == _AND_SIZE[1] and mib > 180_000 else (8192, batch)


def has_prefill_graphs(shape: Architecture, settings: Settings, hardware: Hardware, release: SglangMemory) -> bool:
    if settings.has_prefill_graphs is False:
        return False
    if not release.has_prefill_graphs:
        return settings.has_prefill_graphs is True
    if hardware.is_of_amd or shape.name in release.prefill_graphs_never:
        return False
    return not any(reason in release.prefill_graphs_stop for reason in _reasons(shape, settings, release))


def _reasons(shape: Architecture, settings: Settings, release: SglangMemory) -> Iterator[str]:
    """What may stop them; which of it does is the release's."""
    is_allowed = shape.name in release.multimodal_prefill_graphs
    if settings.speculation:
        yield "speculation"
    if settings.has_dp_attention:
        yield "dp-attention"
    if settings.pipeline > 1:
        yield "pipeline"
    if settings.decode_context > 1:
        yield "decode-context"
    if settings.all_to_all not in ("", "none"):
        yield "all-to-all"
    if settings.all_to_all not in _VALIDATED_ALL_TO_ALL:
        yield "unvalidated-all-to-all"
    if "gguf" in (settings.load_format, settings.quantization):
        yield "gguf"
    if settings.offload_gib or settings.host_cache_gb or settings.host_cache_ratio:
        yield "offload"
    if settings.is_deterministic:
        yield "deterministic"
    if settings.has_symmetric_memory:
        yield "symmetric-memory"
    if shape.is_multimodal and not is_allowed:
        yield "multimodal"
    if shape.mla and not is_allowed:
        # an architecture that is allowed is captured in the older way, which takes it
        yield "mla"
        if not shape.indexer:
            yield "mla-without-index"


def _plain_fraction(shape: Architecture, settings: Settings, mib: int, release: SglangMemory, tokens: int, batch: int, prefill_graphs: bool) -> tuple[float, str]:  # fmt: skip
    """Before a vision tower or aiter lowers it. It knows nothing of the weights."""
    rule, ranks = release.reserve_rule, settings.tensor * settings.pipeline
    if rule == _BY_RANKS or rule in _AND_SIZE:
        ranks = settings.tensor if rule == _BY_RANKS else ranks
        return _fraction_of_ranks(mib, ranks, rule, settings.speculation is not None), f"{ranks} ranks on a GPU of {mib} MiB"  # fmt: skip
    if rule == _BY_TIERS:
        reserve = _reserve_of_tier(mib, settings, release)
    else:
        reserve = _reserve_of_parts(shape, settings, mib, release, tokens, batch, prefill_graphs)
    said = f"({mib} MiB of nvidia-smi - {reserve:.0f} MiB reserved) / {mib} MiB"
    return round(max(0.0, mib - reserve) / mib, 3), said


def _fraction_of_ranks(mib: int, ranks: int, rule: str, drafts: bool) -> float:
    """Up to 0.4.7: a table, which large GPUs are not bound to."""
    fraction = next(share for least, share in _OF_RANKS if ranks >= least)
    if rule == _BY_RANKS:
        return fraction if mib <= 81_920 else (mib - 13 * _GIB) / mib
    if mib > 81_920:
        fraction = 0.88
    knows_drafts = rule == _AND_SIZE[1]
    if knows_drafts and mib > 180_000:
        return 0.79
    if mib > 96 * _GIB:
        kept = 20 if knows_drafts and drafts else 18
        return min(fraction + 48 * _GIB * (1 - fraction) / mib, (mib - kept * _GIB) / mib)
    return fraction * 0.95 if knows_drafts and drafts else fraction


def _reserve_of_tier(mib: int, settings: Settings, release: SglangMemory) -> float:
    ranks = settings.tensor * settings.pipeline
    found = next(((base + each * ranks) * _GIB for limit, base, each in _OF_TIERS if mib < limit * _GIB), 32.0 * _GIB)
    if settings.speculation:
        found += _of_draft(settings, release)
    return found + (4 * _GIB if settings.has_dp_attention else 0)


def _of_draft(settings: Settings, release: SglangMemory) -> int:
    is_standalone = settings.speculation is not None and settings.speculation.method == "STANDALONE"
    return release.standalone_reserve_mib if is_standalone else release.speculative_reserve_mib


def _reserve_of_parts(
    shape: Architecture, settings: Settings, mib: int, release: SglangMemory, tokens: int, batch: int, prefill_graphs: bool
) -> float:  # fmt: skip
    reserve = 512 + 1.5 * max(tokens, _FEWEST_TOKENS) + settings.tensor * settings.pipeline / 8 * 1024
    if settings.has_graphs or not release.reserves_only_captured:
        reserve += 2 * batch
    if settings.has_dp_attention:
        reserve += batch * settings.data * 3 + (1.5 * batch * settings.data if batch > 300 else 0)
    is_deepep = settings.all_to_all == "deepep"
    if prefill_graphs and release.prefill_graph_reserve == "by sizes":
        reserve += _reserve_of_prefill_graphs(shape, release, tokens)
        reserve += release.deepep_prefill_reserve_mib if is_deepep else 0
    if mib > 60 * _GIB:
        reserve = max(reserve, 10 * 1024)
    if is_deepep and (settings.has_graphs or not release.reserves_only_captured):
        reserve += release.deepep_reserve_mib
    if settings.speculation and settings.speculation.needs_weights:
        reserve += _of_draft(settings, release)
    if prefill_graphs and "tokens" in release.prefill_graph_reserve:
        reserve += tokens // (4 if "quarter" in release.prefill_graph_reserve else 8)
    return reserve


def _reserve_of_prefill_graphs(shape: Architecture, release: SglangMemory, tokens: int) -> float:
    if shape.mla and release.has_prefill_graphs:
        return 1536
    most = min(tokens, release.prefill_graph_tokens_mla) if shape.mla else tokens
    return 8 * len(sglang_prefill_sizes(most))


def _lowered(
    shape: Architecture, settings: Settings, hardware: Hardware, release: SglangMemory, fraction: float, said: str
) -> tuple[float, str]:
    vision = shape.vision
    is_exempt = settings.is_language_only and release.exempts_language_only
    if shape.is_multimodal and release.vision_rule != "none" and not is_exempt:
        ratio = vision.layers * vision.width**2 / (24 * 1024**2) if vision else 1.0
        by_tower = 0.95 * max(0.8, min(1.05, 1 - 0.1 * (ratio - 1)))
        fraction *= by_tower if release.vision_rule == "by tower" else 0.9
        said += ", lowered for the vision tower"
    if is_lowered_by_aiter(shape, settings, hardware):
        fraction *= AITER_SHARE
        said += f", times {AITER_SHARE} for long contexts under aiter"
    return fraction, "default: " + said


def is_lowered_by_aiter(shape: Architecture, settings: Settings, hardware: Hardware) -> bool:
    longest = settings.context or shape.context or 0
    return (
        backend(shape, hardware, settings.decode_backend or settings.attention_backend) == "aiter"
        and longest > AITER_LONG_CONTEXT
    )
