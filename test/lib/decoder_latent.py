# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders with latent attention, for `decoders.py`."""
import math

from decoder_layers import (BASE, HEADS, INNER, WIDTH, attend, dot, embed, gated,
                            head, layer_norm, linear, plus, relu, rms_norm, silu,
                            split, turn, yarn)
from decoder_mixtures import routed, sigmoids


def chosen(w, at, x, low, heads, size, top, turned, pairs):
    """For each query the numbers of the keys that it sees. The first channels
    turn, each with the one half of them away or (`pairs`) with its neighbour."""
    asked = turn(split(linear(w, at + "wq_b", low, heads * size), heads),
                 channels=turned, interleaved=pairs)
    keys = turn([layer_norm(w, at + "k_norm", linear(w, at + "wk", x, size),
                            1e-6)], channels=turned,
                interleaved=pairs)[0]
    shares = linear(w, at + "weights_proj", x, heads)
    result = []
    for m in range(len(x)):
        scores = [math.fsum(
            share / math.sqrt(heads) * relu(dot(own[m], key) / math.sqrt(size))
            for share, own in zip(shares[m], asked)) for key in keys[:m + 1]]
        order = sorted(range(m + 1), key=lambda n: -scores[n])
        result.append(set(order[:top]))
    return result


def latent(w, at, x, rank, nope, shared, value, index=None, scale=None,
           frequencies=None, interleaved=True, pairs=False):
    """Keys and values out of one row for each token; with an `index` queries see
    the keys that it chooses."""
    low = rms_norm(w, at + "q_a_layernorm", linear(w, at + "q_a_proj", x, 20))
    queries = split(linear(w, at + "q_b_proj", low, HEADS * (nope + shared)),
                    HEADS)

    def turned(heads):
        return turn(heads, interleaved=interleaved, frequencies=frequencies)
    queries = [[q[:nope] + t for q, t in zip(rows, turned(
        [[q[nope:] for q in rows]])[0])] for rows in queries]
    rows = linear(w, at + "kv_a_proj_with_mqa", x, rank + shared)
    ends = turned([[r[rank:] for r in rows]])[0]
    made = rms_norm(w, at + "kv_a_layernorm", [r[:rank] for r in rows])
    both = split(linear(w, at + "kv_b_proj", made, HEADS * (nope + value)), HEADS)
    keys = [[r[:nope] + end for r, end in zip(h, ends)] for h in both]
    values = [[r[nope:] for r in h] for h in both]
    seen = index and chosen(w, at + "indexer.", x, low, *index, shared, pairs)
    out = attend(queries, keys, values, scale, bias=seen and (
        lambda h, m, n: 0.0 if n in seen[m] else -math.inf))
    return linear(w, at + "o_proj", out, WIDTH)


def experts_behind_one(w, ids, layers, scale, attention, eps=1e-6):
    """The first layer is dense, the others have experts. `attention(at, x)` of a
    layer's normed input. `eps` is that of all norms but attention's own."""
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(layers):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x, eps)
        x = plus(x, attention(at + "self_attn.", normed))
        normed = rms_norm(w, at + "post_attention_layernorm", x, eps)
        to = at + "mlp."
        x = plus(x, gated(w, to, normed, silu) if i == 0 else routed(
            w, to, normed, 6, 2, sigmoids, "gate.e_score_correction_bias",
            lambda e: gated(w, f"{to}experts.{e}.", normed, silu),
            gated(w, to + "shared_experts.", normed, silu), scale))
    return head(w, "lm_head", rms_norm(w, "model.norm", x, eps))


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
    return config, experts_behind_one(
        w, ids, 3, 2.5,
        lambda at, x: latent(w, at, x, 12, 6, 4, 7, (5, 10, 3)))


def kimi_k2(w, ids):
    """DeepSeek-V3 with more experts in one group. The ramp of yarn is one pair
    wide, and scores grow by the square of its factor."""
    config = {**BASE, "model_type": "kimi_k2",
              "architectures": ["DeepseekV3ForCausalLM"],
              "num_key_value_heads": HEADS, "q_lora_rank": 20,
              "kv_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 8,
              "v_head_dim": 7, "attention_bias": False, "hidden_act": "silu",
              "n_routed_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER, "n_shared_experts": 1,
              "moe_layer_freq": 1, "first_k_dense_replace": 1, "n_group": 1,
              "topk_group": 1, "topk_method": "noaux_tc",
              "scoring_func": "sigmoid", "norm_topk_prob": True,
              "routed_scaling_factor": 2.827, "aux_loss_alpha": 0.001,
              "seq_aux": True, "num_nextn_predict_layers": 0,
              "pretraining_tp": 1, "ep_size": 1, "rms_norm_eps": 1e-6,
              "rope_theta": 50000.0, "rope_scaling": {
                  "type": "yarn", "factor": 32.0, "beta_fast": 1.0,
                  "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                  "original_max_position_embeddings": 4096},
              "tie_word_embeddings": False}
    frequencies, grown = yarn(50000.0, 8, 32.0, 4096, 1.0, 1.0, whole=True)
    return config, experts_behind_one(
        w, ids, 2, 2.827,
        lambda at, x: latent(w, at, x, 12, 6, 8, 7, scale=grown ** 2 / 14 ** 0.5,
                             frequencies=frequencies))
