"""fabric-manager-version: Fabric Manager does not run because its version is not the driver's."""

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes.device import _fabric as fabric
from gpuwhy.causes.device._fabric import Manager
from gpuwhy.causes.device._verdicts import FAMILY
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_MISMATCH = lazy_pattern(fabric.MISMATCH.pattern, re.IGNORECASE)


@cause(
    "fabric-manager-version",
    family=FAMILY,
    leads_to=(
        "fabric-manager-state",
        "no-device-visible",
    ),
    signs=fabric.SIGNS,
)
def fabric_manager_version(case: Case) -> Judgement:
    """Fabric Manager does not run, because its version is not exactly that of the driver.

    How it shows itself
      Every CUDA program on a machine with NVSwitches (HGX, DGX: A100, H100, H200, B200 SXM) stops with error 802, `system not yet
      initialized`; nvidia-smi works. The journal of nvidia-fabricmanager has the reason: `fabric manager NVIDIA GPU driver interface
      version 535.183.01 don't match with driver version 535.216.03. Please update with matching NVIDIA driver package.`

    Why it happens
      Fabric Manager and driver are separate packages and must be equal to the last digit. An unattended upgrade takes one of
      them, a driver comes from the .run file or the GPU operator, a module of before the upgrade is still loaded.

    How to be sure
      `cat /proc/driver/nvidia/version` against `dpkg -l | grep fabricmanager` (or `rpm -qa`), and `journalctl -u nvidia-fabricmanager -b`.

    What helps
      Install the Fabric Manager of the loaded driver's version and start it; or bring the driver to Fabric Manager's and reboot. Then
      hold both packages, so that they move together.

    What does not help
      Starting the service again; another torch, CUDA toolkit or image.

    Not to be confused with
      fabric-manager-state (equal versions; the service is absent, stopped or lacks something), driver-library-mismatch (error 803,
      nvidia-smi fails, too), driver-uvm-broken (999). Without NVSwitches the messages of Fabric Manager are noise.
    """
    manager = fabric.read_manager(case)
    match = fabric.first(case, fabric.MISMATCH.name)
    told = fabric.journal_line(case, _MISMATCH, "Fabric Manager refuses the driver's version")
    if match is not None or told is not None:
        return _stated(case, manager, match, told[0] if told else None, told[1] if told else None)
    felt = fabric.first(case, fabric.NOT_READY.name)
    match = felt or fabric.first(case, fabric.UNIT_LINE.name, fabric.INITIALISE.name)
    if match is None:
        return None
    excluded = _excluded(manager, case.evidence(match, "what CUDA or the unit says"))
    if excluded is not None:
        return excluded
    return _suspected(case, manager, match, is_felt=felt is not None)


def _stated(
    case: Case, manager: Manager, match: Match | None, told: Evidence | None, found: re.Match[str] | None
) -> Verdict:
    """Fabric Manager itself says so."""
    groups = match.groups if match is not None else {k: v for k, v in (found.groupdict() if found else {}).items() if v}
    own = groups.get("manager") or groups.get("user") or manager.version
    driver = (groups.get("driver") or groups.get("kernel") or manager.driver).rstrip(".")
    evidence = case.evidence(match, "Fabric Manager refuses the driver's version") if match is not None else told
    shown = evidence if evidence is not None else inferred("Fabric Manager refuses the driver's version")
    felt = fabric.first(case, fabric.NOT_READY.name)
    consequence = case.evidence(felt, "GPUs behind NVSwitches are not ready") if felt is not None else None
    return Verdict(
        certainty=Certainty.PROVEN,
        component="fabric-manager",
        title=f"Fabric Manager{f' {own}' if own else ''} does not run with {f'driver {driver}' if driver else 'the driver that is loaded'}: the versions must be equal",
        chain=(
            Link("Fabric Manager and driver are of different versions", shown),
            Link("Fabric Manager exits, and the NVSwitch fabric is not set up"),
            Link("CUDA answers 802 on every GPU", consequence or inferred("the usual consequence")),
        ),
        evidence=tuple(each for each in (shown, consequence, *manager.shown("version", "driver")) if each is not None),
        explains=case.explains(match, felt, *case.all(fabric.NOT_READY.name, fabric.UNIT_LINE.name, fabric.INITIALISE.name)),
        remedies=_remedies(driver, own),
        not_remedies=_IN_VAIN,
        notes=("On a machine without NVSwitches Fabric Manager is not needed at all.",),
        strength=90,
    )  # fmt: skip


