# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders with experts, for `decoders.py`."""
import math
from operator import mul

from decoder_layers import (BASE, DIM, HEADS, INNER, WIDTH, attend, dot, embed,
                            gated, head, linear, plus, projections, rms_norm,
                            scaled, silu, split, tied, turn, yarn)


def routed(w, at, x, count, chosen, scores_of, bias, experts, start, scale=1.0,
           gate="gate"):
    """`start` plus the chosen experts' rows: the best by score and bias, if
    there is one, with weights that sum to `scale`."""
    gate = w.matrix(at + gate + ".weight", count, WIDTH)
    offset = w.vector(at + bias, count) if bias else [0.0] * count
    each = [experts(e) for e in range(count)]
    out = [list(row) for row in start]
    for t, v in enumerate(x):
        score = scores_of([math.fsum(map(mul, row, v))
                           for row in gate])
        best = sorted(range(count), key=lambda e: -(score[e] + offset[e]))
        total = math.fsum(score[e] for e in best[:chosen])
        for e in best[:chosen]:
            out[t] = [a + scale * score[e] / total * b
                      for a, b in zip(out[t], each[e][t])]
    return out


def sigmoids(row):
    return [1 / (1 + math.exp(-a)) for a in row]


def softmax(row):
    high = max(row)
    powers = [math.exp(a - high) for a in row]
    return [p / math.fsum(powers) for p in powers]


def glm4_moe(w, ids):
    """The first layer is dense; experts are chosen by sigmoid and a bias."""
    config = {**BASE, "model_type": "glm4_moe", "num_key_value_heads": 2,
              "head_dim": DIM, "use_qk_norm": True, "attention_bias": True,
              "n_routed_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER, "routed_scaling_factor": 1.5}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2, bias=True)
        q, k = (turn([rms_norm(w, at + f"self_attn.{n}_norm", rows, 1e-5)
                      for rows in heads], channels=4)
                for n, heads in (("q", q), ("k", k)))
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        at += "mlp."
        x = plus(x, gated(w, at, normed, silu) if i == 0 else routed(
            w, at, normed, 6, 2, sigmoids, "gate.e_score_correction_bias",
            lambda e: gated(w, f"{at}experts.{e}.", normed, silu),
            gated(w, at + "shared_experts.", normed, silu), 1.5))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def ernie4_5_moe(w, ids):
    """Every second layer but the last has experts, chosen by softmax and a bias
    that the file has as [1, experts]; two shared ones are one of twice the
    width."""
    config = {**BASE, "model_type": "ernie4_5_moe", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "moe_num_experts": 6, "moe_k": 2,
              "moe_intermediate_size": INNER // 2, "moe_num_shared_experts": 2,
              "moe_layer_start_index": 1, "moe_layer_end_index": 3,
              "moe_layer_interval": 2}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(5):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2)
        q, k = (turn(h, 5e5, interleaved=True) for h in (q, k))
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        at += "mlp."
        if i not in (1, 3):
            x = plus(x, gated(w, at, normed, silu))
            continue
        bias = "moe_statics.e_score_correction_bias"
        x = plus(x, routed(
            w, at, normed, 6, 2, softmax, bias,
            lambda e: gated(w, f"{at}experts.{e}.", normed, silu, INNER // 2),
            gated(w, at + "shared_experts.", normed, silu)))
        w.made[at + bias] = ([1, 6], w.made[at + bias][1])
    x = rms_norm(w, "model.norm", x, 1e-5)
    return config, tied(w, "model.embed_tokens.weight", x)


def minimax_m2(w, ids):
    """Queries and keys are normalised as whole rows, and half of a head turns.
    Experts are chosen by sigmoid and a bias; nothing is shared."""
    config = {**BASE, "model_type": "minimax_m2", "num_key_value_heads": 2,
              "head_dim": DIM, "rotary_dim": 4, "num_local_experts": 6,
              "num_experts_per_tok": 2, "use_qk_norm": True,
              "use_routing_bias": True, "scoring_func": "sigmoid"}

    def gated_by_number(at, x):
        inner = [[silu(a) * b for a, b in zip(g, u)] for g, u in zip(
            *(linear(w, at + n, x, INNER) for n in ("w1", "w3")))]
        return linear(w, at + "w2", inner, WIDTH)
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x)
        sides = []
        for n, heads in (("q", HEADS), ("k", 2)):
            rows = linear(w, at + f"self_attn.{n}_proj", normed, heads * DIM)
            rows = rms_norm(w, at + f"self_attn.{n}_norm", rows)
            sides.append(turn(split(rows, heads), 5e6, channels=4))
        v = split(linear(w, at + "self_attn.v_proj", normed, 2 * DIM), 2)
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(*sides, v),
                           WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x)
        at += "block_sparse_moe."
        x = plus(x, routed(
            w, at, normed, 6, 2, sigmoids, "e_score_correction_bias",
            lambda e: gated_by_number(f"{at}experts.{e}.", normed),
            [[0.0] * WIDTH for _ in normed]))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x))


def stacked(w, name, count, rows, columns, bias):
    """One tensor [count, columns, rows] and one of biases, as matrices [rows,
    columns] and biases."""
    flat = w.vector(name, count * columns * rows)
    w.made[name] = ([count, columns, rows], w.made[name][1])
    size = columns * rows
    matrices = [[flat[e * size + r:(e + 1) * size:rows] for r in range(rows)]
                for e in range(count)]
    flat = w.vector(bias, count * rows)
    w.made[bias] = ([count, rows], w.made[bias][1])
    return matrices, [flat[e * rows:(e + 1) * rows] for e in range(count)]


