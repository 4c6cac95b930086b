"""gpu-too-old: a library or engine has dropped the generation of this GPU altogether."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture import _stated_limit as limits
from gpuwhy.causes.architecture import _torch_warnings as warnings
from gpuwhy.causes.architecture._extension_remedies import package_of
from gpuwhy.causes.architecture._host_evidence import of_gpus
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import NotARemedy, Remedy

_TRITON = says(
    "triton-too-old",
    ("too old to be supported by the triton", "triton only supports devices"),
    r"Found (?P<name>[^{}\n]{2,70}?) which is too old to be supported by the triton GPU compiler"
    r"|Triton only supports devices of CUDA Capability >= ?(?P<need>\d\.\d), but your device is of CUDA capability (?P<cc>\d\.\d)",
)
_CANNOT_SELECT = says(
    "llvm-cannot-select",
    "cannot select: intrinsic %llvm.nvvm",
    r"LLVM ERROR: Cannot select: intrinsic %llvm\.nvvm\.(?P<what>[\w.]{3,60})",
)
_LEGACY_DRIVER = says(
    "driver-legacy",
    "legacy drivers",
    r"supported through\s+the NVIDIA (?P<branch>\d{2,3})\.(?:xx|\d+)[\w.]{0,8} Legacy drivers",
)
_NAMES_SM12 = says("log-names-sm12", ("sm 12.x requires cuda", "sm 120 requires cuda", "sm 12.1+ requires cuda"))
_FLASHINFER = says(
    "flashinfer-blames-gpu",
    ("flashinfer requires gpus with sm75", "flashinfer requires sm75"),
    r"FlashInfer requires (?:GPUs with )?sm75(?: or higher|\+)",
)
_DROPPED_TARGET = says(
    "nvcc-dropped-target",
    ("unsupported gpu architecture", "is not defined for option"),
    r"(?:nvcc|ptxas) fatal\s*: +(?:Unsupported gpu architecture '|Value ')(?P<target>(?:compute|sm)_(?:[2356]\d|7[02]))'",
)
_OLLAMA = says(
    "ollama-too-old",
    ("gpu is too old. compute capability detected", "cuda gpu is too old", "gpu too old"),
    r"GPU (?:is )?too old\W*(?:Compute Capability detected: ?(?P<cc>\d{1,2}\.\d))?",
)
_GENERAL = says(
    "generation-dropped",
    ("too old", "no longer support"),
    r"\b(?:your|this|the) (?:gpu|device|card|graphics card)\b[^.\n]{0,80}\btoo old\b"
    r"|\bno longer supports? (?:\w+ ){0,3}(?:gpus?|devices?|compute capability|Kepler|Maxwell|Pascal|Volta|Turing)\b",
)
_OPEN_MODULES = says(
    "open-modules-refuse",
    "not supported by open",
    r"not supported by open\b(?:[\s\S]{0,60}nvidia\.ko)?",
)
_TINY = says("compute-cap-refused", "compute cap ", r"cuda compute cap (?P<packed>\d{2,3}) is not supported")
_NGC = says("image-refuses-gpu", "no supported gpu(s) detected to run this container")
_CUDNN = says("cudnn-arch-mismatch", "cudnn_status_not_supported_arch_mismatch")
_DRIVER = lazy_pattern(r"driver|requires device with capability|glibc|nvcc|PyTorch no longer", re.IGNORECASE)


@cause(
    "gpu-too-old",
    family="Binary and architecture limits",
    signs=[
        _TRITON,
        _CANNOT_SELECT,
        _FLASHINFER,
        _NAMES_SM12,
        _LEGACY_DRIVER,
        _DROPPED_TARGET,
        _OLLAMA,
        _GENERAL,
        _OPEN_MODULES,
        _TINY,
        _NGC,
        _CUDNN,
        *warnings.SIGNS,
        *limits.SIGNS,
    ],
)
def gpu_too_old(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """The library or engine has dropped this GPU's generation altogether; no build of that release supports it.

    How it shows itself
      `Found NVIDIA GeForce GTX 1080 which is too old to be supported by the triton GPU compiler`; `GPUs with compute
      capability less than 7.0 are not supported`; `FlashAttention only supports Ampere GPUs or newer`; `CUDA GPU is too
      old. Compute Capability detected: 3.5`; with CUDA 13, `Unsupported gpu architecture 'compute_70'` for a card that
      is itself a V100; `Target GPU SM 61 is not supported by this TensorRT release`; from the open kernel modules `not
      supported by open nvidia.ko`; from images `No supported GPU(s) detected to run this container`.

    Why it happens
      Projects raise their floor with time. Triton needs 7.0, so torch.compile does not work on Pascal. vLLM needs 7.0,
      and its newer engine more; SGLang and FlashInfer need 7.5; FlashAttention 2 needs 8.0; CUDA 13 starts at 7.5 and
      with it all that is built with it only; torch from 2.1 on has no build for Kepler.

    How to be sure
      Compare the compute capability with the minimum in the message. If the GPU is newer than the minimum, the
      message misleads: FlashInfer's `requires GPUs with sm75 or higher` mostly comes from a toolkit that is too old, and
      on a host with an old display card the process may have been given the wrong GPU (CUDA_VISIBLE_DEVICES).

    What helps
      Going around the library (eager mode instead of torch.compile, another attention backend, the older engine), an
      older release that still had the GPU, an engine for old cards such as llama.cpp, at last another GPU.

    What does not help
      Reinstalling, rebuilding, an architecture list, a newer toolkit (CUDA 13 is the wrong direction) or driver.

    Not to be confused with
      torch-lacks-arch (another build of the same torch release has the GPU), arch-unsupported-by-library (one feature
      only), toolkit-too-old-for-arch (the GPU is new), arch-list-override (a list names the old target, not the GPU).
    """
    return (
        _legacy_driver(case)
        or _open_modules(case)
        or _refused_by_image(case, gpus)
        or _dropped_by_cudnn(case, gpus)
        or _triton(case, gpus)
        or _flashinfer(case, gpus)
        or _dropped_target(case, gpus)
        or _dropped_by_torch(case, gpus)
        or _stated(case, gpus)
        or _said(case, gpus)
    )


def _legacy_driver(case: Case) -> Judgement:
    """The kernel module says that it ignores this GPU, and which legacy branch still serves it."""
    match = case.found(_LEGACY_DRIVER.name)
    branch = match.group("branch") if match is not None else None
    if match is None or branch is None:
        return None
    quoted = case.evidence(match, "the kernel module names the last branch that serves this GPU")
    return Verdict(
        certainty=Certainty.PROVEN,
        component="driver",
        title=f"The installed driver has dropped this GPU; the {branch}.xx branch is the last that serves it",
        chain=(
            Link("The driver has dropped the GPU's generation", quoted),
            Link("It ignores the GPU while probing", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        remedies=(
            Remedy(
                kind="driver",
                name="nvidia",
                value=branch,
                summary=f"Install a driver of the {branch}.xx legacy branch, and hold it there",
                cost="a reboot; CUDA releases that need a newer driver no longer run",
                risk="medium",
            ),
        ),
        strength=85,
    )


def _open_modules(case: Case) -> Judgement:
    """The open kernel modules serve GPUs with a GSP only, which came with Turing."""
    match = case.found(_OPEN_MODULES.name)
    if match is None:
        return None
    quoted = case.evidence(match, "the kernel module says that it does not serve this GPU")
    return Verdict(
        certainty=Certainty.PROVEN,
        component="driver",
        title="The open NVIDIA kernel modules are installed, which serve GPUs from Turing on only",
        chain=(
            Link("The open kernel modules need the GSP, which came with Turing", quoted),
            Link("They ignore this older GPU while probing", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        remedies=(
            Remedy(
                kind="driver",
                name="nvidia",
                value="proprietary kernel modules",
                summary="Install the proprietary flavour of the kernel modules, of a driver branch that still serves the GPU (580 is the last for Maxwell, Pascal and Volta)",
                cost="a reboot",
                risk="medium",
            ),
        ),
        strength=85,
    )  # fmt: skip


def _refused_by_image(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """The start script of an image looks at the GPU and refuses it."""
    match = case.found(_TINY.name)
    if match is not None:
        packed = match.group("packed") or ""
        capability = f"{packed[:-1]}.{packed[-1]}"
        return _verdict(case, match, "text-embeddings-inference", None, capability, Certainty.PROVEN, 80, gpus)
    match = case.found(_NGC.name)
    if match is None:
        return None
    known = gpus.capability if isinstance(gpus, Gpus) else None
    verdict = _verdict(case, match, "container-image", None, known, Certainty.LIKELY, 60, gpus)
    older = Remedy(
        kind="container", name="image", value="older",
        summary="Run the last release of the image whose support matrix lists this generation",
    )  # fmt: skip
    kept = tuple(remedy for remedy in verdict.remedies if remedy.kind != "package")
    return _replaced(verdict, (older, *kept), ("container-gpu-not-passed", "driver-too-old"))


def _dropped_by_cudnn(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """cuDNN 9.11 dropped Maxwell, Pascal and Volta; torch may still have them."""
    match = case.found(_CUDNN.name)
    known = gpus.capability if isinstance(gpus, Gpus) else None
    if match is None or _is_below(known, "7.5") is False:
        return None
    certainty = Certainty.LIKELY if known else Certainty.POSSIBLE
    verdict = _verdict(case, match, "cudnn", "7.5", known, certainty, 60 if known else 40, gpus)
    older = Remedy(
        kind="package", name="nvidia-cudnn-cu12", value="<9.11",
        summary="Install the last cuDNN that serves this generation (9.10), beside the same torch",
    )  # fmt: skip
    kept = tuple(remedy for remedy in verdict.remedies if remedy.kind != "package")
    return _replaced(verdict, (older, *kept), ("arch-unsupported-by-library", "torch-lacks-arch"))


def _triton(case: Case, gpus: Gpus | Unknown) -> Judgement:
    match = case.found(_TRITON.name)
    known = gpus.capability if isinstance(gpus, Gpus) else None
    if match is not None:
        capability = match.group("cc") or _stated_capability(match) or known
        return _verdict(case, match, "triton", "7.0", capability, Certainty.PROVEN, 85, gpus)
    match = case.found(_CANNOT_SELECT.name)
    if match is None or _is_below(known, "7.0") is False:
        return None
    certainty = Certainty.LIKELY if known else Certainty.POSSIBLE
    return _verdict(case, match, "triton", "7.0", known, certainty, 50, gpus)


def _stated_capability(match: Match) -> str | None:
    """The GPU's capability, when the same message names it further on."""
    found = re.search(r"your device is of CUDA capability (\d\.\d)", match.text)
    return found.group(1) if found else None


