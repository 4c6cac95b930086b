"""gpu-xid-other: another fault of the GPU or its driver, reported by the driver, came first."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.device import _faults as faults
from gpuwhy.causes.device import _verdicts as verdicts
from gpuwhy.causes.device._faults import Fault
from gpuwhy.causes.device._verdicts import Reading
from gpuwhy.knowledge import xid_origins as origins
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_GSP = lazy_pattern(r"\bGSP\b|gspfw|kgsp|\bgsp_", re.IGNORECASE)
_START = lazy_pattern(r"RmInitAdapter|rm_init_adapter|Xid \([^)]{1,60}\): (?:143|61|62)\b", re.IGNORECASE)
_OPEN_MODULES = lazy_pattern(r"requires use of the NVIDIA open kernel modules", re.IGNORECASE)
_STATES = {
    "firmware": "the firmware of the GPU",
    "driver": "the driver",
    "hardware": "the GPU",
    "link": "the GPU, or its way to the host",
    "program": "the program",
}


@cause(
    "gpu-xid-other",
    family=verdicts.FAMILY,
    leads_to=("kernel-illegal-address", "startup-timeout", "kernel-illegal-instruction",),
    signs=[
        *faults.SIGNS,
        says(
            "sick",
            ("unspecified launch failure", "cudaerrorlaunchfailure", "cuda_error_launch_failed", "err!", "after sigkill", "launch timed out", "nvlddmkm", "cudaerrorlaunchtimeout", "cuda_error_launch_timeout", "busy or unavailable", "stuck"),
            r"unspecified launch failure|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED|\|.{0,60}\bERR!|around after SIGKILL|the launch timed out and was terminated|cudaErrorLaunchTimeout|CUDA_ERROR_LAUNCH_TIMEOUT|nvlddmkm .{0,60}(?:stopped responding|error)|nvidia-smi .{0,40}(?:hangs|is stuck)|CUDA-capable device\(s\) is/are busy or unavailable",
        ),
    ],
)  # fmt: skip
def gpu_xid_other(case: Case) -> Judgement:
    """The driver reported a fault of the GPU that is none of a lost card, NVLink or memory: GSP time-out, halted controller ...

    How it shows itself
      In the kernel log, as the first line: `NVRM: Xid (PCI:0000:61:00): 119, ... Timeout waiting for RPC from GSP!`, or 120, 61, 62, 109, 8, 32,
      `RmInitAdapter failed!`. Programs hang or print `unspecified launch failure`; nvidia-smi takes minutes, shows `ERR!`, or says
      that the GPU `requires reset`.

    Why it happens
      119 and 120: the system processor of the GPU (GSP) no longer answers the driver, by a fault of firmware, driver or card; each
      further call then waits 45 seconds. 61 and 62: a micro-controller halted. 32: a damaged command stream, often the PCIe
      link. 109, 8: work that does not end. 13, 31 and 43 alone are mostly the program's own.

    How to be sure
      `journalctl -k -b | grep -i xid`, sorted by time: the first number that is neither 45 nor 154, and what stands before it.

    What helps
      Reset the GPU or reboot. Against repetition: a newer driver; for GSP time-outs on boards that can run without GSP firmware
      `options nvidia NVreg_EnableGpuFirmware=0` (proprietary module only). Always the same card: exchange it.

    What does not help
      Waiting, or restarting the service without a reset; options of the engine.

    Not to be confused with
      gpu-lost (Xid 79), nvlink-fault (74, 144 to 150, SXid; GSP time-outs can follow them), ecc (48, 63, 64, 94, 95):
      the earliest line decides. kernel-illegal-address: Xid 13 or 31 as the only line.
    """
    reading = verdicts.read(case, origins.OTHER)
    if reading is not None:
        return _reported(case, reading)
    found = faults.read_faults(case)
    if faults.lead(found) is not None:
        return None
    program = faults.of_part(found, origins.PROGRAM)
    if program:
        return _by_program(case, program)
    sick = next((match for match in case.all("sick") if not match.is_code), None)
    if sick is None:
        return None
    clean = faults.clean_kernel_log(case)
    if clean is not None:
        return RuledOut("the kernel log tells of no fault of a GPU", (clean,))
    return _suspected(case, sick)


def _reported(case: Case, reading: Reading) -> Verdict:
    own = reading.own
    is_gsp = own.number in origins.GSP_TIMEOUTS or _GSP.search(own.text) is not None
    origin = origins.origin_of_xid(own.number) if own.number is not None else None
    whose = _STATES.get(origin.owner, "the GPU") if origin else "the GPU"
    what = "The system processor of the GPU (GSP) no longer answers" if is_gsp else f"The driver reports a fault of {whose}"  # fmt: skip
    return Verdict(
        certainty=reading.certainty,
        component="driver" if is_gsp or origin is None or origin.owner in ("driver", "firmware") else "gpu-hardware",
        title=f"{what}{verdicts.device(own)}{f': {own.name}' if own.name else ''}",
        chain=verdicts.chain(reading, f"Something in {whose} failed", what),
        evidence=reading.evidence("the first fault that the driver reports" if reading.leads else "the driver reports it after another fault"),
        against=reading.against,
        explains=faults.explained(case, reading.own_all),
        missing=verdicts.asked(case, reading),
        rivals=reading.rivals,
        remedies=_remedies(own, is_gsp=is_gsp),
        not_remedies=_IN_VAIN,
        strength=reading.strength,
    )  # fmt: skip


def _by_program(case: Case, program: tuple[Fault, ...]) -> Verdict:
    """Xid 13, 31 or 43 alone: it needs what came before to be more than the program's own fault."""
    own = program[0]
    seen = own.evidence("a fault that programs raise in most cases")
    missing = case.missing("tests.another GPU", "whether the same run faults on another GPU", "")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component="driver",
        title=f"{own.name} is the only fault that the driver reports{verdicts.device(own)}",
        chain=(
            Link("A kernel or the driver made an access that the GPU refuses", seen),
            Link("Its process is stopped"),
        ),
        evidence=(seen,),
        explains=faults.explained(case, program),
        missing=tuple(
            each for each in (faults.kernel_log_missing(case, "whether another Xid came before"), missing) if each
        ),
        rivals=("kernel-illegal-address", "p2p-iommu"),
        remedies=_remedies(own, is_gsp=False),
        not_remedies=_IN_VAIN,
        strength=24,
    )