def _excluded(manager: Manager, seen: Evidence) -> RuledOut | None:
    if manager.has_switch is False:
        return RuledOut("the machine has no NVSwitch", (*manager.shown("nvswitch"), seen))
    if manager.state == "active":
        return RuledOut("Fabric Manager runs, which it does with equal versions only", (*manager.shown("state"), seen))
    if manager.state == "absent" and not manager.version:
        return RuledOut("Fabric Manager is not installed", (*manager.shown("state"), seen))
    if manager.differs is False:
        return RuledOut("Fabric Manager and driver are of one version", (*manager.shown("version", "driver"), seen))
    return None


def _suspected(case: Case, manager: Manager, match: Match, *, is_felt: bool) -> Verdict:
    seen = case.evidence(match, "GPUs behind NVSwitches are not ready" if is_felt else "Fabric Manager does not run")
    known = manager.shown("version", "driver", "state")
    certainty = Certainty.POSSIBLE
    if manager.differs:
        certainty = Certainty.PROVEN if manager.state == "failed" and is_felt else Certainty.LIKELY
    strength = 75 if manager.differs else 42 if manager.state == "failed" else 34
    return Verdict(
        certainty=certainty,
        component="fabric-manager",
        title=(
            f"Fabric Manager {manager.version} does not run with driver {manager.driver}: the versions must be equal"
            if manager.differs
            else "Fabric Manager may be of another version than the driver"
        ),
        chain=(
            Link("Fabric Manager and driver are of different versions", known[0] if manager.differs else inferred("the versions are not both known")),
            Link("Fabric Manager exits, and the NVSwitch fabric is not set up", manager.shown("state")[0] if manager.state == "failed" else None),
            Link("CUDA answers 802 on every GPU", seen),
        ),
        evidence=(seen, *known),
        explains=case.explains(match, *case.all(fabric.NOT_READY.name)),
        missing=() if manager.differs else fabric.missing(case, manager),
        rivals=() if manager.differs else ("fabric-manager-state",),
        remedies=_remedies(manager.driver, manager.version),
        not_remedies=_IN_VAIN,
        strength=strength,
    )  # fmt: skip


def _remedies(driver: str, own: str) -> tuple[Remedy, ...]:
    before = (
        f"{fabric.install(own)} --allow-downgrades"
        if own
        else "# install the version that was there before: apt-cache policy 'nvidia-fabricmanager*'"
    )
    equal = Remedy(
        kind="system-package", name=fabric.UNIT, value="match:driver",
        summary=f"Install Fabric Manager {driver or 'of exactly the version of the loaded driver'}, from the source that the driver came from",
        commands=(fabric.install(driver), f"systemctl restart {fabric.UNIT}"), undo=(before, f"systemctl restart {fabric.UNIT}"),
        cost="root; nothing else stops", check=(f"systemctl is-active {fabric.UNIT}", "python -c 'import torch; print(torch.cuda.is_available())'"),
        limits=("hold it together with the driver (apt-mark hold), or the next upgrade parts them again", "the driver that is loaded counts: after an upgrade without a reboot it is still the old one",),
    )  # fmt: skip
    other = Remedy(
        kind="driver", name="nvidia", value="match:fabricmanager",
        summary=f"Or bring the driver to {own or 'the version of Fabric Manager'} and reboot", cost="a reboot", risk="medium", rank=1,
    )  # fmt: skip
    return (equal, other)


_IN_VAIN = (
    NotARemedy("starting the service again with these versions", "it compares them at every start"),
    NotARemedy("another torch, toolkit or image", "CUDA waits for the fabric of the host"),
)
