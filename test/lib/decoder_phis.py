# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phi, of which 3 and 4 are one class, for `decoders.py`."""
import math

from decoder_layers import (BASE, INNER, VOCAB, WIDTH, attend, embed, gelu_tanh,
                            head, layer_norm, linear, norm_each, plain, plus,
                            projections, rms_norm, silu, split, tied, turn)


def phi(w, ids):
    config = {**BASE, "model_type": "phi", "qk_layernorm": True,
              "partial_rotary_factor": 0.5}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        normed = layer_norm(w, at + "input_layernorm", x)
        q, k, v = projections(w, at + "self_attn.", normed, 4, bias=True)
        q = norm_each(w, at + "self_attn.q_layernorm", q, layer_norm)
        k = norm_each(w, at + "self_attn.k_layernorm", k, layer_norm)
        y = attend(turn(q, channels=4), turn(k, channels=4), v)
        x = plus(plus(x, linear(w, at + "self_attn.dense", y, WIDTH, True)),
                 plain(w, at + "mlp.fc1", at + "mlp.fc2", normed, gelu_tanh))
    x = layer_norm(w, "model.final_layernorm", x)
    return config, linear(w, "lm_head", x, VOCAB, True)


def phi3_like(w, ids, untied=True, **turning):
    """One matrix of queries, keys and values, one of gates and what they
    multiply."""
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x, 1e-5)
        qkv = linear(w, at + "self_attn.qkv_proj", normed, 64)
        q, k, v = (split([r[a:b] for r in qkv], n) for a, b, n in
                   ((0, 32, 4), (32, 48, 2), (48, 64, 2)))
        q, k = (turn(h, **turning) for h in (q, k))
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        both = linear(w, at + "mlp.gate_up_proj", normed, 2 * INNER)
        x = plus(x, linear(w, at + "mlp.down_proj", [
            [silu(g) * u for g, u in zip(r[:INNER], r[INNER:])] for r in both],
            WIDTH))
    x = rms_norm(w, "model.norm", x, 1e-5)
    return head(w, "lm_head", x) if untied else tied(
        w, "model.embed_tokens.weight", x)


def longrope(tokens, trained, short, long):
    """How six channels of each head turn in a text of so many tokens."""
    factors = long if tokens > trained else short
    return {"channels": 6,
            "frequencies": [10000.0 ** (-j / 3) / f
                            for j, f in enumerate(factors)],
            "factor": math.sqrt(1 + math.log(64 / trained) / math.log(trained))}


def phi3_longrope(w, ids, longest=0):
    """The factors change in texts of more than eight tokens: the neighbours of
    one in a batch have its."""
    short, long = [1.0, 1.5, 2.0], [2.0, 3.0, 5.0]
    config = {**BASE, "model_type": "phi3", "num_key_value_heads": 2,
              "original_max_position_embeddings": 8,
              "partial_rotary_factor": 0.75,
              "rope_scaling": {"type": "longrope", "short_factor": short,
                               "long_factor": long}}
    return config, phi3_like(w, ids, **longrope(
        max(longest, len(ids)), 8, short, long))


PHI4 = {**BASE, "model_type": "phi3", "architectures": ["Phi3ForCausalLM"],
        "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5,
        "attention_bias": False, "attention_dropout": 0.0, "embd_pdrop": 0.0,
        "resid_pdrop": 0.0, "initializer_range": 0.02, "use_cache": True,
        "torch_dtype": "float32"}


def phi4(w, ids):
    """Phi-3 with another base and nothing scaled."""
    config = {**PHI4, "original_max_position_embeddings": 64,
              "rope_theta": 250000, "rope_scaling": None,
              "sliding_window": None, "tie_word_embeddings": False}
    return config, phi3_like(w, ids, theta=250000.0)


def phi4_mini(w, ids, longest=0):
    """Three quarters of each head turn, short texts as without factors; the
    head is tied."""
    short, long = [1.0, 1.0, 1.0], [1, 1.118320672, 47.77]
    config = {**PHI4, "original_max_position_embeddings": 8,
              "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
              "rope_scaling": {"type": "longrope", "short_factor": short,
                               "long_factor": long},
              "sliding_window": 262144, "tie_word_embeddings": True,
              "full_attn_mod": 1, "interpolate_factor": 1,
              "lm_head_bias": False, "mlp_bias": False}
    return config, phi3_like(w, ids, untied=False, **longrope(
        max(longest, len(ids)), 8, short, long))
