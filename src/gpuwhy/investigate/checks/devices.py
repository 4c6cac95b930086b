"""The GPUs themselves: all on the bus are seen, none is lost, the fabric between them is up."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.investigate.checks.results import Passed, Problem, Result, Unchecked, shown, unchecked
from gpuwhy.knowledge.drivers import driver_version
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import Remedy

_UNIT = "nvidia-fabricmanager"
_PACKAGES = ("nvidia-fabricmanager", "nvidia-fabric-manager")


def every_gpu_answers(facts: Facts) -> Iterator[Result]:
    """Whether the driver reaches every GPU that the bus has."""
    gpus = Gpus.of(facts)
    if isinstance(gpus, Unknown):
        yield unchecked("the GPUs", gpus)
        return
    lost = facts.get("gpu_errors")
    if isinstance(lost, Fact) and lost.value:
        yield Problem(
            cause="gpu-lost", component="gpu", certainty=Certainty.PROVEN,
            title="The driver does not reach every GPU of this host", evidence=(lost.evidence,), remedies=_reboot(),
        )  # fmt: skip
        return
    on_bus = facts.get("pci_gpus")
    if isinstance(on_bus, Fact) and isinstance(on_bus.value, list | tuple) and len(on_bus.value) > len(gpus.devices):
        yield Problem(
            cause="no-device-visible", component="driver", certainty=Certainty.LIKELY,
            title=f"The PCI bus has {len(on_bus.value)} NVIDIA GPUs, and the driver lists {len(gpus.devices)}",
            evidence=(on_bus.evidence, *gpus.evidence), remedies=_reboot(),
        )  # fmt: skip
        return
    if not gpus.devices:
        yield Problem(
            cause="no-device-visible", component="driver", certainty=Certainty.PROVEN,
            title="The driver lists no GPU", evidence=gpus.evidence,
        )  # fmt: skip
        return
    if any(each.standing.value == "observed" for each in gpus.evidence):
        yield Passed("every GPU answers", f"the driver lists {len(gpus.devices)}")


def _reboot() -> tuple[Remedy, ...]:
    return (Remedy(kind="driver", name="gpu-reset", value="reset or reboot", summary="Reset the GPU, or reboot; if it is gone again, look at its power, its slot and the kernel's Xid lines", commands=("journalctl -k | grep -i xid",), cost="every program on the GPUs stops", is_sure=False),)  # fmt: skip


def fabric_manager(facts: Facts) -> Iterator[Result]:
    """On machines with NVSwitches CUDA works once Fabric Manager, of the driver's exact version, has set them up."""
    has_switch = facts.get("nvswitch")
    if isinstance(has_switch, Unknown):
        if _is_several(facts) and not _is_plan(facts):
            yield unchecked("Fabric Manager (machines with NVSwitches need it)", has_switch)
        return
    if not has_switch.value:
        return
    state = facts.get(f"unit_state.{_UNIT}")
    own = next((fact for name in facts.group("system_packages") if name.startswith(_PACKAGES) and isinstance(fact := facts.get(f"system_packages.{name}"), Fact)), None)  # fmt: skip
    driver = facts.value("driver")
    if own is not None and own.value and driver:
        yield from _versions(facts, own, str(driver))
    else:
        yield Unchecked("Fabric Manager is of the driver's version", "its version was not examined", f"system_packages.{_UNIT}", "nv-fabricmanager --version")  # fmt: skip
    if isinstance(state, Unknown):
        yield unchecked("Fabric Manager runs", state)
    elif str(state.value).startswith("active"):
        yield Passed("Fabric Manager runs", str(state.value))
    else:
        yield Problem(
            cause="fabric-manager-state", component="fabric-manager", certainty=Certainty.PROVEN,
            title=f"The machine has NVSwitches, and Fabric Manager is {state.value}: CUDA answers 802 on every GPU",
            evidence=(has_switch.evidence, state.evidence), remedies=_start(str(state.value), str(driver or "")),
        )  # fmt: skip


