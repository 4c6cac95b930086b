"""Libraries that are written for certain GPU generations only, so that building them for another one is no cure."""

from __future__ import annotations

import re

from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.knowledge import capability as capabilities

_WRITTEN_FOR: dict[str, tuple[int, ...]] = {
    "tilert": (10,),
    "deepgemm": (9, 10),
    "flashmla": (9, 10),
    "deepep": (8, 9, 10),
    "hpc-ops": (9,),
    "flash-attn-3": (8, 9),
    "flash-attn-4": (9, 10, 11),
    "sageattn3": (10, 12),
    "thunderkittens": (9, 10),
    "mirage": (8, 9, 10),
    "qserve": (8,),
}
"""Major versions of the compute capability, from the projects' own statements of what they support."""
_FLASH_ATTENTION_3 = lazy_pattern(
    r"flash[-_]?attn(?:ention)?[-_]?3|\bfa3\b|_fa3_C|flash-attention/hopper|/hopper/flash_", re.I
)
_FLASH_ATTENTION_4 = lazy_pattern(r"flash_attn/cute|flash[-_]?attn(?:ention)?[-_]?4|\bfa4\b", re.I)


def written_for(component: str | None, text: str = "") -> tuple[int, ...] | None:
    """Major versions that a library is written for; None for one without such a limit. ``text`` tells its variant."""
    if component in ("flash-attn", "vllm", "sgl-kernel", "xformers", None):
        if _FLASH_ATTENTION_3.search(text):
            component = "flash-attn-3"
        elif _FLASH_ATTENTION_4.search(text):
            component = "flash-attn-4"
        elif component is not None:
            return None
    return _WRITTEN_FOR.get(component or "")


def is_outside(majors: tuple[int, ...], capability: str | None) -> bool | None:
    """Whether a GPU's major version is not among these; None when the GPU is not known."""
    gpu = capabilities.parse(capability) if capability else None
    return None if gpu is None else gpu.major not in majors


def spoken(majors: tuple[int, ...]) -> str:
    """``(9, 10)`` as ``9.x and 10.x``."""
    names = [f"{major}.x" for major in majors]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
