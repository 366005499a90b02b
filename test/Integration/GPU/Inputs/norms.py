#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A norm and the product behind it on a GPU, of ordinary rows and of odd ones.

  norms.py ATTUNE WORK rms_norm|layer_norm f32|bf16|f16 DEPTH WIDTH KIND,...
      [FLAG]...

Each KIND is a row: plain, zero, tiny, huge (RMSNorm may square it, just about),
outlier (one entry of 1e5 among small ones), far (a mean of 1000 deviations) or
constant. Weights have the type that is named. They are whole numbers that 16, 8
and 4 bits hold, so that no form rounds them. Up to eight rows nothing but f32
arithmetic rounds, so the bound is 16 steps of f32 of the sum of all terms'
sizes. The mean of a layer norm is rounded, too, which a row far from zero feels
in every entry.
"""
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

attune, work, kind, stored, depth, width, rows = sys.argv[1:8]
DEPTH, WIDTH, ROWS = int(depth), int(width), rows.split(",")
EPS = 2.0 ** -17
draw = random.Random(7)


def row_of(what):
    if what == "zero":
        return [0.0] * DEPTH
    if what == "constant":
        return [3.0] * DEPTH
    x = [draw.gauss(0, 1) for _ in range(DEPTH)]
    if what == "tiny":
        return [1e-20 * v for v in x]
    if what == "huge":
        return [1e17 * v for v in x]
    if what == "far":
        return [1000 + v for v in x]
    if what == "outlier":
        x[DEPTH // 3] = 1e5
    return x


centred = kind == "layer_norm"
x = array("f", [v for what in ROWS for v in row_of(what)])
w = array("f", [draw.randrange(-7, 8) for _ in range(WIDTH * DEPTH)])
# Every group of 32 has the largest number: its scale is 1.
for first in range(0, len(w), 32):
    w[first] = -8
gamma = array("f", [draw.randrange(-96, 97) / 64 for _ in range(DEPTH)])
beta = array("f", [draw.randrange(-96, 97) / 64 for _ in range(DEPTH)])
bias = array("f", [draw.randrange(-96, 97) / 64 for _ in range(WIDTH)])

os.makedirs(work, exist_ok=True)
path = {name: os.path.join(work, name) for name in (
    "model.mlir", "weights.safetensors", "in.safetensors", "out.safetensors")}
norm = "attune.{} %x gamma %g : tensor<{}xTYPE>{} eps {}".format(
    kind, DEPTH, f" beta %e : tensor<{DEPTH}xTYPE>" * centred, f"{EPS:.20f}")
with open(path["model.mlir"], "w", encoding="utf-8") as file:
    file.write(f"""module attributes {{attune.name = "model"}} {{
  attune.weight @norm.weight : tensor<{DEPTH}xTYPE> from [#attune.source<"norm.weight">]
  attune.weight @norm.bias : tensor<{DEPTH}xTYPE> from [#attune.source<"norm.bias">]
  attune.weight @head.weight : tensor<{WIDTH}x{DEPTH}xTYPE> from [#attune.source<"head.weight">]
  attune.weight @head.bias : tensor<{WIDTH}xTYPE> from [#attune.source<"head.bias">]
  func.func @forward(%x: tensor<?x{DEPTH}xf32> {{attune.kind = "input", attune.name = "x", attune.shape = ["seq", {DEPTH}]}}) -> (tensor<?x{WIDTH}xf32> {{attune.kind = "output", attune.name = "y", attune.shape = ["seq", {WIDTH}]}}) attributes {{attune.entry}} {{
    %g = attune.weight_get @norm.weight : tensor<{DEPTH}xTYPE>
    %e = attune.weight_get @norm.bias : tensor<{DEPTH}xTYPE>
    %w = attune.weight_get @head.weight : tensor<{WIDTH}x{DEPTH}xTYPE>
    %b = attune.weight_get @head.bias : tensor<{WIDTH}xTYPE>
    %n = {norm} : tensor<?x{DEPTH}xf32>
    %y = attune.linear %n, %w bias %b : tensor<{WIDTH}xTYPE> : tensor<?x{DEPTH}xf32>, tensor<{WIDTH}x{DEPTH}xTYPE> -> tensor<?x{WIDTH}xf32>
    return %y : tensor<?x{WIDTH}xf32>
  }}
}}
""".replace("TYPE", stored))


def in_type(values):
    if stored == "f16":
        return struct.pack(f"<{len(values)}e", *values)
    if stored == "bf16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return values.tobytes()


tensors.save(path["weights.safetensors"], {
    name: (stored.upper(), shape, in_type(values))
    for name, shape, values in (
        ("norm.weight", [DEPTH], gamma), ("norm.bias", [DEPTH], beta),
        ("head.weight", [WIDTH, DEPTH], w), ("head.bias", [WIDTH], bias))})
tensors.save(path["in.safetensors"],
             {"x": ("F32", [len(ROWS), DEPTH], x.tobytes())})
subprocess.run([attune, "run", path["model.mlir"], "--target=cuda",
                "--weights", path["weights.safetensors"],
                "--inputs", path["in.safetensors"], "--outputs",
                path["out.safetensors"], *sys.argv[8:]], check=True)
y = array("f", tensors.load(path["out.safetensors"])["y"][2])

STEP = 2.0 ** -24
worst = 0.0
for m, what in enumerate(ROWS):
    row = x[m * DEPTH:(m + 1) * DEPTH]
    mean = math.fsum(row) / DEPTH if centred else 0.0
    factor = 1 / math.sqrt(
        math.fsum((v - mean) ** 2 for v in row) / DEPTH + EPS)
    normed = [(v - mean) * factor * g for v, g in zip(row, gamma)]
    felt = [abs(mean) * factor * abs(g) for g in gamma]
    if centred:
        normed = [v + b for v, b in zip(normed, beta)]
    for n in range(WIDTH):
        weights = w[n * DEPTH:(n + 1) * DEPTH]
        terms = [a * b for a, b in zip(normed, weights)]
        size = abs(bias[n]) + math.fsum(
            abs(t) + f * abs(b) for t, f, b in zip(terms, felt, weights))
        error = abs(y[m * WIDTH + n] - (math.fsum(terms) + bias[n]))
        # No number at all is an error without a bound.
        bound = 16 * STEP * size
        if not error <= bound: # nor if it is not a number
            print(f"FAIL {what}, channel {n}: {y[m * WIDTH + n]} instead of "
                  f"{math.fsum(terms) + bias[n]}")
            sys.exit(1)
        worst = max(worst, error / bound if bound else 0.0)
print(f"PASS {kind} of {len(ROWS)} rows: {worst:.2f} of the bound")
