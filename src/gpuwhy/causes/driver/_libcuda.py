"""Which libcuda.so.1 a process loads: the driver's own, or another copy, by its path."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.container import _place as place
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.gpu_access import GpuAccess

DRIVER_FIRST = "/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
"""The folders into which engines of containers mount the host's driver, as a value of LD_LIBRARY_PATH."""

_CACHE_LINE = lazy_pattern(r"libcuda\.so\.1 \([^)]{1,60}\) => (?P<path>/\S{1,300})")
_MAPPED = lazy_pattern(r"^[0-9a-f]{8,16}-[0-9a-f]{8,16} \S{4} \S{1,40} .{0,60}?(?P<path>/\S{0,300}libcuda\.so\S{0,30})")
_LOADED = lazy_pattern(r"(?:calling init:|libcuda\.so(?:\.1)? =>|loaded|using|Loading|library=|dlopen\W{1,3}) ?(?P<path>/\S{0,300}/libcuda\.so[.\d]{0,20})")  # fmt: skip
_SEARCH_PATH = lazy_pattern(r"\bLD_LIBRARY_PATH\W{1,4}(?P<value>[^\s'\"]{1,2000})")
_FOREIGN_FOLDER = lazy_pattern(
    r"/compat(?:/|$)|/stubs(?:/|$)|conda|/envs?/|site-packages|/opt/(?!nvidia)|/nix/store/.{0,80}cuda_compat|/home/|/snap/|/tmp/"
)


class Libcuda(Struct, frozen=True):
    """A copy of libcuda that is not the driver's. ``component`` is the part it belongs to."""

    path: str
    component: str
    evidence: Evidence
    is_seen_loaded: bool
    """False when only a search path names its folder."""


def foreign(case: Case, access: GpuAccess | Unknown) -> Libcuda | None:
    """The foreign copy that the process loads, by facts, loader lines or the search path; None when none shows."""
    if isinstance(access, GpuAccess) and access.is_libcuda_known:
        return _of_path(case, access.libcuda, access.evidence["libcuda_path"], True)
    for name, line in place.lines(case):
        text = line.text[: place.LONGEST]
        if "libcuda" not in text:
            continue
        for pattern in (_CACHE_LINE, _MAPPED, _LOADED):
            found = pattern.search(text)
            if found is not None:
                # ldconfig lists what would be loaded first at the top: the first line decides
                return _of_path(case, found["path"], place.quoted(name, line, "the libcuda that is loaded"), True)
    return _by_search_path(case)


def _by_search_path(case: Case) -> Libcuda | None:
    variable = case.facts.value("env.LD_LIBRARY_PATH")
    evidence = case.fact_evidence("env.LD_LIBRARY_PATH")
    value = str(variable or "")
    if evidence is None:
        for name, line in place.lines(case):
            found = _SEARCH_PATH.search(line.text[: place.LONGEST])
            if found is not None:
                value, evidence = found["value"], place.quoted(name, line, "the search path of the process")
                break
    for folder in value.split(":"):
        if evidence is not None and re.search(r"/compat/?(?:lib/?)?$|/stubs/?$", folder):
            return _of_path(case, f"{folder.rstrip('/')}/libcuda.so.1", evidence, False)
    return None


def _of_path(case: Case, path: str | None, evidence: Evidence, is_seen: bool) -> Libcuda | None:
    if path is None:
        return None
    is_wsl = any("microsoft" in str(case.facts.value(key) or "").lower() or "wsl" in str(case.facts.value(key) or "").lower() for key in ("kernel_release", "os", "hypervisor"))  # fmt: skip
    if _FOREIGN_FOLDER.search(path) is None and not (is_wsl and "/wsl/" not in path):
        return None
    if "/stubs" in path:
        return Libcuda(path, "cuda-toolkit", evidence, is_seen)
    if "/compat" in path or "cuda_compat" in path:
        return Libcuda(path, "cuda-compat", evidence, is_seen)
    if is_wsl:
        return Libcuda(path, "driver", evidence, is_seen)
    return Libcuda(path, "python-env", evidence, is_seen)
