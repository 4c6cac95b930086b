"""gpu-memory-taken: another process holds or moves the GPU's memory, or the wrong GPU was chosen."""

from __future__ import annotations

import math
import re

from msgspec import Struct

from gpuwhy.causes._case import Case, Match, inferred
from gpuwhy.causes._lazy_patterns import lazy_pattern
from gpuwhy.causes._registry import Judgement, cause
from gpuwhy.causes._signs import says
from gpuwhy.causes.memory import _allocation as allocations
from gpuwhy.causes.memory import _estimated as estimates
from gpuwhy.causes.memory import _options as engine_options
from gpuwhy.causes.memory import _stage as stages
from gpuwhy.causes.memory import _use as uses
from gpuwhy.causes.memory._allocation import Allocation, gib
from gpuwhy.causes.memory._budget import Budget
from gpuwhy.causes.memory._stage import Stage, StageRead
from gpuwhy.causes.memory._unified import is_unified
from gpuwhy.model.evidence import Evidence
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, Missing, RuledOut, Verdict
from gpuwhy.model.gpu_memory import COMMAND, GpuHolders, Holder, size_of
from gpuwhy.model.remedy import NotARemedy, Remedy

_SIZE = r"(-?\d{1,9}(?:\.\d{1,4})?) ?([KMGT]i?B)"
_STARTUP = lazy_pattern(rf"Free memory on device .{{0,40}}?\((\d{{1,5}}(?:\.\d{{1,4}})?)/{_SIZE}\) on startup")
_MOVED = lazy_pattern(rf"Initial free memory:? {_SIZE},? current free memory:? {_SIZE}", re.IGNORECASE)
_BEGIN = lazy_pattern(r"avail mem=(\d{1,6}(?:\.\d{1,3})?) GB")
_LLAMA_FREE = lazy_pattern(r"- (\d{1,7}) MiB free")
_LLAMA_TOTAL = lazy_pattern(r"VRAM: (\d{1,7}) MiB")
_SMI_PROCESS = lazy_pattern(r"\|\s{1,6}(\d{1,3})\s{1,8}(?:N/A|\d{1,3})\s{1,8}(?:N/A|\d{1,3})\s{1,10}(\d{1,10})\s{1,8}(?:C|G|C\+G|M\+C)\s{1,8}(\S.{0,80}?)\s{1,40}(\d{1,7})MiB\s{1,4}\|")  # fmt: skip
_UNBALANCED = lazy_pattern(
    r"min_per_gpu_memory ?= ?(\d{1,6}(?:\.\d{1,3})?).{0,20}?local_gpu_memory ?= ?(\d{1,6}(?:\.\d{1,3})?)"
)
_LITERAL = ("less-than-desired", "moved", "unbalanced", "busy")
_OWN_ENGINE = lazy_pattern(r"vllm|EngineCore|VLLM::|sglang|llama[-_]server|ollama|trtllm|lmdeploy", re.IGNORECASE)
_LEFT_OVER = lazy_pattern(r"left[- ]?over|stale|zombie|previous|earlier|\bold\b|orphan|another|\bother\b|second|co-?tenant|different|crashed", re.IGNORECASE)  # fmt: skip
_DISPLAY = lazy_pattern(r"Xorg|gnome|Xwayland|kwin|plasma|compiz|explorer\.exe|dwm\.exe|firefox|chrome", re.IGNORECASE)


class Taken(Struct, frozen=True):
    """What shows that memory is held. ``free``, ``total``: bytes at the start, where they are known."""

    match: Match
    kind: str
    free: int | None = None
    total: int | None = None
    allocation: Allocation | None = None
    stage: StageRead | None = None


