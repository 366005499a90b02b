# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders of the years of GPT-2, for `decoders.py`."""
import math

import tensors
from decoder_layers import (BASE, DIM, HEADS, INNER, VOCAB, WIDTH, attend, embed,
                            gelu, gelu_tanh, head, layer_norm, linear, plain,
                            plus, projections, relu, silu, split, tied, turn)


def placed(table, ids, first):
    """The rows of a table of positions for tokens from place `first` on."""
    return table[first:first + len(ids)]


def gpt_neo(w, ids, first=0):
    """Scores are not scaled; every second layer sees three tokens."""
    config = {"model_type": "gpt_neo", "vocab_size": VOCAB,
              "hidden_size": WIDTH, "num_heads": HEADS, "num_layers": 4,
              "max_position_embeddings": 64, "window_size": 3,
              "attention_types": [[["global", "local"], 2]],
              "attention_layers": ["global", "local", "global", "local"]}
    places = w.matrix("transformer.wpe.weight", 64, WIDTH)
    x = plus(embed(w, "transformer.wte.weight", ids),
             placed(places, ids, first))
    for i in range(4):
        at = f"transformer.h.{i}."
        q, k, v = projections(w, at + "attn.attention.",
                              layer_norm(w, at + "ln_1", x), HEADS)
        y = attend(q, k, v, scale=1.0, window=3 if i % 2 else None)
        x = plus(x, linear(w, at + "attn.attention.out_proj", y, WIDTH, True))
        x = plus(x, plain(w, at + "mlp.c_fc", at + "mlp.c_proj",
                          layer_norm(w, at + "ln_2", x), gelu_tanh,
                          inner=4 * WIDTH))
    return config, tied(w, "transformer.wte.weight",
                        layer_norm(w, "transformer.ln_f", x))


def grouped_rows(qkv, groups, each):
    """Rows of [groups, each queries + key + value]."""
    q, k, v = [], [], []
    for g in range(groups):
        start = g * (each + 2) * DIM
        parts = [[r[start + j * DIM:start + (j + 1) * DIM] for r in qkv]
                 for j in range(each + 2)]
        q += parts[:-2]
        k.append(parts[-2])
        v.append(parts[-1])
    return q, k, v


def slopes(heads):
    power = 1 << (heads.bit_length() - 1)
    return ([2.0 ** (-8.0 * (h + 1) / power) for h in range(power)] +
            [2.0 ** (-4.0 * (2 * h + 1) / power) for h in range(heads - power)])


