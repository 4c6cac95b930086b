"""Memory of the host while the weights load: what the kernel cannot take back, and what it can.

Files that are read through mmap lie in the page cache once, whatever the number of ranks, and are given up under
pressure: slow, not deadly. Anonymous, shared and pinned memory is not, and counts against a container's limit.
All in GB of 10^9, as hosts are sold.
"""

from __future__ import annotations

from gpuwhy.fit.amount import GIB, NOTHING, Amount, combined
from gpuwhy.fit.drafts import DraftNeed
from gpuwhy.fit.hardware import Hardware
from gpuwhy.fit.model import Model
from gpuwhy.fit.results import Host, HostRisk, Part, Verdict
from gpuwhy.fit.settings import Settings

_GB = 1e9
_USUAL_SHARD_BYTES = 5e9
_LOADING_THREADS = 8
_USUAL_HOSTS_GB = (256.0, 512.0, 1024.0)
_CORES_ASSUMED = 32


def host_estimate(model: Model, settings: Settings, hardware: Hardware, draft: DraftNeed, pool_gib: float, loads_in_threads: bool, swap_gib: float) -> Host:  # fmt: skip
    """The peak while loading. ``pool_gib`` is one rank's cache, which host caches are multiples of."""
    ranks = max(1, min(settings.gpus, hardware.gpus, max(1, settings.gpus // max(1, settings.nodes))))
    checkpoint = model.inventory.checkpoint_bytes / _GB
    parts = [
        _part("processes", Amount(3.0, 5.0, 6.0).scaled(ranks) + Amount(1.0, 3.0, 6.0), f"{ranks} ranks with PyTorch and CUDA libraries, the API server and tokenizers"),
        *_loading(model, settings, ranks, checkpoint, loads_in_threads),
        *_caches(settings, ranks, pool_gib, swap_gib),
    ]  # fmt: skip
    if hardware.is_of_amd and not settings.is_mmap_disabled:
        # reported twice: a container was killed while loading less than its limit through mmap; not so on CUDA
        parts.append(_part("pages that ROCm pins", Amount(0.0, 0.05, 1.0).scaled(checkpoint), "mapped files may become anonymous memory when they are copied to the GPU"))  # fmt: skip
    if draft.layers and model.draft and model.draft.pickled_bytes:
        size = model.draft.pickled_bytes / _GB * ranks
        parts.append(
            _part(
                "pickled draft",
                Amount(size * 0.9, size, size * 1.2),
                f"{ranks} ranks read the draft's .bin files whole",
            )
        )
    unreclaimable = combined(part.gib for part in parts)
    compilers = _compilers(hardware)
    sizes = (hardware.host_gib * GIB / _GB,) if hardware.host_gib else _USUAL_HOSTS_GB
    risks = tuple(_risk(size, unreclaimable, compilers, checkpoint) for size in sizes)
    shared = (10 * 24 * 1.048576e6 / _GB + 0.05) * ranks
    return Host(
        unreclaimable_gb=unreclaimable,
        page_cache_gb=checkpoint,
        shared_memory_gb=round(shared, 2),
        compile_gb=compilers,
        parts=tuple(parts),
        risks=risks,
        advice=_advice(settings, compilers, unreclaimable, parts),
    )


def _part(name: str, gb: Amount, source: str) -> Part:
    return Part(name=name, kind="host", gib=gb, source=source)


def _loading(model: Model, settings: Settings, ranks: int, checkpoint: float, loads_in_threads: bool) -> list[Part]:
    shard = (model.inventory.largest_file_bytes or min(model.inventory.checkpoint_bytes, _USUAL_SHARD_BYTES)) / _GB
    found: list[Part] = []
    streaming = "runai" in settings.load_format.lower()
    if streaming and "ray" in settings.executor.lower():
        # measured: 140 GB x 4 workers = 560 GB
        size = checkpoint * ranks
        found.append(
            _part(
                "streamer buffers",
                Amount(size * 0.5, size, size * 1.1),
                f"the run:ai streamer under Ray keeps about the whole checkpoint in each of {ranks} workers",
            )
        )
    elif streaming or "fastsafetensors" in settings.load_format.lower():
        found.append(
            _part(
                "streamer buffers",
                Amount(1.0, 5.0, 20.0).scaled(ranks),
                f"staging buffers of the loader on {ranks} ranks",
            )
        )
    elif settings.is_mmap_disabled and settings.engine == "sglang" and loads_in_threads:
        threads = settings.loading_threads or _LOADING_THREADS
        size = (threads + 2) * shard * ranks
        found.append(
            _part(
                "files read without mmap",
                Amount(size * 0.5, size, size * 1.5),
                f"({threads} threads + 2) x {shard:.1f} GB x {ranks} ranks",
            )
        )
    elif settings.is_mmap_disabled:
        size = 2 * shard * ranks
        found.append(
            _part(
                "files read without mmap", Amount(size * 0.5, size, size * 1.5), f"2 x {shard:.1f} GB x {ranks} ranks"
            )
        )
    if model.pickled_bytes:
        size = model.pickled_bytes / _GB * ranks
        found.append(
            _part(
                "pickled weights",
                Amount(shard * ranks, size, size * 1.2),
                f"{ranks} ranks read .bin files whole, without mmap",
            )
        )
    if settings.quantization.lower() in ("fp8", "bitsandbytes") and not model.shape.quantization.is_quantized:
        found.append(_part("quantisation while loading", Amount(0.0, 1.0, 5.0).scaled(ranks), "a layer at a time"))
    return found  # fmt: skip


def _caches(settings: Settings, ranks: int, pool_gib: float, swap_gib: float) -> list[Part]:
    found = []
    if settings.engine == "vllm" and settings.host_cache_gb:
        found.append(
            _part(
                "offloaded cache",
                Amount.exact(settings.host_cache_gb * GIB / _GB),
                "--kv-offloading-size, over all ranks",
            )
        )
    elif settings.host_cache_gb:
        found.append(
            _part(
                "hierarchical cache",
                Amount.exact(settings.host_cache_gb * ranks),
                f"--hicache-size x {ranks} ranks, pinned",
            )
        )
    elif settings.host_cache_ratio:
        size = settings.host_cache_ratio * pool_gib * GIB / _GB * ranks
        found.append(
            _part(
                "hierarchical cache",
                Amount.about(size, 0.2, 0.2),
                f"--hicache-ratio {settings.host_cache_ratio:g} x the pool of each of {ranks} ranks, pinned",
            )
        )
    if settings.offload_gib:
        found.append(
            _part(
                "offloaded weights",
                Amount.about(settings.offload_gib * GIB / _GB * ranks, 0.0, 0.3),
                f"--cpu-offload-gb x {ranks} ranks",
            )
        )
    # an engine that takes none by default takes none at all
    swap = settings.swap_gib if swap_gib and settings.swap_gib is not None else swap_gib
    if swap:
        found.append(
            _part(
                "swap space",
                Amount(0.0, swap * ranks * GIB / _GB, swap * ranks * GIB / _GB),
                f"--swap-space {swap:g} GiB x {ranks} ranks",
            )
        )
    return found  # fmt: skip


def _compilers(hardware: Hardware) -> Amount:
    """FlashInfer and others build kernels at warm-up where no built ones exist, with a compiler per core."""
    if not hardware.is_workstation_blackwell:
        return NOTHING
    cores = min(hardware.processors or _CORES_ASSUMED, 256)
    return Amount(0.0, 3.0 * min(cores, 16), 8.0 * cores)


def _risk(size: float, unreclaimable: Amount, compilers: Amount, checkpoint: float) -> HostRisk:
    rest = size - unreclaimable.expected
    if size < unreclaimable.low:
        return HostRisk(
            host_gb=size,
            verdict=Verdict.FAILS,
            says=f"killed while loading: {unreclaimable.expected:.0f} GB cannot be reclaimed",
        )
    if size < unreclaimable.high:
        return HostRisk(
            host_gb=size,
            verdict=Verdict.CLOSE,
            says=f"may be killed while loading: {unreclaimable.low:.0f} to {unreclaimable.high:.0f} GB cannot be reclaimed",
        )
    if rest < compilers.high:
        return HostRisk(
            host_gb=size,
            verdict=Verdict.CLOSE,
            says=f"loads, but {compilers.expected:.0f} to {compilers.high:.0f} GB of compilers at warm-up may not fit beside it: limit MAX_JOBS",
        )
    if rest < checkpoint:
        return HostRisk(
            host_gb=size,
            verdict=Verdict.STARTS,
            says=f"loads; {rest:.0f} GB of page cache hold less than the {checkpoint:.0f} GB of files: each rank may read them again from the disk",
        )
    return HostRisk(host_gb=size, verdict=Verdict.STARTS, says="loads, and the files stay in the page cache")  # fmt: skip


def _advice(settings: Settings, compilers: Amount, unreclaimable: Amount, parts: list[Part]) -> tuple[str, ...]:
    found = ["keep the checkpoint on a disk, not on tmpfs or in /dev/shm: there its size cannot be reclaimed"]
    if settings.is_mmap_disabled:
        found.insert(
            0,
            "leave mmap on: drop --weight-loader-disable-mmap, or set num_threads to 1 in --model-loader-extra-config",
        )
    if any("pickled" in part.name for part in parts):
        found.insert(0, "convert .bin files to safetensors: every rank reads them whole")
    if any(part.name == "streamer buffers" for part in parts):
        found.insert(0, "use --load-format safetensors where the host has not so much memory")
    if compilers.expected:
        found.append(
            "set MAX_JOBS=4 (or so) for the first start: kernels for this GPU are compiled at warm-up, 3 to 8 GB a job"
        )
    if unreclaimable.expected > 200 and any(part.name == "hierarchical cache" for part in parts):
        found.append("the hierarchical cache counts once per rank: lower --hicache-size")
    return tuple(found)  # fmt: skip
