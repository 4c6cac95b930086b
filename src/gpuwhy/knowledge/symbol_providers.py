"""Whose a symbol is, by its name: the library that defines it, and what brings that library.

C names: the prefixes of NVIDIA's public headers. C++ names: their outermost namespace.
"""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.knowledge import torch_companions, torch_symbols
from gpuwhy.knowledge.mangling import demangle
from gpuwhy.knowledge.shared_libraries import (
    cuda_library,
    is_driver_library,
    is_torch_library,
    parse,
    system_package,
    wheel_for,
)

_TORCH_ROOTS = frozenset({"c10", "at", "torch", "caffe2", "c10d"})
_STANDARD_ROOTS = frozenset({"std", "__cxxabiv1", "__gnu_cxx"})
_C_NAMES = (
    ("cuda", ("cublasLt",), re.compile(r"cublasLt[A-Z]")),
    ("cuda", ("cublas",), re.compile(r"cublas[A-Z]")),
    ("cuda", ("cusparseLt",), re.compile(r"cusparseLt[A-Z]")),
    ("cuda", ("cusparse",), re.compile(r"cusparse[A-Z]")),
    ("cuda", ("cusolver", "cusolverMg"), re.compile(r"cusolver[A-Z]")),
    ("cuda", ("cufft",), re.compile(r"cufft[A-Z]")),
    ("cuda", ("curand",), re.compile(r"curand[A-Z]")),
    ("cuda", ("cudnn", "cudnn_graph", "cudnn_ops", "cudnn_cnn", "cudnn_adv"), re.compile(r"cudnn[A-Z]")),
    ("cuda", ("nvrtc",), re.compile(r"nvrtc[A-Z]")),
    ("cuda", ("nvJitLink",), re.compile(r"_{0,2}nvJitLink")),
    ("cuda", ("nvshmem_host",), re.compile(r"nvshmem")),
    ("cuda", ("cupti",), re.compile(r"cupti[A-Z]")),
    ("cuda", ("cufile",), re.compile(r"cuFile[A-Z]")),
    ("cuda", ("cudart",), re.compile(r"cuda[A-Z]|__cuda[A-Z]")),
    ("nccl", ("nccl",), re.compile(r"p?nccl[A-Z]")),
    ("driver", ("nvidia-ml",), re.compile(r"nvml[A-Z]")),
    ("driver", ("cuda",), re.compile(r"cu[A-Z]")),
    ("python", (), re.compile(r"_?Py[A-Z_]|_Py_")),
    ("torch", ("torch_python",), re.compile(r"THP[A-Z]")),
    ("torch", ("torch_cpu", "torch_cuda", "torch"), re.compile(r"aoti_torch_|torch_[a-z]")),
)


class Provider(Struct, frozen=True):
    """``owner`` as in :class:`gpuwhy.model.loading.UndefinedSymbol`; ``stems`` of the libraries that can define it."""

    owner: str
    readable: str
    stems: tuple[str, ...] = ()


def provider_of(symbol: str) -> Provider:
    """Whose a symbol is, as far as its name tells."""
    cpp = demangle(symbol)
    if cpp is None:
        for owner, stems, pattern in _C_NAMES:
            if pattern.match(symbol):
                return Provider(owner, symbol, stems)
        return Provider("other", symbol)
    if cpp.root in _TORCH_ROOTS:
        return Provider("torch", cpp.text, _torch_stems(cpp.scopes))
    if cpp.root in _STANDARD_ROOTS:
        return Provider("standard", cpp.text, ("stdc++",))
    return Provider("nccl" if cpp.root.startswith("nccl") else "other", cpp.text)


def _torch_stems(scopes: tuple[str, ...]) -> tuple[str, ...]:
    if scopes[:2] == ("c10", "cuda"):
        return ("c10_cuda",)
    return ("c10",) if scopes[0] == "c10" else ("torch", "torch_cpu", "torch_cuda", "torch_python")


def provided_by(symbol: str, torch: str = "", requires_torch: str = "") -> str:
    """The package and the releases that define a symbol, in words; ``""`` when that is not known.

    ``torch`` is the installed release, ``requires_torch`` what the package of the caller asks for.
    """
    provider = provider_of(symbol)
    if provider.owner == "torch":
        return _torch(symbol, torch, requires_torch)
    if provider.owner == "python":
        return "the interpreter for which the file was compiled"
    if provider.owner == "standard":
        return "libstdc++ of a newer GCC (libstdc++6, libstdcxx-ng)"
    return brought_by(f"lib{provider.stems[0]}.so") if provider.stems else ""


def _torch(symbol: str, torch: str, requires_torch: str) -> str:
    known = torch_symbols.defined_in(symbol)
    asked = f"; the package asks for {requires_torch}" if requires_torch else ""
    if known is not None:
        return f"{known.library} of torch {known.text}{asked}"
    cpp = demangle(symbol)
    if cpp is not None and cpp.old_strings != cpp.new_strings:
        kind = "the string type of before C++11 (2.5 and earlier)" if cpp.old_strings else "the string type of C++11 (2.7 and later)"  # fmt: skip
        has_new = torch_companions.has_new_string_abi(torch) if torch else None
        if has_new is None or has_new != cpp.new_strings:
            return f"a torch compiled with {kind}{asked}"
    return f"another release of torch{asked}"


def brought_by(library: str, cuda_major: int | None = None) -> str:
    """What brings a library of that file name, in words; ``""`` when that is not known."""
    parsed = parse(library)
    if parsed is None:
        return ""
    if is_driver_library(parsed):
        return "the NVIDIA driver"
    if is_torch_library(parsed):
        return "torch"
    cuda = cuda_library(parsed)
    if cuda is not None:
        major = cuda_major or (cuda.cuda_majors[-1] if cuda.cuda_majors else None)
        release = f" of CUDA {' or '.join(map(str, cuda.cuda_majors))}" if cuda.cuda_majors else ""
        return f"{wheel_for(cuda, major) if major else cuda.wheel}{release}"
    package = system_package(parsed.stem)
    return f"{package.debian} (Debian, Ubuntu)" + (f" or {package.fedora} (Fedora, RHEL)" if package.fedora else "") if package else ""  # fmt: skip
