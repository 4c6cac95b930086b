"""Architectures by their several names, and the releases that know them."""

from __future__ import annotations

import pytest
from packaging.version import Version

from gpuwhy.knowledge import model_architectures as architectures


@pytest.mark.parametrize(
    "name",
    ["Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe", "transformers.models.qwen3_moe.Qwen3MoeConfig", "Qwen3MoeModel"],
)
def test_one_architecture_goes_by_several_names(name: str) -> None:
    assert architectures.normalised(name) == "qwen3moe"


def test_the_same_model_needs_another_release_of_each_program() -> None:
    assert architectures.first_release("transformers", "qwen3") == "4.51.0"
    assert architectures.first_release("vllm", "Qwen3ForCausalLM") == "0.8.4"
    assert architectures.first_release("ollama", "phi3") == "0.1.33"
    assert architectures.first_release("vllm", "NobodyKnowsForCausalLM") is None
    assert architectures.first_release("xinference", "qwen3") is None


def test_every_recorded_release_is_a_version_and_every_name_is_its_own_normal_form() -> None:
    for name, releases in architectures._FIRST.items():
        assert architectures.normalised(name) == name
        for release in releases.values():
            assert Version(release)


def test_a_hostile_name_is_cut() -> None:
    assert len(architectures.normalised("a" * 10_000)) <= architectures.LONGEST_NAME
