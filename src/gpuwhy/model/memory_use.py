"""Where the memory of one GPU, or of the host, goes: in parts, each as sure as it is."""

from __future__ import annotations

import msgspec


class MemoryPart(msgspec.Struct, frozen=True, kw_only=True):
    """A share of the memory: what is expected, and between which bounds it lies; ``source`` says where the number is from.

    ``kind`` groups parts in a chart: context, communication, weights, draft, kv-cache, graphs, workspace, activation,
    reserve or taken of a GPU; torch, idle, own and before where only a log tells of it; unreclaimable, page-cache
    or compilers of a host.
    """

    name: str
    kind: str
    low: float
    expected: float
    high: float
    source: str = ""


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a memory of ``total``, None where its size is not known, and in ``says`` what they come to.

    ``basis``: "computed" from the model and its command, with the figures of the log where it has some, or "log", from
    such figures alone. ``missing``: what is not known or was not usable, and what was taken instead.
    """

    place: str
    """``gpu`` or ``host``."""
    basis: str
    title: str
    unit: str
    """GiB, or for a host GB of 10^9."""
    parts: tuple[MemoryPart, ...]
    total: float | None = None
    total_within: float = 0.0
    """The total may be so much more or less."""
    says: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
