"""The parallel sizes a server was given, and which sizes divide a model."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes.distributed._log_lines import matching
from gpuwhy.model.evidence import Evidence

_TENSOR = lazy_pattern(
    r"(?:tensor[-_]parallel[-_]size|tensor[-_]model[-_]parallel[-_]size|--tp[-_]size|\btp[-_]size|--tp|-tp|--num-shard|num_shards?|--tensor-parallel|mp_size)[\"']?\s{0,2}[=: ]\s{0,2}[\"']?(?P<size>\d{1,4})\b"
)
_PIPELINE = lazy_pattern(r"(?:pipeline[-_]parallel[-_]size|--pp[-_]size|\bpp[-_]size|--pp|-pp)[\"']?\s{0,2}[=: ]\s{0,2}[\"']?(?P<size>\d{1,4})\b")  # fmt: skip
_SERVER = lazy_pattern(
    r"vllm serve|vllm\.entrypoints|sglang\.launch_server|sglang serve|lmdeploy serve|text-generation-launcher"
)
_STATED = ("server_args.tensor_parallel_size", "server_args.tp_size", "server_args.num_shard")
FLAGS = {
    "vllm": ("--tensor-parallel-size", "--pipeline-parallel-size", "--enable-expert-parallel"),
    "sglang": ("--tp-size", "--pp-size", "--ep-size"),
    "tensorrt-llm": ("--tp_size", "--pp_size", "--ep_size"),
    "text-generation-inference": ("--num-shard", "", ""),
    "lmdeploy": ("--tp", "", "--ep"),
}
"""Tensor-, pipeline- and expert-parallel options by engine."""
MOST = 4096


class Size(msgspec.Struct, frozen=True):
    """A parallel size with what shows it; ``at_least`` when only the highest rank is known."""

    value: int
    evidence: Evidence | None
    at_least: bool = False


def tensor(case: Case) -> Size | None:
    """The tensor-parallel size: from what the engine echoed, the command, the log, else the highest rank named."""
    for key in _STATED:
        value = case.facts.value(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST:
            return Size(value, case.fact_evidence(key, f"the tensor-parallel size is {value}"))
    command = case.facts.value("command")
    found = _TENSOR.search(str(command)[:8000]) if command else None
    if found is not None:
        return Size(int(found["size"]), case.fact_evidence("command", f"the tensor-parallel size is {found['size']}"))
    for seen in matching(case, _TENSOR, ("arallel", "tp", "shard", "mp_size")):
        if 0 < int(seen.groups["size"]) <= MOST:
            return Size(int(seen.groups["size"]), seen.evidence(f"the tensor-parallel size is {seen.groups['size']}"))
    processes = [line.process for log in case.incident.logs for line in log.lines if line.process is not None]
    default = _default(case, str(command or ""))
    if default is not None and not any("TP" in process.name for process in processes):
        return default  # a rank that is not said to be tensor-parallel may be one of another kind
    highest = max((process.rank for process in processes if process.rank is not None), default=-1)
    return Size(highest + 1, None, at_least=True) if highest > 0 else default


def _default(case: Case, command: str) -> Size | None:
    """A whole start command without the option: engines then use one GPU."""
    shown = case.fact_evidence("command", "the command names no parallel size: one GPU")
    if shown is None or not _SERVER.search(command) or shown.quote.rstrip().endswith(("\\", "...")):
        return None
    return Size(1, shown)


def is_piped(case: Case) -> bool:
    """Whether a pipeline-parallel size above one was given."""
    command = _PIPELINE.search(str(case.facts.value("command") or "")[:8000])
    return command is not None and int(command["size"]) > 1


def dividing(below: int, *units: int) -> int | None:
    """The largest power of two below ``below`` that divides every unit; else the largest divisor; None when only 1."""
    sizes = [size for size in range(below - 1, 1, -1) if all(unit % size == 0 for unit in units)]
    return next((size for size in sizes if size & (size - 1) == 0), sizes[0] if sizes else None)
