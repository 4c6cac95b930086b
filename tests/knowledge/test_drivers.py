from __future__ import annotations

import pytest

from gpuwhy.knowledge import drivers


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("570.124.06", "12.8"),
        ("572.16", "12.8"),
        ("575.57.08", "12.9"),
        ("580.95.05", "13.0"),
        ("535.104.05", "12.2"),
        ("570", "12.8"),
        ("440.33.01", "10.2"),
        ("418.67", "10.1"),
        ("999.1", None),
        ("100.14", None),
        ("not a driver", None),
    ],
)
def test_cuda_of_a_driver(driver: str, cuda: str | None) -> None:
    assert drivers.cuda_of(driver) == cuda


def test_floor_of_a_major_version() -> None:
    assert drivers.required_for("12.8") == "525.60.13"
    assert drivers.required_for("13.0") == "580.65.06"
    assert drivers.required_for("15.0") is None
    assert drivers.shipped_with("12.8") == "570.26"


def test_minor_version_compatibility_is_a_yes_with_a_limit() -> None:
    answer = drivers.runs("535.104.05", "12.8")
    assert answer.value is True
    assert "PTX of CUDA 12.8 does not" in answer.why
    assert drivers.runs("570.124.06", "12.8").value is True
    assert drivers.runs("470.82.01", "12.1").value is False
    assert drivers.runs("570.124.06", "13.0").value is False
    assert drivers.runs("999.1", "13.0").value is None
    assert drivers.runs("570.124.06", "17.0").value is None


def test_ptx_of_a_driver() -> None:
    assert drivers.ptx_isa_max("570.124.06").value == "8.7"
    assert drivers.ptx_isa_max("440.33").value is None


@pytest.mark.parametrize(
    ("ptx", "cuda"), [("8.7", "12.8"), ("8.4", "12.4"), ("9.0", "13.0"), ("99.0", None), ("x", None)]
)
def test_cuda_of_a_ptx_version(ptx: str, cuda: str | None) -> None:
    assert drivers.cuda_of_ptx(ptx).value == cuda


def test_a_bare_branch_is_its_newest_driver() -> None:
    assert drivers.runs("580", "13.0").value is True
    assert drivers.runs("525", "12.8").value is True


@pytest.mark.parametrize(("number", "text"), [(12040, "12.4"), (13000, "13.0"), (11080, "11.8"), (0, None), (-5, None)])
def test_decoding_the_number_torch_prints(number: int, text: str | None) -> None:
    assert drivers.decode_cuda_version_number(number) == text
