"""How reports for people say the value of a fact."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.model.host import Gpu


def absent(key: str) -> str:
    """What it means that a fact was looked for and is not there."""
    return "not set" if key.startswith("env.") else "not there"


def said(key: str, value: Any) -> str:
    """A fact's value in one line; never Python's own notation of a record."""
    if value is None:
        return absent(key)
    return value_words(value) or ("none" if isinstance(value, (list, tuple, dict)) else "(empty)")


def value_words(value: Any) -> str:
    """A value in one line; "" where there is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Gpu):
        return _gpu(value)
    if isinstance(value, msgspec.Struct):
        return _pairs(msgspec.structs.asdict(value))
    if isinstance(value, dict):
        return _gpu(msgspec.convert(value, Gpu)) if _is_gpu(value) else _pairs(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(map(value_words, value))
    return str(value)


def _pairs(value: dict[Any, Any]) -> str:
    return ", ".join(f"{key} {value_words(each)}" for key, each in value.items() if each not in (None, "", [], (), {}))


def _is_gpu(value: dict[Any, Any]) -> bool:
    """A GPU as a saved report has it."""
    return (
        "compute_capability" in value
        and value.keys() <= set(Gpu.__struct_fields__)
        and isinstance(value["compute_capability"], str)
        and isinstance(value.get("name", ""), str)
        and all(value.get(key) is None or type(value[key]) is int for key in ("index", "memory"))
    )


def _gpu(gpu: Gpu) -> str:
    """``0: NVIDIA H100 (9.0), 79.6 GiB``."""
    number = f"{gpu.index}: " if gpu.index is not None else ""
    capability = f" ({gpu.compute_capability})" if gpu.compute_capability else ""
    memory = f", {gpu.memory / 2**30:.1f} GiB" if gpu.memory else ""
    return f"{number}{gpu.name or 'a GPU'}{capability}{memory}"
