"""Fact sets on which replay and real execution are compared."""

from __future__ import annotations

from typing import Any

import msgspec

RELEASES = ("0.6.12", "0.6.18.post1", "0.7.0.post1", "0.7.4")
HOME = "/nowhere/home"
CUDA = "/usr/local/cuda"


class Case(msgspec.Struct, frozen=True):
    """``roots`` are (project, version); ``not_run`` are modules whose packages' own code runs on neither side.

    ``before`` are modules that a process has imported before it calls the function: on its own, the function's module
    would be imported in another order than in any process, and FlashInfer's import each other in a circle.
    """

    name: str
    entry: str
    roots: tuple[tuple[str, str], ...]
    facts: dict[str, Any]
    not_run: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def _env(**variables: str) -> dict[str, Any]:
    return {f"env.{name}": value for name, value in variables.items()}


_BASE: dict[str, Any] = {
    "environment_complete": True,
    "env.HOME": HOME,
    "modules.flashinfer_cubin": False,
    "modules.flashinfer_jit_cache": False,
    "external.torch.cuda.is_available": True,
}


def _host(capability: str, toolkit: str | None, torch_cuda: str | None = "12.9", count: int = 1) -> dict[str, Any]:
    gpus = [f"{index}: GPU ({capability})" for index in range(count)]
    return {
        **_BASE,
        "gpus": gpus,
        "cuda_toolkit": toolkit,
        "cuda_home": CUDA,
        "env.CUDA_HOME": CUDA,
        "torch_cuda": torch_cuda,
    }


def _without(facts: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key not in keys}


_SEED = _host("12.0", "12.8", count=2)
_NO_VARIABLE = _without(_SEED, "env.CUDA_HOME", "cuda_home")
_CHILD = "Cannot re-initialize CUDA in forked subprocess"

TRACED: dict[str, dict[str, Any]] = {
    "sm120 nvcc128": _SEED,
    "sm120 nvcc129": _host("12.0", "12.9", count=2),
    "sm90 nvcc124": _host("9.0", "12.4", count=2),
    "no nvcc": _host("12.0", None, count=2),
    "list 12.0": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="12.0")},
    "list 12.0a": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="12.0a")},
    "list 12.0f": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="12.0f")},
    "list with semicolon": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="12.0;9.0")},
    "torch's list": {**_SEED, **_env(TORCH_CUDA_ARCH_LIST="12.0")},
}
"""The nine fact sets of the study that this follows."""

FURTHER: dict[str, dict[str, Any]] = {
    "sm121 nvcc128": _host("12.1", "12.8"),
    "sm121 nvcc129": _host("12.1", "12.9"),
    "sm120 nvcc127": _host("12.0", "12.7"),
    "sm75": _host("7.5", "12.4"),
    "sm70": _host("7.0", "12.4"),
    "sm100": _host("10.0", "12.8"),
    "no gpu": _host("9.0", "12.8", count=0),
    "no nvcc, torch 12.8": _host("12.0", None, torch_cuda="12.8"),
    "no nvcc, torch without cuda": _host("12.0", None, torch_cuda=None),
    "list empty": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="")},
    "list 120": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="120")},
    "list 12.": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="12.")},
    "list of words": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="sm.120")},
    "list 7.0": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="7.0")},
    "list of two": {**_SEED, **_env(FLASHINFER_CUDA_ARCH_LIST="9.0 12.0a")},
    "cuda path": {**_without(_SEED, "env.CUDA_HOME"), **_env(CUDA_PATH=CUDA)},
    "cuda home empty": {**_SEED, **_env(CUDA_HOME="", CUDA_PATH=CUDA)},
    "which nvcc": {**_NO_VARIABLE, "nvcc_path": "/opt/cuda-12.9/bin/nvcc", "cuda_toolkit": "12.9"},
    "which nvcc of 12.8": {**_NO_VARIABLE, "nvcc_path": "/opt/cuda-12.8/bin/nvcc"},
    "nowhere": {**_NO_VARIABLE, "nvcc_path": None, f"files.{CUDA}": None, "torch_cuda": "12.8"},
    "default folder": {**_NO_VARIABLE, "nvcc_path": None, f"files.{CUDA}": "directory"},
    "nvcc not executable": {
        **_without(_SEED, "cuda_toolkit"),
        f"commands.{CUDA}/bin/nvcc --version": {"raises": "PermissionError"},
    },
    "nvcc prints nonsense": {**_without(_SEED, "cuda_toolkit"), f"commands.{CUDA}/bin/nvcc --version": "?"},
    "nvcc fails": {
        **_without(_SEED, "cuda_toolkit"),
        f"commands.{CUDA}/bin/nvcc --version": {"returncode": 1, "stdout": "broken"},
    },
    "forked child": {
        **_without(_SEED, "gpus"),
        "external.torch.cuda.device_count": 1,
        "external.torch.cuda.get_device_capability": {"raises": "RuntimeError", "message": _CHILD},
    },
    "log level of no meaning": {**_SEED, **_env(FLASHINFER_LOGGING_LEVEL="loud")},
    "another toolkit": {**_SEED, "other_toolkits./opt/cuda": "12.9", **_env(CUDA_HOME="/opt/cuda")},
    "toolkit not known": _without(_SEED, "cuda_toolkit"),
    "gpus not known": _without(_SEED, "gpus"),
}

