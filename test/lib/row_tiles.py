#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs products with 1, 2, 3, ... rows: register tiles of any number of rows must
give a row the same bits, and the first run checks against sums in double
precision.

  row_tiles.py ATTUNE MODEL.json WORK MOST [FLAG...]

MODEL has linear layers without bias only, from x [1, seq, K]; the width of each
is one of its dims. FLAGs are for `attune compile`.
"""
import json
import operator
import os
import random
import subprocess
import sys
from array import array

import tensors


def main():
    attune, model, work, most, *flags = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    with open(model, encoding="utf-8") as file:
        spec = json.load(file)
    dims = spec["dims"]
    depths = [dims["K"]] + [dims[layer["linear"]["out"]]
                            for layer in spec["layers"]]
    depth, width = depths[0], depths[-1]
    draw = random.Random(5)
    x = array("f", (draw.uniform(-1, 1) for _ in range(int(most) * depth)))
    weights = [array("f", (draw.uniform(-1, 1) / k for _ in range(n * k)))
               for k, n in zip(depths, depths[1:])]
    paths = {name: os.path.join(work, name + ".safetensors")
             for name in ("weights", "in", "out")}
    tensors.save(paths["weights"],
                 {f"layers.{i}.weight": ("F32", [n, k], w.tobytes())
                  for i, (k, n, w) in enumerate(zip(depths, depths[1:],
                                                    weights))})
    program = os.path.join(work, "model")
    subprocess.run([attune, "compile", model, "--weights", paths["weights"],
                    "-o", program, *flags], check=True)
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
        exact = x[i * depth:(i + 1) * depth]
        for k, w in zip(depths, weights):
            exact = [sum(map(operator.mul, exact, w[j:j + k]))
                     for j in range(0, len(w), k)]
        for value, other in zip(array("f", raw), exact):
            worst = max(worst, abs(value - other))
    # Each of K sums rounds what is at most 1, since weights are at most 1 / K
    # (Higham, 3.1), and what a layer gets wrong the next one does not enlarge.
    bound = sum(depths[:-1]) * 2.0 ** -24
    print(f"{most} rows: worst error {worst:.1e}, bound {bound:.1e}")
    if worst > bound:
        sys.exit("too large")


if __name__ == "__main__":
    main()
