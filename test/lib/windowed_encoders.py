#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small ModernBERT and EmbeddingGemma folders with random weights, whose layers with
a window see as far to either side, and a Qwen2 without a causal mask, run by the
compiler and compared with their formulas in f64.

  windowed_encoders.py ATTUNE WORK [FLAG]...
"""
import json
import math
import os
import random
import sys

from decoder_layers import (DIM, HEADS, INNER, VOCAB, WIDTH, Weights, dot, embed,
                            gated, gelu, gelu_tanh, layer_norm, linear, plus,
                            rms_norm, silu, split, tied, turn)
from encoders import Runner, integers

TOKENS = 9


def attend(q, k, v, mask, reach, scale):
    """Every shown key that is at most `reach` away, if there is a reach."""
    group = len(q) // len(k)
    joined = [[] for _ in q[0]]
    for h, rows in enumerate(q):
        for m, query in enumerate(rows):
            seen = [n for n, shown in enumerate(mask)
                    if shown and (reach is None or abs(m - n) <= reach)]
            scores = [scale * dot(query, k[h // group][n]) for n in seen]
            top = max(scores, default=0.0)
            powers = [math.exp(s - top) for s in scores]
            joined[m] += [math.fsum(p * v[h // group][n][c]
                                    for p, n in zip(powers, seen))
                          / (math.fsum(powers) or 1.0)
                          for c in range(len(v[0][0]))]
    return joined


def modern_bert(w, ids, mask, prefix, local):
    norm = dict(eps=1e-5, bias=False)
    x = layer_norm(w, prefix + "embeddings.norm", embed(
        w, prefix + "embeddings.tok_embeddings.weight", ids), **norm)
    for i in range(5):
        at = f"{prefix}layers.{i}."
        y = layer_norm(w, at + "attn_norm", x, **norm) if i else x
        rows = linear(w, at + "attn.Wqkv", y, 3 * WIDTH)
        q, k, v = (split([r[j * WIDTH:(j + 1) * WIDTH] for r in rows], HEADS)
                   for j in range(3))
        slides = i % 3 != 0
        q, k = (turn(h, 500.0 if slides else 16000.0) for h in (q, k))
        y = attend(q, k, v, mask, local // 2 if slides else None,
                   DIM ** -0.5)
        x = plus(x, linear(w, at + "attn.Wo", y, WIDTH))
        both = linear(w, at + "mlp.Wi",
                      layer_norm(w, at + "mlp_norm", x, **norm), 2 * INNER)
        inner = [[gelu(a) * b for a, b in zip(r[:INNER], r[INNER:])]
                 for r in both]
        x = plus(x, linear(w, at + "mlp.Wo", inner, WIDTH))
    return layer_norm(w, prefix + "final_norm", x, **norm)


def bert_head(w, x):
    x = [[gelu(a) for a in row] for row in linear(w, "head.dense", x, WIDTH)]
    return layer_norm(w, "head.norm", x, 1e-5, bias=False)


BERT = {"model_type": "modernbert", "vocab_size": VOCAB, "hidden_size": WIDTH,
        "intermediate_size": INNER, "num_attention_heads": HEADS,
        "num_hidden_layers": 5, "max_position_embeddings": 64,
        "local_attention": 5, "global_rope_theta": 16000.0,
        "local_rope_theta": 500.0}


def masked_bert(w, ids, mask):
    x = bert_head(w, modern_bert(w, ids, mask, "model.", 5))
    bias = w.vector("decoder.bias", VOCAB)
    return {"logits": [[a + b for a, b in zip(row, bias)] for row in tied(
        w, "model.embeddings.tok_embeddings.weight", x)]}


def classifying_bert(w, ids, mask):
    x = modern_bert(w, ids, mask, "model.", 5)
    shown = [row for row, keep in zip(x, mask) if keep]
    mean = [math.fsum(column) / len(shown) for column in zip(*shown)]
    return {"logits": linear(w, "classifier", bert_head(w, [mean]), 3,
                             True)[0]}


GEMMA = {"model_type": "gemma3_text", "architectures": ["Gemma3TextModel"],
         "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER,
         "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": DIM,
         "num_hidden_layers": 4, "max_position_embeddings": 64,
         "_sliding_window_pattern": 3, "query_pre_attn_scalar": 16,
         "sliding_window": 4, "use_bidirectional_attention": True,
         "rope_theta": 1e6, "rope_local_base_freq": 500.0}


def embedding_gemma(w, ids, mask):
    def norm(name, x):
        return rms_norm(w, name, x, offset=1.0)
    x = embed(w, "embed_tokens.weight", ids, math.sqrt(WIDTH))
    for i in range(4):
        at = f"layers.{i}."
        y = norm(at + "input_layernorm", x)
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", y, heads * DIM),
                         heads) for n, heads in (("q", 4), ("k", 1), ("v", 1)))
        slides = (i + 1) % 3 != 0
        q, k = (turn([norm(f"{at}self_attn.{n}_norm", rows) for rows in heads],
                     500.0 if slides else 1e6)
                for n, heads in (("q", q), ("k", k)))
        y = attend(q, k, v, mask, 4 // 2 if slides else None, 0.25)
        y = linear(w, at + "self_attn.o_proj", y, WIDTH)
        x = plus(x, norm(at + "post_attention_layernorm", y))
        y = norm(at + "pre_feedforward_layernorm", x)
        gate, up = (linear(w, f"{at}mlp.{n}_proj", y, INNER)
                    for n in ("gate", "up"))
        y = linear(w, at + "mlp.down_proj", [
            [gelu_tanh(a) * b for a, b in zip(g, u)]
            for g, u in zip(gate, up)], WIDTH)
        x = plus(x, norm(at + "post_feedforward_layernorm", y))
    return {"last_hidden_state": norm("norm", x)}


QWEN = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
        "is_causal": False, "vocab_size": VOCAB, "hidden_size": WIDTH,
        "intermediate_size": INNER, "num_attention_heads": HEADS,
        "num_key_value_heads": 1, "num_hidden_layers": 2,
        "max_position_embeddings": 64, "rope_theta": 1e6}


def embedding_qwen(w, ids, mask):
    """Its class has a head, but a decoder without a causal mask embeds texts."""
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        y = rms_norm(w, at + "input_layernorm", x)
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", y, heads * DIM,
                                True), heads)
                   for n, heads in (("q", HEADS), ("k", 1), ("v", 1)))
        y = attend(turn(q, 1e6), turn(k, 1e6), v, mask, None, DIM ** -0.5)
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH))
        y = rms_norm(w, at + "post_attention_layernorm", x)
        x = plus(x, gated(w, at + "mlp.", y, silu))
    return {"last_hidden_state": rms_norm(w, "model.norm", x)}


CASES = {
    "masked_bert": ({**BERT, "architectures": ["ModernBertForMaskedLM"]},
                    masked_bert),
    "classifying_bert": (
        {**BERT, "architectures": ["ModernBertForSequenceClassification"],
         "classifier_pooling": "mean", "id2label": {
             "0": "a", "1": "b", "2": "c"}}, classifying_bert),
    "embedding_gemma": (GEMMA, embedding_gemma),
    "embedding_qwen": (QWEN, embedding_qwen),
}


def main():
    attune, work = sys.argv[1:3]
    os.makedirs(work, exist_ok=True)
    run = Runner(attune, work, sys.argv[3:])
    draw = random.Random(11)
    ids = [[draw.randrange(VOCAB) for _ in range(TOKENS)] for _ in range(2)]
    masks = [[1] * TOKENS, [0, 0] + [1] * (TOKENS - 2)]
    for name, (config, formula) in CASES.items():
        w = Weights(name)
        results = [formula(w, row, mask) for row, mask in zip(ids, masks)]
        expected = {output: [result[output] for result in results]
                    for output in results[0]}
        folder = os.path.join(work, name)
        os.makedirs(folder, exist_ok=True)
        w.save(os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w",
                  encoding="utf-8") as file:
            json.dump(config, file)
        run.compare(name, folder, {"input_ids": integers(ids),
                                   "attention_mask": integers(masks)},
                    expected, [m for mask in masks for m in mask])
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
