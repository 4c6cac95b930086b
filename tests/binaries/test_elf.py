"""ELF: what the dynamic linker reads, of files made here and of this machine's own libraries."""

from __future__ import annotations

import struct
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.binaries.writing import Part, elf, library

from gpuwhy.binaries.elf import Elf, NotElf, notes
from gpuwhy.binaries.reading import FileSource, MemorySource


def read(data: bytes) -> Elf:
    return Elf(MemorySource(data))


def test_a_library_says_what_it_needs_and_where_it_looks() -> None:
    made = library(("libcudart.so.12", "libc.so.6"), runpath="$ORIGIN/../lib:/opt/lib", soname="libk.so.1")
    dynamic = read(made).dynamic()
    assert dynamic.needed == ("libcudart.so.12", "libc.so.6")
    assert dynamic.runpath == ("$ORIGIN/../lib", "/opt/lib")
    assert dynamic.soname == "libk.so.1"
    assert dynamic.rpath == ()


@pytest.mark.parametrize("has_sections", [True, False])
def test_symbols_are_found_with_a_section_table_and_without(has_sections: bool) -> None:
    made = read(library(undefined=("cudaMalloc", "_ZN3c105errorEv"), defined=("run",), has_sections=has_sections))
    assert [symbol.name for symbol in made.undefined_symbols()] == ["cudaMalloc", "_ZN3c105errorEv"]
    assert [symbol.name for symbol in made.defined_symbols()] == ["run"]
    assert list(made.undefined_names()) == ["cudaMalloc", "_ZN3c105errorEv"]


def test_an_object_needs_nothing() -> None:
    assert read(elf(Part(".text", b"\xc3"), kind=1)).dynamic().needed == ()


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"MZ" + bytes(100), b"\x7fELF\x09\x01" + bytes(100), b"\x7fELF\x02\x01\x01"]
)
def test_what_is_no_elf_is_refused(data: bytes) -> None:
    with pytest.raises(NotElf):
        read(data)


def test_a_section_beyond_the_end_is_cut_and_told() -> None:
    whole = elf(Part(".nv_fatbin", bytes(5000)), Part(".data", bytes(16)))
    table = struct.unpack_from("<Q", whole, 40)[0]
    lying = bytearray(whole)
    struct.pack_into("<Q", lying, table + 64 + 32, 1 << 60)
    made = read(bytes(lying))
    section = made.section(".nv_fatbin")
    assert section is not None
    assert section.offset + section.size == len(lying)
    assert any(".nv_fatbin" in problem for problem in made.problems)


def test_a_cut_file_is_shorter_than_its_headers_say() -> None:
    whole = elf(Part(".nv_fatbin", bytes(5000)))
    assert read(whole).end_by_headers() == len(whole)
    assert read(whole[:3000]).end_by_headers() > 3000


def test_a_table_of_strings_of_thirty_megabytes_is_not_held() -> None:
    long = "_Z" + "x" * 70_000
    made = read(library(undefined=("first", long, "last")))
    names = list(made.undefined_names())
    assert names[0] == "first"
    assert names[-1] == "last"
    assert names[1].startswith("_Zxxx")


def test_notes_end_where_they_lie() -> None:
    sound = struct.pack("<III", 4, 4, 3) + b"GNU\0" + b"abcd"
    assert list(notes(sound)) == [(b"GNU", 3, b"abcd")]
    assert list(notes(sound + struct.pack("<III", 4, 1 << 31, 3))) == [(b"GNU", 3, b"abcd")]


def own_libraries() -> list[Path]:
    """Extension modules of the Python that runs this, and itself."""
    folder = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    return [Path(sys.executable).resolve(), *sorted(folder.glob("*.so"))[:6]]


@pytest.mark.parametrize("path", own_libraries(), ids=lambda path: path.name)
def test_it_agrees_with_readelf(path: Path) -> None:
    """readelf (binutils) is on any machine that compiles; where it is not, the loader's own view is compared."""
    with FileSource(str(path)) as source:
        made = Elf(source)
        dynamic, undefined = made.dynamic(), [symbol.name for symbol in made.undefined_symbols()]
        build_id, needs = made.build_id(), {need.version for need in dynamic.version_needs}
    try:
        said = subprocess.run(
            ["readelf", "-dVnW", "--dyn-syms", str(path)], capture_output=True, text=True, check=True
        ).stdout
    except FileNotFoundError:
        assert "libc.so.6" in dynamic.needed
        return
    assert dynamic.needed == tuple(line.split("[")[1].rstrip("]") for line in said.splitlines() if "(NEEDED)" in line)
    rows = [line.split() for line in said.splitlines() if " UND " in line]
    assert undefined == [row[7].partition("@")[0] for row in rows if len(row) > 7]
    assert build_id in said
    assert all(f"Name: {version} " in said for version in needs)
