"""shm-too-small: /dev/shm is too small, or full of segments that nobody uses any more."""

# ruff: noqa: S108 - names of mounts in messages; nothing is written there

from __future__ import annotations

import re

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.container import _place as place
from gpuwhy.causes.storage import _space as space
from gpuwhy.causes.storage._space import Space
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.remedy import NotARemedy, Remedy

_ROOMY = 1 * space.GIB
"""Free space with which a bus error is not that of shared memory: segments of engines are mostly smaller."""
_SMALL = 1 * space.GIB
_TIGHT = 32 * space.MIB
_DEFAULT = 64 * space.MIB
_SIZE = lazy_pattern(r"\(size (?P<size>\d{3,15})\)|to (?P<to>\d{3,15}) bytes|requested size \(?(?P<asked>\d{3,15})|of size (?P<of>\d{3,15})")  # fmt: skip
_STALE = lazy_pattern(r"worked (?:before|yesterday|days|for)|after (?:a |several |some )?(?:crash|restart)|stale|left[- ]?over|leftover|previous run", re.IGNORECASE)  # fmt: skip
_MAP_WEIGHTS = ("ollama", "llama.cpp")
"""They map their model file and share no memory: a bus error of theirs is that of the file or its disk."""
_ON_CHIP = lazy_pattern(
    r"out of resource|per[- ]block|dynamic|\bsmem\b|\bkernel\b|cudaFunc|Hardware limit|carve-?out|multiprocessor",
    re.IGNORECASE,
)
"""Shared memory of a GPU's multiprocessors: another thing of the same name."""
_GUESSED = lazy_pattern(r"possible|might be", re.IGNORECASE)
_GIVEN = lazy_pattern(
    r"\b(?:run|create)\b.{0,400}--(?:shm-size|ipc)[= ]|^\s{0,12}--(?:shm-size|ipc)[= ]|shm_size:|ipc: ?[\"']?host|medium: ?[\"']?Memory",
    re.IGNORECASE,
)
_BUS = r"(?<!PCIe )(?<!PCI )\bBus error(?!: severity)\b|\bSIGBUS\b|\bsignal[: ]{1,2}7\b|(?:exit ?code|exitcode|exit status|exited with(?: code)?|status)\W{1,6}(?:-7|135)\b|Non-existent physical address"


@cause(
    "shm-too-small",
    family=space.FAMILY,
    leads_to=("startup-timeout",),
    signs=[
        says(
            "nccl-segment",
            ("shared memory segment", "failed to extend /dev/shm", "posix_fallocate", "shmutils.cc", "shm.h", "shm.cc"),
            r"Error while creating shared memory segment|(?:failed to extend|Error: failed to extend) /dev/shm/\S{1,80} to \d{1,15} bytes|NCCL WARN Call to (?:posix_fallocate|ftruncate|fallocate) failed ?: ?No space left|(?:shm\.h|shmutils\.cc|shm\.cc):\d{1,5}.{0,40}WARN.{0,120}No space left",
        ),
        says(
            "torch-workers",
            ("out of shared memory", "insufficient shared memory", "unable to write to file </torch_", "shared memory limit", "resize shared memory", "shared memory object"),
            r"workers are out of shared memory|insufficient shared memory|unable to write to file </torch_\w{1,60}>(?:: (?:No space|Resource temporarily)|$)|raise your shared memory limit|could not resize shared memory segment|unable to (?:resize|allocate|open) shared memory (?:object|file|segment).{0,120}No space left",
        ),
        says(
            "named",
            ("/dev/shm", "shm-size", "shm_size", "emptydir volume", "shared memory", "shared-memory"),
            r"/dev/shm\S{0,200}.{0,60}(?:No space left|is full|too small|full\b)|(?:No space left|not enough (?:free )?space|[Ii]nsufficient (?:free )?space).{0,60}/dev/shm|Usage of EmptyDir volume \"\S{0,40}shm\S{0,40}\" exceeds the limit|[Uu]nable to (?:initialize|grow|create|allocate|extend) (?:the )?shared memory.{0,200}|(?:[Ff]ailed|unable|[Cc]ould not) to (?:create|allocate|grow|initialize|extend|reserve) .{0,40}shared[ -]memory(?!_).{0,160}|not enough space for the shared-memory backing file|exceeds /dev/shm size|[Nn]ot enough shared memory|shared memory (?:region|segment|pool|size) (?:is )?(?:too small|exhausted)|(?:run|running|try).{0,40}--shm-size",
        ),
        says("ray-warns", "/dev/shm has only", r"/dev/shm has only (?P<bytes>\d{1,15}) bytes available"),
        says("image-warns", "shmem allocation limit", r"SHMEM allocation limit is set to the default of 64 ?MB"),
        space.NO_SPACE,
        says("bus-error", ("bus error", "sigbus", "signal 7", "signal: 7", "exit code", "exitcode", "exit status", "exited with", "status=", "non-existent physical"), _BUS),
        says("killed-worker", "killed by signal", r"DataLoader worker \(pid\W{1,4}\d{1,9}\) is killed by signal: Bus error"),
    ],
)  # fmt: skip
def shm_too_small(case: Case) -> Judgement:
    """/dev/shm is too small for what the processes share, or full of segments of crashed runs.

    How it shows itself
      NCCL: `include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device`, `failed to extend /dev/shm/nccl-AbCd
      to 33030532 bytes`. torch: `unable to write to file </torch_123_456>`, `DataLoader worker is killed by signal: Bus error. It is
      possible that dataloader's workers are out of shared memory`. Elsewhere a bare `Bus error (core dumped)`, exit code 135 or -7;
      `OSError: [Errno 28]` with shared_memory.py in the traceback; Ray's `/dev/shm has only 67108864 bytes available`.

    Why it happens
      A container gets 64 MB of /dev/shm unless its start says otherwise, a pod too. Without NVLink or peer access NCCL
      sends everything through it; engines and data loaders pass tensors in it. Processes that crashed leave their segments there.

    How to be sure
      In the container: `df -h /dev/shm; ls -l /dev/shm`. A bus error with much room there has another source.

    What helps
      docker: `--shm-size=16g` or `--ipc=host`. Kubernetes: an emptyDir with `medium: Memory` on /dev/shm. Delete what crashed runs
      left (`rm /dev/shm/nccl-* /dev/shm/torch_*`) when nothing runs. A machine without containers: `mount -o remount,size=64G /dev/shm`.

    What does not help
      Space on the disk, more GPU memory. NCCL_SHM_DISABLE=1 helps NCCL alone, and is slower. `leaked shared_memory objects` is
      what is printed after any crash.

    Not to be confused with
      disk-full (`No space left` with the path of a disk), library-corrupt (a bus error while a file is mapped, with room in
      /dev/shm), host-oom-kill (shared memory counts against the memory limit), ulimit (`Too many open files`).
    """
    shm = space.shared_memory(case)
    stated = _stated(case)
    if stated is not None:
        return _verdict(case, stated, shm, is_stated=True)
    match = next((m for m in case.all("killed-worker", "bus-error") if not m.is_code and m.line.level not in ("info", "debug")), None)  # fmt: skip
    if match is None:
        return None
    seen = case.evidence(match, "a mapped page had no memory behind it")
    if shm is not None and shm.available is not None and shm.available >= _ROOMY:
        return RuledOut(f"/dev/shm has {space.shown(shm.available)} free", (shm.evidence, seen))
    return _verdict(case, match, shm, is_stated=False)


