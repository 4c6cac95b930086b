"""Environment variables, as typed into a shell, set in a file, or printed by ``env``.

$ export CUDA_HOME=/usr/local/cuda-12.8
ENV NCCL_DEBUG=INFO VLLM_USE_V1=0
Environment="HF_HOME=/data/hf"
os.environ["VLLM_ATTENTION_BACKEND"] = "FLASHINFER"
NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

_STARTS = (
    "CUDA_", "TORCH", "FLASHINFER_", "TRITON_", "NCCL_", "GLOO_", "PYTORCH_", "HF_", "HUGGING", "VLLM_", "SGLANG_", "SGL_", "NVIDIA_", "NVCC_", "XDG_", "OMP_", "MKL_",
    "RAY_", "UCX_", "TRTLLM_", "TLLM_", "LMCACHE_", "DG_", "DEEPGEMM", "DEEP_GEMM", "DEEPEP_", "NVSHMEM_", "TRANSFORMERS_", "TIKTOKEN_", "XFORMERS_", "CUBLAS_", "CUDNN_",
    "GGML_", "LLAMA_", "OLLAMA_", "MASTER_", "EXLLAMA", "MODELSCOPE_", "PYTHON", "TMA_",
)  # fmt: skip
_NAMES = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "CUDAHOSTCXX", "CC", "CXX", "MAX_JOBS", "TMPDIR", "RANK", "WORLD_SIZE", "LOCAL_RANK", "PATH", "CONDA_PREFIX", "VIRTUAL_ENV", "HOME",
)  # fmt: skip
LITERALS = (
    *_STARTS,
    *(name + "=" for name in _NAMES),
    "set by environment",
    "$ export ",
    "$ set ",
    "# export ",
)
_INTERESTING = Pattern(rf"(?:{'|'.join(_STARTS)}|(?:{'|'.join(_NAMES)})$)")
KEPT_BACK = "(set)"
"""In place of the value of a variable that holds a secret."""
_SECRET = Pattern(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_ASSIGNMENT = Pattern(
    r"^(?:declare -x |export |set |ENV |setenv |[-*] )?[\"']?(?P<name>[A-Za-z_][A-Za-z0-9_]{1,80})=(?P<value>.{0,4000})$"
)
_OLD_ENV = Pattern(r"^(?:ENV|setenv) (?P<name>[A-Z_][A-Z0-9_]{1,80}) (?P<value>[^=\s]{1,400})$")
_UNIT_FILE = Pattern(r"^Environment=(?P<words>.{1,4000})$")
_IN_PYTHON = Pattern(
    r"^os\.(?:environ\[[\"'](?P<name>[A-Z_][A-Z0-9_]{1,80})[\"']\] ?= ?|environ\.setdefault\([\"'](?P<defaulted>[A-Z_][A-Z0-9_]{1,80})[\"'], ?)(?P<quote>[\"'])(?P<value>[^\"']{0,400})(?P=quote)\)?\s*(?:#.*)?$"
)
WORD_ASSIGNMENT = Pattern(r"(?P<name>[A-Z_][A-Z0-9_]{1,80})=(?P<value>.*)", re.DOTALL)
PROMPT = Pattern(r"^(?:\([^)]{1,60}\) ?)?(?:[\w.-]{1,60}@[\w.-]{1,100}:?\S{0,200}[$#%]|\[[^\]]{1,100}\][$#]|[$>❯➜%]) +")
"""What a shell shows before a command. A lone ``#`` is left out: in a report it begins a comment or a heading."""
_BY_NCCL = Pattern(r"(?P<name>NCCL_\w{2,60}) set by environment to (?P<value>\S{1,400}?)\.?$")
_RUN_TOGETHER = Pattern(
    rf"(?:{'|'.join(_STARTS)})[A-Z0-9_]{{0,60}}=|(?:[A-Za-z0-9/])(?:{'|'.join(_NAMES[7:])}|PWD|USER|LANG|SHLVL)="
)
LONGEST = 8000


def read(text: str) -> Iterator[Statement]:
    shown = text[:LONGEST].strip()
    found = _BY_NCCL.search(shown) if "set by environment" in shown else None
    if found is not None:
        yield from variable(found["name"], found["value"], Strength.PRINTED)
        return
    prompt = PROMPT.match(shown)
    typed = shown[prompt.end() :] if prompt else shown
    if typed.startswith("os.environ"):
        found = _IN_PYTHON.match(typed)
        if found is not None:
            yield from variable(found["name"] or found["defaulted"], found["value"], Strength.PRINTED)
        return
    found = _UNIT_FILE.match(typed)
    if found is not None:
        yield from _words(found["words"])
        return
    if typed.startswith(("ENV ", "export ")) and typed.count("=") > 1 and _words_are_assignments(typed):
        yield from _words(typed.partition(" ")[2])
        return
    found = _OLD_ENV.match(typed)
    if found is not None and _INTERESTING.match(found["name"]):
        yield from variable(found["name"], found["value"], Strength.REPORTED)
        return
    found = _ASSIGNMENT.match(typed.rstrip(" \\"))
    if found is None or not (prompt or _INTERESTING.match(found["name"])):
        return
    value = found["value"].strip().removesuffix(";")
    if " " not in value.strip("\"' ").replace("\\ ", "") or _is_quoted(value):
        yield from variable(found["name"], value.strip().strip("\"'"), Strength.REPORTED)


def _split(text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text.rstrip("\\ "), comments=True)
    except ValueError:
        return []


def _words_are_assignments(typed: str) -> bool:
    words = _split(typed)[1:]
    return len(words) > 1 and all(WORD_ASSIGNMENT.fullmatch(word) for word in words)


def _words(text: str) -> Iterator[Statement]:
    for word in _split(text)[:100]:
        found = WORD_ASSIGNMENT.fullmatch(word)
        if found is not None and _INTERESTING.match(found["name"]):
            yield from variable(found["name"], found["value"], Strength.REPORTED)


def _is_quoted(value: str) -> bool:
    stripped = value.strip()
    return (
        len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'" and stripped.count(stripped[0]) == 2
    )


def is_interesting(name: str) -> bool:
    """Whether a variable of this name can matter to a GPU service."""
    return _INTERESTING.match(name) is not None


def variable(name: str, value: str, strength: Strength) -> Iterator[Statement]:
    """``env.NAME``; nothing where the text shows only from where the value would come, secrets without their value."""
    if "$" in value or "`" in value or "<" in value or value in ("...", "…", "xxx") or "***" in value:
        return
    if _RUN_TOGETHER.search(value):  # /proc/PID/environ without its NULs
        return
    yield Statement(f"env.{name}", KEPT_BACK if _SECRET.search(name) and value else value, strength)
