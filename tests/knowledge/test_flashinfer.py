from __future__ import annotations

import pytest

from gpuwhy.knowledge import flashinfer


@pytest.mark.parametrize(
    ("version", "capability", "minimum"),
    [
        ("0.6.6", "12.0", None),
        ("0.6.7", "12.0", "12.9"),
        ("0.6.12", "12.0", "12.9"),
        ("0.6.18.post1", "12.0", "12.9"),
        ("0.7.0.post1", "12.1", "12.9"),
        ("0.7.1", "12.0", "12.8"),
        ("0.7.4", "12.1", "12.9"),
        ("0.6.12", "9.0", None),
        ("0.6.12", "10.0", None),
    ],
)
def test_gate_by_release_and_gpu(version: str, capability: str, minimum: str | None) -> None:
    gate = flashinfer.gate(version, capability)
    assert gate is not None
    assert gate.minimum_toolkit == minimum
    assert (gate.message is None) is (minimum is None)


def test_gate_says_where_it_is_raised_and_hidden() -> None:
    gate = flashinfer.gate("0.6.17", "12.0")
    assert gate is not None
    assert gate.message == "SM 12.x requires CUDA >= 12.9"
    assert gate.where is not None
    assert ":83" in gate.where
    assert gate.swallowed_in is not None
    assert gate.visible_error == "FlashInfer requires GPUs with sm75 or higher"
    assert gate.list_variable == "FLASHINFER_CUDA_ARCH_LIST"


@pytest.mark.parametrize("version", ["0.9.0", "0.1.6", "banana", ""])
def test_unknown_release_has_no_gate_and_no_answer(version: str) -> None:
    assert flashinfer.gate(version, "12.0") is None
    assert flashinfer.passes_gate(version, "12.0", "12.8").value is None


def test_affected_ranges() -> None:
    assert flashinfer.versions_with_gate("12.0", "12.8") == (("0.6.7", "0.7.0.post1"),)
    assert flashinfer.versions_with_gate("12.1", "12.8") == (("0.6.7", "0.7.4"),)
    assert flashinfer.versions_with_gate("12.0", "12.9") == ()
    assert flashinfer.first_release_accepting("12.0", "12.8") == "0.7.1"
    assert flashinfer.first_release_accepting("12.1", "12.8") is None


@pytest.mark.parametrize(
    ("version", "capability", "toolkit", "target"),
    [
        ("0.6.6", "12.0", "12.8", "sm_120a"),
        ("0.6.17", "12.0", "12.8", None),
        ("0.6.17", "12.0", "12.9", "sm_120f"),
        ("0.6.7", "12.1", "12.9", "sm_120f"),
        ("0.6.17", "12.1", "12.9", "sm_121a"),
        ("0.7.2", "12.0", "12.8", "sm_120a"),
        ("0.6.17", "9.0", "12.4", "sm_90a"),
        ("0.6.17", "8.9", "12.4", "sm_89"),
    ],
)
def test_target_that_detection_gives(version: str, capability: str, toolkit: str, target: str | None) -> None:
    assert flashinfer.detected_target(version, capability, toolkit) == target


@pytest.mark.parametrize("value", ["12.0a", "12.0a 9.0a", "9.0 12.0a", "8.0", "9.0", "7.0 12.0a"])
def test_list_values_that_are_accepted(value: str) -> None:
    assert flashinfer.arch_list_problem(value, "0.6.17", "12.8") is None


@pytest.mark.parametrize(
    "value",
    ["", " ", "12.0a ", "12.0;9.0", "12.0a,9.0a", "120", "120a", "sm_120a", "12.", "12.0+PTX", "banana", "7.0", "a.b"],
)
@pytest.mark.parametrize("version", ["0.6.17", "0.7.4", None])
def test_list_values_that_no_release_accepts(value: str, version: str | None) -> None:
    assert flashinfer.arch_list_problem(value, version) is not None


def test_list_values_that_depend_on_release_and_toolkit() -> None:
    assert "SM 12.x requires" in (flashinfer.arch_list_problem("12.0", "0.6.17", "12.8") or "")
    assert flashinfer.arch_list_problem("12.0", "0.7.4", "12.8") is None
    assert flashinfer.arch_list_problem("12.0", "0.6.17", "12.9") is None
    assert "compute_120f" in (flashinfer.arch_list_problem("12.0f", "0.6.17", "12.8") or "")
    assert "compute_120a" in (flashinfer.arch_list_problem("12.0a", "0.6.17", "12.4") or "")
    assert "TORCH_CUDA_ARCH_LIST" in (flashinfer.arch_list_problem("12.0a", "0.2.5") or "")


def test_value_computed_for_a_host() -> None:
    assert flashinfer.arch_list_value("0.6.12", "12.0", "12.8") == "12.0a"
    assert flashinfer.arch_list_value("0.6.12", "12.0", "12.4") is None
    assert flashinfer.arch_list_value("0.6.12", "12.1", "12.8") is None
    assert flashinfer.arch_list_value("0.6.12", "12.0", "unknown") is None
    assert flashinfer.arch_list_value("0.2.5", "12.0", "12.8") is None


def test_traceback_lines_date_the_release() -> None:
    path = "/opt/venv/lib/python3.11/site-packages/flashinfer/jit/core.py"
    dating = flashinfer.frame_versions("check_cuda_arch", 109, path)
    assert dating is not None
    assert "0.6.17" in dating.releases
    assert "0.6.12" not in dating.releases
    together = flashinfer.intersect_frames([("check_cuda_arch", 108, path), ("gen_jit_spec", 413, None)])
    assert "0.6.12" in together
    assert "0.6.9" not in together
    assert flashinfer.frame_versions("check_cuda_arch", 99999) is None
    assert flashinfer.frame_versions("no_such_function", 1) is None
    assert flashinfer.frame_versions("check_cuda_arch", 109, "/somewhere/else.py") is None


def test_old_release_known_from_its_tag() -> None:
    dating = flashinfer.frame_versions("gen_jit_spec", 292)
    assert dating is not None
    assert dating.releases == ("0.4.1",)


def test_options_that_the_build_needs() -> None:
    assert flashinfer.build_requirements("0.6.12") == ()
    needed = flashinfer.build_requirements("0.6.18.post1")
    assert needed is not None
    assert [(row.option, row.minimum_toolkit) for row in needed] == [("--compress-mode=size", "12.8")]
    assert flashinfer.build_requirements("0.3.0") is None
    assert flashinfer.build_requirements("99.0") is None


def test_what_an_override_reaches() -> None:
    assert any(reader.function == "check_cuda_arch" for reader in flashinfer.readers_of_targets())
    names = {variable.name for variable in flashinfer.override_variables("0.6.12")}
    assert "FLASHINFER_CUDA_ARCH_LIST" in names
    assert "TORCH_CUDA_ARCH_LIST" not in names
    assert "TORCH_CUDA_ARCH_LIST" in {variable.name for variable in flashinfer.override_variables()}
    assert [row.target for row in flashinfer.independent_targets("0.6.17")] == ["120f"]
