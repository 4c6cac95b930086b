"""What the estimates of both engines stand on: weights, draft, cache and GPU of one rank."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from gpuwhy.fit import quantization
from gpuwhy.fit.amount import Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.drafts import DraftNeed, draft_need
from gpuwhy.fit.hardware import Hardware, communication, cuda_context
from gpuwhy.fit.inventory import computed_inventory
from gpuwhy.fit.kv_cache import KvShape, default_dtype, element_bytes, kv_shape
from gpuwhy.fit.measured import Measured, told
from gpuwhy.fit.model import Model
from gpuwhy.fit.padding import mxfp4_alignment
from gpuwhy.fit.results import Part
from gpuwhy.fit.settings import Settings
from gpuwhy.fit.weights import RankWeights, rank_weights

_USUAL_CONTEXT = 8192


class Ground(Struct, frozen=True):
    """What both engines' estimates stand on."""

    model: Model
    hardware: Hardware
    settings: Settings
    measured: Measured
    shape: Architecture
    weights: RankWeights
    held: Amount
    """Weights of the heaviest rank, in GiB."""
    draft: DraftNeed
    kv: KvShape
    context: int
    total: Amount
    opened: Amount
    """The CUDA context."""
    connected: Amount
    """NCCL and the custom all-reduce, before the weights."""
    missing: tuple[str, ...]


def ground_of(model: Model, hardware: Hardware, settings: Settings, measured: Measured) -> Ground:
    """Gathers them; what had to be assumed is in ``missing``."""
    shape, missing = _as_set(model, settings)
    if shape.quantization is not model.shape.quantization:
        model = _requantised(model, shape)
    elif shape is not model.shape:
        model = msgspec.structs.replace(model, shape=shape)
    ranks = settings.tensor * settings.pipeline
    is_sglang = settings.engine == "sglang"
    alignment = mxfp4_alignment(settings.engine, settings.version, hardware.capability, shape.model_type == "gptoss")
    held = rank_weights(shape, model.inventory, settings.parallel, is_sglang, alignment)
    draft = draft_need(model, settings)
    longest = settings.context or settings.model_context or shape.context
    context = longest or _USUAL_CONTEXT
    if not longest:
        missing = (*missing, f"the longest context is not known: {_USUAL_CONTEXT} is taken")
    if element_bytes(settings.kv_dtype, shape) is None:
        missing = (*missing, f"the cache's dtype {settings.kv_dtype!r} is not known: that of the model is taken")
    kv_dtype = default_dtype(settings.kv_dtype, shape, settings.engine, settings.version, hardware.capability)
    expected = told(measured.weights, _less_offloaded(held.gib, settings))
    return Ground(
        model=model,
        hardware=hardware,
        settings=settings,
        measured=measured,
        shape=shape,
        weights=held,
        held=expected,
        draft=draft,
        kv=kv_shape(
            shape, settings.parallel, kv_dtype, held.layers if settings.pipeline > 1 else None, settings.engine
        ),
        context=context,
        total=told(measured.total, hardware.total),
        opened=cuda_context(hardware),
        connected=communication(hardware, ranks, is_sglang),
        missing=(
            *missing,
            *model.missing,
            *model.inventory.missing,
            *shape.missing,
            *draft.missing,
            *settings.problems,
            *settings.uncounted,
            *settings.mistyped,
        ),
    )


def _as_set(model: Model, settings: Settings) -> tuple[Architecture, tuple[str, ...]]:
    """The shape with the dtype and the quantisation that the settings put in place of the checkpoint's."""
    shape = model.shape
    missing: tuple[str, ...] = ()
    found = shape.quantization
    wanted = quantization.plain_format(settings.dtype) if settings.dtype not in ("", "auto") else None
    if settings.dtype not in ("", "auto") and wanted is None:
        missing = (f"--dtype {settings.dtype!r} is not known: that of the checkpoint is taken",)
    if wanted is not None and wanted.bytes_each != found.dtype.bytes_each:
        found = msgspec.structs.replace(found, dtype=wanted)
    found = quantization.online(settings.quantization, found)
    if shape.state and settings.state_dtype not in ("", "auto") and not shape.state.is_always_float32:
        state = msgspec.structs.replace(shape.state, dtype=settings.state_dtype.lower())
        shape = msgspec.structs.replace(shape, state=state)
    if found is model.shape.quantization:
        return shape, missing
    return msgspec.structs.replace(shape, quantization=found), missing


def _requantised(model: Model, shape: Architecture) -> Model:
    """The weights as they are after loading: computed anew, as the files hold something else."""
    computed = computed_inventory(shape)
    files = msgspec.structs.replace(
        computed,
        checkpoint_bytes=model.inventory.checkpoint_bytes,
        largest_file_bytes=model.inventory.largest_file_bytes,
    )
    return msgspec.structs.replace(model, shape=shape, inventory=files)


def _less_offloaded(held: Amount, settings: Settings) -> Amount:
    return held - Amount.exact(min(settings.offload_gib, held.expected)) if settings.offload_gib else held


def weight_parts(ground: Ground) -> list[Part]:
    """The groups of the rank's weights; scaled to what a log measured."""
    computed = ground.weights.gib.expected or 1.0
    scale = ground.held.expected / computed
    below, above = ground.held.low / (ground.held.expected or 1.0), ground.held.high / (ground.held.expected or 1.0)
    source = (
        ground.model.inventory.source if ground.measured.weights is None else "as the log says, divided as computed"
    )
    found = []
    for part in sorted(ground.weights.parts, key=lambda each: -each.gib):
        gib = part.gib * scale
        how = "on every rank" if part.divided_by == 1 and ground.settings.gpus > 1 else f"/ {part.divided_by:g}" if part.divided_by > 1 else ""  # fmt: skip
        found.append(Part(name=part.name, kind="weights", gib=Amount(gib * below, gib, gib * above), source=source, detail=how))  # fmt: skip
    return found


def opening_parts(ground: Ground) -> list[Part]:
    parts = [
        Part(name="CUDA context", kind="context", gib=ground.opened, source="measured on H100, inferred for others")
    ]
    if ground.hardware.taken_gib:
        parts.append(Part(name="other processes", kind="taken", gib=Amount.exact(ground.hardware.taken_gib), source="as found on the GPU"))  # fmt: skip
    if ground.connected.expected:
        parts.append(Part(name="NCCL and all-reduce", kind="communication", gib=ground.connected, source="measured with NVLink, inferred over PCIe"))  # fmt: skip
    return parts
