#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Has the largest numbers of rows found and compares them with a sort.

  top_k.py ATTUNE WORK [KEY=VALUE]...

Keys are the defaults below. `numbers=` draws them from everything (plain), from
few values and both zeros (ties), all from one (equal), of falling or rising
size, mostly -inf (hidden), or with NaN and both infinities among them (wrong).
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

case = {"rows": 2, "width": 1000, "count": 5, "numbers": "plain",
        "type": "f32", "target": "cuda", "gpu": "sm_80"}
attune, work = sys.argv[1:3]
for argument in sys.argv[3:]:
    key, _, value = argument.partition("=")
    case[key] = type(case[key])(value)
rows, width, count, kind = (case[key] for key in (
    "rows", "width", "count", "type"))
draw = random.Random(29)


def number(at):
    what = case["numbers"]
    if what == "plain":
        return draw.gauss(0, 3)
    if what == "ties":
        return draw.choice((-1.5, -0.0, 0.0, 2.0, 2.0))
    if what == "equal":
        return -0.25
    if what == "falling":
        return 100.0 - at
    if what == "rising":
        return at - 1e4
    if what == "hidden":
        return draw.gauss(0, 1) if at % 97 == 5 else -math.inf
    return draw.choice((math.nan, math.inf, -math.inf, 1.0, draw.random()))


values = [tensors.rounded(number(at), kind)
          for _ in range(rows) for at in range(width)]
raw = array("f", values).tobytes() if kind == "f32" else b"".join(
    struct.pack("<f", value)[2:] for value in values)
os.makedirs(work, exist_ok=True)
path = {name: os.path.join(work, name)
        for name in ("model.mlir", "in.safetensors", "out.safetensors")}
tensors.save(path["in.safetensors"], {"x": (kind.upper(), [rows, width], raw)})
x, ids, largest = (f"tensor<?x{width}x{kind}>", "tensor<?x?xi64>",
                   "tensor<?x?xf32>")


def result(name, type):
    return (f'{type} {{attune.kind = "output", attune.name = "{name}", '
            'attune.shape = ["rows", "candidates"]}')


with open(path["model.mlir"], "w", encoding="utf-8") as file:
    file.write(f"""module attributes {{attune.name = "model"}} {{
  func.func @forward(%x: {x} {{attune.kind = "input", attune.name = "x", attune.shape = ["rows", {width}]}},
                     %k: index {{attune.kind = "size", attune.name = "candidates"}})
      -> ({result("ids", ids)}, {result("values", largest)}) attributes {{attune.entry}} {{
    %ids, %values = attune.top_k %x count %k : {x} -> {ids}, {largest}
    return %ids, %values : {ids}, {largest}
  }}
}}
""")
flags = ["--gpu=" + case["gpu"]] if case["target"] == "cuda" else []
if count:
    flags.append(f"--dim=candidates={count}")
subprocess.run([attune, "run", path["model.mlir"], "--target=" + case["target"],
                "--inputs", path["in.safetensors"], "--outputs",
                path["out.safetensors"], *flags], check=True)
found = tensors.load(path["out.safetensors"])


def size(value):
    return math.inf if math.isnan(value) else value


good = found["ids"][1] == found["values"][1] == [rows, count]
for row in range(rows):
    mine = values[row * width:(row + 1) * width]
    order = sorted(range(width), key=lambda at: -size(mine[at]))[:count]
    here = slice(row * count, (row + 1) * count)
    got = struct.unpack(f"<{rows * count}q", found["ids"][2])[here]
    what = array("f", found["values"][2])[here]
    good = good and list(got) == order and all(
        struct.pack("<f", one) == struct.pack("<f", mine[at]) or
        (math.isnan(one) and math.isnan(mine[at]))
        for one, at in zip(what, order))
    if list(got) != order:
        print(f"row {row}: {list(got)} instead of {order}")
print("PASS" if good else "FAIL")
sys.exit(not good)
