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
    "decoder_sparse_step": 1, "mtp_num_hidden_layers": 1,
}  # fmt: skip

_GEMMA3N: dict[str, Any] = {
    "vocab_size": 262400, "hidden_size": 2048, "num_hidden_layers": 35, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 256, "tie_word_embeddings": True, "max_position_embeddings": 32768,
    "sliding_window": 512, "sliding_window_pattern": 5, "vocab_size_per_layer_input": 262144,
    "hidden_size_per_layer_input": 256, "altup_num_inputs": 4, "num_kv_shared_layers": 15, "laurel_rank": 64,
}  # fmt: skip
_GEMMA4: dict[str, Any] = {
    "vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "global_head_dim": 512,
    "tie_word_embeddings": True, "max_position_embeddings": 131072, "sliding_window": 512, "sliding_window_pattern": 6,
    "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "enable_moe_block": False,
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
    "lfm2": {"tie_word_embeddings": True},
    "lfm2moe": {"tie_word_embeddings": True},
    "mamba": {"tie_word_embeddings": True},
    "cohere2moe": {"tie_word_embeddings": True, "sliding_window": 4096, "sliding_window_pattern": 4},
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3": {"head_dim": 128},
    "qwen3moe": {"decoder_sparse_step": 1},
    "qwen3next": {**_QWEN3_NEXT, "attn_output_gate": True},
    "qwen35": {**_QWEN3_NEXT, "attn_output_gate": True},
    "qwen35moe": {**_QWEN3_NEXT, "attn_output_gate": True},
    "qwen35text": {**_QWEN3_NEXT, "attn_output_gate": True},
    "qwen35moetext": {**_QWEN3_NEXT, "attn_output_gate": True},
    "gptoss": {"head_dim": 64, "sliding_window": 128, "sliding_window_pattern": 2},
    "llama4text": {"interleave_moe_layer_step": 1, "attention_chunk_size": 8192, "n_shared_experts": 1},
    "deepseekv2": {**_DEEPSEEK, "first_k_dense_replace": 0},
    "deepseekv3": {**_DEEPSEEK, "first_k_dense_replace": 3},
    "kimik2": {**_DEEPSEEK},
    "deepseekv4": {
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "num_key_value_heads": 1,
        "attention_k_eq_v": True,
        "o_lora_rank": 1024,
        "o_groups": 8,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "sliding_window": 128,
        "n_shared_experts": 1,
    },
    "musesparktext": {"attn_output_gate": True},
    "museglimmertext": {"attn_output_gate": True},
    "deepseekv32": {**_DEEPSEEK, "first_k_dense_replace": 3, "index_head_dim": 128, "index_n_heads": 64},
    "glmmoedsa": {
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "v_head_dim": 256,
        "first_k_dense_replace": 3,
        "index_head_dim": 128,
        "index_n_heads": 32,
    },
    "mimov2flash": {
        "v_head_dim": 128,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 192,
        "swa_v_head_dim": 128,
        "sliding_window": 128,
    },
    "gemma3n": _GEMMA3N,
    "gemma3ntext": _GEMMA3N,
    "gemma4": _GEMMA4,
    "gemma4text": _GEMMA4,
    "gemma4unified": {**_GEMMA4, "hidden_size_per_layer_input": 0},
    "gemma4unifiedtext": {**_GEMMA4, "hidden_size_per_layer_input": 0},
    "xlmroberta": {"tie_word_embeddings": True},
    "whisper": {"tie_word_embeddings": True},
    "mpt": {"tie_word_embeddings": True},
    "gptneo": {"tie_word_embeddings": True},
    "refinedweb": {"tie_word_embeddings": True},
    "refinedwebmodel": {"tie_word_embeddings": True},
    "openelm": {"tie_word_embeddings": True},
    "zamba2": {"tie_word_embeddings": True},
    "exaone4": {"sliding_window": 4096},
    "ernie45": {"tie_word_embeddings": True},
    "ernie45moe": {"tie_word_embeddings": True},
    "glm4moelite": {"qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "first_k_dense_replace": 1},
    "longcatflash": {**_DEEPSEEK},
    "minicpm3": {"qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "tie_word_embeddings": True},
    "recurrentgemma": {"tie_word_embeddings": True},
    "smollm3": {"tie_word_embeddings": True},
}

_LLAMA: dict[str, Any] = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "vocab_size": 32000, "max_position_embeddings": 2048,
}  # fmt: skip
_MISTRAL: dict[str, Any] = {**_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072}  # fmt: skip
_QWEN: dict[str, Any] = {**_LLAMA, "intermediate_size": 22016, "vocab_size": 151936, "max_position_embeddings": 32768}
#: of a section within another model's config.json alone: there, what equals the default of its class is left out
_NESTED: dict[str, dict[str, Any]] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "mixtral": {**_MISTRAL, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen2": _QWEN,
    "qwen3": {**_QWEN, "head_dim": 128},
    "phi3": {**_LLAMA, "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32064, "max_position_embeddings": 4096},
    "phi": {**_LLAMA, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "vocab_size": 51200},
    "gemma": {**_GEMMA, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 256000},
    "gemma2": {**_GEMMA, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 256000},
    "ariatext": {**_LLAMA, "moe_num_experts": 8, "moe_topk": 2, "moe_num_shared_experts": 2},
}  # fmt: skip

_CLIP: dict[str, Any] = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
#: the same for sections that describe an encoder
_TOWERS: dict[str, dict[str, Any]] = {
    "clipvision": _CLIP,
    "clipvisionmodel": _CLIP,
    "siglipvision": _CLIP,
    "siglipvisionmodel": _CLIP,
    "pixtral": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24},
    "qwen2vl": {"depth": 32, "embed_dim": 1280},
}
#: encoders that no such section describes by layers and widths: their weights, as published
_TOWER_PARAMETERS = {"gemma3nvision": 300_000_000, "gemma3naudio": 680_000_000, "gemma4audio": 305_000_000}
_UNDESCRIBED: dict[str, tuple[tuple[str, str, int], ...]] = {
    "phi4mm": (("vision", "image_embd_layer", 440_000_000), ("audio", "audio_embd_layer", 460_000_000)),
    "molmo": (("vision", "vocab_size", 405_000_000),),
    "phi3v": (("vision", "img_processor", 333_000_000),),
}

#: two matrices instead of three
_PLAIN_MLP = frozenset(
    ["gpt2", "gptneox", "gptj", "gptbigcode", "opt", "bloom", "falcon", "phi", "starcoder2", "mpt", "nemotron",
     "nemotronh", "codegen", "persimmon", "whisper", "bert", "roberta", "xlmroberta", "distilbert", "camembert", "mpnet",
     "gptneo", "apertus", "apertus15text", "apertus15", "apertus1p5", "apertus1p5text", "ernie", "electra", "megatronbert",
     "xlmrobertaxl", "roformer", "rocbert", "bertgeneration", "rembert", "bigbird", "gptneoxjapanese", "bart", "refinedweb", "refinedwebmodel", "rw", "xglm", "biogpt"]
)  # fmt: skip
#: encoders: no cache, no output head of the vocabulary
_ENCODERS = frozenset(
    ["bert", "roberta", "xlmroberta", "distilbert", "camembert", "mpnet", "modernbert", "deberta", "debertav2", "nomicbert",
     "gte", "new", "newmodel", "electra", "albert", "jinabert", "neobert", "snowflakegte"]
)  # fmt: skip
#: one matrix for gate and up, whose joint width is called the intermediate size
_JOINT_WIDTHS = frozenset(["qwen", "qwenlmhead", "molmo"])
#: their layers that do not attend to everything keep a state, and no window
_HYBRIDS = frozenset(
    ["qwen3next", "qwen35", "qwen35moe", "qwen35text", "qwen35moetext", "nemotronh", "granitemoehybrid", "jamba", "bamba",
     "falconh1", "lfm2", "lfm2moe", "lfm2vl", "zamba2", "minimaxtext01", "minimaxm1", "minimax", "kimilinear", "mamba",
     "mamba2", "falconmamba", "bailingmoelinear", "bailingmoev25", "plamo2", "olmohybrid"]
)  # fmt: skip
_LEARNED_POSITIONS = frozenset(
    ["gpt2", "gptbigcode", "gptneo", "opt", "bert", "roberta", "xlmroberta", "camembert", "electra", "whisper", "bart"]
)
#: kv_lora_rank without vLLM's latent cache: its list of such model types has not got them
_UNFOLDED = frozenset(["minicpm3", "plm"])
#: loaded without tables of cosines and sines: they are computed as they are needed (gemma3_causal.py of SGLang)
_COMPUTED_ROTARY = frozenset(["gemma3", "gemma3text"])
#: engines that keep a separate, smaller pool for the sliding layers of these (SGLang); the others are kept whole
_SGLANG_SLIDING_POOLS = frozenset(["llama4", "llama4text", "gptoss", "mimov2flash", "mimov2", "step3p5", "gemma4", "gemma4text"])  # fmt: skip


def default_of(model_type: str, field: str) -> Any:
    """The value that the class of this normalised model type takes for a field; None when not recorded."""
    return _DEFAULTS.get(model_type, {}).get(field)


def defaults_of(model_type: str) -> dict[str, Any]:
    """All recorded ones, as a section of config.json; empty for an unknown type."""
    return dict(_DEFAULTS.get(model_type, {}))


def nested_defaults_of(model_type: str) -> dict[str, Any]:
    """Those of a section within the config.json of a model of several parts, such as one that sees."""
    return {**_NESTED.get(model_type, {}), **_DEFAULTS.get(model_type, {})}


def tower_defaults_of(model_type: str) -> dict[str, Any]:
    """Of a section that describes an encoder of images or sounds."""
    return dict(_TOWERS.get(model_type, {}))


def tower_parameters(model_type: str) -> int:
    """Weights of an encoder whose section does not say its layers and widths; 0 for others."""
    return _TOWER_PARAMETERS.get(model_type, 0)


def undescribed_towers(model_type: str) -> tuple[tuple[str, str, int], ...]:
    """Kind, field that shows that it is there, weights: of encoders without a section of their own."""
    return _UNDESCRIBED.get(model_type, ())


def is_encoder(model_type: str) -> bool:
    """Whether it reads a text at once, and keeps no cache."""
    return model_type in _ENCODERS


def has_joint_width(model_type: str) -> bool:
    """Whether its intermediate size is that of gate and up together."""
    return model_type in _JOINT_WIDTHS


def has_states(model_type: str) -> bool:
    """Whether the layers of this type that do not attend to everything keep a state of fixed size."""
    return model_type in _HYBRIDS


def has_learned_positions(model_type: str) -> bool:
    """Whether positions are a table of weights."""
    return model_type in _LEARNED_POSITIONS


def keeps_heads_in_vllm(model_type: str) -> bool:
    """Whether vLLM caches the keys and values of every head although the model compresses them."""
    return model_type in _UNFOLDED


def has_computed_rotary_in_sglang(model_type: str) -> bool:
    return model_type in _COMPUTED_ROTARY


def has_plain_mlp(model_type: str) -> bool:
    """Whether the MLP is up and down only, without a gate."""
    return model_type in _PLAIN_MLP


def has_sliding_pool_in_sglang(model_type: str) -> bool:
    return model_type in _SGLANG_SLIDING_POOLS
