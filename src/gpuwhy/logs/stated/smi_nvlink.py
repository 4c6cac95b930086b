"""``nvidia-smi nvlink -e``: the error counters of each link; those that count something are kept.

GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)
         Link 0: Replay Errors: 0
         Link 0: Recovery Errors: 0
         Link 0: CRC Errors: 88
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

LITERALS = ("Errors: ",)
OPENING = ("(UUID: GPU-",)
_COUNTER = Pattern(
    r"^\s{0,24}Link (?P<link>\d{1,2}): (?P<name>(?:Replay|Recovery|CRC|CRC FLIT|CRC Data|ECC|Effective|Symbol|Malformed packet|Buffer overrun|Local link integrity|Link recovery) Errors): {0,20}(?P<count>\d{1,19})\s*$"
)
_GPU = Pattern(r"^\s*GPU (?P<index>\d{1,3}): .{1,120}\(UUID: GPU-")
_LINK = Pattern(r"^\s{0,24}Link \d{1,2}: ")
LONGEST = 300


def read(text: str) -> Iterator[Statement]:
    """A counter whose GPU is not shown."""
    yield from _counted(text, "")


def opened(text: str) -> Block | None:
    gpu = _GPU.match(text[:LONGEST])
    return _Counters(gpu["index"]) if gpu is not None else None


class _Counters:
    shares = True

    def __init__(self, gpu: str) -> None:
        self._gpu = gpu

    def read(self, text: str) -> list[Statement] | None:
        return list(_counted(text, f"GPU {self._gpu}: ")) if _LINK.match(text[:LONGEST]) else None


def _counted(text: str, gpu: str) -> Iterator[Statement]:
    counter = _COUNTER.match(text[:LONGEST])
    if counter is not None and int(counter["count"]):
        said = f"{gpu}Link {counter['link']}: {counter['name']}: {int(counter['count'])}"
        yield Statement("nvlink_errors[]", said, Strength.REPORTED)
