#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one linear attention on a GPU and compares it with sums in f64.

  linear_attention.py ATTUNE WORK [KEY=VALUE]...

Keys are the defaults below. `state=1` starts from sums and wants the new ones;
`mask=` hides some keys, the same for all sequences (one) or not (each): what is
hidden is NaN. `eps=-1` is for no normalising.
"""
import math
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

case = {"batch": 1, "heads": 2, "kv": 1, "queries": 37, "keys": 37,
        "width": 20, "values": 12, "type": "f32", "map": "elu_plus_one",
        "causal": 0, "eps": 1e-6, "state": 0, "mask": "", "gpu": "sm_80",
        "target": "cuda"}
FEATURES = {"elu_plus_one": lambda x: x + 1 if x > 0 else math.exp(x),
            "relu": lambda x: max(x, 0.0), "identity": lambda x: x}
attune, work = sys.argv[1:3]
for argument in sys.argv[3:]:
    key, _, value = argument.partition("=")
    case[key] = type(case[key])(value)
B, H, G, M, N, D, E = (case[key] for key in (
    "batch", "heads", "kv", "queries", "keys", "width", "values"))
kind, f = case["type"], FEATURES[case["map"]]
draw = random.Random(23)
inputs, arguments, types = {}, [], {}


def add_input(name, kind, sizes, shape, data):
    """`sizes` are numbers; `shape` what the program calls them."""
    inputs[name] = ("BOOL" if kind == "i1" else kind.upper(), sizes, data)
    known = ["?" if isinstance(size, str) else str(size) for size in shape]
    named = ", ".join(f'"{size}"' if isinstance(size, str) else str(size)
                      for size in shape)
    types[name] = f"tensor<{'x'.join(known)}x{kind}>"
    arguments.append(f'%{name}: {types[name]} {{attune.kind = "input", '
                     f'attune.name = "{name}", attune.shape = [{named}]}}')


def add_numbers(name, kind, sizes, shape, low=-1.0):
    values = [tensors.rounded(draw.uniform(low, 1.0), kind)
              for _ in range(math.prod(sizes))]
    add_input(name, kind, sizes, shape, tensors.stored(values, kind))
    return values


length = "queries" if case["causal"] else "keys"
q = add_numbers("q", kind, [B, H, M, D], ["batch", H, "queries", D])
k = add_numbers("k", kind, [B, G, N, D], ["batch", G, length, D])
v = add_numbers("v", kind, [B, G, N, E], ["batch", G, length, E])
mask, words = [True] * (B * N), []
if case["mask"]:
    rows = B if case["mask"] == "each" else 1
    mask = [draw.random() < 0.7 for _ in range(rows * N)]
    add_input("mask", "i1", [rows, 1, 1, N],
              ["batch" if rows > 1 else 1, 1, 1, length], bytes(mask))
    mask *= B // rows
    words.append(f"mask %mask : {types['mask']}")
    for name, width in (("k", D), ("v", E)):
        values = list(tensors.numbers(inputs[name]))
        for row in range(B * G * N):
            if not mask[row // (G * N) * N + row % N]:
                values[row * width:(row + 1) * width] = [math.nan] * width
        inputs[name] = (*inputs[name][:2], tensors.stored(values, kind))
start = [0.0] * (B * G * D * (E + 1))
if case["state"]:
    start = add_numbers("state", "f32", [B, G, D, E + 1],
                        ["batch", G, D, E + 1], low=0.0)
    words.append(f"state %state : {types['state']}")
normalised = case["eps"] >= 0
if normalised:
    words.insert(0, f"normalised {case['eps']:e}")
if case["causal"]:
    words.insert(0, "causal")

y = f"tensor<?x{H}x?x{E}x{kind}>"
names, outputs, given = "%y", [f'{y} {{attune.kind = "output", attune.name = "y", '
                               f'attune.shape = ["batch", {H}, "queries", {E}]}}'], y
if case["state"]:
    names += ", %s"
    given += f" state {types['state']}"
    outputs.append(f'{types["state"]} {{attune.kind = "output", attune.name = "s", '
                   f'attune.shape = ["batch", {G}, {D}, {E + 1}]}}')
text = f"""module attributes {{attune.name = "model"}} {{
  func.func @forward({", ".join(arguments)}) -> ({", ".join(outputs)}) attributes {{attune.entry}} {{
    {names} = attune.linear_attention %q, %k, %v <{case["map"]}> {" ".join(words)}
      : {types["q"]}, {types["k"]}, {types["v"]} -> {given}
    return {names} : {given.replace(" state", ",")}
  }}
}}
"""


def head_of(b, h):
    """Rows of the result and the sums after the last key."""
    g = b * G + h * G // H
    sums = [start[(g * D + d) * (E + 1):(g * D + d + 1) * (E + 1)]
            for d in range(D)]
    rows, done = [], 0
    for m in range(M):
        while done < (m + 1 if case["causal"] else N):
            if mask[b * N + done]:
                at = g * N + done
                weighed = [*v[at * E:(at + 1) * E], 1.0]
                for d, row in enumerate(sums):
                    feature = f(k[at * D + d])
                    sums[d] = [s + feature * x for s, x in zip(row, weighed)]
            done += 1
        at = ((b * H + h) * M + m) * D
        features = [f(x) for x in q[at:at + D]]
        total = [math.fsum(feature * row[e] for feature, row in
                           zip(features, sums)) for e in range(E + 1)]
        sum_of_weights = total.pop()
        share = sum_of_weights + case["eps"] if normalised else 1.0
        rows.append([x / share if share else 0.0 for x in total])
    return rows, sums


path = {name: os.path.join(work, name)
        for name in ("model.mlir", "in.safetensors", "out.safetensors")}
os.makedirs(work, exist_ok=True)
with open(path["model.mlir"], "w", encoding="utf-8") as file:
    file.write(text)
tensors.save(path["in.safetensors"], inputs)
flags = ["--gpu=" + case["gpu"]] if case["target"] == "cuda" else []
subprocess.run([attune, "run", path["model.mlir"], "--target=" + case["target"],
                "--inputs", path["in.safetensors"], "--outputs",
                path["out.safetensors"], *flags], check=True)
found = tensors.load(path["out.safetensors"])


def distance(name, wanted, kind):
    """The largest error as a share of the largest value, and what is allowed:
    f32 sums of some hundred products, and one rounding to 16 bits."""
    mine = tensors.numbers(found[name])
    if len(mine) != len(wanted) or any(math.isnan(x) for x in mine):
        return math.inf, 0.0
    largest = max(1.0, *map(abs, wanted))
    error = max(abs(x - value) for x, value in zip(mine, wanted))
    return error / largest, 4e-6 + {"f32": 0, "f16": 2 ** -11, "bf16": 2 ** -8}[kind]


heads = [head_of(b, h) for b in range(B) for h in range(H)]
results = [distance("y", [x for rows, _ in heads for row in rows for x in row],
                    kind)]
if case["state"]:
    results.append(distance("s", [x for _, sums in heads[::H // G]
                                  for row in sums for x in row], "f32"))
good = all(error <= allowed for error, allowed in results)
print("PASS" if good else "FAIL",
      ", ".join(f"error {error:.1e} of {allowed:.1e}"
                for error, allowed in results))
sys.exit(not good)
