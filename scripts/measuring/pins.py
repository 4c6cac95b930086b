"""Read from the index what an engine release pins: torch, FlashInfer, kernel packages."""

from __future__ import annotations

from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.measuring.wheels import published_metadata

#: packages whose pins decide which fix is possible; the rest of an engine's requirements is not recorded
WATCHED_PACKAGES = {
    "torch",
    "triton",
    "flashinfer-python",
    "flashinfer-cubin",
    "flashinfer-jit-cache",
    "sgl-kernel",
    "sglang-kernel",
    "nvidia-cutlass-dsl",
    "apache-tvm-ffi",
    "transformers",
    "xgrammar",
}


def measure_release(engine: str, version: str) -> dict[str, Any] | None:
    """One row per release: its pins; None if pip finds no such wheel."""
    metadata = published_metadata(engine, version)
    if metadata is None:
        return None
    pins = []
    for text in metadata.get("requires_dist", []):
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) in WATCHED_PACKAGES:
            pins.append(
                {
                    "package": canonicalize_name(requirement.name),
                    "specifier": str(requirement.specifier),
                    "extra": _extra_of(requirement),
                }
            )
    return {
        "engine": engine,
        "version": version,
        "requires_python": metadata.get("requires_python"),
        "pins": pins,
        "provenance": f"measured: METADATA of {engine} {version}",
    }


def _extra_of(requirement: Requirement) -> str | None:
    """The optional feature of the engine that brings the requirement in, if it is not always installed."""
    marker = str(requirement.marker or "")
    return marker.split("extra == ")[1].split('"')[1] if "extra == " in marker else None
