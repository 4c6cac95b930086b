"""Facts that follow from facts by measured data: a GPU's compute capability from its name, a driver's CUDA from its version.

What is derived never replaces what was seen or given, and says from where it comes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpuwhy.knowledge import capability, drivers, gpus
from gpuwhy.model.evidence import Evidence, Place, Standing
from gpuwhy.model.fact import Fact, Facts
from gpuwhy.model.host import Gpu, Gpus


def completed(facts: Facts) -> Facts:
    """The facts, with what follows from them added."""
    derived: dict[str, Fact] = {}
    _add_devices(facts, derived)
    _add_capability(facts, derived)
    _add_driver_cuda(facts, derived)
    _add_torch(facts, derived)
    return facts.merged(Facts(derived))


def _add_devices(facts: Facts, derived: dict[str, Fact]) -> None:
    """Fill in the compute capability of listed devices that have only a name."""
    listed = facts.get("gpus")
    view = Gpus.of(facts)
    if not isinstance(listed, Fact) or not isinstance(view, Gpus) or not listed.value:
        return
    if all(device.compute_capability for device in view.devices):
        return
    devices = tuple(_with_capability(device) for device in view.devices)
    derived["gpus"] = Fact("gpus", devices, listed.evidence, listed.subject)


def _with_capability(device: Gpu) -> Gpu:
    model = gpus.by_name(device.name) if device.name and not device.compute_capability else None
    if model is None:
        return device
    return msgspec.structs.replace(device, compute_capability=model.compute_capability)


def _add_capability(facts: Facts, derived: dict[str, Fact]) -> None:
    stated = facts.get("cc")
    if isinstance(stated, Fact):
        normal = capability.parse(str(stated.value)) if stated.value is not None else None
        if normal is not None and normal.plain.dotted != stated.value:
            derived["cc"] = Fact("cc", normal.plain.dotted, stated.evidence, stated.subject)
        return
    name = facts.get("gpu")
    if not isinstance(name, Fact) or not name.value:
        return
    model = gpus.by_name(str(name.value))
    if model is not None:
        derived["cc"] = _fact(
            "cc",
            model.compute_capability,
            f"{model.name} has compute capability {model.compute_capability}",
            name,
            model.provenance,
        )


def _add_driver_cuda(facts: Facts, derived: dict[str, Fact]) -> None:
    driver = facts.get("driver")
    if "driver_cuda" in facts or not isinstance(driver, Fact) or not driver.value:
        return
    release = drivers.cuda_of(str(driver.value))
    if release is not None:
        derived["driver_cuda"] = _fact(
            "driver_cuda", release, f"driver {driver.value} supports CUDA {release}", driver, "driver tables"
        )


def _add_torch(facts: Facts, derived: dict[str, Fact]) -> None:
    packaged = facts.get("packages.torch")
    if "torch" not in facts and isinstance(packaged, Fact):
        derived["torch"] = Fact("torch", packaged.value, packaged.evidence, packaged.subject)


def _fact(key: str, value: Any, statement: str, source: Fact, provenance: str) -> Fact:
    place = source.evidence.place or Place("knowledge", provenance)
    quote = source.evidence.quote or str(source.value)
    return Fact(key, value, Evidence(statement, quote, place, Standing.DERIVED), source.subject)
