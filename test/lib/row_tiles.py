#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a product `layers.0` with 1, 2, 3, ... rows: register tiles of any number
of rows must give a row the same bits, and the first run checks against sums in
double precision.

  row_tiles.py ATTUNE MODEL.json WORK MOST

MODEL is linear, from x [1, seq, K] to N channels without bias.
"""
import json
import os
import random
import subprocess
import sys
from array import array

import tensors


def main():
    attune, model, work, most = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    with open(model, encoding="utf-8") as file:
        dims = json.load(file)["dims"]
    depth, width = dims["K"], dims["N"]
    draw = random.Random(5)
    x = array("f", (draw.uniform(-1, 1) for _ in range(int(most) * depth)))
    w = array("f", (draw.uniform(-1, 1) for _ in range(width * depth)))
    paths = {name: os.path.join(work, name + ".safetensors")
             for name in ("weights", "in", "out")}
    tensors.save(paths["weights"],
                 {"layers.0.weight": ("F32", [width, depth], w.tobytes())})
    program = os.path.join(work, "model")
    subprocess.run([attune, "compile", model, "--weights", paths["weights"],
                    "-o", program], check=True)
    rows = []
    for count in range(int(most), 0, -1):
        tensors.save(paths["in"], {"x": ("F32", [1, count, depth],
                                         x[:count * depth].tobytes())})
        subprocess.run([program, "run", "--inputs", paths["in"], "--outputs",
                        paths["out"]], check=True)
        out = tensors.load(paths["out"])["last_hidden_state"][2]
        if not rows:
            rows = [out[i * width * 4:(i + 1) * width * 4] for i in range(count)]
        if out != b"".join(rows[:count]):
            sys.exit(f"{count} rows differ from {most}")
    worst = 0.0
    for i, raw in enumerate(rows):
        for j, value in enumerate(array("f", raw)):
            exact = sum(x[i * depth + k] * w[j * depth + k] for k in range(depth))
            worst = max(worst, abs(value - exact))
    # Each of K sums rounds what is at most K large; see Higham, 3.1.
    bound = depth * depth * 2.0 ** -24
    print(f"{most} rows: worst error {worst:.1e}, bound {bound:.1e}")
    if worst > bound:
        sys.exit("too large")


if __name__ == "__main__":
    main()
