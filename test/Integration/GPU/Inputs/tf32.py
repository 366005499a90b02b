#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One linear layer in f32 on a GPU, whose products are of f32 or of tf32.

  tf32.py ATTUNE WORK DTYPE TOKENS [FLAG]...

Compares with two sums in f64: of the numbers as they are, and of numbers that
are rounded to tf32, whose 11 bits leave a relative error of 2^-11 at most.
Prints which of the two it is, up to what rounds in sums of f32.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

attune, work, dtype, tokens = sys.argv[1:5]
DEPTH, WIDTH, ROWS = 76, 90, int(tokens)
os.makedirs(work, exist_ok=True)
path = {name: os.path.join(work, name) for name in (
    "model.json", "weights.safetensors", "in.safetensors", "out.safetensors")}
with open(path["model.json"], "w", encoding="utf-8") as file:
    json.dump({"attune": 1, "inputs": {
        "x": {"dtype": "f32", "shape": ["batch", "seq", DEPTH]}},
        "layers": [{"linear": {"out": WIDTH}, "name": "head"}],
        "outputs": {"y": "head"}}, file)
draw = random.Random(3)
x = array("f", [draw.gauss(0, 1) for _ in range(ROWS * DEPTH)])
w = array("f", [draw.gauss(0, 1) for _ in range(WIDTH * DEPTH)])
# Half between two numbers of tf32: away from zero, not to the even one.
x[1] = 1 + 2.0 ** -11
w[1] = -1 - 2.0 ** -11
tensors.save(path["weights.safetensors"],
             {"head.weight": ("F32", [WIDTH, DEPTH], w.tobytes())})
tensors.save(path["in.safetensors"],
             {"x": ("F32", [1, ROWS, DEPTH], x.tobytes())})
subprocess.run([attune, "run", path["model.json"], "--target=cuda",
                "--dtype=" + dtype, "--weights", path["weights.safetensors"],
                "--inputs", path["in.safetensors"], "--outputs",
                path["out.safetensors"], *sys.argv[5:]], check=True)
y = array("f", tensors.load(path["out.safetensors"])["y"][2])


def to_tf32(value):
    bits, = struct.unpack("<I", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<I", bits + 0x1000 & ~0x1fff))[0]


def worst(a, b):
    """The largest difference, as a share of the sum of the products' sizes."""
    most = 0.0
    for row in range(ROWS):
        for column in range(WIDTH):
            products = [a[row * DEPTH + k] * b[column * DEPTH + k]
                        for k in range(DEPTH)]
            most = max(most, abs(y[row * WIDTH + column] - math.fsum(products)) /
                       math.fsum(map(abs, products)))
    return most


exact = worst(x, w)
rounded = worst(list(map(to_tf32, x)), list(map(to_tf32, w)))
# Each product is off by two such errors; their sum by little more, and never by
# so little that it could be one of f32.
kind = ("f32" if exact <= 1e-6 < rounded else
        "tf32" if rounded <= 1e-6 < exact <= 2 ** -10 + 2 ** -22 else "neither")
print(f"products of {kind}: {exact:.1e} from f32, {rounded:.1e} from tf32")
