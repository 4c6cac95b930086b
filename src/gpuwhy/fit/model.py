"""A model as an estimate needs it: its shape, its weights, and the draft that goes with it."""

from __future__ import annotations

from msgspec import Struct

from gpuwhy.fit.architecture import Architecture
from gpuwhy.fit.inventory import Inventory


class Draft(Struct, frozen=True):
    """A draft model of its own, read from its folder."""

    shape: Architecture
    inventory: Inventory
    pickled_bytes: float = 0.0
    """Of weights that are not safetensors: each rank reads such files whole into memory."""


class Model(Struct, frozen=True):
    """``name`` for people. ``pickled_bytes``: as for a draft."""

    name: str
    shape: Architecture
    inventory: Inventory
    draft: Draft | None = None
    pickled_bytes: float = 0.0
    missing: tuple[str, ...] = ()
