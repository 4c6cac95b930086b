"""A log of any size such as a busy server with eight ranks writes: statistics, access lines, progress bars, weight
loading, warnings that mean nothing, and three incidents, the first two survived by a restart.

Run: ``python -m benchmarks.large_log FILE MEGABYTES``.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

SEED = Path(__file__).parents[1] / "tests" / "data" / "logs" / "sglang.log"
"""The last incident: the failure that DESIGN opens with, as SGLang printed it."""

_OOM = """\
[2026-11-28 03:11:{s:02} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3138, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 1020, in event_loop_overlap
    batch_result = self.run_batch(batch)
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/layers/moe/fused_moe_triton/layer.py", line 811, in forward
    intermediate_cache3 = torch.empty(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU {rank} has a total capacity of 94.97 GiB of which 1.02 GiB is free.

"""
_LOST = """\
[2026-11-28 17:40:{s:02} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3138, in run_scheduler_process
    scheduler.event_loop_overlap()
torch.AcceleratorError: CUDA error: unspecified launch failure
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.

"""


def parts(megabytes: int, seed: int = 1) -> Iterator[bytes]:
    """The log in pieces of about a megabyte."""
    randomness = random.Random(seed)
    crash = SEED.read_bytes()
    start = crash[: crash.find(b"\n", crash.find(b"server_args=")) + 1]
    yield start
    for at in range(megabytes):
        if at == megabytes // 3:
            yield _eight(_OOM) + start
        if at == 2 * megabytes // 3:
            yield _eight(_LOST) + start
        yield _ordinary(randomness, at)
    yield _eight(_OOM.replace("OutOfMemoryError: CUDA out of memory", "OutOfMemoryError: CUDA out of memory"))
    yield crash


def _eight(text: str) -> bytes:
    whole = "".join(text.format(rank=rank, s=10 + rank) for rank in range(8))
    return whole.encode() + b"Received sigquit from a child process. It usually means the child failed.\n"


def _ordinary(randomness: random.Random, block: int) -> bytes:
    """A megabyte of serving: every line has numbers of its own."""
    rng = randomness.random
    lines: list[str] = []
    size = 0
    second = block * 7
    while size < 1_000_000:
        stamp = f"2026-11-28 {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        second += 1
        kind = rng()
        if kind < 0.45:
            line = f'[{stamp}] INFO:     10.3.{int(rng() * 255)}.{int(rng() * 255)}:{int(rng() * 60000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        elif kind < 0.80:
            line = f"[{stamp} TP{int(rng() * 8)}] Decode batch. #running-req: {int(rng() * 64)}, #token: {int(rng() * 90000)}, token usage: {rng():.2f}, cuda graph: True, gen throughput (token/s): {rng() * 4000:.2f}, #queue-req: {int(rng() * 9)}, "
        elif kind < 0.95:
            line = f"[{stamp} TP{int(rng() * 8)}] Prefill batch. #new-seq: {int(rng() * 9)}, #new-token: {int(rng() * 9000)}, #cached-token: {int(rng() * 9000)}, token usage: {rng():.2f}, #running-req: {int(rng() * 64)}, #queue-req: 0, "
        elif kind < 0.98:
            line = "\r".join(
                f"Loading safetensors checkpoint shards: {p:3}% Completed | {p}/100 [00:{p % 60:02}<01:{p % 60:02},  {1 + rng():.2f}it/s]"
                for p in range(0, 101, 10)
            )
        elif kind < 0.995:
            line = (
                f"[{stamp}] WARNING: request {int(rng() * 1e12):x} was aborted by its client after {rng() * 30:.1f} s"
            )
        else:
            line = f"[{stamp} TP{int(rng() * 8)}] Cache flushed: {int(rng() * 1e6)} tokens, no error"
        lines.append(line)
        size += len(line) + 1
    return ("\n".join(lines) + "\n").encode()


def write(path: Path, megabytes: int) -> None:
    """The log as a file of about ``megabytes`` million bytes."""
    with path.open("wb") as file:
        for part in parts(megabytes):
            file.write(part)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
