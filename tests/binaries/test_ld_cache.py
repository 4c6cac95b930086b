"""The linker's cache: as ldconfig prints it, in both layouts, and damaged."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

from gpuwhy.binaries.ld_cache import parse_ld_cache, read_ld_cache
from gpuwhy.binaries.reading import MemorySource


def cache(*rows: tuple[str, str, int], claims: int | None = None) -> bytes:
    """A cache in the layout of glibc 2.32 and later: name, path, features of the processor."""
    strings, table = b"", b""
    start = 48 + 24 * len(rows)
    for name, path, features in rows:
        at = start + len(strings)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
        table += struct.pack("<iIIIQ", 0x303, at, at + len(name) + 1, 0, features)
    head = b"glibc-ld.so.cache1.1" + struct.pack("<II", len(rows) if claims is None else claims, len(strings)) + b"\x02"
    return head.ljust(48, b"\0") + table + strings


def test_this_machines_cache_is_what_ldconfig_prints() -> None:
    printed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    wanted = set(re.findall(r"^\s+(\S+) \(.*=> (\S+)$", printed, re.MULTILINE))
    read = read_ld_cache()
    assert read.problem == ""
    assert {(name, each.path) for name, found in read.entries.items() for each in found} == wanted


def test_of_several_files_the_one_for_every_processor_comes_first() -> None:
    rows = (("libx.so.1", "/usr/lib/glibc-hwcaps/x86-64-v3/libx.so.1", 1 << 62), ("libx.so.1", "/usr/lib/libx.so.1", 0))
    read = parse_ld_cache(MemorySource(cache(*rows)))
    assert read.paths("libx.so.1") == ["/usr/lib/libx.so.1", rows[0][1]]
    assert read.paths("liby.so") == []


def test_the_old_layout_stands_before_the_new_one() -> None:
    old = b"ld.so-1.7.0\0" + struct.pack("<I", 3) + bytes(36)
    read = parse_ld_cache(MemorySource(old.ljust(len(old) + 7 & ~7, b"\0") + cache(("liba.so", "/lib/liba.so", 0))))
    assert read.paths("liba.so") == ["/lib/liba.so"]


def test_a_cache_that_lies_or_ends_early_gives_what_is_there() -> None:
    whole = cache(("liba.so", "/lib/liba.so", 0), claims=1 << 30)
    assert parse_ld_cache(MemorySource(whole)).problem
    for size in range(0, len(whole), 3):
        parse_ld_cache(MemorySource(whole[:size]))
    assert parse_ld_cache(MemorySource(b"no cache")).entries == {}


def test_a_system_without_a_cache_says_so(tmp_path: Path) -> None:
    read = read_ld_cache(str(tmp_path / "none"))
    assert read.entries == {}
    assert "none" in read.problem
