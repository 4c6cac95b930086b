"""What a file is, and everything that is told of it."""

from __future__ import annotations

import pytest
from tests.binaries.truth import HERE, images_of
from tests.binaries.writing import CUBIN, PTX, Part, archive, container, elf, entry, library

from gpuwhy.binaries.device_code import REGISTERED, RELOCATABLE, RESOURCE
from gpuwhy.binaries.examining import Binary, examine
from gpuwhy.binaries.reading import FileSource, MemorySource, Unreadable


def read(data: bytes, name: str = "file") -> Binary:
    return examine(MemorySource(data, name))


CODE = container(entry(arch=80), entry(PTX, 80, version=(8, 7)))


def test_code_is_told_apart_by_what_loads_it() -> None:
    made = library(
        ("libcudart.so.12",),
        extra=(
            Part(".nv_fatbin", CODE + CODE),
            Part("__nv_relfatbin", container(entry(PTX, 90))),
            Part(".cask_resource", container(entry(CUBIN, 100)) + bytes(8) + container(entry(CUBIN, 103))),
            Part(".nvFatBinSegment", bytes(72)),
            Part(".rodata", bytes(64) + (HERE / "ptxas129_sm_90a.cubin").read_bytes()),
        ),
    )
    device = read(made).device
    assert [len(list(device.containers(role))) for role in (REGISTERED, RELOCATABLE, RESOURCE)] == [2, 1, 2]
    assert device.wrappers == 3
    assert [cubin.code.architecture for cubin in device.cubins] == ["sm_90a"]
    assert not device.problems


def test_fewer_containers_than_are_registered_is_incomplete() -> None:
    made = read(library(extra=(Part(".nv_fatbin", CODE), Part(".nvFatBinSegment", bytes(48)))))
    assert not made.is_complete
    assert "2 containers are registered, 1 were found" in made.device.problems


def test_a_file_for_a_debugger_has_no_code_of_its_own_and_says_so() -> None:
    made = read(library(extra=(Part(".nv_fatbin", CODE, kind=8), Part(".nvFatBinSegment", bytes(24), kind=8))))
    assert made.device.is_empty()
    assert not made.is_complete
    assert "another file" in made.device.problems[0]


def test_code_in_a_section_of_another_name_is_found_where_the_host_code_registers_it() -> None:
    hidden = Part(".renamed", bytes(40) + CODE)
    found = read(library(undefined=("__cudaRegisterFatBinary",), extra=(hidden,)))
    assert images_of(found) == {"elf:sm_80": 1, "ptx:compute_80": 1}
    assert not found.is_complete
    assert read(library(extra=(hidden,))).device.is_empty()


def test_section_names_that_are_lost_cost_nothing_but_certainty() -> None:
    data = bytearray((HERE / "libk.so").read_bytes())
    data[62:64] = bytes(2)
    made = read(bytes(data))
    assert images_of(made)["elf:sm_120f"] == 2
    assert not made.is_complete


def test_large_data_is_searched_on_request_only_and_that_is_told() -> None:
    data = elf(Part(".nv_fatbin", CODE), Part(".rodata", bytes(5000) + (HERE / "ptxas129_sm_90a.cubin").read_bytes()))
    made = examine(MemorySource(data), "lib.so", searches=4000)
    assert made.device.unsearched == (".rodata",)
    assert made.is_complete
    assert len(read(data).device.cubins) == 1


def test_an_archive_keeps_its_members_apart() -> None:
    data = archive(
        ("a.o", elf(Part(".nv_fatbin", CODE), kind=1)),
        ("note.txt", b"hello"),
        ("b.o", elf(Part(".nv_fatbin", CODE), kind=1)),
    )
    made = read(data, "lib.a")
    assert made.kind == "archive"
    groups = made.device.groups
    assert [group.member for group in groups] == ["a.o", "b.o"]
    for group in groups:
        at = group.base + group.containers[0].offset
        assert data[at : at + 4] == b"\x50\xed\x55\xba"


