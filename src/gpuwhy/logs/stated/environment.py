"""Environment variables and start commands, as typed into a shell or printed by ``env``.

$ export CUDA_HOME=/usr/local/cuda-12.8
$ VLLM_USE_FLASHINFER_SAMPLER=0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2
$ docker run --gpus all -e NCCL_DEBUG=INFO vllm/vllm-openai:latest --model ...
NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = (
    "=",
    "set by environment",
    "$ ",
    "# ",
    "docker run",
    "vllm serve",
    "sglang",
    "python",
    "podman",
    "unlimited",
)
_PREFIXES = (
    r"CUDA_|TORCH|FLASHINFER_|TRITON_|NCCL_|GLOO_|PYTORCH_|HF_|HUGGING|VLLM_|SGLANG_|SGL_|NVIDIA_|LD_LIBRARY_PATH|LD_PRELOAD|NVCC_|CUDAHOSTCXX|CC$|CXX$|MAX_JOBS|XDG_|TMPDIR|OMP_|MKL_|"
    r"RAY_|UCX_|TRTLLM_|TLLM_|LMCACHE_|DG_|DEEP_?GEMM|DEEPEP_|NVSHMEM_|TRANSFORMERS_|TIKTOKEN_|XFORMERS_|CUBLAS_|CUDNN_|GGML_|LLAMA_|OLLAMA_|MASTER_|RANK$|WORLD_SIZE$|LOCAL_RANK$|EXLLAMA|MODELSCOPE_|PYTHON|TMA_|PATH$|CONDA_PREFIX|VIRTUAL_ENV|HOME$"
)  # fmt: skip
_INTERESTING = Pattern(rf"(?:{_PREFIXES})")
_SECRET = Pattern(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_ASSIGNMENT = Pattern(
    r"^(?:declare -x |export |set |ENV |setenv )?(?P<name>[A-Za-z_][A-Za-z0-9_]{1,80})=(?P<value>.{0,4000})$"
)
_WORD_ASSIGNMENT = Pattern(r"(?P<name>[A-Z_][A-Z0-9_]{1,80})=(?P<value>.*)", re.DOTALL)
_PROMPT = Pattern(r"^(?:\([^)]{1,60}\) )?(?:[\w.-]{1,60}@[\w.-]{1,100}:?\S{0,200}[$#]|\[[^\]]{1,100}\][$#]|[$#>]) +")
_BY_NCCL = Pattern(r"(?P<name>NCCL_\w{2,60}) set by environment to (?P<value>\S{1,400}?)\.?$")
_LAUNCH = Pattern(
    r"\b(?:vllm serve|vllm\.entrypoints|sglang\.launch_server|sglang serve|trtllm-serve|trtllm-build|lmdeploy serve|llama-server|text-generation-launcher|tritonserver|aphrodite run|ollama serve|"
    r"(?:docker|podman|nerdctl) run|torchrun|accelerate launch|mpirun|deepspeed)\b"
)
_LAUNCH_START = Pattern(
    r"^(?:sudo )?(?:[A-Z_][A-Z0-9_]*=\S+ )*(?:\S{0,200}/)?(?:python[\d.]*|vllm|docker|podman|nerdctl|torchrun|trtllm-\w+|lmdeploy|llama-server|sglang|uv run|mpirun|tritonserver)\b"
)
LONGEST = 8000


def read(text: str) -> Iterator[Statement]:
    shown = text[:LONGEST].strip()
    found = _BY_NCCL.search(shown)
    if found is not None:
        yield from _variable(found["name"], found["value"], Strength.PRINTED)
        return
    prompt = _PROMPT.match(shown)
    typed = shown[prompt.end() :] if prompt else shown
    assignment = _ASSIGNMENT.match(typed)
    if (assignment is not None and " " not in assignment["value"].strip("\"' ").replace("\\ ", "")) or (
        assignment and _is_quoted(assignment["value"])
    ):
        if prompt or _INTERESTING.match(assignment["name"]):
            yield from _variable(assignment["name"], assignment["value"].strip().strip("\"'"), Strength.REPORTED)
        return
    if _LAUNCH.search(typed) and (prompt or _LAUNCH_START.match(typed)):
        yield Statement("command", typed.rstrip(" \\"), Strength.REPORTED if prompt else Strength.PRINTED)
        yield from _in_command(typed)
    elif prompt and "=" in typed:
        yield from _in_command(typed)


def _is_quoted(value: str) -> bool:
    stripped = value.strip()
    return (
        len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'" and stripped.count(stripped[0]) == 2
    )


def _in_command(typed: str) -> Iterator[Statement]:
    """``VAR=value`` before the program, and what ``-e`` and ``--env`` give a container."""
    import shlex

    try:
        words = shlex.split(typed.rstrip("\\ "))
    except ValueError:
        return
    leading = True
    for at, word in enumerate(words[:400]):
        if word in ("env", "sudo", "export", "exec", "time", "nohup"):
            continue
        found = _WORD_ASSIGNMENT.fullmatch(word)
        if found is not None and (leading or (at and words[at - 1] in ("-e", "--env"))):
            yield from _variable(found["name"], found["value"], Strength.REPORTED)
            continue
        if word.startswith(("--env=", "-e=")):
            found = _WORD_ASSIGNMENT.fullmatch(word.partition("=")[2])
            if found is not None:
                yield from _variable(found["name"], found["value"], Strength.REPORTED)
        leading = False


def _variable(name: str, value: str, strength: Strength) -> Iterator[Statement]:
    if "$" in value or "`" in value or "<" in value or value == "...":  # not the value but where it would come from
        return
    yield Statement(f"env.{name}", "(set)" if _SECRET.search(name) and value else value, strength)
