"""Where a compiler was run: whose build it is, in a container or not, and what a build of that kind can do instead."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.model.fact import Unknown
from gpuwhy.model.host import Environment, Torch
from gpuwhy.model.remedy import Remedy

ENGINES = frozenset(
    {"vllm", "sglang", "lmdeploy", "tensorrt-llm", "text-generation-inference", "transformers", "aphrodite", "verl"}
)
"""Programs that compile nothing themselves while they serve: what they load does (Triton, FlashInfer, DeepGEMM)."""
DISTRIBUTIONS = {
    "flashinfer": "flashinfer-python",
    "deepgemm": "deep_gemm",
    "llama.cpp": "llama-cpp-python",
    "autoawq": "autoawq",
}
"""Names under which components are installed with pip, where they differ."""
PUBLISHES_WHEELS = frozenset(
    {"flash-attn", "mamba-ssm", "causal-conv1d", "xformers", "exllamav2", "exllamav3", "gptqmodel", "auto-gptq", "transformer-engine",
     "torch-scatter", "torch-sparse", "torch-cluster", "pyg-lib", "natten", "llama-cpp-python", "vllm", "sageattention"}
)  # fmt: skip
"""Components whose project publishes wheels that need no compiler, per torch and CUDA release."""
ARCH_VARIABLES = ("TORCH_CUDA_ARCH_LIST", "FLASHINFER_CUDA_ARCH_LIST", "CMAKE_CUDA_ARCHITECTURES", "CUDAARCHS")

_SOURCE_BUILD = lazy_pattern(
    r"setup\.py|pyproject\.toml|\bcmake\b|CMake|pip3? (?:install|wheel)|[Bb]uilding wheel|Failed to build|\bmake(?:\[\d+\])?: \*\*\*"
    r"|\bcsrc/|egg_info|subprocess-exited-with-error|\bpython -m build\b|\buv (?:pip|sync)|Dockerfile|build_ext|bdist_wheel"
)
_DEEPGEMM_CHECK = lazy_pattern(r"Assertion error \(\S{0,100}csrc/(?:\S{0,60}/)?jit")
"""DeepGEMM's host checks print the source file they stand in, and nothing else."""
_CONTAINER = lazy_pattern(
    r"\bdocker\b|\bpodman\b|Dockerfile|\bkubectl\b|\bkubernetes\b|\bpod/|containerd|^[\w.-]{2,60}-\d+ +\| |\bruntime image\b|/usr/local/lib/python3\.\d+/dist-packages",
    re.IGNORECASE,
)


def builder(case: Case, match: Match, default: str | None = None) -> str | None:
    """The component whose build runs the compiler; ``default`` where only a serving engine is named, or nothing."""
    component = case.component_near(match)
    if component is None:
        return "deepgemm" if _DEEPGEMM_CHECK.search(match.text) else default
    if component in ENGINES and default is not None and not is_source_build(case, match):
        return default
    return component


def is_source_build(case: Case, match: Match) -> bool:
    """Whether someone builds a package here (pip, setup.py, CMake), as against a JIT build of a running service."""
    return any(_SOURCE_BUILD.search(text) for text in _texts(case, match, 200, 60))


def is_in_container(case: Case, match: Match) -> bool:
    """Whether the log or the facts show a container."""
    if case.facts.value("container.in_container") or case.facts.value("container.runtime"):
        return True
    return any(_CONTAINER.search(text) for text in _texts(case, match, 200, 60))


def runs_nvcc(case: Case, match: Match) -> bool:
    """Whether the lines around show an nvcc at work, so that there is one."""
    running = re.compile(
        r"bin/nvcc (?!.*not found)|^nvcc (?!:)|\bcudafe\+\+|\bcicc\b|--generate-dependencies-with-compile|\[NVCC\]|\.cu[h.]?(?:[:(]\d|\.o\b)"
    )
    return any(running.search(text) for text in _texts(case, match, 60, 30))


def _texts(case: Case, match: Match, before: int, after: int) -> list[str]:
    return [match.line.raw[:500], *(line.raw[:500] for line in case.lines_around(match, before, after))]


def is_the_failure(case: Case, match: Match) -> bool:
    """Whether the matched line is part of what the incident failed at first, and no side event."""
    return case.incident.primary is not None and case.incident.primary in explained_by(case, match)


def explained_by(case: Case, *matches: Match | None) -> tuple[int, ...]:
    """The events these matches account for. CMake prints its message below the headline that makes the event."""
    return case.explains(*(match and _under_its_headline(case, match) for match in matches))


