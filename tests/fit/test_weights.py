"""What one rank holds: what is divided, what every rank keeps whole, and what an engine adds."""

from __future__ import annotations

import pytest
from tests.fit.models import config, model_of
from tests.fit.test_well_known_models import LLAMA_70B
from tests.fit.test_zoo import MODELS

from gpuwhy.fit.parallel import Parallel
from gpuwhy.fit.weights import RankWeights, rank_weights


def held(content: object, ranks: int = 1, is_sglang: bool = False) -> RankWeights:
    made = model_of(content)
    return rank_weights(made.shape, made.inventory, Parallel(tensor=ranks, attention=ranks, expert_ranks=ranks), is_sglang)  # fmt: skip


@pytest.mark.parametrize(("is_sglang", "gib"), [(False, 8.58), (True, 8.13)])
def test_sglang_computes_the_angles_of_gemma_3_and_vllm_keeps_them(is_sglang: bool, gib: float) -> None:
    """Both figures are from logs of google/gemma-3-4b-it; SGLang prints a difference of free memory."""
    assert held(config("google/gemma-3-4b-it"), is_sglang=is_sglang).gib.expected == pytest.approx(gib, rel=0.02)


def test_keys_are_not_divided_further_than_there_are_heads() -> None:
    parts = {part.name: part.divided_by for part in held(LLAMA_70B, 16).parts}
    assert parts["attention"] == 16
    assert parts["attention keys and values"] == 8


def test_what_a_quantised_tower_and_its_text_hold() -> None:
    """The towers stay in 16 bits: SGLang and vLLM quantise what the checkpoint says is quantised."""
    content = {**MODELS["Qwen2.5-VL-72B"]["config"], "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}  # fmt: skip
    parts = {part.name: part.whole_gib for part in held(content).parts}
    assert parts["vision tower"] == pytest.approx(0.66e9 * 2 / 2**30, rel=0.1)


def test_the_embedding_of_each_layer_is_divided_as_the_vocabulary_is() -> None:
    parts = {part.name: part.divided_by for part in held(MODELS["gemma-3n-E4B"]["config"], 2).parts}
    assert (parts["per-layer embedding"], parts["per-layer inputs"]) == (2, 1)


def test_a_model_that_embeds_has_no_head() -> None:
    causal = MODELS["Mistral-7B-v0.1"]["config"]
    heads = [
        [part.name for part in held({**causal, "architectures": [name]}).parts if part.name == "output head"]
        for name in ("MistralForCausalLM", "MistralModel", "MistralForSequenceClassification")
    ]
    assert heads == [["output head"], [], []]
