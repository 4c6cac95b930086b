"""Which CUDA release the failing program was built for, as far as facts and text tell; and what its driver can do."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.container import _place as place
from gpuwhy.knowledge import drivers
from gpuwhy.knowledge import torch as torch_builds
from gpuwhy.knowledge.releases import cuda_release, cuda_text
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact

_IMAGE_TAG = lazy_pattern(r"\bnvidia/cuda:(?P<cuda>\d{1,2}\.\d{1,2})|[:\w.-](?:-|\+|_)cu(?:da)?-?(?P<digits>1[0-9]\d)\b|\bcuda(?P<dotted>1[0-9]\.\d)[-_]|-cuda-(?P<dashed>1[0-9]\.\d)")  # fmt: skip
_RUNTIME_LIBRARY = lazy_pattern(r"\blib(?:cudart|cublas|nvrtc)\.so\.(?P<major>1[0-9])\b")
_RUNTIME_PACKAGE = lazy_pattern(r"\bnvidia-(?:cuda-runtime|cublas)-cu(?P<major>1[0-9])==(?P<version>\d{1,2}\.\d{1,2})")
_RUNTIME_SAYS = lazy_pattern(r"(?:CUDA |cuda )?[Rr]untime [Vv]ersion ?[:=]? ?(?P<cuda>1[0-9]\.\d)\b|built with CUDA (?P<built>1[0-9]\.\d)")  # fmt: skip


class ProgramCuda(Struct, frozen=True):
    """``cuda`` as ``"12.8"``, or ``"13"`` when only the major version is known."""

    cuda: str
    evidence: Evidence

    @property
    def major(self) -> int:
        return int(self.cuda.partition(".")[0])

    @property
    def release(self) -> str:
        return self.cuda if "." in self.cuda else f"{self.cuda}.0"


class DriverCuda(Struct, frozen=True):
    """The driver and the highest CUDA release it supports (``"12.4"``); either may be unknown."""

    version: str | None
    cuda: str | None
    evidence: tuple[Evidence, ...]

    @property
    def major(self) -> int | None:
        return int(self.cuda.partition(".")[0]) if self.cuda else None


def read_program_cuda(case: Case) -> ProgramCuda | None:
    """From torch's CUDA, the image's, the tag of an image or a wheel, the runtime library or package that is named."""
    for key in ("torch_cuda", "container.image_cuda"):
        fact = case.fact(key)
        release = cuda_release(str(fact.value)) if isinstance(fact, Fact) and fact.value else None
        if release is not None and isinstance(fact, Fact):
            return ProgramCuda(cuda_text(release), fact.evidence)
    torch = case.fact("torch")
    if isinstance(torch, Fact) and torch.value and "+" not in str(torch.value):
        default = torch_builds.default_cuda(str(torch.value))
        if default is not None:
            return ProgramCuda(default, torch.evidence)
    return _in_text(case)


def _in_text(case: Case) -> ProgramCuda | None:
    weaker: ProgramCuda | None = None
    for name, line in place.lines(case):
        text = line.text[: place.LONGEST]
        for pattern in (_IMAGE_TAG, _RUNTIME_PACKAGE, _RUNTIME_SAYS, _RUNTIME_LIBRARY):
            found = pattern.search(text)
            if found is None or "cannot open shared object" in text or "CUDA runtime version:" in text:
                continue
            cuda = _cuda_of(found.groupdict())
            evidence = place.quoted(name, line, f"the program is built for CUDA {cuda}")
            if "." in cuda:
                return ProgramCuda(cuda, evidence)
            weaker = weaker or ProgramCuda(cuda, evidence)
    return weaker


def _cuda_of(groups: dict[str, str | None]) -> str:
    digits = groups.get("digits")
    if digits:
        return f"{digits[:-1]}.{digits[-1]}"
    named = next((groups[key] for key in ("cuda", "dotted", "dashed", "built", "version") if groups.get(key)), None)
    return named or groups.get("major") or "12"


def read_driver(case: Case) -> DriverCuda | None:
    """From ``driver`` and ``driver_cuda``; None when neither is known."""
    version, cuda = case.fact("driver"), case.fact("driver_cuda")
    shown = tuple(fact.evidence for fact in (version, cuda) if isinstance(fact, Fact) and fact.value)
    if not shown:
        return None
    text = str(version.value) if isinstance(version, Fact) and version.value else None
    supported = drivers.cuda_of(text) if text else None
    if supported is None and isinstance(cuda, Fact) and cuda.value:
        release = cuda_release(str(cuda.value))
        supported = cuda_text(release) if release else None
    return DriverCuda(text, supported, shown)


def is_enough(driver: DriverCuda | None, program: ProgramCuda | None) -> bool | None:
    """Whether programs of that CUDA start on the driver (its minor version does not matter); None: not known."""
    if driver is None or program is None:
        return None
    if driver.version is not None:
        return drivers.runs(driver.version, program.release).value
    return None if driver.major is None else driver.major >= program.major


def has_full_release(driver: DriverCuda | None, program: ProgramCuda | None) -> bool | None:
    """Whether the driver is of that CUDA release or newer, so that it also compiles PTX of it."""
    if driver is None or program is None or driver.cuda is None or "." not in program.cuda:
        return None
    supported, wanted = cuda_release(driver.cuda), cuda_release(program.cuda)
    return supported >= wanted if supported is not None and wanted is not None else None


def branch_for(cuda: str) -> str | None:
    """The driver branch that came with a release ("12.8" -> "570")."""
    shipped = drivers.shipped_with(cuda)
    return shipped.partition(".")[0] if shipped else None


def floor_for(major: int) -> str | None:
    """The oldest driver branch for a CUDA major version (12 -> "525")."""
    floor = drivers.required_for(f"{major}.0")
    return floor.partition(".")[0] if floor else None


def is_consumer_gpu(case: Case) -> bool | None:
    """GeForce, RTX and TITAN cards: NVIDIA's compatibility libcuda does not run on them. None: GPU not known."""
    names = [str(case.facts.value("gpu") or "")]
    listed = case.facts.value("gpus")
    names += [getattr(each, "name", None) or str(each) for each in listed or ()]
    text = " ".join(names)
    if _OF_CONSUMERS.search(text):
        return True
    if re.search(r"\b(?:[ABHLTVP]\d{1,3}[A-Z]?|GH200|GB\d{3}|A10G|Tesla)\b", text):
        return False
    return True if not text.strip() and _names_consumer_card(case) else None


_OF_CONSUMERS = lazy_pattern(r"GeForce|GTX|TITAN|\bRTX \d{4}\b(?! Ada)|RTX [345]0\d0", re.IGNORECASE)


def _names_consumer_card(case: Case) -> bool:
    """The reporter, or a listing that is not whole, names such a card: no fact was made of it."""
    return any(_OF_CONSUMERS.search(line.text[:300]) for _, line in place.lines(case))
