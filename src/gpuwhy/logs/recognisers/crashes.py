"""Programs that end in native code: they leave a bare line and no traceback.

Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:164 'invalid argument'
CUDA error 35 at .../ggml-cuda.cu:4236: CUDA driver version is insufficient for CUDA runtime version
terminate called after throwing an instance of 'c10::AcceleratorError'
Fatal Python error: Bus error
[TensorRT-LLM][ERROR] Assertion failed: Unsupported architecture (...fmhaRunner.cpp:87)
thread 'main' panicked at src/main.rs:1:
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "terminate called", "what():", "Fatal Python error", "Segmentation fault", "Bus error", "core dumped", "Aborted", "SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE",
    "GGML_ASSERT", "CUDA error", "Cuda error", "CUDA Error", "cuda error", "cuda runtime error", "CUDA failure", "Cuda failure", "CUDNN_STATUS", "CUBLAS_STATUS",
    "[TensorRT-LLM][ERROR]", "panicked at", "Assertion", "assertion", "Check failed", "CHECK failed", "double free", "corrupted", "malloc(): ", "free(): ", "munmap_chunk",
    "stack smashing", "Illegal instruction", "cudaError", "CUDA_ERROR", "Watchdog caught", "no kernel image", "PTX was compiled", "Floating point exception",
    "error loading model", "unknown model architecture", "nvidia-container-cli", "OCI runtime", "docker: Error", "Error response from daemon", "Failed to initialize NVML",
    "failed with error code", "returned 802", "signal arrived", "std::", "c10::Error", "symbol lookup error", "error while loading shared libraries", "FATAL: ",
)  # fmt: skip
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("python", r"Fatal Python error: "),
    ("c++", r"terminate called (?:after throwing an instance of|without an active exception|recursively)"),
    ("c++", r"^\s*what\(\):"),
    ("rust", r"thread '.{1,80}' (?:\(\d+\) )?panicked at"),
    ("glibc", r"^(?:double free or corruption|free\(\): |malloc\(\): |munmap_chunk\(\): |corrupted (?:size|double-linked|unsorted)|realloc\(\): |\*\*\* stack smashing)"),
    ("nccl", r"Watchdog caught collective operation timeout"),
    ("tensorrt-llm", r"\[TensorRT-LLM\]\[ERROR\]|\[TRT-LLM\] \[E\]"),
    ("ggml", r"GGML_ASSERT"),
    ("cuda", r"(?:^|\W)C(?:UDA|uda) (?:[Ee]rror|[Ff]ailure)\b|cuda runtime error|cuda(?:GetDevice\w*|Error[A-Z]\w+)|\bCUDA_ERROR_\w+"),
    ("cuda", r"\b(?:CUDNN|CUBLAS|CUSOLVER|CUSPARSE|CUFFT|NPP)_STATUS_(?!SUCCESS)\w+"),
    ("cuda", r"no kernel image is available|the provided PTX was compiled with an unsupported toolchain"),
    ("assert", r"Assertion [`'\"].{1,800}[`'\"] failed|\bCheck failed: |CHECK failed|^Assertion failed|assertion failed"),
    ("signal", r"^(?:\S{1,100}: line \d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction|Floating point exception|Aborted|Trace/breakpoint trap)(?: +\(core dumped\))?(?: .{0,400})?$"),
    ("signal", r"(?:received|got|caught|Caught|Received|with|by|terminated by|Signal:?) (?:fatal )?(?:signal )?(?:SIGSEGV|SIGBUS|SIGABRT|SIGILL|SIGFPE)|!!!!!!! Segfault encountered|Caught signal (?:11|7|6|4)\b"),
    ("llama.cpp", r"error loading model|unknown model architecture"),
    ("container", r"nvidia-container-cli: |OCI runtime (?:create|exec) failed|^docker: Error|Error response from daemon|unresolvable CDI devices|unable to start container process"),
    ("nvml", r"Failed to initialize NVML"),
    ("loader", r"symbol lookup error: |error while loading shared libraries: "),
    ("cuda", r"^FATAL: kernel "),
)  # fmt: skip
_COMPILED = tuple((tool, Pattern(pattern)) for tool, pattern in _PATTERNS)
_FATAL_LEVELS = frozenset({"", "error", "critical"})
_CODE_AT = Pattern(r"(?:[Cc]ode=|error |\()(\d{1,4})(?:\(|\)| at |:|$)")
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if level in ("info", "debug"):
        return None
    for tool, pattern in _COMPILED:
        if pattern.search(shown) is not None:
            detail = {}
            code = _CODE_AT.search(shown) if tool == "cuda" else None
            if code:
                detail["code"] = code.group(1)
            return Recognised(
                "crash",
                tool,
                detail,
                is_echo=_is_echo(tool, shown),
                is_fatal=level in _FATAL_LEVELS,
                takes_more=tool in ("c++", "rust", "python", "ggml", "cuda"),
            )
    return None


def _is_echo(tool: str, text: str) -> bool:
    """An abort's name says how the program ended, what was printed before it says why."""
    if tool == "signal":
        return text.startswith("Aborted") or "SIGABRT" in text
    if tool == "cuda":  # "ggml-cuda.cu:72: CUDA error": which one stands in the lines that follow
        return "kernel errors might be" in text or text.rstrip().endswith(("CUDA error", "CUDA error:"))
    return False