@cause(
    "gpu-memory-taken",
    family="Driver, device and fabric",
    leads_to=("gpu-oom-weights", "gpu-oom-kv-cache", "gpu-oom-graph-or-activation",),
    signs=[
        says("less-than-desired", ("less than desired gpu memory utilization", "free memory on device"), r"Free memory on device.{0,160}on startup is less than desired GPU memory utilization"),
        says("moved", ("error in memory profiling", "initial free memory"), r"Error in memory profiling|Initial free memory.{0,60}current free memory"),
        says("unbalanced", "memory capacity is unbalanced", r"The memory capacity is unbalanced\. .{0,10}Some GPUs may be occupied"),
        says(
            "busy",
            ("busy or unavailable", "devicesunavailable", "device_unavailable", "exclusive_process", "exclusive process"),
            r"CUDA-capable device\(?s?\)? (?:is|are|is/are) (?:all )?busy or unavailable|cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICE_UNAVAILABLE",
        ),
        says("load-begin", "load weight begin", r"Load weight begin\b.{0,40}?avail mem=\d"),
        says("llama-free", "mib free", r"using device CUDA\d{1,2} .{0,120}- \d{1,7} MiB free"),
        says("smi-process", "mib |", _SMI_PROCESS.pattern),
        allocations.SIGN,
    ],
)  # fmt: skip
def gpu_memory_taken(case: Case, holders: GpuHolders | Unknown) -> Judgement:
    """Another process holds the GPU's memory, or gives it back while the engine measures, or the wrong GPU was chosen.

    How it shows itself
      vLLM: `Free memory on device (x/y GiB) on startup is less than desired GPU memory utilization`, or `Error in memory
      profiling. Initial free memory X, current free memory Y`. SGLang: `The memory capacity is unbalanced. Some GPUs may be
      occupied by other processes`. Torch lists the others: `Process 4711 has 14.22 GiB memory in use`. An out-of-memory error
      at the first touch of the GPU, before anything was loaded. `all CUDA-capable devices are busy or unavailable`.

    Why it happens
      A second server, a notebook, a training job or the workers of a crashed server are still there; a container cannot see
      the processes of others, and the memory is gone all the same. Or all programs took GPU 0, because CUDA_VISIBLE_DEVICES
      was not set in the process that counts. vLLM also stops when free memory GROWS between two measurements: a neighbour
      has released some.

    How to be sure
      `nvidia-smi` on the host, before the start, with the process list. In a torch message: total - free - `this process has`
      is what others hold.

    What helps
      End the other process (left-over workers too), or take another GPU with CUDA_VISIBLE_DEVICES. Where the GPU is shared on
      purpose: a fraction that fits into what is free, and starting one server after the other.

    What does not help
      A container of its own: GPU memory is not divided by containers. Another fraction, when memory moved while the engine
      measured. A smaller model, before anybody looked at the process list.

    Not to be confused with
      gpu-oom-weights, gpu-oom-kv-cache, gpu-oom-graph-or-activation: there the server's own demand is too large. On unified
      memory the host itself is the neighbour.
    """
    taken = _read(case, holders)
    if taken is None:
        return None
    if isinstance(holders, GpuHolders) and not holders.holders and taken.kind in ("allocation", "unknown"):
        return RuledOut("nobody else holds memory on the GPUs", (holders.evidence,))
    certainty = _certainty(case, taken, holders)
    others = _others(taken, holders)
    quoted = _quoted(case, taken)
    seen = holders.evidence if isinstance(holders, GpuHolders) and holders.holders else None
    return Verdict(
        certainty=certainty,
        component="other-process",
        title=_title(taken),
        chain=(
            Link("Another process holds memory on this GPU" if taken.kind != "moved" else "Another process on this GPU gives memory back", seen or inferred("the figures leave no other reading, or nobody looked")),
            Link("The server finds less free, or a moving amount", quoted),
        ),
        evidence=tuple(each for each in (quoted, seen, case.fact_evidence("env.CUDA_VISIBLE_DEVICES"), *_smi(case)) if each is not None),
        explains=case.explains(taken.match, taken.allocation.match if taken.allocation else None),
        missing=_missing(case, certainty),
        rivals=() if certainty is Certainty.PROVEN else _rivals(taken),
        remedies=_remedies(case, taken, others),
        not_remedies=_in_vain(case, taken),
        notes=_notes(taken),
        strength=_strength(taken),
        memory=uses.gpu_uses(case, case.engine or ("vllm" if taken.kind == "less-than-desired" else ""), Budget(), taken.total, allocation=taken.allocation, taken=_held(taken)),
    )  # fmt: skip


