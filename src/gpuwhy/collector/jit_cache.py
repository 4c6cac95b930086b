"""The caches of just-in-time compilers: their layout tells what a library believed about the GPU.

FlashInfer keeps ``BASE/.cache/flashinfer/VERSION/ARCHS/cached_ops/MODULE/{build.ninja,MODULE.so}``. Where it found no
architecture the level ARCHS is missing: ``VERSION/cached_ops`` and ``VERSION/flashinfer_jit.log`` are a fingerprint.
"""

import os
import re
from typing import Any, Dict, List, Optional

from gpuwhy.collector.environment import home_of
from gpuwhy.collector.probing import Absent, Notes, Request
from gpuwhy.collector.reading import try_list, try_text

MOST_MODULES = 300

ARCHITECTURES = re.compile(r"^\d{2,3}[a-z]?(?:_\d{2,3}[a-z]?)*$|^noarch$")


def jit_cache(_request: Request, notes: Notes, environment: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """``flashinfer``, ``torch_extensions``, ``triton``, and further caches by their root and size in entries."""
    if environment is None:
        raise Absent("the environment that says where the caches lie is not known")
    variables: Dict[str, str] = environment["variables"]
    home = home_of(variables)
    cache = variables.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    found = {
        "flashinfer": flashinfer(
            os.path.join(variables.get("FLASHINFER_WORKSPACE_BASE") or home, ".cache", "flashinfer"), notes
        ),
        "torch_extensions": torch_extensions(
            variables.get("TORCH_EXTENSIONS_DIR") or os.path.join(home, ".cache", "torch_extensions"), notes
        ),
    }
    for name, root in (
        (
            "triton",
            variables.get("TRITON_CACHE_DIR") or os.path.join(variables.get("TRITON_HOME") or home, ".triton", "cache"),
        ),
        (
            "inductor",
            variables.get("TORCHINDUCTOR_CACHE_DIR") or "/tmp/torchinductor_%s" % variables.get("USER", "root"),
        ),
        ("vllm", variables.get("VLLM_CACHE_ROOT") or os.path.join(cache, "vllm")),
        ("sglang", variables.get("SGLANG_JIT_CACHE_DIR") or os.path.join(cache, "sglang", "jit")),
        (
            "deepgemm",
            variables.get("DG_JIT_CACHE_DIR")
            or variables.get("SGLANG_DG_CACHE_DIR")
            or os.path.join(home, ".deep_gemm"),
        ),
        ("cuda", variables.get("CUDA_CACHE_PATH") or os.path.join(home, ".nv", "ComputeCache")),
    ):
        if os.path.isdir(root):
            notes.source(root)
            found[name] = {"root": root, "entries": len(try_list(root, 10000)), "writable": os.access(root, os.W_OK)}
    present = {name: value for name, value in found.items() if value is not None}
    if not present:
        raise Absent("no JIT cache below %s" % home)
    return present


def flashinfer(root: str, notes: Notes) -> Optional[Dict[str, Any]]:
    """Each version's folders; ``architectures`` None stands for the missing level."""
    if not os.path.isdir(root):
        return None
    notes.source(root)
    levels: List[Dict[str, Any]] = []
    for version in try_list(root, 100):
        path = os.path.join(root, version)
        if version == "cubins" or not os.path.isdir(path):
            continue
        if ARCHITECTURES.match(version):
            levels.append(_level(path, None, version))
            continue
        below = try_list(path, 200)
        if "cached_ops" in below or "flashinfer_jit.log" in below or "generated" in below:
            levels.append(_level(path, version, None))
        for architectures in below:
            if ARCHITECTURES.match(architectures) and os.path.isdir(os.path.join(path, architectures)):
                levels.append(_level(os.path.join(path, architectures), version, architectures))
    return {"root": root, "levels": levels, "writable": os.access(root, os.W_OK)}


def _level(path: str, version: Optional[str], architectures: Optional[str]) -> Dict[str, Any]:
    operations = os.path.join(path, "cached_ops")
    modules = [
        name
        for name in try_list(operations, MOST_MODULES)
        if name != "tmp" and os.path.isdir(os.path.join(operations, name))
    ]
    return {
        "path": path,
        "version": version,
        "architectures": architectures,
        "modified": _modified(path),
        "modules": [_module(os.path.join(operations, name), name) for name in modules],
        "log_size": _size(os.path.join(path, "flashinfer_jit.log")),
        "locks": [name for name in try_list(os.path.join(operations, "tmp"), 100) if name.endswith(".lock")],
    }


def _module(path: str, name: str) -> Dict[str, Any]:
    """``state``: ``built``, ``empty``, ``not a library`` (truncated or garbage at its head), or ``unbuilt``."""
    library = os.path.join(path, name + ".so")
    size = _size(library)
    ninja = try_text(os.path.join(path, "build.ninja"), 1 << 16)
    return {
        "name": name,
        "state": _state(library, size),
        "size": size,
        "modified": _modified(library),
        "cuda_home": _ninja(ninja, "cuda_home"),
        "nvcc": _ninja(ninja, "nvcc"),
        "targets": sorted(set(re.findall(r"\bcompute_\w+", ninja or "")))[:20],
    }


def _state(library: str, size: Optional[int]) -> str:
    if size is None:
        return "unbuilt"
    if size == 0:
        return "empty"
    try:
        with open(library, "rb") as file:
            head = file.read(64)
    except OSError:
        return "unreadable"
    if not head.startswith(b"\x7fELF"):
        return "not a library"
    if len(head) == 64 and head[4] == 2:
        # 64-bit ELF: the table of sections stands last, so a file that ends before it was cut off.
        table = int.from_bytes(head[40:48], "little")
        entries = int.from_bytes(head[58:60], "little") * int.from_bytes(head[60:62], "little")
        if table + entries > size:
            return "truncated"
    return "built"


def _ninja(text: Optional[str], name: str) -> Optional[str]:
    found = re.search(r"^%s *= *(.+)$" % name, text or "", re.M)
    return found.group(1).strip()[:500] if found else None


def torch_extensions(root: str, notes: Notes) -> Optional[Dict[str, Any]]:
    """``ROOT/py311_cu128/NAME/{build.ninja,NAME.so,lock}``."""
    if not os.path.isdir(root):
        return None
    notes.source(root)
    found: List[Dict[str, Any]] = []
    for version in try_list(root, 50):
        folder = os.path.join(root, version)
        names = try_list(folder, 100) if os.path.isdir(folder) else []
        for name in names:
            if os.path.isdir(os.path.join(folder, name)):
                module = _module(os.path.join(folder, name), name)
                module["version"] = version
                module["is_locked"] = os.path.exists(os.path.join(folder, name, "lock"))
                found.append(module)
    return {"root": root, "modules": found[:MOST_MODULES], "writable": os.access(root, os.W_OK)}


def _size(path: str) -> Optional[int]:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _modified(path: str) -> Optional[float]:
    try:
        return round(os.stat(path).st_mtime, 3)
    except OSError:
        return None
