"""NCCL: the release that a torch wheel brings, functions by release, and releases with a known fault.

Releases per torch come from the measured table of :mod:`gpuwhy.knowledge.torch`. The first release of a function is
that of NCCL's header and release notes; faults are those of its release notes and of settled bug reports.
"""

from __future__ import annotations

import re

from msgspec import Struct
from packaging.version import InvalidVersion, Version

from gpuwhy.knowledge import torch as torch_table

FIRST_RELEASE_OF = {
    "ncclCommInitRankConfig": "2.14", "ncclCommFinalize": "2.14", "ncclCommSplit": "2.18", "ncclMemAlloc": "2.19", "ncclMemFree": "2.19",
    "ncclCommRegister": "2.19", "ncclCommDeregister": "2.19", "ncclCommInitRankScalable": "2.23", "ncclCommShrink": "2.27",
    "ncclCommWindowRegister": "2.27", "ncclCommWindowDeregister": "2.27", "ncclGroupSimulateEnd": "2.22", "ncclRedOpCreatePreMulSum": "2.11",
    "ncclGetLastError": "2.13", "ncclCommGetAsyncError": "2.4", "ncclCommAbort": "2.4", "ncclSend": "2.7", "ncclDevCommCreate": "2.28",
    "ncclAlltoAll": "2.28", "ncclGather": "2.28", "ncclScatter": "2.28",
}  # fmt: skip
"""Functions that newer programs call, by the first release that has them."""


class KnownFault(Struct, frozen=True):
    """A fault of releases ``first`` to ``last`` that shows itself by ``message``; gone from ``fixed`` on."""

    first: str
    last: str
    fixed: str
    message: str
    what: str
    capability_major: str = ""
    """The fault needs a GPU of this generation; empty for any."""


KNOWN_FAULTS = (
    KnownFault("2.14", "2.17.99", "2.18", r"Invalid config blocking attribute|Invalid config (?:cgaClusterSize|minCTAs|maxCTAs|splitShare|netName|trafficClass|attribute)", "it does not know the configuration that a newer torch passes"),
    KnownFault("2.18", "2.26.99", "2.27", r"Invalid config (?:splitShare|trafficClass|collnetEnable|CTAPolicy|shrinkShare|nvlsCTAs|nChannelsPerNetPeer|nvlinkCentricSched)", "it does not know the configuration that a newer torch passes"),
    KnownFault("2.18.1", "2.18.1", "2.18.3", r"Cuda failure '?(?:\d{1,4} '?)?invalid argument", "it opens IPC handles wrongly when the program has opened some of its own (a custom all-reduce)"),
    KnownFault("2.24", "2.26.4", "2.26.5", r"Cuda failure '?(?:\d{1,4} '?)?invalid argument", "it allocates host memory by NUMA node, which containers may forbid"),
    KnownFault("2.0", "2.24.99", "2.25.1", r"no kernel image|named symbol not found|invalid device function|Cuda failure '?(?:\d{1,4} '?)?invalid argument", "it has no code for this GPU", capability_major="12"),
)  # fmt: skip


def parse(version: str) -> Version | None:
    """``2.18.1``, ``2.27.5+cuda12.9`` or the number 21805 (2.18.5) and 2708 (2.7.8); None for anything else."""
    text = version.strip().lstrip("v").partition("+")[0]
    if text.isdigit() and len(text) in (4, 5):
        number = int(text)
        parts = (number // 10000, number // 100 % 100, number % 100) if number >= 10000 else (number // 1000, number // 100 % 10, number % 100)  # fmt: skip
        text = ".".join(map(str, parts))
    if not re.fullmatch(r"\d{1,2}(?:\.\d{1,3}){1,3}", text):
        return None
    try:
        return Version(text)
    except InvalidVersion:
        return None


def of_torch(torch: str) -> str | None:
    """The release that the default wheel of a torch release requires ("2.8.0" -> "2.27.3"); None if unknown."""
    row = torch_table.release(torch)
    return row.nccl if row else None


def suspected(version: str) -> KnownFault | None:
    """A fault of this one release (not of a whole range) for a report that does not show NCCL's own last error."""
    release = parse(version)
    exact = (known for known in KNOWN_FAULTS if known.first == known.last)
    return next((known for known in exact if release is not None and Version(known.first) == release), None)


def fault(version: str, text: str, capability: str | None = None) -> KnownFault | None:
    """The known fault of a release that ``text`` shows; faults of one GPU generation only where ``capability`` is it."""
    release = parse(version)
    if release is None:
        return None
    for known in KNOWN_FAULTS:
        if not Version(known.first) <= release <= Version(known.last):
            continue
        if known.capability_major and (capability or "").partition(".")[0] != known.capability_major:
            continue
        if re.search(known.message, text, re.IGNORECASE):
            return known
    return None
