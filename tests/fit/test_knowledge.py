"""Memory of GPUs by name, and the releases of vLLM that are known."""

from __future__ import annotations

import itertools

import pytest

from gpuwhy.knowledge.engine_memory import release_of, sglang_memory, vllm_memory
from gpuwhy.knowledge.gpu_memory_sizes import memory_of


@pytest.mark.parametrize(
    ("name", "cuda_gib"),
    [
        ("NVIDIA H100 80GB HBM3", 79.19),
        ("8 x H100", 79.19),
        ("H100 NVL", 93.02),
        ("A100 40GB", 39.39),
        ("A100-80GB", 79.15),
        ("RTX PRO 6000 Blackwell", 94.97),
        ("rtx 4090", 23.55),
        ("GB10", 121.69),
        ("L4", 22.05),
    ],
)
def test_a_gpu_has_what_cuda_reports(name: str, cuda_gib: float) -> None:
    found = memory_of(name)
    assert found is not None
    assert found.cuda_gib == cuda_gib
    assert found.provenance


def test_an_unknown_gpu_has_the_size_in_its_name() -> None:
    found = memory_of("Accelerator Z 96 GB")
    assert found is not None
    assert found.smi_mib == 96 * 1024
    assert found.cuda_gib < 96
    assert found.within > 1
    assert memory_of("Accelerator Z") is None
    assert memory_of("x" * 10_000) is None


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.19.0", "0.19.0"),
        ("v0.20.2", "0.20.2"),
        ("nightly (0.11.1 line)", "0.11.1"),
        ("2026-07", None),
        ("main", None),
    ],
)
def test_a_release_is_found_in_what_people_write(text: str, release: str | None) -> None:
    found = release_of(text)
    assert (str(found) if found else None) == release


STABLE = {
    "vllm": "0.8.0 0.8.1 0.8.2 0.8.3 0.8.4 0.8.5 0.8.5.post1 0.9.0 0.9.0.1 0.9.1 0.9.2 0.10.0 0.10.1 0.10.1.1 0.10.2 0.11.0 0.11.1 0.11.2 0.12.0 "
    "0.13.0 0.14.0 0.14.1 0.15.0 0.15.1 0.16.0 0.17.0 0.17.1 0.18.0 0.18.1 0.19.0 0.19.1 0.20.0 0.20.1 0.20.2 0.21.0 0.22.0 0.22.1 0.23.0 0.24.0 "
    "0.25.0 0.25.1 0.26.0 0.27.0 0.27.1 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0 0.33.0",
    "sglang": "0.4.6 0.4.6.post1 0.4.6.post2 0.4.6.post3 0.4.6.post4 0.4.6.post5 0.4.7 0.4.7.post1 0.4.8 0.4.8.post1 0.4.9 0.4.9.post1 0.4.9.post2 "
    "0.4.9.post3 0.4.9.post4 0.4.9.post5 0.4.9.post6 0.4.10 0.4.10.post1 0.4.10.post2 0.5.1 0.5.1.post1 0.5.1.post2 0.5.1.post3 0.5.2 0.5.3 "
    "0.5.3.post1 0.5.3.post2 0.5.3.post3 0.5.4 0.5.4.post1 0.5.4.post2 0.5.4.post3 0.5.5 0.5.5.post1 0.5.5.post2 0.5.5.post3 0.5.6 0.5.6.post1 "
    "0.5.6.post2 0.5.7 0.5.8 0.5.8.post1 0.5.9 0.5.10 0.5.10.post1 0.5.11 0.5.12 0.5.12.post1 0.5.13 0.5.13.post1 0.5.14 0.5.15 0.5.15.post1 "
    "0.5.16 0.5.17 0.5.18 0.5.19 0.5.20 0.5.21 0.5.22 0.5.23",
}
"""Every stable release from those on, as the registry lists them."""


def test_every_stable_release_was_read() -> None:
    for version in STABLE["vllm"].split():
        assert vllm_memory(version)[1].is_read, version
    for version in STABLE["sglang"].split():
        assert sglang_memory(version)[1].is_read, version


@pytest.mark.parametrize(
    ("version", "row", "said"),
    [
        ("0.18.0", "0.18.0", "vLLM 0.18.0: its source was read"),
        ("0.19.1", "0.18.0", "vLLM 0.19.1: its source was read (compared with 0.18.0: nothing of this changed)"),
        (
            "0.22.1rc1.dev26+g4721bb3aa",
            "0.22.0",
            "was not read: the releases before and after it agree (0.22.0 to 0.24.0)",
        ),
        ("0.27.9", "0.26.0", "interpolated from its neighbours 0.27.1 and 0.28.0"),
    ],
)
def test_a_row_holds_for_the_releases_that_were_compared(version: str, row: str, said: str) -> None:
    found, reading = vllm_memory(version)
    assert found.version == row
    assert said in reading.sentence


@pytest.mark.parametrize(
    ("version", "row"), [("0.6.3", "0.6.0"), ("0.2.7", "0.6.0"), ("0.34.0", "0.33.0"), ("nightly", "0.33.0")]
)
def test_releases_that_are_only_known_in_general_widen_what_is_said(version: str, row: str) -> None:
    found, reading = vllm_memory(version)
    assert (found.version, reading.is_outside, reading.is_read) == (row, True, False)


@pytest.mark.parametrize("rows", [STABLE["vllm"], STABLE["sglang"]])
def test_rows_follow_each_other_without_a_gap(rows: str) -> None:
    """The release after the last one of a row is the first of the next."""
    look = vllm_memory if rows == STABLE["vllm"] else sglang_memory
    names = rows.split()
    for before, after in itertools.pairwise(names):
        one, other = look(before)[0], look(after)[0]
        assert one is other or (one.through, other.version) == (before, after), (before, after)
