# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models for gguf_families.py beyond those of decoders.py."""
import decoders
import gguf_hybrids
from decoder_layers import BASE, DIM, HEADS, INNER, VOCAB, WIDTH
from gguf_encoders import bert, nomic_bert


def llama_like(w, layers, kv=2, bias="", norms=("weight",), feed=None):
    """Tensors of a LLaMA; `feed` makes those behind the second norm."""
    w.matrix("model.embed_tokens.weight", VOCAB, WIDTH)
    w.matrix("lm_head.weight", VOCAB, WIDTH)
    for end in norms:
        w.vector("model.norm." + end, WIDTH, 1.0)
    for i in range(layers):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            for end in norms:
                w.vector(f"{at}{name}.{end}", WIDTH, 1.0)
        for part, rows in (("q", HEADS), ("k", kv), ("v", kv), ("o", HEADS)):
            w.matrix(f"{at}self_attn.{part}_proj.weight", rows * DIM, WIDTH)
            if part in bias:
                w.vector(f"{at}self_attn.{part}_proj.bias", rows * DIM)
        if feed:
            feed(w, at + "mlp.", i)
        else:
            gated(w, at + "mlp.", INNER)


def gated(w, at, inner):
    w.matrix(at + "gate_proj.weight", inner, WIDTH)
    w.matrix(at + "up_proj.weight", inner, WIDTH)
    w.matrix(at + "down_proj.weight", WIDTH, inner)


def experts(w, at, count, inner):
    w.matrix(at + "gate.weight", count, WIDTH)
    for e in range(count):
        gated(w, f"{at}experts.{e}.", inner)


def qwen2_moe(w):
    def feed(w, at, i):
        experts(w, at, 5, 24)
        gated(w, at + "shared_expert.", 40)
        w.matrix(at + "shared_expert_gate.weight", 1, WIDTH)
    llama_like(w, 2, bias="qkv", feed=feed)
    return {**BASE, "model_type": "qwen2_moe", "num_key_value_heads": 2,
            "num_experts": 5, "num_experts_per_tok": 2,
            "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40,
            "rms_norm_eps": 1e-6}


def deepseek_v2(w, layers=2, whole=False, sizes=(12, 6, 8, 7)):
    """As older files have it: keys and values of all heads in one matrix."""
    rank, nope, turned, value = sizes

    def feed(w, at, i):
        if i == 0:
            return gated(w, at, INNER)
        experts(w, at, 5, 24)
        return gated(w, at + "shared_experts.", 48)
    llama_like(w, layers, kv=0, feed=feed)
    for i in range(layers):
        at = f"model.layers.{i}.self_attn."
        for part in "qkvo":
            del w.made[f"{at}{part}_proj.weight"]
        if whole:
            w.matrix(at + "q_a_proj.weight", 16, WIDTH)
            w.vector(at + "q_a_layernorm.weight", 16, 1.0)
            w.matrix(at + "q_b_proj.weight", HEADS * (nope + turned), 16)
        else:
            w.matrix(at + "q_proj.weight", HEADS * (nope + turned), WIDTH)
        w.matrix(at + "kv_a_proj_with_mqa.weight", rank + turned, WIDTH)
        w.vector(at + "kv_a_layernorm.weight", rank, 1.0)
        w.matrix(at + "kv_b_proj.weight", HEADS * (nope + value), rank)
        w.matrix(at + "o_proj.weight", WIDTH, HEADS * value)
    return {**BASE, "model_type": "deepseek_v2", "num_key_value_heads": HEADS,
            "q_lora_rank": 16 if whole else None,
            "num_hidden_layers": layers, "kv_lora_rank": rank, "v_head_dim": value,
            "qk_nope_head_dim": nope, "qk_rope_head_dim": turned,
            "n_routed_experts": 5, "num_experts_per_tok": 2,
            "moe_intermediate_size": 24, "n_shared_experts": 2,
            "first_k_dense_replace": 1, "topk_method": "greedy",
            "n_group": 1, "topk_group": 1, "norm_topk_prob": False,
            "routed_scaling_factor": 1.5, "rope_scaling": {
                "type": "yarn", "factor": 40.0, "beta_fast": 32,
                "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707,
                "original_max_position_embeddings": 32}}


def deepseek_v2_whole(w):
    return deepseek_v2(w, whole=True)


def deepseek_v2_split(w):
    """Keys and values apart, in rows of whole blocks."""
    return deepseek_v2(w, whole=True, sizes=(32, 32, 8, 32))


