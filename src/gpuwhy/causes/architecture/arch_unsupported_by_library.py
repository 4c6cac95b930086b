"""arch-unsupported-by-library: a library has no implementation of a feature for this GPU, or its check refuses it."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._component import first_component
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.architecture import _generations as generations
from gpuwhy.causes.architecture import _missing_image as images
from gpuwhy.causes.architecture import _refusal_remedies as remedies
from gpuwhy.causes.architecture import _stated_limit as limits
from gpuwhy.causes.architecture import _torch_warnings as warnings
from gpuwhy.causes.architecture._host_evidence import of_gpus
from gpuwhy.knowledge import capability as capabilities
from gpuwhy.knowledge import components
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Gpus, Torch
from gpuwhy.model.remedy import Remedy

_REFUSALS = (
    says(
        "backend-without-gpu",
        ("does not support backend", "does not support current device", "does not support device sm", "expects arch to be", "no implemented "),
        r"does not support backend .{1,40} with capability (?P<sm>\d{2,3})"
        r"|does not support (?:the )?(?:current )?device,? ?\(?sm_?(?P<sm2>\d{2,3})"
        r"|expects? arch to be (?:one of|in) .{3,300}?but got (?:Arch\.)?'?sm_?(?P<sm3>\d{2,3})"
        r"|No implemented [\w ]{3,60} for (?:the )?current (?:compute capability|SM|device|GPU|arch\w*)\D{0,4}(?P<sm4>\d{2,3})?",
    ),
    says("unknown-scale-layout", ("unknown sf transformation", "unsupported architecture or scaling factor")),
    says(
        "refused-architecture",
        ("unsupported architecture", "unsupported arch", "unsupported sm", "unsupported cuda arch", "unsupported gpu arch", "unsupported compute capability", "unsupported device"),
        r"(?<!gpu )\bUnsupported (?:CUDA |GPU )?(?:architecture|arch|SM(?: version)?|compute capability|device capability)\b(?! '?(?:compute|sm)_)",
    ),
    says(
        "no-backend-for-gpu",
        ("no valid attention backend found", "is not valid for this configuration", "no valid mla attention backend"),
        r"(?:No valid (?:MLA )?attention backend found|is not valid for this configuration).{0,3000}?compute capability not supported",
    ),
    says("release-of-attention", "supported", r"[Oo]nly (?:be )?supported (?:in|with|by|on) (?:FlashAttention|flash[-_ ]?attn)[ -]?(?:v|version )?[34]\b|requires? (?:FlashAttention|flash[-_ ]?attn|FA)[ -]?[34]\b"),
    says("no-feasible-kernel", "no feasible kernel found", r"No feasible kernel found for the problem: sm(?P<sm>\d{2,3})"),
    says(
        "block-does-not-fit",
        ("out of resource: shared memory", "dynamic shared memory size to"),
        r"out of resource: shared memory, Required: \d{1,9}, Hardware limit: \d{1,9}|Failed to set the (?:allowed )?dynamic shared memory size to \d{1,9}",
    ),
    says("cublaslt-refuses", "cublaslt ran into an error!"),
    says("no-profile-of-nim", "could not find a profile that is currently runnable"),
    says("cudnn-refuses", "cudnn_status_not_supported_arch_mismatch"),
    says("fp8-cache-without-kernel", "fp8 kv", r"does(?: not|n't) support fp8 kv[- ]?cache on this (?:device|GPU)"),
)  # fmt: skip
"""Checks of a library against the GPU, each with a wording of its own."""
_NO_TARGET = says(
    "flashinfer-no-target",
    "no supported cuda architectures found for major versions",
    r"No supported CUDA architectures found for major versions (?P<majors>\[[\d, ]+\])",
)
_INSTRUCTION = says(
    "instruction-without-gpu",
    ("not supported on .target", "requires .target"),
    r"(?:Instruction|Feature|Modifier) '(?P<what>[^']{2,80})' (?:not supported on|requires) \.target '?(?P<target>sm_\d{2,3}[af]?)'?",
)
_XFORMERS = says(
    "xformers-too-new",
    "(too new)",
    r"requires device with capability <=? \(\d+, ?\d\) but your GPU has capability \((?P<major>\d+), ?(?P<minor>\d)\) \(too new\)",
)
_SCHEME = says(
    "scheme-minimum",
    "is not supported for the current gpu",
    r"quantization method (?P<scheme>\S{2,40}) is not supported for the current GPU\.? +Minimum capability: (?P<need>\d{2,3})\.? *(?:Current capability: (?P<sm>\d{2,3}))?",
)
_GPU_CODE = lazy_pattern(
    r"tllm|trtllm|tensorrt|fmha|deep_?gemm|flash_?mla|flashinfer|cutlass|kernels?/|csrc|\.cuh?\b|\.hpp\b|sm_?\d{2}|xqa|mla\b|gemm|deep_?ep", re.I
)  # fmt: skip
"""What surrounds a refused GPU architecture; a refused model architecture or processor has none of it."""


@cause(
    "arch-unsupported-by-library",
    family="Binary and architecture limits",
    signs=[
        *_REFUSALS,
        _NO_TARGET,
        _INSTRUCTION,
        _XFORMERS,
        _SCHEME,
        *limits.SIGNS,
        *images.SIGNS,
        *warnings.SIGNS,
    ],
)
def arch_unsupported_by_library(case: Case, gpus: Gpus | Unknown, torch: Torch | Unknown) -> Judgement:
    """The library has no implementation of the requested feature for this GPU, or a check of its own refuses it.

    How it shows itself
      As a refusal before anything is compiled or started: `Unsupported architecture` (TllmGenFmhaRunner, fmhaRunner,
      DeepGEMM), `Unknown SF transformation`, `does not support backend 'trtllm' with capability 120`, `No implemented
      ... for current compute capability`, `FlashAttention v3 Backend requires SM>=80 and SM<=90`. In FlashInfer also as
      `No supported CUDA architectures found for major versions [10]` on a 12.x GPU. Libraries without such a check
      fail with `no kernel image is available`.

    Why it happens
      Kernels are written for the instructions of one generation: wgmma exists on 9.0 only, tcgen05 on 10.x and 11.x
      only. "Blackwell" means two things: B200 and GB300 are 10.x, RTX 50, RTX PRO 6000 and GB10 are 12.x and have
      neither. An engine that picks a backend by "Blackwell" or by "newer than" then picks one that cannot run here.

    How to be sure
      Compare the compute capability with the set of architectures in the message or in the check that raises. For the
      bracketed list of FlashInfer: the GPU's major version outside the brackets is this cause; inside, the target was
      dropped because of the toolkit. If only the check is wrong and the kernel would run, a newer release says so.

    What helps
      Another backend for that feature (attention, MoE, FP4 or FP8 GEMM), or leaving the feature out; a release that
      supports the GPU or picks a backend that does; at last, another GPU.

    What does not help
      Another toolkit, driver or torch, an architecture list, rebuilding, eager mode, a shorter context.

    Not to be confused with
      binary-lacks-arch (a build for this GPU exists), toolkit-too-old-for-arch (the bracketed list contains the GPU),
      dtype-unsupported-by-gpu (the number format is the limit), gpu-too-old (the whole library ends above this GPU),
      quantization-unsupported (the limit of a quantisation scheme).
    """
    return (
        _no_target(case, gpus)
        or _refused(case, gpus)
        or _instruction(case, gpus)
        or _limit(case, gpus)
        or _written_for_others(case, gpus, torch)
    )


def _no_target(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """FlashInfer's filter by major version left nothing: because the GPU's is not in it, or because of the toolkit."""
    match = case.found(_NO_TARGET.name)
    if match is None:
        return None
    majors = tuple(int(number) for number in re.findall(r"\d+", match.group("majors") or ""))
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    is_outside = generations.is_outside(majors, capability)
    quoted = case.evidence(match, "the major versions that this module is written for")
    if is_outside is False:
        return RuledOut(
            f"the module is written for {capability}: the target was dropped because of the toolkit", (quoted,)
        )
    targets = case.fact_evidence("jit_targets", "FlashInfer did find a target, so the filter is what removed it")
    known = [e for e in (*(gpus.evidence if isinstance(gpus, Gpus) else ()), targets) if e is not None]
    missing = (
        case.missing("cc", "whether the GPU's major version is among these"),
        case.missing("jit_targets", "whether FlashInfer found a target at all", "flashinfer show-config"),
    )
    return Verdict(
        certainty=_by_knowledge(is_outside, is_proof=targets is not None),
        component="flashinfer",
        title=f"This FlashInfer module is written for compute capability {generations.spoken(majors)} only",
        chain=(
            Link(f"The module is compiled for {generations.spoken(majors)} only", quoted),
            Link(f"The GPU has {capability}" if capability else "The GPU is of another generation", known[0] if known else inferred("nobody looked")),
            Link("No target is left to compile for", quoted),
        ),
        evidence=(quoted, *known),
        explains=case.explains(match),
        missing=tuple(m for m in missing if m is not None) if is_outside is None or targets is None else (),
        rivals=("toolkit-too-old-for-arch",) if is_outside is None else (),
        remedies=remedies.for_refusal(case, match, "flashinfer", generations.spoken(majors)),
        not_remedies=remedies.IN_VAIN,
        strength=60 if 12 not in majors else 20,
    )  # fmt: skip


def _by_knowledge(is_outside: bool | None, *, is_proof: bool) -> Certainty:
    if is_outside is None:
        return Certainty.POSSIBLE
    return Certainty.PROVEN if is_proof else Certainty.LIKELY


def _refused(case: Case, gpus: Gpus | Unknown) -> Judgement:
    match = _first_refusal(case)
    if match is None or (match.sign == "refused-architecture" and not _GPU_CODE.search(_surroundings(match))):
        return _xformers(case)
    stated = next((match.group(name) for name in ("sm", "sm2", "sm3", "sm4") if match.group(name)), None)
    component = _refusing(case, match)
    capability = f"{stated[:-1]}.{stated[-1]}" if stated else (gpus.capability if isinstance(gpus, Gpus) else None)
    is_sure = capability is not None and match.event is not None and match.sign not in _WITH_OTHER_CAUSES
    return _verdict(
        case,
        match,
        component,
        capability,
        Certainty.PROVEN if is_sure else Certainty.LIKELY,
        45 if match.sign in ("cudnn-refuses", "cublaslt-refuses") else 75,
        gpus.evidence if isinstance(gpus, Gpus) else (),
    )


def _first_refusal(case: Case) -> Match | None:
    """The earliest refusal; of a message that a program repeats before the traceback, the one that was raised."""
    first = case.found(*(sign.name for sign in _REFUSALS))
    if first is None or first.frames:
        return first
    said_again = (match for match in case.all(first.sign) if match.frames and match.text.endswith(first.text[-40:]))
    return next(said_again, first)


_WITH_OTHER_CAUSES = (
    "release-of-attention",
    "cudnn-refuses",
    "no-profile-of-nim",
    "block-does-not-fit",
    "cublaslt-refuses",
)
"""Refusals that a missing package or a dropped generation explains as well."""


def _refusing(case: Case, match: Match) -> str | None:
    """The library whose path or operation the message names, else that of the frame that raises."""
    if match.sign == "cudnn-refuses":
        return "cudnn"
    if match.sign == "no-profile-of-nim":
        return "nim"
    if match.sign == "cublaslt-refuses":
        return "bitsandbytes"
    if match.sign == "no-feasible-kernel":
        return case.component_near(match, "lmdeploy")
    if match.sign == "block-does-not-fit":  # whose kernel it is: Triton and TVM only launch it
        frames = (components.component_of_module(frame.path) for frame in reversed(match.frames))
        owner = next((each for each in frames if each not in (None, "triton", "torch", "tvm", "python")), None)
        return owner or case.component_near(match, case.engine or "triton")
    if match.sign in ("release-of-attention", "no-backend-for-gpu"):  # the engine refuses, not the library it names
        owner = next((c for frame in reversed(match.frames) if (c := components.component_of_module(frame.path))), None)
        return owner or case.engine or "vllm"
    named = first_component([(match.text, False)]) or images.in_other_words(match.text)
    return named if named is not None else case.component_near(match, case.engine or None)


def _verdict(
    case: Case, match: Match, component: str | None, capability: str | None, certainty: Certainty, strength: int,
    known: tuple[Evidence, ...] = (), accepted: str = "",
) -> Verdict:  # fmt: skip
    quoted = case.evidence(match, "the library refuses this GPU itself")
    name = component or "The library"
    gpu = f"compute capability {capability}" if capability else "this GPU"
    missing = (
        case.missing("cc", "whether the library has an implementation for the GPU") if capability is None else None
    )
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"{name} has no implementation of this feature for {gpu}",
        chain=(
            Link(f"The selected code path of {name} is not written for {gpu}", quoted),
            Link("Its own check refuses the GPU before anything is started", quoted),
        ),
        evidence=(quoted, *(e for e in known if e.quote.strip() not in quoted.quote)),
        explains=case.explains(match),
        missing=(missing,) if missing else (),
        rivals=() if certainty is Certainty.PROVEN else ("gpu-too-old", "binary-lacks-arch"),
        remedies=remedies.for_refusal(case, match, component, accepted),
        not_remedies=remedies.IN_VAIN,
        strength=strength,
    )


def _xformers(case: Case) -> Judgement:
    """All operators of xformers end below the GPU; when the extension did not load at all, this line says nothing."""
    match = case.found(_XFORMERS.name)
    if match is None or any("wasn't build with" in line.text for line in case.lines_around(match, 30, 30)):
        return None
    return _verdict(case, match, "xformers", f"{match.group('major')}.{match.group('minor')}", Certainty.LIKELY, 55)


def _instruction(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """An assembler refuses an instruction that the GPU's generation does not have."""
    match = case.found(_INSTRUCTION.name)
    if match is None:
        return None
    what, target = match.group("what") or "", capabilities.parse(match.group("target") or "")
    if target is None or limits.names_number_format(what):
        return None
    quoted = case.evidence(match, "an instruction that the target does not have")
    is_minimum = "requires" in match.text
    gpu = capabilities.parse(gpus.capability) if isinstance(gpus, Gpus) and gpus.capability else None
    if is_minimum and gpu is not None and gpu >= target:
        return RuledOut(f"the GPU, {gpu}, has this instruction: the build target is wrong", (quoted,))
    is_other_generation = bool(re.match(r"tcgen05|tma|wgmma|mma", what)) and (
        target.suffix == "a" or "wgmma" not in what
    )
    certainty = (
        Certainty.LIKELY
        if (is_minimum and gpu is not None) or (not is_minimum and is_other_generation)
        else Certainty.POSSIBLE
    )
    return _verdict(
        case,
        match,
        case.component_near(match, "triton"),
        gpu.dotted if gpu else None if is_minimum else target.plain.dotted,
        certainty,
        45,
        accepted=f"compute capability >= {target.plain.dotted}" if is_minimum else "",
    )  # fmt: skip