def _held(taken: Taken) -> int | None:
    """Bytes in use at the start, where nothing of the server was there yet."""
    if taken.total is None or taken.free is None or taken.allocation is not None:
        return None
    return max(0, taken.total - taken.free)


_STRENGTH = {"moved": 90, "less-than-desired": 85, "unbalanced": 80, "busy": 55, "allocation": 70, "start": 45, "begin": 60, "unknown": 26}  # fmt: skip


def _strength(taken: Taken) -> int:
    return _STRENGTH.get(taken.kind, 50)


def _read(case: Case, holders: GpuHolders | Unknown) -> Taken | None:
    match = next((m for m in case.all(*_LITERAL) if not m.is_code), None)
    if match is not None:
        text = allocations.message(case, match)
        found = _STARTUP.search(text)
        free, total = (size_of(found[1], found[3]), size_of(found[2], found[3])) if found else (None, None)
        return Taken(match, match.sign, free, total)
    return _by_allocation(case, holders)


def _by_allocation(case: Case, holders: GpuHolders | Unknown) -> Taken | None:
    allocation = allocations.failed_allocation(case)
    if allocation is None:
        return None
    stage = stages.stage_of(case, allocation.match)
    if allocation.is_held_by_others:
        return Taken(allocation.match, "allocation", None, allocation.total, allocation, stage)
    if allocation.is_held_by_others is False:
        return None
    total = allocations.total_of(case, (allocation,))
    free = _free_before(case)
    if free is not None and total is not None and free < 0.8 * total:
        return Taken(allocation.match, "begin", free, total, allocation, stage)
    if isinstance(holders, GpuHolders) and _strangers(holders.on(allocation.device)):
        return Taken(allocation.match, "allocation", free, total, allocation, stage)
    if stage.stage is Stage.START:
        return Taken(allocation.match, "start", free, total, allocation, stage)
    if stage.stage in (Stage.UNKNOWN, Stage.LOADING):
        return Taken(allocation.match, "unknown", free, total, allocation, stage)
    return None


def _free_before(case: Case) -> int | None:
    """Free memory before the weights were loaded, as SGLang and llama.cpp print it."""
    begin = case.found("load-begin")
    if begin is not None and (found := _BEGIN.search(begin.text)):
        return size_of(found[1], "GiB")
    llama = case.found("llama-free")
    if llama is not None and (found := _LLAMA_FREE.search(llama.text)):
        return int(found[1]) << 20
    return None


def _strangers(holders: tuple[Holder, ...]) -> tuple[Holder, ...]:
    """Holders of a good amount; a desktop takes some hundred MiB, and is no reason."""
    return tuple(
        each
        for each in holders
        if (each.memory is None and not _DISPLAY.search(each.text)) or (each.memory or 0) > allocations.GIB
    )


def _others(taken: Taken, holders: GpuHolders | Unknown) -> tuple[Holder, ...]:
    if not isinstance(holders, GpuHolders):
        return ()
    return _strangers(holders.on(taken.allocation.device if taken.allocation else None))


def _is_stranger(case: Case, holder: Holder) -> bool:
    """Whether a listed process is surely not the failing server itself: its kind of program may be its own."""
    if not _OWN_ENGINE.search(holder.text) or _LEFT_OVER.search(holder.text):
        return True
    return (
        bool(case.engine) and case.engine.lower() not in holder.text.lower() and "enginecore" not in holder.text.lower()
    )


