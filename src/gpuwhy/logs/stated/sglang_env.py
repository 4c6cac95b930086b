"""``python -m sglang.check_env``: flat ``Key: value`` lines that begin with Python's version.

Python: 3.12.3 (main, Jun 18 2025, 17:59:45) [GCC 13.3.0]
CUDA available: True
GPU 0,1: NVIDIA H100 80GB HBM3
GPU 0,1 Compute Capability: 9.0
CUDA_HOME: /usr/local/cuda
NVCC: Cuda compilation tools, release 12.8, V12.8.93

``NVCC`` is the compiler in that ``CUDA_HOME`` (torch's search), not the one on PATH.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import versions
from gpuwhy.logs.stated._types import Block, Statement, Strength

OPENING = ("Python: 3.", "CUDA available: ")
_PYTHON = Pattern(r"^Python: (?P<value>3\.\d{1,2}\.\d{1,2}) ?\(.{1,120}\) ?\[.{1,120}\]\s*$")
_AVAILABLE = Pattern(r"^CUDA available: (?:True|False)\s*$")
_GPUS = Pattern(r"^GPU (?P<indexes>\d{1,3}(?:,\d{1,3}){0,63}): (?P<name>[A-Z][\w .+/()-]{2,60}?)\s*$")
_CAPABILITY = Pattern(r"^GPU (?P<indexes>\d{1,3}(?:,\d{1,3}){0,63}) Compute Capability: (?P<value>\d{1,2}\.\d)\s*$")
_NVCC = Pattern(r"^NVCC: Cuda compilation tools, release (?P<value>\d{1,2}\.\d{1,2})\b")
_DRIVER = Pattern(r"^CUDA Driver Version: (?P<value>\d{3}(?:\.\d{1,3}){1,2})\s*$")
_PACKAGE = Pattern(r"^(?P<name>[A-Za-z][\w.-]{1,60}): (?P<version>\d[\w.+!-]{0,60}|Module Not Found)\s*$")
_HOME = Pattern(r"^CUDA_HOME: (?P<value>/[\w./+-]{1,200})\s*$")
_LIMIT = Pattern(r"^ulimit soft: (?P<value>\d{1,12})\s*$")
MAX_LINES = 120


def opened(text: str) -> Block | None:
    shown = text[:400]
    python = _PYTHON.match(shown)
    return _Report() if python is not None or _AVAILABLE.match(shown) else None


class _Report:
    shares = True

    def __init__(self) -> None:
        self._home = ""
        self._is_sure = False
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        if self._lines > MAX_LINES or (self._lines > 3 and not self._is_sure):
            return None
        shown = text[:400]
        if _AVAILABLE.match(shown) or shown.startswith(("GPU ", "CUDA_HOME: ", "NVCC: ")):
            self._is_sure = True
        return list(self._statements(shown))

    def _statements(self, shown: str) -> Iterator[Statement]:
        gpus, capability = _GPUS.match(shown), _CAPABILITY.match(shown)
        for key, found, group in (("gpu", gpus, "name"), ("cc", capability, "value")):
            if found is not None:
                for index in found["indexes"].split(","):
                    yield Statement(f"{key}@{index}", found[group], Strength.REPORTED)
                return
        home = _HOME.match(shown)
        if home is not None:
            self._home = home["value"]
            return
        nvcc = _NVCC.match(shown)
        if nvcc is not None and self._home:
            yield Statement(f"other_toolkits.{self._home}", nvcc["value"], Strength.REPORTED)
            said = {"version": nvcc["value"], "root": self._home}
            yield Statement("toolkit_resolved.torch", said, Strength.REPORTED)
            return
        driver, limit = _DRIVER.match(shown), _LIMIT.match(shown)
        if driver is not None:
            yield Statement("driver", driver["value"], Strength.REPORTED)
        elif limit is not None:
            yield Statement("ulimit.nofile", int(limit["value"]), Strength.REPORTED)
        package = _PACKAGE.match(shown) if driver is None and limit is None else None
        if package is not None and package["name"] not in ("Python", "CUDA_HOME", "NVCC"):
            if package["version"][0].isdigit():
                yield from versions.package(package["name"], package["version"], Strength.REPORTED)
            elif package["name"] != "PyTorch":
                yield Statement(f"packages.{versions.canonical(package['name'])}", None, Strength.REPORTED)
