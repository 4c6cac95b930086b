"""Figures that a log printed: they replace the estimates of the same things."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.amount import Amount


class Measured(Struct, frozen=True, kw_only=True):
    """GiB per rank, None for what no line said. The names follow SGLang's and vLLM's lines (docs/fit.md)."""

    total: float | None = None
    """What CUDA reports of the GPU."""
    available_before: float | None = None
    """SGLang ``Load weight begin``; vLLM's free memory at its snapshot."""
    available_after: float | None = None
    """SGLang ``Load weight end`` of the last model loaded before the cache is sized."""
    weights: float | None = None
    draft: float | None = None
    activation: float | None = None
    non_torch: float | None = None
    graphs: float | None = None
    """Of vLLM: its estimate before the capture."""
    fraction: float | None = None


def told(value: float | None, otherwise: Amount) -> Amount:
    """The figure as it was printed, within the rounding of the line; the estimate where nothing was printed."""
    return otherwise if value is None else Amount(value - 0.005, value, value + 0.005)
