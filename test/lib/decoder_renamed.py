# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLaMA's relatives whose tensors have other names, for `decoders.py`."""
import math

from decoder_layers import (BASE, DIM, HEADS, INNER, VOCAB, WIDTH, attend, embed,
                            linear, plus, projections, rms_norm,
                            scaled, silu, split, tied, turn)


def feed(w, x, gate, up, down):
    gates, ups = (linear(w, name, x, INNER) for name in (gate, up))
    return linear(w, down, [[silu(g) * u for g, u in zip(*rows)]
                            for rows in zip(gates, ups)], WIDTH)


def exaone(w, ids):
    """EXAONE 3.5 with a tied head and LLaMA 3's scaling."""
    config = {"model_type": "exaone", "architectures": ["ExaoneForCausalLM"],
              "vocab_size": VOCAB, "hidden_size": WIDTH, "head_dim": DIM,
              "intermediate_size": INNER, "num_attention_heads": HEADS,
              "num_key_value_heads": 2, "num_layers": 2,
              "max_position_embeddings": 64, "activation_function": "silu",
              "layer_norm_epsilon": 1e-5, "rope_theta": 500.0,
              "rope_scaling": {"rope_type": "llama3", "factor": 4.0,
                               "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 32}}
    frequencies = []
    for i in range(DIM // 2):
        plain = 500.0 ** (-2.0 * i / DIM)
        turns = 32 * plain / (2 * math.pi)
        part = min(max((turns - 1) / 3, 0), 1)
        frequencies.append((1 - part) * plain / 4 + part * plain)
    x = embed(w, "transformer.wte.weight", ids)
    for i in range(2):
        at = f"transformer.h.{i}."
        q, k, v = projections(w, at + "attn.attention.", rms_norm(
            w, at + "ln_1", x, 1e-5), 2)
        q, k = (turn(heads, frequencies=frequencies) for heads in (q, k))
        x = plus(x, linear(w, at + "attn.attention.out_proj", attend(q, k, v),
                           WIDTH))
        x = plus(x, feed(w, rms_norm(w, at + "ln_2", x, 1e-5),
                         at + "mlp.c_fc_0", at + "mlp.c_fc_1",
                         at + "mlp.c_proj"))
    x = rms_norm(w, "transformer.ln_f", x, 1e-5)
    return config, tied(w, "transformer.wte.weight", x)


def internlm2(w, ids):
    """One matrix has for each head of keys its two queries, its key and its
    value."""
    config = {**BASE, "model_type": "internlm2", "num_key_value_heads": 2,
              "architectures": ["InternLM2ForCausalLM"], "bias": True,
              "attn_implementation": "eager", "rope_theta": 1e6,
              "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    x = embed(w, "model.tok_embeddings.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        rows = linear(w, at + "attention.wqkv", rms_norm(
            w, at + "attention_norm", x), 8 * DIM, True)
        parts = split(rows, 8)
        q, k, v = parts[0:2] + parts[4:6], parts[2::4], parts[3::4]
        y = attend(turn(q, 1e6), turn(k, 1e6), v)
        x = plus(x, linear(w, at + "attention.wo", y, WIDTH, True))
        at += "feed_forward."
        x = plus(x, feed(w, rms_norm(w, f"model.layers.{i}.ffn_norm", x),
                         at + "w1", at + "w3", at + "w2"))
    return config, linear(w, "output", rms_norm(w, "model.norm", x), VOCAB)


def minicpm(w, ids):
    """Factors of embeddings, of what sublayers add, and of logits."""
    config = {**BASE, "model_type": "minicpm", "num_key_value_heads": 2,
              "architectures": ["MiniCPMForCausalLM"], "scale_emb": 12,
              "scale_depth": 1.4, "dim_model_base": 8, "rms_norm_eps": 1e-5}
    depth = 1.4 / math.sqrt(2)
    x = embed(w, "model.embed_tokens.weight", ids, 12)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2)
        y = linear(w, at + "self_attn.o_proj", attend(turn(q), turn(k), v),
                   WIDTH)
        x = plus(x, [scaled(v, depth) for v in y])
        y = feed(w, rms_norm(w, at + "post_attention_layernorm", x, 1e-5),
                 at + "mlp.gate_proj", at + "mlp.up_proj", at + "mlp.down_proj")
        x = plus(x, [scaled(v, depth) for v in y])
    x = rms_norm(w, "model.norm", x, 1e-5)
    return config, tied(w, "model.embed_tokens.weight",
                        [scaled(v, 8 / WIDTH) for v in x])


def chatglm(w, ids):
    """GLM-4 under its first names: neighbouring channels of half a head turn, by
    a base that grows."""
    config = {"model_type": "chatglm", "architectures": ["ChatGLMModel"],
              "hidden_size": WIDTH, "ffn_hidden_size": INNER,
              "kv_channels": DIM, "num_attention_heads": HEADS,
              "num_layers": 2, "multi_query_attention": True,
              "multi_query_group_num": 2, "padded_vocab_size": VOCAB,
              "vocab_size": VOCAB, "seq_length": 64, "rmsnorm": True,
              "layernorm_epsilon": 1e-5, "add_bias_linear": False,
              "add_qkv_bias": True, "rope_ratio": 50, "original_rope": True,
              "apply_query_key_layer_scaling": True, "post_layer_norm": True,
              "attention_softmax_in_fp32": True, "pre_seq_len": None,
              "fp32_residual_connection": False, "quantization_bit": 0,
              "apply_residual_connection_post_layernorm": False,
              "tie_word_embeddings": False}
    x = embed(w, "transformer.embedding.word_embeddings.weight", ids)
    for i in range(2):
        at = f"transformer.encoder.layers.{i}."
        rows = linear(w, at + "self_attention.query_key_value", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 8 * DIM, True)
        parts = split(rows, 8)
        q, k = (turn(heads, 500000.0, channels=4, interleaved=True)
                for heads in (parts[:4], parts[4:6]))
        y = attend(q, k, parts[6:])
        x = plus(x, linear(w, at + "self_attention.dense", y, WIDTH))
        both = linear(w, at + "mlp.dense_h_to_4h", rms_norm(
            w, at + "post_attention_layernorm", x, 1e-5), 2 * INNER)
        x = plus(x, linear(w, at + "mlp.dense_4h_to_h", [
            [silu(g) * u for g, u in zip(r[:INNER], r[INNER:])] for r in both],
            WIDTH))
    x = rms_norm(w, "transformer.encoder.final_layernorm", x, 1e-5)
    return config, linear(w, "transformer.output_layer", x, VOCAB)
