"""Variables and options that do one thing under several names, each in other releases.

Kept by hand, from the deprecation messages of the releases in between. Which release has which name is not said here:
the table of :mod:`gpuwhy.knowledge.switches` says that.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Renamed(Struct, frozen=True):
    """One spelling. ``kind`` is ``env`` or ``flag``; ``value`` what a given value becomes."""

    kind: str
    name: str
    value: str


class _Group(Struct, frozen=True):
    """Spellings of one intervention: kind, name, and the value; "" there stands for whatever value is given."""

    package: str
    spellings: tuple[tuple[str, str, str], ...]


_GROUPS = (
    _Group("vllm", (("env", "VLLM_ATTENTION_BACKEND", ""), ("flag", "--attention-backend", ""))),
    _Group("vllm", (("flag", "--disable-log-requests", "set"), ("flag", "--no-enable-log-requests", "set"))),
    _Group("vllm", (("flag", "--cuda-graph-sizes", ""), ("flag", "--cudagraph-capture-sizes", ""))),
    _Group("vllm", (("flag", "--task", ""), ("flag", "--runner", ""))),
    _Group("vllm", (("flag", "--guided-decoding-backend", ""), ("flag", "--structured-outputs-config.backend", ""))),
    _Group("vllm", (("flag", "--disable-mm-preprocessor-cache", "set"), ("flag", "--mm-processor-cache-gb", "0"))),
    _Group("vllm", (("env", "VLLM_ALL2ALL_BACKEND", ""), ("flag", "--all2all-backend", ""))),
    _Group("vllm", (("env", "VLLM_FLASH_ATTN_VERSION", ""), ("flag", "--attention-config.flash_attn_version", ""))),
    _Group("triton", (("env", "TRITON_PTXAS_BLACKWELL_PATH", ""), ("env", "TRITON_PTXAS_PATH", ""))),
    _Group("sglang", (("flag", "--disable-flashinfer-sampling", "set"), ("flag", "--sampling-backend", "pytorch"))),
    _Group("sglang", (("flag", "--disable-flashinfer", "set"), ("flag", "--attention-backend", "triton"))),
    _Group("sglang", (("flag", "--enable-flashinfer-mla", "set"), ("flag", "--attention-backend", "flashinfer"))),
    _Group("sglang", (("flag", "--enable-flashmla", "set"), ("flag", "--attention-backend", "flashmla"))),
    _Group("sglang", (("flag", "--enable-flashinfer-cutlass-moe", "set"), ("flag", "--moe-runner-backend", "flashinfer_cutlass"))),
    _Group("sglang", (("flag", "--disable-piecewise-cuda-graph", "set"), ("flag", "--cuda-graph-backend-prefill", "disabled"))),
    _Group("sglang", (("flag", "--enable-deepep-moe", "set"), ("flag", "--moe-a2a-backend", "deepep"))),
    _Group("sglang", (("flag", "--disable-cuda-graph", "set"), ("flag", "--cuda-graph-backend-decode", "disabled"))),
    _Group("sglang", (("flag", "--cuda-graph-max-bs", ""), ("flag", "--cuda-graph-max-bs-decode", ""))),
    _Group("sglang", (("flag", "--cuda-graph-bs", ""), ("flag", "--cuda-graph-bs-decode", ""))),
)  # fmt: skip
_NO_VALUE = ("", "set")


def groups() -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    """All groups: package, and the spellings with kind, name and fixed value."""
    return tuple((group.package, group.spellings) for group in _GROUPS)


def other_spellings(package: str, name: str, value: str) -> Iterator[Renamed]:
    """What else the variable or option was, or will be, called in other releases of the package.

    >>> next(other_spellings("vllm", "VLLM_ATTENTION_BACKEND", "TRITON_ATTN")).name
    '--attention-backend'
    """
    if package == "sglang" and name.startswith("SGL_"):
        yield Renamed("env", name.replace("SGL_", "SGLANG_", 1), value)
    elif package == "sglang" and name.startswith("SGLANG_"):
        yield Renamed("env", name.replace("SGLANG_", "SGL_", 1), value)
    for group in _GROUPS:
        own = next((fixed for _, spelled, fixed in group.spellings if spelled == name), None)
        if group.package != package or own is None or not _is_that(value, own):
            continue
        for kind, spelled, fixed in group.spellings:
            if spelled != name:
                yield Renamed(kind, spelled, (value if not fixed else "" if fixed == "set" else fixed))


def _is_that(value: str, fixed: str) -> bool:
    """Whether a value of the one spelling is what the group speaks of: any, none, or this one."""
    if fixed == "set":
        return value in _NO_VALUE
    return not fixed or value == fixed
