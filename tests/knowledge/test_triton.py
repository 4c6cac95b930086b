from __future__ import annotations

import pytest

from gpuwhy.knowledge import triton


@pytest.mark.parametrize(
    ("version", "capability", "refused"),
    [
        ("3.2.0", "12.0", True),
        ("3.3.1", "12.0", False),
        ("3.3.1", "12.1", True),
        ("3.5.1", "12.1", True),
        ("3.6.0", "12.1", False),
        ("3.6.0", "11.0", True),
        ("3.7.1", "11.0", False),
        ("3.9.0", "8.8", True),
        ("3.5.1", "8.6", False),
        ("3.3.0+git1234", "12.0", False),
    ],
)
def test_refusal_by_the_bundled_assembler(version: str, capability: str, refused: bool) -> None:
    assert triton.refuses(version, capability).value is refused


def test_unmeasured_patch_release_answers_from_its_minor_release() -> None:
    answer = triton.refuses("3.5.7", "12.1")
    assert answer.value is True
    assert "not measured" in answer.why


@pytest.mark.parametrize("version", ["4.0.0", "1.0", "banana", ""])
def test_unknown_release(version: str) -> None:
    assert triton.refuses(version, "12.1").value is None
    assert triton.bundled_assemblers(version) is None
    assert triton.override_variable(version, "12.1") is None


@pytest.mark.parametrize(
    ("version", "capability", "variable"),
    [
        ("3.2.0", "12.0", "TRITON_PTXAS_PATH"),
        ("3.3.1", "9.0", "TRITON_PTXAS_PATH"),
        ("3.3.1", "12.0", "TRITON_PTXAS-BLACKWELL_PATH"),
        ("3.5.1", "12.1", "TRITON_PTXAS_PATH"),
        ("3.6.0", "12.1", "TRITON_PTXAS_BLACKWELL_PATH"),
        ("3.8.0", "9.0", "TRITON_PTXAS_PATH"),
        ("3.9.0", "9.0", "TRITON_PTXAS_BLACKWELL_PATH"),
    ],
)
def test_variable_that_replaces_the_assembler(version: str, capability: str, variable: str) -> None:
    assert triton.override_variable(version, capability) == variable


def test_assemblers_and_targets() -> None:
    names = [assembler.name for assembler in triton.bundled_assemblers("3.6.0") or ()]
    assert names == ["ptxas", "ptxas-blackwell"]
    used = triton.assembler_for("3.6.0", "12.0")
    assert used is not None
    assert used.version == "12.9.86"
    assert triton.target_for("3.5.1", "12.1") == "sm_121a"
    assert triton.target_for("2.1.0", "8.6") == "sm_86"


def test_first_release_that_serves_a_gpu() -> None:
    assert triton.first_release_for("12.0") == "3.3.0"
    assert triton.first_release_for("12.1") == "3.6.0"
    assert triton.first_release_for("11.0") == "3.7.0"
    assert triton.first_release_for("8.8") is None


def test_whether_a_newer_ptxas_may_be_put_in_place() -> None:
    assert triton.agrees_to_use("3.4.0", "13.0").value is False
    assert triton.agrees_to_use("3.5.1", "13.0").value is True
    assert triton.agrees_to_use("2.1.0", "12.8").value is None
