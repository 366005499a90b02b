# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of decoders.py: RWKV-7, as flash-linear-attention computes it."""
import math

from decoder_hybrids import sigmoid
from decoder_layers import (INNER, VOCAB, WIDTH, dot, embed, head, layer_norm,
                            linear, plus, relu)

HEADS, KEY = 4, 8


def shifted(rows, by):
    """Each token with a share of the one before, which the first has not."""
    before = [[0.0] * len(by)] + rows[:-1]
    return [[x + (old - x) * m for x, old, m in zip(row, last, by)]
            for row, last in zip(rows, before)]


def lora(w, at, rows, rank, out, inner=None, bias=True):
    low = linear(w, at + "lora.0", rows, rank)
    if inner:
        low = [[inner(a) for a in row] for row in low]
    return linear(w, at + "lora.2", low, out, bias)


def time_mix(w, at, x, first, value, fused, shares):
    """The result and the values, token by token and head by head."""
    values = HEADS * value
    r, wide, k, v, a, g = (shifted(x, share) for share in shares)
    receptance = linear(w, at + "r_proj", r, WIDTH)
    keys = linear(w, at + "k_proj", k, WIDTH)
    rates = [[sigmoid(z) for z in row]
             for row in lora(w, at + "a_lora.", a, 5, WIDTH)]
    decays = [[math.exp(-math.exp(-0.5) * sigmoid(z)) for z in row]
              for row in lora(w, at + "w_lora.", wide, 6, WIDTH, math.tanh)]
    gates = lora(w, at + "g_lora.", g, 7, values, sigmoid, False)
    given = linear(w, at + "v_proj", v, values)
    if first is not None:
        by = lora(w, at + "v_lora.", v, 3, values)
        given = [[b + (a - b) * sigmoid(z) for a, b, z in zip(*rows)]
                 for rows in zip(first, given, by)]
    found, grown = (w.vector(at + n, WIDTH) for n in ("k_k", "k_a"))
    bonus = w.vector(at + "r_k", WIDTH)
    w.made[at + "r_k"] = ([HEADS, KEY], w.made[at + "r_k"][1])
    made = [[] for _ in x]
    for h in range(HEADS):
        memory = [[0.0] * KEY for _ in range(value)]  # values by keys
        own = slice(h * KEY, h * KEY + KEY)
        for t in range(len(x)):
            key = [k * c for k, c in zip(keys[t][own], found[own])]
            square = dot(key, key)
            root = (math.sqrt(square + 1e-6) if fused
                    else max(math.sqrt(square), 1e-12))
            unit = [k / root for k in key]
            rate = rates[t][own]
            fresh = [k * (1 + (a - 1) * c) for k, a, c in zip(
                keys[t][own], rate, grown[own])]
            v = given[t][h * value:(h + 1) * value]
            for d in range(value):
                line = memory[d]
                known = dot(line, unit)
                memory[d] = [m * keep - known * u * a + v[d] * f
                             for m, keep, u, a, f in zip(
                                 line, decays[t][own], unit, rate, fresh)]
            q = receptance[t][own]
            out = [dot(line, q) for line in memory]
            middle = math.fsum(out) / value
            spread = math.fsum((o - middle) ** 2 for o in out) / value
            gamma = w.vector(at + "g_norm.weight", values, 1.0)[h * value:]
            beta = w.vector(at + "g_norm.bias", values)[h * value:]
            share = math.fsum(a * b * c for a, b, c in zip(q, fresh, bonus[own]))
            made[t] += [
                ((o - middle) / math.sqrt(spread + KEY * 1e-5) * c + b
                 + share * e) * z
                for o, c, b, e, z in zip(out, gamma, beta, v,
                                         gates[t][h * value:])]
    return linear(w, at + "o_proj", made, WIDTH), given


def rwkv7_like(w, ids, config, value, shares):
    bias = config.get("norm_bias", True)
    x = embed(w, "model.embeddings.weight", ids)
    if config["norm_first"]:
        x = layer_norm(w, "model.layers.0.pre_norm", x, bias=bias)
    first = None
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        y, given = time_mix(w, at + "attn.",
                            layer_norm(w, at + "attn_norm", x, bias=bias),
                            first, value, config["fuse_norm"],
                            shares(at + "attn."))
        first = given if i == 0 else first
        x = plus(x, y)
        read = shifted(layer_norm(w, at + "ffn_norm", x, bias=bias),
                       w.vector(at + "ffn.x_k", WIDTH, 0.5))
        inner = [[relu(a) ** 2 for a in row]
                 for row in linear(w, at + "ffn.key", read, INNER)]
        x = plus(x, linear(w, at + "ffn.value", inner, WIDTH))
    return config, head(w, "lm_head", layer_norm(w, "model.norm", x, bias=bias))


RWKV7 = {"model_type": "rwkv7", "vocab_size": VOCAB, "hidden_size": WIDTH,
         "hidden_act": "sqrelu", "norm_eps": 1e-5, "decay_low_rank_dim": 6,
         "a_low_rank_dim": 5, "gate_low_rank_dim": 7, "v_low_rank_dim": 3,
         "tie_word_embeddings": False, "attn": None}


def rwkv7(w, ids):
    """A tensor for the share of each projection; the class's own norms."""
    def shares(at):
        rows = []
        for name in "rwkvag":
            rows.append(w.vector(at + "x_" + name, WIDTH, 0.5))
            w.made[at + "x_" + name] = ([1, 1, WIDTH],
                                        w.made[at + "x_" + name][1])
        return rows
    return rwkv7_like(w, ids, {
        **RWKV7, "num_hidden_layers": 4, "head_dim": KEY, "fuse_norm": True,
        "norm_first": True, "intermediate_size": INNER}, KEY, shares)


def rwkv7_wide(w, ids):
    """One tensor for all shares, values wider than keys, torch's norms, no norm
    of the embedding, and no biases of norms."""
    def shares(at):
        return w.matrix(at + "x_x", 6, WIDTH)
    return rwkv7_like(w, ids, {
        **RWKV7, "num_hidden_layers": 3, "head_dim": KEY, "num_heads": HEADS,
        "value_dim": [48] * 3, "fuse_norm": False, "norm_bias": False,
        "norm_first": False, "intermediate_size": INNER}, 12, shares)
