"""What a config.json leaves out: the values that the configuration classes of transformers take for it.

Some models are published with a config.json that holds only what differs from its class (Gemma 3 names neither heads
nor vocabulary). Structure that no field expresses at all is here too: which model types have an MLP without a gate.
documented: the configuration and modelling classes of transformers, by model type.
"""

from __future__ import annotations

from typing import Any

_GEMMA3: dict[str, Any] = {
    "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "tie_word_embeddings": True,
    "max_position_embeddings": 131072, "sliding_window": 4096, "sliding_window_pattern": 6,
}  # fmt: skip
_DEEPSEEK: dict[str, Any] = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
_GEMMA: dict[str, Any] = {"head_dim": 256, "tie_word_embeddings": True, "max_position_embeddings": 8192}
_QWEN3_NEXT: dict[str, Any] = {
    "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "head_dim": 256,
    "decoder_sparse_step": 1,
}  # fmt: skip

_DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma": _GEMMA,
    "gemma2": {**_GEMMA, "sliding_window": 4096, "sliding_window_pattern": 2},
    "gemma3": _GEMMA3,
    "gemma3text": _GEMMA3,
    "cohere": {"tie_word_embeddings": True},
    "cohere2": {"tie_word_embeddings": True, "sliding_window": 4096, "sliding_window_pattern": 4},
    "gpt2": {"tie_word_embeddings": True},
    "gptbigcode": {"tie_word_embeddings": True, "num_key_value_heads": 1},
    "bloom": {"tie_word_embeddings": True},
    "opt": {"tie_word_embeddings": True},
    "falcon": {"tie_word_embeddings": True},
    "starcoder2": {"tie_word_embeddings": True},
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3": {"head_dim": 128},
    "qwen3moe": {"decoder_sparse_step": 1},
    "qwen3next": {**_QWEN3_NEXT, "attn_output_gate": True},
    "qwen35text": {**_QWEN3_NEXT, "attn_output_gate": True},
    "qwen35moetext": {**_QWEN3_NEXT, "attn_output_gate": True},
    "gptoss": {"head_dim": 64, "sliding_window": 128, "sliding_window_pattern": 2},
    "llama4text": {"interleave_moe_layer_step": 1, "attention_chunk_size": 8192, "n_shared_experts": 1},
    "deepseekv2": {**_DEEPSEEK, "first_k_dense_replace": 0},
    "deepseekv3": {**_DEEPSEEK, "first_k_dense_replace": 3},
    "kimik2": {**_DEEPSEEK},
}

#: two matrices instead of three
_PLAIN_MLP = frozenset(
    ["gpt2", "gptneox", "gptj", "gptbigcode", "opt", "bloom", "falcon", "phi", "starcoder2", "mpt", "nemotron",
     "nemotronh", "codegen", "persimmon", "whisper"]
)  # fmt: skip
#: engines that keep a separate, smaller pool for the sliding layers of these (SGLang); the others are kept whole
_SGLANG_SLIDING_POOLS = frozenset(["llama4", "llama4text", "gptoss", "mimov2flash", "mimov2", "step3p5", "gemma4", "gemma4text"])  # fmt: skip


def default_of(model_type: str, field: str) -> Any:
    """The value that the class of this normalised model type takes for a field; None when not recorded."""
    return _DEFAULTS.get(model_type, {}).get(field)


def defaults_of(model_type: str) -> dict[str, Any]:
    """All recorded ones, as a section of config.json; empty for an unknown type."""
    return dict(_DEFAULTS.get(model_type, {}))


def has_plain_mlp(model_type: str) -> bool:
    """Whether the MLP is up and down only, without a gate."""
    return model_type in _PLAIN_MLP


def has_sliding_pool_in_sglang(model_type: str) -> bool:
    return model_type in _SGLANG_SLIDING_POOLS
