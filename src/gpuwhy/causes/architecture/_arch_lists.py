"""Architecture lists that a person or an image sets: what a value names, and what it should be for a GPU.

The variables differ in spelling. torch's takes ``8.9;12.0+PTX``, FlashInfer's ``8.9 12.0a`` (one space, suffix, no PTX),
CMake's ``89;120-real``. Torch's refuses the suffix ``f``, FlashInfer's refuses ``;`` (measured, torch 2.13, FlashInfer
0.6.17 and 0.7.4).
"""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._signs import Sign, says
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.knowledge.components import BUILDS_OF_LLAMA
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Environment

TORCH, FLASHINFER, CMAKE = "TORCH_CUDA_ARCH_LIST", "FLASHINFER_CUDA_ARCH_LIST", "CMAKE_CUDA_ARCHITECTURES"
NAMES = (
    TORCH, FLASHINFER, CMAKE, "CUDAARCHS", "TCNN_CUDA_ARCHITECTURES", "NVTE_CUDA_ARCHS", "FLASH_ATTN_CUDA_ARCHS",
    "TVM_FFI_CUDA_ARCH_LIST", "GGML_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES", "CUDA_ARCHS",
)  # fmt: skip
_ENTRY = r"(?:(?:sm_?|compute_)?\d{1,3}(?:\.\d)?[a-z]?(?:\+PTX|-real|-virtual)?)"
STATED = says(
    "list-stated",
    tuple(name.lower() for name in NAMES),
    rf"(?:^|[\s\"'`(;,/-]|-D|(?:echo|printenv) [\"']?(?:\$\{{?)?)(?P<name>{'|'.join(NAMES)})(?::\w+|\}}?[\"']?(?=\s))?"
    rf"(?:\s*[=:]\s*|\s+(?:is )?(?:set )?(?:to )?)['\"`]?(?P<value>{_ENTRY}(?:[;, ]{{1,2}}{_ENTRY})*)",
)
"""A log prints the list, or the command line that sets it."""
NOT_SET = says(
    "list-not-set",
    "torch_cuda_arch_list is not set",
    r"TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are included",
)
"""torch's own warning: the list is not what chose the targets."""
SIGNS: tuple[Sign, ...] = (STATED, NOT_SET)


class ArchList(msgspec.Struct, frozen=True):
    """A list with the evidence that shows it. ``entries`` as written."""

    name: str
    value: str
    evidence: Evidence

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(part for part in re.split(r"[;, ]+", self.value) if part)

    @property
    def readable(self) -> tuple[tuple[str, ComputeCapability], ...]:
        """The entries that can be read, each with what it names."""
        return tuple((entry, c) for entry in self.entries if (c := _parsed(entry)) is not None)

    @property
    def capabilities(self) -> tuple[ComputeCapability, ...]:
        """What the entries that can be read name."""
        return tuple(c for _, c in self.readable)

    def naming(self, target: ComputeCapability) -> str | None:
        """The entry that asks for a target, the exact one first."""
        exact = [entry for entry in self.entries if _parsed(entry) == target]
        alike = [entry for entry in self.entries if (c := _parsed(entry)) is not None and c.plain == target.plain]
        return next(iter(exact + alike), None)

    def covers(self, capability: str) -> bool | None:
        """Whether code built for the list runs on a GPU; None when no entry can be read."""
        answers = []
        for entry in self.entries:
            parsed = _parsed(entry)
            if parsed is None:
                continue
            has_ptx = "+ptx" in entry.lower() or (self.name in (CMAKE, "CUDAARCHS") and not entry.endswith("-real"))
            answers.append(capabilities.runs_on(parsed, capability, has_ptx=has_ptx).value)
        return True if any(answers) else None if not answers or None in answers else False


def _parsed(entry: str) -> ComputeCapability | None:
    return capabilities.parse(re.sub(r"-(?:real|virtual)$", "", entry))


def known_lists(case: Case, environment: Environment | Unknown) -> tuple[ArchList, ...]:
    """The lists that are set, from the environment of the failing process, else as the log prints them."""
    lists = []
    if isinstance(environment, Environment):
        for name in NAMES:
            value = environment.variables.get(name)
            if value is not None:
                lists.append(ArchList(name, value, environment.evidence[name]))
    for match in case.all(STATED.name):
        name, value = match.group("name") or "", match.group("value") or ""
        if not any(known.name == name for known in lists):
            lists.append(ArchList(name, value, case.evidence(match, f"the log shows {name}")))
    return tuple(lists)


def is_known_unset(case: Case, environment: Environment | Unknown, name: str) -> bool:
    """Whether somebody looked and the variable is not set, or torch said so."""
    if name == TORCH and case.found(NOT_SET.name) is not None:
        return True
    if not isinstance(environment, Environment):
        return False
    return environment.get(name) is None


def variable_for(component: str | None, is_cmake: bool = False) -> str:
    """The variable that the builds of a component read."""
    if component in BUILDS_OF_LLAMA or component in ("onnxruntime", "ctranslate2") or is_cmake:
        return CMAKE
    return FLASHINFER if component == "flashinfer" else TORCH  # fmt: skip


def value_for(name: str, capability: str | None, component: str | None = None) -> str | None:
    """What the variable has to be for one GPU; None for an unknown GPU.

    FlashInfer wants the suffix from 9.0 on; kernels of vLLM and sgl-kernel for 10.0 and newer exist with it only.
    """
    gpu = capabilities.parse(capability) if capability else None
    if gpu is None:
        return None
    if name in (TORCH, FLASHINFER):
        needs_suffix = (name == FLASHINFER and gpu.major >= 9) or (
            gpu.major >= 10 and component in ("vllm", "sgl-kernel", "deepgemm", "flashinfer")
        )
        return gpu.plain.dotted + ("a" if needs_suffix else "")
    return str(gpu.plain.number)