def _start(state: str, driver: str) -> tuple[Remedy, ...]:
    start = Remedy(kind="service", name=_UNIT, value="start", summary="Start Fabric Manager, and have it started at every boot", commands=(f"systemctl enable --now {_UNIT}",), cost="root", check=(f"systemctl is-active {_UNIT}",), is_sure=state != "not-found")  # fmt: skip
    return (start,) if state != "not-found" else (_package(driver), start)


def _package(driver: str) -> Remedy:
    exact = f"nvidia-fabricmanager-{driver.partition('.')[0]}={driver}-1" if driver else _UNIT
    return Remedy(kind="system-package", name=_UNIT, value="match:driver", summary=f"Install Fabric Manager {driver or 'of exactly the version of the loaded driver'}", commands=(f"apt-get install {exact}", f"systemctl enable --now {_UNIT}"), cost="root; nothing else stops")  # fmt: skip


def _versions(facts: Facts, own: Fact, driver: str) -> Iterator[Result]:
    version = str(own.value).partition("-")[0].rpartition(":")[2]
    have, want = driver_version(version), driver_version(driver)
    if have is None or want is None:
        yield Unchecked("Fabric Manager is of the driver's version", f"{version[:40]} or {driver[:40]} is no driver version")  # fmt: skip
    elif have == want:
        yield Passed("Fabric Manager is of the driver's version", driver)
    else:
        yield Problem(
            cause="fabric-manager-version", component="fabric-manager", certainty=Certainty.PROVEN,
            title=f"Fabric Manager {version} does not run with driver {driver}: the versions must be equal",
            evidence=(own.evidence, *shown(facts, "driver")), remedies=(_package(driver),),
        )  # fmt: skip


def _is_several(facts: Facts) -> bool:
    gpus = Gpus.of(facts)
    return isinstance(gpus, Gpus) and len(gpus.devices) > 1


def _is_plan(facts: Facts) -> bool:
    """Whether the GPUs were given and not seen: then there is no host that could be examined."""
    gpus = Gpus.of(facts)
    return isinstance(gpus, Gpus) and not any(each.standing.value == "observed" for each in gpus.evidence)


def peers(facts: Facts) -> Iterator[Result]:
    """Direct traffic between GPUs over PCIe arrives where neither the IOMMU nor ACS redirects it."""
    if not _is_several(facts) or _is_plan(facts) or facts.value("hypervisor"):
        return
    what = "direct traffic between the GPUs is not redirected"
    if facts.value("nvswitch") is True:
        return  # it goes over NVLink
    iommu, acs = facts.get("iommu"), facts.get("pci_acs")
    bad: list[Evidence] = []
    if isinstance(acs, Fact) and acs.value:
        bad.append(acs.evidence)
    if isinstance(iommu, Fact) and iommu.value == "translated":
        bad.append(iommu.evidence)
    if bad:
        yield Problem(
            cause="p2p-iommu", component="iommu", certainty=Certainty.POSSIBLE,
            title="The IOMMU translates, or ACS redirects, what GPUs send each other: NCCL can hang or compute wrongly over PCIe",
            evidence=tuple(bad),
            remedies=(
                Remedy(kind="env", name="NCCL_P2P_DISABLE", value="1", summary="Let NCCL go through host memory, if a test with peer access fails", cost="slower communication between the GPUs", is_sure=False),
                Remedy(kind="kernel", name="iommu", value="pt", summary="Boot with iommu=pt, and switch ACS off on the bridges", cost="a reboot", is_sure=False),
            ),
        )  # fmt: skip
    elif isinstance(acs, Unknown):
        said = "" if isinstance(iommu, Unknown) else f" (the IOMMU is {iommu.value})"
        yield Unchecked(what, f"the bridges' ACS bits were not examined{said}", "pci_acs", "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'")  # fmt: skip
    else:
        yield Passed(what, "no ACS bit is on")