def test_an_archive_that_was_cut_is_incomplete() -> None:
    data = archive(("a.o", elf(Part(".nv_fatbin", CODE), kind=1)))
    assert not read(data[:-40]).is_complete


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"// comment\n.version 8.7\n.target sm_120a, debug\n.address_size 64\n", "ptx"),
        (CODE, "fatbin"),
        (b"", "unknown"),
        (b"MZ" + bytes(100), "foreign program"),
        (b"PK\x03\x04" + bytes(100), "unknown"),
        (b"#!/bin/sh\ncat <<K\n.version 7.8\n.target sm_75\nK\n", "text"),
        (b"/* GNU ld script */\nINPUT(libncursesw.so.6)\n", "text"),
        (b"\x7fELF", "unknown"),
        (b"!<thin>\n", "archive"),
    ],
)
def test_kinds(data: bytes, kind: str) -> None:
    made = read(data)
    assert made.kind == kind
    assert made.is_complete == (kind in ("ptx", "fatbin"))


def test_a_windows_library_shows_its_containers_and_promises_no_more() -> None:
    made = read(b"MZ" + bytes(1000) + CODE + bytes(77), "torch_cuda.dll")
    assert images_of(made) == {"elf:sm_80": 1, "ptx:compute_80": 1}
    assert made.machine == "Windows program or library"
    assert not made.is_complete


def test_ptx_text_is_an_image() -> None:
    made = read(b".version 8.7\n.target sm_120a, debug\n")
    (image,) = made.device.images()
    assert (image.code.architecture, image.code.version, image.code.is_debug) == ("compute_120a", "8.7", True)


def test_code_of_other_makers_is_named_and_nothing_is_called_broken() -> None:
    rocm = read(
        elf(Part(".hip_fatbin", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(8) + b"hipv4-amdgcn-amd-amdhsa--gfx90a gfx1100 "))
    )
    assert rocm.other_gpus == ("ROCm gfx1100 gfx90a",)
    assert rocm.is_complete
    assert read(library(("libamdhip64.so.6", "librocblas.so.4"))).other_gpus == ("ROCm",)
    assert read(library(("libsycl.so.8",))).other_gpus == ("Intel GPU (SYCL)",)
    assert read(elf(Part(".text", bytes(8)), machine=224)).other_gpus == ("AMD GPU code object",)
    assert read(library(("libc.so.6",))).other_gpus == ()


def test_the_runtime_that_is_needed_or_linked_in_or_left_to_others() -> None:
    assert read(library(("libcudart.so.12",), ("cudaMalloc",))).runtime.major == 12
    assert read(library(("libcudart-9335f6a2.so.12.4.127",))).runtime.major == 12
    other = read(library(("libc.so.6",), ("cudaMalloc", "cudaFree", "malloc"))).runtime
    assert (other.needed, other.undefined, other.major) == ("", 2, None)
    text = (
        bytes(64)
        + b"\xc7\x07"
        + (12090).to_bytes(4, "little")
        + bytes(20)
        + b"\xc7\x02"
        + (12090).to_bytes(4, "little")
        + bytes(9)
    )
    parts = (
        Part(".text", text, 1, 6),
        Part(".rodata", bytes(30) + b"/cudart.shm.%x" + bytes(30)),
        Part(".nv_fatbin", CODE),
    )
    embedded = read(library(extra=parts)).runtime
    assert (embedded.is_embedded, embedded.release, embedded.major) == (True, "12.9", 12)


@pytest.mark.parametrize(
    ("names", "kind", "strings"),
    [
        (("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",), "release", "old"),
        (
            ("_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",),
            "release",
            "cxx11",
        ),
        (("aoti_torch_get_dim", "torch_call_dispatcher"), "stable", ""),
        (("aoti_torch_get_dim", "_ZNK2at6Tensor4sizeEl"), "release", ""),
        (("malloc", "_ZNSt6vectorIiSaIiEE"), "", ""),
    ],
)
def test_which_interface_of_torch_a_library_is_built_on(names: tuple[str, ...], kind: str, strings: str) -> None:
    torch = read(library(undefined=names)).torch
    assert (torch.kind, torch.strings) == (kind, strings)


def test_a_file_that_cannot_be_read_says_why(tmp_path: object) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        FileSource(f"{tmp_path}/nowhere.so")
    with pytest.raises(Unreadable, match="not a regular file"):
        FileSource(str(tmp_path))


def test_the_real_library_of_a_test_build() -> None:
    with FileSource(str(HERE / "libk.so")) as source:
        made = examine(source)
    assert made.kind == "shared library"
    assert made.machine == "x86_64"
    assert made.runtime.needed == "libcudart.so.13"
    assert images_of(made)["elf:sm_120f"] == 2
    assert made.build_id
