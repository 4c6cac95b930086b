"""Sifting: what matters is found anywhere in a log of any size, with its own line number and its surroundings."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.logs import UnreadableLog, find_events, open_log, read_bytes, read_stream, reading, sifting

DATA = Path(__file__).parents[1] / "data" / "logs"
CRASH = b"""\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3138, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/layers/sampler.py", line 811, in forward
    probs = top_k_top_p_sampling(
            ^^^^^^^^^^^^^^^^^^^^^
RuntimeError: the sampler gave up
"""


def serving(lines: int, seed: int = 1) -> bytes:
    rng = random.Random(seed)
    return b"".join(
        b'[2026-11-28 03:%02d:%02d TP%d] Decode batch. #running-req: %d, cuda graph: True, gen throughput: %d\nINFO:     10.0.0.%d:%d - "POST /v1 HTTP/1.1" 200 OK\n'
        % (
            n // 60 % 60,
            n % 60,
            n % 8,
            rng.randrange(64),
            rng.randrange(9000),
            rng.randrange(255),
            rng.randrange(60000),
        )
        for n in range(lines // 2)
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so low that a log of a test's size is sifted, in many blocks, with ends that do not hold all of it."""
    monkeypatch.setattr(reading, "WHOLE", 20_000)
    monkeypatch.setattr(sifting, "BLOCK", 16_384)
    monkeypatch.setattr(sifting, "HEAD", 4_000)
    monkeypatch.setattr(sifting, "TAIL", 4_000)


def sifted(data: bytes, signs: tuple[str, ...] = ()) -> object:
    return read_stream(io.BytesIO(data), "big.log", signs)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("before", [0, 1, 5_000, 20_001])
def test_a_crash_is_found_whole_wherever_it_stands(before: int) -> None:
    data = serving(2 * before) + CRASH + serving(30_000, 2)
    log = read_stream(io.BytesIO(data), "big.log")
    assert len(log.lines) < 6_000
    (event,) = [event for event in find_events(log) if event.kind == "exception"]
    assert event.text == "RuntimeError: the sampler gave up"
    assert event.span.first == serving(2 * before).count(b"\n") + 1
    assert event.place.line == event.span.first + 6
    assert [frame.function for frame in event.exceptions[0].frames] == ["run_scheduler_process", "forward"]


@pytest.mark.usefixtures("small")
def test_each_kept_line_has_its_number_in_the_whole_log() -> None:
    data = (serving(9_001) + CRASH) * 4 + serving(3_000)
    whole = data.decode().split("\n")
    log = read_stream(io.BytesIO(data), "big.log")
    assert all(whole[line.number - 1] == line.raw for line in log.lines)
    assert [line.number for line in log.lines] == sorted({line.number for line in log.lines})
    assert {line.number for line in log.lines} >= {1, 2, len(whole) - 1, len(whole) - 2}


@pytest.mark.usefixtures("small")
def test_the_signs_of_causes_are_kept_though_no_reader_knows_their_words() -> None:
    line = b"[TP3] flux capacitor is at 88 mph\n"
    data = serving(9_000) + line + serving(9_000)
    assert line.decode().strip() not in [each.raw for each in read_stream(io.BytesIO(data), "x").lines]
    assert line.decode().strip() in [each.raw for each in read_stream(io.BytesIO(data), "x", ["Flux Capacitor"]).lines]


@pytest.mark.usefixtures("small")
def test_a_message_that_only_repeats_does_not_hide_the_one_that_differs() -> None:
    rng = random.Random(3)
    flood = b"".join(
        b"[2026-11-28 03:11:%02d] ERROR: request chatcmpl-%s failed: client went away\n"
        % (n % 60, "".join(rng.choices("ghijklmnopqrstuvwxyz", k=12)).encode())
        for n in range(60_000)
    )
    half = len(flood) // 2
    half = flood.find(b"\n", half) + 1
    data = flood[:half] + b"RuntimeError: CUDA error: unspecified launch failure\n" + flood[half:]
    log = read_stream(io.BytesIO(data), "x")
    assert "RuntimeError: CUDA error: unspecified launch failure" in [line.raw for line in log.lines]
    assert len(log.lines) < 30_000


@pytest.mark.usefixtures("small")
def test_every_life_keeps_its_own_error() -> None:
    start = b"[2026-11-28 03:11:00] server_args=ServerArgs(model_path='m', tp_size=8)\n"
    lives = [start + serving(400) + CRASH.replace(b"gave up", b"gave up in life %d" % n) for n in range(600)]
    log = read_stream(io.BytesIO(b"".join(lives)), "x")
    said = [line.raw for line in log.lines if line.raw.startswith("RuntimeError")]
    assert said[0].endswith("life 0")
    assert said[-1].endswith("life 599")
    assert len(said) > 550


@pytest.mark.usefixtures("small")
def test_what_is_small_is_read_as_ever_and_what_is_large_says_how_it_was_read() -> None:
    assert read_stream(io.BytesIO(CRASH), "x").lines == read_bytes(CRASH, "x").lines
    notes = " ".join(read_stream(io.BytesIO(serving(9_000)), "x").notes)
    assert "9000 lines: searched whole" in notes


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("pack", [gzip.compress, lambda data: data.decode().encode("utf-16"), lambda data: data])
def test_compression_and_encoding_come_off_in_passing(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(pack(serving(9_000) + CRASH + serving(9_000)))
    log = open_log(path)
    assert [event.text for event in find_events(log) if event.kind == "exception"] == [
        "RuntimeError: the sampler gave up"
    ]


@pytest.mark.usefixtures("small")
def test_a_large_journal_export_is_sifted_by_records() -> None:
    def record(message: bytes, n: int) -> bytes:
        body = (
            b"MESSAGE=" + message
            if b"\n" not in message
            else b"MESSAGE\n" + len(message).to_bytes(8, "little") + message
        )
        return b"__REALTIME_TIMESTAMP=%d\n_PID=7\nPRIORITY=6\n_SYSTEMD_UNIT=llm.service\n%s\n\n" % (
            1_790_000_000_000_000 + n,
            body,
        )

    records = [record(b"Decode batch. #running-req: %d" % n, n) for n in range(4_000)]
    records[2_500] = record(CRASH.strip(), 2_500)
    log = read_stream(io.BytesIO(b"".join(records)), "x")
    assert log.kind == "journal"
    assert len(log.lines) < 1_000
    (event,) = [event for event in find_events(log) if event.kind == "exception"]
    assert event.unit == "llm.service"
    assert event.place.line == 2_501


@pytest.mark.usefixtures("small")
def test_binary_data_is_refused_before_all_of_it_is_read() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            assert self.given < 50 << 20, "reads on"
            return b"\x7fELF" + random.Random(self.given).randbytes(size)

    with pytest.raises(UnreadableLog):
        read_stream(Endless(), "x")  # type: ignore[arg-type]


def test_a_file_that_grows_while_it_is_read_comes_to_an_end(tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    path.write_bytes(CRASH * 10)
    with path.open("rb") as file:

        class Growing(io.RawIOBase):
            def fileno(self) -> int:
                return file.fileno()

            def read(self, size: int = -1) -> bytes:
                with path.open("ab") as writer:
                    writer.write(serving(100))
                return file.read(size)

        assert len(read_stream(Growing(), "x").lines) == 70  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "blocks",
    [
        lambda: (b"x" * (1 << 18) for _ in range(24)),
        lambda: (b"loading\r" * (1 << 15) for _ in range(24)),
        lambda: (CRASH * 600 for _ in range(24)),
        lambda: (b"".join(b"error %d\n" % (n * 1_000_003 + m) for m in range(4_000)) for n in range(24)),
        lambda: (
            b"".join(b"error %x\n" % random.Random(n * m).getrandbits(99) for m in range(3_000)) for n in range(24)
        ),
        lambda: (b"\n" * (1 << 16) for _ in range(24)),
    ],
    ids=["one line", "progress", "tracebacks", "numbers", "distinct lines", "empty lines"],
)
def test_memory_stays_small_whatever_comes(
    blocks: Callable[[], Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sifting, "BLOCK", 1 << 18)
    for name in ("EARLY", "LATE", "FIRSTS", "HEAD", "TAIL"):
        monkeypatch.setattr(sifting, name, getattr(sifting, name) // 16)
    made = list(blocks())  # before memory is counted: it is not the sifter's
    tracemalloc.start()
    kept = sifting.sift(iter(made), ["error", "traceback", 'file "'])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 << 20
    assert all(len(line) <= sifting.MAX_RAW + 16 for line in kept.lines)
    assert sum(map(len, kept.lines)) < 5 << 20


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=60), max_size=60), st.integers(1, 50), st.integers(1, 7))
def test_any_bytes_in_any_blocks_give_the_lines_that_hold_a_literal(lines: list[bytes], every: int, size: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    lines = [line + b"needle" if at % every == 0 else line for at, line in enumerate(lines)]
    data = b"\n".join(lines)
    kept = sifting.sift((data[at : at + size] for at in range(0, len(data), size)), ["needle"])
    by_number = dict(zip(kept.numbers, kept.lines, strict=True))
    for number, line in enumerate(lines, 1):
        if b"needle" in line:
            assert by_number[number] == line


def test_blocks_do_not_matter() -> None:
    data = (serving(2_000) + CRASH) * 3
    wanted = ["error", "traceback", 'file "']
    one = sifting.sift([data], wanted)
    for size in (1, 977, 65_536):
        assert sifting.sift((data[at : at + size] for at in range(0, len(data), size)), wanted) == one
