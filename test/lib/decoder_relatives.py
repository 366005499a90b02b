# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Later relatives of LLaMA, for `decoders.py`."""
import math

from decoder_layers import (BASE, DIM, INNER, WIDTH, attend, embed, gated, head,
                            layer_norm, linear, llama_like, plain, plus,
                            projections, relu, rms_norm, scaled, silu, turn,
                            yarn)


def arcee(w, ids):
    """A feed-forward layer without a gate, of squared relu."""
    config = {**BASE, "model_type": "arcee", "num_key_value_heads": 2}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2)
        x = plus(x, linear(w, at + "self_attn.o_proj",
                           attend(turn(q), turn(k), v), WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        x = plus(x, plain(w, at + "mlp.up_proj", at + "mlp.down_proj", normed,
                          lambda a: relu(a) ** 2, bias=False))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def nemotron(w, ids):
    """Layer norms of 1 + gamma; half of a head turns."""
    config = {**BASE, "model_type": "nemotron", "num_key_value_heads": 2}

    def norm(name, rows):
        return layer_norm(w, name, rows, offset=1.0)
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.",
                              norm(at + "input_layernorm", x), 2)
        y = attend(turn(q, channels=4), turn(k, channels=4), v)
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH))
        normed = norm(at + "post_attention_layernorm", x)
        x = plus(x, plain(w, at + "mlp.up_proj", at + "mlp.down_proj", normed,
                          lambda a: relu(a) ** 2, bias=False))
    return config, head(w, "lm_head", norm("model.norm", x))


def mimo(w, ids):
    config = {**BASE, "model_type": "mimo", "num_key_value_heads": 2,
              "attention_bias": True, "num_nextn_predict_layers": 1}
    w.vector("model.mtp_layers.0.token_layernorm.weight", WIDTH)

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2, bias=True)
        return linear(w, at + "o_proj", attend(turn(q), turn(k), v), WIDTH)
    return config, llama_like(w, ids, 2, attention)


def grown(heads, by, length, shift=0):
    return [[scaled(row, 1 + by * math.log(1 + (t + shift) // length))
             for t, row in enumerate(rows)] for rows in heads]


def ministral3(w, ids, first=0):
    """Queries grow with their place, here every third token."""
    config = {**BASE, "model_type": "ministral3", "num_key_value_heads": 2,
              "head_dim": DIM, "rope_parameters": {
                  "rope_type": "yarn", "rope_theta": 5000.0, "factor": 16.0,
                  "original_max_position_embeddings": 3, "beta_fast": 32.0,
                  "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                  "truncate": False, "llama_4_scaling_beta": 0.5}}
    frequencies, _ = yarn(5000.0, DIM, 16.0, 3)

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2)
        q, k = (turn(h, frequencies=frequencies) for h in (q, k))
        return linear(w, at + "o_proj", attend(grown(q, 0.5, 3, first), k, v), WIDTH)
    return config, llama_like(w, ids, 2, attention, eps=1e-5)


def unit(heads, eps=1e-5):
    """Each row over the root of its mean square."""
    return [[scaled(row, 1 / math.sqrt(sum(a * a for a in row) / len(row) + eps))
             for row in rows] for rows in heads]


def llama4_experts(w, at, x, count):
    """Each token's expert reads it times the sigmoid of its score; one more
    reads it as it is. Stacks are [in, out], gates first."""
    both = w.vector(at + "experts.gate_up_proj", count * WIDTH * 2 * INNER)
    down = w.vector(at + "experts.down_proj", count * INNER * WIDTH)
    for name, shape in (("gate_up_proj", [count, WIDTH, 2 * INNER]),
                        ("down_proj", [count, INNER, WIDTH])):
        w.made[f"{at}experts.{name}"] = (shape,
                                         w.made[f"{at}experts.{name}"][1])

    def product(v, flat, first, columns):
        return [math.fsum(a * flat[first + i * columns + c]
                          for i, a in enumerate(v)) for c in range(columns)]
    out = gated(w, at + "shared_expert.", x, silu)
    for t, (v, logits) in enumerate(zip(x, linear(w, at + "router", x, count))):
        best = max(range(count), key=lambda e: logits[e])
        read = scaled(v, 1 / (1 + math.exp(-logits[best])))
        sums = product(read, both, best * WIDTH * 2 * INNER, 2 * INNER)
        inner = [silu(g) * u for g, u in zip(sums[:INNER], sums[INNER:])]
        out[t] = [a + b for a, b in zip(
            out[t], product(inner, down, best * INNER * WIDTH, WIDTH))]
    return out


def llama4(w, ids, first=0, chunk=16):
    """Heads turn, neighbouring channels together, and are then normalised; every
    third layer has queries that grow every third token instead. Every second
    layer has experts, whose input is scaled."""
    config = {**BASE, "model_type": "llama4_text", "num_key_value_heads": 2,
              "head_dim": DIM, "num_hidden_layers": 4,
              "no_rope_layer_interval": 3, "attention_chunk_size": chunk,
              "floor_scale": 3, "attn_scale": 0.5, "intermediate_size_mlp": 40,
              "num_local_experts": 5, "interleave_moe_layer_step": 2}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(4):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 1e-5), 2)
        if (i + 1) % 3:
            q, k = (unit(turn(h, 5e5, interleaved=True)) for h in (q, k))
            y = attend(q, k, v, chunk=chunk)
        else:
            y = attend(grown(q, 0.5, 3, 1 + first), k, v)
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        at += "feed_forward."
        x = plus(x, llama4_experts(w, at, normed, 5) if i % 2
                 else gated(w, at, normed, silu, 40))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def llama4_chunks(w, ids, first=0):
    """Chunks of four tokens where heads turn."""
    return llama4(w, ids, first, chunk=4)
