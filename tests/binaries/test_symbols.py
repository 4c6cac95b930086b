"""Questions to a library's hash table give what reading all of its symbols gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.binaries import linking

from gpuwhy.binaries.elf import Elf
from gpuwhy.binaries.reading import FileSource, MemorySource
from gpuwhy.binaries.symbols import Definitions, gnu_hash


def test_the_hash_is_that_of_the_format() -> None:
    assert gnu_hash("printf") == 0x156B2BB8
    assert gnu_hash("") == 5381


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_defined_symbols_are_found_and_others_are_not(style: str, tmp_path: Path) -> None:
    source = "".join(f"int f{number}(void) {{ return {number}; }}\n" for number in range(300)) + "int gone(void); int u(void) { return gone(); }"  # fmt: skip
    path = linking.library(tmp_path / "libmany.so", source, flags=(f"-Wl,--hash-style={style}",))
    with FileSource(str(path)) as opened:
        definitions = Definitions(Elf(opened))
        assert all(definitions.find(f"f{number}") == ("",) for number in range(300))
        assert definitions.find("gone") is None
        assert definitions.find("f300") is None


def test_the_c_library_answers_with_versions(tmp_path: Path) -> None:
    path = next(path for path in (Path("/lib/x86_64-linux-gnu/libc.so.6"), Path("/lib64/libc.so.6"), Path("/lib/aarch64-linux-gnu/libc.so.6")) if path.exists())  # fmt: skip
    with FileSource(str(path)) as opened:
        elf = Elf(opened)
        by_table = {symbol.name for symbol in elf.defined_symbols()}
        definitions = Definitions(elf)
        assert all(definitions.find(name) is not None for name in list(by_table)[::7])
        assert any(version.startswith("GLIBC_") for version in definitions.find("memcpy") or ())


def test_a_hash_table_that_lies_ends_in_nothing(tmp_path: Path) -> None:
    data = bytearray(linking.library(tmp_path / "libk.so", "int k(void) { return 1; }").read_bytes())
    table = next(each for each in Elf(MemorySource(bytes(data))).sections() if each.name == ".gnu.hash")
    for field in range(0, table.size, 4):
        for value in (0, 1, 0xFFFFFFFF, 0x7FFFFFFF):
            hostile = bytearray(data)
            hostile[table.offset + field : table.offset + field + 4] = value.to_bytes(4, "little")
            Definitions(Elf(MemorySource(bytes(hostile)))).find("k")