def _limit(case: Case, gpus: Gpus | Unknown) -> Judgement:
    """A sentence in which a library states for which GPUs it has the feature."""
    scheme = case.found(_SCHEME.name)
    if scheme is not None:
        sm = scheme.group("sm")
        own = f"{sm[:-1]}.{sm[-1]}" if sm else None
        verdict = _verdict(case, scheme, case.component_near(scheme, "vllm"), own, Certainty.POSSIBLE, 30)
        return msgspec.structs.replace(
            verdict, remedies=_other_checkpoint(scheme), rivals=("quantization-unsupported",)
        )
    limit = limits.read_stated_limit(case, gpus)
    if limit is None or limit.kind == "dtype":
        return None
    if limit.excludes_own is False and limit.kind != "scheme":
        return RuledOut(
            f"the GPU, {limit.own}, is among those that the message accepts",
            (case.evidence(limit.match, "what the library accepts"),),
        )
    certainty = Certainty.LIKELY if limit.is_raised else Certainty.POSSIBLE
    if limit.is_raised and limit.kind == "feature" and (limit.excludes_own or (limit.own and not limit.named)):
        certainty = Certainty.PROVEN
    accepted = f"compute capability >= {limit.minimum}" if limit.goes_up else " or ".join(limit.named)
    accepted = accepted if limit.named else ""
    return _verdict(
        case,
        limit.match,
        limit.component,
        limit.own,
        certainty if limit.kind == "feature" else Certainty.POSSIBLE,
        60 if limit.kind == "feature" else 30,
        gpus.evidence if isinstance(gpus, Gpus) else (),
        accepted,
    )


