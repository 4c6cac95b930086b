"""Lines without a complaint that decide nevertheless: what was set, how memory was divided, what was begun last.

worker-3:1958:1958 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2
INFO 02-26 09:54:05 worker.py:267] model weights take 5.20GiB; ...; the rest of the memory reserved for KV Cache is -1.05GiB.
[2025-08-28 21:09:10 DP0 TP0 EP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time
INFO - flashinfer.jit: Fetching cubin 2905357454bd2441/fmha/trtllm-gen/... from https://...

They are never fatal and never a failure by themselves; an error that follows can point to them.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "SOCKET_IFNAME set", "no socket interface found", "reserved for KV Cache is -", "Available KV cache memory: -", "JIT Pre-Compile session",
    "Fetching cubin", " from library /",
)  # fmt: skip
_PATTERNS: tuple[tuple[str, Pattern], ...] = (
    ("nccl", Pattern(r"no socket interface found")),
    ("network", Pattern(r"(?:NCCL|GLOO)_SOCKET_IFNAME set (?:by environment )?to \S")),
    ("memory", Pattern(r"(?:memory reserved for KV Cache is|Available KV cache memory:) -\d")),
    ("compile", Pattern(r"Entering DeepGEMM JIT Pre-Compile session")),
    ("download", Pattern(r"Fetching cubin \S")),
    ("library", Pattern(r"(?:Loading|Found) \w{1,40} from library /\S{0,200}/\.(?:config|cache)/")),
)
LONGEST = 2000


def recognise(text: str) -> Recognised | None:
    shown = text[:LONGEST]
    for tool, pattern in _PATTERNS:
        if pattern.search(shown) is not None:
            return Recognised("warning", tool, {"level": "info"})
    return None
