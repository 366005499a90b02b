#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes random LoRA adapters as PEFT does; needs nothing but Python.

  adapters.py FOLDER OUT KIND MERGED [SCALE]
      OUT becomes an adapter of the model of FOLDER, MERGED that model with the
      weights W + SCALE s B A in F32, in double precision before: as PEFT's
      documentation defines them.

KIND: plain; patterns (ranks and factors by name, rsLoRA, a table and a whole
matrix); dora (the lengths of rows).
"""
import json
import math
import os
import random
import struct
import sys

import tensors as safetensors


def matrix(rng, rows, columns):
    """Numbers of f32."""
    return [[safetensors.rounded(rng.gauss(0, 0.2), "f32")
             for _ in range(columns)] for _ in range(rows)]


def packed(rows, shape):
    flat = [x for row in rows for x in row]
    return ("F32", shape, struct.pack(f"<{len(flat)}f", *flat))


def main(folder, out, kind, merged, by="1"):
    rng = random.Random(kind)
    tensors = safetensors.load(os.path.join(folder, "model.safetensors"))
    config = {"peft_type": "LORA", "base_model_name_or_path": "some/base",
              "r": 4, "lora_alpha": 6, "use_dora": kind == "dora",
              "target_modules": ["q_proj", "down_proj"], "bias": "none",
              "modules_to_save": None, "fan_in_fan_out": False}
    if kind == "patterns":
        config.update(use_rslora=True, modules_to_save=["lm_head"],
                      rank_pattern={"layers.0.self_attn.q_proj": 2,
                                    "^model.layers.1.mlp.down_proj": 3},
                      alpha_pattern={"down_proj": 5})
    adapter, result = {}, dict(tensors)
    for name, (_, shape, _) in tensors.items():
        module = name[:-len(".weight")]
        start = "base_model.model." + module
        if kind == "patterns" and module == "lm_head":
            whole = packed(matrix(rng, *shape), shape)
            adapter[start + ".weight"] = result[name] = whole
            continue
        table = kind == "patterns" and module == "model.embed_tokens"
        if not table and not module.endswith(("q_proj", "down_proj")):
            continue
        rank, alpha = 4, 6
        if kind == "patterns":
            rank = {"model.layers.0.self_attn.q_proj": 2,
                    "model.layers.1.mlp.down_proj": 3}.get(module, rank)
            alpha = 5 if module.endswith("down_proj") else alpha
        scale = float(by) * alpha / (math.sqrt(rank) if kind == "patterns"
                                     else rank)
        outer, inner = reversed(shape) if table else shape
        a, b = matrix(rng, rank, inner), matrix(rng, outer, rank)
        ends = ("embedding_A", "embedding_B") if table else \
            ("A.weight", "B.weight")
        adapter[f"{start}.lora_{ends[0]}"] = packed(a, [rank, inner])
        adapter[f"{start}.lora_{ends[1]}"] = packed(b, [outer, rank])
        old = safetensors.numbers(tensors[name])
        new = []
        for i in range(shape[0]):
            for j in range(shape[1]):
                o, n = (j, i) if table else (i, j)
                change = sum(b[o][r] * a[r][n] for r in range(rank))
                new.append(old[i * shape[1] + j] + scale * change)
        if kind == "dora":
            lengths = [safetensors.rounded(rng.uniform(0.5, 2), "f32")
                       for _ in range(outer)]
            adapter[start + ".lora_magnitude_vector"] = packed([lengths],
                                                               [outer])
            for i in range(outer):
                row = new[i * inner:(i + 1) * inner]
                norm = math.sqrt(math.fsum(x * x for x in row))
                new[i * inner:(i + 1) * inner] = [lengths[i] * x / norm
                                                  for x in row]
        result[name] = packed([new], shape)
    os.makedirs(out, exist_ok=True)
    os.makedirs(merged, exist_ok=True)
    with open(os.path.join(out, "adapter_config.json"), "w",
              encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    safetensors.save(os.path.join(out, "adapter_model.safetensors"), adapter)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(merged, "config.json"), "w",
              encoding="utf-8") as file:
        file.write(text)
    safetensors.save(os.path.join(merged, "model.safetensors"), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
