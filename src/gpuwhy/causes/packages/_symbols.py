"""Undefined symbols: who should have defined them, by their name."""

from __future__ import annotations

import re

import msgspec

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import says
from gpuwhy.knowledge import components
from gpuwhy.knowledge.mangling import CppName, demangle

UNDEFINED = says(
    "undefined-symbol",
    ("undefined symbol", "symbol not found", "not defined in file", "symbol not found in flat namespace"),
    r"(?:(?P<binary>[\w./+@~-]{1,300}?(?:\.so(?:\.\d{1,5}){0,3}|\.pyd|\.dylib)?): (?:symbol lookup error: )?)?"
    r"(?:undefined symbol|symbol not found in flat namespace|(?<!named )Symbol not found)(?: ?\(|: ?| )['\"(]{0,2}(?P<symbol>(?:_|[A-Za-z])[\w@$.]{2,1500})?(?:, version (?P<provider>lib[\w.+-]{2,60}))?"
    r"|(?P<binary2>[\w./+@~-]{1,300}): (?:relocation error: [\w./+@~-]{1,300}: )?symbol (?P<symbol2>[\w@$]{2,1500}),? version \S{1,60} not defined in file (?P<provider2>lib[\w.+-]{2,60})",
)
"""The dynamic loader's line about a symbol that no loaded library defines."""
_TORCH_ROOTS = frozenset({"c10", "at", "torch", "caffe2", "c10d", "THPVariableClass"})
_STANDARD_ROOTS = frozenset({"std", "__cxxabiv1", "__gnu_cxx"})
_C_OWNERS = (
    ("nccl", lazy_pattern(r"p?nccl[A-Z]")),
    ("cuda", lazy_pattern(r"__nvJitLink|nvJitLink|cublas|cusparse|cusolver|cufft|curand|cudnn|nvrtc[A-Z]|cuda[A-Z]|__cuda|cupti|nvshmem")),
    ("driver", lazy_pattern(r"cu[A-Z]|nvml[A-Z]")),
    ("python", lazy_pattern(r"_?Py[A-Z_]|_Py_|PyInit_")),
    ("torch", lazy_pattern(r"THP|THC|aoti_torch_|torch_[a-z]")),
    ("llama.cpp", lazy_pattern(r"llama_|ggml_|gguf_")),
)  # fmt: skip


class Undefined(msgspec.Struct, frozen=True):
    """An undefined symbol read from a line.

    ``owner``: ``torch``, ``standard`` (the C++ run time), ``nccl``, ``cuda`` (libraries of the toolkit), ``driver``,
    ``python``, ``own`` (the binary's own namespace: two halves of one project), ``other``, or ``unnamed`` when the
    report does not quote the symbol. ``readable`` is its name as a person writes it.
    """

    match: Match
    binary: str | None
    symbol: str
    readable: str
    owner: str
    name: CppName | None = None
    provider: str | None = None


def undefined_symbols(case: Case) -> tuple[Undefined, ...]:
    """All undefined symbols of the incident, the most telling first: those that are quoted before those that are not."""
    found = [_read(match) for match in case.all(UNDEFINED.name) if not match.is_code]
    return tuple(sorted(found, key=lambda each: each.owner == "unnamed"))


def _read(match: Match) -> Undefined:
    symbol = match.group("symbol") or match.group("symbol2") or ""
    binary = match.group("binary") or match.group("binary2")
    symbol = symbol.rstrip(".").partition("@")[0]
    is_name = symbol.startswith("_") or any(c.isupper() or c == "_" or c.isdigit() for c in symbol)
    if not symbol or not is_name:
        told = re.search(r"(?i)torch|c10", match.text)
        return Undefined(match, binary, "", "(not quoted)", "torch" if told else "unnamed")
    cpp = demangle(symbol)
    if cpp is not None:
        return Undefined(match, binary, symbol, cpp.text, _owner_of(cpp, symbol, binary), cpp, match.group("provider"))
    provider = match.group("provider") or match.group("provider2")
    return Undefined(match, binary, symbol, symbol, _owner_in_c(symbol), None, provider)


def _owner_of(cpp: CppName, symbol: str, binary: str | None) -> str:
    if cpp.root in _TORCH_ROOTS:
        return "torch"
    if cpp.root in _STANDARD_ROOTS:
        return "standard"
    if cpp.root.startswith("nccl"):
        return "nccl"
    own = components.component_of_module(binary) if binary else None
    if own is not None and components.canonical(cpp.root) == own:
        return "own"
    # a function of no known library whose parameters are torch's: the other half of the extension
    return "own" if len(cpp.scopes) > 1 or re.search(r"\dat6Tensor|3c10", symbol) else "other"


def _owner_in_c(symbol: str) -> str:
    for owner, pattern in _C_OWNERS:
        if pattern.match(symbol):
            return owner if owner != "llama.cpp" else "own"
    return "other"


def owner_by_name(undefined: Undefined) -> str | None:
    """The component that alone has symbols of this name: by its namespace, or by the prefix of C functions."""
    if undefined.name is not None and undefined.name.root:
        return "torch" if undefined.owner == "torch" else components.canonical(undefined.name.root)
    return next((component for component, pattern in _PREFIXES if pattern.match(undefined.symbol)), None)


_PREFIXES = (
    ("nvshmem", lazy_pattern(r"nvshmemi?_|nvshmemx_")),
    ("llama.cpp", lazy_pattern(r"ggml_|gguf_")),
    ("torch", lazy_pattern(r"THP[A-Z]|aoti_torch_")),
)
"""CUDA's and Python's own functions say nothing of who calls them."""
