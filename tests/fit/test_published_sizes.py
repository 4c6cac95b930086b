"""The number of parameters comes out of the fields of config.json, for every kind of model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fit.models import DATA

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.inventory import computed_inventory

PUBLISHED: dict[str, dict[str, Any]] = json.loads((DATA / "published.json").read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameters_are_counted_within_half_a_percent(name: str) -> None:
    shape = read_architecture(PUBLISHED[name]["config"])
    billions = computed_inventory(shape).checkpoint_bytes / shape.quantization.dtype.bytes_each / 1e9
    assert shape.missing == ()
    assert billions == pytest.approx(PUBLISHED[name]["billions"], rel=0.005)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("Qwen3-Next-80B", {"state": 36, "full": 12}),
        ("Nemotron-H-8B", {"state": 24, "full": 4, "none": 24}),
        ("gpt-oss-20b", {"sliding": 12, "full": 12}),
        ("Kimi-Linear-48B", {"state": 20, "full": 7}),
        ("Jamba-1.5-mini", {"state": 28, "full": 4}),
        ("Phi-3.5-mini", {"full": 32}),
        ("gemma-3-1b", {"sliding": 22, "full": 4}),
        ("Llama-4-Scout", {"sliding": 36, "full": 12}),
        ("Qwen2.5-VL-7B", {"full": 28}),
    ],
)
def test_layers_are_told_apart(name: str, kinds: dict[str, int]) -> None:
    shape = read_architecture(PUBLISHED[name]["config"])
    assert {mixer: shape.layers_of(mixer) for mixer in kinds} == kinds


def test_what_a_class_leaves_out_is_taken_from_its_defaults() -> None:
    fields = {"num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240, "sliding_window": 1024}
    shape = read_architecture({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", **fields}})
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.vocabulary) == (8, 4, 256, 262208)
    assert shape.is_tied


def test_prediction_layers_are_not_part_of_the_model() -> None:
    config = PUBLISHED["GLM-4.5-Air"]["config"]
    with_them = computed_inventory(read_architecture(config))
    without = computed_inventory(read_architecture({**config, "num_nextn_predict_layers": 0}))
    assert with_them.total_bytes == without.total_bytes
    assert with_them.predicting_bytes > 1e9
