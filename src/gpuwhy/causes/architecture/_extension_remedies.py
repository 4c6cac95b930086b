"""What to do about a library whose binary lacks the GPU: another build of it, or the switch that goes around it."""

from __future__ import annotations

from gpuwhy.causes._case import Case
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge.components import BUILDS_OF_LLAMA
from gpuwhy.model.remedy import NotARemedy, Remedy

PACKAGES = {
    "flashinfer": "flashinfer-python",
    "deepgemm": "deep_gemm",
    "ktransformers": "ktransformers",
}
"""Names under which a component is installed, where they differ."""
_BUNDLED_BY = {"llama-box": "gpustack", "llama.cpp": "", "flash-attn": "vllm", "deepgemm": "vllm"}
_SWITCHES: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "lmcache": (("flag", "--kv-transfer-config", "remove", "Start without the LMCache connector"),),
    "flash-attn": (
        ("flag", "--attention-backend", "triton", "Use an attention backend that is compiled on this machine"),
    ),
    "deepgemm": (("env", "VLLM_USE_DEEP_GEMM", "0", "Use vLLM's other block-FP8 kernels"),),
    "xformers": (("flag", "--attention-backend", "triton", "Use an attention backend that is compiled on this machine"),),
}  # fmt: skip
_WITH_BACKENDS = ("vllm", "sglang", "aphrodite")
"""Engines that have the option --attention-backend."""


def package_of(component: str) -> str:
    """The distribution to install for a component."""
    return PACKAGES.get(component, component)


def for_extension(case: Case, component: str | None, capability: str | None) -> tuple[Remedy, ...]:
    """Smallest first: go around it, another published build, a build of one's own."""
    if component is None:
        return ()
    remedies = [
        Remedy(kind=kind, name=name, value=value, summary=summary, is_sure=component == "lmcache")
        for kind, name, value, summary in _SWITCHES.get(component, ())
        if name != "--attention-backend" or case.engine in _WITH_BACKENDS or not case.engine
    ]
    package = package_of(component)
    build, hint = _wanted(capability)
    remedies.append(
        Remedy(
            kind="package",
            name=package,
            value=build,
            summary=f"Install {'a release of ' if build in ('newer', 'older') else 'the build of '}{package} that {hint}",
            rank=0,
        )
    )
    bundler = _BUNDLED_BY.get(component, "")
    if bundler and _is_named(case, bundler):
        remedies.append(
            Remedy(
                kind="package",
                name=bundler,
                value="newer",
                summary=f"A newer {bundler} brings a newer {component}",
                rank=1,
                is_sure=False,
            )
        )
    remedies.append(_rebuild(package, component, capability))
    return tuple(remedies)


def _wanted(capability: str | None) -> tuple[str, str]:
    gpu = capabilities.parse(capability) if capability else None
    if gpu is None:
        return "newer", "was built for this GPU"
    if gpu.major >= 10:
        return "newer", f"was built with CUDA 12.8 or later and holds {gpu.target}"
    if gpu.major < 7 or (gpu.major, gpu.minor) < (7, 5):
        return "older", f"still holds {gpu.target}"
    return "newer", f"holds {gpu.target}"


def _rebuild(package: str, component: str, capability: str | None) -> Remedy:
    gpu = capabilities.parse(capability) if capability else None
    if component in BUILDS_OF_LLAMA:
        value = str(gpu.number) if gpu else "native"
        how = f"-DCMAKE_CUDA_ARCHITECTURES={value}"
    else:
        value = gpu.dotted if gpu else "the GPU's capability"
        how = f"TORCH_CUDA_ARCH_LIST={value}"
    return Remedy(
        kind="package",
        name=package,
        value="rebuild",
        summary=f"Build {package} from source on this machine with {how}",
        cost="minutes to hours of compilation, and a toolkit that knows the GPU",
        rank=2,
    )


def _is_named(case: Case, product: str) -> bool:
    if case.engine == product or f"packages.{product}" in case.facts:
        return True
    return any(product in line.text[:300].lower() for _, line in case.lines())


IN_VAIN = (
    NotARemedy(
        "TORCH_CUDA_ARCH_LIST in the environment of the service", "it acts on source builds, not on an installed binary"
    ),
    NotARemedy("a newer system CUDA toolkit", "nothing is compiled when the kernel is started"),
    NotARemedy("reinstalling the same release of the library", "the same binary comes back"),
)
