#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one linear layer on bf16 in pairs and compares it with sums in f64.

  pair_products.py ATTUNE WORK ROWS [KEY=VALUE]... [FLAG]...

The program is compiled once, with FLAGs, and runs with each of ROWS ("1,2,33").
Keys are the defaults below; `result` is the type of result and residual, and from
`tiles` rows on a matrix unit multiplies, where there is one.

A sum in f32 of K products differs from the exact one by K * 2^-24 of the sum of
their sizes at most (Higham, 3.1), in whatever order; what activations, gates and
the rest make of that is at most 8 times as much here, and a result in bf16 is
rounded once more, by 2^-8 of it.
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

LANES = 32
case = {"depth": 64, "width": 64, "bias": 0, "gated": 0, "residual": 0,
        "activation": "", "scale": 0.0, "result": "f32",
        "tiles": 16}
attune, work, counts = sys.argv[1:4]
flags = []
for given in sys.argv[4:]:
    key, equals, value = given.partition("=")
    if equals and key in case:
        case[key] = type(case[key])(value)
    else:
        flags.append(given)
K, N, parts = case["depth"], case["width"], 2 if case["gated"] else 1
counts = [int(count) for count in counts.split(",")]
draw = random.Random(K * N)
ACTIVATIONS = {
    "": lambda z: z, "silu": lambda z: z / (1 + math.exp(-z)),
    "relu": lambda z: max(z, 0.0),
    "gelu": lambda z: z * 0.5 * math.erfc(-z / math.sqrt(2))}


def bits(value):
    """Of the nearest bf16."""
    word, = struct.unpack("<I", struct.pack("<f", value))
    return word + 0x7fff + (word >> 16 & 1) >> 16


def stored(values, kind):
    """The bytes of numbers, and what these are."""
    if kind == "f32":
        data = array("f", values)
        return data.tobytes(), list(data)
    halves = [bits(value) for value in values]
    kept = struct.unpack(f"<{len(halves)}f", b"".join(
        struct.pack("<I", half << 16) for half in halves))
    return struct.pack(f"<{len(halves)}H", *halves), list(kept)


def numbers(count):
    return [draw.uniform(-1, 1) for _ in range(count)]


panels = -(-N // LANES)
_, weight = stored(numbers(parts * N * K), "bf16")
packed = []
for panel in range(panels):
    for part in range(parts):
        for pair in range(K // 2):
            for lane in range(LANES):
                n = panel * LANES + lane
                at = (part * N + n) * K + 2 * pair
                packed += weight[at:at + 2] if n < N else [0.0, 0.0]
most = max(counts)
_, x = stored(numbers(most * K), "bf16")
bias = stored(numbers(parts * N), "f32")[1] if case["bias"] else None
kind = case["result"]
residual = stored(numbers(most * N), kind)[1] if case["residual"] else None


def expected(m, n):
    """A result, and by how much its sums may be off."""
    z, size = [], 0.0
    for part in range(parts):
        products = [a * b for a, b in
                    zip(x[m * K:(m + 1) * K],
                        weight[(part * N + n) * K:(part * N + n + 1) * K])]
        size = max(size, math.fsum(map(abs, products)))
        z.append(math.fsum(products) + (bias[part * N + n] if bias else 0.0))
    y = ACTIVATIONS[case["activation"]](z[0])
    larger = 1 + abs(y) + abs(z[-1])
    if parts == 2:
        y *= z[1]
    y *= case["scale"] or 1
    y += residual[m * N + n] if residual else 0
    return y, (8 * larger * K * 2.0 ** -24 * size +
               (abs(y) * 2.0 ** -8 if kind == "bf16" else 1e-6))


def argument(name, kind, shape):
    text = "x".join("?" if size == "rows" else str(size) for size in shape)
    names = ", ".join(f'"{size}"' if size == "rows" else str(size)
                      for size in shape)
    return (f"tensor<{text}x{kind}>", f'attune.name = "{name}", '
            f'attune.shape = [{names}]')


arguments, words, types = [], "", {}
for name, element, shape, word in (
        ("x", "bf16", [1, "rows", K], None),
        ("w", "bf16", [parts * panels, K // 2, 2 * LANES], None),
        ("bias", "f32", [parts * N], bias and "bias"),
        ("r", kind, [1, "rows", N], residual and "residual")):
    if word is None and name not in "xw":
        continue
    types[name], rest = argument(name, element, shape)
    arguments.append(f'%{name}: {types[name]} {{attune.kind = "input", {rest}}}')
    words += f" {word} %{name} : {types[name]}" if word else ""
if case["activation"]:
    words += f" activation <{case['activation']}>"
words += " gated" if case["gated"] else ""
words += f" scale {case['scale']}" if case["scale"] else ""
result, rest = argument("y", kind, [1, "rows", N])
text = f"""module attributes {{attune.name = "model"}} {{
  func.func @forward({", ".join(arguments)})
      -> ({result} {{attune.kind = "output", {rest}}}) attributes {{attune.entry}} {{
    %y = attune.linear %x, %w{words}
      : {types["x"]}, {types["w"]} -> {result}
    return %y : {result}
  }}
}}
"""
os.makedirs(work, exist_ok=True)
path = {name: os.path.join(work, name)
        for name in ("model.mlir", "model", "in.safetensors", "out.safetensors")}
with open(path["model.mlir"], "w", encoding="utf-8") as file:
    file.write(text)
subprocess.run([attune, "compile", path["model.mlir"], "-o", path["model"],
                *flags], check=True)
exact = [[expected(m, n) for n in range(N)] for m in range(most)]
worst = 0.0
first = {}
for count in counts:
    inputs = {"x": ("BF16", [1, count, K], stored(x[:count * K], "bf16")[0]),
              "w": ("BF16", [parts * panels, K // 2, 2 * LANES],
                    stored(packed, "bf16")[0])}
    if bias:
        inputs["bias"] = ("F32", [parts * N], stored(bias, "f32")[0])
    if residual:
        inputs["r"] = (kind.upper(), [1, count, N],
                       stored(residual[:count * N], kind)[0])
    tensors.save(path["in.safetensors"], inputs)
    subprocess.run([path["model"], "run", "--inputs", path["in.safetensors"],
                    "--outputs", path["out.safetensors"]], check=True)
    data = tensors.load(path["out.safetensors"])["y"][2]
    size = len(data) // (count * N)
    for m in range(count):
        row = data[m * N * size:(m + 1) * N * size]
        # A row's bits depend on what multiplies it, and not on the others.
        if first.setdefault((m, count < case["tiles"]), row) != row:
            sys.exit(f"row {m} of {count} has other bits than before")
        for n in range(N):
            raw = row[n * size:(n + 1) * size]
            y, = struct.unpack("<f", raw if size == 4 else b"\0\0" + raw)
            value, allowed = exact[m][n]
            share = abs(y - value) / allowed
            if not share <= 1:
                sys.exit(f"{count} rows: ({m}, {n}) is {y}, not {value}")
            worst = max(worst, share)
print(f"rows {sys.argv[3]}: at most {worst:.2f} of what is allowed")
