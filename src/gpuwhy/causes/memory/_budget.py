"""What engines print about their memory budget: what the weights took, what the cache needs, what is left for it."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._signs import Sign, says
from gpuwhy.model.gpu_memory import size_of

_SIZE = r"(-?\d{1,9}(?:\.\d{1,4})?) ?([KMGT]i?B)"
_BEGIN = lazy_pattern(r"Load weight begin\b.{0,40}?avail mem=(\d{1,6}\.\d{1,3}) GB")
_END = lazy_pattern(r"Load weight end\b.{0,300}?avail mem=(\d{1,6}\.\d{1,3}) GB")
_POOL_END = lazy_pattern(r"Memory pool end\b.{0,40}?avail mem=(\d{1,6}\.\d{1,3}) GB")
_REST = lazy_pattern(
    rf"reserved for KV Cache is {_SIZE}|Available KV cache memory: {_SIZE}|KV cache memory \({_SIZE}\)"
)
_V0 = lazy_pattern(
    rf"model weights take {_SIZE}; non_torch_memory takes {_SIZE}; PyTorch activation peak memory takes {_SIZE}"
)
_V0_RESULTS = lazy_pattern(
    rf"total_gpu_memory={_SIZE}.{{0,120}}?peak_torch_memory={_SIZE}.{{0,120}}?non_torch_memory={_SIZE}.{{0,40}}?kv_cache_size={_SIZE}"
)
_V0_TOTAL = lazy_pattern(rf"total_gpu_memory \({_SIZE}\) x gpu_memory_utilization \((\d\.\d{{1,4}})\)")
_STARTUP = lazy_pattern(rf"Free memory on device .{{0,40}}?\(([\d.]{{1,9}})/{_SIZE}\) on startup")
_USAGE = lazy_pattern(rf"Actual usage is {_SIZE} for weight, {_SIZE} for peak activation, {_SIZE} for non-torch")
_CONSUMED = lazy_pattern(rf"Actual usage is {_SIZE} for consumed memory.{{0,60}}?, {_SIZE} for peak activation")
_MODEL_TOOK = lazy_pattern(rf"(?:Model loading|Loading model weights) took {_SIZE}")
_NEEDED = lazy_pattern(rf"\(?{_SIZE} KV cache is needed")
_FITS = lazy_pattern(r"estimated maximum model length is (\d{1,9})|stored in KV cache \((\d{1,9})\)|max(?:imum)? number of tokens that can be stored .{0,40}?\((\d{1,9})\)")  # fmt: skip
_LENGTH = lazy_pattern(r"max seq len \((\d{1,9})\)")
_LEAST = lazy_pattern(r"minimum viable = .{0,80}?= ?(0?\.\d{1,6})|--mem-fraction-static above (0?\.\d{1,6})")

SIGNS: tuple[Sign, ...] = (
    says("load-begin", "load weight begin", _BEGIN.pattern),
    says("load-end", "load weight end", _END.pattern),
    says("pool-end", "memory pool end", _POOL_END.pattern),
    says("v0-budget", ("model weights take", "total_gpu_memory ("), rf"{_V0.pattern}|{_V0_TOTAL.pattern}"),
    says("v0-results", "peak_torch_memory=", _V0_RESULTS.pattern),
    says("v1-usage", "actual usage is", rf"{_USAGE.pattern}|{_CONSUMED.pattern}"),
    says("cache-rest", ("reserved for kv cache is", "available kv cache memory: "), _REST.pattern),
    says("model-took", ("model loading took", "loading model weights took"), _MODEL_TOOK.pattern),
    says("startup-free", "on startup", _STARTUP.pattern),
)
"""Lines with figures. None of them tells of a failure."""


class Budget(Struct, frozen=True):
    """Figures of one start, in bytes, None where they were not printed. ``fits``, ``length``: tokens of context.

    ``before`` and ``after``: SGLang's free memory before and after the weights were loaded, ``beside`` what the pool
    left. ``least``: the fraction that SGLang says is the smallest. ``total``: the card. ``taken``: all but the cache, where
    only the sum is printed. ``used``: weights, activation and what is not torch's.
    """

    needed: int | None = None
    available: int | None = None
    fits: int | None = None
    length: int | None = None
    before: int | None = None
    after: int | None = None
    beside: int | None = None
    least: float | None = None
    total: int | None = None
    weights: int | None = None
    activation: int | None = None
    outside: int | None = None
    taken: int | None = None

    @property
    def smallest_static_fraction(self) -> float | None:
        """SGLang: below this fraction the weights leave nothing. The engine's own word, else 1 - after/before."""
        if self.least is not None:
            return self.least
        if self.before and self.after is not None and self.after < self.before:
            return 1 - self.after / self.before
        return None

    @property
    def static_fraction(self) -> float | None:
        """SGLang: the fraction that the start used. Its pool leaves before x (1 - fraction) free, whatever the weights take."""
        if self.before and self.beside is not None and self.beside < self.before:
            return 1 - self.beside / self.before
        return None

    @property
    def used(self) -> int | None:
        if self.taken is not None:
            return self.taken
        known = [size for size in (self.weights, self.activation, self.outside) if size is not None]
        return sum(known) if self.weights is not None and self.activation is not None else None

    def card_at_least(self, fraction: float | None) -> int | None:
        """vLLM: the budget is fraction x card, and weights and cache are a part of it."""
        if not fraction or self.weights is None or self.available is None:
            return None
        return int((self.weights + self.available) / fraction)


