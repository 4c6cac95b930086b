"""toolkit-too-old-for-arch: the nvcc in use does not know this GPU, or a library will not use it for this GPU."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.toolchain import _flashinfer_gate as fi
from gpuwhy.causes.toolchain import _flashinfer_remedies as fi_remedies
from gpuwhy.causes.toolchain import _rejected_target as rejected
from gpuwhy.causes.toolchain._rejected_target import RejectedTarget
from gpuwhy.knowledge import flashinfer, toolkits
from gpuwhy.knowledge.components import BUILDS_OF_LLAMA
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.host import Environment, Gpus, Packages, Toolkits, Torch
from gpuwhy.model.remedy import Remedy

_FLASHINFER_RIVALS = (
    "toolkit-path-wrong",
    "toolkit-missing",
    "toolkit-incomplete",
    "no-device-visible",
    "arch-list-override",
    "gpu-too-old",
)
"""Other causes of FlashInfer's message; FACTS: each was reproduced with the real package."""


@cause(
    "toolkit-too-old-for-arch",
    family="Toolchain",
    signs=[
        *fi.SIGNS,
        *rejected.SIGNS,
        says(
            "needs-newer-cuda-for-gpu",
            (
                "requires cuda",
                "requires nvcc",
                "require cuda",
                "cuda toolkit",
                "or newer",
                "or higher",
                "or later",
                "at least",
            ),
            r"(?:\bsm[_ ]?\d{2,3}[af]?\b|compute capability \d+\.\d|blackwell|hopper|ada lovelace)[^\n]{0,80}?"
            r"\b(?:requires?|needs?)\b[^\n]{0,30}?\b(?:CUDA|NVCC)\b[^\n\d]{0,25}(?P<need>1[0-9]\.\d+)"
            r"|\b(?:CUDA|NVCC)\b[^\n\d]{0,25}(?P<need2>1[0-9]\.\d+)[^\n]{0,30}?\b(?:required|needed)\b[^\n]{0,40}?"
            r"(?:\bsm[_ ]?\d{2,3}[af]?\b|compute capability \d+\.\d|blackwell|hopper)",
        ),
        says(
            "nvrtc-rejects-target",
            "invalid value for --gpu-architecture",
            r"nvrtc: error: invalid value for --gpu-architecture",
        ),
    ],
)
def toolkit_too_old_for_arch(
    case: Case,
    gpus: Gpus | Unknown,
    tools: Toolkits | Unknown,
    packages: Packages | Unknown,
    environment: Environment | Unknown,
    torch: Torch | Unknown,
) -> Judgement:
    """The nvcc that is used does not know this GPU's architecture, or a library refuses to use it for this GPU.

    How it shows itself
      Plainly: `nvcc fatal : Unsupported gpu architecture 'compute_120'`, where 120 is the GPU's own number.
      Hidden: FlashInfer says `FlashInfer requires GPUs with sm75 or higher` or `No supported CUDA architectures found
      for major versions [12]` on a GPU that is far newer. The real message, `Failed to get device capability:
      SM 12.x requires CUDA >= 12.9`, is a warning printed once at import, often without any prefix, or not at all.

    Why it happens
      Each CUDA release knows the GPUs of its time: 8.9 and 9.0 came with 11.8, 10.0 and 12.0 with 12.8, 10.3, 12.1
      and the `f` targets with 12.9. FlashInfer 0.6.7 to 0.7.0.post1 ask for 12.9 for every SM 12.x, swallow their own
      exception, keep an empty list of targets, and later take "no target" for "GPU too old". A service can have worked
      for weeks, as long as its kernels lay in the JIT cache.

    How to be sure
      Compare the GPU's compute capability with the version of the nvcc that the failing program resolves: CUDA_HOME,
      then CUDA_PATH, then the nvcc on the service's PATH, then /usr/local/cuda; without any, torch.version.cuda.
      `nvcc --version` in your shell shows what your shell finds, and the header of nvidia-smi shows the driver.

    What helps
      FlashInfer with nvcc 12.8 on SM 12.0: FLASHINFER_CUDA_ARCH_LIST=12.0a, which passes the check and which 12.8 can
      compile. Otherwise a toolkit that knows the GPU, or a release of the library without the check. For a build of
      your own: an older target with PTX (CMAKE_CUDA_ARCHITECTURES=89) until the toolkit is replaced.

    What does not help
      A newer torch or driver; other attention backends; `12.0` without a suffix, `12.0f` with nvcc 12.8, entries
      separated by `;` or `,`; FLASHINFER_NVCC, which the check does not ask.

    Not to be confused with
      toolkit-path-wrong (a good toolkit is installed and not chosen), toolkit-too-old-for-library (the refused target
      or option is not this GPU's), ptxas-too-old-for-arch (Triton's own assembler refuses), gpu-too-old.
    """
    gate = fi.read_gate(case, gpus, tools, packages, environment)
    if gate is not None:
        return _flashinfer(case, gate, gpus, packages, torch)
    refused = rejected.read_rejected_target(case, gpus, tools)
    if refused is not None:
        return _refused(case, refused, gpus, environment)
    return _stated(case, tools)


