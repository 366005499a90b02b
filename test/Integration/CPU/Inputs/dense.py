#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model that sentence-transformers gave linear layers behind its pooling.

  dense.py write FOLDER             two of them, with random weights
  dense.py check FOLDER PROGRAM TEXT IDS

`check` holds what `embed` and `run` give against what the layers make of the
mean of last_hidden_state, in double precision. IDS are the tokens of TEXT.
"""
import array
import json
import math
import os
import random
import struct
import subprocess
import sys
from operator import mul

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "..", "lib"))
import tensors  # noqa: E402

# Path, channels before and after, whether it has a bias, and its function.
LAYERS = (("2_Dense", 128, 48, True, "torch.nn.modules.activation.Tanh"),
          ("3_Dense", 48, 20, False, "torch.nn.modules.linear.Identity"))


def write(folder):
    draw = random.Random(5)
    for path, before, after, bias, function in LAYERS:
        os.makedirs(os.path.join(folder, path), exist_ok=True)
        with open(os.path.join(folder, path, "config.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"in_features": before, "out_features": after,
                       "bias": bias, "activation_function": function}, file)
        shapes = {"linear.weight": [after, before]}
        if bias:
            shapes["linear.bias"] = [after]
        tensors.save(os.path.join(folder, path, "model.safetensors"), {
            name: ("F32", shape, array.array("f", (
                draw.uniform(-0.3, 0.3) for _ in range(math.prod(shape))
            )).tobytes()) for name, shape in shapes.items()})


def check(folder, program, text, ids):
    tokens = [int(token) for token in ids.split(",")]
    inputs, outputs = (os.path.join(folder, name) for name in ("in", "out"))
    tensors.save(inputs, {"input_ids": (
        "I64", [1, len(tokens)], struct.pack(f"<{len(tokens)}q", *tokens))})
    subprocess.run([program, "run", "--inputs", inputs, "--outputs", outputs],
                   check=True)
    given = tensors.load(outputs)
    _, (_, length, width), raw = given["last_hidden_state"]
    flat = array.array("f", raw)
    x = [sum(flat[i::width]) / length for i in range(width)]
    for path, before, after, bias, function in LAYERS:
        held = tensors.load(os.path.join(folder, path, "model.safetensors"))
        matrix = array.array("f", held["linear.weight"][2])
        offset = (array.array("f", held["linear.bias"][2]) if bias
                  else [0.0] * after)
        x = [sum(map(mul, x, matrix[r * before:(r + 1) * before]))
             + offset[r] for r in range(after)]
        x = [math.tanh(a) for a in x] if function.endswith("Tanh") else x
    size = math.sqrt(sum(a * a for a in x))
    printed = json.loads(subprocess.run(
        [program, "embed", "--text=" + text], check=True, capture_output=True,
        text=True).stdout)
    _, shape, raw = given["sentence_embedding"]
    plain = list(array.array("f", raw))
    worst = max(abs(a - b) for a, b in zip(
        plain + printed["embedding"], x + [a / size for a in x]))
    same = (shape == [1, 20] and len(printed["embedding"]) == 20
            and printed["tokens"] == len(tokens) and worst < 2e-6)
    print("same" if same else f"differs by {worst}")
    return not same


if __name__ == "__main__":
    sys.exit(write(sys.argv[2]) if sys.argv[1] == "write"
             else check(*sys.argv[2:6]))
