"""fabric-manager-state: the NVSwitch fabric is not set up, or was set up again behind the GPUs' back."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes.device import _fabric as fabric
from gpuwhy.causes.device import _verdicts as verdicts
from gpuwhy.causes.device._fabric import Manager
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_PREREQUISITE = lazy_pattern(fabric.PREREQUISITE.pattern, re.IGNORECASE)
_MISMATCH = lazy_pattern(fabric.MISMATCH.pattern, re.IGNORECASE)
_UMAD = lazy_pattern(r"umad", re.IGNORECASE)
_NEEDED = lazy_pattern(r"^\S{0,80}(?:nvlsm|umad)\S{0,20}: ", re.IGNORECASE)
_CONFIDENTIAL = lazy_pattern(r"confidential|\bCC mode|conf-compute|\bTDX\b|SEV-SNP", re.IGNORECASE)


@cause("fabric-manager-state", family=verdicts.FAMILY, signs=(*fabric.SIGNS, fabric.IMEX))
def fabric_manager_state(case: Case) -> Judgement:
    """The NVSwitch fabric is not set up: Fabric Manager is absent, stopped or lacks something, or was restarted without a GPU reset.

    How it shows itself
      On machines with NVSwitches (HGX, DGX) every CUDA program stops with error 802, `system not yet initialized`; nvidia-smi
      works. In NCCL `transport/nvls.cc ... Cuda failure 1 'invalid argument'`, or `Failed to bind NVLink SHARP (NVLS) Multicast memory`,
      although nothing is wrong with its arguments.

    Why it happens
      GPUs behind NVSwitches are ready for CUDA only when Fabric Manager has set the switches up. It is not installed or not
      started, or lacks a prerequisite (from NVLink 5 on, B200 and later: nvlsm and the kernel module ib_umad). Or it was
      restarted while the GPUs kept the fabric of before: then only multicast (NVLS) fails.

    How to be sure
      `systemctl status nvidia-fabricmanager`, `journalctl -u nvidia-fabricmanager -b`, `nvidia-smi -q | grep -A2 Fabric` (State has to be
      `Completed`), and `lspci | grep -i nvswitch`.

    What helps
      Install the package of exactly the driver's version and `systemctl enable --now nvidia-fabricmanager`. On NVLink 5 install nvlsm
      and load ib_umad first. After a restart of Fabric Manager: stop it, reset all GPUs, start it; or reboot.

    What does not help
      Another torch, CUDA toolkit or image. Restarting Fabric Manager once more. NCCL_NVLS_ENABLE=0 keeps NCCL away from
      multicast only.

    Not to be confused with
      fabric-manager-version (the unit fails for its version), driver-uvm-broken (999), driver-library-mismatch (803), nccl-version.
      On boards without NVSwitch its messages are noise (`NV_WARN_NOTHING_TO_DO`). In a confidential VM 802 means that the GPUs
      were not yet set ready (`nvidia-smi conf-compute -srs 1`).
    """
    manager = fabric.read_manager(case)
    match = _decisive(case)
    if match is None:
        return None
    seen = case.evidence(match, _STATEMENT[match.sign])
    if manager.has_switch is False and match.sign != fabric.IMEX.name:
        return RuledOut("the machine has no NVSwitch: Fabric Manager has nothing to do", (*manager.shown("nvswitch"), seen))  # fmt: skip
    mismatch = fabric.first(case, fabric.MISMATCH.name)
    told = fabric.journal_line(case, _MISMATCH, "Fabric Manager refuses the driver's version")
    if mismatch is not None or told is not None:
        shown = (
            case.evidence(mismatch, "its version") if mismatch is not None else told[0] if told is not None else seen
        )
        return RuledOut("Fabric Manager says that its version is what stops it", (shown,))
    if manager.differs and manager.state in ("failed", ""):
        return RuledOut("Fabric Manager and driver are of different versions", manager.shown("version", "driver"))
    return _verdict(case, manager, match, seen)


_STATEMENT = {
    fabric.NOT_READY.name: "CUDA waits for the fabric",
    fabric.PREREQUISITE.name: "Fabric Manager lacks a prerequisite",
    fabric.UNIT_LINE.name: "Fabric Manager does not run",
    fabric.INITIALISE.name: "Fabric Manager could not set the fabric up",
    fabric.MULTICAST.name: "an object of the fabric (multicast) cannot be used",
    fabric.IMEX.name: "the service that shares memory across nodes is not ready",
}


def _decisive(case: Case) -> Match | None:
    """What names the reason; else the symptom that stands in the failure."""
    felt = fabric.first(case, fabric.NOT_READY.name)
    named = fabric.first(case, fabric.PREREQUISITE.name)
    unit = fabric.first(case, fabric.UNIT_LINE.name, fabric.INITIALISE.name)
    multicast = fabric.first(case, fabric.MULTICAST.name)
    if named is not None and (felt is not None or unit is not None or "abric" in named.line.raw[:400] or "nvlsm" in named.text.lower()):  # fmt: skip
        return named
    if unit is not None and felt is not None:
        return unit
    return felt or multicast or unit or fabric.first(case, fabric.IMEX.name)


def _verdict(case: Case, manager: Manager, match: Match, seen: Evidence) -> Verdict:
    told = fabric.journal_line(case, _PREREQUISITE, "Fabric Manager lacks a prerequisite")
    restarted = fabric.restarted(case)
    felt = fabric.first(case, fabric.NOT_READY.name)
    lacking = told[0] if told is not None else fabric.absent_prerequisite(case)
    reason = lacking or restarted
    names_it = any("Fabric Manager" in m.text for m in case.all(fabric.MULTICAST.name))
    certainty, strength = _certainty(manager, match, felt, reason, names_it=names_it)
    consequence = case.evidence(felt, "CUDA waits for the fabric") if felt is not None and felt is not match else None
    is_restart = restarted is not None or (match.sign == fabric.MULTICAST.name and manager.state in ("active", ""))
    known = manager.shown("state", "fabric", "nvswitch")
    return Verdict(
        certainty=certainty,
        component="fabric-manager",
        title=_title(manager, match, is_restart=is_restart),
        chain=(
            Link(_root(manager, match, is_restart=is_restart), reason or (known[0] if known else seen if match.sign in (fabric.UNIT_LINE.name, fabric.PREREQUISITE.name) else inferred("the state of Fabric Manager is not known"))),
            Link("The GPUs have no fabric, or one from before a restart" if not is_restart else "The GPUs keep the fabric of before"),
            Link("CUDA answers with an error", consequence or seen),
        ),
        evidence=tuple(each for each in (seen, consequence, reason, *known) if each is not None),
        explains=case.explains(match, felt, *case.all(fabric.NOT_READY.name, fabric.MULTICAST.name, fabric.UNIT_LINE.name)),
        missing=() if certainty is Certainty.PROVEN else _missing(case, manager, match),
        rivals=() if certainty is Certainty.PROVEN else ("nccl-version",) if match.sign == fabric.MULTICAST.name else ("fabric-manager-version",),
        remedies=_remedies(manager, match, lacking.quote if lacking is not None else match.text, is_restart=is_restart),
        not_remedies=(NotARemedy("restarting Fabric Manager again", "the GPUs keep the fabric of before until they are reset"), *_IN_VAIN) if is_restart else _IN_VAIN,
        notes=_notes(case),
        strength=strength,
    )  # fmt: skip


def _certainty(
    manager: Manager, match: Match, felt: Match | None, reason: Evidence | None, *, names_it: bool
) -> tuple[Certainty, int]:
    is_down = manager.state in ("absent", "stopped")
    if match.sign == fabric.MULTICAST.name:
        if reason is not None:
            return Certainty.LIKELY, 72
        return (Certainty.LIKELY, 60) if names_it else (Certainty.POSSIBLE, 58 if "nvls" in match.text.lower() else 40)
    if match.sign == fabric.IMEX.name:
        return Certainty.POSSIBLE, 40
    is_named = match.sign in (fabric.PREREQUISITE.name, fabric.UNIT_LINE.name)
    if felt is not None and (is_down or reason is not None or (is_named and match is not felt)):
        is_proof = manager.has_switch or is_down or reason is not None or match.sign == fabric.PREREQUISITE.name
        return (Certainty.PROVEN if is_proof else Certainty.LIKELY), 80
    if felt is not None:
        if manager.state == "failed":
            return Certainty.LIKELY if manager.differs is False else Certainty.POSSIBLE, 66
        return (
            (Certainty.LIKELY, 60)
            if manager.state == "active" or manager.has_switch or "fabric" in manager.evidence
            else (Certainty.POSSIBLE, 55)
        )
    if match.sign == fabric.PREREQUISITE.name:
        return Certainty.LIKELY, 74
    return (Certainty.LIKELY, 56) if manager.has_switch or is_down else (Certainty.POSSIBLE, 45)


def _root(manager: Manager, match: Match, *, is_restart: bool) -> str:
    if match.sign == fabric.IMEX.name:
        return "The service nvidia-imex is not ready on every node"
    if is_restart:
        return "Fabric Manager was restarted without a reset of the GPUs"
    if match.sign == fabric.PREREQUISITE.name:
        return "Fabric Manager lacks a prerequisite"
    return {"absent": "Fabric Manager is not installed", "stopped": "Fabric Manager is not started", "failed": "Fabric Manager failed"}.get(manager.state, "Fabric Manager has not set the NVSwitches up")  # fmt: skip


def _title(manager: Manager, match: Match, *, is_restart: bool) -> str:
    return f"{_root(manager, match, is_restart=is_restart)}: the NVSwitch fabric cannot be used"


def _missing(case: Case, manager: Manager, match: Match) -> tuple[Missing, ...]:
    asked = list(fabric.missing(case, manager))
    if match.sign == fabric.MULTICAST.name:
        reset = case.missing(
            "tests.GPU reset between stop and start of Fabric Manager",
            "whether the GPUs were reset when Fabric Manager was restarted",
            "",
        )
        asked.append(reset) if reset is not None else None
    return tuple(asked)


def _notes(case: Case) -> tuple[str, ...]:
    texts = (line.text[:300] for _, line in case.lines())
    if any(_CONFIDENTIAL.search(text) for text in texts):
        return ("In a confidential VM the GPUs have to be set ready first: nvidia-smi conf-compute -srs 1.",)
    return ()


def _remedies(manager: Manager, match: Match, text: str, *, is_restart: bool) -> tuple[Remedy, ...]:
    reset = Remedy(
        kind="driver", name="gpu-reset", value="between stop and start of Fabric Manager",
        summary="Stop Fabric Manager, reset all GPUs, start it again",
        commands=(f"systemctl stop {fabric.UNIT}", "nvidia-smi --gpu-reset", f"systemctl start {fabric.UNIT}"),
        cost="root; every program on the GPUs stops", check=("nvidia-smi -q | grep -A2 Fabric",),
    )  # fmt: skip
    start = Remedy(
        kind="service", name=fabric.UNIT, value="start",
        summary="Start Fabric Manager, and have it started at every boot", commands=(f"systemctl enable --now {fabric.UNIT}",),
        cost="root", check=(f"systemctl is-active {fabric.UNIT}", "python -c 'import torch; print(torch.cuda.is_available())'"),
    )  # fmt: skip
    install = Remedy(
        kind="system-package", name=fabric.UNIT, value="match:driver",
        summary=f"Install Fabric Manager {manager.driver or 'of exactly the version of the loaded driver'}",
        commands=(fabric.install(manager.driver), f"systemctl enable --now {fabric.UNIT}"), cost="root",
        undo=(f"systemctl disable --now {fabric.UNIT}", "apt-get remove 'nvidia-fabricmanager*'"),
        check=(f"systemctl is-active {fabric.UNIT}", "python -c 'import torch; print(torch.cuda.is_available())'", "nvidia-smi -q | grep -A2 Fabric"),
        is_sure=manager.state == "absent", rank=1,
    )  # fmt: skip
    if match.sign == fabric.IMEX.name:
        imex = Remedy(kind="service", name="nvidia-imex", value="start", summary="Start nvidia-imex on every node of the domain, with the same list of nodes")  # fmt: skip
        return (imex,)
    if is_restart:
        without = Remedy(
            kind="env", name="NCCL_NVLS_ENABLE", value="0", is_sure=False, rank=3,
            summary="For the time being: NCCL without multicast", cost="slower reductions",
        )  # fmt: skip
        return (reset, verdicts.reboot(1), without)
    if _PREREQUISITE.search(text) or _NEEDED.search(text):
        umad = Remedy(kind="kernel", name="ib_umad", value="load", summary="Load ib_umad, at every boot", commands=("modprobe ib_umad", "echo ib_umad > /etc/modules-load.d/ib_umad.conf"), cost="root", is_sure=_UMAD.search(text) is not None)  # fmt: skip
        nvlsm = Remedy(kind="system-package", name="nvlsm", value="install", summary="Install the NVLink subnet manager, which NVLink 5 needs", commands=("apt-get install nvlsm",), cost="root", is_sure=_UMAD.search(text) is None, rank=0)  # fmt: skip
        return (*((umad, nvlsm) if _UMAD.search(text) else (nvlsm, umad)), Remedy(kind="service", name=fabric.UNIT, value="restart", summary="Then start Fabric Manager", rank=5))  # fmt: skip
    if manager.state == "active":
        return (verdicts.reboot(), reset, start)
    if manager.state == "absent":
        return (install,)
    if manager.state == "stopped":
        return (start,)
    return (start, reset) if manager.differs is False else (install, start, reset)


_IN_VAIN = (
    NotARemedy("reinstalling PyTorch or the CUDA toolkit", "the fabric of the host is not set up"),
    NotARemedy("another image or container option", "a container uses the host's fabric"),
)
