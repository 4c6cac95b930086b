"""Versions of software: environment reports, package lists, banners, and what messages and paths give away.

Two traps. ``CUDA runtime version`` of collect_env and ``nvcc --version`` typed into a shell tell what PATH gives that
shell, not which toolkit a program resolves: they become ``nvcc_path_version``, never ``cuda_toolkit``. The
``gcc version`` under ``NVRM version`` is the compiler of the kernel module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = (
    "ersion", "==", "torch", "PyTorch", "CUDA", "release ", "GLIBC", "Libc", "flashinfer", "vLLM", "vllm", "sglang", "xFormers", "xformers", "triton", "Name: ", "/python3.", "nvcc", "[conda]", "which is incompatible", "NCCL version", "using nccl==",
    "capabilities sm_", "llm_engine", "Python",
)  # fmt: skip
_VERSION = r"\d{1,4}(?:\.\d{1,5}){1,3}(?:[a-zA-Z.+-]{0,2}[\w.+-]{0,60})?"
ALIASES = {
    "pytorch": "torch",
    "torch": "torch",
    "flashinfer": "flashinfer-python",
    "flashinfer_python": "flashinfer-python",
    "trt-llm": "tensorrt-llm",
    "tensorrt llm": "tensorrt-llm",
    "tensorrt_llm": "tensorrt-llm",
    "sgl_kernel": "sgl-kernel",
    "flash_attn": "flash-attn",
    "vllm": "vllm",
    "sglang": "sglang",
    "triton": "triton",
    "transformers": "transformers",
    "xformers": "xformers",
    "sgl-kernel": "sgl-kernel",
    "sglang-kernel": "sglang-kernel",
    "flashinfer-python": "flashinfer-python",
    "flashinfer-cubin": "flashinfer-cubin",
    "flashinfer-jit-cache": "flashinfer-jit-cache",
    "flash-attn": "flash-attn",
    "tensorrt-llm": "tensorrt-llm",
    "lmdeploy": "lmdeploy",
    "lmcache": "lmcache",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "numpy": "numpy",
    "ray": "ray",
    "xgrammar": "xgrammar",
    "bitsandbytes": "bitsandbytes",
    "ktransformers": "ktransformers",
    "deepspeed": "deepspeed",
    "accelerate": "accelerate",
    "huggingface_hub": "huggingface-hub",
    "unsloth": "unsloth",
    "mamba-ssm": "mamba-ssm",
    "causal-conv1d": "causal-conv1d",
}
_NAMES = tuple(ALIASES)
_KNOWN = "|".join(re.escape(name) for name in sorted(ALIASES, key=len, reverse=True))
_FREEZE = Pattern(rf"^\s*(?:\[pip3?\] )?(?P<name>[A-Za-z0-9][\w.-]{{0,80}})==(?P<version>{_VERSION})\s*(?:;.*)?$")
_CONDA = Pattern(rf"^\s*\[conda\] (?P<name>[\w.-]{{1,80}}) +(?P<version>{_VERSION}) +\S+")
_LABELLED = Pattern(
    rf"^\s{{0,40}}(?:[-*•|] ?)?\*{{0,3}}(?P<name>{_KNOWN})\*{{0,3}}(?: [Vv]ersion)?\*{{0,3}}\s{{0,40}}(?:[:=|]{{1,3}})\*{{0,3}}\s{{0,40}}`?[vV]?(?P<version>{_VERSION})`?\s{{0,40}}(?:[,;(|].*)?$",
    re.IGNORECASE,
)
_BESIDE = Pattern(
    rf"^\s{{0,12}}(?:[-*•] )?\*{{0,3}}(?P<name>{_KNOWN})\*{{0,3}} {{1,40}}v?(?P<version>{_VERSION})\*{{0,3}}(?:\s*$| {{2}}|\s*[,;(|])",
    re.IGNORECASE,
)
_INCOMPATIBLE = Pattern(
    rf"^\s{{0,8}}(?P<owner>[A-Za-z0-9][\w.-]{{0,60}}) (?P<own>{_VERSION}) (?:requires|has requirement) .{{1,200}}?, but you(?: have|'ll have) (?P<name>[A-Za-z0-9][\w.-]{{0,60}}) (?P<version>{_VERSION}) which is incompatible\.\s*$"
)
_BANNERS = (
    ("API server version", "vllm", Pattern(rf"vLLM API server version v?(?P<version>{_VERSION})")),
    ("LLM engine (v", "vllm", Pattern(rf"Initializing an? (?:V1 )?LLM engine \(v(?P<version>{_VERSION})\)")),
    ("version", "vllm", Pattern(rf"[█▄▀ ]{{6,60}}.{{0,12}}version v?(?P<version>{_VERSION})")),
    ("vLLM Version", "vllm", Pattern(rf"^vLLM Version\s*: (?P<version>{_VERSION})")),
    ("LLM version", "tensorrt-llm", Pattern(rf"TensorRT[- ]LLM version: ?(?P<version>{_VERSION})")),
    ("NCCL version", "nccl", Pattern(r"\bNCCL version (?P<version>2\.\d{1,2}\.\d{1,2})\b")),
    ("is using nccl", "nccl", Pattern(r"\bis using nccl==(?P<version>2\.\d{1,2}\.\d{1,2})\b")),
    ("/flashinfer/", "flashinfer-python", Pattern(r"/flashinfer/(?P<version>\d{1,2}\.\d{1,2}\.\d{1,2}[\w.]{0,10})/\w{2,40}/(?:cached_ops|generated)\b")),
)  # fmt: skip
_REPORTED = (
    ("PyTorch version", "torch", Pattern(rf"^PyTorch version\s*: (?P<value>{_VERSION})\s*$")),
    ("CUDA used to build PyTorch", "torch_cuda", Pattern(r"^CUDA used to build PyTorch\s*: (?P<value>\d{1,2}\.\d{1,2})")),
    ("CUDA runtime version", "nvcc_path_version", Pattern(r"^CUDA runtime version\s*: (?P<value>\d{1,2}\.\d{1,2})")),
    ("Cuda compilation tools", "nvcc_path_version", Pattern(r"Cuda compilation tools, release (?P<value>\d{1,2}\.\d{1,2})")),
    ("GCC version", "gcc", Pattern(r"^GCC version\s*: \(.{0,80}\) (?P<value>\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)")),
    ("CUDA host compiler", "gcc", Pattern(r"CUDA host compiler is GNU (?P<value>\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)")),
    ("Libc version", "glibc", Pattern(r"^Libc version\s*: glibc-(?P<value>\d\.\d{1,2})")),
    ("ldd (", "glibc", Pattern(r"^ldd \(.{0,60}\) (?P<value>2\.\d{1,2})\s*$")),
    ("Python version", "python", Pattern(r"^Python version\s*: (?P<value>3\.\d{1,2}(?:\.\d{1,2})?)")),
    ("Python", "python", Pattern(r"^Python(?::)? (?P<value>3\.\d{1,2}\.\d{1,2})(?:\s|$)")),
    ("(you have", "python", Pattern(r"^\s*Python  3\.\d{1,2}\.\d{1,2} \(you have (?P<value>3\.\d{1,2}(?:\.\d{1,2})?)\)")),
    ("(you have", "torch", Pattern(rf"PyTorch {_VERSION} with CUDA \d+ \(you have (?P<value>{_VERSION})\)")),
)  # fmt: skip
_MISMATCH = Pattern(
    r"detected CUDA version \((?P<toolkit>\d{1,2}\.\d{1,2})\) mismatches the version that was used to compile(?: PyTorch \((?P<torch>\d{1,2}\.\d{1,2})\))?"
)
_COMPILED_WITH = Pattern(
    r"^\s*PyTorch \((?P<torch>\d{1,2}\.\d{1,2})\)\. Please make sure to use the same CUDA versions"
)
_NO_NVCC = Pattern(
    r"Could not find nvcc and default cuda_home=|CUDA_HOME environment variable is not set\. Please set it to your CUDA install root|nvcc was not found|Could not find `nvcc`"
)
_ARCH_LIST = Pattern(
    r"current PyTorch install(?:ation)? supports CUDA capabilities (?P<list>(?:(?:sm|compute)_\d{2,3}[a-z]? ?){1,40})"
)
_NVCC_COMMAND = Pattern(r"^\s*(?:\[\d+/\d+\]\s+)?(?P<home>:?(?:/[\w.+-]+){1,20})/bin/nvcc +-")
_NVCC_ABSENT = Pattern(
    r"(?:No such file or directory: '|/sh: (?:line )?\d{1,6}: |/sh: )(?P<home>:?(?:/[\w.+-]{1,100}){1,20})/bin/nvcc(?:'|: (?:not found|No such file))"
)
_GENCODE = Pattern(r"code=\[?(?:compute_\d+[a-z]?,)?sm_(?P<sm>\d{2,3})(?P<suffix>[af]?)")
_PYTHON_PATH = Pattern(r"/lib(?:64)?/python(?P<value>3\.\d{1,2})/\w")
_CUDA_TAG = Pattern(r"\+cu(?P<digits>\d{3})$")
LONGEST = 3000


def read(text: str) -> Iterator[Statement]:
    shown = text[:LONGEST]
    for literal, key, pattern in _REPORTED:
        found = pattern.search(shown) if literal in shown else None
        if found is not None:
            yield from _version(key, found["value"], Strength.REPORTED)
            return
    yield from _packages(shown)
    yield from _from_messages(shown)
    found = _PYTHON_PATH.search(shown) if "/python3." in shown else None
    if found is not None:
        yield Statement("python", found["value"], Strength.PROSE)


def _packages(shown: str) -> Iterator[Statement]:
    if 'File "' in shown:
        return
    conflict = _INCOMPATIBLE.match(shown) if "which is incompatible" in shown else None
    if conflict is not None:
        yield from _package(conflict["owner"], conflict["own"], Strength.REPORTED)
        yield from _package(conflict["name"], conflict["version"], Strength.REPORTED)
        return
    for pattern, strength in _package_patterns(shown):
        found = pattern.match(shown)
        if found is not None:
            yield from _package(found["name"], found["version"], strength)
            return
    for literal, name, pattern in _BANNERS:
        found = pattern.search(shown) if literal in shown else None
        if found is not None:
            yield from _package(name, found["version"].rstrip("."), Strength.PRINTED)
            return


def _package_patterns(shown: str) -> Iterator[tuple[Pattern, Strength]]:
    """The patterns that a line of this look can match at all: the long ones are not worth compiling for others."""
    if "==" in shown:
        yield _FREEZE, Strength.REPORTED
    if "[conda]" in shown:
        yield _CONDA, Strength.REPORTED
    if shown.lstrip(" -*•|")[:30].lower().startswith(_NAMES):
        yield _LABELLED, Strength.PROSE
        yield _BESIDE, Strength.PROSE


def canonical(name: str) -> str:
    """The name under which a package is known here: that of its project, lower case, with hyphens."""
    return ALIASES.get(name.lower(), re.sub(r"[-_.]+", "-", name).lower())


def _package(name: str, version: str, strength: Strength) -> Iterator[Statement]:
    known = canonical(name)
    if known == "torch":
        yield from _version("torch", version, strength)
    else:
        yield Statement(f"packages.{known}", version, strength)


def package(name: str, version: str, strength: Strength) -> Iterator[Statement]:
    """The statements that a package of this version makes (torch's also names its CUDA)."""
    return _package(name, version, strength)


def _version(key: str, value: str, strength: Strength) -> Iterator[Statement]:
    yield Statement(key, value, strength)
    if key == "torch":
        tag = _CUDA_TAG.search(value)
        if tag is not None:
            digits = tag["digits"]
            yield Statement("torch_cuda", f"{digits[:-1]}.{digits[-1]}", strength)


def _from_messages(shown: str) -> Iterator[Statement]:
    found = _MISMATCH.search(shown) if "mismatches" in shown else None
    if found is not None:
        yield Statement("cuda_toolkit", found["toolkit"], Strength.PRINTED)
        if found["torch"]:
            yield Statement("torch_cuda", found["torch"], Strength.PRINTED)
    found = _COMPILED_WITH.search(shown) if "same CUDA versions" in shown else None
    if found is not None:
        yield Statement("torch_cuda", found["torch"], Strength.PRINTED)
    if ("nvcc" in shown or "CUDA_HOME" in shown) and _NO_NVCC.search(shown):
        yield Statement("cuda_toolkit", None, Strength.PRINTED)
    found = _ARCH_LIST.search(shown) if "CUDA capabilities" in shown else None
    if found is not None:
        yield Statement("torch_arch_list", found["list"].split(), Strength.PRINTED)
    found = _NVCC_ABSENT.search(shown) if "/bin/nvcc" in shown else None
    if found is not None:
        yield Statement("cuda_home", found["home"], Strength.PRINTED)
    found = _NVCC_COMMAND.match(shown) if "/bin/nvcc" in shown else None
    if found is not None:
        yield Statement("cuda_home", found["home"], Strength.PRINTED)
        targets = sorted({f"{sm[:-1]}.{sm[-1]}{suffix}" for sm, suffix in _GENCODE.findall(shown)})
        if targets:
            yield Statement("jit_targets", targets, Strength.PRINTED)
