"""Containers and entries: what stands in the headers, and what is done about headers that lie."""

from __future__ import annotations

import struct

import pytest
from tests.binaries.truth import HERE
from tests.binaries.writing import CUBIN, DEBUG, EXACT, FAMILY, LTO, LZ4, PTX, ZSTD, container, entry

from gpuwhy.binaries.fatbin import MAGIC, compatibility, read_fatbins
from gpuwhy.binaries.reading import FileSource, MemorySource, Source


def read(data: bytes) -> tuple[list[list[str]], tuple[str, ...]]:
    found = read_fatbins(MemorySource(data), 0, len(data))
    return [[image.code.architecture for image in each.images] for each in found.containers], found.problems


@pytest.mark.parametrize(
    ("made", "architecture", "version", "compression"),
    [
        (entry(CUBIN, 90, EXACT), "sm_90a", "1.7", ""),
        (entry(CUBIN, 120, FAMILY | ZSTD, (1, 8), packed=60, size=900), "sm_120f", "1.8", "zstd"),
        (entry(PTX, 80, LZ4, (8, 7), packed=60, size=900), "compute_80", "8.7", "lz4"),
        (entry(PTX, 103, FAMILY, (9, 0)), "compute_103f", "9.0", ""),
        (entry(LTO, 90, EXACT), "lto_90a", "1.7", ""),
        (entry(0x40, 80, version=(9, 5)), "compute_80", "9.5", ""),
        (entry(0x80, 100, version=(0x0D05, 0)), "tile_100", "13.5", ""),
        (entry(0x20, 130), "unknown_0x20_130", "1.7", ""),
    ],
)
def test_an_entry_says_what_it_is(made: bytes, architecture: str, version: str, compression: str) -> None:
    data = container(made)
    (only,) = read_fatbins(MemorySource(data), 0, len(data)).containers
    (image,) = only.images
    assert (image.code.architecture, image.code.version, image.code.compression) == (architecture, version, compression)
    assert only.is_whole


def test_debug_code_is_told() -> None:
    data = container(entry(flags=DEBUG), entry())
    (only,) = read_fatbins(MemorySource(data), 0, len(data)).containers
    assert [image.code.is_debug for image in only.images] == [True, False]


def test_containers_stay_apart_with_padding_or_other_bytes_between_them() -> None:
    data = (
        container(entry(arch=80))
        + bytes(24)
        + container(entry(arch=90), entry(arch=120))
        + b"gap" * 4000
        + container(entry(arch=75))
    )
    assert read(data) == ([["sm_80"], ["sm_90", "sm_120"], ["sm_75"]], ())
    assert read_fatbins(MemorySource(data), 0, len(data)).gap_bytes == 12000


def test_the_magic_alone_is_no_container() -> None:
    assert read(MAGIC[:4] + bytes(200)) == ([], ())


def test_a_cut_file_still_names_the_image_that_was_cut() -> None:
    data = container(entry(arch=80), entry(arch=120, payload=bytes(4096)))[:-2000]
    (found,), problems = read(data)
    assert found == ["sm_80", "sm_120"]
    assert problems


@pytest.mark.parametrize(
    "lie",
    [
        entry(header=8),
        entry(header=0),
        entry(stored=1 << 62),
        entry(stored=(1 << 64) - 1),
        entry(stored=(1 << 64) - 64),
        entry(header=(1 << 32) - 1),
    ],
)
def test_an_entry_whose_sizes_lie_ends_its_container_and_no_other(lie: bytes) -> None:
    containers, problems = read(container(entry(arch=80), lie, entry(arch=90)) + container(entry(arch=120)))
    assert containers[0] == ["sm_80"]
    assert containers[-1] == ["sm_120"]
    assert problems


@pytest.mark.parametrize("size", [1 << 32, (1 << 64) - 1, 100])
def test_a_container_whose_size_lies_hides_no_later_one(size: int) -> None:
    containers, problems = read(container(entry(arch=80), size=size) + container(entry(arch=120)))
    assert ["sm_120"] in containers
    assert problems


def test_a_container_without_entries_is_one() -> None:
    assert read(container() + container(entry(arch=90))) == ([[], ["sm_90"]], ())


def test_a_tile_cubin_says_only_in_its_tail_that_it_is_for_one_chip() -> None:
    def tail(value: int) -> bytes:
        return struct.pack("<II", 72, 8) + b"\0" + bytes([2, 9, value, 0, 2, 12, 0, 0]) + bytes(7)

    data = container(
        entry(CUBIN, 120, tail=tail(1)), entry(CUBIN, 120, tail=tail(0)), entry(CUBIN, 120, FAMILY, tail=tail(0))
    )
    assert read(data) == ([["sm_120a", "sm_120", "sm_120f"]], ())


def test_attributes_are_read_over_values_of_any_length() -> None:
    section = (
        bytes.fromhex("020901000 20c0000".replace(" ", "")) + bytes([4, 11, 8, 0]) + bytes(8) + bytes([3, 14, 0x40, 4])
    )
    assert compatibility(section) == {9: 1, 12: 0, 11: 8, 14: 0x440}


def test_attributes_that_claim_more_than_there_is_end() -> None:
    assert compatibility(bytes([4, 11, 255, 255])) == {11: 0xFFFF}


def test_only_headers_are_read() -> None:
    class Counting(Source):
        def __init__(self, inner: Source) -> None:
            self.inner, self.size, self.read = inner, inner.size, 0

        def read_at(self, offset: int, count: int) -> bytes:
            data = self.inner.read_at(offset, count)
            self.read += len(data)
            return data

    data = container(*[entry(arch=80, payload=bytes(1 << 20)) for _ in range(16)])
    source = Counting(MemorySource(data))
    assert len(read_fatbins(source, 0, len(data)).containers[0].images) == 16
    assert source.read < 8192


def test_a_concatenated_entry_gives_each_image_with_the_place_of_its_payload() -> None:
    with FileSource(str(HERE / "concat.fatbin")) as source:
        (only,) = read_fatbins(source, 0, source.size).containers
    assert len(only.images) == 9
    assert all(image.inside >= 0 for image in only.images if image.code.kind == "cubin")
