"""Cubins: the architecture from flags, attributes, notes or the name, and cubins that stand bare in data."""

from __future__ import annotations

import struct

import pytest
from tests.binaries.truth import HERE
from tests.binaries.writing import Part, elf

from gpuwhy.binaries.cubin import bare_cubins, kernel_names, read_cubin
from gpuwhy.binaries.elf import Elf, NotElf
from gpuwhy.binaries.reading import FileSource, MemorySource


@pytest.mark.parametrize(
    ("name", "architecture", "shown_by", "toolkit"),
    [
        ("ptxas129_sm_50.cubin", "sm_50", "", ""),
        ("ptxas129_sm_90a.cubin", "sm_90a", "flags", ""),
        ("ptxas129_sm_101.cubin", "sm_101", "", "12.9"),
        ("ptxas129_sm_120a.cubin", "sm_120a", "flags", "12.9"),
        ("ptxas129_sm_120f.cubin", "sm_120f", ".note.nv.tkinfo", "12.9"),
        ("ptxas135_sm_100f.cubin", "sm_100f", ".note.nv.tkinfo", "13.5"),
        ("ptxas135_sm_120.cubin", "sm_120", "", "13.5"),
        ("ptxas135_sm_120a.cubin", "sm_120a", ".note.nv.tkinfo", "13.5"),
    ],
)
def test_each_place_of_a_suffix(name: str, architecture: str, shown_by: str, toolkit: str) -> None:
    with FileSource(str(HERE / name)) as source:
        cubin = read_cubin(source)
    assert (cubin.code.architecture, cubin.suffix_shown_by, cubin.toolkit) == (architecture, shown_by, toolkit)
    assert cubin.is_whole


def cubin_bytes(flags: int, *parts: Part, abi: int = 8) -> bytes:
    return elf(Part(".text.kk", bytes(64)), *parts, machine=190, kind=2, flags=flags, os_abi=0x41, abi_version=abi)


def test_without_a_note_the_attribute_tells_a() -> None:
    made = cubin_bytes(0x6007802, Part(".nv.compat", bytes.fromhex("0209010002 0c0000".replace(" ", ""))))
    cubin = read_cubin(MemorySource(made, "k_sm120f.cubin"))
    assert (cubin.code.architecture, cubin.suffix_shown_by) == ("sm_120a", ".nv.compat")


@pytest.mark.parametrize(
    ("name", "architecture"), [("fmha_sm100f.cubin", "sm_100f"), ("sm_103f/k.cubin", "sm_100"), ("k.cubin", "sm_100")]
)
def test_without_any_sign_inside_the_file_name_tells_f(name: str, architecture: str) -> None:
    made = cubin_bytes(0x6006402)
    assert read_cubin(MemorySource(made, name)).code.architecture == architecture


def test_a_note_without_a_target_leaves_the_family_to_the_file_name() -> None:
    text = b"nvasm_internal\0Cuda compilation tools, release 12.9, V12.9.90\0-gen-opext no\0"
    note = struct.pack("<III", 12, len(text), 2000) + b"NVIDIA Corp\0" + text
    made = cubin_bytes(0x6006402, Part(".note.nv.tkinfo", note, 7, 0))
    cubin = read_cubin(MemorySource(made, "bmm_sm100f.cubin"))
    assert (cubin.code.architecture, cubin.suffix_shown_by, cubin.toolkit) == ("sm_100f", "file name", "12.9")
    told = note.replace(b"-gen-opext no", b"-arch sm_100\0")
    plain = read_cubin(MemorySource(cubin_bytes(0x6006402, Part(".note.nv.tkinfo", told, 7, 0)), "bmm_sm100f.cubin"))
    assert (plain.code.architecture, plain.suffix_shown_by) == ("sm_100", "")


def test_kernels_are_the_text_sections() -> None:
    assert kernel_names(Elf(MemorySource(cubin_bytes(0x6007802)))) == ["kk"]


def test_cubins_in_data_are_found_where_they_stand_and_whole() -> None:
    one, two = cubin_bytes(0x6007802), (HERE / "ptxas129_sm_90a.cubin").read_bytes()
    data = bytes(100) + one + bytes(33) + b"\x7fELF\x02\x01\x01" + bytes(300) + two + bytes(50)
    found = bare_cubins(MemorySource(data), 0, len(data))
    assert [(each.code.architecture, each.offset, each.size) for each in found] == [
        ("sm_120", 100, len(one)),
        ("sm_90a", len(data) - 50 - len(two), len(two)),
    ]


def test_another_elf_is_no_cubin() -> None:
    with pytest.raises(NotElf):
        read_cubin(MemorySource(elf(Part(".text", bytes(16)))))