def _flashinfer(
    case: Case, gate: fi.Gate, gpus: Gpus | Unknown, packages: Packages | Unknown, torch: Torch | Unknown
) -> Judgement:
    excluded = _flashinfer_excluded(case, gate, gpus, packages)
    if excluded is not None:
        return excluded
    missing = fi.deciding_observations(case, gate)
    needed = gate.needed or "12.9"
    certainty = _flashinfer_certainty(gate)
    evidence = [case.evidence(gate.symptom, "the failure as it surfaced")]
    if gate.gate_message is not None:
        evidence.insert(0, case.evidence(gate.gate_message, "the exception that was swallowed, printed as a warning"))
    evidence += _host_evidence(gate, gpus)
    remedies: list[Remedy | None] = [
        fi_remedies.arch_list_remedy(case, gate, gpus),
        fi_remedies.other_toolkit_remedy(gate, needed),
        *fi_remedies.sampler_remedies(case, gate),
        *fi_remedies.kv_cache_remedies(case, gate),
        *fi_remedies.package_remedies(case, gate),
        fi_remedies.toolkit_remedy(needed, torch),
        fi_remedies.patch_remedy(case, gate),
    ]
    title = (
        f"FlashInfer finds CUDA {gate.toolkit} and needs {needed} for this GPU, so it is left without a target to compile for"
        if gate.toolkit
        else f"FlashInfer finds a CUDA version below {needed}, which it needs for this GPU, and is left without a target"
    )
    return Verdict(
        certainty=certainty,
        component="flashinfer",
        title=title,
        chain=fi.chain(case, gate, gpus),
        evidence=tuple(evidence),
        explains=case.explains(gate.symptom, gate.swallowed, gate.gate_message),
        missing=missing,
        rivals=_FLASHINFER_RIVALS if certainty is Certainty.POSSIBLE else _open_rivals(gate),
        remedies=tuple(r for r in remedies if r is not None),
        not_remedies=fi_remedies.in_vain(gate),
        notes=_flashinfer_notes(case, gate),
        strength=85 if gate.gate_message is not None else 70,
    )


def _flashinfer_certainty(gate: fi.Gate) -> Certainty:
    too_old = gate.toolkit is not None and not fi.at_least(gate.toolkit, gate.needed or "12.9")
    if gate.gate_message is not None:
        # the swallowed text shows GPU family and toolkit; only a search of the host tells that no better one is there
        return Certainty.PROVEN if too_old and gate.is_host_searched else Certainty.LIKELY
    if too_old and gate.is_sm12:
        return Certainty.LIKELY
    return Certainty.POSSIBLE


def _flashinfer_excluded(
    case: Case, gate: fi.Gate, gpus: Gpus | Unknown, packages: Packages | Unknown
) -> RuledOut | None:
    """Facts that contradict the check having fired."""
    if gate.gate_message is None and gate.swallowed is not None:
        return RuledOut(
            "the swallowed exception is another one", (case.evidence(gate.swallowed, "what FlashInfer could not do"),)
        )
    known = gpus.evidence if isinstance(gpus, Gpus) else ()
    if gate.better and gate.toolkit is not None:
        best = ", ".join(f"{install.version} at {install.root}" for install in gate.better)
        return RuledOut(f"a toolkit that passes the check is installed ({best}): it is only not the one that is found")
    if gate.is_sm12 is False:
        return RuledOut("the check exists for SM 12.x only, and no GPU here is one", known)
    majors = gate.symptom.group("majors")
    if majors and majors != "None" and "12" not in majors:
        return RuledOut(
            f"the module is written for major versions {majors}: with any toolkit it has no code for SM 12.x",
            (case.evidence(gate.symptom, "the versions the module supports"),),
        )
    if gate.toolkit is not None and gate.gate_message is None and fi.at_least(gate.toolkit, gate.needed or "12.9"):
        at = gate.resolution.evidence if gate.resolution is not None else None
        return RuledOut(f"FlashInfer finds CUDA {gate.toolkit}, which passes its check", (at,) if at else ())
    if gate.version is not None and gate.capability is not None and gate.gate_message is None:
        return _excluded_by_version(gate.version, gate.capability, packages)
    return None


def _excluded_by_version(version: str, capability: str, packages: Packages | Unknown) -> RuledOut | None:
    check = flashinfer.gate(version, capability)
    if check is None or check.minimum_toolkit is not None:
        return None
    evidence = packages.evidence.get("flashinfer-python") if isinstance(packages, Packages) else None
    return RuledOut(f"FlashInfer {version} has no such check for {capability}", (evidence,) if evidence else ())