def read_budget(case: Case, message: str = "") -> Budget:
    """The figures of the log; ``message`` is the text of the failure, whose own figures win."""
    v0 = next((f for m in case.all("v0-budget") if (f := _V0.search(m.text))), None)
    v0_total = next((f for m in case.all("v0-budget") if (f := _V0_TOTAL.search(m.text))), None)
    results = _last(case, "v0-results", _V0_RESULTS)
    usage, consumed = _last(case, "v1-usage", _USAGE), _last(case, "v1-usage", _CONSUMED)
    startup = _last(case, "startup-free", _STARTUP) or _STARTUP.search(message)
    before, after, beside = _loads(case)
    took = _last(case, "model-took", _MODEL_TOOK, first=True)
    needed, fits, length, least = (p.search(message) for p in (_NEEDED, _FITS, _LENGTH, _LEAST))
    parts = v0 or usage
    available = _size(_REST.search(message) or _last(case, "cache-rest", _REST))
    total = size_of(results[1], results[2]) if results else _size(v0_total)
    if results is not None:
        available = size_of(results[7], results[8])
    return Budget(
        needed=_size(needed) or _in_proportion(available, _number(length), _number(fits)),
        available=available,
        fits=_number(fits),
        length=_number(length),
        before=before,
        after=after,
        beside=beside,
        least=float(next(group for group in least.groups() if group)) if least else None,
        total=total or (size_of(startup[2], startup[3]) if startup else None),
        weights=size_of(parts[1], parts[2]) if parts else _size(took),
        activation=size_of(*(parts.group(5, 6) if v0 else parts.group(3, 4))) if parts else None,
        outside=size_of(*(parts.group(3, 4) if v0 else parts.group(5, 6))) if parts else None,
        taken=_sum_of(results, 3, 5) if results else _sum_of(consumed, 1, 3) if consumed else None,
    )


def _in_proportion(available: int | None, length: int | None, fits: int | None) -> int | None:
    """What a request of the full length takes, where so many bytes hold so many tokens."""
    return available * length // fits if available and available > 0 and length and fits else None


def _sum_of(found: re.Match[str], *first: int) -> int:
    return sum(size_of(found[at], found[at + 1]) for at in first)


def _loads(case: Case) -> tuple[int | None, int | None, int | None]:
    """SGLang's free memory before and after all that was loaded before the pool, and beside the pool: of the fullest rank.

    A draft that is loaded before the pool counts; what a restart prints after the first attempt does not.
    """
    ranks: dict[str, list[tuple[int, str, int]]] = {}
    for sign, pattern in (("load-begin", _BEGIN), ("load-end", _END), ("pool-end", _POOL_END)):
        for match in case.all(sign):
            if found := pattern.search(match.text):
                ranks.setdefault(str(match.line.process), []).append((match.line.number, sign, size_of(found[1], "GiB")))  # fmt: skip
    read = [_loads_of(sorted(lines)) for lines in ranks.values()]
    before, after, beside = (min((each[at] for each in read if each[at] is not None), default=None) for at in range(3))  # type: ignore[type-var]
    return before, after, beside


def _loads_of(lines: list[tuple[int, str, int]]) -> tuple[int | None, int | None, int | None]:
    before = after = beside = None
    for _, sign, free in lines:
        if sign == "pool-end":
            beside = free
            break
        if sign == "load-end":
            after = free
        elif before is None:
            before = free
        elif after is not None and free > (before + after) // 2:
            break  # another start: the memory is free again
    return before, after, beside


def _last(case: Case, sign: str, pattern: re.Pattern[str], *, first: bool = False) -> re.Match[str] | None:
    matches: list[Match] = sorted(case.all(sign), key=lambda match: match.line.number, reverse=not first)
    return next((found for match in matches if (found := pattern.search(match.text))), None)


def _size(found: re.Match[str] | None) -> int | None:
    if found is None:
        return None
    groups = [group for group in found.groups() if group is not None]
    return size_of(groups[0], groups[1])


def _number(found: re.Match[str] | None) -> int | None:
    return None if found is None else next((int(group) for group in found.groups() if group), None)
