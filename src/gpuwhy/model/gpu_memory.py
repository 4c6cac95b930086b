"""Who holds memory on the GPUs: the view of ``gpu_processes``."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Fact, Facts, Unknown

COMMAND = "nvidia-smi --query-compute-apps=gpu_bus_id,pid,process_name,used_memory --format=csv"
_UNITS = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}  # fmt: skip
_SIZE = re.compile(r"(?<![\w.])(\d{1,9}(?:\.\d{1,4})?) ?([KMGT]i?B)\b", re.IGNORECASE | re.ASCII)
_GPU = re.compile(r"\b(?:GPU|cuda|device)[ :#]{0,2}(\d{1,3})\b|^\s{0,8}(\d{1,3})\s?:", re.IGNORECASE | re.ASCII)
_PID = re.compile(r"\b(?:process|pid)[ :=#]{0,3}(\d{1,10})\b", re.IGNORECASE | re.ASCII)
_NOTHING = re.compile(r"^\W{0,4}(?:none|no(?: running)? process(?:es)?(?: found)?|nothing|idle|free)\b", re.IGNORECASE)
LONGEST = 2000


class Holder(Struct, frozen=True):
    """One process on one GPU. ``memory`` in bytes; None for what the text does not say."""

    text: str
    gpu: int | None = None
    pid: int | None = None
    memory: int | None = None


class GpuHolders(Struct, frozen=True):
    """The processes that hold GPU memory, none when somebody looked and found none."""

    holders: tuple[Holder, ...]
    evidence: Evidence

    @classmethod
    def of(cls, facts: Facts) -> GpuHolders | Unknown:
        """From ``gpu_processes``: a list of texts such as ``GPU 0: process 4711 (python) holds 71234 MiB``."""
        listed = facts.get("gpu_processes")
        if not isinstance(listed, Fact):
            return Unknown(listed.why, "gpu_processes", listed.command or COMMAND)
        value: Any = listed.value
        texts = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
        holders = tuple(holder(str(text)) for text in texts if not _NOTHING.match(str(text)[:LONGEST]))
        return cls(holders, listed.evidence)

    def on(self, gpu: int | None) -> tuple[Holder, ...]:
        """Those on that GPU, and those of which no GPU is known; all for None."""
        return tuple(each for each in self.holders if gpu is None or each.gpu is None or each.gpu == gpu)


def holder(text: str) -> Holder:
    """One line of a list of processes, as people and ``nvidia-smi`` write it."""
    shown = text[:LONGEST]
    gpu, pid = _GPU.search(shown), _PID.search(shown)
    index = next((int(number) for number in gpu.groups() if number), None) if gpu else None
    return Holder(text.strip(), index, int(pid[1]) if pid else None, size_in(shown))


def size_in(text: str) -> int | None:
    """The first size in a text, in bytes: ``1.5 GiB``, ``300MB`` (engines and drivers write GB for 2^30)."""
    found = _SIZE.search(text[:LONGEST])
    return None if found is None else size_of(found[1], found[2])


def size_of(number: str, unit: str) -> int:
    """``("22.5", "GiB")`` in bytes; powers of two whatever the unit says. A unit that is unknown counts as bytes."""
    return round(float(number) * _UNITS.get(unit.lower(), 1))