def ernie4_5_moe(w):
    """All layers but the first have experts: llama.cpp reads no other files."""
    def feed(w, at, i):
        if i == 0:
            return gated(w, at, INNER)
        experts(w, at, 6, INNER // 2)
        w.vector(at + "moe_statics.e_score_correction_bias", 6)
        return gated(w, at + "shared_experts.", INNER)
    llama_like(w, 3, feed=feed)
    return {**BASE, "model_type": "ernie4_5_moe", "num_key_value_heads": 2,
            "num_hidden_layers": 3, "moe_num_experts": 6, "moe_k": 2,
            "moe_intermediate_size": INNER // 2, "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1, "moe_layer_interval": 1,
            "rms_norm_eps": 1e-5, "tie_word_embeddings": False}


def granite(w):
    llama_like(w, 2)
    return {**BASE, "model_type": "granite", "num_key_value_heads": 2,
            "embedding_multiplier": 3.0, "attention_multiplier": 0.2,
            "residual_multiplier": 0.4, "logits_scaling": 2.0}


def olmoe(w):
    llama_like(w, 2, kv=HEADS, feed=lambda w, at, i: experts(w, at, 5, INNER))
    for i in range(2):
        for part in "qk":
            w.vector(f"model.layers.{i}.self_attn.{part}_norm.weight", WIDTH, 1.0)
    return {**BASE, "model_type": "olmoe", "num_key_value_heads": HEADS,
            "num_experts": 5, "num_experts_per_tok": 2}


def starcoder2(w):
    def feed(w, at, i):
        for name, rows, columns in (("c_fc", INNER, WIDTH),
                                    ("c_proj", WIDTH, INNER)):
            w.matrix(f"{at}{name}.weight", rows, columns)
            w.vector(f"{at}{name}.bias", rows)
    llama_like(w, 2, bias="qkvo", norms=("weight", "bias"), feed=feed)
    return {**BASE, "model_type": "starcoder2", "num_key_value_heads": 2,
            "use_bias": True, "tie_word_embeddings": False}


def mamba(w):
    states, rank, taps, inner = 6, 3, 4, 2 * WIDTH
    w.matrix("backbone.embeddings.weight", VOCAB, WIDTH)
    w.vector("backbone.norm_f.weight", WIDTH, 1.0)
    for i in range(2):
        at = f"backbone.layers.{i}."
        w.vector(at + "norm.weight", WIDTH, 1.0)
        at += "mixer."
        w.matrix(at + "in_proj.weight", 2 * inner, WIDTH)
        w.vector(at + "conv1d.weight", inner * taps)
        w.made[at + "conv1d.weight"] = ([inner, 1, taps],
                                        w.made[at + "conv1d.weight"][1])
        w.vector(at + "conv1d.bias", inner)
        w.matrix(at + "x_proj.weight", rank + 2 * states, inner)
        w.matrix(at + "dt_proj.weight", inner, rank)
        w.vector(at + "dt_proj.bias", inner)
        w.matrix(at + "A_log", inner, states)
        w.vector(at + "D", inner)
        w.matrix(at + "out_proj.weight", WIDTH, inner)
    return {"model_type": "mamba", "hidden_size": WIDTH, "vocab_size": VOCAB,
            "num_hidden_layers": 2, "state_size": states,
            "time_step_rank": rank, "conv_kernel": taps, "expand": 2,
            "intermediate_size": inner}


def falcon_mamba(w):
    return {**mamba(w), "model_type": "falcon_mamba", "mixer_rms_eps": 1e-5}


def exaone4_full(w):
    """Without a window all layers see everything, and turn."""
    config = decoders.CASES["exaone4"](w, [0])[0]
    for key in ("layer_types", "sliding_window_pattern"):
        del config[key]
    return {**config, "sliding_window": None}


def llama4_dense(w):
    """Without experts and chunks; a file says so with zeros."""
    llama_like(w, 4, feed=lambda w, at, i: gated(
        w, at.replace("mlp", "feed_forward"), INNER))
    return {**BASE, "model_type": "llama4_text", "num_key_value_heads": 2,
            "head_dim": DIM, "num_hidden_layers": 4, "moe_layers": [],
            "num_local_experts": 0, "interleave_moe_layer_step": 1,
            "no_rope_layers": [1] * 4,
            "layer_types": ["full_attention"] * 4, "sliding_window": 0,
            "attn_temperature_tuning": False, "intermediate_size_mlp": INNER}


def nemotron_whole(w):
    """All of a head turns, against the default of the class."""
    return {**decoders.OTHERS["nemotron"](w, [0])[0], "partial_rotary_factor": 1}


def qwen2_vl(w):
    """Of texts alone, as the next two."""
    llama_like(w, 2, bias="qkv")
    return {**BASE, "model_type": "qwen2", "num_key_value_heads": 2,
            "rms_norm_eps": 1e-6}


def qwen3_vl(w, feed=None):
    llama_like(w, 2, feed=feed)
    for i in range(2):
        for part in "qk":
            w.vector(f"model.layers.{i}.self_attn.{part}_norm.weight", DIM, 1.0)
    return {**BASE, "model_type": "qwen3", "num_key_value_heads": 2,
            "head_dim": DIM, "rms_norm_eps": 1e-6}


def qwen3_vl_moe(w):
    config = qwen3_vl(w, lambda w, at, i: experts(w, at, 5, 24))
    return {**config, "model_type": "qwen3_moe", "num_experts": 5,
            "num_experts_per_tok": 2, "moe_intermediate_size": 24,
            "norm_topk_prob": True}


OWN = {function.__name__: function for function in (
    qwen2_moe, qwen2_vl, qwen3_vl, qwen3_vl_moe, gguf_hybrids.qwen35,
    gguf_hybrids.qwen35_moe, gguf_hybrids.qwen3_next, gguf_hybrids.nemotron_h,
    gguf_hybrids.nemotron_h_moe, gguf_hybrids.falcon_h1, deepseek_v2,
    deepseek_v2_whole, deepseek_v2_split, ernie4_5_moe, granite, olmoe, starcoder2, mamba, bert,
    nomic_bert, falcon_mamba, exaone4_full, llama4_dense, nemotron_whole)}