_GATE = "flashinfer.jit.core:check_cuda_arch"
_FLAGS = "flashinfer.compilation_context:CompilationContext().get_nvcc_flags_list"
_OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "flags": (f"{_FLAGS}()", {**_host("12.0", "12.9"), f"commands.{CUDA}/bin/nvcc --list-gpu-arch": "compute_120\n"}),
    "flags, targets not known": (f"{_FLAGS}([12])", _host("12.0", "12.9")),
    "flags of none": (f"{_FLAGS}([9, 10])", _SEED),
    "flags of another": (f"{_FLAGS}([9, 10])", _host("12.0", "12.9")),
    "version": ("flashinfer.jit.cpp_ext:get_cuda_version", _SEED),
    "threads": (
        "flashinfer.jit.cpp_ext:get_nvcc_parallelism_flags",
        {**_SEED, **_env(FLASHINFER_NVCC_THREADS="many")},
    ),
    "no threads": (
        "flashinfer.jit.cpp_ext:get_nvcc_parallelism_flags",
        {**_SEED, **_env(FLASHINFER_NVCC_THREADS="0")},
    ),
    "unclosed quote": (
        "flashinfer.jit.cpp_ext:parse_env_flags('FLASHINFER_EXTRA_CFLAGS')",
        {**_SEED, **_env(FLASHINFER_EXTRA_CFLAGS="-DX='")},
    ),
}


def flashinfer_cases() -> list[Case]:
    """Each fact set on each release."""
    cases = []
    for version in RELEASES:
        roots = (("flashinfer-python", version),)
        for name, facts in {**TRACED, **FURTHER}.items():
            cases.append(Case(f"{version}: {name}", _GATE, roots, facts))
        for name, (entry, facts) in _OTHERS.items():
            cases.append(Case(f"{version}: {name}", entry, roots, facts, before=("flashinfer.jit.core",)))
    return cases


