"""``nvidia-smi topo -m``: how the GPUs reach each other.

        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV18    PXB     0-55            0               N/A
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

OPENING = ("GPU0",)
_HEADER = Pattern(r"^\s{0,12}GPU0\s{1,8}(?:GPU1\b|.{0,400}CPU Affinity|.{0,400}NIC0)")
_COLUMN = Pattern(r"GPU\d{1,3}(?=\s|$)")
_ROW = Pattern(r"^\s{0,4}GPU(?P<index>\d{1,3})\s{1,8}(?P<links>\S.{0,2000})$")
_LINK = Pattern(r"X|NV\d{1,3}|SYS|NODE|PHB|PXB|PIX|C2C")


def opened(text: str) -> Block | None:
    shown = text[:3000]
    return _Matrix(len(_COLUMN.findall(shown))) if _HEADER.match(shown) else None


class _Matrix:
    shares = False

    def __init__(self, columns: int) -> None:
        self._columns = columns

    def read(self, text: str) -> list[Statement] | None:
        row = _ROW.match(text[:3000])
        if row is None:
            return None
        links = row["links"].split()[: self._columns]
        if not all(_LINK.fullmatch(link) for link in links):
            return None
        return [Statement("gpu_links[]", link, Strength.REPORTED) for link in links if link != "X"]
