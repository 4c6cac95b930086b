"""Caches of compiled kernels and downloads: moved aside, so that the old one can be put back."""

from __future__ import annotations

import re
import shlex

import msgspec
from packaging.version import Version

from gpuwhy.knowledge.releases import package_version
from gpuwhy.remedies.change import Change, ServicePlace
from gpuwhy.remedies.setting import Setting


class KnownCache(msgspec.Struct, frozen=True):
    """Where a library keeps a cache: below ``variable`` (``below_variable``) when that is set, else below the home."""

    variable: str
    below_variable: str
    below_home: str


CACHES = {
    "flashinfer": KnownCache("FLASHINFER_WORKSPACE_BASE", ".cache/flashinfer", ".cache/flashinfer"),
    "triton": KnownCache("TRITON_CACHE_DIR", "", ".triton/cache"),
    "torch_extensions": KnownCache("TORCH_EXTENSIONS_DIR", "", ".cache/torch_extensions"),
    "torch_compile_cache": KnownCache("VLLM_CACHE_ROOT", "torch_compile_cache", ".cache/vllm/torch_compile_cache"),
    "vllm": KnownCache("VLLM_CACHE_ROOT", "", ".cache/vllm"),
    "deep_gemm": KnownCache("DG_JIT_CACHE_DIR", "", ".deep_gemm"),
    "tilelang": KnownCache("TILELANG_CACHE_DIR", "", ".tilelang/cache"),
    "cuda": KnownCache("CUDA_CACHE_PATH", "", ".nv/ComputeCache"),
    "huggingface": KnownCache("HF_HOME", "", ".cache/huggingface"),
}
"""By the first word of the cache's name, lower case (read in the libraries' released sources)."""

SGLANG_GATHERS_SINCE = "0.5.18"
"""From this release on SGLang sets the others' variables to folders below its own (srt/environ.py of the wheels)."""
GATHERED_BY_SGLANG = {
    "flashinfer": ".cache/flashinfer",
    "triton": "triton",
    "tilelang": "tilelang",
    "cuda": "nv",
    "deep_gemm": "deep_gemm",
}
"""Where they are below SGLANG_CACHE_DIR, by default ``~/.cache/sglang``."""

_LOOKS_LIKE_CACHE = re.compile(
    r"cache|jit|flashinfer|triton|inductor|torch_?extensions|deep_?gemm|tilelang", re.IGNORECASE
)
"""What a path must hold to be moved: it may come from a log, and must not be a folder of the system."""
DELETING = ("delete", "remove", "clear", "")


def change_cache(setting: Setting, place: ServicePlace, name: str, value: str) -> Change:
    """Move the cache ``name`` (one of :data:`CACHES`, or an absolute path) aside and start the service again."""
    if value not in DELETING:
        return Change()
    path = cache_path(setting, name)
    if path is None or not path.isprintable():
        return Change()
    old, kept = _quoted(path), _quoted(path + ".before-gpuwhy")
    limits = () if path.startswith("/") else ("~ is the home of the user that runs the service",)
    if setting.is_container:
        return Change(
            (place.inside(f"mv -T {old} {kept}"), *place.restart()), (), (place.inside(f"ls -ld {old}"),), limits
        )
    return Change(
        commands=(f"mv -T {old} {kept}", *place.restart()),
        undo=(f"rm -rf {old}", f"mv -T {kept} {old}", *place.restart()),
        check=(f"ls -ld {old} {kept}",),
        limits=limits,
    )


def cache_path(setting: Setting, name: str) -> str | None:
    """The folder or file that a cache's name stands for; None where it is not known. ``~/``: below an unknown home."""
    if name.startswith("/"):
        path = name.rstrip("/")
        is_below = path.count("/") > 1 and ".." not in path.split("/")
        return path if is_below and _LOOKS_LIKE_CACHE.search(path) else None
    words = re.split(r"[ -]", name.lower())
    key = next((key for key in (words[0], "_".join(words[:2])) if key in CACHES), None)
    if key is None:
        return None
    known = CACHES[key]
    home = setting.home.rstrip("/") if setting.home.startswith("/") else "~"
    moved = setting.variables.get(known.variable)
    if moved and moved.startswith("/"):
        return "/".join(part for part in (moved.rstrip("/"), known.below_variable) if part)
    if key in GATHERED_BY_SGLANG and _gathers(setting):
        own = setting.variables.get("SGLANG_CACHE_DIR") or ""
        return f"{own.rstrip('/') if own.startswith('/') else home + '/.cache/sglang'}/{GATHERED_BY_SGLANG[key]}"
    return f"{home}/{known.below_home}"


def _gathers(setting: Setting) -> bool:
    """Whether the service is an SGLang that keeps the caches of others below its own."""
    version = package_version(setting.packages.get("sglang") or "")
    is_alone = not setting.packages.get("vllm")
    return is_alone and version is not None and version >= Version(SGLANG_GATHERS_SINCE)


def _quoted(path: str) -> str:
    """Quoted for a shell, with a leading ``~/`` left for the shell to expand."""
    return "~/" + shlex.quote(path[2:]) if path.startswith("~/") else shlex.quote(path)
