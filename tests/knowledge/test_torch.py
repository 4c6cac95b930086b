from __future__ import annotations

import pytest

from gpuwhy.knowledge import torch


@pytest.mark.parametrize(
    ("version", "cuda", "capability", "expected"),
    [
        ("2.6.0", None, "12.0", False),
        ("2.7.1", None, "12.0", False),
        ("2.7.1+cu128", None, "12.0", True),
        ("2.7.1", "12.8", "12.0", True),
        ("2.8.0", None, "12.0", True),
        ("2.8.0", None, "12.1", True),
        ("2.8.0", None, "8.9", True),
        ("2.8.0", "12.8", "6.1", False),
        ("2.9.1", "12.6", "6.1", True),
        ("2.11.0", None, "7.0", False),
        ("2.11.0", "12.6", "7.0", True),
        ("2.13.0", None, "11.0", False),
        ("2.8.0", None, "8.7", None),
        ("2.99.0", None, "12.0", None),
        ("2.8.0", "11.1", "8.0", None),
        ("banana", None, "8.0", None),
    ],
)
def test_whether_a_build_runs_on_a_gpu(version: str, cuda: str | None, capability: str, expected: bool | None) -> None:
    assert torch.supports(version, cuda, capability).value is expected


def test_cuda_and_triton_of_the_default_wheel() -> None:
    assert torch.default_cuda("2.8.0") == "12.8"
    assert torch.default_cuda("2.7.1") == "12.6"
    assert torch.default_cuda("3.0") is None
    assert torch.triton_of("2.9.1") == "3.5.1"


def test_builds_by_gpu() -> None:
    pascal = {build.build for build in torch.builds_for("6.1")}
    assert "cu126" in pascal
    assert not pascal & {"cu128", "cu129", "cu130"}
    blackwell = {build.build for build in torch.builds_for("12.0")}
    assert {"cu128", "cu130"} <= blackwell
    assert "cu126" not in blackwell
    assert torch.builds_for("nonsense") == ()


def test_arch_list() -> None:
    assert torch.arch_list("2.7.1") == ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    assert "sm_120" in (torch.arch_list("2.9.1", "12.8") or ())
    assert torch.arch_list("2.9.1", "9.9") is None


def test_builds_of_a_release_and_extension_list() -> None:
    assert {build.build for build in torch.builds_of("2.9.1")} == {"cu126", "cu128", "cu130"}
    accepted = torch.extension_arch_list("2.14.1")
    assert accepted is not None
    assert "12.0a" in accepted.accepted
    assert "12.0f" not in accepted.accepted
    assert torch.extension_arch_list("2.5.0") is None
