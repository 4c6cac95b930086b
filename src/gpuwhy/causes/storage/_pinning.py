"""Signs that memory could not be pinned for a network card; a limit of the process or the kernel refuses it."""

from __future__ import annotations

import re

from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says

_ENOMEM = r"(?:Cannot allocate memory|\berrno[ =:]{1,3}12\b|\[12\]|\bENOMEM\b|\(12\)|Out of memory|error 12\b)"
VERBS = says(
    "verbs-enomem",
    ("ibv_", "reg_mr", "register memory", "registermemory", "memory registration", "fi_mr_reg", "mr_reg", "io_uring"),
    rf"ibv_(?:cmd_|exp_)?(?:reg_mr\w{{0,10}}|reg_dmabuf_mr|create_cq|create_qp|create_srq|alloc_pd|open_device)\b.{{0,160}}{_ENOMEM}|(?:reg_mr|fi_mr_reg\w{{0,6}}|mr_reg)\b.{{0,160}}{_ENOMEM}"
    rf"|(?:[Ff]ailed|[Uu]nable|[Cc]annot|[Cc]ould not) to register (?:local |remote |user |the )?(?:memory|buffer|mr)\b.{{0,160}}{_ENOMEM}|[Mm]emory registration (?:of .{{0,60}})?failed.{{0,160}}{_ENOMEM}|io_uring\w{{0,20}}.{{0,60}}{_ENOMEM}",
)  # fmt: skip
"""Registration of memory, or of the queues that are pinned themselves, with ENOMEM."""
SIGNS = (VERBS,)
_VALUE = lazy_pattern(r"^\s{0,4}(?P<number>\d{1,20})\s{0,4}(?P<unit>bytes|B|kB|KiB|KB|K|MB|MiB|M|GB|GiB|G)?\b", re.IGNORECASE)  # fmt: skip
_UNITS = {"": 1, "bytes": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30}  # fmt: skip
_UNLIMITED = lazy_pattern(r"unlimited|infinity|^-1$|18446744073709551615", re.IGNORECASE)


def limit_in_bytes(said: str) -> int | str | None:
    """``8192 kB`` or ``unlimited``. A bare number is in bytes where it is that of /proc/PID/limits; None when unreadable."""
    if _UNLIMITED.search(said.strip()):
        return "unlimited"
    found = _VALUE.search(said)
    if found is None:
        return None
    return int(found["number"]) * _UNITS[(found["unit"] or "").lower()]


def limit_in_pieces(said: str) -> int | str | None:
    """``1024`` or ``unlimited``."""
    if _UNLIMITED.search(said.strip()):
        return "unlimited"
    found = _VALUE.search(said)
    return None if found is None else int(found["number"])
