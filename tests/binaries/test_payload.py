"""Payloads: LZ4 decoded here, zstd by what is handed in, and the kernels that they name."""

from __future__ import annotations

import pytest
from tests.binaries.truth import HERE
from tests.binaries.writing import CUBIN, PTX, ZSTD, container, entry

from gpuwhy.binaries.fatbin import read_fatbins
from gpuwhy.binaries.payload import Packed, kernels_of, payload_of, ptx_entries, toolkit_of, unpack_lz4
from gpuwhy.binaries.reading import FileSource, MemorySource
from gpuwhy.investigate.kernels import unpack_zstd


@pytest.mark.parametrize(
    "name", ["compress_all_lz4.fatbin", "mode_size.fatbin", "concat.fatbin", "all_f.fatbin", "rdc.fatbin"]
)
def test_every_payload_is_what_its_header_says(name: str) -> None:
    with FileSource(str(HERE / name)) as source:
        for container_ in read_fatbins(source, 0, source.size).containers:
            for image in container_.images:
                data = payload_of(source, image, unpack_zstd)
                if image.code.kind == "cubin":
                    assert data[:4] == b"\x7fELF"
                    assert int.from_bytes(data[48:52], "little") >> 8 & 0xFF == image.code.arch
                else:
                    target = f".target sm_{image.code.arch}{image.code.suffix}".encode()
                    assert target in data[:4096]


@pytest.mark.parametrize("name", ["compress_all_lz4.fatbin", "mode_size.fatbin", "concat.fatbin"])
def test_kernels_of_a_container(name: str) -> None:
    with FileSource(str(HERE / name)) as source:
        (only,) = read_fatbins(source, 0, source.size).containers
        assert sorted(kernels_of(source, only, unpack_zstd)) == ["_Z1kPff", "_Z2k2Pf"]
        cubin = next(image for image in only.images if image.code.kind == "cubin")
        assert toolkit_of(source, cubin, unpack_zstd) == "13.5"


def test_kernels_of_a_container_of_ptx_alone() -> None:
    data = container(entry(PTX, 80, payload=b".version 8.0\n.target sm_80\n.visible .entry _Z1kPf(\n.param .u64 p)\n"))
    (only,) = read_fatbins(MemorySource(data), 0, len(data)).containers
    assert kernels_of(MemorySource(data), only) == ["_Z1kPf"]
    assert ptx_entries(b".entry a() .entry\n b(") == ["a", "b"]


def test_lz4_repeats_what_it_has_just_written() -> None:
    assert unpack_lz4(bytes([0x2B]) + b"ab" + bytes([2, 0, 0x10]) + b"!", 18) == b"ab" + b"ab" * 7 + b"a" + b"!"


@pytest.mark.parametrize(
    "block", [b"\xf0", b"\x50ab", b"\x10a\x05\x00", b"\x10a\x00\x00", b"\x1fa\x01\x00\xff\xff", b"\xff\xff\xff\xff"]
)
def test_lz4_that_lies_is_refused(block: bytes) -> None:
    with pytest.raises(Packed):
        unpack_lz4(block, 1000)


def test_a_payload_that_claims_too_much_is_not_unpacked() -> None:
    data = container(entry(CUBIN, 80, ZSTD, payload=b"\x28\xb5\x2f\xfd" + bytes(60), packed=60, size=1 << 40))
    (only,) = read_fatbins(MemorySource(data), 0, len(data)).containers
    with pytest.raises(Packed, match="claims"):
        payload_of(MemorySource(data), only.images[0], unpack_zstd)


def test_without_a_decoder_for_zstd_that_is_said() -> None:
    data = container(entry(CUBIN, 80, ZSTD, payload=bytes(64), packed=60, size=100))
    (only,) = read_fatbins(MemorySource(data), 0, len(data)).containers
    with pytest.raises(Packed, match="zstd"):
        kernels_of(MemorySource(data), only)
    with pytest.raises(Packed):
        kernels_of(MemorySource(data), only, unpack_zstd)
