"""gpu-lost: a GPU dropped off the PCI bus."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.device import _faults as faults
from gpuwhy.causes.device import _verdicts as verdicts
from gpuwhy.causes.device._verdicts import Reading
from gpuwhy.knowledge import xid_origins as origins
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_RECEIVER = lazy_pattern(
    r"RxErr|AER: .{0,120}(?:error|received)|PCIe Bus Error|Surprise Down|BadTLP|BadDLLP|Completion Timeout|CmpltTO", re.IGNORECASE
)  # fmt: skip
_POWER = lazy_pattern(
    r"power (?:supply|limit|draw|cable|connector)|\bPSU\b|12VHPWR|12V-2x6|circuit|breaker|\bUPS\b|transient|under load|full load",
    re.IGNORECASE,
)
_RISER = lazy_pattern(r"riser|oculink|thunderbolt|e-?gpu|USB4|extension cable|M\.2 adapter|\bslot\b", re.IGNORECASE)
_HOT = lazy_pattern(
    r"overheat|too hot|\bthermal|(?:9[0-9]|1[01]\d) ?(?:°|degrees )?C\b|fan (?:fail|stopp)", re.IGNORECASE
)
_IDLE = lazy_pattern(r"\bidle\b|D3cold|runtime (?:pm|suspend)|ASPM|after (?:suspend|resume)", re.IGNORECASE)


@cause(
    "gpu-lost",
    family=verdicts.FAMILY,
    signs=[
        *faults.SIGNS,
        says("receiver-errors", ("rxerr", "aer:", "pcie bus error", "badtlp", "baddllp", "cmpltto"), _RECEIVER.pattern),
        says(
            "no-handle",
            ("unable to determine the device handle", "no devices were found", "device handle for gpu"),
            r"[Uu]nable to determine the device handle for (?:GPU|gpu)\S{0,3} ?\S{0,20}: {0,3}(?P<said>[\w ]{3,30})|^No devices were found\b",
        ),
        says("sick", ("unspecified launch failure", "cuda error: unknown error"), r"unspecified launch failure|CUDA error: unknown error"),
        says("around", ("power", "psu", "12vhpwr", "riser", "oculink", "thunderbolt", "overheat", "thermal", "circuit", "idle", "aspm", "d3cold"), rf"{_POWER.pattern}|{_RISER.pattern}|{_HOT.pattern}|{_IDLE.pattern}"),
    ],
    leads_to=("nvlink-fault", "gpu-xid-other"),
)  # fmt: skip
def gpu_lost(case: Case) -> Judgement:
    """A GPU dropped off the PCI bus: the driver cannot reach it any more.

    How it shows itself
      `NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus` in the kernel log, often after PCIe receiver errors (AER,
      `Surprise Down`). nvidia-smi: `Unable to determine the device handle for GPU ...: GPU is lost. Reboot the system to recover
      this GPU`, or `No devices were found`. The program only has a CUDA error: `unspecified launch failure`, `unknown error`.

    Why it happens
      The link or the power of the card broke down: a power supply or mains circuit that cannot follow the load's peaks, a
      power connector or riser that does not sit well, heat, PCIe power management, a dying card. Seldom the driver.

    How to be sure
      `journalctl -k -b | grep -iE 'xid|aer|pcie|fallen'`: the first line names the device. `lspci` shows it as `rev ff`, or not at all.

    What helps
      A reboot (better off and on) brings it back. Against repetition, one at a time: a power limit (`nvidia-smi -pl`) or locked clocks as
      a test, another supply or circuit, reseat the card and its connectors, no riser, PCIe generation fixed in the BIOS,
      `pcie_aspm=off` where it falls off when idle. The card in another machine tells whether the card itself is the fault.

    What does not help
      Reinstalling CUDA, torch or the engine; lower memory fractions. A reset by nvidia-smi: it does not reach the card.

    Not to be confused with
      nvlink-fault and gpu-xid-other: the earliest line of the kernel decides. Links of other GPUs fail when their peer is gone.
      container-devices-lost: only the container loses its GPUs, nvidia-smi on the host is fine.
    """
    reading = verdicts.read(case, origins.LOST)
    if reading is not None:
        return _reported(case, reading)
    found = faults.read_faults(case)
    if found:
        return None
    no_handle = next((match for match in case.all("no-handle", "sick") if not match.is_code), None)
    if no_handle is None:
        return None
    clean = faults.clean_kernel_log(case)
    if clean is not None:
        return RuledOut("the kernel log tells of no lost GPU", (clean,))
    return _unreachable(case, no_handle)


def _reported(case: Case, reading: Reading) -> Verdict:
    own = reading.own
    errors = next((match for match in case.all("receiver-errors") if match.text != own.text), None)
    extra = (case.evidence(errors, "its PCIe link had errors"),) if errors is not None else ()
    is_program = not own.is_kernels and own.sign != faults.TYPED_XID.name
    return Verdict(
        certainty=reading.certainty,
        component="gpu-hardware",
        title=f"A GPU{verdicts.device(own)} has fallen off the PCI bus",
        chain=(
            Link("Link or power of the card break down", extra[0] if extra else inferred("the kernel reports the loss, not its reason")),
            Link("The driver cannot reach the GPU", own.evidence("the GPU is gone from the bus")),
            Link("CUDA calls on it fail, or never return"),
        ),
        evidence=(*reading.evidence("the GPU is gone from the bus"), *extra),
        against=reading.against,
        explains=faults.explained(case, reading.own_all),
        missing=verdicts.asked(case, reading),
        rivals=reading.rivals,
        remedies=_remedies(case),
        not_remedies=_IN_VAIN,
        notes=("A GPU is only reported lost; power, slot, heat and card are told apart by changing one of them.",),
        strength=reading.strength - (2 if is_program else 0),
    )  # fmt: skip


def _unreachable(case: Case, match: Match) -> Verdict:
    """nvidia-smi does not get hold of a GPU, or a program failed on it, and nobody says why."""
    is_handle = match.group("said") is not None
    is_felt = match.sign == "sick"
    seen = case.evidence(
        match, "a GPU that is gone shows itself so, among others" if is_felt else "the driver cannot reach a GPU"
    )
    missing = faults.kernel_log_missing(case, "whether a GPU fell off the bus (Xid 79)")
    return Verdict(
        certainty=Certainty.POSSIBLE,
        component="gpu-hardware",
        title="A GPU may have fallen off the bus under the program" if is_felt else "nvidia-smi cannot reach a GPU: it may have fallen off the bus",
        chain=(Link("A GPU left the bus, or never started", inferred("the kernel log is not shown")), Link("Calls to it fail", seen)),
        evidence=(seen,),
        explains=case.explains(match),
        missing=(missing,) if missing is not None else (),
        rivals=("gpu-xid-other",) if is_handle else ("kernel-illegal-address", "gpu-xid-other", "ecc") if is_felt else ("no-device-visible", "gpu-xid-other", "container-gpu-not-passed"),
        remedies=_remedies(case),
        not_remedies=_IN_VAIN,
        strength=46 if is_handle else 15 if is_felt else 22,
    )  # fmt: skip


def _remedies(case: Case) -> tuple[Remedy, ...]:
    said = " ".join(match.text[:400] for match in case.all("around"))
    limit = Remedy(
        kind="config", name="GPU power limit", value="lower", rank=1, is_sure=False,
        summary="As a test: a lower power limit or locked clocks. If it holds, the power supply is what is short",
        commands=("nvidia-smi -pl WATTS", "nvidia-smi -lgc 0,MHZ"), limits=("lasts until the next reboot",),
    )  # fmt: skip
    idle = Remedy(
        kind="kernel", name="pcie_aspm", value="off", is_sure=False,
        summary="PCIe power management off: for a GPU that gets lost while it is idle", cost="a reboot",
    )  # fmt: skip
    power = verdicts.replace("mains circuit or power", "Another power supply, cable or mains circuit, with its own connector to each socket of the card", "dedicated circuit", 0 if _POWER.search(said) else 1)  # fmt: skip
    seat = verdicts.replace("slot or riser", "Reseat the card, take out risers and adapters, try another slot, fix the PCIe generation in the BIOS", "reseat", 0 if _RISER.search(said) else 3)  # fmt: skip
    cooling = verdicts.replace("cooling", "Better cooling of the card", "improve", 0)
    card = verdicts.replace("gpu", "Replace the card when it gets lost in another machine, too", "replace", 2)
    found = [verdicts.reboot()]
    found += [idle] if _IDLE.search(said) else []
    found += [cooling] if _HOT.search(said) else []
    found += [power, card, seat]
    return (*found, limit) if _POWER.search(said) else tuple(found)


_IN_VAIN = (
    NotARemedy("nvidia-smi --gpu-reset", "it does not reach a card that has left the bus"),
    NotARemedy("pinning memory clocks", "what breaks down is the link or the power"),
    verdicts.SETTINGS,
)
