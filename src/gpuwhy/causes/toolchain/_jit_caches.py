"""The caches in which libraries keep what they compiled or fetched at run time: how to know one by its path."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._lazy_patterns import lazy_pattern


class JitCache(msgspec.Struct, frozen=True):
    """A cache. ``variable`` moves it; ``component`` writes it; ``name`` is what a user calls it."""

    name: str
    component: str
    variable: str


_KNOWN: tuple[tuple[str, JitCache], ...] = (
    (r"flashinfer_cubin/|flashinfer_cubin$", JitCache("flashinfer-cubin", "flashinfer-cubin", "FLASHINFER_CUBIN_DIR")),
    (r"/flashinfer[\w-]*/(?:\S*/)?cubins\b", JitCache("flashinfer cubins", "flashinfer-cubin", "FLASHINFER_CUBIN_DIR")),
    (
        r"(?:[./]cache/flashinfer|flashinfer_jit|/flashinfer/\d[\w.+]*/[\w]*/?(?:cached_ops|generated))|cached_ops/",
        JitCache("flashinfer", "flashinfer", "FLASHINFER_WORKSPACE_BASE"),
    ),
    (r"\.triton\b|/triton[_-]?cache|triton/(?:cache|dump)/", JitCache("triton", "triton", "TRITON_CACHE_DIR")),
    (r"torch_compile_cache|torch_aot_compile", JitCache("torch_compile_cache", "vllm", "VLLM_CACHE_ROOT")),
    (r"torchinductor|torch[_-]?inductor|/inductor[_-]?cache", JitCache("torchinductor", "torch", "TORCHINDUCTOR_CACHE_DIR")),
    (r"torch_extensions", JitCache("torch_extensions", "torch", "TORCH_EXTENSIONS_DIR")),
    (r"cache/torch/kernels|/torch/kernels", JitCache("torch kernels", "torch", "PYTORCH_KERNEL_CACHE_PATH")),
    (r"\.deep_?gemm\b|cache/deep_?gemm|deep_?gemm_(?:jit_)?cache", JitCache("deep_gemm", "deepgemm", "DG_JIT_CACHE_DIR")),
    (r"\.deep_?ep/|deep_ep_jit", JitCache("deep_ep", "deepep", "EP_JIT_CACHE_DIR")),
    (r"\.tilelang\b|/tilelang/cache", JitCache("tilelang", "tilelang", "TILELANG_CACHE_DIR")),
    (r"cache/tvm-ffi|/tvm_ffi/", JitCache("tvm-ffi", "tvm", "TVM_FFI_CACHE_DIR")),
    (r"/sglang/jit\b", JitCache("sglang jit", "sglang", "SGLANG_JIT_CACHE_DIR")),
    (r"cache/vllm\b", JitCache("vllm", "vllm", "VLLM_CACHE_ROOT")),
    (r"\.cupy\b|/cupy/kernel_cache", JitCache("cupy", "cupy", "CUPY_CACHE_DIR")),
    (r"\.nv/ComputeCache|\.nv\b", JitCache("cuda", "driver", "CUDA_CACHE_PATH")),
    (r"numba_?cache|\.n(?:bi|bc)\b", JitCache("numba", "numba", "NUMBA_CACHE_DIR")),
    (r"cutlass_python_cache|cute_dsl", JitCache("cute-dsl", "cutlass", "CUTE_DSL_CACHE_DIR")),
    (r"jax_cache|jax_compilation_cache", JitCache("jax", "jax", "JAX_COMPILATION_CACHE_DIR")),
    (r"\.aiter/jit|/aiter/jit", JitCache("aiter", "aiter", "AITER_JIT_DIR")),
    (r"cache/outlines\b|\.outlines", JitCache("outlines", "outlines", "OUTLINES_CACHE_DIR")),
    (r"cache/huggingface|/hf_home|huggingface/(?:hub|modules|datasets|xet)|/hub/(?:models|datasets)--", JitCache("huggingface", "huggingface-hub", "HF_HOME")),
)  # fmt: skip
"""By a part of the path; the first that fits. Variables and places: read in the libraries' released sources."""
_INSIDE_PACKAGES = ("flashinfer-cubin", "aiter")
"""Caches that lie in the installed package itself."""
_COMPILED = tuple((lazy_pattern(pattern, re.IGNORECASE), cache) for pattern, cache in _KNOWN)
_SOME_CACHE = lazy_pattern(r"(?:^|/)\.?(?:cache|local/share|config)(?:/|$)|[_-]cache(?:/|$)|/jit(?:/|$)", re.IGNORECASE)
_CACHE_CODE: tuple[tuple[re.Pattern[str], JitCache], ...] = tuple(
    (lazy_pattern(pattern), next(cache for _, cache in _KNOWN if cache.name == name))
    for pattern, name in (
        (r"flashinfer/(?:jit/cubin_loader|artifacts)\.py", "flashinfer cubins"),
        (r"flashinfer/(?:jit|compilation_context|aot)", "flashinfer"),
        (r"triton/(?:runtime/(?:cache|build|jit)|compiler/|backends/nvidia/driver)", "triton"),
        (r"torch/(?:_inductor|_dynamo|_functorch)/|cache_dir_utils", "torchinductor"),
        (r"torch/utils/(?:cpp_extension|_cpp_extension|file_baton)", "torch_extensions"),
        (r"deep_gemm/", "deep_gemm"),
        (r"tilelang/(?:cache|jit)", "tilelang"),
        (r"tvm_ffi/", "tvm-ffi"),
        (r"sglang/(?:jit_kernel|kernels/jit)", "sglang jit"),
        (r"vllm/compilation/", "torch_compile_cache"),
        (r"cupy/", "cupy"),
        (r"numba/", "numba"),
        (r"aiter/", "aiter"),
        (r"outlines/(?:caching|cache)", "outlines"),
    )
)
"""Source files that read and write a cache, for errors whose path does not tell."""


def cache_of_path(path: str) -> JitCache | None:
    """The cache a path lies in; None for a path in no known one."""
    shown = path[:2000].replace("\\", "/")
    found = next((cache for pattern, cache in _COMPILED if pattern.search(shown)), None)
    if found is not None and "-packages/" in shown and found.name not in _INSIDE_PACKAGES:
        return None
    return found


def cache_of_code(paths: tuple[str, ...]) -> JitCache | None:
    """The cache that the innermost of these source files serves; outermost first, as in a traceback."""
    for path in reversed(paths):
        shown = path.replace("\\", "/")
        for pattern, cache in _CACHE_CODE:
            if pattern.search(shown):
                return cache
    return None


def is_some_cache(path: str) -> bool:
    """Whether a path looks like a cache or a user's private folder, though not one of a known library."""
    return _SOME_CACHE.search(path[:2000].replace("\\", "/")) is not None
