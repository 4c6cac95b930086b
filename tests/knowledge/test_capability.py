from __future__ import annotations

import pytest

from gpuwhy.knowledge import capability, dtypes
from gpuwhy.knowledge.capability import ComputeCapability


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12.0", ComputeCapability(12, 0)),
        ("12.0a", ComputeCapability(12, 0, "a")),
        ((12, 0), ComputeCapability(12, 0)),
        ("sm_120a", ComputeCapability(12, 0, "a")),
        ("SM120", ComputeCapability(12, 0)),
        ("compute_90", ComputeCapability(9, 0)),
        ("SM 8.9", ComputeCapability(8, 9)),
        ("8.6+PTX", ComputeCapability(8, 6)),
        (120, ComputeCapability(12, 0)),
        (75, ComputeCapability(7, 5)),
        (8.9, ComputeCapability(8, 9)),
    ],
)
def test_every_spelling(value: object, expected: ComputeCapability) -> None:
    assert capability.parse(value) == expected


@pytest.mark.parametrize(
    "value", ["", "12", "banana", "12.0x", None, True, 7, (1, 2, 3), (0, 0), "sm_", [12, 0], "1" * 99]
)
def test_what_is_no_capability(value: object) -> None:
    assert capability.parse(value) is None


def test_order_and_spelling() -> None:
    assert capability.parse("8.9") < capability.parse("12.0")  # type: ignore[operator]
    found = ComputeCapability(12, 0, "f")
    assert (found.target, found.virtual_target, found.dotted, found.number) == ("sm_120f", "compute_120f", "12.0f", 120)


@pytest.mark.parametrize(
    ("target", "gpu", "has_ptx", "expected"),
    [
        ("sm_80", "8.6", False, True),
        ("sm_86", "8.0", False, False),
        ("sm_90", "12.0", False, False),
        ("sm_90", "12.0", True, True),
        ("compute_90", "12.0", False, True),
        ("sm_120", "12.1", False, True),
        ("sm_120a", "12.1", False, False),
        ("sm_120f", "12.1", False, True),
        ("sm_121f", "12.0", False, False),
        ("sm_100f", "12.0", False, False),
        ("sm_90a", "12.0", True, False),
        ("compute_120", "9.0", False, False),
        ("sm_80", "8.7", False, None),
        ("sm_101a", "11.0", False, None),
        ("nonsense", "8.6", False, None),
    ],
)
def test_what_runs_where(target: str, gpu: str, has_ptx: bool, expected: bool | None) -> None:
    assert capability.runs_on(target, gpu, has_ptx).value is expected


@pytest.mark.parametrize(
    ("name", "gpu", "expected"),
    [
        ("bf16", "7.5", False),
        ("torch.bfloat16", "8.0", True),
        ("fp8e4nv", "8.6", False),
        ("fp8_e4m3", "8.9", True),
        ("nvfp4", "9.0", False),
        ("mxfp4", "12.0", True),
        ("tcgen05", "12.0", False),
        ("wgmma", "10.0", False),
        ("int8 tensor core", "7.0", False),
        ("posit16", "12.0", None),
        ("bf16", "banana", None),
    ],
)
def test_number_formats(name: str, gpu: str, expected: bool | None) -> None:
    assert dtypes.supports(name, gpu).value is expected


def test_minimum_capability() -> None:
    assert dtypes.minimum_capability("float8_e4m3fn") == "8.9"
    assert dtypes.minimum_capability("nothing") is None
