"""The kinds of models that people serve: parameters as published, and the cache as arithmetic has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fit.models import estimated, model_of

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.inventory import computed_inventory, scaled_inventory
from gpuwhy.fit.kv_cache import kv_shape
from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.results import Verdict

DATA = Path(__file__).parents[1] / "data" / "fit_zoo"
MODELS: dict[str, dict[str, Any]] = json.loads((DATA / "models.json").read_text(encoding="utf-8"))["models"]
BUILT: dict[str, dict[str, Any]] = json.loads((DATA / "built.json").read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_parameters_are_as_published(name: str) -> None:
    shape = read_architecture(MODELS[name]["config"])
    inventory = computed_inventory(shape)
    each = shape.quantization.dtype.bytes_each * 1e9
    counts = [inventory.checkpoint_bytes / each, (inventory.checkpoint_bytes + inventory.predicting_bytes) / each]
    published = MODELS[name]["billions"]
    assert shape.missing == ()
    # some cards count the layers of multi-token prediction
    assert min(abs(count - published) for count in counts) <= 0.01 * published, counts


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_cache_of_a_token_is_as_arithmetic_has_it(name: str) -> None:
    shape = read_architecture(MODELS[name]["config"])
    found = kv_shape(shape, Parallel(), "bfloat16").per_token
    assert found == pytest.approx(MODELS[name]["cache"], rel=0.001)


@pytest.mark.parametrize("name", sorted(BUILT))
def test_parameters_are_those_of_the_class_that_builds_the_model(name: str) -> None:
    shape = read_architecture(BUILT[name]["config"])
    assert shape.missing == ()
    assert computed_inventory(shape).checkpoint_bytes / 2 == pytest.approx(BUILT[name]["parameters"], rel=0.015)


@pytest.mark.parametrize("name", sorted(name for name, built in BUILT.items() if "cache" in built))
def test_the_cache_of_a_token_is_as_wide_as_what_is_built(name: str) -> None:
    found = kv_shape(read_architecture(BUILT[name]["config"]), Parallel(), "bfloat16").per_token
    assert found == pytest.approx(BUILT[name]["cache"], rel=0.001)


def test_a_model_that_only_embeds_starts_without_a_cache() -> None:
    found = estimated(model_of(MODELS["bge-large-en-v1.5"]["config"]), "vllm 0.33.0", gpu="L4")
    assert (found.verdict, found.cache.bytes_per_token) == (Verdict.STARTS, 0)


@pytest.mark.parametrize(
    ("model_type", "billions"),
    [("llava", 7.06), ("llama4", 108.2), ("glm4v_moe", 104.4), ("qwen2_vl", 73.4), ("kimi_k25", 670.6), ("mistral3", 24.0), ("minimax_m3_vl", 448)],
)  # fmt: skip
def test_sections_may_leave_out_what_their_class_takes(model_type: str, billions: float) -> None:
    """As transformers builds the model from a configuration that says nothing but its type."""
    shape = read_architecture({"model_type": model_type, "text_config": {"vision": 0}, "vision_config": {"text": 0}})
    assert computed_inventory(shape).checkpoint_bytes / 2e9 == pytest.approx(billions, rel=0.02)


def test_a_section_of_another_class_takes_the_values_of_its_own() -> None:
    config = {"model_type": "llava", "text_config": {"model_type": "mistral", "num_hidden_layers": 4}, "vision_config": {"model_type": "siglip_vision_model"}}  # fmt: skip
    shape = read_architecture(config)
    assert (len(shape.layers), shape.inner, shape.kv_heads) == (4, 14336, 8)
    assert shape.vision
    assert (shape.vision.layers, shape.vision.width) == (12, 768)


@pytest.mark.parametrize(
    ("name", "stored"),
    [("Qwen2.5-Omni-7B (thinker)", 22.4e9), ("Phi-4-multimodal", 11.15e9), ("MiMo-7B", 15.7e9), ("Qwen3.5-397B-A17B", 807e9)],
)  # fmt: skip
def test_what_is_not_loaded_is_not_counted_however_large_the_files_are(name: str, stored: float) -> None:
    """What speaks, adapters, layers of prediction: an index says the size of all of it."""
    computed = computed_inventory(read_architecture(MODELS[name]["config"]))
    scaled = scaled_inventory(computed, stored, 5e9)
    assert scaled.total_bytes == pytest.approx(computed.total_bytes, rel=0.012)
    assert scaled.checkpoint_bytes == stored