def _flashinfer(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """True only of a GPU below 7.5; on all others the message is wrong, and another cause has to be found."""
    match = case.found(_FLASHINFER.name)
    if match is None:
        return None
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    newer = case.found(_NAMES_SM12.name)
    if newer is not None and capability is None:
        return RuledOut("the log itself speaks of an SM 12.x GPU", (case.evidence(newer, "far newer than 7.5"),))
    is_below = _is_below(capability, "7.5")
    if is_below is False:
        quoted = case.evidence(match, "the message blames the GPU")
        return RuledOut(f"the GPU has {capability}: the message is wrong about it", (quoted, *of_gpus(gpus, quoted)))
    certainty = Certainty.LIKELY if is_below else Certainty.POSSIBLE
    return _verdict(case, match, "flashinfer", "7.5", capability, certainty, 70 if is_below else 15, gpus)


def _dropped_target(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """A toolkit refuses a target because it is of a generation that the toolkit dropped."""
    match = case.found(_DROPPED_TARGET.name)
    target = capabilities.parse(match.group("target") or "") if match is not None else None
    if match is None or target is None:
        return None
    quoted = case.evidence(match, "the target that the toolkit no longer knows")
    own = gpus.capabilities if isinstance(gpus, Gpus) else ()
    if own and target.plain.dotted not in own:
        return RuledOut(
            f"no GPU here has {target.plain}: the build lists an old target", (quoted, *of_gpus(gpus, quoted))
        )
    verdict = _verdict(
        case, match, case.component_near(match, "cuda-toolkit"), "7.5", own[0] if own else None,
        Certainty.LIKELY if own else Certainty.POSSIBLE, 60 if own else 35, gpus,
    )  # fmt: skip
    older = Remedy(
        kind="toolkit",
        name="cuda",
        value="<13.0",
        summary=f"Build with CUDA 12.9 or older, the last to know {target.target}, and with a torch built for it",
        risk="medium",
    )
    rivals = () if own else ("arch-list-override", "toolkit-too-old-for-library")
    return _replaced(verdict, (older, *verdict.remedies), rivals)


def _dropped_by_torch(case: Case, gpus: Gpus | Unknown) -> Judgement:
    warning = warnings.read_torch_warning(case, gpus)
    if warning is None or not warning.is_dropped_by_all:
        return None
    verdict = _verdict(
        case, warning.match, "torch", warning.minimum, warning.capability, Certainty.LIKELY, 85, gpus
    )  # fmt: skip
    older = Remedy(
        kind="package",
        name="torch",
        value="older",
        summary="Install the last torch release that had a build for this GPU",
    )
    return _replaced(verdict, (older, *(r for r in verdict.remedies if r.kind != "package")), ("torch-lacks-arch",))


def _stated(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """A program names the lowest capability that it accepts at all."""
    limit = limits.read_stated_limit(case, gpus)
    if limit is None or limit.kind not in ("library", "feature"):
        return None
    is_library = limit.kind == "library"
    if not is_library and not (limit.goes_up and _is_below(limit.minimum, "8.1")):
        return None
    if limit.excludes_own is False:
        return RuledOut(
            f"the GPU, {limit.own}, is not below the minimum: another GPU may have been selected",
            (quoted := case.evidence(limit.match, "the minimum that is stated"), *of_gpus(gpus, quoted)),
        )
    if not is_library:
        return _verdict(case, limit.match, limit.component, limit.minimum, limit.own, Certainty.POSSIBLE, 30, gpus)
    is_old = limit.excludes_own is True or (limit.own is not None and not limit.named)
    certainty = Certainty.LIKELY if limit.is_raised else Certainty.POSSIBLE
    if limit.is_raised and is_old and limit.named:
        certainty = Certainty.PROVEN
    return _verdict(case, limit.match, limit.component, limit.minimum, limit.own, certainty, 75, gpus)


def _said(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """A program calls the GPU too old without a number, or drops its generation by name."""
    match = next((m for m in case.all(_OLLAMA.name, _GENERAL.name) if not _DRIVER.search(m.text)), None)
    if match is None or match.is_code:
        return None
    capability = match.group("cc") or (gpus.capability if isinstance(gpus, Gpus) else None)
    is_ollama = match.sign == _OLLAMA.name
    component = (
        images.in_other_words(match.text)
        or case.component_near(match, None)
        or ("ollama" if is_ollama else case.engine or None)
    )
    certainty = Certainty.LIKELY if is_ollama or match.event is not None else Certainty.POSSIBLE
    return _verdict(case, match, component, "5.0" if is_ollama else None, capability, certainty, 65, gpus)


def _verdict(
    case: Case, match: Match, component: str | None, minimum: str | None, capability: str | None,
    certainty: Certainty, strength: int, gpus: Gpus | Unknown,
) -> Verdict:  # fmt: skip
    quoted = case.evidence(match, "the program says which GPUs it still supports")
    name = component or "The library"
    floor = f"compute capability {minimum} or higher" if minimum else "newer GPUs"
    missing = case.missing("cc", "whether the GPU is below the minimum") if capability is None else None
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{name} supports {floor} only" + (f"; the GPU has {capability}" if capability else ""),
        chain=(
            Link(f"{name} has dropped GPUs below {minimum or 'a newer generation'}", quoted),
            Link("It refuses this GPU", quoted),
        ),
        evidence=(quoted, *of_gpus(gpus, quoted)),
        explains=case.explains(match),
        missing=_asked(case, match, missing),
        rivals=() if certainty is Certainty.PROVEN else ("arch-unsupported-by-library", "torch-lacks-arch"),
        remedies=_remedies(case, match, component, minimum),
        not_remedies=_IN_VAIN,
        strength=strength,
    )


def _asked(case: Case, match: Match, missing: Missing | None) -> tuple[Missing, ...]:
    listed = case.missing("env.TORCH_CUDA_ARCH_LIST", "a list with an old target gives the same message")
    if match.sign in (_FLASHINFER.name, _DROPPED_TARGET.name) and missing is not None and listed is not None:
        return missing, listed
    return (missing,) if missing is not None else ()


def _remedies(case: Case, match: Match, component: str | None, minimum: str | None) -> tuple[Remedy, ...]:
    remedies: list[Remedy] = []
    if component == "triton":
        remedies += _without_triton(case)
    if "VLLM_USE_V1" in match.text:
        remedies.append(
            Remedy(
                kind="env",
                name="VLLM_USE_V1",
                value="0",
                summary="Use the older engine, as far as this release still has it",
            )
        )
    if component in ("flash-attn", "flashinfer"):
        remedies.append(
            Remedy(
                kind="flag",
                name="--attention-backend",
                value="triton or torch_native",
                summary="Use an attention backend that supports this GPU",
            )
        )
        remedies.append(
            Remedy(
                kind="config",
                name="attn_implementation",
                value="sdpa",
                summary="In transformers: torch's own attention",
                is_sure=component == "flash-attn",
            )
        )
    if component in (
        "vllm",
        "sglang",
        "tensorrt-llm",
        "lmdeploy",
        "text-generation-inference",
        "flashinfer",
        "exllama",
        "exllamav2",
        "exllamav3",
    ):
        remedies.append(
            Remedy(
                kind="config",
                name="engine",
                value="llama.cpp",
                summary="Serve the model with an engine that still supports old cards, such as llama.cpp",
            )
        )
    if component not in (None, "triton", "torch", "cuda-toolkit"):
        remedies.append(
            Remedy(
                kind="package",
                name=package_of(component),
                value="older",
                summary=f"Use the last release of {component} that supported this generation, or a community build for it",
                is_sure=False,
            )
        )
    floor = f"compute capability >= {minimum}" if minimum else "a newer generation"
    remedies.append(
        Remedy(kind="hardware", name="gpu", value=floor, summary=f"Run it on a GPU with {floor}", risk="high")
    )
    return tuple(remedies)  # fmt: skip


def _without_triton(case: Case) -> list[Remedy]:
    remedies = [
        Remedy(kind="env", name="TORCHDYNAMO_DISABLE", value="1", summary="Switch torch.compile off in this process", cost="slower than compiled code"),
        Remedy(kind="config", name="implementation", value="eager", summary="Choose the eager implementation, without torch.compile", is_sure=False),
    ]  # fmt: skip
    flag = ("--enforce-eager", "") if case.engine == "vllm" else ("--compile", "False")
    remedies.append(
        Remedy(kind="flag", name=flag[0], value=flag[1], summary="Start without torch.compile", is_sure=False)
    )
    return remedies


def _replaced(verdict: Verdict, remedies: tuple[Remedy, ...], rivals: tuple[str, ...]) -> Verdict:
    return msgspec.structs.replace(verdict, remedies=remedies, rivals=rivals)


def _is_below(capability: str | None, minimum: str) -> bool | None:
    gpu, floor = capabilities.parse(capability) if capability else None, capabilities.parse(minimum)
    return None if gpu is None or floor is None else gpu < floor


_IN_VAIN = (
    NotARemedy("reinstalling or rebuilding the same release", "it has no code for this generation any more"),
    NotARemedy("a newer CUDA toolkit or driver", "they drop old generations, too; CUDA 13 starts at 7.5"),
)
