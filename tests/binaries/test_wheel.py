"""Wheels: read as they inflate, with the same answer as from disk; damaged ones say so."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest
from tests.binaries.truth import HERE, Known, known_files
from tests.binaries.writing import Part, container, entry, library

from gpuwhy.binaries import wheel as wheels
from gpuwhy.binaries.examining import Binary, examine
from gpuwhy.binaries.reading import FileSource, MemorySource, Unreadable
from gpuwhy.binaries.sieve import Sieve
from gpuwhy.binaries.wheel import Wheel

METADATA = "Metadata-Version: 2.1\nName: pack\nVersion: 1.2\nRequires-Python: >=3.10\nRequires-Dist: torch==2.8.0\nRequires-Dist: numpy\n\nText\nName: no\n"


def make_wheel(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data)
        made.writestr("pack-1.2.dist-info/METADATA", METADATA)
        made.writestr("pack-1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp312-abi3-linux_x86_64\n")
    return path


def large_library() -> bytes:
    """Containers with payloads, data and tables, larger than what is inflated whole in these tests."""
    rng = random.Random(7)
    code = b"".join(
        container(*[entry(arch=arch, payload=rng.randbytes(8 * rng.randrange(1, 9000))) for arch in (80, 90, 120)])
        + bytes(8 * rng.randrange(3))
        for _ in range(60)
    )
    rodata = (
        rng.randbytes(70_001) + (HERE / "ptxas129_sm_90a.cubin").read_bytes() + b"/cudart.shm." + rng.randbytes(50_000)
    )
    return library(
        ("libc.so.6",), ("malloc", "_ZN3c105errorEv"), ("run",), "$ORIGIN", "libpack.so",
        (Part(".text", rng.randbytes(900_000), 1, 6), Part(".rodata", rodata), Part(".nv_fatbin", code), Part(".cask_resource", container(entry(arch=100)) + rng.randbytes(3000) + container(entry(arch=103))), Part(".nvFatBinSegment", bytes(24 * 60))),
    )  # fmt: skip


def without_name(binary: Binary) -> Binary:
    return binary._replace(name="")


def test_a_wheel_gives_what_the_disk_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "IN_MEMORY", 100_000)
    members = {
        "pack/_C.abi3.so": large_library(),
        "pack/libk.so": (HERE / "libk.so").read_bytes(),
        "pack/a.py": b"pass\n",
        "pack/x.o": b"text",
    }
    with Wheel(str(make_wheel(tmp_path / "pack-1.2-cp312-abi3-linux_x86_64.whl", members))) as wheel:
        found = {binary.name: binary for binary in wheel.binaries()}
    assert set(found) == {"pack/_C.abi3.so", "pack/libk.so"}
    for name, binary in found.items():
        assert without_name(binary) == without_name(examine(MemorySource(members[name], name)))


@pytest.mark.parametrize("piece", [1, 7, 64, 1000, 65_537, 1 << 22])
def test_pieces_of_any_length_give_the_same(piece: int) -> None:
    whole = large_library() if piece > 1 else (HERE / "tile.o").read_bytes()
    sieve = Sieve("lib.so", len(whole))
    for at in range(0, len(whole), piece):
        sieve.feed(whole[at : at + piece])
    kept = sieve.result()
    assert examine(kept, "lib.so") == examine(MemorySource(whole), "lib.so")
    assert kept.kept_bytes() < len(whole) or len(whole) < 1 << 21


@pytest.mark.parametrize("known", known_files(), ids=lambda known: known.path.name)
def test_every_known_file_reads_the_same_as_a_stream(known: Known) -> None:
    path = known.path
    whole = path.read_bytes()
    sieve = Sieve(path.name, len(whole))
    for at in range(0, len(whole), 777):
        sieve.feed(whole[at : at + 777])
    streamed, read = examine(sieve.result(), path.name), examine(MemorySource(whole), path.name)
    # the release of an embedded runtime stands in code, which is not kept
    assert streamed._replace(runtime=read.runtime) == read


def test_what_a_wheel_says_of_itself(tmp_path: Path) -> None:
    with Wheel(str(make_wheel(tmp_path / "a.whl", {"pack/libk.so": b"x" * 10}))) as wheel:
        facts = wheel.facts()
    assert (facts.name, facts.version, facts.requires_python) == ("pack", "1.2", ">=3.10")
    assert facts.requires == ("torch==2.8.0", "numpy")
    assert facts.tags == ("cp312-abi3-linux_x86_64",)
    assert facts.binaries == (("pack/libk.so", 10),)


def test_progress_counts_inflated_bytes_of_all_members(tmp_path: Path) -> None:
    path = make_wheel(
        tmp_path / "a.whl", {"a.so": (HERE / "libk.so").read_bytes(), "b.so": (HERE / "libk.so").read_bytes()}
    )
    seen: list[tuple[str, int, int]] = []
    with Wheel(str(path)) as wheel:
        list(wheel.binaries(lambda name, done, total: seen.append((name, done, total))))
    size = (HERE / "libk.so").stat().st_size
    assert seen[0] == ("a.so", size, 2 * size)
    assert seen[-1] == ("b.so", 2 * size, 2 * size)


def test_a_damaged_member_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    members = {
        "bad.so": random.Random(1).randbytes(400) + (HERE / "libk.so").read_bytes(),
        "good.so": (HERE / "libk.so").read_bytes(),
    }
    path = make_wheel(tmp_path / "a.whl", members)
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(data)
    with Wheel(str(path)) as wheel:
        found = {binary.name: binary for binary in wheel.binaries()}
    assert any("damaged" in problem for problem in found["bad.so"].problems)
    assert found["good.so"].is_complete


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", bytes(5000)])
def test_what_is_no_wheel_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.whl"
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=r"a\.whl"):
        Wheel(str(path))


def test_mutated_wheels_end(tmp_path: Path) -> None:
    path = make_wheel(
        tmp_path / "a.whl",
        {"a.so": (HERE / "libk.so").read_bytes(), "k.cubin": (HERE / "ptxas129_sm_90a.cubin").read_bytes()},
    )
    whole, rng = path.read_bytes(), random.Random(5)
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data))
        try:
            with Wheel(str(path)) as wheel:
                wheel.facts()
                list(wheel.binaries())
        except Unreadable:
            continue


def test_the_file_on_disk_and_its_bytes_read_the_same() -> None:
    with FileSource(str(HERE / "libk.so")) as source:
        assert examine(source, "k") == examine(MemorySource(source.read_at(0, source.size)), "k")