def _open_rivals(gate: fi.Gate) -> tuple[str, ...]:
    rivals = []
    if not gate.is_host_searched:
        rivals.append("toolkit-path-wrong")
    if gate.resolution is None or gate.is_without_nvcc:
        rivals.append("toolkit-missing")
    return tuple(rivals)


def _host_evidence(gate: fi.Gate, gpus: Gpus | Unknown) -> list[Evidence]:
    evidence = list(gpus.evidence) if isinstance(gpus, Gpus) else []
    if gate.resolution is not None and gate.resolution.evidence is not None:
        evidence.append(gate.resolution.evidence)
    return evidence


def _flashinfer_notes(case: Case, gate: fi.Gate) -> tuple[str, ...]:
    notes = []
    if gate.version is None and gate.symptom.frames:
        frame = case.frame_in(gate.symptom, "flashinfer/jit/core.py")
        dated = flashinfer.frame_versions(frame.function, frame.line) if frame and frame.line else None
        if dated:
            notes.append(
                f"The line numbers of the traceback are those of flashinfer-python {dated.first}"
                + (f" to {dated.last}." if dated.last != dated.first else ".")
            )
    if gate.gate_message is not None:
        notes.append("If it worked before with the same packages: the kernels then came from the JIT cache.")
    return tuple(notes)


def _refused(
    case: Case, refused: RejectedTarget, gpus: Gpus | Unknown, environment: Environment | Unknown
) -> Judgement:
    match = refused.match
    if refused.is_dropped or refused.capability is None:  # "native" is a word that old compilers lack, no GPU's target
        return None
    quoted = case.evidence(match, "the compiler names the target it does not know")
    if refused.is_gpus_own is False:
        known = gpus.evidence if isinstance(gpus, Gpus) else ()
        return RuledOut(f"the refused target {refused.target} is not that of a GPU here", (quoted, *known))
    named_by = _variable_naming(refused, environment)
    first = refused.first_release
    used = refused.resolution.version if refused.resolution else None
    contradicted = used is not None and first is not None and toolkits.accepts(used, refused.target).value is True
    if contradicted:
        return RuledOut(f"CUDA {used} knows {refused.target}: another nvcc was run", (quoted,))
    component = case.component_near(match)
    missing = tuple(
        m
        for m in (
            case.missing("cc", "whether the refused target is that of the GPU"),
            case.missing("other_toolkits", "a newer toolkit that is installed but not chosen changes the fix"),
        )
        if m is not None
    )
    is_own = refused.is_gpus_own is True
    certainty = Certainty.LIKELY if is_own or named_by is None else Certainty.POSSIBLE
    if is_own and used is not None and refused.resolution is not None:
        certainty = Certainty.PROVEN if named_by is None else Certainty.LIKELY
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"nvcc {used or ''}".strip() + f" does not know {refused.target}, the target of this GPU",
        chain=(
            Link(f"The build asks for {refused.target}", quoted),
            Link(
                f"{refused.target} exists from CUDA {first} on"
                if first
                else f"{refused.target} is newer than this nvcc",
                derived(f"first accepted by CUDA {first}", "measured with ptxas of each release")
                if first
                else inferred("no measured release knows this target"),
            ),
            Link("nvcc refuses before it compiles anything", quoted),
        ),
        evidence=(quoted, *(gpus.evidence if isinstance(gpus, Gpus) else ())),
        explains=case.explains(match),
        missing=missing,
        rivals=("toolkit-too-old-for-library", "toolkit-path-wrong", "arch-list-override"),
        remedies=_refused_remedies(case, refused, component, first),
        strength=72 if is_own else 60,
    )


def _variable_naming(refused: RejectedTarget, environment: Environment | Unknown) -> str | None:
    """The architecture variable that asks for the refused target, when one is known to."""
    if not isinstance(environment, Environment) or refused.capability is None:
        return None
    names = ("TORCH_CUDA_ARCH_LIST", "FLASHINFER_CUDA_ARCH_LIST", "CMAKE_CUDA_ARCHITECTURES", "CUDAARCHS")
    digits = refused.capability.replace(".", "")
    for name in names:
        value = environment.variables.get(name)
        if value and (refused.capability in value or digits in value):
            return name
    return None


_OWN_TARGETS = frozenset({"vllm", "sgl-kernel", "sglang", "torch", "torchvision", "torchaudio", "flash-attn", "flashinfer", "xformers", "transformer-engine", "deepgemm"})  # fmt: skip
"""Their CMake or setup scripts ask torch or themselves for the targets, and leave CMAKE_CUDA_ARCHITECTURES aside."""


def _older_target(refused: RejectedTarget) -> str:
    """A target before the refused one that older toolkits know, and whose PTX serves the GPU."""
    number = int((refused.capability or "12.0").replace(".", ""))
    return "89" if number >= 100 else "86" if number >= 89 else "80" if number > 80 else "70"


