"""What holds for every format: streams may interleave, and a log may end anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwhy.logs import find_events, read_bytes
from gpuwhy.model.event import Event

FORMATS = Path(__file__).parents[1] / "data" / "logs" / "formats"
STEADY = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))

TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/a.py", line {n}, in a
    b()
    ~^^
  File "/opt/b.py", line 108, in b
    raise RuntimeError("boom {n}")
RuntimeError: boom {n}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/c.py", line 9{n}, in c
    raise ValueError("no {n}")
ValueError: no {n}
nvcc fatal   : Unsupported gpu architecture 'compute_12{n}'"""
LENGTH = len(TRACEBACK.splitlines())

PREFIXES: dict[str, Callable[[int, str], str]] = {
    "vllm": lambda n, line: f"(Worker_TP{n} pid=10{n}) ERROR 08-03 17:45:4{n} [core.py:700] {line}",
    "vllm in ray": lambda n, line: f"(EngineCore pid=7) (RayWorkerWrapper pid=10{n}, ip=192.0.2.{n}) {line}",
    "old vllm": lambda n, line: f"(VllmWorker rank={n} pid=10{n}) {line}",
    "sglang": lambda n, line: f"[2026-11-29 10:07:46 TP{n} EP{n}] {line}",
    "torchrun": lambda n, line: f"[rank{n}]: {line}",
    "torchrun --tee": lambda n, line: f"[default{n}]:[rank{n}]: {line}",
    "compose": lambda n, line: f"vllm-{n}  | {line}",
    "compose with times": lambda n, line: f"vllm-{n}  | 2026-11-29T10:07:46.12345678{n}Z {line}",
    "kubectl --prefix": lambda n, line: f"[pod/vllm-{n}/server] {line}",
    "kubectl --prefix --timestamps": lambda n, line: f"[pod/vllm-{n}/server] 2026-11-29T10:07:46.12345678{n}Z {line}",
    "stern": lambda n, line: f"vllm-{n} server {line}",
    "journalctl": lambda n, line: f"Nov 29 10:07:46 gpu-host sglang[210{n}]: {line}",
    "journalctl -o short-monotonic": lambda n, line: f"[ 2882.00{n}000] gpu-host sglang[210{n}]: {line}",
    "rfc 5424": lambda n, line: f"<11>1 2026-11-29T10:07:46.12{n}Z gpu-host sglang 210{n} - - {line}",
    "rfc 3164": lambda n, line: f"<11>Nov 29 10:07:46 gpu-host sglang[210{n}]: {line}",
    "mpirun --tag-output": lambda n, line: f"[1,{n}]<stderr>:{line}",
    "srun --label": lambda n, line: f"{n:2}: {line}",
    "pdsh": lambda n, line: f"node{n}: {line}",
    "gunicorn": lambda n, line: f"[2026-11-29 10:07:46 +0000] [471{n}] [ERROR] {line}",
    "celery": lambda n, line: f"[2026-11-29 10:07:46,123: ERROR/ForkPoolWorker-{n}] {line}",
    "logging with process": lambda n, line: f"2026-11-29 10:07:46,123 [471{n}] ERROR {line}",
}


def meaning(event: Event) -> tuple[object, ...]:
    blocks = tuple((block.type, block.message, block.frames, block.link) for block in event.exceptions)
    return (event.kind, event.tool, event.text, event.process, blocks)


def meanings(lines: list[str]) -> set[tuple[object, ...]]:
    return {meaning(event) for event in find_events(read_bytes("\n".join(lines).encode(), "x"))}


@pytest.mark.parametrize("name", PREFIXES)
@STEADY
@given(order=st.permutations([0] * LENGTH + [1] * LENGTH + [2] * LENGTH))
def test_any_interleaving_of_streams_gives_their_events(name: str, order: list[int]) -> None:
    prefixed = PREFIXES[name]
    streams = [[prefixed(n, line) for line in TRACEBACK.format(n=n).splitlines()] for n in range(3)]
    left = [iter(stream) for stream in streams]
    together = meanings([next(left[n]) for n in order])
    alone = set().union(*map(meanings, streams))
    assert together == alone
    assert len([one for one in alone if one[0] == "exception"]) == 3
    assert all(process is not None for _, _, _, process, _ in alone)


COUNTED_BY_ENTRY = ("journal_export", "journal_json_pretty", "journal_json_sse")


@pytest.mark.parametrize("path", [path for path in sorted(FORMATS.iterdir()) if path.stem not in COUNTED_BY_ENTRY], ids=lambda path: path.stem)  # fmt: skip
@STEADY
@given(data=st.data())
def test_a_log_that_ends_anywhere_keeps_the_events_before(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    cut = whole[: data.draw(st.integers(2, len(whole)))]
    lines = cut.count(b"\n")
    before = [meaning(event) for event in find_events(read_bytes(whole, "x")) if event.span.last < lines]
    kept = [meaning(event) for event in find_events(read_bytes(cut, "x"))] if cut.strip() else []
    assert [event for event in before if event not in kept] == []


@pytest.mark.parametrize("path", sorted(FORMATS.iterdir()), ids=lambda path: path.stem)
@STEADY
@given(data=st.data())
def test_damaged_bytes_make_no_crash(path: Path, data: st.DataObject) -> None:
    damaged = bytearray(path.read_bytes()[:8000])
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(damaged)))
        damaged[at : at + data.draw(st.integers(0, 9))] = data.draw(
            st.sampled_from(
                [b"", b"\x00", b"\xff\xfe", b"\n", b'"', b"{", b" P ", b"[0m", b"MESSAGE=", b" | ", b"\x81\x30"]
            )
        )
    log = read_bytes(b"x" + bytes(damaged), "x")
    find_events(log)
    assert all(line.number >= 1 for line in log.lines)
