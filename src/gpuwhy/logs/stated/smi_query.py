"""``nvidia-smi -q`` and ``nvidia-smi --version``: names and values behind an aligned colon.

==============NVSMI LOG==============
Driver Version                            : 570.86.15
CUDA Version                              : 12.8
GPU 00000000:01:00.0
    Product Name                          : NVIDIA H100 PCIe
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Block, Statement, Strength

LITERALS = ("Driver Version  ", "DRIVER version  ", "KMD Version  ", "CUDA Version  ", "CUDA UMD Version  ")
OPENING = ("NVSMI LOG",)
_DRIVER = Pattern(r"^\s*(?:Driver Version|DRIVER version|KMD Version) {4,60}: (?P<value>\d{3}(?:\.\d{1,3}){1,2})\s*$")
_CUDA = Pattern(r"^\s*(?:CUDA Version|CUDA UMD Version) {4,60}: (?P<value>\d{1,2}\.\d{1,2})\s*$")
_GPU = Pattern(r"^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$")
_LINE = Pattern(r"^(?P<indent> {0,24})(?P<name>\S[^:]{0,60}?)(?: *: (?P<value>.{0,200}))?$")


def read(text: str) -> Iterator[Statement]:
    for key, pattern in (("driver", _DRIVER), ("driver_cuda", _CUDA)):
        found = pattern.match(text[:200])
        if found is not None:
            yield Statement(key, found["value"], Strength.REPORTED)


def opened(text: str) -> Block | None:
    return _Log() if "==NVSMI LOG==" in text else None


class _Log:
    """GPUs come in the order of their index."""

    shares = True

    def __init__(self) -> None:
        self._index = -1
        self._section = ""
        self._blank = 0

    def read(self, text: str) -> list[Statement] | None:
        shown = text[:300].rstrip()
        if not shown:
            self._blank += 1
            return [] if self._blank < 3 else None
        self._blank = 0
        if _GPU.match(shown):
            self._index += 1
            return []
        line = _LINE.match(shown)
        if line is None:
            return []
        name, value = line["name"].strip(), (line["value"] or "").strip()
        if line["value"] is None:
            self._section = name
            return []
        if self._index < 0:
            return []
        if name == "Product Name" and value[:1].isalpha():
            return [Statement(f"gpu@{self._index}", value, Strength.REPORTED)]
        wrong = (
            (name == "Remapping Failure Occurred" and value == "Yes")
            or (self._section == "Fabric" and name == "State" and value not in ("Completed", "N/A"))
            or (name in ("GPU Recovery Action", "Recovery Action") and value not in ("None", "N/A"))
        )
        if wrong:
            label = f"{self._section} {name}" if self._section == "Fabric" else name
            return [Statement("gpu_errors[]", f"GPU {self._index}: {label}: {value}", Strength.REPORTED)]
        return []
