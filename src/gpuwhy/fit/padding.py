"""To what the kernels of MXFP4 experts have their widths padded: it depends on the GPU, the engine and the ranks.

read: vLLM 0.33 (fused_moe/oracle/mxfp4.py) and SGLang 0.5.23 (quantization/mxfp4.py); earlier releases from general
knowledge. measured: 13.72 GiB of gpt-oss-20b with Marlin's padding.
"""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.quantization import MXFP4
from gpuwhy.knowledge.engine_memory import release_of

_FIRST_WITH_TRITON_KERNELS = (0, 11)
"""Of vLLM: from then on they come with it."""
_FIRST_NARROW = {"vllm": (0, 25), "sglang": (0, 5, 20)}
"""Releases from which the kernels of Blackwell want less."""


class Alignment(Struct, frozen=True):
    """Elements of which the width of an expert on one rank, and the hidden size, become multiples."""

    inner: int = 1
    hidden: int = 1

    def share(self, shape: Architecture, parallel: Parallel) -> float:
        """Of the experts: how much is added to them."""
        experts, hidden = shape.experts, shape.hidden
        if not experts or not hidden or not experts.width:
            return 0.0
        ranks = max(1, parallel.expert_ranks)
        divided = ranks if parallel.experts <= 1 else max(1, ranks // parallel.experts)
        inner = -(-experts.width // divided)
        return _up(inner, self.inner) * divided / experts.width * _up(hidden, self.hidden) / hidden - 1


MARLIN_ALIGNMENT = Alignment(128, 256)
_WIDEST = Alignment(256, 256)


def _up(number: int, to: int) -> int:
    return -(-number // to) * to


def mxfp4_alignment(engine: str, version: str, capability: float, is_gpt_oss: bool) -> Alignment:
    """What the engine's default kernel for experts in MXFP4 wants on this GPU."""
    release = release_of(version)
    known = release.release if release else ()
    if 10 <= capability < 12:
        narrow = not known or known >= _FIRST_NARROW.get(engine, ())
        if engine == "sglang":
            return Alignment(128, 128) if narrow else _WIDEST
        return MARLIN_ALIGNMENT if narrow else _WIDEST
    if engine == "sglang":
        return Alignment(64, 1) if is_gpt_oss else MARLIN_ALIGNMENT
    if is_gpt_oss and 9 <= capability < 10 and (not known or known >= _FIRST_WITH_TRITON_KERNELS):
        return Alignment(64, 1)
    return MARLIN_ALIGNMENT


def has_padded_experts(shape: Architecture) -> bool:
    """Whether any of its experts are in MXFP4."""
    layer = next((index for index, each in enumerate(shape.layers) if each.feed == "experts"), None)
    return layer is not None and shape.quantization.format_of(f"model.layers.{layer}.mlp.experts.0.up_proj").name == MXFP4.name  # fmt: skip
