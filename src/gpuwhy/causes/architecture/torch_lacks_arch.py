"""torch-lacks-arch: the installed torch build has no code for this GPU, while another build of torch has."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture._missing_image import MissingImage
from gpuwhy.causes.architecture._torch_warnings import SIGNS as WARNINGS
from gpuwhy.causes.architecture._torch_warnings import TorchWarning, read_torch_warning
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import torch as torch_builds
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Gpus, Torch
from gpuwhy.model.remedy import NotARemedy, Remedy

_BUILT_AGAINST_TORCH = ("vllm", "sglang", "tensorrt-llm", "lmdeploy", "text-generation-inference")
"""Engines whose compiled parts fit one torch release only; their image or release has to change with it."""
_RIVALS = ("binary-lacks-arch", "build-target-wrong", "arch-unsupported-by-library")


@cause(
    "torch-lacks-arch",
    family="Binary and architecture limits",
    signs=[
        *WARNINGS,
        *images.SIGNS,
        says("arch-mismatch", ("cublas_status_arch_mismatch", "cudnn_status_arch_mismatch")),
        says("nvrtc-refuses", "for --gpu-architecture", r"nvrtc: error: .{0,20}invalid value for --gpu-architecture"),
    ],
)
def torch_lacks_arch(case: Case, gpus: Gpus | Unknown, torch: Torch | Unknown) -> Judgement:
    """The installed PyTorch was built without code for this GPU; another build of PyTorch has it.

    How it shows itself
      A warning when CUDA is first used: `NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with
      the current PyTorch installation`, or `Found GPU0 ... Minimum and Maximum cuda capability supported ...`, or, from
      2.13 on, `Your installed torch does not include kernels for this GPU`. Seconds or hours later the first kernel
      fails with `no kernel image is available for execution on the device`. The warning is often not pasted.

    Why it happens
      A wheel holds machine code for a list of architectures. Too new: RTX 50 and RTX PRO Blackwell (12.0) and B200
      (10.0) need a build for CUDA 12.8 or later, which exists from torch 2.7 on. Too old: builds for CUDA 12.8 and
      13 dropped Maxwell and Pascal, those for CUDA 13 and most of CUDA 12.8 also Volta; the CUDA 12.6 build of the
      same release still has all three.

    How to be sure
      `python -c 'import torch; print(torch.__version__, torch.cuda.get_arch_list(), torch.cuda.get_device_capability())'`
      in the environment of the service. Code for X.Y runs on the same X with an equal or higher Y, so sm_80 serves 8.9
      and sm_120 serves 12.1 (the maximum of "(12.0)" printed on a DGX Spark is harmless).

    What helps
      The build of torch for the other CUDA release (from PyTorch's own index, https://download.pytorch.org/whl/cu128, or cu126 for
      old cards). Engines with compiled parts (vLLM, SGLang, TensorRT-LLM) need an image or release made for that torch.

    What does not help
      A newer driver or system CUDA toolkit (wheels bring their own), TORCH_CUDA_ARCH_LIST at run time, reinstalling
      the same version from the default index, or changing torch alone under TensorRT-LLM (its libraries then miss symbols).

    Not to be confused with
      binary-lacks-arch (torch works, one extension fails), gpu-too-old (no build of the release has the GPU),
      build-target-wrong (something compiled on this machine).
    """
    warning = read_torch_warning(case, gpus)
    if warning is not None:
        return _warned(case, warning, gpus, torch)
    image = images.read_missing_image(case, gpus, torch)
    if image is not None:
        return _silent(case, image, torch)
    return _run_time_compiler(case, gpus) or _library_of_cuda(case, gpus)


def _warned(case: Case, warning: TorchWarning, gpus: Gpus | Unknown, torch: Torch | Unknown) -> Judgement:
    quoted = case.evidence(warning.match, "torch says itself that it has no code for this GPU")
    if warning.is_harmless:
        return RuledOut("the GPU is only a minor version above the newest code, which runs on it", (quoted,))
    if warning.is_dropped_by_all:
        return RuledOut("no build of this torch release has code for this GPU", (quoted,))
    image = images.read_missing_image(case, gpus, torch)
    other = case.incident.primary_event
    is_elsewhere = other is not None and image is None and other.id not in case.explains(warning.match)
    certainty = Certainty.LIKELY if is_elsewhere or not warning.is_sure else Certainty.PROVEN
    symptom = None if image is None else image.match
    capability = warning.capability or (gpus.capability if isinstance(gpus, Gpus) else None)
    return Verdict(
        certainty=certainty,
        component="torch",
        title=_title(capability, torch),
        chain=_chain(case, warning.match, symptom, capability),
        evidence=(quoted, *(torch.evidence if isinstance(torch, Torch) else ())),
        explains=case.explains(warning.match, symptom),
        missing=_missing(case) if certainty is not Certainty.PROVEN else (),
        rivals=() if certainty is Certainty.PROVEN else _RIVALS,
        remedies=_remedies(case, capability, torch),
        not_remedies=_IN_VAIN,
        strength=80,
    )


def _silent(case: Case, image: MissingImage, torch: Torch | Unknown) -> Judgement:
    """A failed launch without torch's warning: torch's list of targets decides."""
    if image.match.sign == images.NO_DEVICE_CODE.name or image.component in images.WITHOUT_TORCH:
        return None
    quoted = case.evidence(image.match, "a kernel has no code for the GPU; the message does not say whose")
    if image.torch.value is True:
        return RuledOut(f"torch itself runs on this GPU: {image.torch.why}", (quoted,))
    if image.torch.value is None and not image.is_torch_own and _is_in_every_build(image.capability):
        return RuledOut(f"every published build of torch has code for {image.capability}", (quoted,))
    if image.jit_targets is not None:
        return RuledOut("the kernel was compiled on this machine; it is not torch's", (quoted,))
    if image.contrast is not None and image.torch.value is None:
        return RuledOut("other work on the same card succeeds, so torch has code for it", (image.contrast,))
    if image.has_code is False and image.component != "torch":
        return RuledOut(
            f"the binary that lacks the code is {image.component}'s",
            (image.built_evidence,) if image.built_evidence else (quoted,),
        )
    is_lacking = image.torch.value is False
    lacks = derived(image.torch.why, image.torch.provenance) if is_lacking else None
    read = case.fact_evidence("torch_arch_list")
    is_read = is_lacking and read is not None and read.place is not None and read.place.source == "binary"
    lacks = read if is_read else lacks
    certainty = Certainty.LIKELY if is_lacking else Certainty.POSSIBLE
    if is_read and image.is_plain and image.component in (None, "torch"):
        certainty = Certainty.PROVEN
    strength = 75 if is_lacking else _strength(image)
    return Verdict(
        certainty=certainty,
        component="torch",
        title=_title(image.capability, torch),
        chain=(
            Link(
                "The installed torch holds no machine code for this GPU", lacks or inferred("nobody looked at its list")
            ),
            Link("The first kernel that torch starts is not found", quoted),
        ),
        evidence=(quoted, *((lacks,) if lacks else ()), *(torch.evidence if isinstance(torch, Torch) else ())),
        explains=case.explains(image.match),
        missing=() if is_lacking else _missing(case),
        rivals=() if certainty is Certainty.PROVEN else _RIVALS,
        remedies=_remedies(case, image.capability, torch),
        not_remedies=_IN_VAIN,
        strength=strength,
    )


def _is_in_every_build(capability: str | None) -> bool:
    """Turing to Hopper have been in every published build since torch 2.1."""
    if capability is None:
        return False
    fitting = torch_builds.builds_for(capability)
    return {"cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132"} <= {b.build for b in fitting}


def _strength(image: MissingImage) -> int:
    """How much the failure speaks for torch as long as nobody looked."""
    if image.is_torch_own:
        return 45
    if not image.is_plain:
        return 15
    return 20 if image.is_named else 35


_OTHER_USERS_OF_NVRTC = lazy_pattern(
    r"\b(?:cupy|numba|jax|tensorflow|deep_?gemm|deep_?ep|tvm|xqa|tensorrt)", re.IGNORECASE
)


def _run_time_compiler(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """The NVRTC that comes with torch, which its fused kernels and complex operations are compiled with."""
    match = case.found("nvrtc-refuses")
    if match is None:
        return None
    near = [match.text, *(frame.path for frame in match.frames)]
    near += [line.text[:500] for line in case.lines_around(match, 15, 15)]
    if any(_OTHER_USERS_OF_NVRTC.search(text) for text in near):
        return None
    is_shown = any("torch" in text or "#define POS_INFINITY" in text for text in near)
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    return Verdict(
        certainty=Certainty.LIKELY if is_shown else Certainty.POSSIBLE,
        component="torch",
        title="The run-time compiler (NVRTC) of this torch does not know the GPU",
        chain=(
            Link(
                "This torch brings the NVRTC of a CUDA release older than the GPU", inferred("wheels bring their own")
            ),
            Link(
                "It refuses the GPU's target for a kernel that is compiled at run time", case.evidence(match, "NVRTC")
            ),
        ),
        evidence=(case.evidence(match, "the run-time compiler refuses the GPU's target"),),
        explains=case.explains(match),
        missing=_missing(case),
        rivals=("toolkit-too-old-for-arch",),
        remedies=_remedies(case, capability, Unknown("not examined")),
        strength=60,
    )


def _library_of_cuda(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """cuBLAS or cuDNN that came with torch refuses the GPU."""
    match = case.found("arch-mismatch")
    if match is None:
        return None
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component="torch",
        title="A CUDA library that came with torch has no code for this GPU",
        chain=(Link("cuBLAS or cuDNN of this torch build refuses the GPU", case.evidence(match, "its status")),),
        evidence=(case.evidence(match, "the library's own status for a GPU it has no code for"),),
        explains=case.explains(match),
        missing=_missing(case),
        rivals=("gpu-too-old", "dtype-unsupported-by-gpu"),
        remedies=_remedies(case, capability, Unknown("not examined")),
        strength=35,
    )


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("cc", "which code the GPU needs"),
        case.missing("torch_arch_list", "whether torch has it"),
        case.missing("torch_cuda", "which build of torch is installed"),
    )
    return tuple(m for m in asked if m is not None)


def _title(capability: str | None, torch: Torch | Unknown) -> str:
    which = f"torch {torch.version}" if isinstance(torch, Torch) and torch.version else "The installed torch"
    gpu = f"compute capability {capability}" if capability else "this GPU"
    return f"{which} has no code for {gpu}"


def _chain(case: Case, warned: Match, symptom: Match | None, capability: str | None) -> tuple[Link, ...]:
    last: Evidence = (
        case.evidence(symptom, "the launch that failed")
        if symptom is not None
        else inferred("the first kernel on this GPU fails; not in this log")
    )
    return (
        Link(
            f"This torch build holds no machine code that runs on {capability or 'the GPU'}",
            case.evidence(warned, "torch's own comparison of its list with the GPU"),
        ),
        Link("Every kernel of torch fails on this GPU: no kernel image is available", last),
    )


def _remedies(case: Case, capability: str | None, torch: Torch | Unknown) -> tuple[Remedy, ...]:
    pinned_by = case.engine if case.engine in _BUILT_AGAINST_TORCH else ""
    remedies: list[Remedy] = []
    if pinned_by:
        target = _target(capability)
        remedies.append(
            Remedy(
                kind="container",
                name="image",
                value=f"a {pinned_by} image whose torch has {target}",
                summary=f"Run an image of {pinned_by} whose torch was built with {target}",
                cost="a download of 10 to 30 GB",
            )
        )
    build = _build_for(capability, torch)
    if pinned_by != "tensorrt-llm":
        remedies.append(
            Remedy(
                kind="package",
                name="torch",
                value=f"{build} build",
                summary=f"Install the {build} build of torch{_release_hint(capability)}, with torchvision and torchaudio of the same build",
                cost="a download of 2 to 4 GB",
                check=("python -c 'import torch; print(torch.cuda.get_arch_list()); torch.ones(1, device=\"cuda\")'",),
                limits=(f"{pinned_by} has to be a build for that torch",) if pinned_by else (),
            )
        )
    if pinned_by:
        remedies.append(
            Remedy(
                kind="package",
                name=pinned_by,
                value="newer",
                summary=f"Use a release of {pinned_by} that requires a torch with code for this GPU",
                rank=1,
            )
        )
    if pinned_by == "tensorrt-llm":
        remedies.append(
            Remedy(
                kind="package",
                name=pinned_by,
                value="rebuild",
                summary="Build it from source against a torch that has the GPU",
                cost="an hour or more of compilation",
                rank=2,
            )
        )
    return tuple(remedies)


def _target(capability: str | None) -> str:
    gpu = capabilities.parse(capability) if capability else None
    return gpu.target if gpu else "code for this GPU"


def _build_for(capability: str | None, torch: Torch | Unknown) -> str:
    """The build to install: the oldest CUDA that has a new GPU, the newest that still has an old one."""
    if capability is None:
        return "another CUDA"
    fitting = torch_builds.builds_for(capability)
    if isinstance(torch, Torch) and torch.version:
        own = {build.build for build in torch_builds.builds_of(torch.version)}
        fitting = tuple(build for build in fitting if build.build in own) or fitting
    if not fitting:
        return "newer" if _is_newest(capability) else "older"
    return fitting[0].build if _is_newest(capability) else fitting[-1 if len(fitting) < 2 else _kept(fitting)].build


def _kept(fitting: tuple[torch_builds.TorchBuild, ...]) -> int:
    """Of several builds that still have an old GPU, the one with the longest life (cu126)."""
    return max(range(len(fitting)), key=lambda i: tuple(int(part) for part in fitting[i].last.split(".")))


def _is_newest(capability: str) -> bool:
    gpu = capabilities.parse(capability)
    return gpu is not None and gpu.major >= 9


def _release_hint(capability: str | None) -> str:
    fitting = torch_builds.builds_for(capability) if capability else ()
    if not fitting or not _is_newest(capability or "1.0"):
        return ""
    return f" (torch {fitting[0].first} or later)"


_IN_VAIN = (
    NotARemedy(
        "TORCH_CUDA_ARCH_LIST in the environment of the service", "it acts on source builds, not on an installed wheel"
    ),
    NotARemedy("a newer system CUDA toolkit or driver", "the wheel brings its own CUDA libraries and kernels"),
    NotARemedy("reinstalling torch from the default index", "it fetches the same build again"),
)