def _other_checkpoint(scheme: Match) -> tuple[Remedy, ...]:
    need = scheme.group("need") or "80"
    return (
        Remedy(
            kind="files",
            name="checkpoint",
            value="another quantisation, or unquantised FP16",
            summary="Serve a checkpoint in a format whose kernels accept this GPU",
        ),
        Remedy(
            kind="hardware",
            name="gpu",
            value=f"compute capability >= {need[:-1]}.{need[-1]}",
            summary=f"Run it on a GPU with compute capability {need[:-1]}.{need[-1]} or higher",
            risk="high",
        ),
    )


def _written_for_others(case: Case, gpus: Gpus | Unknown, torch: Torch | Unknown) -> Judgement:
    """A failed launch in a library that exists for other generations only; rebuilding cannot help."""
    image = images.read_missing_image(case, gpus, torch)
    if image is None or image.jit_targets is not None or image.torch_warning is not None or image.torch.value is False:
        return None
    majors = generations.written_for(image.component, _surroundings(image.match))
    if image.component is None and image.capability is None and image.is_plain:
        return _open(case, image.match)
    if majors is None:
        return None
    is_outside = generations.is_outside(majors, image.capability)
    quoted = case.evidence(image.match, "a kernel was started that has no code for this GPU")
    if is_outside is False:
        return RuledOut(f"{image.component} is written for {image.capability} too", (quoted,))
    written = derived(
        f"{image.component} is written for compute capability {generations.spoken(majors)}",
        "the project's own statement",
    )
    verdict = _verdict(
        case,
        image.match,
        image.component,
        image.capability,
        Certainty.LIKELY if is_outside else Certainty.POSSIBLE,
        70 if is_outside else 45,
        (written, *of_gpus(gpus, quoted)),
        f"compute capability {generations.spoken(majors)}",
    )
    return _with_other_engine(verdict)


def _open(case: Case, match: Match) -> Verdict:
    """Nothing names the library: one that was never written for this GPU is among the possibilities."""
    verdict = _verdict(case, match, None, None, Certainty.POSSIBLE, 20)
    library = case.missing("packages", "which library the kernel belongs to", "python -m pip list")
    missing = (*verdict.missing, library) if library else verdict.missing
    return _with_other_engine(_replaced(verdict, missing))


def _replaced(verdict: Verdict, missing: tuple[Missing, ...]) -> Verdict:
    return msgspec.structs.replace(verdict, missing=missing, rivals=("binary-lacks-arch", "torch-lacks-arch"))


def _with_other_engine(verdict: Verdict) -> Verdict:
    if any(remedy.kind in ("flag", "env", "config") for remedy in verdict.remedies):
        return verdict
    other = Remedy(
        kind="config",
        name="engine",
        value="another runtime for this GPU",
        summary="Serve the model with a runtime that supports this GPU",
        cost="another engine with other options",
    )
    return msgspec.structs.replace(verdict, remedies=(other, *verdict.remedies))


def _surroundings(match: Match) -> str:
    frames = " ".join(f"{frame.path} {frame.code}" for frame in match.frames[-6:])
    return f"{match.text[:1500]} {frames}"
