#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a product of activations in the weights' type and checks its sums.

  same_type.py ATTUNE MODEL.mlir WORK bf16|f16 ROWS

MODEL is linear from x [1, seq, 72] to y [1, seq, 44] in f32, with a bias, all
written in bf16; f16 takes its place. The numbers are ones that both hold exactly.
"""
import os
import random
import struct
import subprocess
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

DEPTH, WIDTH = 72, 44


def main():
    attune, model, work, kind, rows = sys.argv[1:]
    rows = int(rows)
    os.makedirs(work, exist_ok=True)
    path = {name: os.path.join(work, name) for name in (
        "model.mlir", "weights.safetensors", "in.safetensors",
        "out.safetensors")}
    with open(model, encoding="utf-8") as file:
        text = file.read().replace("bf16", kind)
    with open(path["model.mlir"], "w", encoding="utf-8") as file:
        file.write(text)
    draw = random.Random(3)
    x, w, b = ([draw.randrange(-255, 256) / 128 for _ in range(size)]
               for size in (rows * DEPTH, WIDTH * DEPTH, WIDTH))

    def stored(values):
        if kind == "f16":
            return struct.pack(f"<{len(values)}e", *values)
        return b"".join(struct.pack("<f", value)[2:] for value in values)

    name = kind.upper()
    tensors.save(path["weights.safetensors"], {
        "head.weight": (name, [WIDTH, DEPTH], stored(w)),
        "head.bias": (name, [WIDTH], stored(b))})
    tensors.save(path["in.safetensors"],
                 {"x": (name, [1, rows, DEPTH], stored(x))})
    subprocess.run([attune, "run", path["model.mlir"], "--target=cuda",
                    "--weights", path["weights.safetensors"],
                    "--inputs", path["in.safetensors"],
                    "--outputs", path["out.safetensors"]], check=True)
    y = array("f", tensors.load(path["out.safetensors"])["y"][2])
    # Multiples of 2^-14 below 2^9: f32 holds every sum, whatever the order.
    good = list(y) == [b[n] + sum(x[m * DEPTH + k] * w[n * DEPTH + k]
                                  for k in range(DEPTH))
                       for m in range(rows) for n in range(WIDTH)]
    print(f"{'PASS' if good else 'FAIL'} {kind}, {rows} rows")
    sys.exit(not good)


if __name__ == "__main__":
    main()
