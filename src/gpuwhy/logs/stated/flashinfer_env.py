"""``flashinfer show-config`` and ``flashinfer collect-env``.

=== Version Info ===                       ==== CUDA Toolkit ====
FlashInfer version: 0.6.12                 nvcc on PATH                            : /usr/bin/nvcc
=== Environment Variables ===              CUDA toolkit resolved by flashinfer JIT : /usr/local/cuda (version 12.8)
FLASHINFER_CUDA_ARCH_LIST: set()           nvcc version                            : release 11.5, V11.5.119
CUDA_VERSION: 12.8                         Target CUDA archs (resolved)            : set()
NVCC found: Yes

Traps. ``FLASHINFER_CUDA_ARCH_LIST`` of show-config is the resolved set, not the variable. ``CUDA_VERSION`` is nvcc's only
where one was found, else torch's. ``nvcc version`` of collect-env is that of the nvcc on PATH, whatever the JIT takes.
Older collect-env marks a right ``X+cuNNN`` of flashinfer-jit-cache as a mismatch: only its version is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated import versions
from gpuwhy.logs.stated._types import Block, Statement, Strength
from gpuwhy.logs.stated.environment import is_interesting, variable

OPENING = ("=== Version Info ===", "=== Environment Variables ===", "==== FlashInfer ====", "==== CUDA Toolkit ====", "==== GPU / Driver ====")  # fmt: skip
_LINE = Pattern(r"^(?P<name>[^:=]{1,60}?) ?: (?P<value>.{0,500}?)\s*$")
_SECTION = Pattern(r"^(?P<mark>={3,4}) (?P<name>[\w /.,:-]{2,60}) ={3,4}\s*$")
_TARGET = Pattern(r"\((?P<major>\d{1,2}), ?'(?P<minor>\d[a-z]?)'\)")
_RELEASE = Pattern(r"\d{1,2}\.\d{1,2}")
_RESOLVED = Pattern(r"^(?P<root>/\S{1,300}) \(version (?P<version>\d{1,2}\.\d{1,2})\)$")
_ON_PATH = Pattern(r"^release (?P<version>\d{1,2}\.\d{1,2}), V")
_CUDA_ORDER = Pattern(r"^GPU (?P<index>\d{1,3}) \(CUDA order\)$")
_DEVICE = Pattern(r"^(?P<name>[A-Z][^|]{2,60}?) \| SM(?P<major>\d{1,2})(?P<minor>\d) \|")
_DRIVER = Pattern(r"^\d{3}(?:\.\d{1,3}){1,2}$")
MAX_LINES = 400


def opened(text: str) -> Block | None:
    section = _SECTION.match(text[:200])
    if section is None:
        return None
    return _Config(section["name"]) if len(section["mark"]) == 3 else _Environment(section["name"])


def _targets(value: str) -> list[str] | None:
    """``{(12, '0f')}`` as ``["12.0f"]``, ``set()`` as an empty list; None when it is neither."""
    if value == "set()":
        return []
    found = [f"{major}.{minor}" for major, minor in _TARGET.findall(value)]
    return sorted(found) or None


class _Config:
    """``flashinfer show-config``."""

    shares = False

    def __init__(self, section: str) -> None:
        self._section = section
        self._version = ""
        self._home: str | None = None
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        section = _SECTION.match(text[:200])
        if section is not None and len(section["mark"]) == 3:
            self._section = section["name"]
            return [] if self._section not in ("Downloaded Cubins", "Module Status") else None
        line = _LINE.match(text[:600])
        if self._lines > MAX_LINES or (line is None and text.strip()):
            return None
        return [] if line is None else list(self._statements(line["name"].strip(), line["value"].strip()))

    def _statements(self, name: str, value: str) -> Iterator[Statement]:
        if self._section == "Version Info":
            package = name.removesuffix(" version")
            if value[:1].isdigit():
                yield from versions.package(package, value, Strength.REPORTED)
            elif value == "Not installed":
                yield Statement(f"packages.{versions.canonical(package)}", None, Strength.REPORTED)
        elif self._section == "Torch Version Info":
            if name == "Torch version" and value[:1].isdigit():
                yield from versions.package("torch", value, Strength.REPORTED)
        elif self._section == "Environment Variables":
            yield from self._variable(name, value)

    def _variable(self, name: str, value: str) -> Iterator[Statement]:
        if name == "FLASHINFER_CUDA_ARCH_LIST":
            targets = _targets(value)
            if targets is not None:
                yield Statement("jit_targets", targets, Strength.REPORTED)
        elif name == "CUDA_VERSION" and _RELEASE.fullmatch(value):
            self._version = value
        elif name == "CUDA_HOME":
            self._home = value
            yield Statement("cuda_home", value or None, Strength.REPORTED)
        elif name == "NVCC found":
            if value == "No":
                yield Statement("cuda_toolkit", None, Strength.REPORTED)
            elif value == "Yes" and self._version:
                yield Statement("cuda_toolkit", self._version, Strength.REPORTED)


class _Environment:
    """``flashinfer collect-env``."""

    shares = True

    def __init__(self, section: str) -> None:
        self._section = section
        self._lines = 0

    def read(self, text: str) -> list[Statement] | None:
        self._lines += 1
        section = _SECTION.match(text[:200])
        if section is not None:
            self._section = section["name"] if len(section["mark"]) == 4 else ""
            return [] if self._section else None
        if self._lines > MAX_LINES:
            return None
        line = _LINE.match(text[:600])
        return [] if line is None else list(self._statements(line["name"].strip(), line["value"].strip()))

    def _statements(self, name: str, value: str) -> Iterator[Statement]:
        if self._section == "FlashInfer":
            if name == "Target CUDA archs (resolved)":
                targets = _targets(value)
                if targets is not None:
                    yield Statement("jit_targets", targets, Strength.REPORTED)
            elif name in ("flashinfer", "flashinfer-cubin", "flashinfer-jit-cache"):
                yield from _package(name, value)
        elif self._section == "GPU / Driver":
            yield from _device(name, value)
        elif self._section == "CUDA Toolkit":
            yield from _toolkit(name, value)
        elif self._section == "PyTorch":
            if name == "torch":
                yield from _package(name, value)
            elif name == "torch.version.cuda" and _RELEASE.fullmatch(value):
                yield Statement("torch_cuda", value, Strength.REPORTED)
            elif name == "torch compiled archs" and value.startswith("sm_"):
                yield Statement("torch_arch_list", value.split(), Strength.REPORTED)
        elif self._section == "Relevant Packages":
            yield from _package(name, value)
        elif self._section == "Environment Variables" and is_interesting(name) and value != "<unset>":
            yield from variable(name, value, Strength.REPORTED)
        elif self._section == "Python / Platform" and name == "Python" and value[:2] == "3.":
            yield Statement("python", value.split()[0], Strength.REPORTED)


def _package(name: str, value: str) -> Iterator[Statement]:
    version = value.split(" ")[0]
    if version[:1].isdigit():
        yield from versions.package(name, version, Strength.REPORTED)
    elif value == "not installed":
        yield Statement(f"packages.{versions.canonical(name)}", None, Strength.REPORTED)


def _device(name: str, value: str) -> Iterator[Statement]:
    if name == "Driver version" and _DRIVER.match(value):
        yield Statement("driver", value, Strength.REPORTED)
    index, device = _CUDA_ORDER.match(name), _DEVICE.match(value)
    if index is not None and device is not None:
        yield Statement(f"gpu@{index['index']}", device["name"], Strength.REPORTED)
        yield Statement(f"cc@{index['index']}", f"{device['major']}.{device['minor']}", Strength.REPORTED)


def _toolkit(name: str, value: str) -> Iterator[Statement]:
    if name == "nvcc on PATH":
        yield Statement("nvcc_path", None if value == "not found" else value, Strength.REPORTED)
    elif name == "nvcc version":
        found = _ON_PATH.match(value)
        if found is not None:
            yield Statement("nvcc_path_version", found["version"], Strength.REPORTED)
    elif name == "CUDA toolkit resolved by flashinfer JIT":
        resolved = _RESOLVED.match(value)
        if resolved is not None:  # the version is torch's when that root has no nvcc: no cuda_toolkit
            yield Statement("cuda_home", resolved["root"], Strength.REPORTED)
            said = {"version": resolved["version"], "root": resolved["root"]}
            yield Statement("toolkit_resolved.flashinfer", said, Strength.REPORTED)
