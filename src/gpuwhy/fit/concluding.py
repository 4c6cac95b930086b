"""From the checks of an estimate to its verdict."""

from __future__ import annotations

import msgspec

from gpuwhy.fit.amount import Amount
from gpuwhy.fit.constraints import broken
from gpuwhy.fit.ground import Ground
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.host_memory import host_estimate
from gpuwhy.fit.results import Cache, Check, Estimate, Fraction, Host, Part, Verdict
from gpuwhy.knowledge.engine_memory import Reading

_UNREAD_SHARE = 0.02
"""Of the GPU: what the rules of a release without neighbours may differ by. assumed"""
_OTHER_KERNELS_SHARE = 0.06
"""Of a GPU of AMD: its kernels, work spaces and communicators were not read. assumed; aiter's largest buffer is known"""
_UNCOUNTED_SHARE = 0.05
"""Of the GPU: room in which what a flag brings is taken to fit, where it is not counted. assumed"""
LARGE_HOST_GB = 512
"""A host whose memory is not given is taken to have that much."""
_SUPERCHIP_GB = 240
"""Of the host's memory for each GPU of a GB200 or GB300: 480 GB belong to a processor with two of them. unchecked"""
_INSTINCT_GB = 128
"""The same at least on hosts with eight Instincts. unchecked"""
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ..."


def weights_check(margin: Amount, says: str) -> Check:
    """The check that both engines make by allocating."""
    return Check(phase="weights", outcome="oom-weights", margin=margin, says=says, message=OUT_OF_MEMORY)


def share_of(amount: Amount, of: Amount) -> Amount:
    """The amount as a share of another, from 0 to 1."""
    base = of.expected if of.expected > 0 else 1.0
    return Amount(*(min(1.0, max(0.0, each / base)) for each in (amount.low, amount.expected, amount.high)))


def concluded(ground: Ground, parts: list[Part], checks: list[Check], fraction: Fraction, cache: Cache, reading: Reading, in_threads: bool, swap_gib: float) -> Estimate:  # fmt: skip
    settings, hardware = ground.settings, ground.hardware
    host = host_estimate(ground.model, settings, hardware, ground.draft, cache.gib.expected, in_threads, swap_gib)
    checks = [_widened(check, ground.total.expected * _unknown_share(check, hardware, reading)) for check in checks]
    verdict, decisive = _verdict(checks)
    reason = _reason(verdict, decisive, cache)
    refused = broken(ground.shape, settings, hardware)
    if settings.gpus > hardware.gpus * settings.nodes:
        verdict, decisive = Verdict.FAILS, None
        reason = f"the settings ask for {settings.gpus} GPUs, {hardware.gpus * settings.nodes} are there"
    elif refused:
        verdict, decisive = Verdict.FAILS, None
        reason = f"{refused[0].flag}: {refused[0].says}"
    elif not ground.model.inventory.groups or not ground.held.expected:
        verdict, decisive = Verdict.CLOSE, None
        reason = "the weights are not known: nothing can be said of what they leave"
    elif verdict is Verdict.STARTS and not (
        ground.shape.is_complete and (cache.bytes_per_token or ground.shape.is_encoder)
    ):
        verdict, decisive = Verdict.CLOSE, None
        reason = "what is known of it would fit, but config.json lacks a part of what it would take"
    elif verdict is Verdict.STARTS and (doubt := _doubt(ground, checks, reading)):
        verdict, decisive = Verdict.CLOSE, None
        reason = f"by the rules that are known it would fit ({reason}), but {doubt}"
    elif verdict is Verdict.STARTS:
        verdict, reason = _with_host(
            reason, host, hardware, min(settings.gpus, hardware.gpus) // max(1, settings.nodes)
        )
        decisive = decisive if verdict is Verdict.STARTS else None
    return Estimate(
        verdict=verdict,
        reason=reason,
        decisive=decisive,
        model=ground.model.name,
        engine=settings.engine,
        version=settings.version,
        release=reading.sentence,
        is_release_read=reading.is_read,
        gpu=hardware.gpu.name,
        gpus=hardware.gpus,
        gpus_needed=settings.gpus,
        total_gib=ground.total,
        parts=tuple(parts),
        checks=tuple(checks),
        constraints=refused,
        fraction=fraction,
        cache=cache,
        host=host,
        missing=tuple(dict.fromkeys(ground.missing)),
    )


