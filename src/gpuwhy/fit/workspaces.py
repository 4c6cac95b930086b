"""Buffers that attention backends keep, which no engine counts before it sizes its cache."""

from __future__ import annotations

from gpuwhy.fit.amount import GIB, MIB, Amount
from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.parallel import Parallel

_FEWEST_SPLITS = 8
_AITER_PART = 256


def _power_of_two(number: int) -> int:
    return 1 << max(0, (number - 1).bit_length())


def backend(shape: Architecture, hardware: Hardware, asked: str) -> str:
    """The attention backend: as asked, else the default (arg_groups/model_override_base.py, platforms/cuda.py)."""
    if asked:
        return asked.lower().replace("-", "_")
    if hardware.is_of_amd:
        return "aiter"
    generation = int(hardware.capability)
    if shape.mla:
        return {9: "fa3", 10: "flashinfer"}.get(generation, "triton")
    return {9: "fa3", 10: "trtllm_mha"}.get(generation, "flashinfer" if generation else "unknown")


def sglang_triton_mla(
    shape: Architecture, parallel: Parallel, hardware: Hardware, rows: int, context: int, by_context: bool
) -> float:
    """GiB of the split buffer for decode graphs (triton_backend.py), float32. 2 GiB for Kimi K2 at 512 requests."""
    if not shape.mla or not shape.heads:
        return 0.0
    splits = _FEWEST_SPLITS
    if by_context:
        splits = max(_FEWEST_SPLITS, min(_power_of_two(hardware.gpu.processors), _power_of_two(-(-context // 32))))
    return rows * shape.heads / max(1, parallel.attention) * splits * shape.mla.kv_rank * 4 / GIB


def sglang_aiter(shape: Architecture, parallel: Parallel, requests: float, context: int) -> float:
    """GiB of the float32 partial results of every request at full length, in parts of 256 tokens, on GPUs of AMD.

    measured: 51.75 GiB for 3261 requests of 262144 tokens and 32 heads of 128.
    """
    if shape.mla or not shape.heads or not shape.head_dim:
        return 0.0
    local = shape.heads / max(1, parallel.attention)
    return requests * local * -(-context // _AITER_PART) * (shape.head_dim * 4 + 8) / GIB


def sglang_request_table(requests: float, context: int) -> float:
    """GiB of the table that has a place for every token of every request (ReqToTokenPool), int32.

    measured: 3.2 of the 3.3 GiB between pool and the end of it, at 3261 requests of 262144 tokens.
    """
    return requests * (context + 4) * 4 / GIB


def vllm_triton_mla(shape: Architecture, parallel: Parallel, hardware: Hardware, rows: int, context: int) -> float:
    """GiB, reserved in the profile run (mla/triton_mla.py)."""
    if not shape.mla or not shape.heads:
        return 0.0
    splits = min(_power_of_two(max(1, context // 512)), hardware.gpu.processors * 2)
    return rows * shape.heads / max(1, parallel.attention) * splits * (shape.mla.kv_rank + 1) * 4 / GIB


def sglang_workspace(name: str, is_deterministic: bool) -> Amount:
    """The fixed workspace of a backend (environ.py, flashinfer_backend.py, trtllm_*_backend.py)."""
    sizes = {"flashinfer": (384, 384, 512), "flashmla": (0, 64, 384), "trtllm_mla": (150, 150, 384), "trtllm_mha": (512, 512, 512), "cutlass_mla": (0, 150, 384), "aiter": (0, 0, 512), "unknown": (0, 256, 512)}  # fmt: skip
    if name == "flashinfer" and is_deterministic:
        sizes = {"flashinfer": (2048, 2048, 2048)}
    low, expected, high = sizes.get(name, (0, 0, 64))
    return Amount(low * MIB / GIB, expected * MIB / GIB, high * MIB / GIB)