_TORCH = (("torch", "2.13.0"),)
_BUILD = {
    **_host("12.0", "12.8", torch_cuda="12.8"),
    "os": "Ubuntu 24.04",
    "external.sys.platform": "linux",
    "torch": "2.13.0+cu128",
    "external.torch.xpu._is_compiled": False,
    "torch_arch_list": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
    "external.torch.distributed.is_available": False,
}
_CHECK = 'torch.utils.cpp_extension:_check_cuda_version("g++", TorchVersion("13.2.0"))'
_ARCH = "torch.utils.cpp_extension:_get_cuda_arch_flags"
_HOME = "torch.utils.cpp_extension:CUDA_HOME"
_TORCH_FACTS: dict[str, tuple[str, dict[str, Any]]] = {
    "same": (_CHECK, _BUILD),
    "other major": (_CHECK, {**_BUILD, "torch_cuda": "13.0"}),
    "other minor": (_CHECK, {**_BUILD, "torch_cuda": "12.9"}),
    "compiler too new": (_CHECK.replace("13.2.0", "15.1.0"), _BUILD),
    "compiler too old": (_CHECK.replace("13.2.0", "4.8.5"), _BUILD),
    "compiler not bounded": (_CHECK, {**_BUILD, "cuda_toolkit": "13.9", "torch_cuda": "13.9"}),
    "nvcc absent": (_CHECK, {**_BUILD, "cuda_toolkit": None}),
    "no home": (_CHECK, {**_without(_BUILD, "env.CUDA_HOME", "cuda_home"), "nvcc_path": None, f"files.{CUDA}": None}),
    "no cuda in torch": (_CHECK, {**_BUILD, "torch_cuda": None, "external.torch.cuda._is_compiled": False}),
    "nonsense": (_CHECK, {**_without(_BUILD, "cuda_toolkit"), f"commands.{CUDA}/bin/nvcc --version": "?",
                          f"files.{CUDA}/bin/nvcc": "file"}),
    "detected": (_ARCH, _BUILD),
    "clamped": (_ARCH, {**_BUILD, "torch_arch_list": ["sm_80", "sm_90"]}),
    "two kinds": (_ARCH, {**_BUILD, "gpus": ["0: A (9.0)", "1: B (8.0)"]}),
    "no gpu": (_ARCH, {**_BUILD, "gpus": []}),
    "no target known": (_ARCH, {**_BUILD, "torch_arch_list": []}),
    **{
        f"list {value!r}": (_ARCH, {**_BUILD, **_env(TORCH_CUDA_ARCH_LIST=value)})
        for value in ("12.0", "12.0a", "12.0f", "12.0;9.0", "9.0 12.0+PTX", "12.0,9.0", "Blackwell", "Ampere+Tegra;",
                      "native", "sm_120", "")
    },
    "home": (_HOME, _BUILD),
    "home by which": (_HOME, {**_without(_BUILD, "env.CUDA_HOME", "cuda_home"), "nvcc_path": "/opt/cuda/bin/nvcc"}),
    "home without driver": (_HOME, {**_BUILD, "external.torch.cuda.is_available": False}),
    "flags given": (_ARCH + "(['-arch=sm_90'])", _BUILD),
}  # fmt: skip


def torch_cases() -> list[Case]:
    """Torch's extension builder."""
    return [Case(f"torch: {name}", entry, _TORCH, facts) for name, (entry, facts) in _TORCH_FACTS.items()]


_PLATFORM = "external.vllm.platforms.current_platform"
_ON_SEED: dict[str, Any] = {
    **_SEED,
    f"{_PLATFORM}.is_cuda": True,
    f"{_PLATFORM}.num_compute_units": 188,
    f"{_PLATFORM}.get_device_capability": {"expression": "vllm.platforms.interface:DeviceCapability(12, 0)"},
    "external.torch.accelerator.current_device_index": 0,
    "external.vllm.v1.attention.backends.flashinfer.FlashInferBackend.supports_compute_capability": True,
    "modules.triton": False,
}
_SAMPLER: dict[str, dict[str, Any]] = {
    "default": _ON_SEED,
    "asked for": {**_ON_SEED, **_env(VLLM_USE_FLASHINFER_SAMPLER="1")},
    "refused": {**_ON_SEED, **_env(VLLM_USE_FLASHINFER_SAMPLER="0")},
    "not a number": {**_ON_SEED, **_env(VLLM_USE_FLASHINFER_SAMPLER="yes")},
    "small gpu": {**_ON_SEED, f"{_PLATFORM}.num_compute_units": 16},
    "other platform": {**_ON_SEED, f"{_PLATFORM}.is_cuda": False},
    "newer toolkit": {**_ON_SEED, "cuda_toolkit": "12.9"},
    "unknown capability": {**_ON_SEED, f"{_PLATFORM}.get_device_capability": None},
    "unsupported": {
        **_ON_SEED,
        "external.vllm.v1.attention.backends.flashinfer.FlashInferBackend.supports_compute_capability": False,
    },
}


