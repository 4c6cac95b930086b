"""What speculative decoding adds: the weights of a draft, the copies it drops again, and its own cache."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.amount import GIB, NOTHING, Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.inventory import padded
from gpuwhy.fit.kv_cache import kv_shape
from gpuwhy.fit.model import Draft, Model
from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.settings import Settings, Speculation
from gpuwhy.fit.weights import rank_weights

_BF16 = 2
_DEFAULT_TOKENS = 4


class DraftNeed(Struct, frozen=True):
    """Of one rank. ``copy_gib``: an embedding of its own that is dropped once the target's is shared."""

    gib: Amount
    copy_gib: float
    layers: int
    kv_bytes: float
    """Per token, of the draft's own cache."""
    source: str
    missing: tuple[str, ...] = ()


NO_DRAFT = DraftNeed(NOTHING, 0.0, 0, 0.0, "")


def tokens_each(settings: Settings) -> int:
    """Tokens that one request brings into a verifying step."""
    speculation = settings.speculation
    if speculation is None:
        return 1
    if settings.engine == "vllm":
        return 1 + (speculation.tokens or 1)
    return speculation.tokens or (speculation.steps or _DEFAULT_TOKENS - 1) + 1


def draft_need(model: Model, settings: Settings) -> DraftNeed:
    """What the speculation that the settings ask for needs."""
    speculation = settings.speculation
    if speculation is None or not speculation.needs_weights:
        return NO_DRAFT
    if speculation.is_own_layers and model.shape.predicting_layers:
        return _predicting(model, settings)
    if model.draft is None:
        return _assumed(model, settings, speculation)
    return _of_its_own(model, model.draft, settings, speculation)


def _predicting(model: Model, settings: Settings) -> DraftNeed:
    """Multi-token prediction layers of the target's own checkpoint: divided as the target's are."""
    shape, parallel = model.shape, settings.parallel
    groups = rank_weights(shape, model.inventory, parallel, settings.engine == "sglang")
    whole = sum(part.whole_gib for part in groups.parts) or 1.0
    expected = model.inventory.predicting_bytes / GIB * groups.gib.expected / whole
    copies = 0.0
    if settings.engine == "sglang":
        # it loads an embedding and a head of its own, and shares the target's afterwards
        copies = 2 * padded(shape.vocabulary or 0) * (shape.hidden or 0) * shape.quantization.dtype.bytes_each / GIB / max(1, parallel.tensor)  # fmt: skip
    kv = kv_shape(shape, parallel, settings.kv_dtype, engine=settings.engine)
    row = kv.full_bytes or kv.sliding_bytes
    return DraftNeed(
        Amount.about(expected, 0.25, 0.5),
        copies,
        shape.predicting_layers,
        row * shape.predicting_layers,
        f"{shape.predicting_layers} prediction layer(s) of the checkpoint itself",
    )


def _of_its_own(model: Model, draft: Draft, settings: Settings, speculation: Speculation) -> DraftNeed:
    shape, parallel = draft.shape, settings.parallel
    kv = kv_shape(shape, parallel, settings.kv_dtype, engine=settings.engine).per_token
    if not speculation.method.startswith("EAGLE"):
        held = rank_weights(shape, draft.inventory, parallel, settings.engine == "sglang")
        return DraftNeed(held.gib, 0.0, len(shape.layers), kv, "the draft model's own folder")
    expected, copy = eagle_gib(model.shape, shape, parallel, speculation.method == "EAGLE3")
    return DraftNeed(Amount.about(expected, 0.12, 0.2), copy, len(shape.layers), kv, "the draft model's config.json")


def _assumed(model: Model, settings: Settings, speculation: Speculation) -> DraftNeed:
    """One layer as the target's attention is, with a dense MLP: what most EAGLE drafts are."""
    said = (
        f"the draft model {speculation.draft!r} is not at hand: " if speculation.draft else "no draft model is named: "
    )
    if not speculation.method.startswith("EAGLE"):
        unknown = Amount(0.0, 0.5, 8.0)
        return DraftNeed(unknown, 0.0, 1, 0.0, "not known", (said + "its weights are not known; give --draft FOLDER",))
    shape, parallel = model.shape, settings.parallel
    expected, copy = eagle_gib(shape, shape, parallel, speculation.method == "EAGLE3")
    kv = kv_shape(shape, parallel, settings.kv_dtype, engine=settings.engine)
    row = kv.full_bytes or kv.sliding_bytes
    return DraftNeed(
        Amount.about(expected, 0.35, 0.6),
        copy,
        1,
        row,
        "one layer shaped as the target's",
        (said + "one layer of the target's shape is taken; give --draft FOLDER for its own",),
    )


def eagle_gib(target: Architecture, draft: Architecture, parallel: Parallel, is_third: bool) -> tuple[float, float]:
    """One rank's share of an EAGLE draft, and of the embedding that it loads and drops.

    The attention of EAGLE-3 reads two hidden states, its first matrix joins three of the target's; EAGLE's joins two
    (llama_eagle3.py, kimi_k25_eagle3.py). measured: 1.77 GiB with its embedding for Llama-3 8B and EAGLE-3.
    """
    hidden, tensor = draft.hidden or target.hidden or 0, max(1, parallel.tensor)
    attended = (2 if is_third else 1) * hidden
    heads, head = draft.heads or 0, draft.head_dim or 0
    kv_heads = max(draft.kv_heads or 0, min(tensor, heads))
    mla = draft.mla
    if mla:
        reduced = attended * ((mla.query_rank or 0) + mla.kv_rank + mla.rope)
        queries = (mla.query_rank or attended) * heads * (mla.nope + mla.rope)
        attention = reduced + (queries + heads * (mla.kv_rank * (mla.nope + mla.value) + mla.value * hidden)) / tensor
    else:
        attention = (attended * (heads + 2 * kv_heads) * head + heads * head * hidden) / tensor
    joined = (3 * (target.hidden or hidden) if is_third else 2 * hidden) * hidden
    joining = joined / tensor if mla else joined
    feed = 3 * hidden * (draft.inner or 4 * hidden) / tensor
    layers = max(1, len(draft.layers) if draft is not target else 1)
    vocabulary = padded(draft.draft_vocabulary or draft.vocabulary or target.vocabulary or 0)
    kept = layers * (attention + feed) + joining + vocabulary * hidden / tensor
    copy = padded(target.vocabulary or 0) * hidden / tensor
    return kept * _BF16 / GIB, copy * _BF16 / GIB
