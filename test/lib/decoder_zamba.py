# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State spaces that read transformers which several layers call, for
`decoders.py`."""
import math
import struct

from decoder_hybrids import mamba2
from decoder_layers import (BASE, HEADS, INNER, WIDTH, attend, embed, gelu,
                            linear, plus, rms_norm, split, tied, turn)


def shrink(w, name, rows, columns):
    """Makes a matrix of small numbers: scores that choose single keys would turn
    f32's rounding into a choice between keys."""
    if name not in w.made:
        numbers = [0.2 * a for row in w.matrix(name, rows, columns) for a in row]
        w.made[name] = ([rows, columns],
                        struct.pack(f"<{len(numbers)}f", *numbers))


def both(w, name, lists, number, x, rows, adapts=True):
    """A product, and what a call adds to it."""
    made = linear(w, name, x, rows)
    if not adapts:
        return made
    thin = linear(w, f"{lists}.{number}.0", x, 6)
    return plus(made, linear(w, f"{lists}.{number}.1", thin, rows))


def transformer(w, at, call, x, first, adapts, theta):
    """Of the stream beside its embedding; nothing is added to either."""
    wide = rms_norm(w, at + "input_layernorm", [a + b for a, b in zip(x, first)],
                    1e-5)
    to = at + "self_attn."
    for n in "qk":
        shrink(w, f"{to}{n}_proj.weight", 2 * WIDTH, 2 * WIDTH)
        if adapts:
            shrink(w, f"{to}linear_{n}_adapter_list.{call}.1.weight", 2 * WIDTH, 6)
    q, k, v = (split(both(w, f"{to}{n}_proj", f"{to}linear_{n}_adapter_list", call,
                          wide, 2 * WIDTH, adapts), HEADS) for n in "qkv")
    if theta:
        q, k = turn(q, theta), turn(k, theta)
    scale = 1 / math.sqrt(2 * WIDTH / HEADS / 2)
    y = linear(w, to + "o_proj", attend(q, k, v, scale=scale), WIDTH)
    y = rms_norm(w, at + "pre_ff_layernorm", y, 1e-5)
    to = at + "feed_forward."
    rows = both(w, to + "gate_up_proj", to + "gate_up_proj_adapter_list", call, y,
                2 * INNER)
    rows = [[gelu(g) * u for g, u in zip(r[:INNER], r[INNER:])] for r in rows]
    return linear(w, to + "down_proj", rows, WIDTH)


def zamba2_like(w, ids, types, shared, adapts, theta, **more):
    hybrids = [i for i, kind in enumerate(types) if kind == "hybrid"]
    config = {**BASE, "model_type": "zamba2", "layers_block_type": types,
              "num_hidden_layers": len(types), "num_mem_blocks": shared,
              "num_key_value_heads": HEADS, "n_mamba_heads": 8,
              "mamba_ngroups": 2, "mamba_d_state": 5, "adapter_rank": 6,
              "use_shared_attention_adapter": adapts,
              "hybrid_layer_ids": hybrids, **more}
    first = x = embed(w, "model.embed_tokens.weight", ids)
    call = 0
    for i, kind in enumerate(types):
        at, read = f"model.layers.{i}.", x
        if kind == "hybrid":
            name = f"model.layers.{hybrids[call % shared]}.shared_transformer."
            y = transformer(w, name, call, x, first, adapts, theta)
            read = plus(x, linear(w, at + "linear", y, WIDTH))
            at += "mamba_decoder."
            call += 1
        normed = rms_norm(w, at + "input_layernorm", read, 1e-5)
        x = plus(x, mamba2(w, at + "mamba.", normed, 8, 2, 5, 4, 1e-5, parts=2))
    return config, tied(w, "model.embed_tokens.weight",
                        rms_norm(w, "model.final_layernorm", x, 1e-5))


def zamba2(w, ids):
    """Two transformers, three calls, adapters everywhere, positions of a long
    context."""
    types = ["mamba", "hybrid", "hybrid", "mamba", "hybrid"]
    turns = 2 * WIDTH // HEADS
    return zamba2_like(w, ids, types, 2, True,
                       500.0 * 8.0 ** (turns / (turns - 2)), use_mem_rope=True,
                       use_long_context=True, rope_theta=500.0)


def zamba2_one(w, ids):
    """One transformer for two calls, whose attention has neither positions nor
    adapters."""
    return zamba2_like(w, ids, ["hybrid", "mamba", "mamba", "hybrid"], 1, False,
                       None)
