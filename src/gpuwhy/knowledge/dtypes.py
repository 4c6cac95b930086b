"""Lowest compute capability with hardware support for a number format or tensor core instruction."""

from __future__ import annotations

import functools
import re

from msgspec import Struct

from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.answers import Answer, unknown
from gpuwhy.knowledge.capability import Capability
from gpuwhy.knowledge.tables import read_table


class NumberFormat(Struct, frozen=True):
    """One format. `minimum` is a compute capability; `only_majors` is not empty where later GPUs lost it."""

    name: str
    aliases: tuple[str, ...]
    minimum: str
    only_majors: tuple[int, ...]
    what: str
    provenance: str


class NumberFormats(Struct, frozen=True):
    formats: tuple[NumberFormat, ...]


@functools.cache
def _by_name() -> dict[str, NumberFormat]:
    formats = read_table("number_formats", NumberFormats).formats
    return {_key(name): fmt for fmt in formats for name in (fmt.name, *fmt.aliases)}


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def number_format(name: str) -> NumberFormat | None:
    """The format by any of its names ("bf16", "torch.float8_e4m3fn", "fp8e4nv", "nvfp4"); None if not known."""
    return _by_name().get(_key(name[:64]))


def minimum_capability(name: str) -> str | None:
    """("bf16") -> "8.0"."""
    found = number_format(name)
    return found.minimum if found else None


def supports(name: str, capability: Capability) -> Answer:
    """Whether a GPU has hardware support for a number format."""
    found, gpu = number_format(name), capabilities.parse(capability)
    if found is None or gpu is None:
        return unknown(f"no entry for {name[:40] if found is None else capability!s:.40}")
    minimum = capabilities.parse(found.minimum)
    if minimum is None or gpu.plain < minimum:
        return Answer(
            False, f"{found.name} needs compute capability {found.minimum}, the GPU has {gpu.plain}", found.provenance
        )
    if found.only_majors and gpu.major not in found.only_majors:
        majors = ", ".join(f"{major}.x" for major in found.only_majors)
        return Answer(False, f"{found.name} exists on {majors} only, the GPU has {gpu.plain}", found.provenance)
    return Answer(
        True, f"{found.name} is supported from compute capability {found.minimum}: {found.what}", found.provenance
    )
