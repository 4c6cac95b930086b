from __future__ import annotations

import pytest

from gpuwhy.knowledge import toolkits


@pytest.mark.parametrize(
    ("cuda", "target", "expected"),
    [
        ("12.8", "sm_120", True),
        ("12.8.93", "compute_120a", True),
        ("12.8", "120f", False),
        ("12.8", "12.0f", False),
        ("12.9", "sm_120f", True),
        ("12.8", "sm_121", False),
        ("12.4", "sm_120", False),
        ("V12.4.131", "sm_90a", True),
        ("cu118", "sm_90", True),
        ("cu118", "sm_90a", False),
        ("13.0", "sm_70", False),
        ("12.9", "sm_70", True),
        ("13.0", "sm_101", False),
        ("13.0", "sm_110", True),
    ],
)
def test_measured_release_answers_yes_or_no(cuda: str, target: str, expected: bool) -> None:
    answer = toolkits.accepts(cuda, target)
    assert answer.value is expected
    assert answer.provenance.startswith("measured: ptxas ")


def test_release_between_two_measured_ones_says_so_where_they_agree() -> None:
    answer = toolkits.accepts("12.7", "sm_90a")
    assert answer.value is True
    assert "not measured" in answer.why
    assert "12.6" in answer.why
    assert "12.8" in answer.why
    assert answer.provenance.startswith("derived:")


def test_release_between_two_that_differ_is_unknown() -> None:
    assert toolkits.accepts("12.7", "sm_120").value is None


@pytest.mark.parametrize("cuda", ["13.9", "14.0", "banana", "", "12"])
def test_unknown_release_is_never_a_no(cuda: str) -> None:
    assert toolkits.accepts(cuda, "sm_120").value is None
    assert toolkits.accepts(cuda, "sm_999").value is None
    assert toolkits.targets_of(cuda) is None
    assert toolkits.best_target(cuda, "12.0") is None
    assert toolkits.gcc_max(cuda).value is None


def test_release_older_than_the_measured_ones_cannot_know_a_later_target() -> None:
    # Ubuntu 22.04 packages 11.5
    assert toolkits.accepts("11.5", "sm_89").value is False
    assert toolkits.accepts("11.5", "sm_86").value is True
    assert toolkits.accepts("11.0", "sm_86").value is False
    assert toolkits.accepts("11.5", "sm_50").value is None


def test_first_and_last_release_of_a_target() -> None:
    assert toolkits.first_release_for("sm_120a") == "12.8"
    assert toolkits.first_release_for("sm_120f") == "12.9"
    assert toolkits.first_release_for("12.1") == "12.9"
    assert toolkits.first_release_for("8.6") == "11.1"
    assert toolkits.first_release_for("sm_130") is None
    assert toolkits.last_release_for("sm_70") == "12.9"
    assert toolkits.last_release_for("sm_90") is None


@pytest.mark.parametrize(
    ("cuda", "capability", "target"),
    [
        ("12.8", "12.0", "sm_120a"),
        ("12.9", "12.0", "sm_120f"),
        ("13.0", "12.0", "sm_120f"),
        ("12.9", "12.1", "sm_121a"),
        ("12.4", "12.0", None),
        ("12.8", "12.1", None),
        ("11.8", "9.0", "sm_90"),
        ("12.0", "9.0", "sm_90a"),
        ("12.8", "10.0", "sm_100a"),
        ("12.8", "8.9", "sm_89"),
    ],
)
def test_best_target(cuda: str, capability: str, target: str | None) -> None:
    assert toolkits.best_target(cuda, capability) == target


def test_targets_of_a_release() -> None:
    targets = toolkits.targets_of("12.8.61")
    assert targets is not None
    assert {"sm_50", "sm_120", "sm_120a"} <= set(targets)
    assert "sm_120f" not in targets
    assert toolkits.targets_of("12.7") is None


def test_runnable_targets_are_of_the_gpus_own_major_version() -> None:
    assert toolkits.runnable_targets("12.8", "12.1") == ("sm_120",)
    assert toolkits.runnable_targets("12.9", "8.9") == ("sm_80", "sm_86", "sm_89")


def test_host_compilers() -> None:
    assert toolkits.gcc_max("12.8").value == 14
    assert toolkits.gcc_max("12.3.107").value == 12
    assert toolkits.gcc_max("11.5").value == 11
    assert toolkits.gcc_max("11.5").provenance.startswith("documented:")
    assert toolkits.clang_max("12.8").value == 19
    assert toolkits.releases_accepting_gcc(15)[0] == "13.0"
    # no 12.7 header exists, and the limit changes between its neighbours
    assert toolkits.gcc_max("12.7").value is None


def test_ptx_version() -> None:
    assert toolkits.ptx_isa_max("12.8").value == "8.7"
    assert toolkits.ptx_isa_max("15.0").value is None


def test_options_by_release() -> None:
    assert toolkits.supports_option("12.8", "--compress-mode=size").value is True
    assert toolkits.supports_option("12.4", "--compress-mode=size").value is False
    assert toolkits.supports_option("12.4", "-static-global-template-stub=false").value is False
    assert toolkits.supports_option("12.4", "--no-such-option").value is None
    assert toolkits.supports_option("13.0", "--list-arch", tool="ptxas").value is False
    assert toolkits.first_release_with_option("--compress-mode=size") == "12.8"
    refused = [c for c in toolkits.target_combinations() if c.message and "120f" in c.options]
    assert all("family-specific" in (c.message or "") for c in refused)
    assert refused
