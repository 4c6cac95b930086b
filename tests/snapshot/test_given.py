"""Facts given by hand: the vocabulary, and what its writer is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.model.evidence import Standing
from gpuwhy.model.fact import Fact
from gpuwhy.snapshot import SnapshotError, read_given


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "facts.yaml"


def test_facts_are_read_as_they_stand(write: Path) -> None:
    write.write_text(
        'cc: "12.0"\ncuda_toolkit: "12.8"\npackages.flashinfer-python: "0.6.17"\nlibcuda_path: null\nenv.CUDA_HOME: ""\nmem_total_bytes: 5\ndf./dev/shm: {size_bytes: 1, avail_bytes: 2}\n'
    )
    given = read_given(write)
    assert given.warnings == ()
    assert {fact.key: fact.value for fact in given.facts} == {
        "cc": "12.0",
        "cuda_toolkit": "12.8",
        "packages.flashinfer-python": "0.6.17",
        "libcuda_path": None,
        "env.CUDA_HOME": "",
        "mem_total_bytes": 5,
        "df./dev/shm": {"size_bytes": 1, "avail_bytes": 2},
    }
    fact = given.facts.get("cc")
    assert isinstance(fact, Fact)
    assert fact.evidence.standing is Standing.GIVEN
    assert fact.evidence.place is not None
    assert fact.evidence.place.path == str(write)


def test_json_nested_groups_and_whole_case_files_are_read_too(write: Path) -> None:
    write.write_text('{"cc": "9.0", "env": {"CUDA_HOME": "/x"}}')
    assert read_given(write).facts.value("env.CUDA_HOME") == "/x"
    write.write_text("id: x-1\nreport: text\ngiven_host:\n  cc: '9.0'\n  synthetic: [cc]\n")
    given = read_given(write)
    assert [fact.key for fact in given.facts] == ["cc"]
    assert given.warnings == ()


def test_a_version_that_yaml_took_for_a_number_is_kept_and_warned_about(write: Path) -> None:
    write.write_text("cuda_toolkit: 12.8\n")
    given = read_given(write)
    assert given.facts.value("cuda_toolkit") == "12.8"
    assert "quote versions" in given.warnings[0]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("cuda_tolkit", "cuda_toolkit"),
        ("package.torch", "packages.torch"),
        ("drivers", "driver"),
        ("envs.CUDA_HOME", "env.CUDA_HOME"),
        ("env", "env.NAME"),
    ],
)
def test_an_unknown_key_is_kept_and_the_close_one_named(key: str, meant: str, write: Path) -> None:
    write.write_text(f"{key}: x\n")
    given = read_given(write)
    assert given.facts.value(key) == "x"
    assert meant in given.warnings[0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"- a\n- b\n",
        b"just text",
        b"a: [",
        b"\xff\xfe\x00",
        b"a: !!python/object/apply:os.system [id]",
        b"a: &a [*a]",
        b"a: &a [x, x]\nb: [*a, *a]\n",
        b"[" * 5000,
        b"\x00",
        b"? [1]\n: x: y: z",
    ],
)
def test_what_is_no_mapping_of_facts_is_refused_in_words(data: bytes, write: Path) -> None:
    write.write_bytes(data)
    with pytest.raises(SnapshotError, match=str(write)):
        read_given(write)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        read_given(tmp_path / "none.yaml")