def _certainty(case: Case, taken: Taken, holders: GpuHolders | Unknown) -> Certainty:
    is_seen = any(_is_stranger(case, each) for each in _others(taken, holders))
    if taken.kind == "moved":
        return Certainty.PROVEN if _MOVED.search(taken.match.text) or is_seen else Certainty.LIKELY
    if taken.kind == "less-than-desired":
        held = taken.total - taken.free if taken.total is not None and taken.free is not None else 0
        is_much = taken.total is not None and held > max(2 * allocations.GIB, taken.total // 8)
        return Certainty.PROVEN if is_seen or is_much else Certainty.LIKELY
    if taken.kind == "allocation":
        own = taken.allocation is not None and taken.allocation.own is not None
        is_early = taken.stage is None or taken.stage.stage in (Stage.START, Stage.LOADING, Stage.UNKNOWN)
        return Certainty.PROVEN if (is_seen and is_early) or own else Certainty.LIKELY
    if taken.kind in ("unbalanced", "begin"):
        return Certainty.PROVEN if is_seen else Certainty.LIKELY
    if is_seen:
        return Certainty.LIKELY
    is_plain = (
        "NOT_INITIALIZED" not in taken.match.text
    )  # a library that gives no reason lacks memory as a rule, not always
    return Certainty.LIKELY if taken.kind == "start" and is_plain else Certainty.POSSIBLE


def _quoted(case: Case, taken: Taken) -> Evidence:
    statement = {
        "moved": "free memory changed while the engine measured",
        "less-than-desired": "less is free before the start than the engine wants",
        "unbalanced": "the GPUs do not have the same amount free",
        "busy": "the GPU does not accept another process",
        "start": "the very first allocation on the GPU fails",
    }.get(taken.kind, "an allocation fails")
    if taken.kind == "allocation" and taken.allocation is not None and taken.allocation.foreign:
        statement = f"{gib(taken.allocation.foreign)} of the card are held by others"
    if taken.stage is not None and taken.kind == "start":
        return stages.shown(case, taken.match, taken.stage, statement)
    return case.evidence(taken.match, statement)


def _smi(case: Case) -> tuple[Evidence, ...]:
    """Rows of nvidia-smi's process list in the report that hold more than a desktop does."""
    rows = [
        match
        for match in case.all("smi-process")
        if (found := _SMI_PROCESS.search(match.text)) and int(found[4]) > 1024
    ]
    return tuple(case.evidence(match, "a process that nvidia-smi lists") for match in rows[:2])


def _title(taken: Taken) -> str:
    if taken.kind == "moved":
        return "Another process changed its GPU memory while the engine measured"
    if taken.free is not None and taken.total is not None:
        return f"Only {gib(taken.free)} of {gib(taken.total)} are free before the server starts"
    if taken.kind == "unbalanced" and (found := _UNBALANCED.search(taken.match.text)):
        return f"One GPU has {found[1]} GiB free, another {found[2]}: somebody else uses the fuller one"
    if taken.kind == "busy":
        return "The GPU is held by another process and accepts no further one"
    return "Another process holds memory on this GPU"


def _missing(case: Case, certainty: Certainty) -> tuple[Missing, ...]:
    if certainty is Certainty.PROVEN:
        return ()
    asked = (
        case.missing("gpu_processes", "who holds memory on this GPU before the start", COMMAND),
        case.missing("env.CUDA_VISIBLE_DEVICES", "which GPU the process was really given", "tr '\\0' '\\n' < /proc/PID/environ | grep ^CUDA_VISIBLE_DEVICES="),
    )  # fmt: skip
    return tuple(each for each in asked if each is not None)


def _rivals(taken: Taken) -> tuple[str, ...]:
    if taken.kind == "busy":
        return ("gpu-lost", "driver-uvm-broken")
    if taken.kind in ("unknown", "begin"):
        return ("gpu-oom-weights", "gpu-oom-graph-or-activation")
    return ("gpu-oom-weights",) if taken.kind == "start" else ()


def _remedies(case: Case, taken: Taken, others: tuple[Holder, ...]) -> tuple[Remedy, ...]:
    engine = case.engine or "vllm" if taken.kind in ("moved", "less-than-desired") else case.engine
    if taken.kind == "moved":
        return (
            Remedy(kind="service", name=engine, value="start again when the other process is steady", summary="Start again once the other process has ended or is steady", rank=0),
            Remedy(kind="service", name="co-tenants", value="start one after another", summary="Start the servers that share the GPU one after another", rank=1),
        )  # fmt: skip
    options = engine_options.options_of(engine)
    named = next((each.text for each in others), "")
    stop = Remedy(
        kind="service", name="other process", value="stop",
        summary=f"End what holds the memory ({named[:80]})" if named else "End the process that holds the memory, left-over workers of an earlier start among them",
        check=("nvidia-smi",), rank=0,
    )  # fmt: skip
    choose = Remedy(
        kind="env", name="CUDA_VISIBLE_DEVICES", value="a GPU that is free",
        summary="Give the server a GPU that nobody uses, in the environment of the process itself", is_sure=False,
    )  # fmt: skip
    needed = _fraction_needed(case, engine, taken)
    is_enough = needed is None or not _share(taken)[:1].isdigit() or float(_share(taken)) > needed
    shares_with_host = is_unified(case)
    is_little = taken.kind == "less-than-desired" and (_is_little(taken) or shares_with_host)
    share = engine_options.change(
        options, options.fraction, _share(taken),
        "Ask only for what is free: the board's memory is the host's as well" if shares_with_host
        else "Ask only for what is free: so little is in use that a desktop or a driver may hold it" if is_little else "Ask only for what is free, if the GPU is shared on purpose",
        cost="a smaller cache", sure=is_little, rank=-1 if is_little else 1,
    )  # fmt: skip
    return (choose, *(share if _divides_what_is_free(taken) and is_enough else ()), stop)


def _divides_what_is_free(taken: Taken) -> bool:
    """Whether a smaller fraction can be the answer: not where the GPUs are compared, and not where the weights themselves find no room."""
    if taken.kind in ("busy", "unbalanced", "start"):
        return False
    return taken.stage is None or taken.stage.stage not in (Stage.START, Stage.LOADING)


def _is_little(taken: Taken) -> bool:
    held = taken.total - taken.free if taken.free is not None and taken.total is not None else None
    return held is not None and taken.total is not None and held < max(2 * allocations.GIB, taken.total // 8)


def _share(taken: Taken) -> str:
    """The fraction of the card that others leave, with a hundredth to spare."""
    total, free = taken.total, taken.free
    if free is None and total and taken.allocation is not None and taken.allocation.foreign is not None:
        free = total - taken.allocation.foreign
    if free is None or not total:
        return "lower"
    share = math.floor(free / total * 100 - 1) / 100
    return f"{share:.2f}" if share > 0.05 else "lower"


def _fraction_needed(case: Case, engine: str, taken: Taken) -> float | None:
    """Below it the weights leave no cache, where the model is known."""
    if taken.kind != "less-than-desired":
        return None
    bounds = estimates.bounds_of(case, engine, Budget(total=taken.total), taken.total)
    return bounds.least if bounds is not None else None


def _in_vain(case: Case, taken: Taken) -> tuple[NotARemedy, ...]:
    container = NotARemedy("a container of its own", "containers do not divide GPU memory")
    if taken.kind == "moved":
        return (NotARemedy("a lower --gpu-memory-utilization", "the amount that is free still moves"), container)
    if taken.kind == "unbalanced":
        return (NotARemedy("another --mem-fraction-static", "the check compares what is free on the GPUs, whatever the fraction"), container)  # fmt: skip
    needed = _fraction_needed(case, case.engine or "vllm", taken)
    if needed is not None and taken.free is not None and taken.total and taken.free / taken.total < needed:
        hint = NotARemedy(
            "a lower fraction, as the engine's own hint says",
            f"the model needs {needed:.2f} of the card, and {taken.free / taken.total:.2f} are free: it would then find no room for its cache",
        )
        return (hint, container)
    return (container,)


def _notes(taken: Taken) -> tuple[str, ...]:
    if taken.kind == "less-than-desired" and taken.free is not None and taken.total is not None and _is_little(taken):
        return (f"Only {gib(taken.total - taken.free)} are in use: a desktop or the CUDA context of a driver may do. A slightly lower fraction is enough.",)  # fmt: skip
    return ()