def _under_its_headline(case: Case, match: Match) -> Match:
    if match.event is not None:
        return match
    for event in reversed(case.incident.events):
        is_above = event.span.log == match.place.path and 0 < match.line.number - event.span.last <= 4
        if is_above and event.tool == "cmake":
            return msgspec.structs.replace(match, event=event)
    return match


def variable_naming(environment: Environment | Unknown, capability: str | None) -> str | None:
    """The architecture variable that asks for a target, when the environment is known to."""
    if not isinstance(environment, Environment) or capability is None:
        return None
    spelled = re.compile(rf"(?<![\d.]){re.escape(capability)}(?!\d)|(?<!\d){capability.replace('.', '')}(?!\d)")
    for name in ARCH_VARIABLES:
        if spelled.search(environment.variables.get(name) or ""):
            return name
    return None


# Remedies that several of these causes share ------------------------------------------------------------------------


def distribution_of(component: str) -> str:
    """The package to install for a component."""
    return DISTRIBUTIONS.get(component, component)


def toolkit(value: str, why: str, torch: Torch | Unknown | None = None) -> Remedy:
    """Install a toolkit. ``value`` a constraint, a release, or ``match:torch`` (then torch's CUDA release, if known)."""
    built_for = torch.cuda if isinstance(torch, Torch) else None
    if value == "match:torch" and built_for:
        value = built_for
    named = (
        value
        if value[0].isdigit()
        else {"match:torch": "of torch's release", "newer": "of a newer release"}.get(value, value)
    )
    return Remedy(
        kind="toolkit",
        name="cuda",
        value=value,
        summary=f"Install a CUDA toolkit {named} ({why}) and point CUDA_HOME at it",
        cost="2 to 6 GB of disk; the driver is not touched",
        check=("$CUDA_HOME/bin/nvcc --version",),
        limits=("the toolkit's CUDA major must be torch's, whatever nvidia-smi prints",),
        risk="medium",
    )


def devel_image(case: Case, match: Match, why: str) -> tuple[Remedy, ...]:
    """Use an image that holds compiler and headers; nothing where no container is seen."""
    if not is_in_container(case, match):
        return ()
    return (
        Remedy(
            kind="container",
            name="image",
            value="devel",
            summary=f"Use the -devel variant of the base image, of the same CUDA release: {why}",
            cost="several GB more image",
        ),
    )


def flashinfer_switches(case: Case) -> tuple[Remedy, ...]:
    """Settings with which the engine needs none of FlashInfer's JIT builds, as far as each reaches."""
    limits = ("other features (fp8 KV cache, FlashInfer MoE or FP4) may need another FlashInfer module next",)
    if case.engine == "sglang":
        return (
            Remedy(
                kind="flag", name="--sampling-backend", value="pytorch", rank=10, limits=limits, is_sure=False,
                summary="Let SGLang sample with torch instead of FlashInfer",
            ),
            Remedy(
                kind="flag", name="--attention-backend", value="triton", rank=11, limits=limits, is_sure=False,
                summary="Let SGLang use its Triton attention instead of FlashInfer's",
            ),
        )  # fmt: skip
    if case.engine not in ("vllm", ""):
        return ()
    return (
        Remedy(
            kind="env", name="VLLM_USE_FLASHINFER_SAMPLER", value="0", rank=10, limits=limits, is_sure=False,
            summary="vLLM: sample with its own kernels instead of FlashInfer's",
        ),
        Remedy(
            kind="flag", name="--attention-backend", value="TRITON_ATTN", rank=11, limits=limits, is_sure=False,
            summary="vLLM: use its Triton attention instead of FlashInfer's",
        ),
    )  # fmt: skip


def prebuilt_kernels() -> Remedy:
    """FlashInfer's kernels as a wheel."""
    return Remedy(
        kind="package",
        name="flashinfer-jit-cache",
        value="match:flashinfer-python",
        summary="Install FlashInfer's prebuilt kernels, of exactly the installed FlashInfer release and torch's CUDA",
        cost="1 to 2 GB; modules that are not in it are still compiled here",
        is_sure=False,
    )


def prebuilt_wheel(component: str | None, torch: Torch | Unknown) -> tuple[Remedy, ...]:
    """A published wheel instead of a build, where the project publishes some."""
    if component not in PUBLISHES_WHEELS:
        return ()
    name = distribution_of(component or "")
    built_for = f"torch {torch.version}" if isinstance(torch, Torch) and torch.version else "the installed torch"
    return (
        Remedy(
            kind="package",
            name=name,
            value="match:torch",
            summary=f"Install the published {name} wheel for {built_for} and its CUDA: nothing is compiled then",
            limits=("there must be a wheel for this combination of torch, CUDA, Python and C++ ABI",),
            is_sure=False,
        ),
    )
