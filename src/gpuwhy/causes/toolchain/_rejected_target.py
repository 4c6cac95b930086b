"""nvcc, NVRTC or clang refused a GPU target: which target, by which program, and whose GPU it is.

Wordings: measured with nvcc 12.4.131, 13.0.88 and 13.5.37 and with NVRTC 11.7.99 to 13.5.37; clang's from its sources'
diagnostics table.
"""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says
from gpuwhy.knowledge import toolkits
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Gpus, Resolution, Toolkits

OFFERS_TO_LEAVE_OUT = lazy_pattern(r"\bset (?P<variable>[A-Z][A-Z_0-9]{3,60})=1 to (?:disable|skip)")
"""A build of several targets that lets one be left out: it is then not this GPU's."""
SIGNS: tuple[Sign, ...] = (
    says(
        "nvcc-rejects-target",
        "unsupported gpu architecture",
        r"Unsupported gpu architecture\s+['\"`‘]?(?P<target>(?:compute|sm|lto)_\d{2,3}[af]?|native|compute_native)",
    ),
    says(
        "nvcc-value-not-defined",
        "is not defined for option",
        r"Value '(?P<target>(?:compute|sm)_\d{2,3}[af]?|native)' is not defined for option '(?:gpu-architecture|gpu-code|arch|code)'",
    ),
    says(
        "clang-rejects-target",
        ("unsupported cuda gpu architecture", "cuda version", "unsupported gpu arch"),
        r"(?:unsupported CUDA gpu architecture:?|cannot find libdevice for|CUDA version [\d.]+ is too old for)\s*['\"]?(?P<target>(?:sm|compute)_\d{2,3}[af]?)",
    ),
)
"""Signs that toolkit-too-old-for-arch and its neighbours share."""


class RejectedTarget(msgspec.Struct, frozen=True):
    """A refused target. ``target`` as printed, ``capability`` what it stands for (``"12.0"``, None for ``native``)."""

    match: Match
    target: str
    capability: str | None
    is_gpus_own: bool | None
    """Whether it is the capability of a GPU here; None when no GPU is known."""
    first_release: str | None
    """First CUDA release that knows the target, None when no measured one does."""
    resolution: Resolution | None
    is_dropped: bool
    """The target is one that newer toolkits no longer know: the toolkit is too new, not too old."""


def read_rejected_target(case: Case, gpus: Gpus | Unknown, tools: Toolkits | Unknown) -> RejectedTarget | None:
    """The first refused target, or None when no compiler refused one."""
    match = case.found("nvcc-rejects-target", "nvcc-value-not-defined", "clang-rejects-target")
    if match is None:
        return None
    target = match.group("target") or ""
    capability = capability_of(target)
    resolution = tools.resolved_by(consumer_near(case, match)) if isinstance(tools, Toolkits) else None
    known = resolution if isinstance(resolution, Resolution) else None
    return RejectedTarget(
        match=match,
        target=target,
        capability=capability,
        is_gpus_own=_is_gpus_own(case, match, capability, gpus),
        first_release=toolkits.first_release_for(target) if capability else None,
        resolution=known,
        is_dropped=_is_dropped(target, capability, known),
    )


def capability_of(target: str) -> str | None:
    """``compute_120a`` as ``12.0``; None for names without a number."""
    found = re.search(r"_(\d{2,3})[af]?$", target)
    return f"{found.group(1)[:-1]}.{found.group(1)[-1]}" if found else None


def consumer_near(case: Case, match: Match) -> str:
    """Whose order of search chose the toolkit: FlashInfer's own, or torch's for every other extension build."""
    component = case.component_near(match)
    return component if component in ("flashinfer", "triton", "deepgemm") else "torch"


def _is_gpus_own(case: Case, match: Match, capability: str | None, gpus: Gpus | Unknown) -> bool | None:
    if isinstance(gpus, Gpus) and gpus.capabilities:
        return capability is None or capability in gpus.capabilities
    native = re.compile(
        r"CUDA[ _]ARCHITECTURES?\b.{0,20}\bnative\b|-arch=native|architecture.{0,12}native", re.IGNORECASE
    )
    if capability is None or any(native.search(line.text[:500]) for line in case.lines_around(match, 200, 20)):
        return True
    return None


def _is_dropped(target: str, capability: str | None, resolution: Resolution | None) -> bool:
    """True when a newer toolkit dropped the target: by the version that is used, else by the target's age."""
    if capability is None:
        return False
    if resolution is not None and resolution.version is not None:
        last = toolkits.last_release_for(target)
        return last is not None and _later(resolution.version, last)
    return float(capability) < 7.5 and float(capability) != 7.2


def _later(version: str, other: str) -> bool:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", text)[:2])

    return numbers(version) > numbers(other)
