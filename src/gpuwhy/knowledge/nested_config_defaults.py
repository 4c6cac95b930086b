"""What the config.json of a model of several parts leaves out of its sections: the values that its class takes.

A section is written without what equals the default of the model's class (LLaVA names of its Llama little more than
the vocabulary). By the type of the whole model; ``model_type`` is that of its text, unless the section names another.
documented: the configuration classes of transformers 5.
"""

from __future__ import annotations

from typing import Any

from gpuwhy.knowledge.model_architectures import normalised

_TEXTS: dict[str, dict[str, Any]] = {
    "aria": {"model_type": "aria_text", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048, "moe_num_experts": 8, "moe_num_shared_experts": 2},
    "cohere2vision": {"model_type": "cohere2", "vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64, "head_dim": 128, "max_position_embeddings": 8192},
    "deepseekvl": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "deepseekvlhybrid": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "ernie45vlmoe": {"model_type": "ernie4_5_vl_moe_text", "vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "max_position_embeddings": 131072, "moe_num_experts": 64, "moe_num_shared_experts": 2},
    "gemma3": {"model_type": "gemma3_text", "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072},
    "gemma4": {"model_type": "gemma4_text", "vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072},
    "glm46v": {"model_type": "glm4v_text", "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "max_position_embeddings": 32768},
    "glm4v": {"model_type": "glm4v_text", "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "max_position_embeddings": 32768},
    "glm4vmoe": {"model_type": "glm4v_moe_text", "vocab_size": 151424, "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "max_position_embeddings": 65536, "moe_intermediate_size": 1408, "n_routed_experts": 128, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 1},
    "glm5next": {"model_type": "glm5_next_text", "vocab_size": 154880, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 45, "num_attention_heads": 64, "head_dim": 0, "max_position_embeddings": 1048576, "moe_intermediate_size": 2048, "n_routed_experts": 288, "num_experts_per_tok": 8, "n_shared_experts": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 256, "qk_rope_head_dim": 0, "v_head_dim": 256},
    "glmocr": {"model_type": "glm_ocr_text", "vocab_size": 59392, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 131072},
    "gotocr2": {"model_type": "qwen2", "vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 24, "num_attention_heads": 16, "max_position_embeddings": 32768},
    "hyperclovaxvisionv2": {"model_type": "hyperclovax", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "idefics2": {"model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 32768},
    "idefics3": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "internvl": {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 32768},
    "janus": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "kimik25": {"model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128, "head_dim": 64, "max_position_embeddings": 4096, "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128},
    "lfm2vl": {"model_type": "lfm2", "vocab_size": 65536, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 128000},
    "lightonocr": {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960},
    "llama4": {"model_type": "llama4_text", "vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "num_local_experts": 16, "num_experts_per_tok": 1},
    "llava": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "llavanext": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "llavanextvideo": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "llavaonevision": {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 32768},
    "minimaxm3vl": {"model_type": "minimax_m3_vl_text", "vocab_size": 200064, "hidden_size": 6144, "intermediate_size": 3072, "num_hidden_layers": 60, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 524288, "num_local_experts": 128, "num_experts_per_tok": 4},
    "mistral3": {"model_type": "mistral", "vocab_size": 131072, "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072},
    "mistrallarge4": {"model_type": "mistral_large4_text", "vocab_size": 204800, "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 72, "num_attention_heads": 64, "head_dim": 64, "max_position_embeddings": 1048576, "moe_intermediate_size": 6144, "n_routed_experts": 128, "num_experts_per_tok": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "kv_lora_rank": 512, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "v_head_dim": 128},
    "mllama": {"model_type": "mllama_text_model", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072},
    "molmo2": {"model_type": "molmo2_text", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 36864},
    "museglimmer": {"model_type": "muse_glimmer_text", "vocab_size": 202048, "hidden_size": 6656, "intermediate_size": 19968, "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131072},
    "musespark": {"model_type": "muse_spark_text", "vocab_size": 202048, "hidden_size": 8192, "intermediate_size": 16384, "num_hidden_layers": 62, "num_attention_heads": 128, "num_key_value_heads": 16, "head_dim": 64, "max_position_embeddings": 1048576, "moe_intermediate_size": 4096, "num_local_experts": 256, "num_experts_per_tok": 8, "moe_hidden_size": 4096},
    "ovis2": {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 32768},
    "paddleocrvl": {"model_type": "paddleocr_vl_text", "vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131072},
    "paligemma": {"model_type": "gemma", "vocab_size": 257152, "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 8192},
    "qwen25vl": {"model_type": "qwen2_5_vl_text", "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 32768},
    "qwen2vl": {"model_type": "qwen2_vl_text", "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 32768},
    "qwen35": {"model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 32768, "linear_num_value_heads": 32, "linear_num_key_heads": 16},
    "qwen35moe": {"model_type": "qwen3_5_moe_text", "vocab_size": 248320, "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8, "linear_num_value_heads": 32, "linear_num_key_heads": 16},
    "qwen3vl": {"model_type": "qwen3_vl_text", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 128000},
    "qwen3vlmoe": {"model_type": "qwen3_vl_moe_text", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16, "head_dim": 128, "max_position_embeddings": 128000, "moe_intermediate_size": 1408, "num_local_experts": 60, "num_experts_per_tok": 4},
    "smolvlm": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "step3p7": {"model_type": "step3p5", "vocab_size": 128815, "hidden_size": 4096, "intermediate_size": 11264, "num_hidden_layers": 45, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 128000, "moe_intermediate_size": 1280, "n_routed_experts": 288, "num_experts_per_tok": 8},
    "vipllava": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
    "videollava": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 2048},
}  # fmt: skip
_TOWERS: dict[str, dict[str, Any]] = {
    "aria": {"hidden_size": 1152, "num_hidden_layers": 12, "intermediate_size": 3072},
    "cohere2vision": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 3072},
    "deepseekvl": {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072},
    "deepseekvlhybrid": {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072},
    "ernie45vlmoe": {"hidden_size": 1280, "depth": 32, "intermediate_size": 5120, "spatial_merge_size": 2},
    "gemma3": {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072},
    "glm46v": {"hidden_size": 1536, "depth": 24, "intermediate_size": 13696, "out_hidden_size": 4096, "spatial_merge_size": 2},
    "glm4v": {"hidden_size": 1536, "depth": 24, "intermediate_size": 13696, "out_hidden_size": 4096, "spatial_merge_size": 2},
    "glm4vmoe": {"hidden_size": 1536, "depth": 24, "intermediate_size": 13696, "out_hidden_size": 4096, "spatial_merge_size": 2},
    "glm5next": {"hidden_size": 1024, "depth": 24, "intermediate_size": 4096, "out_hidden_size": 1536, "spatial_merge_size": 2},
    "glmocr": {"hidden_size": 1024, "depth": 24, "intermediate_size": 4096, "out_hidden_size": 1536, "spatial_merge_size": 2},
    "gotocr2": {"hidden_size": 768, "num_hidden_layers": 12},
    "hyperclovaxvisionv2": {"hidden_size": 3584, "depth": 32, "intermediate_size": 3420, "out_hidden_size": 3584, "spatial_merge_size": 2},
    "idefics2": {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072},
    "idefics3": {"hidden_size": 1152, "num_hidden_layers": 12, "intermediate_size": 3072},
    "internvl": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "janus": {"hidden_size": 1024, "depth": 2, "num_hidden_layers": 24, "mlp_ratio": 4.0},
    "kimik25": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304},
    "lfm2vl": {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072},
    "lightonocr": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "llama4": {"hidden_size": 768, "num_hidden_layers": 34, "intermediate_size": 5632},
    "llava": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "llavanext": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "llavanextvideo": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "llavaonevision": {"hidden_size": 1152, "num_hidden_layers": 26, "intermediate_size": 4304},
    "minimaxm3vl": {"hidden_size": 1280, "num_hidden_layers": 32, "intermediate_size": 5120, "spatial_merge_size": 2},
    "mistral3": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "mistrallarge4": {"hidden_size": 2048, "num_hidden_layers": 30, "intermediate_size": 6144},
    "mllama": {"hidden_size": 1280, "num_hidden_layers": 32, "intermediate_size": 5120},
    "molmo2": {"hidden_size": 1152, "num_hidden_layers": 25, "intermediate_size": 4304},
    "museglimmer": {"hidden_size": 1536, "num_hidden_layers": 50, "intermediate_size": 8960},
    "musespark": {"hidden_size": 1536, "num_hidden_layers": 50, "intermediate_size": 8960},
    "ovis2": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 2816},
    "paddleocrvl": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304, "spatial_merge_size": 2},
    "paligemma": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4096},
    "qwen25vl": {"hidden_size": 3584, "depth": 32, "intermediate_size": 3420, "out_hidden_size": 3584, "spatial_merge_size": 2},
    "qwen2vl": {"hidden_size": 3584, "embed_dim": 1280, "depth": 32, "mlp_ratio": 4, "spatial_merge_size": 2},
    "qwen35": {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "out_hidden_size": 3584, "spatial_merge_size": 2},
    "qwen35moe": {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "out_hidden_size": 3584, "spatial_merge_size": 2},
    "qwen3vl": {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "out_hidden_size": 3584, "spatial_merge_size": 2},
    "qwen3vlmoe": {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304, "out_hidden_size": 3584, "spatial_merge_size": 2},
    "smolvlm": {"hidden_size": 1152, "num_hidden_layers": 12, "intermediate_size": 3072},
    "step3p7": {"hidden_size": 1536, "num_hidden_layers": 47, "intermediate_size": 8960, "mlp_ratio": 5.833333333333333},
    "vipllava": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
    "videollava": {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096},
}  # fmt: skip


def text_defaults_of(whole_type: str, text_type: str) -> dict[str, Any]:
    """Of the text section of a model of this normalised type; empty where it has a text of another type."""
    found = _TEXTS.get(whole_type, {})
    return {name: value for name, value in found.items() if name != "model_type"} if text_type in ("", type_of(whole_type)) else {}  # fmt: skip


def type_of(whole_type: str) -> str:
    """The normalised type of the text of such a model; "" when not recorded."""
    return normalised(str(_TEXTS.get(whole_type, {}).get("model_type", "")))


def tower_defaults_of_whole(whole_type: str) -> dict[str, Any]:
    """Of the section of such a model that describes what it sees with."""
    return dict(_TOWERS.get(whole_type, {}))