def falcon(w, ids, multi, alibi, parallel, bias, groups=None, norms=None):
    config = {"model_type": "falcon", "vocab_size": VOCAB, "hidden_size": WIDTH,
              "num_hidden_layers": 2, "num_attention_heads": HEADS,
              "ffn_hidden_size": INNER, "multi_query": multi, "alibi": alibi,
              "parallel_attn": parallel, "bias": bias,
              "new_decoder_architecture": bool(groups),
              "num_kv_heads": groups, "num_ln_in_parallel_attn": norms}
    kv = groups or (1 if multi else HEADS)
    slope = slopes(HEADS)
    slope = [tensors.rounded(number, "bf16") for number in slope]
    extra = (lambda h, m, n: tensors.rounded(slope[h] * n, "bf16")
             / math.sqrt(DIM)) if alibi else None
    x = embed(w, "transformer.word_embeddings.weight", ids)
    for i in range(2):
        at = f"transformer.h.{i}."
        normed = layer_norm(w, at + "input_layernorm", x)
        qkv = linear(w, at + "self_attention.query_key_value", normed,
                     (HEADS + 2 * kv) * DIM, bias)
        q, k, v = grouped_rows(qkv, kv, HEADS // kv)
        if not alibi:
            q, k = turn(q), turn(k)
        y = linear(w, at + "self_attention.dense", attend(q, k, v, bias=extra),
                   WIDTH, bias)
        x = plus(x, y)
        if not parallel:
            normed = layer_norm(w, at + "post_attention_layernorm", x)
        x = plus(x, plain(w, at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h",
                          normed, gelu, bias))
    return config, tied(w, "transformer.word_embeddings.weight",
                        layer_norm(w, "transformer.ln_f", x))


def falcon_7b(w, ids):
    return falcon(w, ids, True, False, True, False)


def falcon_11b(w, ids):
    return falcon(w, ids, True, False, True, False, groups=2, norms=1)


def falcon_rw(w, ids):
    return falcon(w, ids, False, True, False, True)


def bigcode(w, ids, multi):
    config = {"model_type": "gpt_bigcode", "vocab_size": VOCAB, "n_embd": WIDTH,
              "n_head": HEADS, "n_layer": 2, "n_positions": 32,
              "num_key_value_heads": 1 if multi else HEADS, "multi_query": multi}
    places = w.matrix("transformer.wpe.weight", 32, WIDTH)
    x = plus(embed(w, "transformer.wte.weight", ids), places)
    kv = 1 if multi else HEADS
    for i in range(2):
        at = f"transformer.h.{i}."
        normed = layer_norm(w, at + "ln_1", x)
        qkv = linear(w, at + "attn.c_attn", normed, (HEADS + 2 * kv) * DIM, True)
        q, k, v = grouped_rows(qkv, kv, HEADS // kv)
        x = plus(x, linear(w, at + "attn.c_proj", attend(q, k, v), WIDTH, True))
        x = plus(x, plain(w, at + "mlp.c_fc", at + "mlp.c_proj",
                          layer_norm(w, at + "ln_2", x), gelu_tanh,
                          inner=4 * WIDTH))
    return config, tied(w, "transformer.wte.weight",
                        layer_norm(w, "transformer.ln_f", x))


def gpt2_by_layer(w, ids, first=0):
    """Scores divided by the number of their layer, and a head of its own."""
    config = {"model_type": "gpt2", "vocab_size": VOCAB, "n_embd": WIDTH,
              "n_head": HEADS, "n_layer": 3, "n_positions": 32,
              "scale_attn_by_inverse_layer_idx": True, "n_inner": INNER,
              "activation_function": "silu", "tie_word_embeddings": False}

    def conv1d(name, x, rows):
        table, shift = w.matrix(name + ".weight", len(x[0]), rows), w.vector(
            name + ".bias", rows)
        return [[math.fsum(a * row[j] for a, row in zip(v, table)) + shift[j]
                 for j in range(rows)] for v in x]

    x = plus(embed(w, "transformer.wte.weight", ids),
             placed(w.matrix("transformer.wpe.weight", 32, WIDTH), ids, first))
    for i in range(3):
        at = f"transformer.h.{i}."
        qkv = conv1d(at + "attn.c_attn", layer_norm(w, at + "ln_1", x), 3 * WIDTH)
        q, k, v = (split([r[j * WIDTH:(j + 1) * WIDTH] for r in qkv], HEADS)
                   for j in range(3))
        y = attend(q, k, v, scale=1 / math.sqrt(DIM) / (i + 1))
        x = plus(x, conv1d(at + "attn.c_proj", y, WIDTH))
        y = conv1d(at + "mlp.c_fc", layer_norm(w, at + "ln_2", x), INNER)
        x = plus(x, conv1d(at + "mlp.c_proj", [list(map(silu, r)) for r in y],
                           WIDTH))
    return config, head(w, "lm_head", layer_norm(w, "transformer.ln_f", x))


def bigcode_mqa(w, ids):
    return bigcode(w, ids, True)


def bigcode_mha(w, ids):
    return bigcode(w, ids, False)


def gpt_neox(w, ids):
    config = {**BASE, "model_type": "gpt_neox", "rotary_pct": 0.5}
    x = embed(w, "gpt_neox.embed_in.weight", ids)
    for i in range(2):
        at = f"gpt_neox.layers.{i}."
        normed = layer_norm(w, at + "input_layernorm", x)
        q, k, v = grouped_rows(linear(
            w, at + "attention.query_key_value", normed, 3 * WIDTH, True),
            HEADS, 1)
        y = attend(turn(q, channels=4), turn(k, channels=4), v)
        x = plus(plus(x, linear(w, at + "attention.dense", y, WIDTH, True)),
                 plain(w, at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h",
                       layer_norm(w, at + "post_attention_layernorm", x), gelu))
    x = layer_norm(w, "gpt_neox.final_layer_norm", x)
    return config, head(w, "embed_out", x)


def opt_350m(w, ids):
    config = {**BASE, "model_type": "opt", "ffn_dim": INNER,
              "word_embed_proj_dim": 16, "do_layer_norm_before": False,
              "max_position_embeddings": 30}
    del config["intermediate_size"]
    d = "model.decoder."
    places = w.matrix(d + "embed_positions.weight", 32, WIDTH)[2:]
    x = embed(w, d + "embed_tokens.weight", ids, width=16)
    x = plus(linear(w, d + "project_in", x, WIDTH), places)
    for i in range(2):
        at = f"{d}layers.{i}."
        q, k, v = projections(w, at + "self_attn.", x, 4, bias=True)
        y = linear(w, at + "self_attn.out_proj", attend(q, k, v), WIDTH, True)
        x = layer_norm(w, at + "self_attn_layer_norm", plus(x, y))
        x = layer_norm(w, at + "final_layer_norm", plus(
            x, plain(w, at + "fc1", at + "fc2", x, relu)))
    x = linear(w, d + "project_out", x, 16)
    return config, tied(w, d + "embed_tokens.weight", x)


def opt_plain_norms(w, ids):
    config = {**BASE, "model_type": "opt", "ffn_dim": INNER,
              "enable_bias": False, "layer_norm_elementwise_affine": False,
              "max_position_embeddings": 30}
    del config["intermediate_size"]
    d = "model.decoder."
    places = w.matrix(d + "embed_positions.weight", 32, WIDTH)[2:]
    x = plus(embed(w, d + "embed_tokens.weight", ids), places)
    for i in range(2):
        at = f"{d}layers.{i}."
        q, k, v = projections(w, at + "self_attn.",
                              layer_norm(w, "", x, affine=False), 4)
        x = plus(x, linear(w, at + "self_attn.out_proj", attend(q, k, v), WIDTH))
        x = plus(x, plain(w, at + "fc1", at + "fc2",
                          layer_norm(w, "", x, affine=False), relu, False))
    return config, tied(w, d + "embed_tokens.weight",
                        layer_norm(w, "", x, affine=False))


def bloom_residual(w, ids, heads=4):
    config = {"model_type": "bloom", "vocab_size": VOCAB, "hidden_size": WIDTH,
              "n_head": HEADS, "n_layer": 2,
              "apply_residual_connection_post_layernorm": True}
    slope = slopes(HEADS)
    x = layer_norm(w, "transformer.word_embeddings_layernorm",
                   embed(w, "transformer.word_embeddings.weight", ids))
    for i in range(2):
        at = f"transformer.h.{i}."
        normed = layer_norm(w, at + "input_layernorm", x)
        q, k, v = grouped_rows(linear(
            w, at + "self_attention.query_key_value", normed, 3 * WIDTH, True),
            HEADS, 1)
        y = attend(q, k, v, bias=lambda h, m, n: slope[h] * n)
        x = plus(normed, linear(w, at + "self_attention.dense", y, WIDTH, True))
        normed = layer_norm(w, at + "post_attention_layernorm", x)
        x = plus(normed, plain(w, at + "mlp.dense_h_to_4h",
                               at + "mlp.dense_4h_to_h", normed, gelu_tanh,
                               inner=4 * WIDTH))
    return config, tied(w, "transformer.word_embeddings.weight",
                        layer_norm(w, "transformer.ln_f", x))


def mpt_clip(w, ids):
    config = {"model_type": "mpt", "vocab_size": VOCAB, "d_model": WIDTH,
              "n_heads": HEADS, "n_layers": 2, "max_seq_len": 64,
              "attn_config": {"clip_qkv": 0.5, "softmax_scale": 0.7}}
    slope = slopes(HEADS)
    x = embed(w, "transformer.wte.weight", ids)
    for i in range(2):
        at = f"transformer.blocks.{i}."
        qkv = linear(w, at + "attn.Wqkv",
                     layer_norm(w, at + "norm_1", x, bias=False), 3 * WIDTH)
        qkv = [[min(max(a, -0.5), 0.5) for a in v] for v in qkv]
        q, k, v = (split([r[j * WIDTH:(j + 1) * WIDTH] for r in qkv], HEADS)
                   for j in range(3))
        y = attend(q, k, v, scale=0.7, bias=lambda h, m, n: slope[h] * n)
        x = plus(x, linear(w, at + "attn.out_proj", y, WIDTH))
        x = plus(x, plain(w, at + "ffn.up_proj", at + "ffn.down_proj",
                          layer_norm(w, at + "norm_2", x, bias=False), gelu,
                          False, inner=4 * WIDTH))
    return config, tied(w, "transformer.wte.weight",
                        layer_norm(w, "transformer.norm_f", x, bias=False))
