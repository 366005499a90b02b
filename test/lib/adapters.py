#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes random LoRA adapters as PEFT does; needs nothing but Python.

  adapters.py base OUT [TRANSPOSED]
      the weights of a small model: a table, two matrices, a head. With
      "transposed" all but the table are [in, out].
  adapters.py KIND BASE OUT MERGED [SCALE]
      OUT becomes an adapter for the tensors of the file BASE. The file MERGED
      has these with the adapter's SCALE times added, as PEFT's documentation
      defines it, in double precision and rounded once.

KIND: plain; patterns (ranks and factors by name, rsLoRA, a table, whole
tensors); wide (all matrices of layers, with their own
ranks); dora (the length of each output, tables too); transposed (DoRA for
matrices that are [in, out]).
"""
import json
import math
import os
import random
import struct
import sys

import tensors as safetensors

SHAPES = {"model.embed_tokens": [40, 24],
          "model.layers.0.self_attn.q_proj": [32, 24],
          "model.layers.0.mlp.down_proj": [24, 32],
          "lm_head": [40, 24]}
CONFIG = {"peft_type": "LORA", "base_model_name_or_path": "some/base",
          "r": 4, "lora_alpha": 6, "lora_dropout": 0.1, "bias": "none",
          "target_modules": ["q_proj", "down_proj"], "modules_to_save": None,
          "task_type": "CAUSAL_LM", "megatron_core": "megatron.core"}
PATTERNS = {"use_rslora": True, "modules_to_save": ["lm_head"],
            "rank_pattern": {"layers.0.self_attn.q_proj": 2,
                             "^model.layers.0.mlp.down_proj": 3},
            "alpha_pattern": {"down_proj": 5}}
WIDE = {"rank_pattern": {"gate_proj": 2, "k_proj": 5, "layers.1.self_attn.q_proj": 3}}
LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
          "down_proj")
RANKS = {"model.layers.0.self_attn.q_proj": 2,
         "model.layers.0.mlp.down_proj": 3}


def matrix(rng, rows, columns, low=-0.4, high=0.4):
    """Numbers of f32."""
    return [[safetensors.rounded(rng.uniform(low, high), "f32")
             for _ in range(columns)] for _ in range(rows)]


def packed(rows):
    flat = [x for row in rows for x in row]
    return struct.pack(f"<{len(flat)}f", *flat)


def write_base(out, transposed=""):
    rng = random.Random("base")
    tensors = {}
    for module, shape in SHAPES.items():
        if transposed and "embed" not in module:
            shape = shape[::-1]
        tensors[module + ".weight"] = ("F32", shape,
                                       packed(matrix(rng, *shape)))
    tensors["model.layers.0.mlp.down_proj.bias"] = (
        "F32", [24], packed(matrix(rng, 1, 24)))
    safetensors.save(out, tensors)


def main(kind, base, out, merged, by="1"):
    rng = random.Random(kind)
    tensors = safetensors.load(base)
    dora = kind in ("dora", "transposed")
    config = {**CONFIG, "use_dora": dora,
              "fan_in_fan_out": kind == "transposed"}
    if kind == "patterns":
        config.update(PATTERNS)
    if kind == "wide":
        config.update(WIDE)
    adapter, result = {}, dict(tensors)
    for name, (_, shape, _) in tensors.items():
        module, part = name.rsplit(".", 1)
        start = "base_model.model." + module
        if kind == "patterns" and (module == "lm_head" or part == "bias"):
            flat = [matrix(rng, 1, math.prod(shape))[0]]
            adapter[start + "." + part] = result[name] = ("F32", shape,
                                                          packed(flat))
            continue
        table = kind in ("patterns", "dora") and module.endswith("embed_tokens")
        if part == "bias" or \
                not table and not module.endswith(
                    LAYERS if kind == "wide" else ("q_proj", "down_proj")):
            continue
        rank, alpha = 4, 6
        if kind == "patterns":
            rank = RANKS.get(module, rank)
            alpha = 5 if module.endswith("down_proj") else alpha
        if kind == "wide":
            rank = next((r for end, r in WIDE["rank_pattern"].items()
                         if module.endswith(end)), rank)
        scale = float(by) * alpha / (math.sqrt(rank) if kind == "patterns"
                                     else rank)
        across = table or kind == "transposed"
        outer, inner = reversed(shape) if across else shape
        a, b = matrix(rng, rank, inner), matrix(rng, outer, rank)
        ends = ("embedding_A", "embedding_B") if table else \
            ("A.weight", "B.weight")
        adapter[f"{start}.lora_{ends[0]}"] = ("F32", [rank, inner], packed(a))
        adapter[f"{start}.lora_{ends[1]}"] = ("F32", [outer, rank], packed(b))
        old = safetensors.numbers(tensors[name])
        # By outputs, as W + s B A is written.
        new = [[old[n * outer + o if across else o * inner + n] +
                scale * sum(b[o][r] * a[r][n] for r in range(rank))
                for n in range(inner)] for o in range(outer)]
        if dora:
            lengths = matrix(rng, 1, outer, 0.5, 2)
            adapter[start + ".lora_magnitude_vector"] = ("F32", [outer],
                                                         packed(lengths))
            for row, length in zip(new, lengths[0]):
                norm = math.sqrt(math.fsum(x * x for x in row))
                row[:] = [length * x / norm for x in row]
        result[name] = ("F32", shape,
                        packed(zip(*new) if across else new))
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "adapter_config.json"), "w",
              encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    safetensors.save(os.path.join(out, "adapter_model.safetensors"), adapter)
    safetensors.save(merged, result)


if __name__ == "__main__":
    (write_base if sys.argv[1] == "base" else main)(
        *sys.argv[2 if sys.argv[1] == "base" else 1:])
