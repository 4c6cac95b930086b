"""Which of vLLM's two engines a start gets: 0.8.0 to 0.10.2 fall back to the first where the second lacks something."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.settings import Settings
from gpuwhy.knowledge.engine_memory import Reading, VllmMemory, vllm_memory

_FIRST = "0.6.0"
"""The release whose figures stand for the first engine."""
_CHECKS_SINCE = "0.10.2"


def engine_of(release: VllmMemory, reading: Reading, settings: Settings, shape: Architecture, hardware: Hardware) -> tuple[VllmMemory, Reading]:  # fmt: skip
    """The release as it is, or with the ways of its first engine (engine/arg_utils.py), whose figures are unchecked."""
    found = {word: why for word, why in _lacking(settings, shape, hardware) if word in release.first_engine_for}
    if not found:
        return release, reading
    first, _ = vllm_memory(_FIRST)
    fallen = msgspec.structs.replace(
        first,
        version=release.version,
        default_utilization=release.default_utilization,
        checks_what_is_free=release.version == _CHECKS_SINCE,
    )
    said = f"{reading.sentence}; it falls back to its first engine (V0) for {next(iter(found.values()))}"
    return fallen, msgspec.structs.replace(reading, sentence=said, is_outside=True)


def _lacking(settings: Settings, shape: Architecture, hardware: Hardware) -> Iterator[tuple[str, str]]:
    """What one release or another has only in its first engine, and how to say it."""
    if 0 < hardware.capability < 8:
        yield "old-gpu", f"compute capability {hardware.capability:g}"
    if settings.kv_dtype not in ("", "auto"):
        yield "kv-dtype", f"--kv-cache-dtype {settings.kv_dtype}"
        if hardware.capability < 9 and not hardware.is_of_amd:
            yield "kv-dtype-before-hopper", f"--kv-cache-dtype {settings.kv_dtype} on this GPU"
    if "gguf" in (settings.quantization, settings.load_format):
        yield "gguf", "GGUF"
    if settings.dtype in ("float32", "float"):
        yield "float32", "--dtype float32"
    if settings.speculation:
        yield "speculation", "speculative decoding"
        if settings.speculation.method == "DRAFTMODEL":
            yield "draft-model", "a draft model"
    if settings.pipeline > 1:
        yield "pipeline", "pipeline parallelism"
        if settings.executor != "ray":
            yield "pipeline-without-ray", "pipeline parallelism without Ray"
    if settings.offload_gib:
        yield "offload", "--cpu-offload-gb"
    if shape.state:
        yield "states", "layers that keep a state"