def _stated(case: Case) -> Match | None:
    """The line of shared memory's own code: one that names the segment before one that names the call."""
    own = [m for m in case.all("nccl-segment", "torch-workers") if not m.is_code]
    own.sort(key=lambda m: ("fallocate" in m.text or "ftruncate" in m.text, m.line.number))
    if own:
        return own[0]
    full = next((m for m in case.all(space.NO_SPACE.name) if not m.is_code and space.is_shared(m) and not space.is_of_other_tables(m)), None)  # fmt: skip
    if full is not None:
        return full
    return next((m for m in case.all("named", "ray-warns") if not m.is_code and m.line.level != "debug" and not _GIVEN.search(m.text) and not _ON_CHIP.search(m.text)), None)  # fmt: skip


def _verdict(case: Case, match: Match, shm: Space | None, *, is_stated: bool) -> Verdict:
    warned = case.found("image-warns", "ray-warns")
    certainty, strength = _certainty(match, shm, case.engine, is_stated=is_stated, is_warned=warned is not None)
    seen = case.evidence(match, _STATEMENT.get(match.sign, "shared memory has no space left"))
    known = (shm.evidence,) if shm is not None else ()
    if not known and warned is not None and warned is not match:
        known = (case.evidence(warned, "it has the default size"),)
    needed = _needed(case)
    return Verdict(
        certainty=certainty,
        component="dev-shm",
        title=_title(shm, needed),
        chain=(
            Link("/dev/shm is small, or full", known[0] if known else _given_size(match) or inferred("a container has 64 MB unless its start says otherwise")),
            Link("A segment does not get its pages", seen),
            Link("The process ends, and with it the other ranks"),
        ),
        evidence=(seen, *known),
        explains=case.explains(match, *case.all("nccl-segment", "torch-workers", "killed-worker", "bus-error")),
        missing=() if certainty is Certainty.PROVEN else _missing(case),
        rivals=() if certainty is Certainty.PROVEN else ("library-corrupt", "disk-full") if not is_stated else ("disk-full",),
        remedies=_remedies(case, shm, needed),
        not_remedies=_IN_VAIN,
        notes=("NCCL_SHM_DISABLE=1 takes NCCL off shared memory; it is slower, and helps nothing else.",) if match.sign == "nccl-segment" else (),
        strength=strength,
    )  # fmt: skip


_STATEMENT = {
    "bus-error": "a mapped page had no memory behind it",
    "killed-worker": "a mapped page had no memory behind it",
    "ray-warns": "Ray finds little shared memory",
    "named": "shared memory cannot be had",
}


