"""Lines that say why the failure happened which another line only reports.

``Failed to get device capability: SM 12.x requires CUDA >= 12.9.`` is a swallowed exception printed without a level;
``No supported CUDA architectures found`` is what then ends the process. The first is the lead, the second its echo.
Each pair was seen in public failure reports, or follows from the source of the program that prints both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gpuwhy.logs.patterns import Pattern
from gpuwhy.model.event import Event

LONGEST = 4000
LONG_SECONDS = 60.0
"""What failed sooner after something was begun did not fail because that took so long."""


class Explanation(msgspec.Struct, frozen=True):
    """``failure`` and ``reason`` are searched in texts of events. ``is_earlier``: the reason counts only before it.

    A state of the host (a log of the Fabric Manager below the crash in a bug report) explains wherever it stands.
    ``is_unfinished``: the reason is something begun, and counts only when the service was at it for long and did
    not come up in between.
    """

    failure: Pattern
    reason: Pattern
    is_earlier: bool = True
    is_unfinished: bool = False


EXPLANATIONS = (
    Explanation(
        Pattern(r"No supported CUDA architectures found|requires GPUs with sm75 or higher"),
        Pattern(r"SM 1\d\.x requires CUDA|Failed to get device capability"),
    ),
    Explanation(
        Pattern(r"no kernel image is available|named symbol not found|device kernel image is invalid"),
        Pattern(r"is not compatible with the current PyTorch installation"),
    ),
    Explanation(
        Pattern(r"No operator found for|xFormers|memory_efficient_attention"),
        Pattern(r"xFormers was built for"),
        is_earlier=False,
    ),
    Explanation(
        Pattern(r"'_OpNamespace'|object has no attribute|No module named"), Pattern(r"Failed to import from vllm\._\w+|^ImportError: .{0,300}(?:cannot open shared object file|undefined symbol)")
    ),
    Explanation(
        Pattern(r"[Ee]rror 802\b|system not yet initialized|SYSTEM_NOT_READY|cudaErrorSystemNotReady"),
        Pattern(r"[Ff]abric ?[Mm]anager .{0,200}(?:don't match|mismatch|[Ff]ailed|cannot|not supported)"),
        is_earlier=False,
    ),
    Explanation(
        Pattern(r"No available memory for the cache blocks|larger than the maximum number of tokens|max seq len .{0,200}KV cache"),
        Pattern(r"(?:memory reserved for KV Cache is|Available KV cache memory:) -\d"),
    ),
    Explanation(
        Pattern(r"CUDA out of memory|OutOfMemoryError"),
        Pattern(r"^(?!torch).{0,80}out of memory occurred when (?:warming up|capturing)"),
        is_earlier=False,
    ),
    Explanation(
        Pattern(r"with family \d+ is neither AF_INET"),
        Pattern(r"(?:NCCL|GLOO)_SOCKET_IFNAME set (?:by environment )?to"),
    ),
    Explanation(Pattern(r"Failed to preprocess host compiler properties"), Pattern(r"^\S{1,300}: No such file or directory$")),
    Explanation(  # a copy that an older release downloaded: what is mapped and shorter than it says gives SIGBUS
        Pattern(r"^Bus error|Fatal Python error: Bus error"), Pattern(r"(?:Loading|Found) \w{1,40} from library /\S{0,200}/\.(?:config|cache)/")
    ),
    Explanation(
        Pattern(r"^traceback cut off|^frame #\d|[Ww]atchdog|[Tt]imed? ?out|^RuntimeError: Engine core initialization failed|EngineCore failed"),
        Pattern(r"JIT Pre-Compile session|Fetching cubin"),
        is_unfinished=True,
    ),
)  # fmt: skip


def explained(failure: Event, life: Sequence[Event]) -> Event | None:
    """The event of ``life`` that says why ``failure`` happened; None when none does, or ``failure`` says it itself."""
    told = "\n".join(_texts(failure))
    for explanation in EXPLANATIONS:
        if explanation.failure.search(told) is None or explanation.reason.search(told) is not None:
            continue
        for event in life:
            if event is failure:
                if explanation.is_earlier:
                    break
            elif _is_reason(event, explanation) and (
                not explanation.is_unfinished or _is_unfinished(event, failure, life)
            ):
                return event
    return None


def _is_reason(event: Event, explanation: Explanation) -> bool:
    return event.kind != "kernel" and explanation.reason.search(event.text[:LONGEST]) is not None


def _is_unfinished(begun: Event, failure: Event, life: Sequence[Event]) -> bool:
    between = life[life.index(begun) : life.index(failure) + 1]
    if any(event.kind == "ready" for event in between):
        return False
    times = [event.time for event in between if event.time is not None]
    return begun.time is None or len(times) < 2 or max(times) - begun.time >= LONG_SECONDS


def _texts(event: Event) -> Iterator[str]:
    yield event.text[:LONGEST]
    for block in event.exceptions:
        yield f"{block.type}: {block.message}"[:LONGEST]
