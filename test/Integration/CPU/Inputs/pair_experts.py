#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a mixture of experts on bf16 in pairs and compares it with sums in f64.

  pair_experts.py ATTUNE WORK TOKENS [FLAG]...

The program is compiled once, with FLAGs, and runs with each of TOKENS
("1,2,33"). Each token has two of five gated experts (SiLU): nobody chooses the
last one, and everybody the first.

A sum in f32 of K products differs from the exact one by K * 2^-24 of the sum of
their sizes at most (Higham, 3.1). The hidden layer is rounded to bf16, by 2^-8
of each number and by what its own sums and the gate make of that; both are at
most twice as much here.
"""
import math
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

LANES, EXPERTS, ACTIVE = 32, 5, 2
K, HIDDEN, N = 104, 70, 40
attune, work = sys.argv[1:3]
counts = [int(count) for count in sys.argv[3].split(",")]
most = max(counts)
draw = random.Random(5)


def numbers(count):
    """Some that bf16 has."""
    return [draw.randrange(-127, 128) / 128 for _ in range(count)]


def in_pairs(matrices, rows, depth, parts):
    """Panels of matrices, those of gates and their partners in turn."""
    made = []
    for matrix in matrices:
        for panel in range(-(-rows // LANES)):
            for part in range(parts):
                for pair in range(depth // 2):
                    for lane in range(LANES):
                        row = panel * LANES + lane
                        at = (part * rows + row) * depth + 2 * pair
                        made += matrix[at:at + 2] if row < rows else [0.0, 0.0]
    return tensors.stored(made, "bf16")


up = [numbers(2 * HIDDEN * K) for _ in range(EXPERTS)]
down = [numbers(N * HIDDEN) for _ in range(EXPERTS)]
x = numbers(most * K)
chosen = [[0, draw.randrange(1, EXPERTS - 1)] for _ in range(most)]
shares = [[draw.randrange(1, 9) / 8 for _ in range(ACTIVE)] for _ in range(most)]
unit = 2.0 ** -24


def sums(row, matrix, first, depth):
    """A row's product with a matrix's row, and by how much it may be off."""
    products = [a * b for a, b in
                zip(row, matrix[first * depth:(first + 1) * depth])]
    return math.fsum(products), depth * unit * math.fsum(map(abs, products))


def expected(m):
    """A token's results, and by how much they may be off."""
    results = [[0.0, 0.0] for _ in range(N)]
    row = x[m * K:(m + 1) * K]
    for expert, share in zip(chosen[m], shares[m]):
        hidden, off = [], []
        for h in range(HIDDEN):
            gate, gate_off = sums(row, up[expert], h, K)
            value, value_off = sums(row, up[expert], HIDDEN + h, K)
            silu = gate / (1 + math.exp(-gate))
            hidden.append(silu * value)
            # The slope of SiLU is at most 1.1.
            off.append(abs(silu * value) * 2.0 ** -8 +
                       1.1 * gate_off * abs(value) + abs(silu) * value_off)
        for n in range(N):
            y, y_off = sums(hidden, down[expert], n, HIDDEN)
            weights = down[expert][n * HIDDEN:(n + 1) * HIDDEN]
            y_off += math.fsum(abs(w) * e for w, e in zip(weights, off))
            results[n][0] += share * y
            results[n][1] += 2 * share * y_off
    return results


def shape_of(rows, depth, parts):
    return [EXPERTS, parts * -(-rows // LANES), depth // 2, 2 * LANES]


def argument(name, kind, shape):
    text = "x".join("?" if size == "tokens" else str(size) for size in shape)
    names = ", ".join(f'"{size}"' if size == "tokens" else str(size)
                      for size in shape)
    return (f"tensor<{text}x{kind}>", f'attune.name = "{name}", '
            f'attune.shape = [{names}]')


arguments, types = [], []
for name, kind, shape in (("x", "bf16", ["tokens", K]),
                          ("experts", "i64", ["tokens", ACTIVE]),
                          ("shares", "f32", ["tokens", ACTIVE]),
                          ("up", "bf16", shape_of(HIDDEN, K, 2)),
                          ("down", "bf16", shape_of(N, HIDDEN, 1))):
    kind, rest = argument(name, kind, shape)
    types.append(kind)
    arguments.append(f'%{name}: {kind} {{attune.kind = "input", {rest}}}')
result, rest = argument("y", "f32", ["tokens", N])
os.makedirs(work, exist_ok=True)
path = {name: os.path.join(work, name)
        for name in ("model.mlir", "model", "in.safetensors", "out.safetensors")}
with open(path["model.mlir"], "w", encoding="utf-8") as file:
    file.write(f"""module attributes {{attune.name = "model"}} {{
  func.func @forward({", ".join(arguments)})
      -> ({result} {{attune.kind = "output", {rest}}}) attributes {{attune.entry}} {{
    %y = attune.moe %x, %experts, %shares, %up, %down gated activation <silu>
      : {", ".join(types)} -> {result}
    return %y : {result}
  }}
}}
""")
subprocess.run([attune, "compile", path["model.mlir"], "-o", path["model"],
                *sys.argv[4:]], check=True)
exact = [expected(m) for m in range(most)]
worst = 0.0
for count in counts:
    numbers_of = lambda rows, form: struct.pack(
        f"<{ACTIVE * count}{form}", *sum(rows[:count], []))
    tensors.save(path["in.safetensors"], {
        "x": ("BF16", [count, K], tensors.stored(x[:count * K], "bf16")),
        "experts": ("I64", [count, ACTIVE], numbers_of(chosen, "q")),
        "shares": ("F32", [count, ACTIVE], numbers_of(shares, "f")),
        "up": ("BF16", shape_of(HIDDEN, K, 2), in_pairs(up, HIDDEN, K, 2)),
        "down": ("BF16", shape_of(N, HIDDEN, 1),
                 in_pairs(down, N, HIDDEN, 1))})
    subprocess.run([path["model"], "run", "--inputs", path["in.safetensors"],
                    "--outputs", path["out.safetensors"]], check=True)
    made = struct.unpack(f"<{count * N}f",
                         tensors.load(path["out.safetensors"])["y"][2])
    for place, y in enumerate(made):
        m, n = divmod(place, N)
        value, allowed = exact[m][n]
        share = abs(y - value) / allowed
        if not share <= 1:
            sys.exit(f"{count} tokens: ({m}, {n}) is {y}, not {value}")
        worst = max(worst, share)
print(f"tokens {sys.argv[3]}: at most {worst:.2f} of what is allowed")