def _certainty(
    match: Match, shm: Space | None, engine: str, *, is_stated: bool, is_warned: bool
) -> tuple[Certainty, int]:
    is_tight = shm is not None and ((shm.available is not None and shm.available < _TIGHT) or (shm.available is None and (shm.size or 0) <= _DEFAULT))  # fmt: skip
    is_small = shm is not None and shm.size is not None and shm.size < _SMALL
    if match.sign == "ray-warns":
        return Certainty.POSSIBLE, 30
    if is_stated:
        is_literal = match.sign in ("nccl-segment", "torch-workers", space.NO_SPACE.name) or "No space" in match.text
        has_room = shm is not None and shm.available is not None and shm.available > _ROOMY
        is_certain = is_literal and not has_room and (match.sign != "torch-workers" or not _GUESSED.search(match.text))
        return (Certainty.PROVEN, 84) if is_certain else (Certainty.LIKELY, 76 if is_literal else 58)
    if is_tight or is_small or is_warned:
        return Certainty.LIKELY, 66
    if match.sign == "killed-worker":
        return Certainty.LIKELY, 62
    is_literal = "us error" in match.text or "SIGBUS" in match.text
    if engine in _MAP_WEIGHTS:
        return Certainty.POSSIBLE, 26
    return Certainty.POSSIBLE, 50 if is_literal else 40


def _given_size(match: Match) -> Evidence | None:
    size = match.group("bytes")
    return Evidence("what Ray found", match.text, match.place) if size else None


def _needed(case: Case) -> int | None:
    """The size of the segment that did not fit, as the log tells."""
    for match in case.all("nccl-segment", "named"):
        found = _SIZE.search(match.text[:1600])
        if found is not None:
            return int(next(group for group in found.groups() if group))
    return None


def _title(shm: Space | None, needed: int | None) -> str:
    wanted = f"; a segment of {space.shown(needed)} did not fit" if needed and needed >= space.MIB else ""
    if shm is not None and shm.size is not None:
        free = f", {space.shown(shm.available)} of it free" if shm.available is not None else ""
        return f"/dev/shm has {space.shown(shm.size)}{free}{wanted}"
    return f"/dev/shm is too small or full{wanted}"


def _missing(case: Case) -> tuple[Missing, ...]:
    if space.shared_memory(case) is not None:
        return ()
    asked = case.missing(
        "df./dev/shm", "how large /dev/shm is where the process runs, and how full", "df -B1 /dev/shm; ls -l /dev/shm"
    )
    return (asked,) if asked is not None else ()


def _remedies(case: Case, shm: Space | None, needed: int | None) -> tuple[Remedy, ...]:
    where = place.read_surroundings(case)
    texts = [match.text for match in case.all("nccl-segment", "named", "torch-workers")]
    is_large = shm is not None and shm.size is not None and shm.size >= 4 * space.GIB
    near = (line.text[:300] for _, line in case.lines())
    has_stale = is_large or any(_STALE.search(text) for text in near)
    size = "16g" if needed is None or needed < 2 * space.GIB else f"{-(-needed * 8 // space.GIB)}g"
    larger = Remedy(
        kind="flag", name="--shm-size", value=size, summary=f"Start the container with --shm-size={size}",
        cost="the container is made anew; what is used of it counts as memory", check=("df -h /dev/shm",),
    )  # fmt: skip
    host = Remedy(
        kind="flag", name="--ipc", value="host", rank=1, summary="Or share the host's /dev/shm",
        limits=("the host's must be large enough",), check=("df -h /dev/shm",),
    )  # fmt: skip
    mounted = Remedy(
        kind="config", name="/dev/shm", value="emptyDir with medium: Memory",
        summary="Mount an emptyDir with medium: Memory on /dev/shm, and count its size into the memory limit of the pod",
        is_sure=where.kind in ("kubernetes", ""), check=("df -h /dev/shm",),
    )  # fmt: skip
    remount = Remedy(
        kind="config", name="/dev/shm size", value="larger", rank=2, is_sure=False,
        summary="Without a container: mount it larger", commands=("mount -o remount,size=64G /dev/shm",), cost="root",
    )  # fmt: skip
    stale = Remedy(
        kind="files", name="/dev/shm/nccl-*" if any("nccl" in text.lower() for text in texts) else "/dev/shm/*",
        value="delete stale segments", summary="Delete the segments of runs that ended, while nothing runs",
        commands=("ls -l /dev/shm",), is_sure=has_stale,
    )  # fmt: skip
    if where.kind == "kubernetes" or any("EmptyDir" in text for text in texts):
        return (mounted, stale)
    if where.is_container is False or (is_large and not where.kind):
        return (stale, remount)
    return (larger, host, mounted, stale) if not where.kind else (larger, host, stale)


_IN_VAIN = (
    NotARemedy("space on the disk, or more GPU memory", "/dev/shm is a file system in memory, of its own size"),
    NotARemedy("clearing away `leaked shared_memory objects`", "the message follows any crash"),
)
