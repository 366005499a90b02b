# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gemma 3n's text model in plain float64 loops: copies of the stream that take
turns, inputs of each layer's own, sparse gates, and layers that read the keys
of earlier ones. `decoders.py` compares."""
import math
import statistics

from decoder_layers import (BASE, DIM, HEADS, VOCAB, WIDTH, attend, dot, embed,
                            gelu_tanh, linear, plus, rms_norm, scaled, split,
                            tied, turn)

OWN = 6
CAP = 3.0


def bare_norm(rows, eps=1e-6):
    return [scaled(v, 1 / math.sqrt(dot(v, v) / len(v) + eps)) for v in rows]


def as_large(rows, like):
    """Each row at the root mean square of its counterpart."""
    made = []
    for v, other in zip(rows, like):
        own = max(dot(v, v) / len(v), 1e-5)
        made.append(scaled(v, math.sqrt(dot(other, other) / len(other) / own)))
    return made


def top_of_gate(rows, share):
    times = statistics.NormalDist().inv_cdf(share)
    made = []
    for v in rows:
        mean = math.fsum(v) / len(v)
        spread = math.sqrt(math.fsum((a - mean) ** 2 for a in v) / len(v))
        made.append([max(a - mean - times * spread, 0.0) for a in v])
    return made


def own_inputs(w, ids, x, layers, rows):
    """For each layer, its channels of each token."""
    table = w.matrix("model.embed_tokens_per_layer.weight", rows, layers * OWN)
    read = linear(w, "model.per_layer_model_projection", x, layers * OWN)
    read = [scaled(v, WIDTH ** -0.5) for v in read]
    made = []
    for i in range(layers):
        part = slice(i * OWN, (i + 1) * OWN)
        normed = rms_norm(w, "model.per_layer_projection_norm",
                          [v[part] for v in read])
        made.append([[(a + OWN ** 0.5 * b) / math.sqrt(2)
                      for a, b in zip(v, table[t][part])]
                     for v, t in zip(normed, ids)])
    return made


def routed(w, at, x, copies):
    read = rms_norm(w, at + "altup.router_norm", x)
    read = [scaled(v, 1 / WIDTH) for v in read]
    return [[math.tanh(a) for a in v]
            for v in linear(w, at + "altup.modality_router", read, copies)]


def heads_of(w, at, name, x, heads, norm):
    rows = split(linear(w, at + name + "_proj", x, heads * DIM), heads)
    return [rms_norm(w, at + norm, one) for one in rows] if norm else rows


def layer(w, at, copies, own, config, i, kept, lender):
    count, active = len(copies), config["altup_active_idx"]
    by = linear(w, at + "altup.prediction_coefs",
                routed(w, at, copies[active], count), count * count)
    predicted = [[[x + math.fsum(by[t][o * count + j] * copies[j][t][c]
                                 for j in range(count))
                   for c, x in enumerate(row)]
                  for t, row in enumerate(copies[o])] for o in range(count)]
    x = predicted[active]
    normed = rms_norm(w, at + "input_layernorm", x)
    thin = linear(w, at + "laurel.linear_right", linear(
        w, at + "laurel.linear_left", normed, config["laurel_rank"]), WIDTH)
    beside = plus(normed, rms_norm(w, at + "laurel.post_laurel_norm", thin))

    slides = config["layer_types"][i] == "sliding_attention"
    theta = 500.0 if slides else 1e6
    kv = config["num_key_value_heads"]
    q = turn(heads_of(w, at + "self_attn.", "q", normed, HEADS, "q_norm"), theta)
    # The file has keys of all layers, though some read those of others.
    k = turn(heads_of(w, at + "self_attn.", "k", normed, kv, "k_norm"), theta)
    v = [bare_norm(one)
         for one in heads_of(w, at + "self_attn.", "v", normed, kv, None)]
    kept[i] = (k, v)
    k, v = kept[lender]
    y = linear(w, at + "self_attn.o_proj",
               attend(q, k, v, scale=1.0,
                      window=config["sliding_window"] if slides else None),
               WIDTH)
    y = plus(x, rms_norm(w, at + "post_attention_layernorm", y))
    y = [scaled(v, math.sqrt(0.5)) for v in plus(y, beside)]

    read = rms_norm(w, at + "pre_feedforward_layernorm", y)
    inner = config["intermediate_size"]
    inner = inner[i] if isinstance(inner, list) else inner
    gate = linear(w, at + "mlp.gate_proj", read, inner)
    share = config["activation_sparsity_pattern"][i]
    gate = top_of_gate(gate, share) if share else gate
    up = linear(w, at + "mlp.up_proj", read, inner)
    fed = [[gelu_tanh(a) * b for a, b in zip(g, u)] for g, u in zip(gate, up)]
    fed = linear(w, at + "mlp.down_proj", fed, WIDTH)
    y = plus(y, rms_norm(w, at + "post_feedforward_layernorm", fed))

    name = at + "altup.correction_coefs"
    matrix = w.matrix(name + ".weight", count, count)
    limit = config["altup_coef_clip"]
    matrix = [[min(max(a, -limit), limit) for a in row] for row in matrix]
    by = [[dot(row, m) for row in matrix] for m in routed(w, at, y, count)]
    corrected = [[[p + (a - b) * (1 + by[t][o])
                   for p, a, b in zip(row, y[t], x[t])]
                  for t, row in enumerate(predicted[o])] for o in range(count)]

    first = corrected[active]
    if config["altup_correct_scale"]:
        by = w.vector(at + "altup.correct_output_scale", WIDTH, 1.0)
        first = [[a * b for a, b in zip(v, by)] for v in first]
    gate = [[gelu_tanh(a) * b for a, b in zip(v, e)] for v, e in zip(
        linear(w, at + "per_layer_input_gate", first, OWN), own)]
    more = rms_norm(w, at + "post_per_layer_input_norm",
                    linear(w, at + "per_layer_projection", gate, WIDTH))
    return [corrected[0]] + [plus(c, more) for c in corrected[1:]]


def gemma3n_like(w, ids, config):
    layers, count = config["num_hidden_layers"], config["altup_num_inputs"]
    types, shared = config["layer_types"], config["num_kv_shared_layers"]
    x = embed(w, "model.embed_tokens.weight", ids, math.sqrt(WIDTH))
    own = own_inputs(w, ids, x, layers, config["vocab_size_per_layer_input"])
    copies = [x] + [as_large(linear(w, f"model.altup_projections.{i}", x, WIDTH),
                             x) for i in range(count - 1)]
    first, kept = layers - shared, {}
    for i in range(layers):
        lender = i
        if shared and i >= first:
            lender = max(j for j in range(first) if types[j] == types[i])
        copies = layer(w, f"model.layers.{i}.", copies, own[i], config, i, kept,
                       lender)
    joined = copies[0]
    for i in range(count - 1):
        y = linear(w, f"model.altup_unembed_projections.{i}", copies[i + 1],
                   WIDTH)
        joined = plus(joined, as_large(y, copies[0]))
    joined = [scaled(v, 1 / count) for v in joined]
    logits = tied(w, "model.embed_tokens.weight",
                  rms_norm(w, "model.norm", joined))
    return config, [[CAP * math.tanh(a / CAP) for a in v] for v in logits]


SLIDES, SEES = "sliding_attention", "full_attention"
GEMMA3N = {**BASE, "model_type": "gemma3n_text", "num_key_value_heads": 2,
           "head_dim": DIM, "vocab_size_per_layer_input": VOCAB,
           "hidden_size_per_layer_input": OWN, "laurel_rank": 5,
           "final_logit_softcapping": CAP, "rope_local_base_freq": 500.0,
           "altup_correct_scale": True, "sliding_window": 3}


def gemma3n(w, ids):
    """The published form: three of four kinds of layer share keys at the end,
    the first ones have sparse gates."""
    return gemma3n_like(w, ids, {
        **GEMMA3N, "num_hidden_layers": 7, "num_kv_shared_layers": 3,
        "layer_types": [SLIDES, SLIDES, SEES, SLIDES, SLIDES, SEES, SLIDES],
        "activation_sparsity_pattern": [0.95, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
        "altup_active_idx": 0, "altup_num_inputs": 4, "altup_coef_clip": 120.0})


def gemma3n_other(w, ids):
    """Another copy is computed, weights are clipped, widths differ, nothing is
    shared or scaled."""
    return gemma3n_like(w, ids, {
        **GEMMA3N, "num_hidden_layers": 3, "num_kv_shared_layers": 0,
        "layer_types": [SEES, SLIDES, SEES], "intermediate_size": [48, 32, 48],
        "activation_sparsity_pattern": [0.0, 0.9, 0.0],
        "altup_correct_scale": False, "altup_active_idx": 1,
        "altup_num_inputs": 3, "altup_coef_clip": 0.2})
