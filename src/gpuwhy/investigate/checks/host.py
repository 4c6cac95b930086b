"""The host around the GPUs: shared memory, limits of the process, caches and the disks they lie on."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.investigate.checks.results import Passed, Problem, Result, Unchecked, shown, unchecked
from gpuwhy.model.fact import Fact, Facts, Unknown
from gpuwhy.model.finding import Certainty
from gpuwhy.model.host import Gpus
from gpuwhy.model.remedy import Remedy

_ROOM = "there is room for shared memory (/dev/shm)"
SMALLEST_SHM = 1 << 30
"""Engines with several ranks keep their queues and NCCL its buffers there; containers give 64 MiB by default."""
DEFAULT_SHM = 64 << 20
SMALLEST_MEMLOCK = 1 << 30
"""RDMA registers buffers of this order; distributions give 64 KiB to 8 MiB by default."""
SMALLEST_NOFILE = 1024
"""Engines raise the soft limit of open files themselves; below the usual default somebody has lowered it."""
SMALLEST_CACHE = 4 << 30
"""What a JIT build of FlashInfer's or Triton's kernels for one model may take."""
_BROKEN = ("truncated", "damaged", "empty", "not a library")
"""How the collector and the readers of binaries call a module that cannot be loaded."""


def _is_several(facts: Facts) -> bool:
    gpus = Gpus.of(facts)
    return isinstance(gpus, Gpus) and len(gpus.devices) > 1


def _is_host_seen(facts: Facts) -> bool:
    return any(fact.evidence.standing.value == "observed" for fact in facts)


def shared_memory(facts: Facts) -> Iterator[Result]:
    """Shared memory, when several ranks share a host."""
    if not _is_several(facts):
        return
    size = facts.get("shm_bytes")
    if isinstance(size, Unknown):
        if _is_host_seen(facts):
            yield unchecked(_ROOM, size)
        return
    if not isinstance(size.value, int):
        yield Unchecked(_ROOM, f"{size.value!r} is no number of bytes", "shm_bytes", "df /dev/shm")
    elif size.value >= SMALLEST_SHM:
        yield Passed(_ROOM, f"{size.value >> 20} MiB")
    else:
        yield Problem(
            cause="shm-too-small", component="container", certainty=Certainty.LIKELY if size.value <= DEFAULT_SHM else Certainty.POSSIBLE,
            title=f"Shared memory (/dev/shm) has {size.value >> 20} MiB, and several ranks share it",
            evidence=(size.evidence,),
            remedies=(
                Remedy(kind="flag", name="--shm-size", value="16g", summary="Start the container with --shm-size=16g", cost="the container is made anew; what is used of it counts as memory", check=("df -h /dev/shm",)),
                Remedy(kind="flag", name="--ipc", value="host", rank=1, summary="Share the host's /dev/shm", check=("df -h /dev/shm",)),
            ),
        )  # fmt: skip


def _has_rdma(facts: Facts) -> bool:
    interfaces = facts.value("net_interfaces")
    return isinstance(interfaces, list | tuple) and any(str(each).startswith("ib") for each in interfaces)


def limits(facts: Facts) -> Iterator[Result]:
    """Locked memory (for RDMA between hosts) and open files of the process."""
    rows = (
        ("memlock", SMALLEST_MEMLOCK, "LimitMEMLOCK", "infinity", "may lock", "of memory, which is too little for RDMA"),
        ("ulimit.nofile", SMALLEST_NOFILE, "LimitNOFILE", "1048576", "may open", "files"),
    )  # fmt: skip
    for key, least, setting, value, verb, what in rows:
        found = facts.get(key)
        text = str(found.value).split("/")[0].split(":")[0].strip() if isinstance(found, Fact) else ""
        if not text or (key == "memlock" and not _has_rdma(facts)):
            continue
        if text == "unlimited" or (text.isdecimal() and len(text) < 20 and int(text) >= least):
            yield Passed(f"the limit {key.rpartition('.')[2]}", text)
        elif text.isdecimal():
            yield Problem(
                cause="ulimit", component="limits", certainty=Certainty.POSSIBLE,
                title=f"The process {verb} {text} {'bytes ' if key == 'memlock' else ''}{what}", evidence=shown(facts, key),
                remedies=(Remedy(kind="service", name=setting, value=value, summary=f"Raise the limit in the unit: {setting}={value}"),),
            )  # fmt: skip


def caches(facts: Facts) -> Iterator[Result]:
    """Broken modules in JIT caches, and cache folders that cannot be written or are full."""
    for path, fact in facts.group("files").items():
        said = str(fact.value)
        if path.endswith(".so") and (
            "truncated" in said or "empty" in said or "broken" in said or "is partial" in said
        ):
            yield Problem(
                cause="jit-cache-stale", component="jit-cache", certainty=Certainty.LIKELY, title=f"{path}: {said}",
                evidence=(fact.evidence,),
                remedies=(Remedy(kind="cache", name=path, value="remove", summary="Remove it; it is compiled again at the next start"),),
            )  # fmt: skip
    for path, fact in facts.group("df").items():
        why = fact.evidence.statement
        if "shared memory" in why or not isinstance(fact.value, dict):
            continue
        available = fact.value.get("avail_bytes")
        options = str(facts.value(f"mount.{path}") or "").split(",")
        if "huggingface" in path or ("cache" not in why.lower() and "cache" not in path):
            continue
        if "ro" in options or "noexec" in options:
            word = "ro" if "ro" in options else "noexec"
            yield Problem(
                cause="cache-dir-unusable", component="jit-cache", certainty=Certainty.LIKELY,
                title=f"{path} is mounted {word}: nothing can be {'written' if word == 'ro' else 'loaded from'} there",
                evidence=shown(facts, f"mount.{path}"),
                remedies=(Remedy(kind="service", name="cache folder", value="another file system", summary="Put the cache on a file system that can be written and run from"),),
            )  # fmt: skip
        elif isinstance(available, int) and available < SMALLEST_CACHE:
            yield Problem(
                cause="disk-full", component="disk", certainty=Certainty.POSSIBLE,
                title=f"{path} has {available >> 20} MiB left, where kernels are compiled", evidence=(fact.evidence,),
                remedies=(Remedy(kind="files", name=path, value="free space", summary="Free space there, or move the cache"),),
            )  # fmt: skip
        elif isinstance(available, int):
            yield Passed(f"{path} has room", f"{available >> 20} MiB left")
