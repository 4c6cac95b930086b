"""kernel-illegal-address: a kernel reads or writes outside its memory."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.runtime import _faults as faults
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.experiments import Experiments
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy


@cause(
    "kernel-illegal-address",
    family="Run time",
    leads_to=("startup-timeout",),
    signs=[
        says(
            "sanitizer",
            ("invalid __global__", "invalid __shared__", "invalid __local__", "warp illegal address", "warp out-of-range address", "out-of-range shared or local", "warp misaligned address", "lane illegal address", "lane user stack overflow"),
            r"Invalid __(?:global|shared|local)__ (?:read|write|atomic)|(?:Warp|Lane) (?:Illegal|Out-of-range|Misaligned) Address|Out[- ]of[- ]range (?:shared or local )?address",
        ),
        says(
            "illegal-address",
            ("illegal memory access", "illegaladdress", "illegal_address", "cuda error 700", "error code: 700", "illegal address", "error 700"),
            r"illegal memory access was encountered|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS|CUDA error:? ?\(?700\b|(?:error|status|code)[ :=(]{1,3}700\b.{0,60}|illegal memory access",
        ),
        says("misaligned", ("misaligned address", "misalignedaddress", "misaligned_address"), r"misaligned address|cudaErrorMisalignedAddress|CUDA_ERROR_MISALIGNED_ADDRESS"),
        says("launch-failure", ("unspecified launch failure", "cudaerrorlaunchfailure", "cuda_error_launch_failed", "address space"), r"unspecified launch failure|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED|operation not supported on global/shared address space|CUDA_ERROR_INVALID_ADDRESS_SPACE"),
        says(
            "library-failed",
            ("_status_execution_failed", "_status_internal_error"),
            r"CUBLAS_STATUS_EXECUTION_FAILED|CUDNN_STATUS_EXECUTION_FAILED|CUSPARSE_STATUS_EXECUTION_FAILED",
        ),
        says("device-assert", ("device-side assert", "cuda_error_assert", "cudaerrorassert"), r"device-side assert triggered|CUDA_ERROR_ASSERT|cudaErrorAssert"),
        says("assertion", "assertion `", r"\.(?:cu|cuh|py|h):\d{1,6}:.{0,300}(?:block: \[\d.{0,60})?Assertion `(?P<what>[^`]{1,200})` failed"),
        says("mmu-fault", ("xid (", "mmu fault"), r"Xid \([^)]{1,60}\): (?:31|13)\b"),
        says("hardware", ("xid (", "io_page_fault", "uncorrectable ecc", "sxid ("), r"Xid \([^)]{1,60}\): (?:48|63|64|74|79|92|94|95|119|14[4-9]|150)\b|SXid \(|IO_PAGE_FAULT|[Uu]ncorrectable ECC"),
        says("blocking", "cuda_launch_blocking=1", r"(?<!passing )(?<!passing `)CUDA_LAUNCH_BLOCKING=1"),
    ],
)  # fmt: skip
def kernel_illegal_address(case: Case, experiments: Experiments | Unknown) -> Judgement:
    """A kernel read or wrote outside its memory. The frame that is shown is only where it surfaced.

    How it shows itself
      `CUDA error: an illegal memory access was encountered` (cudaErrorIllegalAddress, 700), `misaligned address`, `unspecified
      launch failure`; from compute-sanitizer `Invalid __global__ read of size 4`, from cuda-gdb `Warp Illegal Address`. NCCL's watchdog
      often reports it first. The kernel log has Xid 31 (or 13), the engine then says that EngineCore died.

    Why it happens
      A fault in a kernel or in what it is told: an index that overflows 32 bits with long inputs, metadata that do not fit
      the cache (chunked prefill with prefix caching, draft tokens), a fused pass or a graph replayed with stale addresses,
      token ids beyond the vocabulary. Seldom the hardware: memory errors, or peer traffic that was lost.

    How to be sure
      Launches are asynchronous: run once with CUDA_LAUNCH_BLOCKING=1 (and without CUDA graphs), then the frame is the right one.
      Sweep the input length, the release before and after, one backend or pass at a time. compute-sanitizer, or a core
      dump (CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1), names the kernel. Look for ECC errors and Xid lines first.

    What helps
      What the sweep shows: another attention backend, a pass switched off, no draft model, no prefix caching; the release
      that mends it, or the one before it came.

    What does not help
      A shorter context, unless the length is what the sweep shows. Lower memory fractions. TORCH_USE_CUDA_DSA: it only acts
      when torch is compiled.

    Not to be confused with
      wrong-output (no error), context-too-long (a device assertion whose bound is the number of positions), p2p-iommu
      (Xid 31 beside IO_PAGE_FAULT), ecc, kernel-illegal-instruction.
    """
    match = _decisive(case)
    if match is None:
        return None
    blocking = str(case.facts.value("env.CUDA_LAUNCH_BLOCKING") or "") == "1" or case.found("blocking") is not None
    is_synchronous = blocking or match.sign == "sanitizer"
    kernel = faults.kernel_named(case, match) if match.sign == "sanitizer" else None
    component = faults.owner_of(kernel) or faults.component_of(case, match, experiments, is_synchronous=is_synchronous)
    hardware = case.found("hardware")
    certainty = _certainty(match, experiments, hardware, is_synchronous=is_synchronous)
    quoted = _quoted(case, match)
    tried = faults.tried(experiments)
    return Verdict(
        certainty=certainty,
        component=component,
        title=f"A kernel of {component} touches memory that is not its own" + (" (the frame shown is where it surfaced)" if not is_synchronous else ""),
        chain=(
            Link(f"A kernel of {component} computes a wrong address", kernel or next(iter(tried), None) or inferred("which kernel is not known: launches are asynchronous")),
            Link("The GPU stops the program at that access", quoted),
            Link("The error surfaces at a later call", inferred("CUDA reports it at the next synchronisation")),
        ),
        evidence=(quoted, *tried),
        against=(case.evidence(hardware, "a fault of the hardware or of peer traffic stands beside it"),) if hardware else (),
        explains=case.explains(match, *case.all("illegal-address", "misaligned", "launch-failure", "device-assert")),
        missing=() if certainty is Certainty.PROVEN else _missing(case, component),
        rivals=_rivals(case, match, hardware),
        remedies=faults.unique((*_of_kernel(component, experiments), *faults.remedies_to_try(case, match, component, experiments))),
        not_remedies=_IN_VAIN,
        notes=("CUDA_LAUNCH_BLOCKING=1 shows the right frame, and cures nothing.",),
        strength=_STRENGTH[match.sign] if hardware is None else 20,
    )  # fmt: skip


_ORDER = (
    "sanitizer",
    "illegal-address",
    "misaligned",
    "launch-failure",
    "device-assert",
    "mmu-fault",
    "library-failed",
)
_STRENGTH = {"sanitizer": 90, "illegal-address": 60, "misaligned": 60, "launch-failure": 35, "device-assert": 34, "mmu-fault": 28, "library-failed": 26}  # fmt: skip
_STATEMENT = {
    "sanitizer": "the debugger names the access",
    "device-assert": "a check inside a kernel failed",
    "launch-failure": "a kernel ended in a way that CUDA does not name",
    "library-failed": "a library's kernel did not run to its end; who broke it may have been launched before",
    "mmu-fault": "the driver logs a fault of the GPU's memory unit",
}
_LOOKS_UP = lazy_pattern(r"position|rotary|cos_sin|max_position", re.IGNORECASE)


def _decisive(case: Case) -> Match | None:
    """The first line that tells of it, the most literal kind first; no advice, and no quoted code."""
    for sign in _ORDER:
        for match in case.all(sign):
            if not match.is_code and match.line.level not in ("info", "debug"):
                return match
    return None


def _quoted(case: Case, match: Match) -> Evidence:
    """The line that tells of it. Of a failed check that is the assertion, which the kernel prints before anybody sees the error."""
    assertion = case.found("assertion") if match.sign == "device-assert" else None
    if assertion is not None and not assertion.is_code and assertion.place.path == match.place.path and (assertion.place.line or 0) < (match.place.line or 0):  # fmt: skip
        return case.evidence(assertion, _STATEMENT["device-assert"])
    return Evidence(
        _STATEMENT.get(match.sign, "a kernel touched memory that is not its own"), faults.said(match), match.place
    )


def _certainty(
    match: Match, experiments: Experiments | Unknown, hardware: Match | None, *, is_synchronous: bool
) -> Certainty:
    if hardware is not None or match.sign in ("launch-failure", "device-assert", "mmu-fault", "library-failed"):
        return Certainty.POSSIBLE
    if match.sign == "sanitizer":
        return Certainty.PROVEN
    is_isolated = isinstance(experiments, Experiments) and bool(experiments.good) and bool(experiments.bad)
    return Certainty.PROVEN if is_isolated or (is_synchronous and bool(match.frames)) else Certainty.LIKELY


def _of_kernel(component: str, experiments: Experiments | Unknown) -> tuple[Remedy, ...]:
    """A library whose single operators can be left out, when the experiments name one of its kernels."""
    if component != "flaggems" or not isinstance(experiments, Experiments):
        return ()
    return (Remedy(kind="config", name="flag_gems operators", value="exclude index", summary="Leave the faulty operator to torch", is_sure=False, rank=0),)  # fmt: skip


def _missing(case: Case, component: str) -> tuple[Missing, ...]:
    package = faults.PACKAGES.get(component, component)
    return faults.asked(
        case.missing("env.CUDA_LAUNCH_BLOCKING", "with synchronous launches the frame is the right one", "CUDA_LAUNCH_BLOCKING=1 COMMAND"),
        case.missing("tests", "whether the release before, another backend or a shorter input works", "run the same request with one thing changed at a time"),
        case.missing(f"packages.{package}", "which release holds the kernel", f"python -m pip show {package}"),
        case.missing("kernel_log", "whether an Xid of the hardware came first", "journalctl -k -b | grep -E 'Xid|IO_PAGE_FAULT'"),
    )  # fmt: skip


def _rivals(case: Case, match: Match, hardware: Match | None) -> tuple[str, ...]:
    if hardware is not None:
        return ("p2p-iommu",) if "IO_PAGE_FAULT" in hardware.text else ("ecc", "nvlink-fault", "gpu-xid-other")
    if match.sign == "device-assert":
        return ("context-too-long",)
    if match.sign == "library-failed":
        return ("gpu-oom-graph-or-activation", "cuda-major-mismatch", "binary-lacks-arch")
    if match.sign == "mmu-fault":
        return ("gpu-xid-other", "p2p-iommu")
    assertion = case.found("assertion")
    return ("context-too-long",) if assertion and _LOOKS_UP.search(assertion.text) else ()


_IN_VAIN = (
    NotARemedy("CUDA_LAUNCH_BLOCKING=1 for good", "it finds the kernel, and slows everything down"),
    NotARemedy("TORCH_USE_CUDA_DSA", "it only acts when torch itself is compiled"),
    NotARemedy("a lower GPU memory fraction", "memory is not short"),
)
