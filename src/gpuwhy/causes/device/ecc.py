"""ecc: a GPU met an uncorrectable memory error."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.device import _faults as faults
from gpuwhy.causes.device import _verdicts as verdicts
from gpuwhy.knowledge import xid_origins as origins
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_WORN = lazy_pattern(r"Remapp\w{1,4} Failure|failure to (?:retire|remap)|could not be (?:retired|remapped)|Row remap\w{0,5} fail", re.IGNORECASE)  # fmt: skip
_PENDING = lazy_pattern(r"(?:Retired Pages|Remapp\w{2,4}|Pending Page|Pending).{0,20}Pending|(?:Pending|Page Blacklist) {1,30}: Yes|remapping pending", re.IGNORECASE)  # fmt: skip


@cause(
    "ecc",
    family=verdicts.FAMILY,
    signs=[
        *faults.SIGNS,
        says(
            "error-code",
            ("error 214", "code=214", "214 ("),
            r"\b(?:CUDA|cuda|Cuda)\w{0,20} ?(?:error|failure|Error)[ :=(]{1,3}214\b|code=214\b|\b214 \(.{0,40}ECC",
        ),
        says("sick", ("unspecified launch failure", "err!", "busy or unavailable"), r"unspecified launch failure|\|.{0,60}\bERR!|CUDA-capable device\(s\) is/are busy or unavailable"),
        says("retired", ("pending", "remapp", "retired"), rf"{_WORN.pattern}|{_PENDING.pattern}"),
        says(
            "counted",
            ("uncorrectable", "double bit", "dram uncorr", "sram uncorr"),
            r"(?:(?:DRAM|SRAM|HBM)? ?Uncorrectable|Double Bit)(?: Error| Parity| SEC-DED| ECC){0,2}\s{0,30}: {0,3}[1-9]\d{0,12}\s*$",
        ),
    ],
    leads_to=("kernel-illegal-address", "gpu-xid-other"),
)  # fmt: skip
def ecc(case: Case) -> Judgement:
    """A GPU's memory delivered data that ECC could not correct.

    How it shows itself
      `CUDA error: uncorrectable ECC error encountered` (cudaErrorECCUncorrectable, 214), from whatever kernel ran. Kernel log: Xid
      48 (double bit error), 94 (contained: only that process dies) or 95 (not contained), with 63 or 64 (a page or row was, or could not
      be, taken out of use). Wrappers hide it: `timed out waiting for llama runner to start`, `EngineDeadError`.

    Why it happens
      A cell of the GPU's memory is damaged, or was hit by radiation. The driver takes the row out of use (row remapping, page
      retirement), which becomes effective with the next reset. When no spare row is left, the card has to go.

    How to be sure
      `nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT`: aggregate uncorrectable errors, `Pending : Yes`, `Remapping Failure Occurred : Yes`.

    What helps
      Stop everything on that GPU and reset it (or reboot), so that the row is replaced. A remapping failure, or errors that
      come again, is a case for the warranty. Until then leave the GPU out with CUDA_VISIBLE_DEVICES.

    What does not help
      Starting again without a reset; switching ECC off (answers are then silently wrong); another model, driver or engine.

    Not to be confused with
      kernel-illegal-address (`an illegal memory access`: a program's fault, unless an Xid 48, 94 or 95 stands beside it),
      wrong-output, gpu-oom-*.
    """
    reading = verdicts.read(case, origins.MEMORY)
    if reading is None:
        return _by_number(case)
    own = reading.own
    worn = own.number in origins.WORN_OUT or _is_worn(case)
    retired = next((m for m in case.all("retired", "counted") if m.text != own.text and not m.is_code), None)
    extra = (case.evidence(retired, "what the driver counts and takes out of use"),) if retired is not None else ()
    is_old = own.is_count and faults.symptom(case, _STOPPED_ON_THE_GPU) is None
    return Verdict(
        certainty=Certainty.POSSIBLE if is_old else reading.certainty,
        component="gpu-hardware",
        title=f"The GPU's memory has an error that cannot be corrected{verdicts.device(own)}",
        chain=verdicts.chain(reading, "A cell of the GPU's memory is damaged" if own.is_kernels else "A cell of the GPU's memory delivered wrong bits", "ECC cannot correct what was read"),
        evidence=(*reading.evidence("ECC could not correct what was read"), *extra),
        against=reading.against,
        explains=faults.explained(case, reading.own_all),
        missing=_missing(case),
        rivals=reading.rivals,
        remedies=_remedies(worn=worn),
        not_remedies=_IN_VAIN,
        notes=("A row is replaced with the next reset only; until then the same address fails again.",),
        strength=verdicts.LATER if is_old else reading.strength,
    )  # fmt: skip


_STOPPED_ON_THE_GPU = lazy_pattern(
    r"(?:CUDA|Cuda) (?:error|failure)(?!.{0,40}out of memory)|CUDA_ERROR_(?!OUT)|cudaError(?!Mem)|busy or unavailable|NCCL WARN|unhandled cuda error"
)
"""What a counted error must stand beside to be more than a record."""


def _by_number(case: Case) -> Judgement:
    """Error 214 without its text."""
    if faults.read_faults(case):
        return None
    match = next((m for m in case.all("error-code", "counted") if not m.is_code), None)
    if match is None:
        return _suspected(case)
    is_error = match.sign == "error-code"
    seen = case.evidence(match, "CUDA error 214 is an uncorrectable ECC error" if is_error else "the driver counts uncorrectable errors")  # fmt: skip
    return Verdict(
        certainty=Certainty.LIKELY,
        component="gpu-hardware",
        title="The GPU's memory has an error that cannot be corrected",
        chain=(
            Link("A cell of the GPU's memory is damaged", inferred("the kernel log is not shown")),
            Link("ECC cannot correct what was read", seen),
        ),
        evidence=(seen,),
        explains=tuple(sorted({*case.explains(match), *(faults.explained(case, ()) if is_error else ())})),
        missing=_missing(case),
        remedies=_remedies(worn=False),
        not_remedies=_IN_VAIN,
        strength=60 if is_error else 40,
    )


def _suspected(case: Case) -> Judgement:
    """A failure that the driver leaves unnamed to the program: its own log and counters tell."""
    match = next((m for m in case.all("sick") if not m.is_code), None)
    if match is None or _WITHOUT_ECC.search(f"{case.facts.value('gpu') or ''} {case.facts.value('gpus') or ''}"):
        return None
    clean = faults.clean_kernel_log(case)
    if clean is not None:
        return RuledOut("the kernel log tells of no memory error", (clean,))
    seen = case.evidence(match, "GPUs with a memory error show themselves so, among others")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component="gpu-hardware",
        title="The GPU's memory may have an error; its counters and the kernel log tell",
        chain=(
            Link(
                "A cell of the GPU's memory is damaged", inferred("neither the kernel log nor the counters are shown")
            ),
            Link("The driver stops what runs on the GPU, or lets nothing start on it", seen),
        ),
        evidence=(seen,),
        explains=case.explains(match),
        missing=_missing(case),
        rivals=("gpu-xid-other", "gpu-lost", "kernel-illegal-address"),
        remedies=_remedies(worn=False),
        not_remedies=_IN_VAIN,
        strength=13,
    )


_WITHOUT_ECC = lazy_pattern(r"GeForce|\b(?:GTX|RTX) ?(?:\d{4}(?!\s?Ada)|TITAN)|TITAN", re.IGNORECASE)
"""Cards that neither count memory errors nor stop for them, as a rule."""


def _is_worn(case: Case) -> bool:
    texts = [match.text for match in case.all("retired")]
    texts += [str(each) for each in case.facts.value("gpu_errors") or ()]
    return any(_WORN.search(text[:400]) and not re.search(r": {0,3}No\b|: {0,3}N/A\b", text[:400]) for text in texts)


def _missing(case: Case) -> tuple[Missing, ...]:
    asked = (
        case.missing("gpu_errors", "whether rows wait for a reset, or none are left", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"),
        faults.kernel_log_missing(case, "which GPU, and whether it came before"),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _remedies(*, worn: bool) -> tuple[Remedy, ...]:
    card = verdicts.replace(
        "gpu",
        "Have the card replaced: no spare memory is left (until then leave it out with CUDA_VISIBLE_DEVICES)" if worn else "Have the card replaced when errors come again after the reset, or the field diagnostics fail",
        is_sure=worn,
    )  # fmt: skip
    return (card, verdicts.reset(is_sure=False)) if worn else (verdicts.reset(), card)


_IN_VAIN = (
    NotARemedy("starting again without a reset", "the damaged row stays in use until the GPU is reset"),
    NotARemedy("switching ECC off", "the errors remain, and answers become silently wrong"),
    verdicts.SETTINGS,
)
