#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a product of activations in the weights' type and checks its sums.

  same_type.py ATTUNE MODEL.mlir WORK bf16|f16 ROWS [WIDTH FLAG...]

MODEL is linear from x [1, seq, 72], or from the last 72 columns of x [seq, ..],
to y [.., seq, 44] in f32, with a bias, all written in bf16; f16 takes its
place, and WIDTH, if given, that of 44: some rows are checked then. The numbers
are ones that both hold exactly.
"""
import os
import random
import re
import struct
import subprocess
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

DEPTH = 72


def main():
    attune, model, work, kind, rows = sys.argv[1:6]
    rows, width = int(rows), int((sys.argv[6:] or ["44"])[0])
    checked = range(0, rows, 1 if width == 44 else 29)
    os.makedirs(work, exist_ok=True)
    path = {name: os.path.join(work, name) for name in (
        "model.mlir", "weights.safetensors", "in.safetensors",
        "out.safetensors")}
    with open(model, encoding="utf-8") as file:
        text = file.read().replace("bf16", kind).replace(
            "44x", f"{width}x").replace("44]", f"{width}]")
    ones, columns = re.search(r"%x: tensor<\?x(\?x)?(\d+)x", text).groups()
    shape = [1] * bool(ones) + [rows, int(columns)]
    columns = shape[-1]
    with open(path["model.mlir"], "w", encoding="utf-8") as file:
        file.write(text)
    draw = random.Random(3)
    x, w, b = ([draw.randrange(-255, 256) / 128 for _ in range(size)]
               for size in (rows * columns, width * DEPTH, width))

    def stored(values):
        if kind == "f16":
            return struct.pack(f"<{len(values)}e", *values)
        return b"".join(struct.pack("<f", value)[2:] for value in values)

    name = kind.upper()
    tensors.save(path["weights.safetensors"], {
        "head.weight": (name, [width, DEPTH], stored(w)),
        "head.bias": (name, [width], stored(b))})
    tensors.save(path["in.safetensors"],
                 {"x": (name, shape, stored(x))})
    subprocess.run([attune, "run", path["model.mlir"], "--target=cuda", *sys.argv[7:],
                    "--weights", path["weights.safetensors"],
                    "--inputs", path["in.safetensors"],
                    "--outputs", path["out.safetensors"]], check=True)
    y = array("f", tensors.load(path["out.safetensors"])["y"][2])
    # Multiples of 2^-14 below 2^9: f32 holds every sum, whatever the order.
    good = all(y[m * width + n] == b[n] + sum(
        x[(m + 1) * columns - DEPTH + k] * w[n * DEPTH + k]
        for k in range(DEPTH))
        for m in checked for n in range(width))
    print(f"{'PASS' if good else 'FAIL'} {kind}, {rows} rows")
    sys.exit(not good)


if __name__ == "__main__":
    main()