def vllm_cases() -> list[Case]:
    """vLLM's guard before FlashInfer's sampler, with the FlashInfer that it asks."""
    cases = []
    entry = "vllm.v1.sample.ops.topk_topp_sampler:_flashinfer_jit_unsupported_reason(DeviceCapability({}))"
    not_run = ("flashinfer.jit.core", "vllm.platforms.interface")
    chosen = {
        "seed": ("12, 0", _SEED),
        "newer toolkit": ("12, 0", _host("12.0", "12.9")),
        "sm121": ("12, 1", _host("12.1", "12.8")),
        "no gpu": ("9, 0", _host("9.0", "12.8", count=0)),
        "list with semicolon": ("12, 0", TRACED["list with semicolon"]),
        "list 7.0": ("12, 0", FURTHER["list 7.0"]),
        "forked child": ("12, 0", FURTHER["forked child"]),
        "toolkit not known": ("12, 0", FURTHER["toolkit not known"]),
    }
    for version in ("0.6.18.post1", "0.7.4"):
        roots = (("vllm", "0.33.0"), ("flashinfer-python", version))
        for name, (capability, facts) in chosen.items():
            cases.append(Case(f"vllm, {version}: {name}", entry.format(capability), roots, facts, not_run))
        for name, facts in _SAMPLER.items():
            guard = "vllm.v1.sample.ops.topk_topp_sampler:flashinfer_sampler_supported"
            cases.append(Case(f"vllm, {version}: sampler, {name}", guard, roots, facts, not_run))
    return cases


def sglang_cases() -> list[Case]:
    """SGLang's guards on versions, variables and devices."""
    at = "sglang.srt.utils.common:"
    pinned = f'{at}assert_pkg_version("flashinfer_python", "0.6.7.post3", "Please upgrade.")'
    at_least = f'{at}check_pkg_version_at_least("flashinfer_python", "0.6.7.post3")'
    blackwell = f"{at}_check_cuda_device_version([10, 11, 12], (12, 8))"
    hopper = f"{at}is_sm90_supported"
    on_gpu = {**_SEED, "external.torch.cuda.is_available": True}
    chosen: dict[str, tuple[str, dict[str, Any]]] = {
        "pin met": (pinned, {**on_gpu, "packages.flashinfer_python": "0.6.12"}),
        "pin not met": (pinned, {**on_gpu, "packages.flashinfer_python": "0.6.7"}),
        "pin not installed": (pinned, {**on_gpu, "packages.flashinfer_python": None}),
        "pin not known": (pinned, on_gpu),
        "at least": (at_least, {**on_gpu, "packages.flashinfer_python": "0.6.12"}),
        "not at least": (at_least, {**on_gpu, "packages.flashinfer_python": "0.6.3"}),
        "at least of nothing": (at_least, {**on_gpu, "packages.flashinfer_python": None}),
        "variable": (f'{at}get_bool_env_var("SGLANG_X")', {**on_gpu, **_env(SGLANG_X="yes")}),
        "variable true": (f'{at}get_bool_env_var("SGLANG_X")', {**on_gpu, **_env(SGLANG_X="True")}),
        "number": (f'{at}get_int_env_var("SGLANG_X", 3)', {**on_gpu, **_env(SGLANG_X="3.5")}),
        "number set": (f'{at}get_int_env_var("SGLANG_X", 3)', {**on_gpu, **_env(SGLANG_X="7")}),
        "blackwell": (blackwell, {**on_gpu, "torch_cuda": "12.8"}),
        "blackwell, old torch": (blackwell, {**on_gpu, "torch_cuda": "12.4"}),
        "hopper on blackwell": (hopper, on_gpu),
        "cuda version": (f"{at}get_cuda_version", {**on_gpu, "torch_cuda": "13.0"}),
        "cuda version of no cuda": (f"{at}get_cuda_version", {**on_gpu, "torch_cuda": None}),
    }
    return [Case(f"sglang: {name}", entry, (("sglang", "0.5.10.post1"),), f) for name, (entry, f) in chosen.items()]
