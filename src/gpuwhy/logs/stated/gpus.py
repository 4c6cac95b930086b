"""GPUs, their compute capability, the driver.

GPU 0: NVIDIA A10 (UUID: GPU-...)                                      nvidia-smi -L, collect_env
NVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible ...
RuntimeError: The NVIDIA driver on your system is too old (found version 12080).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = (
    "GPU ", "GPU:", "GPU0", "GPUs:", "NVIDIA", "Tesla", "GeForce", "apability", "Driver", "driver", "NVRM version", "compute", "cc (", "Quadro",
)  # fmt: skip
_NAME = r"(?:NVIDIA |Tesla |Quadro |GeForce )?(?:NVIDIA |GeForce |Tesla |Quadro |RTX |GTX |TITAN |Graphics |A|H|B|L|T|V|P|K|GH|GB|MIG |Jetson |Thor|Orin|DGX )[\w .+/-]{0,60}?"
_LISTED = Pattern(
    rf"^\s*(?:GPU models and configuration\s*: )?GPU (?P<index>\d{{1,3}}): (?P<name>{_NAME})(?: \(UUID: .*\))?\s*$"
)
_DEVICE = Pattern(
    r"Device (?P<index>\d{1,3}): (?P<name>(?:NVIDIA|Tesla|Quadro|GeForce)[^,]{2,60}), compute capability (?P<major>\d{1,2})\.(?P<minor>\d)"
)
_NAMED_CAPABILITY = (
    ("with CUDA capability sm_", Pattern(r"(?P<name>(?:NVIDIA|Tesla|Quadro|GeForce|GRID) [\w .+-]{2,60}?) with CUDA capability sm_(?P<sm>\d{2,3})\b")),
    ("which is of ", Pattern(r"Found GPU\d{1,3} (?P<name>[\w .+-]{2,60}?) which is of (?:cuda|compute) capability (?:\(CC\) )?(?P<major>\d{1,2})\.(?P<minor>\d)")),
    ("which is too old", Pattern(r"Found (?P<name>(?:NVIDIA|Tesla|Quadro|GeForce|GRID) [\w .+-]{2,60}?) which is too old .{0,300}?(?:your device is of CUDA capability (?P<major>\d{1,2})\.(?P<minor>\d)|$)")),
    ("GPU has compute capability", Pattern(r"Your (?P<name>(?:NVIDIA|Tesla|Quadro|GeForce|GRID) [\w .+-]{2,60}?) GPU has compute capability (?P<major>\d{1,2})\.(?P<minor>\d)")),
)  # fmt: skip
_CAPABILITY = (
    ("your ", Pattern(r"your (?:device|GPU) (?:is of CUDA|has(?: compute)?) capability \(?(?P<major>\d{1,2})(?:\.|, ?)(?P<minor>\d)")),
    ("Current capability", Pattern(r"Current capability: (?P<sm>\d{2,3})\b")),
    ("Compute capability: ", Pattern(r"^\s*[-*]? ?Compute capability: (?P<sm>\d{2,3})\s*$")),
    ("CUDA device capability", Pattern(r"CUDA device capability: (?P<sm>\d{2,3})\b")),
    ("with capability", Pattern(r"does not support backend '\w{1,40}' with capability (?P<sm>\d{2,3})\b")),
    ("current device sm", Pattern(r"does not support current device sm_?(?P<sm>\d{2,3})\b")),
    ("Compute Capability", Pattern(r"GPU \d{1,3}(?:,\d{1,3})* Compute Capability: (?P<major>\d{1,2})\.(?P<minor>\d)")),
    ("cc (", Pattern(r"\bcc \((?P<major>\d{1,2}), (?P<minor>\d)\)")),
    ("evice capability", Pattern(r"[Dd]evice capability ?[:=] ?\(?(?P<major>\d{1,2})(?:\.|, ?)(?P<minor>\d)\b")),
)  # fmt: skip
_DRIVER = (
    Pattern(r"^Nvidia driver version\s*: (?P<driver>\d{3}(?:\.\d{1,3}){1,2})"),
    Pattern(r"^NVRM version: NVIDIA UNIX .{0,60}Kernel Module(?: for \w+)?  (?P<driver>\d{3}(?:\.\d{1,3}){1,2})"),
    Pattern(r"^CUDA Driver Version: (?P<driver>\d{3}(?:\.\d{1,3}){1,2})"),
)  # fmt: skip
_FABRIC_MANAGER = Pattern(
    r"driver interface version (?P<own>\d{3}(?:\.\d{1,3}){1,2}) don't match with driver version (?P<driver>\d{3}(?:\.\d{1,3}){1,2})\b"
)
_DRIVER_TOO_OLD = Pattern(r"driver on your system is too old \(found version (?P<number>\d{5})\)")
LONGEST = 1500


def read(text: str) -> Iterator[Statement]:
    """GPU names come as ``gpu@INDEX`` (``gpu@`` without one), compute capabilities as ``cc@INDEX``."""
    shown = text[:LONGEST]
    listed = _LISTED.match(shown) if "GPU " in shown else None
    if listed is not None:
        yield Statement(f"gpu@{listed['index']}", listed["name"].strip(), Strength.REPORTED)
        return
    device = _DEVICE.search(shown) if "compute capability" in shown else None
    if device is not None:
        yield Statement(f"gpu@{device['index']}", device["name"].strip(), Strength.PRINTED)
        yield Statement(f"cc@{device['index']}", _capability(device), Strength.PRINTED)
        return
    yield from _capabilities(shown)
    yield from _drivers(shown)


def _capabilities(shown: str) -> Iterator[Statement]:
    for literal, pattern in _NAMED_CAPABILITY:
        found = pattern.search(shown) if literal in shown else None
        if found is not None:
            yield Statement("gpu@", found["name"].strip(), Strength.PRINTED)
            capability = _capability(found)
            if capability:
                yield Statement("cc@", capability, Strength.PRINTED)
            return
    for literal, pattern in _CAPABILITY:
        found = pattern.search(shown) if literal in shown else None
        if found is not None:
            yield Statement("cc@", _capability(found), Strength.PRINTED)
            return


def _drivers(shown: str) -> Iterator[Statement]:
    for pattern in _DRIVER:
        found = pattern.match(shown)
        if found is not None:
            yield Statement("driver", found["driver"], Strength.REPORTED)
            return
    fabric = _FABRIC_MANAGER.search(shown) if "driver interface version" in shown else None
    if fabric is not None:
        yield Statement("driver", fabric["driver"], Strength.PRINTED)
        yield Statement("system_packages.nvidia-fabricmanager", fabric["own"], Strength.PRINTED)
        return
    old = _DRIVER_TOO_OLD.search(shown) if "found version" in shown else None
    if old is not None:
        number = int(old["number"])
        yield Statement("driver_cuda", f"{number // 1000}.{number % 1000 // 10}", Strength.PRINTED)
        return


def _capability(found: re.Match[str]) -> str:
    groups = found.groupdict()
    if groups.get("sm"):
        return f"{groups['sm'][:-1]}.{groups['sm'][-1]}"
    return f"{groups['major']}.{groups['minor']}" if groups.get("major") else ""
