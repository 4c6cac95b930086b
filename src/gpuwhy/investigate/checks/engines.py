"""The oldest GPUs that engines and libraries of kernels still serve."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.investigate.checks.results import Passed, Problem, Result, by_the_tables, shown
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.model.fact import Facts
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import Remedy

_FLOORS = (
    ("vllm", "vllm", "7.0"),
    ("sglang", "sglang", "7.5"),
    ("flashinfer-python", "flashinfer", "7.5"),
    ("flash-attn", "flash-attn", "8.0"),
)
"""Package, component, floor. Triton needs 7.0 too, and without torch.compile nothing asks it. FACTS: the projects' own checks and requirements; see `gpuwhy cause gpu-too-old`."""
_SOURCE = "documented: the projects' own checks and installation pages"


def oldest_gpu(facts: Facts) -> Iterator[Result]:
    """Whether every GPU is at or above the floor of what is installed."""
    gpus = Gpus.of(facts)
    if not isinstance(gpus, Gpus):
        return
    for package, component, floor in _FLOORS:
        if not facts.value(f"packages.{package}") or (package == "flashinfer-python" and facts.value("packages.vllm")):
            continue  # vLLM takes other kernels where FlashInfer has none
        least = capabilities.parse(floor)
        known = [(each, gpu.plain) for each in gpus.capabilities if (gpu := capabilities.parse(each)) is not None]
        below = [each for each, gpu in known if least is not None and gpu < least]
        if known and not below:
            yield Passed(f"{component} serves GPUs of this age", f"its floor is {floor}")
        for capability in below:
            yield Problem(
                cause="gpu-too-old", component=component, certainty=Certainty.LIKELY,
                title=f"{component} needs compute capability {floor} or higher, and a GPU has {capability}",
                evidence=(by_the_tables(f"{component} needs compute capability {floor}", _SOURCE), *shown(facts, f"packages.{package}", "gpus", "cc")),
                remedies=(
                    Remedy(kind="package", name=package, value="another engine", summary="Use an engine that still serves this generation, such as llama.cpp", is_sure=False),
                    Remedy(kind="hardware", name="gpu", value=f"compute capability >= {floor}", summary=f"Use a GPU of compute capability {floor} or higher"),
                ),
            )  # fmt: skip
