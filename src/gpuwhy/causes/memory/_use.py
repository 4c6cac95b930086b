"""Where the memory went, for the report: as the calculator divides it where the model is known, else by figures of the log."""

from __future__ import annotations

import msgspec

from gpuwhy.causes._case import Case
from gpuwhy.causes.memory import _estimated as estimates
from gpuwhy.causes.memory._allocation import Allocation, gib
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.model.memory_use import MemoryPart, MemoryUse

GIB = 1 << 30
_SAID = "as the log says"


def gpu_uses(
    case: Case,
    engine: str,
    budget: Budget,
    total: int | None,
    *,
    fraction: float | None = None,
    allocation: Allocation | None = None,
    taken: int | None = None,
) -> tuple[MemoryUse, ...]:
    """One GPU of the start, and what it held when the allocation failed; nothing where neither is known.

    Sizes in bytes. ``taken``: what other processes held at the start.
    """
    start = _computed(case, engine, budget, total, fraction, taken) or _logged(budget, total, fraction, taken)
    failed = _at_failure(allocation) if allocation is not None else None
    return tuple(each for each in (start, failed) if each is not None)


def host_uses(case: Case, engine: str, size: int | None) -> tuple[MemoryUse, ...]:
    """The host of ``size`` bytes while the model loads; nothing where the model is not known."""
    found = estimates.estimate_for_host(case, engine, size)
    if found is None:
        return ()
    from gpuwhy.fit.memory_use import host_use

    return (host_use(found, "The host while this model loads, as computed"),)


def _computed(
    case: Case, engine: str, budget: Budget, total: int | None, fraction: float | None, taken: int | None
) -> MemoryUse | None:
    found = estimates.estimate_of(case, engine, budget, total, fraction, taken)
    if found is None:
        return None
    from gpuwhy.fit.memory_use import gpu_use

    is_told = any(size is not None for size in (budget.before, budget.weights, budget.activation, budget.outside))
    use = gpu_use(found, "One GPU of this start, as computed" + (" with the figures of the log" if is_told else ""))
    if total is not None:
        return use
    return msgspec.structs.replace(use, missing=("the size of the GPU: what was free before loading and 1 GiB were taken", *use.missing))  # fmt: skip


def _logged(budget: Budget, total: int | None, fraction: float | None, taken: int | None) -> MemoryUse | None:
    """By the engine's own lines alone."""
    if budget.before and budget.after is not None and budget.after < budget.before:
        return _of_sglang(budget, budget.before, budget.after, total)
    if total and budget.weights is not None and budget.activation is not None:
        return _of_vllm(budget, total, fraction)
    if total and taken:
        return _use("One GPU before the start, by the log", total, [_part("in use before the start", "taken", taken)], (f"{gib(total - taken)} were free",))  # fmt: skip
    return None


def _of_sglang(budget: Budget, before: int, after: int, total: int | None) -> MemoryUse:
    """``Load weight begin`` and ``end``, and what the pool left beside itself."""
    parts = [_part("context, communicators, others", "before", total - before)] if total and total > before else []
    parts.append(_part("weights", "weights", before - after))
    says = [f"the least fraction is {budget.smallest_static_fraction:.4g}" if budget.least is not None else f"the least fraction is 1 - {after / GIB:.2f}/{before / GIB:.2f} = {1 - after / before:.4f}"]  # fmt: skip
    if budget.beside is not None and budget.beside <= after:
        parts.append(_part("KV cache", "kv-cache", after - budget.beside))
        says.append(f"the fraction that was used: {1 - budget.beside / before:.3f}")
    title = "One GPU by the log" if total and total > before else "What was free of one GPU before loading, by the log"
    return _use(title, max(total or 0, before), parts, tuple(says))


def _of_vllm(budget: Budget, total: int, fraction: float | None) -> MemoryUse:
    """The lines of its memory profiling."""
    told = (("weights", "weights", budget.weights), ("activation peak", "activation", budget.activation), ("what is not PyTorch's", "own", budget.outside))  # fmt: skip
    parts = [_part(name, kind, size) for name, kind, size in told if size is not None]
    used = sum(size for *_, size in told if size is not None)
    rest = budget.available if budget.available is not None else int(total * fraction) - used if fraction else None
    says: tuple[str, ...] = ()
    if rest is not None:
        parts.append(_part("KV cache", "kv-cache", max(0, rest)))
        says = (f"{gib(rest)} were left for the cache" + (f"; one request of the full length needs {gib(budget.needed)}" if budget.needed else ""),)  # fmt: skip
    if fraction and 0 < fraction < 1:
        parts.append(_part(f"beyond the fraction of {fraction:g}", "reserve", int(total * (1 - fraction))))
    return _use("One GPU by the log", total, parts, says)


def _at_failure(allocation: Allocation) -> MemoryUse | None:
    """What the message of PyTorch says of the GPU."""
    total, free, reserved = allocation.total, allocation.free, allocation.reserved
    if not total or free is None or reserved is None or not 0 <= free <= total or reserved > total - free:
        return None
    used = total - free
    own = allocation.own if allocation.own is not None and reserved <= allocation.own <= used else None
    idle = min(allocation.idle or 0, reserved)
    parts = [_part("other processes", "taken", used - own)] if own is not None and own < used else []
    parts.append(_part("tensors of PyTorch", "torch", reserved - idle))
    if idle:
        parts.append(_part("reserved by PyTorch, not in use", "idle", idle))
    name = "rest of the process: CUDA context, libraries" if own is not None else "CUDA context, libraries, or other processes"  # fmt: skip
    parts.append(_part(name, "own", (own if own is not None else used) - reserved))
    device = f"GPU {allocation.device}" if allocation.device is not None else "The GPU"
    says = (f"{gib(allocation.asked)} were asked for, {gib(free)} were free",) if allocation.asked else ()
    return _use(f"{device} when the allocation failed, by its message", total, parts, says)


def _use(title: str, total: int, parts: list[MemoryPart], says: tuple[str, ...]) -> MemoryUse:
    return MemoryUse(
        place="gpu", basis="log", title=title, unit="GiB", parts=tuple(parts), total=total / GIB, says=says
    )


def _part(name: str, kind: str, size: int) -> MemoryPart:
    return MemoryPart(name=name, kind=kind, low=size / GIB, expected=size / GIB, high=size / GIB, source=_SAID)
