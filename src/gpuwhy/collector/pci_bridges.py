"""Access Control Services on the PCI bridges above the GPUs: bits that send what GPUs say to each other through the root.

Read from the devices' configuration space in ``/sys``. The extended capabilities begin at 0x100, each with its number, version and
the place of the next in 32 bits; ACS is number 0x000d, its control register lies six bytes in. Anyone may read the first
64 bytes of the space; root all of it.
"""

import os
from typing import Any, Dict, List, Optional

from gpuwhy.collector.probing import Absent, Denied, Notes, Request
from gpuwhy.collector.reading import read_bytes, try_line, try_list

DEVICES = "/sys/bus/pci/devices"

ACS = 0x000D

BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
"""The control register from bit 0 up, as lspci names its bits."""

SHOWN_TO_ANYONE = 64
"""Bytes of the space that the kernel lets everybody read; a device has 256 of them, one of PCI Express 4096."""

MOST_BRIDGES = 256


def pci_bridges(_request: Request, notes: Notes) -> Dict[str, Any]:
    """``bridges``: address, the GPUs below, and of those with ACS the bits that are on. Raises Absent and Denied."""
    below: Dict[str, List[str]] = {}
    gpus = _gpus()
    for name in gpus:
        for bridge in bridges_above(name):
            below.setdefault(bridge, []).append(name)
    if not gpus:
        raise Absent("there is no NVIDIA GPU on the PCI bus")
    notes.source("%s/*/config" % DEVICES)
    found: List[Dict[str, Any]] = []
    unread: List[str] = []
    for bridge in sorted(below)[:MOST_BRIDGES]:
        space = read_bytes("%s/%s/config" % (DEVICES, bridge), 4096)
        if len(space) <= SHOWN_TO_ANYONE:
            unread.append(bridge)
            continue
        control = acs_control(space)
        found.append(
            {
                "address": bridge,
                "gpus": below[bridge],
                "has_acs": control is not None,
                "on": [] if control is None else [name for at, name in enumerate(BITS) if control >> at & 1],
                "acs": None if control is None else in_words(control),
            }
        )
    if unread:
        reason = "the configuration space of PCI bridges beyond its first 64 bytes"
        if not found:
            raise Denied(reason)
        notes.deny(reason)
    return {"bridges": found, "unread": unread}


def _gpus() -> List[str]:
    found: List[str] = []
    for name in try_list(DEVICES, 10000):
        path = "%s/%s/" % (DEVICES, name)
        if try_line(path + "vendor") == "0x10de" and (try_line(path + "class") or "").startswith("0x03"):
            found.append(name)
    return found


def bridges_above(device: str) -> List[str]:
    """The devices between one and the root, nearest first: the folders around it in ``/sys/devices``."""
    real = os.path.realpath("%s/%s" % (DEVICES, device))
    found: List[str] = []
    for part in reversed(real.split("/")[:-1]):
        if part.startswith("pci") or part.count(":") != 2:
            break
        found.append(part)
    return found


def acs_control(space: bytes) -> Optional[int]:
    """The ACS control register in a configuration space; None for a device without it."""
    at = 0x100
    for _ in range(96):
        if at < 0x100 or at + 8 > len(space):
            return None
        header = int.from_bytes(space[at : at + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return None
        if header & 0xFFFF == ACS:
            return int.from_bytes(space[at + 6 : at + 8], "little")
        at = header >> 20
    return None


def in_words(control: int) -> str:
    """As lspci writes it: ``SrcValid+ TransBlk- ReqRedir+ ...``."""
    return " ".join(name + ("+" if control >> at & 1 else "-") for at, name in enumerate(BITS))
