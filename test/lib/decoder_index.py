# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders whose queries see the keys that an index chooses, for
`decoders.py`."""
import math

from decoder_layers import (BASE, HEADS, INNER, WIDTH, attend, dot, embed, gated,
                            head, layer_norm, linear, plus, relu, rms_norm, silu,
                            split, turn)
from decoder_mixtures import routed, sigmoids


def chosen(w, at, x, low, heads, size, top, turned):
    """For each query the numbers of the keys that it sees. The first channels
    turn, each with the one half of them away."""
    asked = turn(split(linear(w, at + "wq_b", low, heads * size), heads),
                 channels=turned)
    keys = turn([layer_norm(w, at + "k_norm", linear(w, at + "wk", x, size),
                            1e-6)], channels=turned)[0]
    shares = linear(w, at + "weights_proj", x, heads)
    result = []
    for m in range(len(x)):
        scores = [math.fsum(
            share / math.sqrt(heads) * relu(dot(own[m], key) / math.sqrt(size))
            for share, own in zip(shares[m], asked)) for key in keys[:m + 1]]
        order = sorted(range(m + 1), key=lambda n: -scores[n])
        result.append(set(order[:top]))
    return result


def latent(w, at, x, rank, nope, shared, value, index):
    """Keys and values out of one row for each token."""
    low = rms_norm(w, at + "q_a_layernorm", linear(w, at + "q_a_proj", x, 20))
    queries = split(linear(w, at + "q_b_proj", low, HEADS * (nope + shared)),
                    HEADS)

    def turned(heads):
        return turn(heads, interleaved=True)
    queries = [[q[:nope] + t for q, t in zip(rows, turned(
        [[q[nope:] for q in rows]])[0])] for rows in queries]
    rows = linear(w, at + "kv_a_proj_with_mqa", x, rank + shared)
    ends = turned([[r[rank:] for r in rows]])[0]
    made = rms_norm(w, at + "kv_a_layernorm", [r[:rank] for r in rows])
    both = split(linear(w, at + "kv_b_proj", made, HEADS * (nope + value)), HEADS)
    keys = [[r[:nope] + end for r, end in zip(h, ends)] for h in both]
    values = [[r[nope:] for r in h] for h in both]
    seen = chosen(w, at + "indexer.", x, low, *index, shared)
    out = attend(queries, keys, values, bias=lambda h, m, n: (
        0.0 if n in seen[m] else -math.inf))
    return linear(w, at + "o_proj", out, WIDTH)


def deepseek_v32(w, ids):
    """The first layer is dense. The best three keys of each query."""
    config = {**BASE, "model_type": "deepseek_v32", "num_hidden_layers": 3,
              "num_key_value_heads": HEADS, "q_lora_rank": 20,
              "kv_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
              "v_head_dim": 7, "n_routed_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER, "n_shared_experts": 1,
              "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
              "routed_scaling_factor": 2.5, "index_topk": 3,
              "index_n_heads": 5, "index_head_dim": 10}
    if len(ids) > 5:  # the same in other words
        config = {**config, "first_k_dense_replace": None,
                  "mlp_layer_types": ["dense", "sparse", "sparse"],
                  "layer_types": ["deepseek_sparse_attention"] * 3}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(3):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x)
        x = plus(x, latent(w, at + "self_attn.", normed, 12, 6, 4, 7, (5, 10, 3)))
        normed = rms_norm(w, at + "post_attention_layernorm", x)
        to = at + "mlp."
        x = plus(x, gated(w, to, normed, silu) if i == 0 else routed(
            w, to, normed, 6, 2, sigmoids, "gate.e_score_correction_bias",
            lambda e: gated(w, f"{to}experts.{e}.", normed, silu),
            gated(w, to + "shared_experts.", normed, silu), 2.5))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x))
