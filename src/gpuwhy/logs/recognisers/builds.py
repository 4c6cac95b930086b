"""Compilers, assemblers, linkers and build tools.

nvcc fatal   : Unsupported gpu architecture 'compute_120'
nvcc error   : 'cicc' died due to signal 9 (Kill signal)
ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'
/tmp/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory
gcc: fatal error: Killed signal terminated program cc1plus
/usr/bin/ld: cannot find -lcuda: No such file or directory
/bin/sh: 1: :/usr/local/cuda-12.8/bin/nvcc: not found
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "Permission denied", "nvcc", "ptxas", "cicc", "cudafe++", "nvlink", "fatbinary", "fatal error", "error:", "error #", ": not found", "command not found",
    "cannot find -l", "undefined reference", "/ld:", "ld: ", "collect2", "ninja:", "FAILED: ", "CMake Error", "unsupported GNU version", "make: ",
    "make[", "Killed signal", "catastrophic", "nvrtc", "NVRTC", "No such file or directory", "assembler", "Assembler messages", "internal compiler error",
    "Fatal error:", "unsupported Microsoft", "clang: ", "compilation terminated", "build failed", "Could not build", "-- Could NOT find", "Could not find C compiler",
    "error[E", "could not compile `", "linker `", "custom build command", "detected in the compilation of", "Failed to build", "No solution found when resolving", "No matching distribution", "Could not find a version that satisfies", "conflicting dependencies",
    "ResolutionImpossible", "Configuring incomplete", "externally-managed-environment", "Failed to download", "Failed building wheel", "subprocess-exited", "metadata-generation",
)  # fmt: skip
_COMPILER_PATTERNS: tuple[tuple[str, str], ...] = (
    ("nvcc", r"\bnvcc (?:fatal|error) *:"),
    ("ptxas", r"\b(?P<name>ptxas(?:-blackwell)?)(?: \S{1,300}, line \d+;)? *(?:fatal|error) *:|\bptxas \S{1,300}, line \d+; (?:error|fatal)"),
    ("nvlink", r"\bnvlink (?:fatal|error) *:"),
    ("fatbinary", r"\bfatbinary (?:fatal|error) *:"),
    ("cicc", r"\bcicc(?:\.exe)?: |\blibNVVM\b.{0,60}(?:error|failed)|'cicc' died"),
    ("cudafe++", r"\bcudafe\+\+(?:\.exe)?: |'cudafe\+\+' died"),
    ("nvrtc", r"\bnvrtc: error|NVRTC_ERROR_\w+|NVRTC (?:compilation|error)"),
    ("triton", r"^(?:loc\()?\"?[^\s\"]{1,300}\.py\"?:\d{1,6}:\d{1,5}\)?: error:|^error: .{0,40}\btt\.\w{1,40}' op"),
    ("rustc", r"^error\[E\d{4}\]: |^error: (?:could not compile `|linker `.{1,100}` not found|failed to run custom build command for `)"),
    ("nvcc", r"unsupported GNU version|unsupported Microsoft Visual Studio version|unsupported clang version"),
    ("gcc", r"\b(?:gcc|g\+\+|c\+\+|cc|cc1plus|cc1|clang|clang\+\+)(?:-\d+)?: (?:fatal |internal compiler )?error:"),
    ("gcc", r"internal compiler error:"),
    ("gcc", r"(?:^|\s)(?:[^\s:]|:(?=[\\/])){1,500}[:(]\d+(?:[:,]\d+)?\)?: (?:fatal |catastrophic )?error(?: #?\S{1,20})?:|^(?:fatal(?! error: (?:unexpected signal|all goroutines|runtime: |stack overflow|concurrent map))|catastrophic) error(?: #?\S{1,20})?:|<built-in>: fatal error:"),
    ("as", r"\.s: (?:Fatal e|E)rror:|^as: .{0,200}(?:fail|error)"),
    ("gcc", r"^(?:gcc|g\+\+|c\+\+|cc|/\S{1,300}/(?:gcc|g\+\+|cc|c\+\+)(?:-\d+)?): No such file or directory"),
    ("ld", r"(?:^|[\s/])(?:[\w-]{1,60}-)?ld(?:\.\w+)?: .{0,2000}(?:cannot find|undefined reference|cannot open|error|not found|No such file|file format not recognized|relocation)|undefined reference to [`'‘]|^ld: error:|\blld: error:|\bmold: (?:error|fatal)"),
    ("ld", r"\bcollect2: (?:fatal )?error:"),
    ("cmake", r"\bCMake Error\b|-- Could NOT find|^-- Configuring incomplete, errors occurred"),
    ("ninja", r"^\s*ninja: (?:build stopped|error|fatal)|^\s*FAILED: "),
    ("make", r"^\s*(?:g?make|gmake)(?:\[\d+\])?: \*\*\*"),
    ("setuptools", r"^\s*error: command '.{1,2000}' (?:failed|terminated)|^\s*error: (?:subprocess-exited-with-error|metadata-generation-failed)|^ *ERROR: Failed building wheel|Failed building wheel for"),
    ("pip", r"^(?:ERROR: )?(?:Could not find a version that satisfies|No matching distribution found for|Cannot install .{1,1500} conflicting dependencies|ResolutionImpossible\b|Could not build wheels|Failed to build (?:installable wheels|[\w.-]{1,80}(?: [\w.-]{1,80}){0,8})(?: for .{0,200})?$)|externally-managed-environment"),
    ("uv", r"^\s*(?:error: |× )(?:Failed to (?:build|download|prepare distributions|fetch)\b|No solution found when resolving)"),
    ("nvcc", r"^\d{1,6} errors? detected in the compilation of "),
    ("gcc", r"^\s*compilation terminated\.?$"),
    ("sh", r"(?:^|\s)(?:/bin/(?:ba|da)?sh|sh|bash|dash|zsh|env|/usr/bin/env|\S{1,200}\.sh): (?:line )?(?:\d+: )?.{1,500}: (?:command )?not found$"),
    ("sh", r"^(?:env|/usr/bin/env|timeout|nohup|setsid|exec): .{1,300}: (?:No such file or directory|Permission denied)"),
)  # fmt: skip
_COMPILED = tuple((tool, Pattern(pattern)) for tool, pattern in _COMPILER_PATTERNS)
_GATE = Pattern(
    r"fatal|rror|not found|FAILED:|ninja:|\*\*\*|unsupported|died due|compilation terminated|cannot find|undefined reference|NOT find|NVRTC|detected in|No solution|distribution|conflicting|satisfies|Could not build|Resolution|externally|incomplete|"
    r"No such file|Failed b|Failed to build|cicc|cudafe|\bld: |Permission denied"
)
_SIGNAL = Pattern(r"signal (\d+)|(Killed) signal|\[code=(\d+)\]|exit (?:code|status):? (\d+)")
_SITE = Pattern(
    r"(?P<file>[\w./+@-]{1,300}\.(?:cuh?|cpp|cc|cxx|c|hpp|hh?|inl|ptx|s|i|ii))(?::|\(|, line )(?P<line>\d{1,7})(?::\d{1,5}: |\): |; )"
)
_ONLY_SUMS_UP = Pattern(
    r"ld returned|compilation terminated|errors? detected in the compilation of|Ptx assembly aborted due to errors|Configuring incomplete|Failed to build|could not compile `|Could not build wheels|ResolutionImpossible"
)
_WARNING = Pattern(r": warning(?: #?\S{1,20})?:|\b(?:ptxas|nvcc|nvlink) (?:warning|info) *:")
_STATUS = "-- Could NOT find"
"""CMake goes on without an optional package; one that is required gives ``CMake Error`` as well."""
LONGEST = 2000


def recognise(text: str) -> Recognised | None:
    shown = text[:LONGEST]
    if _GATE.search(shown) is None or (_WARNING.search(shown) and "rror:" not in shown):
        return None
    for tool, pattern in _COMPILED:
        found = pattern.search(shown)
        if found is None:
            continue
        if tool == "ptxas":
            tool = found.groupdict().get("name") or tool
        detail = _detail(shown)
        return Recognised(
            "build",
            tool,
            detail,
            is_echo=_is_echo(tool, shown, detail),
            is_fatal=not shown.lstrip().startswith(_STATUS),
            takes_more=tool in ("cmake", "uv"),
        )
    return None


def _detail(text: str) -> dict[str, str]:
    """``site`` (``file:line``) of an error in a source, and how a tool ended: ``signal`` or ``exit_code``."""
    site = _SITE.search(text)
    detail = {"site": f"{site['file']}:{site['line']}"} if site is not None else {}
    found = _SIGNAL.search(text)
    if found is None:
        return detail
    signal, killed, code, status = found.groups()
    if killed:
        return detail | {"signal": "9"}
    if signal:
        return detail | {"signal": signal}
    return detail | {"exit_code": code or status}


def _is_echo(tool: str, text: str, detail: dict[str, str]) -> bool:
    """Tools that only pass on another tool's failure; not when they tell of a signal nobody else reports."""
    if tool in ("ninja", "make", "setuptools"):
        return int(detail.get("exit_code", "1")[:4] or 1) < 128
    return _ONLY_SUMS_UP.search(text) is not None
