"""The warnings with which torch says that it has no code for a GPU, in the wordings of 1.x to 2.14."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._signs import Sign, says
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import torch as torch_builds
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Gpus

TORCH_WARNED = says(
    "torch-not-compatible",
    "is not compatible with the current pytorch install",
    r"with CUDA capability sm_(?P<sm>\d{2,3})[a-z]? is not compatible with the current PyTorch install",
)
SIGNS: tuple[Sign, ...] = (
    TORCH_WARNED,
    says(
        "torch-lists-capabilities",
        ("does not include kernels for this gpu", "which is of compute capability (cc)"),
        r"Your installed torch(?:==?[\w.+]+)? does not include kernels for this GPU"
        r"|Found GPU\d+ (?P<name>.{2,70}?) which is of compute capability \(CC\) (?P<cc>\d{1,2}\.\d)",
    ),
    says(
        "torch-minimum-maximum",
        ("which is of cuda capability", "minimum and maximum cuda capability"),
        r"Found GPU\d+ (?P<name>.{2,70}?) which is of cuda capability (?P<cc>\d{1,2}\.\d)\.?\s+"
        r"Minimum and Maximum cuda capability supported by this version of PyTorch is\s+"
        r"\((?P<low>\d{1,2}\.\d)\) ?- ?\((?P<high>\d{1,2}\.\d)\)",
    ),
    says(
        "torch-too-old",
        ("which is of cuda capability", "no longer supports this gpu because it is too old"),
        r"(?:Found GPU\d+ (?P<name>.{2,70}?) which is of cuda capability (?P<cc>\d{1,2}\.\d)\.?\s+)?"
        r"PyTorch no longer supports this GPU because it is too old\.?"
        r"(?:\s+The minimum cuda capability (?:that we support|supported by this library) is (?P<low>\d{1,2}\.\d))?",
    ),
    says("torch-no-build", "no published pytorch cuda builds", r"No published PyTorch CUDA builds for release (?P<release>\S{1,20})"),
    says("torch-names-build", "please install pytorch with a following cuda", r"Please install PyTorch with a following CUDA\s+configurations:"),
)  # fmt: skip


class TorchWarning(msgspec.Struct, frozen=True):
    """One of the warnings. ``is_sure``: it is only printed when torch really has no code for the GPU.

    ``is_harmless``: the GPU lies outside the printed range and still runs the code. ``is_dropped_by_all``: no build
    of that release has the GPU, so that only an older release or another GPU helps.
    """

    match: Match
    capability: str | None
    minimum: str | None
    is_sure: bool
    is_harmless: bool
    is_dropped_by_all: bool


def read_torch_warning(case: Case, gpus: Gpus | Unknown) -> TorchWarning | None:
    """The most decisive of torch's warnings, None when there is none."""
    match = case.found(
        "torch-not-compatible",
        "torch-lists-capabilities",
        "torch-too-old",
        "torch-minimum-maximum",
        "torch-no-build",
        "torch-names-build",
    )
    if match is None:
        return None
    ranges = case.found("torch-minimum-maximum")
    sm = match.group("sm")
    capability = f"{sm[:-1]}.{sm[-1]}" if sm else match.group("cc") or (ranges.group("cc") if ranges else None)
    if capability is None and isinstance(gpus, Gpus):
        capability = gpus.capability
    limits = match if match.group("low") else ranges
    low = limits.group("low") if limits is not None else None
    high = limits.group("high") if limits is not None else None
    return TorchWarning(
        match=match,
        capability=capability,
        minimum=low,
        is_sure=match.sign != "torch-names-build",
        is_harmless=match.sign == "torch-minimum-maximum" and _is_inside(capability, low, high),
        is_dropped_by_all=(case.found("torch-no-build") is not None and not _is_new(capability))
        or _has_no_build(case, capability),
    )


def _is_inside(capability: str | None, low: str | None, high: str | None) -> bool:
    """Code of the newest listed major version runs on later minor versions of it."""
    gpu, least, most = (capabilities.parse(text) if text else None for text in (capability, low, high))
    return gpu is not None and least is not None and most is not None and gpu >= least and gpu.major <= most.major


def _is_new(capability: str | None) -> bool:
    gpu = capabilities.parse(capability) if capability else None
    return gpu is not None and gpu.major >= 9


def _has_no_build(case: Case, capability: str | None) -> bool:
    """Whether the installed release has no build for an old GPU at all (Kepler from torch 2.1 on)."""
    gpu = capabilities.parse(capability) if capability else None
    if gpu is None or gpu.major >= 9:
        return False
    version = case.facts.value("torch")
    builds = torch_builds.builds_of(str(version)) if version else ()
    if builds:
        fitting = {build.build for build in torch_builds.builds_for(gpu)}
        return not any(build.build in fitting for build in builds)
    return gpu.major < 5
