"""Hostile and damaged input: never a crash, never a control character, never more than a second."""

from __future__ import annotations

import contextlib
import re
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwhy.logs import UnreadableLog, facts_in, find_events, find_incidents, journal_lines, read_bytes, read_report
from gpuwhy.model.event import Event, Log

DATA = Path(__file__).parents[1] / "data" / "logs"
SEEDS = [path.read_bytes() for path in sorted(DATA.iterdir()) if path.is_file()]
HARMFUL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SECONDS = 1.0
STEADY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def examine(log: Log) -> None:
    events = find_events(log)
    incident = find_incidents([log])
    facts = facts_in(log)
    for line in log.lines:
        assert HARMFUL.search(line.text) is None
        assert HARMFUL.search(line.raw) is None
        assert line.process is None or HARMFUL.search(line.process.name + line.process.host) is None
    for event in (*events, *incident.events):
        assert HARMFUL.search(event.text.replace("\n", "")) is None
        assert 1 <= event.span.first <= event.span.last
    for fact in facts:
        assert HARMFUL.search(fact.evidence.quote) is None


def survives(data: bytes) -> None:
    begin = time.process_time()
    with contextlib.suppress(UnreadableLog):
        examine(read_bytes(data, "hostile"))
    assert time.process_time() - begin < SECONDS


@STEADY
@given(st.data())
def test_mutated_logs(data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(SEEDS))
    begin = data.draw(st.integers(0, len(seed) - 1))
    piece = bytearray(seed[begin : begin + data.draw(st.integers(1, 40_000))])
    for _ in range(data.draw(st.integers(0, 12))):
        at = data.draw(st.integers(0, len(piece)))
        what = data.draw(
            st.sampled_from(
                [b"\x00", b"\x1b[31m", b"\x1b]0;x\x07", b"\r", b"\n", b"\xff", b"\xe2\x80\xae", b"(", b"[", b"{", b'"', b"> ", b"```\n", b"&#27;", b"&#x9b;", b"\\u001b", b" | "]
            )
        )  # fmt: skip
        piece[at:at] = what
    survives(bytes(piece))


@STEADY
@given(st.binary(max_size=4000))
def test_arbitrary_bytes(data: bytes) -> None:
    survives(data)


@STEADY
@given(st.text(max_size=2000))
def test_arbitrary_text(text: str) -> None:
    examine(read_report(text))


@STEADY
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["MESSAGE", "__REALTIME_TIMESTAMP", "_PID", "_COMM", "UNIT", "PRIORITY", "_TRANSPORT", "_HOSTNAME", "SYSLOG_IDENTIFIER"]),
            st.none() | st.text(max_size=60) | st.integers() | st.floats() | st.lists(st.integers(-10, 400), max_size=40) | st.booleans(),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_arbitrary_journal_entries(entries: list[dict[str, object]]) -> None:
    examine(journal_lines(entries))


FRAGMENTS = [
    "(",
    "(a ",
    "[",
    "[0] ",
    " ",
    "\t",
    "'\\",
    '"',
    'File "x", line 1, in f ',
    '  File "',
    "error: ",
    "ld: ",
    "nvcc ",
    "x.cu:1: ",
    "Traceback (most recent call last):",
    "oom-kill:constraint=A",
    "a=b,",
    "Error",
    "RuntimeError: ",
    "aA.",
    "2026-01-01 00:00:00 ",
    "INFO ",
    "ERROR:",
    "> ",
    "|",
    "| ",
    "<br>",
    "<details ",
    "&lt;",
    "`",
    "█",
    "Xid (",
    "a" * 50,
    "0",
    "1.",
    ":",
    "/a",
    "-",
    "FAILED: ",
    "GPU 0: NVIDIA A",
    "env A=b ",
    "$ export A=",
    "ServerArgs(",
    "(" * 40,
    "[" * 40,
    '{"log":"',
    '{"a":' * 20,
    "ServerArgs(" + "(" * 60,
    "Warning: ",
    "capability ",
    "exit code ",
]


@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize("shape", ["one line", "many lines", "growing lines"])
def test_repetition_costs_no_more_than_its_length(fragment: str, shape: str) -> None:
    if shape == "one line":
        text = fragment * (200_000 // len(fragment))
    elif shape == "many lines":
        text = (fragment * (1000 // len(fragment)) + "\n") * 100
    else:
        text = "\n".join(fragment * at for at in range(1, 200 if len(fragment) < 20 else 40))
    survives(text.encode())


def rank(number: int, text: str) -> str:
    prefix = f"(Worker_TP{number} pid=10{number}) ERROR 08-03 17:45:4{number} [core.py:700] "
    return textwrap.indent(text, prefix, lambda _: True)


TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/a.py", line {n}, in a
    b()
    ~^^
  File "/opt/b.py", line 108, in b
    raise RuntimeError("boom {n}")
RuntimeError: boom {n}
second line of the message {n}
nvcc fatal   : Unsupported gpu architecture 'compute_12{n}'
"""


def meaning(event: Event) -> tuple[object, ...]:
    blocks = tuple((block.type, block.message, block.frames, block.link) for block in event.exceptions)
    return (event.kind, event.tool, event.text, event.process, blocks)


@STEADY
@given(st.permutations([0] * 9 + [1] * 9 + [2] * 9))
def test_any_interleaving_of_streams_gives_their_events(order: list[int]) -> None:
    streams = [rank(number, TRACEBACK.format(n=number)).splitlines() for number in range(3)]
    positions = [0, 0, 0]
    lines = []
    for number in order:
        lines.append(streams[number][positions[number]])
        positions[number] += 1
    together = {meaning(event) for event in find_events(read_bytes("\n".join(lines).encode(), "x"))}
    alone = {meaning(event) for stream in streams for event in find_events(read_bytes("\n".join(stream).encode(), "x"))}
    assert together == alone


@STEADY
@given(st.integers(2, 98))
def test_cutting_a_log_keeps_the_events_before_the_cut(kept: int) -> None:
    whole = (DATA / "sglang.log").read_text().splitlines()
    full = find_events(read_bytes("\n".join(whole).encode(), "x"))
    cut = find_events(read_bytes("\n".join(whole[:kept]).encode(), "x"))
    before = [event.text for event in full if event.span.last < kept]
    assert [event.text for event in cut][: len(before)] == before
