"""An estimate as reports chart it: where the memory of one GPU goes, and that of the host while the model loads."""

from __future__ import annotations

from gpuwhy.fit.amount import Amount
from gpuwhy.fit.results import Estimate, Host, Part, Verdict
from gpuwhy.model.memory_use import MemoryPart, MemoryUse

_COMES_TO = {Verdict.STARTS: "it starts", Verdict.FAILS: "it fails", Verdict.CLOSE: "too close to call"}


def gpu_use(found: Estimate, title: str = "One GPU") -> MemoryUse:
    """One GPU, the fullest, in the parts of the estimate."""
    return MemoryUse(
        place="gpu",
        basis="computed",
        title=title,
        unit="GiB",
        parts=tuple(
            _part(_name(each), each.kind, each.gib, each.source)
            for each in found.parts
        ),
        total=found.total_gib.expected,
        total_within=max(0.0, found.total_gib.high - found.total_gib.expected),
        says=(f"As computed {_COMES_TO[found.verdict]}: {found.reason}", *(_refusals(found) or (*_fraction(found), *_cache(found)))),
        missing=found.missing,
    )  # fmt: skip


def host_use(found: Estimate, title: str = "The host while loading") -> MemoryUse:
    """The host. Pages of files that are read through mmap can be taken back."""
    host = found.host
    # of a host whose memory is not known several usual ones are judged
    known = host.risks[0].host_gb if len(host.risks) == 1 else None
    parts = [_part(each.name, "unreclaimable", each.gib, each.source) for each in host.parts]
    parts.append(_part("files in the page cache", "page-cache", Amount.exact(host.page_cache_gb), "the checkpoint, once for all ranks; the kernel takes it back under pressure"))  # fmt: skip
    if host.compile_gb.high > 0:
        parts.append(_part("compilers at warm-up", "compilers", host.compile_gb, "a compiler per core, after the weights are loaded"))  # fmt: skip
    return MemoryUse(
        place="host",
        basis="computed",
        title=title,
        unit="GB",
        parts=tuple(parts),
        total=known,
        says=(
            _held(host),
            *(f"{each.host_gb:,.0f} GB: {each.says}" for each in host.risks),
        ),
        missing=found.missing,
    )


def _held(host: Host) -> str:
    size = host.unreclaimable_gb
    return f"{size.expected:.0f} ({size.low:.0f} to {size.high:.0f}) GB that the kernel cannot take back, with {host.shared_memory_gb:.1f} in /dev/shm"


def _name(part: Part) -> str:
    """With what weights are divided by."""
    return f"{part.name}, {part.detail.replace('/ ', 'divided by ')}" if part.detail else part.name


def _part(name: str, kind: str, amount: Amount, source: str) -> MemoryPart:
    return MemoryPart(name=name, kind=kind, low=amount.low, expected=amount.expected, high=amount.high, source=source)


def _refusals(found: Estimate) -> tuple[str, ...]:
    """With them no fraction starts, and no cache is made."""
    said = [f"{each.flag}: {each.says}" for each in found.constraints]
    return tuple(each if each != found.reason else f"so much each GPU would take if {each.partition(':')[0]} were allowed" for each in said)  # fmt: skip


def _fraction(found: Estimate) -> tuple[str, ...]:
    said = found.fraction
    if said.minimum is None or said.maximum is None:
        return ()
    low, high = said.minimum, said.maximum
    if low.expected > high.expected:
        return (f"{said.name} {said.value:.4g}: no value does, the least is {low.expected:.3f}, the most {high.expected:.3f}",)  # fmt: skip
    return (f"{said.name} {said.value:.4g}: between {low.expected:.3f} ({low.low:.3f} to {low.high:.3f}) and {high.expected:.3f} ({high.low:.3f} to {high.high:.3f}) it starts",)  # fmt: skip


def _cache(found: Estimate) -> tuple[str, ...]:
    cache = found.cache
    if not cache.bytes_per_token or cache.tokens.expected <= 0:
        return ()
    longest = f"; the longest request {min(cache.longest.expected, cache.context):,.0f} of {cache.context:,}, {cache.concurrency.expected:.2f} of full length at a time" if cache.context else ""  # fmt: skip
    return (f"the cache holds {cache.tokens.expected:,.0f} tokens ({cache.tokens.low:,.0f} to {cache.tokens.high:,.0f}){longest}",)  # fmt: skip
