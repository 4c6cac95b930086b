"""How a service is spread over GPUs, and what one rank of it holds."""

from __future__ import annotations

from msgspec import Struct


class Parallel(Struct, frozen=True):
    """Sizes as the engine understands them. ``attention`` is the tensor parallel size of the attention alone."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: int = 1
    attention: int = 1
    context: int = 1
    """Decode context parallel: tokens of the cache are divided over so many ranks."""
    expert_ranks: int = 1
    """Over how many ranks the experts are divided, by experts or within them."""
    is_head_replicated: bool = False
    """The output head follows the attention (DP attention with a DP head)."""
    is_tower_replicated: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of one instance: those that hold its weights together."""
        return self.tensor * self.pipeline


def stages(layers: int, pipeline: int, remainder_last: bool) -> tuple[range, ...]:
    """The layers of each pipeline stage. SGLang gives the remainder to the last stages, vLLM avoids the last one
    and, with more than two stages, the first (their distributed/utils.py).
    """
    pipeline = max(1, min(pipeline, max(1, layers)))
    each, rest = divmod(layers, pipeline)
    sizes = [each] * pipeline
    if remainder_last:
        takers = list(range(pipeline - rest, pipeline))
    else:
        takers = [pipeline - 2 - number for number in range(rest)] if pipeline > 1 else []
        takers = [taker % pipeline for taker in takers]
    for taker in takers:
        sizes[taker] += 1
    starts = [sum(sizes[:number]) for number in range(pipeline)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))
