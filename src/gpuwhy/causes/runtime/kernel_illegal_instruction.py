"""kernel-illegal-instruction: a kernel holds an instruction on which this GPU traps."""

from __future__ import annotations

from gpuwhy.causes._case import Case, Match, derived, inferred
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.runtime import _faults as faults
from gpuwhy.knowledge.known_faults import KnownFault
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import NotARemedy, Remedy


@cause(
    "kernel-illegal-instruction",
    family="Run time",
    signs=[
        says("blocking", "cuda_launch_blocking=1", r"(?<!passing )(?<!passing `)CUDA_LAUNCH_BLOCKING=1"),
        says("warp-illegal-instruction", ("warp illegal instruction", "illegal instruction encoding", "illegal instruction parameter", "misaligned pc"), r"Warp Illegal Instruction|Illegal Instruction (?:Encoding|Parameter)"),
        says(
            "illegal-instruction",
            ("illegal instruction was encountered", "illegalinstruction", "illegal_instruction", "error 715", "error code: 715", "invalid program counter", "invalidpc", "invalid_pc", "hardware stack error"),
            r"an illegal instruction was encountered|cudaErrorIllegalInstruction|CUDA_ERROR_ILLEGAL_INSTRUCTION|CUDA (?:error|failure):? ?\(?715\b|error code:? 715\b|invalid program counter|cudaErrorInvalidPc|CUDA_ERROR_INVALID_PC|hardware stack error",
        ),
    ],
)  # fmt: skip
def kernel_illegal_instruction(case: Case, gpus: Gpus | Unknown, experiments: Experiments | Unknown) -> Judgement:
    """A kernel holds an instruction on which this GPU traps, or was compiled wrongly for it.

    How it shows itself
      `CUDA error: an illegal instruction was encountered` (cudaErrorIllegalInstruction, 715), `invalid program counter`, in cuda-gdb
      `Warp Illegal Instruction`, in the kernel log Xid 13 with `Illegal Instruction Encoding`. The same model runs on another generation.

    Why it happens
      Hand-written PTX in a kernel library uses an instruction or an operand that a newer generation no longer allows (the
      cache policy of Marlin's asynchronous copy on Hopper and Blackwell), or the compiler's release has a fault for the target.

    How to be sure
      Kernel library and GPU generation decide. Nothing in the text names the kernel: run with CUDA_LAUNCH_BLOCKING=1, look
      for the quantisation or attention kernel that the log says it uses, and for the nvcc that built it.

    What helps
      A release of the library (or of the engine that carries it) with the fix; another kernel for the same job: another
      quantisation format, another backend. A build with another nvcc, where the compiler is at fault.

    What does not help
      Other versions of torch or CUDA around the same kernel. TORCH_USE_CUDA_DSA.

    Not to be confused with
      `Illegal instruction (core dumped)` of the shell: that is the CPU (a build for AVX512, say). binary-lacks-arch (`no kernel
      image`), kernel-illegal-address.
    """
    match = next((m for m in case.all("warp-illegal-instruction", "illegal-instruction") if not m.is_code), None)
    if match is None:
        return None
    fault = faults.fault_known(case, "kernel-illegal-instruction", gpus)
    component = _component(case, match, fault, experiments)
    capability = gpus.capability if isinstance(gpus, Gpus) else None
    certainty = _certainty(match, experiments)
    quoted = Evidence("the GPU trapped on an instruction", faults.said(match), match.place)
    known = derived(fault.mechanism, fault.provenance) if fault is not None else None
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"A kernel of {component} holds an instruction that this GPU{f' ({capability})' if capability else ''} does not execute",
        chain=(
            Link(f"A kernel of {component} was written or compiled for another generation", known or inferred("which kernel is not known")),
            Link("The GPU traps on it", quoted),
        ),
        evidence=tuple(each for each in (quoted, known, *_gpu(gpus), *faults.tried(experiments)) if each is not None),
        explains=case.explains(match, *case.all("illegal-instruction")),
        missing=() if certainty is Certainty.PROVEN else _missing(case, component),
        rivals=("binary-lacks-arch", "kernel-illegal-address") if certainty is Certainty.POSSIBLE else (),
        remedies=_remedies(case, match, component, fault, experiments),
        not_remedies=(
            NotARemedy("another torch or CUDA around the same kernel", "the instruction stays in it"),
            NotARemedy("CUDA_LAUNCH_BLOCKING=1 for good", "it finds the kernel, and cures nothing"),
        ),
        strength=70,
    )  # fmt: skip


def _component(case: Case, match: Match, fault: KnownFault | None, experiments: Experiments | Unknown) -> str:
    if match.sign == "warp-illegal-instruction":
        owner = faults.owner_of(faults.kernel_named(case, match))
        if owner is not None:
            return owner
    is_blocking = str(case.facts.value("env.CUDA_LAUNCH_BLOCKING") or "") == "1" or case.found("blocking") is not None
    found = faults.component_of(case, match, experiments, is_synchronous=is_blocking)
    if fault is not None and found == "torch":
        return fault.component
    return found


def _certainty(match: Match, experiments: Experiments | Unknown) -> Certainty:
    if match.sign == "warp-illegal-instruction":
        return Certainty.PROVEN
    if isinstance(experiments, Experiments) and experiments.good and experiments.bad:
        return Certainty.PROVEN
    return Certainty.LIKELY


def _gpu(gpus: Gpus | Unknown) -> tuple[Evidence, ...]:
    return gpus.evidence[:1] if isinstance(gpus, Gpus) else ()


def _missing(case: Case, component: str) -> tuple[Missing, ...]:
    package = faults.PACKAGES.get(component, component)
    return faults.asked(
        case.missing("cc", "the GPU's generation decides which instructions it has"),
        case.missing(f"packages.{package}", "which release or build holds the kernel", f"python -m pip show {package}"),
        case.missing("cuda_toolkit", "which nvcc built the kernel, where it was built here"),
        case.missing(
            "tests", "whether another kernel for the same job works", "run with another quantisation or backend"
        ),
    )


def _remedies(
    case: Case, match: Match, component: str, fault: KnownFault | None, experiments: Experiments | Unknown
) -> tuple[Remedy, ...]:
    known = list(faults.remedies_known(fault))
    if fault is not None and fault.component == component:
        known.append(Remedy(kind="patch", name=f"{component} source", value="remove the instruction", summary=f"Patch the source: {fault.mechanism}", is_sure=False))  # fmt: skip
    other = Remedy(kind="files", name="checkpoint", value="other quantisation format", summary="A checkpoint whose format uses another kernel", is_sure=False)  # fmt: skip
    rebuild = Remedy(kind="package", name=faults.PACKAGES.get(component, component), value="rebuild", summary="Build it for this GPU with a newer nvcc", is_sure=False, rank=4)  # fmt: skip
    if known:
        return faults.unique((*faults.remedies_tried(experiments), *known, other))
    return faults.unique((*faults.remedies_to_try(case, match, component, experiments), rebuild, other))