def _asks_torch_for_targets(case: Case, match: Match, component: str | None) -> bool:
    """An extension that torch's builder compiles, and that names no targets itself."""
    if component in _OWN_TARGETS:
        return False
    near = (match.line, *case.lines_around(match, 30, 20))
    return any(
        re.search(r"TORCH_EXTENSION_NAME|cpp_extension|\brunning build_ext\b", line.text[:6000]) for line in near
    )


def _refused_remedies(
    case: Case, refused: RejectedTarget, component: str | None, first: str | None
) -> tuple[Remedy, ...]:
    remedies = [
        Remedy(
            kind="toolkit",
            name="cuda",
            value=f">={first}" if first else "newer",
            summary=f"Install CUDA {first or 'of a newer release'} or later and let the build use it (CUDA_HOME and PATH)",
            cost="2 to 6 GB of disk, and a rebuild; the driver is not touched",
            check=(
                "nvcc --version",
                f"nvcc --list-gpu-arch | grep {refused.target.rstrip('af').replace('sm_', 'compute_')}",
            ),
            risk="medium",
        )
    ]
    older = _older_target(refused)
    takes_cmakes_targets = component not in _OWN_TARGETS and _is_cmake(case, refused.match)
    if component in BUILDS_OF_LLAMA or takes_cmakes_targets:
        remedies.append(
            Remedy(
                kind="config",
                name="CMAKE_CUDA_ARCHITECTURES",
                value=older,
                summary="Build for an older target: its PTX is compiled for the GPU by the driver at the first start",
                cost="slower first start, and kernels without the GPU's newer instructions",
                check=("the build ends without 'Unsupported gpu architecture'",),
                is_sure=component in BUILDS_OF_LLAMA,
            )
        )
    elif refused.capability == "8.9" and _asks_torch_for_targets(case, refused.match, component):
        remedies.append(
            Remedy(
                kind="env",
                name="TORCH_CUDA_ARCH_LIST",
                value=f"{older[:-1]}.{older[-1]}",
                summary="Build for 8.6, whose code runs on 8.9 as it is: set it in the environment of the build",
                cost="kernels without FP8",
                check=("the build ends without 'Unsupported gpu architecture'",),
                is_sure=False,
            )
        )
    elif component == "deepgemm":
        remedies.append(
            Remedy(
                kind="package",
                name="deep_gemm",
                value="newer",
                summary="A newer DeepGEMM asks old toolkits for targets that they know",
                is_sure=False,
            )
        )
    return tuple(remedies)


def _is_cmake(case: Case, match: Match) -> bool:
    return any("cmake" in line.text.lower() for line in case.lines_around(match, 100, 30))


def _stated(case: Case, tools: Toolkits | Unknown) -> Judgement:
    """A library says itself that it wants a newer CUDA for this GPU, or NVRTC refuses the GPU's target."""
    match = case.found("needs-newer-cuda-for-gpu", "nvrtc-rejects-target")
    if match is None or rejected.OFFERS_TO_LEAVE_OUT.search(match.text):
        return None
    need = match.group("need") or match.group("need2")
    component = case.component_near(match)
    resolution = tools.resolved_by(component or "torch") if isinstance(tools, Toolkits) else Unknown("not examined")
    used = None if isinstance(resolution, Unknown) else resolution.version
    quoted = case.evidence(
        match, "the library states what it needs" if need else "the run-time compiler refuses the target"
    )
    if used is not None and need is not None and fi.at_least(used, need):
        return RuledOut(f"CUDA {used} is used, and {need} is asked for", (quoted,))
    certain = used is not None and need is not None
    missing = (
        [Missing("cuda_toolkit", "nvcc --version", "the release that the program really uses")] if used is None else []
    )
    return Verdict(
        certainty=Certainty.LIKELY if certain or (need is not None and match.event is not None) else Certainty.POSSIBLE,
        component=component,
        title=f"CUDA {need} or later is needed for this GPU"
        if need
        else "The run-time compiler (NVRTC) does not know this GPU",
        chain=(
            Link(
                f"CUDA {used} is used" if used else "An older CUDA is used",
                quoted if need else inferred("nobody looked"),
            ),
            Link("the library refuses it for this GPU", quoted),
        ),
        evidence=(quoted,),
        explains=case.explains(match),
        missing=tuple(missing),
        rivals=("toolkit-path-wrong", "torch-lacks-arch"),
        remedies=(
            Remedy(
                kind="toolkit",
                name="cuda",
                value=f">={need}" if need else "newer",
                summary=f"Use CUDA {need or 'of a newer release'}" + (" or later" if need else ""),
                risk="medium",
            ),
        ),
        strength=55 if need else 35,
    )
