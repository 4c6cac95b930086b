"""Mutated binaries never crash a reader, never take long, and never turn code into a certain "no code".

2,000 mutations in the ordinary run, 20,000 in ``make soak``; the seed of a failing one is in its message.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from functools import cache

import msgspec
import pytest
from tests.binaries.truth import Known, known_files
from tests.binaries.writing import Part, archive, container, elf, entry, library

from gpuwhy.binaries.code_sets import code_sets
from gpuwhy.binaries.examining import Binary, examine
from gpuwhy.binaries.reading import MemorySource
from gpuwhy.binaries.sieve import Sieve
from gpuwhy.investigate.binary_summary import summary
from gpuwhy.investigate.binary_verdict import verdict
from gpuwhy.investigate.kernels import find_kernels
from gpuwhy.knowledge.capability import ComputeCapability
from gpuwhy.model.inspection import Inspection
from gpuwhy.reports import binaries_json
from gpuwhy.reports.binaries import render

SECONDS_ALLOWED = 0.25
GPU = ComputeCapability(12, 0)
INTERESTING = (
    0,
    1,
    7,
    8,
    63,
    64,
    0x7F,
    0xFF,
    0x100,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    0xFFFFFFF8,
    1 << 62,
    (1 << 64) - 1,
)


@cache
def samples() -> tuple[tuple[str, bytes], ...]:
    code = container(entry(arch=80), entry(1, 90, version=(8, 7))) + container(entry(arch=120))
    made = library(
        ("libcudart.so.12",),
        ("cudaMalloc",),
        ("run",),
        extra=(Part(".nv_fatbin", code), Part(".rodata", bytes(200) + elf(machine=190, kind=2))),
    )
    small = tuple(
        (known.path.name, known.path.read_bytes()) for known in known_files() if known.path.stat().st_size < 60_000
    )
    return (
        *small,
        ("made.so", made),
        ("made.a", archive(("one.o", made), ("two.o", elf(Part(".nv_fatbin", code), kind=1)))),
    )


def with_bytes_changed(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 40)):
        data[rng.randrange(len(data))] = rng.randrange(256)


def with_numbers_that_lie(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 12)):
        form = rng.choice(["<H", "<I", "<Q"])
        at = rng.randrange(max(1, len(data) - 8)) & ~3
        struct.pack_into(form, data, at, rng.choice(INTERESTING) & ((1 << 8 * struct.calcsize(form)) - 1))


def with_headers_that_lie(data: bytearray, rng: random.Random) -> None:
    """The first bytes, the section table and the containers are where sizes stand."""
    places = [rng.randrange(0, 64), struct.unpack_from("<Q", data, 40)[0] + rng.randrange(64 * 40)]
    at = data.find(b"\x50\xed\x55\xba")
    places += [at + rng.randrange(120)] if at >= 0 else []
    for place in places:
        if place + 8 < len(data):
            struct.pack_into("<Q", data, place, rng.choice(INTERESTING))


def cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def with_a_part_repeated(data: bytearray, rng: random.Random) -> None:
    begin = rng.randrange(len(data))
    data[begin:begin] = data[begin : begin + rng.randrange(1, 4000)] * rng.randrange(1, 8)


def with_a_part_removed(data: bytearray, rng: random.Random) -> None:
    begin = rng.randrange(len(data))
    del data[begin : begin + rng.randrange(1, 4000)]


MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    with_bytes_changed, with_numbers_that_lie, with_headers_that_lie, cut, with_a_part_repeated, with_a_part_removed,
)  # fmt: skip


def reported(binary: Binary) -> None:
    """What ``gpuwhy inspect`` makes of it: counts, a verdict, both reports; and the kernels of some containers."""
    sets = code_sets(binary)
    judged = verdict(binary, sets, GPU, "570.86")
    assert judged.runs is not False or binary.is_complete or judged.outcome.value == "driver-too-old"
    file = msgspec.structs.replace(summary(binary, sets), verdict=judged)
    for text in (render(Inspection((file,)), verbose=True), binaries_json.render(Inspection((file,)))):
        assert text.isprintable() or not any(ord(character) < 32 and character != "\n" for character in text)


def streamed(data: bytes, name: str, rng: random.Random) -> Binary:
    sieve, at = Sieve(name, len(data)), 0
    while at < len(data):
        step = rng.randrange(1, 9000)
        sieve.feed(data[at : at + step])
        at += step
    return examine(sieve.result(), name)


def check(seed: int) -> None:
    rng = random.Random(seed)
    name, whole = rng.choice(samples())
    data = bytearray(whole)
    for mutate in rng.sample(MUTATIONS, rng.randrange(1, 3)):
        if len(data) > 64:
            mutate(data, rng)
    # a busy machine is no fault of the reader's: the quicker of two counts
    took = []
    for _ in range(2):
        begun = time.process_time()
        binary = examine(MemorySource(bytes(data), name))
        took.append(time.process_time() - begun)
        if took[-1] < SECONDS_ALLOWED:
            break
    assert min(took) < SECONDS_ALLOWED, f"seed {seed}: {name} took {min(took):.3f} s"
    try:
        reported(binary)
        find_kernels(MemorySource(bytes(data)), binary, "k", GPU, "")
    except Exception as error:
        error.add_note(f"seed {seed}") if hasattr(error, "add_note") else None
        raise
    if seed % 5 == 0:
        assert streamed(bytes(data), name, rng).name == name, f"seed {seed}"


@pytest.mark.parametrize("block", range(20))
def test_two_thousand_mutations(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        check(seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("block", range(20))
def test_twenty_thousand_mutations(block: int) -> None:
    for seed in range(20_000 + block * 1000, 20_000 + block * 1000 + 1000):
        check(seed)


@pytest.mark.parametrize("known", known_files(), ids=lambda known: known.path.name)
def test_a_file_cut_anywhere_is_never_said_to_have_no_code_for_certain(known: Known) -> None:
    path = known.path
    data = path.read_bytes()
    for part in range(1, 12):
        binary = examine(MemorySource(data[: len(data) * part // 12], path.name))
        assert not (binary.is_complete and binary.device.is_empty()), (path.name, part)


@pytest.mark.parametrize("repeats", [1, 200_000])
def test_a_million_empty_containers_end(repeats: int) -> None:
    data = container() * repeats
    begun = time.process_time()
    binary = examine(MemorySource(data, "many.fatbin"))
    assert time.process_time() - begun < 5
    assert len(binary.device.groups[0].containers) == min(repeats, 200_000)


def test_version_tables_that_loop_end() -> None:
    """A step of zero or back into itself."""
    made = bytearray(library(("libc.so.6",), ("malloc",)))
    for at in range(0, len(made) - 16, 8):
        changed = bytearray(made)
        struct.pack_into("<qQ", changed, at, 0x6FFFFFFE, 64)
        struct.pack_into("<Q", changed, 72, 0x0001000000010001)
        begun = time.process_time()
        examine(MemorySource(bytes(changed), "loop.so"))
        assert time.process_time() - begun < 1