def _suspected(case: Case, match: Match) -> Verdict:
    """A symptom that such faults have, among others."""
    seen = case.evidence(match, "GPUs with a fault show themselves so, among others")
    missing = faults.kernel_log_missing(case, "whether the driver reported an Xid, and which first")
    is_stuck = "SIGKILL" in match.text or "ERR!" in match.text
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component="driver",
        title="A GPU may have failed below the program; the kernel log tells",
        chain=(Link("The GPU or its driver has a fault", inferred("the kernel log is not shown")), Link("What the program sees", seen)),
        evidence=(seen,),
        explains=case.explains(match),
        missing=(missing,) if missing is not None else (),
        rivals=("nvlink-fault", "gpu-lost") if is_stuck else ("kernel-illegal-address", "gpu-lost", "ecc"),
        remedies=_remedies(None, is_gsp=False),
        not_remedies=_IN_VAIN,
        strength=36 if is_stuck else verdicts.SYMPTOM - 5,
    )  # fmt: skip


def _remedies(own: Fault | None, *, is_gsp: bool) -> tuple[Remedy, ...]:
    firmware = Remedy(
        kind="config", name="NVreg_EnableGpuFirmware", value="0", is_sure=False,
        summary="Run without the GSP firmware: `options nvidia NVreg_EnableGpuFirmware=0` in /etc/modprobe.d, rebuild the initramfs, reboot",
        cost="root and a reboot", check=("grep EnableGpuFirmware /proc/driver/nvidia/params",),
        limits=("proprietary kernel module only", "GPUs from Blackwell on cannot run without it"),
    )  # fmt: skip
    card = verdicts.replace("gpu", "Exchange the card when the fault stays with it", rank=1)
    slot = verdicts.replace("slot or riser", "Reseat the card, take out risers: the stream of commands was damaged on its way", "reseat")  # fmt: skip
    step = origins.origin_of_xid(own.number).step if own is not None and own.number is not None else "reset"
    if is_gsp:
        return (firmware, verdicts.newer_driver("time-outs of the GSP were mended release by release"), verdicts.reset(3), card)  # fmt: skip
    if own is not None and _OPEN_MODULES.search(own.text):
        return (_OPEN, verdicts.newer_driver("a release that knows the card, with its open modules"))
    driver = verdicts.newer_driver("such faults are often the driver's")
    if own is not None and _START.search(own.text):
        return (verdicts.reboot(), driver, slot, card)
    found = (verdicts.reset(), driver, slot, card) if step == "power" else (verdicts.reset(), driver, card)
    return (verdicts.reboot(is_sure=False), *found) if own is None else found


_OPEN = Remedy(
    kind="system-package", name="nvidia-open", value="match:driver",
    summary="Install the open kernel modules of the driver (nvidia-open, nvidia-driver-NNN-open, installer: -m=kernel-open): GPUs from Blackwell on run with no others",
    cost="root and a reboot", check=("modinfo nvidia | grep -i license",),
)  # fmt: skip
_IN_VAIN = (
    NotARemedy("waiting, or restarting the service without a reset", "the GPU keeps its state"),
    verdicts.SETTINGS,
)
