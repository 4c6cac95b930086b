"""``lspci``: NVIDIA devices, and Access Control Services on the bridges above them (``lspci -vvv``).

01:00.0 VGA compatible controller: NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1)
                ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = ("NVIDIA Corporation", "ACSCtl:")
_DEVICE = Pattern(
    r"^\s{0,8}(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d) (?P<kind>VGA compatible controller|3D controller|Display controller|Bridge)(?: \[[0-9a-f]{4}\])?: NVIDIA Corporation (?P<name>.{2,120}?)\s*$"
)
_ACS = Pattern(r"^\s{0,24}ACSCtl:\s{1,8}(?P<bits>(?:\w{4,14}[+-]\s{0,3}){3,10})$")


def read(text: str) -> Iterator[Statement]:
    shown = text[:300]
    device = _DEVICE.match(shown)
    if device is not None:
        if device["kind"] != "Bridge":
            yield Statement("pci_gpus[]", device["address"], Strength.REPORTED)
        elif "NVSwitch" in device["name"]:
            yield Statement("nvswitch", True, Strength.REPORTED)
        return
    acs = _ACS.match(shown)
    if acs is not None:
        on = [bit for bit in acs["bits"].split() if bit.endswith("+")]
        if on:
            yield Statement("pci_acs[]", " ".join(on), Strength.REPORTED)
