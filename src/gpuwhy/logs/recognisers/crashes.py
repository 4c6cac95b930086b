"""Programs that end in native code: they leave a bare line and no traceback.

terminate called after throwing an instance of 'c10::AcceleratorError'
Fatal Python error: Bus error
[TensorRT-LLM][ERROR] Assertion failed: Unsupported architecture (...fmhaRunner.cpp:87)
thread 'main' (7863) panicked at src/main.rs:1:5:
free(): invalid pointer
bash: line 1:  7887 Segmentation fault      ./server
vllm: error: unrecognized arguments: --swap-space

What CUDA's own errors carry is told by :mod:`gpuwhy.logs.recognisers.cuda`, which is asked before.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "terminate called", "what():", "Fatal Python error", "Segmentation fault", "Bus error", "core dumped", "Aborted", "SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE",
    "GGML_ASSERT", "ggml_abort", "[TensorRT-LLM][ERROR]", "[TRT-LLM] [E]", "panicked at", "LLVM ERROR", "UNREACHABLE executed", "panic: ", "unexpected signal", "goroutines are asleep", "[signal SIG", "Assertion", "assertion", "Check failed", "CHECK failed", "double free", "corrupted",
    "malloc(): ", "free(): ", "munmap_chunk", "realloc(): ", "malloc_consolidate", "stack smashing", "buffer overflow detected", "Illegal instruction", "Floating point exception",
    "Trace/breakpoint trap", "Bad system call", "error loading model", "unknown model architecture", "Failed to initialize NVML", "failed with error code", "signal arrived", "std::",
    "unrecognized arguments", "error: argument ", "arguments are required", "ambiguous option", "No such option", "unexpected argument '", "invalid argument: ", "unknown argument: ", "unknown flag: ", "unknown shorthand flag: ",
    "error while handling argument", "[TRT] [E]", "c10::Error", "symbol lookup error", "error while loading shared libraries", "SIGNAL RECEIVED", "Segfault encountered", "ggml-", "ggml.c",
)  # fmt: skip
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("python", r"Fatal Python error: "),
    ("c++", r"terminate called (?:after throwing an instance of|without an active exception|recursively)"),
    ("c++", r"^\s*what\(\):"),
    ("go", r"^panic: |^fatal error: (?:unexpected signal|all goroutines|runtime: |stack overflow|concurrent map)"),
    ("llvm", r"^LLVM ERROR: |^UNREACHABLE executed at "),
    ("rust", r"thread '.{1,80}' (?:\(\d+\) )?panicked at"),
    ("glibc", r"^(?:double free or corruption|free\(\): |malloc\(\): |munmap_chunk\(\): |malloc_consolidate\(\): |corrupted (?:size|double-linked|unsorted)|realloc\(\): )"),
    ("glibc", r"^\*\*\* (?:stack smashing|buffer overflow) detected|^\*\*\* Error in `.{1,300}': "),
    ("tensorrt-llm", r"\[TensorRT-LLM\]\[ERROR\]|\[TRT-LLM\] \[E\]"),
    ("ggml", r"GGML_ASSERT|\bggml[\w./-]{0,200}\.(?:c|cpp|cu|m|h):\d+: (?!CUDA error)\S"),
    ("assert", r"Assertion [`'\"].{1,800}[`'\"] failed|\bCheck failed: |CHECK failed|^Assertion failed|assertion failed"),
    ("signal", r"^(?:\S.{0,120}?[:\uff1a] {0,4}\d{1,10} {1,6})?(?:Segmentation fault|Bus error|Illegal instruction|Floating point exception|Aborted|Trace/breakpoint trap|Bad system call)(?: +\(core dumped\))?(?: .{0,400})?$"),
    ("signal", r"(?:received|got|caught|Caught|Received|with|by|terminated by|Signal:?|SIGNAL RECEIVED:?) (?:fatal )?(?:signal )?(?:SIGSEGV|SIGBUS|SIGABRT|SIGILL|SIGFPE)|!!!!!!! Segfault encountered"),
    ("signal", r"[Cc]aught signal (?:11|7|6|4)\b|^SIG(?:SEGV|BUS|ILL|FPE): "),
    ("llama.cpp", r"error loading model|unknown model architecture"),
    ("arguments", r"^(?:[\w./-]{1,80}(?: \w{2,20}){0,2}: )?error: (?:unrecognized arguments: |argument \S.{0,120}?: |the following arguments are required: |ambiguous option: |invalid argument: |unknown argument: |unexpected argument ')"),
    ("arguments", r"^(?:Error: )?No such option: -|^unknown (?:shorthand )?flag: |^error while handling argument "),
    ("tensorrt", r"\[TRT\] \[E\] "),
    ("nvml", r"Failed to initialize NVML"),
    ("loader", r"symbol lookup error: |error while loading shared libraries: "),
)  # fmt: skip
_COMPILED = tuple((tool, Pattern(pattern)) for tool, pattern in _PATTERNS)
_FATAL_LEVELS = frozenset({"", "error", "critical"})
_SIGNALS = (
    ("11", Pattern(r"Segmentation fault|SIGSEGV|Segfault|signal 11\b")),
    ("7", Pattern(r"Bus error|SIGBUS|signal 7\b")),
    ("6", Pattern(r"Aborted|SIGABRT|signal 6\b")),
    ("4", Pattern(r"Illegal instruction|SIGILL|signal 4\b")),
    ("8", Pattern(r"Floating point exception|SIGFPE")),
    ("5", Pattern(r"Trace/breakpoint trap")),
    ("31", Pattern(r"Bad system call")),
)
_SITE = Pattern(
    r"(?P<file>[\w./+@-]{1,200}\.(?:cuh?|cpp|cc|cxx|c|hpp|h|m|rs|inl)):(?P<line>\d{1,6})(?::(?P<column>\d{1,4}))?"
)
_THROWN = Pattern(r"throwing an instance of '(?P<type>.{1,200}?)'")
_TAKING_MORE = frozenset({"c++", "rust", "python", "ggml"})
LONGEST = 2000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if level in ("info", "debug"):
        return None
    for tool, pattern in _COMPILED:
        if pattern.search(shown) is not None:
            return Recognised(
                "crash",
                tool,
                _details(tool, shown),
                is_echo=_is_echo(tool, shown),
                is_fatal=level in _FATAL_LEVELS,
                takes_more=tool in _TAKING_MORE,
            )
    return None


def _details(tool: str, text: str) -> dict[str, str]:
    """``signal`` (its number), ``thrown`` (a C++ type) and ``site`` (``file:line``), as the kind of crash has them."""
    detail: dict[str, str] = {}
    if tool in ("signal", "python"):
        number = next((number for number, pattern in _SIGNALS if pattern.search(text)), None)
        if number is not None:
            detail["signal"] = number
    thrown = _THROWN.search(text) if tool == "c++" else None
    if thrown is not None:
        detail["thrown"] = thrown["type"]
    site = _SITE.search(text) if tool in ("rust", "ggml", "assert", "tensorrt-llm") else None
    if site is not None:
        detail["site"] = f"{site['file']}:{site['line']}"
    return detail


def _is_echo(tool: str, text: str) -> bool:
    """An abort's name says how the program ended, what was printed before it says why; TensorRT's clearing up follows."""
    if tool == "tensorrt":
        return "~Runtime::" in text or "Destroying a " in text
    return (tool == "signal" and ("Aborted" in text or "SIGABRT" in text)) or text.startswith(
        "Fatal Python error: Aborted"
    )
