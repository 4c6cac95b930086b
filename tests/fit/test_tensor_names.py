"""Tensors are told apart by their names, as the families of models spell them; what is not loaded is left out."""

from __future__ import annotations

import pytest

from gpuwhy.fit.architecture import read_architecture
from gpuwhy.fit.tensors import Tensor, inventory_of

NAMES: dict[str, str] = {
    "embedding": """
        model.embed_tokens.weight
        backbone.embeddings.weight
        backbone.embedding.weight
        transformer.word_embeddings.weight
        transformer.wte.weight
        gpt_neox.embed_in.weight
        transformer.embedding.word_embeddings.weight
        model.tok_embeddings.weight
        tok_embeddings.weight
        embeddings.word_embeddings.weight
    """,
    "output head": """
        lm_head.weight
        embed_out.weight
        transformer.output_layer.weight
        output.weight
        score.weight
        classifier.out_proj.weight
    """,
    "attention": """
        model.layers.0.self_attn.q_proj.weight
        model.layers.0.self_attn.qkv_proj.weight
        model.layers.0.self_attn.o_proj.weight
        model.layers.0.self_attn.sinks
        model.layers.0.self_attn.kv_b_proj.weight
        model.layers.0.self_attn.q_b_proj.weight
        backbone.layers.3.mixer.q_proj.weight
        transformer.h.0.self_attention.query_key_value.weight
        transformer.h.3.attn.c_attn.weight
        gpt_neox.layers.0.attention.query_key_value.weight
        model.decoder.layers.0.self_attn.q_proj.weight
        transformer.encoder.layers.0.self_attention.query_key_value.weight
        model.layers.0.attention.wqkv.weight
        language_model.model.layers.0.attention.wqkv.weight
        model.language_model.layers.0.self_attn.q_proj.weight
        layers.0.attention.wq.weight
        model.layers.0.self_attn.q_proj.weight_scale_inv
        encoder.layer.0.attention.self.query.weight
        model.layers.0.self_attn.k_b_proj.weight
        transformer.blocks.0.norm_attn_norm.attn.Wqkv.weight
        model.layers.0.self_attn.g_proj.weight
        model.layers.0.self_attn.b_proj.weight
        model.layers.0.self_attn.f_a_proj.weight
    """,
    "attention keys and values": """
        model.layers.0.self_attn.k_proj.weight
        backbone.layers.3.mixer.k_proj.weight
        layers.0.attention.wk.weight
        thinker.model.layers.0.self_attn.k_proj.weight
        model.layers.0.self_attn.k_proj.weight_packed
        model.layers.0.cross_attn.k_proj.weight
    """,
    "norms": """
        model.layers.0.self_attn.q_norm.weight
        model.layers.0.self_attn.k_norm.weight
        model.layers.0.self_attn.q_a_layernorm.weight
        model.layers.0.operator_norm.weight
        backbone.layers.3.norm.weight
        transformer.h.3.ln_1.weight
        transformer.rotary_pos_emb.inv_freq
    """,
    "dense MLP": """
        model.layers.0.mlp.gate_proj.weight
        model.layers.0.mlp.gate_up_proj.weight
        model.layers.0.mlp.down_proj.weight
        model.layers.0.feed_forward.w1.weight
        model.layers.0.feed_forward.gate_proj.weight
        backbone.layers.3.mixer.up_proj.weight
        transformer.h.0.mlp.dense_h_to_4h.weight
        transformer.h.3.mlp.c_fc.weight
        model.decoder.layers.0.fc1.weight
        transformer.encoder.layers.0.mlp.dense_h_to_4h.weight
        model.layers.0.feed_forward.w3.weight
        layers.0.feed_forward.w1.weight
        model.layers.0.mlp.down_proj.qweight
        encoder.layer.0.intermediate.dense.weight
        encoder.layer.0.output.dense.weight
        model.layers.0.mlp.switch_mlp.0.w
        model.layers.0.residual_mlp.w1.weight
        transformer.blocks.0.ffn.up_proj.weight
    """,
    "router": """
        model.layers.0.mlp.gate.weight
        model.layers.0.mlp.gate.e_score_correction_bias
        model.layers.0.mlp.router.weight
        model.layers.0.block_sparse_moe.gate.weight
        model.layers.0.mlp.shared_expert_gate.weight
        model.layers.0.block_sparse_moe.router.layer.weight
        model.layers.0.feed_forward.router.weight
        backbone.layers.3.mixer.gate.weight
        model.layers.0.moe.gate.weight
        transformer.blocks.0.ffn.router.layer.weight
        model.layers.3.mlp.gate.tid2eid
    """,
    "latent projections": """
        model.language_model.layers.0.mlp.pre_expert_proj.weight
        backbone.layers.1.mixer.fc1_latent_proj.weight
    """,
    "routed experts": """
        model.layers.0.mlp.experts.3.up_proj.weight
        model.language_model.layers.0.mlp.vision_moe.experts.gate_up_proj
        model.layers.0.mlp.experts.gate_up_proj_blocks
        model.layers.0.mlp.experts.gate_up_proj_bias
        model.layers.0.block_sparse_moe.experts.0.w1.weight
        model.layers.0.block_sparse_moe.input_linear.weight
        model.layers.0.feed_forward.experts.gate_up_proj
        backbone.layers.3.mixer.experts.4.up_proj.weight
        layers.0.experts.3.w1.weight
        model.layers.0.mlp.experts.1.down_proj.weight_scale
        model.layers.0.ffn.experts.0.w1.weight
        model.layers.0.moe.experts.0.up_proj.weight
        model.layers.0.moe.up_proj.weight
        transformer.blocks.0.ffn.experts.mlp.w1
    """,
    "shared experts": """
        model.layers.0.mlp.shared_experts.up_proj.weight
        model.layers.0.mlp.shared_expert.up_proj.weight
        model.layers.0.shared_mlp.input_linear.weight
        model.layers.0.feed_forward.shared_expert.up_proj.weight
        backbone.layers.3.mixer.shared_experts.up_proj.weight
        model.layers.0.share_expert.up_proj.weight
    """,
    "attention q_a and kv_a": """
        model.layers.0.self_attn.q_a_proj.weight
        model.layers.0.self_attn.kv_a_proj_with_mqa.weight
    """,
    "sparse attention indexer": """
        model.layers.0.self_attn.indexer.wq_b.weight
    """,
    "state layers": """
        model.layers.0.linear_attn.in_proj_qkvz.weight
        model.layers.0.linear_attn.conv1d.weight
        model.layers.0.linear_attn.A_log
        model.layers.0.mamba.in_proj.weight
        model.layers.0.conv.in_proj.weight
        backbone.layers.3.mixer.in_proj.weight
    """,
    "positions": """
        transformer.wpe.weight
        model.decoder.embed_positions.weight
        embeddings.position_embeddings.weight
    """,
    "vision tower": """
        vision_model.encoder.layers.0.attn.qkv.weight
        visual.blocks.0.attn.qkv.weight
        visual.merger.mlp.0.weight
        visual.deepstack_merger_list.0.linear_fc1.weight
        model.visual.blocks.0.mlp.linear_fc1.weight
        vision_tower.vision_model.encoder.layers.0.self_attn.k_proj.weight
        vision_tower.encoder.blocks.0.wqkv.weight
        vision_encoder.transformer.layers.0.attention.wq.weight
        vpm.encoder.layers.0.self_attn.k_proj.weight
    """,
    "vision projector": """
        mlp1.1.weight
        multi_modal_projector.linear_1.weight
        mm_projector.proj.0.weight
        vision_language_adapter.w_in.weight
        model.vision_embed_tokens.img_projection.0.weight
        model.resampler.kv_proj.weight
        resampler.attn.in_proj_weight
        mlp_AR.linear_1.weight
    """,
    "audio tower": """
        thinker.audio_tower.layers.0.self_attn.k_proj.weight
        audio_tower.layers.0.fc1.weight
    """,
    "pooling": """
        pooler.dense.weight
    """,
    "per-layer embedding": """
        model.language_model.embed_tokens_per_layer.weight
    """,
    "per-layer inputs": """
        model.layers.0.per_layer_input_gate.weight
        model.layers.0.laurel.linear_left.weight
    """,
    "per-layer projections": """
        model.per_layer_model_projection.weight
    """,
}  # fmt: skip
CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 61,
    "num_attention_heads": 4,
    "vocab_size": 128,
    "intermediate_size": 64,
}
NOT_LOADED = ["talker.model.layers.0.mlp.gate_proj.weight", "token2wav.code2wav_dit_model.x.weight", "model.layers.0.mlp.gate_up_proj.lora_A.speech.weight"]  # fmt: skip
PREDICTING = ["model.layers.61.embed_tokens.weight", "model.layers.61.eh_proj.weight", "mtp.layers.0.self_attn.q_proj.weight", "model.mtp_layers.0.input_proj.weight"]  # fmt: skip


def tensor(name: str) -> Tensor:
    return Tensor(name, "BF16", 2, 1000)


@pytest.mark.parametrize("kind", sorted(NAMES))
def test_a_name_says_what_a_tensor_is(kind: str) -> None:
    shape = read_architecture(CONFIG)
    for name in NAMES[kind].split():
        found = [group.name for group in inventory_of([tensor(name)], shape, 0.0).groups if group.is_stored]
        assert found == [kind], name


def test_what_no_engine_loads_is_in_the_files_only() -> None:
    found = inventory_of([tensor(name) for name in NOT_LOADED], read_architecture(CONFIG), 0.0)
    assert not any(group.is_stored for group in found.groups)
    assert (found.checkpoint_bytes, found.predicting_bytes) == (3000, 0)


def test_layers_of_prediction_are_kept_apart() -> None:
    found = inventory_of([tensor(name) for name in PREDICTING], read_architecture(CONFIG), 0.0)
    assert not any(group.is_stored for group in found.groups)
    assert found.predicting_bytes == 4000
