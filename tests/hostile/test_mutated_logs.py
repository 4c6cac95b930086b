"""Mutated logs never crash the diagnosis, never reach the terminal as control characters, never take long.

1,000 mutations in the ordinary run, 10,000 in ``make soak``; the seed of a failing one is in its message.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwhy.investigate import diagnose_log
from gpuwhy.logs import UnreadableLog
from gpuwhy.remedies import prescribe
from gpuwhy.reports import render

LOGS = sorted(path for path in (Path(__file__).parents[1] / "data" / "logs").iterdir() if path.is_file())
SECONDS_ALLOWED = 1.0
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and newline, and those that reorder text."""


def truncated(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randrange(len(data))
    return data[begin : begin + rng.randrange(1, 60_000)]


def with_bytes_changed(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 200)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def with_lines_shuffled(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    begin = rng.randrange(len(lines))
    part = lines[begin : begin + 60]
    rng.shuffle(part)
    return b"".join(lines[:begin] + part + lines[begin + 60 :])


def with_lines_repeated(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(line * rng.choice((1, 1, 1, 5)) for line in lines)


def with_escapes(data: bytes, rng: random.Random) -> bytes:
    escapes = (b"\x1b[31m", b"\x1b]0;title\x07", b"\x1b]8;;http://x\x1b\\", b"\x00", b"\x9b2J", b"\r", b"\x08" * 9,
               "\u202e".encode(), b"\xff\xfe", b"\x1b[2J\x1b[H", b"\x1bP1$r\x1b\\")  # fmt: skip
    pieces = re.split(rb"(?<=[ \n])", data)
    return b"".join(rng.choice(escapes) + piece if rng.random() < 0.05 else piece for piece in pieces)


def with_a_huge_line(data: bytes, rng: random.Random) -> bytes:
    filler = rng.choice((b"a", b" ", b"(", b"[0] ", b"'\\", b'File "x", line 1, in f ', b"error: "))
    at = rng.randrange(len(data))
    return data[:at] + filler * (rng.randrange(100_000, 400_000) // len(filler)) + data[at:]


def interleaved(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    half = len(lines) // 2
    first, second = iter(lines[:half]), iter(lines[half:])
    mixed: list[bytes] = []
    for _ in lines:
        mixed.append(next(first if rng.random() < 0.5 else second, b""))
    return b"".join(mixed)


def in_another_encoding(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "latin-1", "cp1252", "utf-32", "utf-7")), "replace")


def with_tokens_swapped(data: bytes, rng: random.Random) -> bytes:
    words = re.split(rb"(\s+)", data)
    for _ in range(50):
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        words[i], words[j] = words[j], words[i]
    return b"".join(words)


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncated, with_bytes_changed, with_lines_shuffled, with_lines_repeated, with_escapes, with_a_huge_line, interleaved,
    in_another_encoding, with_tokens_swapped,
)  # fmt: skip


def mutated(seed: int) -> Iterator[tuple[str, bytes]]:
    """One or two mutations of one log, all decided by the seed."""
    rng = random.Random(seed)
    path = rng.choice(LOGS)
    data = path.read_bytes()
    names = [path.name]
    for mutate in rng.sample(MUTATIONS, rng.choice((1, 1, 2))):
        data = mutate(data, rng) or b"x"
        names.append(mutate.__name__)
    yield " + ".join(names), data


def check(seed: int) -> None:
    for name, data in mutated(seed):
        begun = time.process_time()
        try:
            diagnosis = prescribe(diagnose_log(data, "mutated.log"))
        except UnreadableLog as error:
            refusal = str(error)
            assert not FORBIDDEN.search(refusal), f"seed {seed}: {name}"
            return
        shown = render(diagnosis, "text") + render(diagnosis, "json")
        took = time.process_time() - begun
        found = FORBIDDEN.search(shown)
        assert found is None, f"seed {seed}: {name}: {shown[max(0, found.start() - 80) : found.end() + 20]!r}"
        assert took < SECONDS_ALLOWED, f"seed {seed}: {name} took {took:.2f} s"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Loads the catalogue and the reports first: importing them is no work on the log that happens to be the first."""
    diagnosis = prescribe(diagnose_log(LOGS[0].read_bytes(), LOGS[0].name))
    render(diagnosis, "text")
    render(diagnosis, "json")


@pytest.mark.parametrize("block", range(10))
def test_five_hundred_mutations(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        check(seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("block", range(20))
def test_ten_thousand_mutations(block: int) -> None:
    for seed in range(500 + block * 500, 500 + block * 500 + 500):
        check(seed)