def _doubt(ground: Ground, checks: list[Check], reading: Reading) -> str:
    """Why no start is promised although the arithmetic says so: what it is based on was not read for this case."""
    if ground.hardware.is_of_another_vendor and not ground.hardware.is_of_amd:
        return "how the engines use accelerators that are neither NVIDIA's nor AMD's was not read"
    narrowest = min((check.margin.low for check in checks), default=0.0)
    if ground.hardware.is_of_amd and (reading.is_outside or reading.is_budget_only) and ground.shape.quantization.is_quantized and narrowest < ground.held.expected:  # fmt: skip
        # measured: 166.6 GiB instead of 91.3
        return "a build that was not read may keep the weights twice on a GPU of AMD: as they were and in its number format"
    if ground.settings.uncounted and narrowest < ground.total.expected * _UNCOUNTED_SHARE:
        return ground.settings.uncounted[0]
    return ""


def _unknown_share(check: Check, hardware: Hardware, reading: Reading) -> float:
    """Of the GPU: how much more than the parts say the margin may be off. A large margin survives it."""
    share = _UNREAD_SHARE if reading.is_outside else 0.0
    if hardware.is_of_amd:
        share += _UNREAD_SHARE if check.phase == "start" else _OTHER_KERNELS_SHARE
    return share


def _widened(check: Check, by: float) -> Check:
    if not by:
        return check
    margin = check.margin
    return msgspec.structs.replace(check, margin=Amount(margin.low - by, margin.expected, margin.high + by))


def _verdict(checks: list[Check]) -> tuple[Verdict, Check | None]:
    """The first check that fails for certain; else the first that may; else the narrowest."""
    for wanted in (Verdict.FAILS, Verdict.CLOSE):
        found = next((check for check in checks if check.verdict is wanted), None)
        if found:
            return wanted, found
    return Verdict.STARTS, min(checks, key=lambda check: check.margin.low)


def _with_host(reason: str, host: Host, hardware: Hardware, gpus_of_host: int) -> tuple[Verdict, str]:
    """What the GPUs let start, the host may still kill while it loads."""
    if hardware.host_gib is not None:
        risk = host.risks[0]
        # compilers come and go: they are a risk that the report names, not a verdict
        is_loading = host.unreclaimable_gb.high > risk.host_gb
        return (risk.verdict, f"the host: {risk.says}") if is_loading else (Verdict.STARTS, reason)
    is_superchip = hardware.gpu.name.upper().startswith(("NVIDIA GB200", "NVIDIA GB300"))
    each = _SUPERCHIP_GB if is_superchip else _INSTINCT_GB if hardware.is_of_amd else 0
    usual = max(LARGE_HOST_GB, each * gpus_of_host)
    if host.unreclaimable_gb.high > usual:
        low, high = host.unreclaimable_gb.low, host.unreclaimable_gb.high
        return Verdict.CLOSE, f"the GPUs hold it, but loading needs {low:.0f} to {high:.0f} GB of the host, whose memory is not given"  # fmt: skip
    return Verdict.STARTS, reason


def _reason(verdict: Verdict, check: Check | None, cache: Cache) -> str:
    if check is None:
        return ""
    margin = check.margin
    if verdict is Verdict.STARTS:
        kept = f"{cache.tokens.expected:,.0f} tokens of cache" if cache.bytes_per_token else "no cache is kept"
        return f"{kept}; the narrowest margin is {margin.expected:.2f} GiB ({check.phase})"  # fmt: skip
    if verdict is Verdict.FAILS:
        return f"{-margin.expected:.2f} GiB too little: {check.says}"
    return f"{margin.expected:+.2f} GiB, between {margin.low:+.2f} and {margin.high:+.2f}: {check.says}"
