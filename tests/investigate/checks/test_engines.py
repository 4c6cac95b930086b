"""GPUs that an engine no longer serves."""

from __future__ import annotations

import pytest
from tests.investigate.checks.forecasts import causes, of


@pytest.mark.parametrize(
    ("package", "capability", "expected"),
    [
        ("vllm", "6.1", ["gpu-too-old"]),
        ("vllm", "7.0", []),
        ("sglang", "7.0", ["gpu-too-old"]),
        ("flashinfer-python", "7.0", ["gpu-too-old"]),
        ("flash-attn", "7.5", ["gpu-too-old"]),
        ("flash-attn", "12.0", []),
    ],
)
def test_the_floor_of_what_is_installed(package: str, capability: str, expected: list[str]) -> None:
    assert causes(of({"cc": capability, f"packages.{package}": "0.6.12"})) == expected


def test_vllm_has_other_kernels_where_flashinfer_has_none() -> None:
    found = of({"cc": "7.0", "packages.vllm": "0.10.0", "packages.flashinfer-python": "0.2.9", "cuda_toolkit": "12.8"})
    assert "gpu-too-old" not in causes(found)
