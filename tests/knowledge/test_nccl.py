"""NCCL's releases: numbers, what torch brings, functions and faults."""

from __future__ import annotations

import pytest
from packaging.version import Version

from gpuwhy.knowledge import nccl


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.18.1", "2.18.1"), ("2.27.5+cuda12.9", "2.27.5"), ("21805", "2.18.5"), ("22703", "2.27.3"), ("2708", "2.7.8"), ("v2.20", "2.20")],
)  # fmt: skip
def test_versions_in_all_spellings(text: str, version: str) -> None:
    assert nccl.parse(text) == Version(version)


@pytest.mark.parametrize("text", ["", "newest", "2", "1234567", "2.x"])
def test_what_is_no_version(text: str) -> None:
    assert nccl.parse(text) is None


def test_the_release_that_torch_brings() -> None:
    assert nccl.of_torch("2.8.0+cu128") == "2.27.3"
    assert nccl.of_torch("0.1") is None


def test_a_fault_needs_its_release_its_message_and_its_gpu() -> None:
    assert nccl.fault("2.18.1", "Cuda failure 'invalid argument'") is not None
    assert nccl.fault("2.18.5", "Cuda failure 'invalid argument'") is None
    assert nccl.fault("2.18.1", "Cuda failure 'out of memory'") is None
    assert nccl.fault("2.21.5", "no kernel image is available", "12.0") is not None
    assert nccl.fault("2.21.5", "no kernel image is available", "9.0") is None
    assert nccl.fault("nonsense", "Cuda failure 'invalid argument'") is None


def test_every_function_and_fault_has_a_version() -> None:
    assert all(nccl.parse(release) for release in nccl.FIRST_RELEASE_OF.values())
    assert all(nccl.parse(each.first) <= nccl.parse(each.last) for each in nccl.KNOWN_FAULTS)  # type: ignore[operator]
