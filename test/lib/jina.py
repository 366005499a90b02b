#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small folder of Jina embeddings 3 with random weights, without a task and with
the adapter of one, run by the compiler and compared with its formula in f64.

  jina.py ATTUNE WORK
"""
import json
import math
import os
import random
import sys

from decoder_layers import (DIM, HEADS, INNER, VOCAB, WIDTH, Weights, dot, embed,
                            gelu, layer_norm, linear, plus, split, turn)
from encoders import Runner, integers
from windowed_encoders import attend

TOKENS, LAYERS, RANK, ALPHA = 9, 2, 2, 3
CONFIG = {"model_type": "jina_embeddings_v3",
          "architectures": ["JinaEmbeddingsV3Model"],
          "vocab_size": VOCAB, "hidden_size": WIDTH, "hidden_act": "gelu",
          "intermediate_size": INNER, "num_attention_heads": HEADS,
          "num_hidden_layers": LAYERS, "max_position_embeddings": 64,
          "layer_norm_eps": 1e-5, "type_vocab_size": 1, "pad_token_id": 1,
          "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}}
TABLE = "embeddings.word_embeddings"
ADAPTED = [TABLE, *(f"layers.{i}.{name}" for i in range(LAYERS)
                    for name in ("self_attn.q_proj", "self_attn.v_proj",
                                 "mlp.fc2"))]


class Adapted:
    """Weights with an adapter's products on top."""

    def __init__(self, base, adapter):
        self.base, self.adapter, self.vector = base, adapter, base.vector

    def matrix(self, name, rows, columns):
        values = self.base.matrix(name, rows, columns)
        module = name.removesuffix(".weight")
        if module not in ADAPTED:
            return values
        at = "base_model.model." + module
        if module == TABLE:  # the transpose of a layer's matrix
            down = self.adapter.matrix(at + ".lora_embedding_A", RANK, rows)
            up = self.adapter.matrix(at + ".lora_embedding_B", columns, RANK)
            left, right = list(zip(*down)), up
        else:
            down = self.adapter.matrix(at + ".lora_A.weight", RANK, columns)
            left = self.adapter.matrix(at + ".lora_B.weight", rows, RANK)
            right = list(zip(*down))
        return [[v + ALPHA / RANK * dot(l, r) for v, r in zip(line, right)]
                for line, l in zip(values, left)]


def encode(w, ids, mask):
    x = embed(w, TABLE + ".weight", ids)
    kind = w.matrix("embeddings.token_type_embeddings.weight", 1, WIDTH)
    x = layer_norm(w, "embeddings.LayerNorm", plus(x, kind * len(x)))
    for i in range(LAYERS):
        at = f"layers.{i}."
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", x, WIDTH, True),
                         HEADS) for n in "qkv")
        y = attend(turn(q, 20000.0), turn(k, 20000.0), v, mask, None,
                   DIM ** -0.5)
        y = linear(w, at + "self_attn.o_proj", y, WIDTH, True)
        x = layer_norm(w, at + "post_attention_layernorm", plus(x, y))
        inner = [[gelu(a) for a in row]
                 for row in linear(w, at + "mlp.fc1", x, INNER, True)]
        y = linear(w, at + "mlp.fc2", inner, WIDTH, True)
        x = layer_norm(w, at + "post_mlp_layernorm", plus(x, y))
    first = [[math.tanh(a) for a in row]
             for row in linear(w, "pooler.dense", x[:1], WIDTH, True)]
    return {"last_hidden_state": x, "pooler_output": first[0]}


def together(results):
    return {name: [result[name] for result in results] for name in results[0]}


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def main():
    attune, work = sys.argv[1:3]
    folder, task = os.path.join(work, "jina"), os.path.join(work, "task")
    for made in (folder, task):
        os.makedirs(made, exist_ok=True)
    draw = random.Random(5)
    ids = [[draw.randrange(2, VOCAB) for _ in range(TOKENS)] for _ in range(2)]
    masks = [[1] * TOKENS, [0, 0] + [1] * (TOKENS - 2)]
    w, adapter = Weights("jina"), Weights("task")
    inputs = {"input_ids": integers(ids), "attention_mask": integers(masks)}
    keep = [m for mask in masks for m in mask]
    rows = list(zip(ids, masks))
    expected = together([encode(w, *row) for row in rows])
    adapted = together([encode(Adapted(w, adapter), *row) for row in rows])
    w.save(os.path.join(folder, "model.safetensors"))
    write(os.path.join(folder, "config.json"), CONFIG)
    adapter.save(os.path.join(task, "adapter_model.safetensors"))
    write(os.path.join(task, "adapter_config.json"), {
        "peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA,
        "target_modules": sorted({name.split(".")[-1] for name in ADAPTED})})
    failures = 0
    for name, flags, want in (("base", [], expected),
                              ("task", ["--lora=" + task], adapted)):
        run = Runner(attune, work, flags)
        run.compare(name, folder, inputs, want, keep)
        failures += run.failures
    print("all passed" if failures == 0 else f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
