"""Every CUDA toolkit on the host: where it lies, its version, and what of it is there."""

import glob
import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.environment import home_of
from gpuwhy.collector.launching import which
from gpuwhy.collector.probing import Absent, Notes, Request, first_of
from gpuwhy.collector.reading import try_text
from gpuwhy.collector.tool_versions import version_of

PATTERNS = (
    "/usr/local/cuda", "/usr/local/cuda-*", "/usr/local/cuda[0-9]*", "/opt/cuda", "/opt/cuda-*", "/opt/cuda/*", "/usr/lib/cuda", "/usr/lib/cuda-*",
    "/usr/lib/nvidia-cuda-toolkit", "/usr/cuda", "/usr/local/nvidia/cuda*", "/opt/nvidia/cuda*", "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/*",
    "/apps/cuda*", "/sw/cuda*", "/opt/modules/cuda/*", "/usr/local/*/cuda-*", "/run/current-system/sw",
)  # fmt: skip

VARIABLES = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDA_TOOLKIT_ROOT_DIR",
    "CUDACXX",
    "FLASHINFER_NVCC",
    "PYTORCH_NVCC",
    "DG_JIT_NVCC_COMPILER",
)

MOST = 60


def toolkits(
    _request: Request,
    notes: Notes,
    environment: Optional[Dict[str, Any]],
    environments: Optional[List[Dict[str, Any]]],
) -> List[Dict[str, Any]]:
    """The toolkits by their root folder, each once; other names of the same folder are its ``aliases``."""
    variables: Dict[str, str] = first_of(environment, "variables", {})
    by_real: Dict[str, Dict[str, Any]] = {}
    for root in _roots(variables, environments or []):
        real = os.path.realpath(root)
        if real in by_real:
            if root not in by_real[real]["aliases"] and root != by_real[real]["root"]:
                by_real[real]["aliases"].append(root)
            continue
        described = describe(root)
        if described is not None and len(by_real) < MOST:
            by_real[real] = described
            notes.source(root)
    notes.source("looked in " + " ".join(PATTERNS))
    if not by_real:
        raise Absent("no CUDA toolkit in %s, on the service's PATH or in its environments" % ", ".join(PATTERNS[:6]))
    return list(by_real.values())


def _roots(variables: Dict[str, str], environments: List[Dict[str, Any]]) -> List[str]:
    roots: List[str] = []
    for pattern in PATTERNS:
        roots += sorted(glob.glob(pattern))[:20]
    for name in VARIABLES:
        value = variables.get(name, "")
        if value.startswith("/"):
            roots.append(os.path.dirname(os.path.dirname(value)) if os.path.isfile(value) else value)
    found = which("nvcc", variables)
    for nvcc in ([found] if found else []) + ["/usr/bin/nvcc", "/usr/local/bin/nvcc"]:
        if os.path.exists(nvcc):
            roots.append(os.path.dirname(os.path.dirname(nvcc)))
            roots.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    prefixes = [each["prefix"] for each in environments] + _conda_prefixes(variables)
    roots += prefixes
    for each in environments:
        for folder in each["folders"]:
            roots += sorted(glob.glob(folder + "/nvidia/cu[0-9]*")) + [folder + "/nvidia/cuda_nvcc"]
    return [os.path.normpath(root) for root in roots if os.path.isdir(root)]


def _conda_prefixes(variables: Dict[str, str]) -> List[str]:
    listed = (try_text(os.path.join(home_of(variables), ".conda/environments.txt"), 1 << 16) or "").split("\n")
    return [line.strip() for line in listed if line.startswith("/")][:30]


def describe(root: str) -> Optional[Dict[str, Any]]:
    """What of a toolkit lies under ``root``; None when it is none: without compiler, assembler and headers."""
    nvcc, ptxas = os.path.join(root, "bin", "nvcc"), os.path.join(root, "bin", "ptxas")
    has_nvcc, has_ptxas = os.path.lexists(nvcc), os.path.lexists(ptxas)
    header = _first(root, ("include/cuda_runtime.h", "targets/*/include/cuda_runtime.h"))
    if not has_nvcc and not has_ptxas and (header is None or root == "/usr"):
        return None
    version = version_of(nvcc) if has_nvcc else version_of(ptxas)
    release, full, source = version.release, version.full, "nvcc --version" if has_nvcc else "ptxas --version"
    if release is None:
        full = _written_version(root)
        release = ".".join(full.split(".")[:2]) if full else None
        source = "version file"
    return {
        "root": root,
        "real_root": os.path.realpath(root),
        "aliases": [],
        "version": release,
        "full_version": full,
        "version_from": source if release else "",
        "has_nvcc": has_nvcc and version.kind not in ("missing", "not executable"),
        "has_ptxas": has_ptxas,
        "has_headers": header is not None,
        "has_cicc": _first(root, ("nvvm/bin/cicc", "nvvm/bin64/cicc")) is not None or root == "/usr",
        "has_cudart": _first(root, ("lib64/libcudart.so*", "lib/libcudart.so*", "targets/*/lib/libcudart.so*", "lib/*/libcudart.so*")) is not None,
        "has_curand": _first(root, ("include/curand.h", "targets/*/include/curand.h")) is not None,
        "has_cublas": _first(root, ("include/cublas_v2.h", "targets/*/include/cublas_v2.h")) is not None,
        "has_libcuda_stub": _first(root, ("lib64/stubs/libcuda.so", "lib/stubs/libcuda.so", "targets/*/lib/stubs/libcuda.so")) is not None,
        "note": ("nvcc " if has_nvcc else "ptxas ") + version.problem if version.problem else "",
    }  # fmt: skip


def _first(root: str, patterns: "tuple[str, ...]") -> Optional[str]:
    for pattern in patterns:
        found = glob.glob(os.path.join(glob.escape(root), pattern))
        if found:
            return found[0]
    return None


def _written_version(root: str) -> Optional[str]:
    """The version that ``version.json`` (CUDA 11.1 and later) or ``version.txt`` states."""
    text = try_text(os.path.join(root, "version.json"), 1 << 16) or ""
    for part in ("cuda_nvcc", "cuda"):
        found = re.search(r'"%s"\s*:\s*\{[^}]*?"version"\s*:\s*"(\d+\.\d+(?:\.\d+)?)' % part, text, re.DOTALL)
        if found:
            return found.group(1)
    found = re.search(r"CUDA Version (\d+\.\d+(?:\.\d+)?)", try_text(os.path.join(root, "version.txt"), 4096) or "")
    return found.group(1) if found else None