def gpt_oss_experts(w, at, x, count, chosen, limit):
    """Experts whose rows of gate and up alternate, in stacks [in, out]."""
    up, up_bias = stacked(w, at + "experts.gate_up_proj", count, 2 * INNER,
                          WIDTH, at + "experts.gate_up_proj_bias")
    down, down_bias = stacked(w, at + "experts.down_proj", count, WIDTH, INNER,
                              at + "experts.down_proj_bias")
    out = []
    for v, logits in zip(x, linear(w, at + "router", x, count, bias=True)):
        best = sorted(range(count), key=lambda e: -logits[e])[:chosen]
        row = [0.0] * len(v)
        for share, e in zip(softmax([logits[e] for e in best]), best):
            sums = [dot(r, v) + b for r, b in zip(up[e], up_bias[e])]
            inner = []
            for g, u in zip(sums[::2], sums[1::2]):
                g = min(g, limit)
                u = max(min(u, limit), -limit)
                inner.append((u + 1) * g / (1 + math.exp(-1.702 * g)))
            row = [a + share * (dot(r, inner) + b)
                   for a, r, b in zip(row, down[e], down_bias[e])]
        out.append(row)
    return out


def gpt_oss(w, ids):
    """Every second layer has a window, every head a sink, every projection a
    bias. The limit is small enough that gates reach it."""
    scaling = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0,
               "beta_slow": 1.0, "truncate": False,
               "original_max_position_embeddings": 4096}
    config = {**BASE, "model_type": "gpt_oss", "num_key_value_heads": 2,
              "head_dim": DIM, "num_hidden_layers": 3, "sliding_window": 4,
              "num_local_experts": 5, "num_experts_per_tok": 2,
              "swiglu_limit": 1.5, "rope_theta": 150000,
              "rope_scaling": scaling}
    frequencies, factor = yarn(150000.0, DIM, 8.0, 4096)
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(3):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2, bias=True)
        q, k = (turn(h, frequencies=frequencies, factor=factor)
                for h in (q, k))
        y = attend(q, k, v, window=None if i % 2 else 4,
                   sinks=w.vector(at + "self_attn.sinks", HEADS, 1.0))
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH, True))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        x = plus(x, gpt_oss_experts(w, at + "mlp.", normed, 5, 2, 1.5))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def granite_experts(w, at, x):
    """Three of six experts, in two stacks [out, in]."""
    def stack(name, rows, columns):
        flat = w.vector(name, 6 * rows * columns)
        w.made[name] = ([6, rows, columns], w.made[name][1])
        return [[flat[(e * rows + r) * columns:(e * rows + r + 1) * columns]
                 for r in range(rows)] for e in range(6)]
    both = stack(at + "input_linear.weight", 2 * INNER, WIDTH)
    down = stack(at + "output_linear.weight", WIDTH, INNER)
    out = []
    for v, logits in zip(x, linear(w, at + "router.layer", x, 6)):
        best = sorted(range(6), key=lambda e: -logits[e])[:3]
        row = [0.0] * WIDTH
        for share, e in zip(softmax([logits[e] for e in best]), best):
            sums = [dot(r, v) for r in both[e]]
            inner = [silu(a) * b for a, b in zip(sums[:INNER], sums[INNER:])]
            row = [a + share * dot(r, inner) for a, r in zip(row, down[e])]
        out.append(row)
    return out


def granitemoe(w, ids, shared=None):
    """Experts in two stacks, and factors of nearly everything."""
    config = {**BASE, "model_type": "granitemoe", "num_key_value_heads": 2,
              "num_local_experts": 6, "num_experts_per_tok": 3,
              "embedding_multiplier": 3.0, "attention_multiplier": 0.2,
              "residual_multiplier": 0.4, "logits_scaling": 2.0,
              "tie_word_embeddings": True}
    if shared:
        config.update(model_type="granitemoeshared",
                      shared_intermediate_size=shared)
    x = embed(w, "model.embed_tokens.weight", ids, 3.0)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x), 2)
        y = attend(turn(q), turn(k), v, scale=0.2)
        y = linear(w, at + "self_attn.o_proj", y, WIDTH)
        x = plus(x, [scaled(row, 0.4) for row in y])
        normed = rms_norm(w, at + "post_attention_layernorm", x)
        y = granite_experts(w, at + "block_sparse_moe.", normed)
        if shared:
            both = linear(w, at + "shared_mlp.input_linear", normed, 2 * shared)
            y = plus(y, linear(w, at + "shared_mlp.output_linear", [
                [silu(a) * b for a, b in zip(r[:shared], r[shared:])]
                for r in both], WIDTH))
        x = plus(x, [scaled(row, 0.4) for row in y])
    x = rms_norm(w, "model.norm", x)
    return config, [scaled(row, 0.5)
                    for row in tied(w, "model.embed_tokens.weight", x)]



def granitemoe_shared(w, ids):
    """Granite's experts and a feed-forward layer beside them."""
    return granitemoe(w, ids, shared=24)


def hunyuan_moe(w, ids, first=0):
    """Experts by softmax, whose weights sum to 1, and a shared one of the same
    width; heads are normalised after they turned."""
    config = {**BASE, "model_type": "hunyuan_v1_moe", "num_key_value_heads": 2,
              "num_experts": 6, "moe_topk": [3, 3],
              "num_shared_expert": [1, 1], "use_mixed_mlp_moe": True}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2)
        q, k = ([rms_norm(w, f"{at}self_attn.{n}_layernorm", rows, 1e-5)
                 for rows in turn(heads, first=first)]
                for n, heads in (("query", q), ("key", k)))
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        at += "mlp."
        x = plus(x, routed(
            w, at, normed, 6, 3, softmax, None,
            lambda e: gated(w, f"{at}experts.{e}.", normed, silu),
            gated(w, at + "shared_mlp.", normed, silu), gate="gate.wg"))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))
