"""Memory of GPUs by name, and the releases of vLLM that are known."""

from __future__ import annotations

import pytest

from gpuwhy.knowledge.engine_memory import release_of, vllm_memory
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


def test_a_release_between_two_says_so() -> None:
    row, reading = vllm_memory("0.25.0")
    assert row.version == "0.20.2"
    assert not reading.is_read
    assert "0.20.2 and 0.33.0" in reading.sentence


@pytest.mark.parametrize(
    ("version", "row", "is_outside"),
    [("0.10.0", "0.10.2", False), ("0.9.2", "0.8.0", True), ("0.6.3", "0.6.0", True), ("0.2.7", "0.6.0", True), ("0.34.0", "0.33.0", True)],
)  # fmt: skip
def test_releases_that_are_only_known_in_general_widen_what_is_said(version: str, row: str, is_outside: bool) -> None:
    found, reading = vllm_memory(version)
    assert (found.version, reading.is_outside, reading.is_read) == (row, is_outside, False)
