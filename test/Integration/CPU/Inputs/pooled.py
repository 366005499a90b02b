#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`embed` against pooling what `run` gives, in double precision.

  pooled.py PROGRAM WORK POOLING NORMALIZE TEXT IDS [FLAG ...]

IDS are the tokens of TEXT with commas between; NORMALIZE is 0 or 1.
"""
import array
import json
import math
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "..", "lib"))
import tensors  # noqa: E402


def main():
    program, work, pooling, normalize, text, ids = sys.argv[1:7]
    tokens = [int(token) for token in ids.split(",")]
    inputs, outputs = (os.path.join(work, name) for name in ("in", "out"))
    tensors.save(inputs, {"input_ids": ("I64", [1, len(tokens)],
                                        struct.pack(f"<{len(tokens)}q", *tokens))})
    subprocess.run([program, "run", "--inputs", inputs, "--outputs", outputs],
                   check=True)
    _, (_, length, width), raw = tensors.load(outputs)["last_hidden_state"]
    flat = array.array("f", raw)
    rows = [flat[i * width:(i + 1) * width] for i in range(length)]
    rows = {"mean": rows, "cls": rows[:1], "last": rows[-1:]}[pooling]
    expected = [sum(column) / len(rows) for column in zip(*rows)]
    if normalize == "1":
        size = math.sqrt(sum(x * x for x in expected))
        expected = [x / size for x in expected]
    printed = json.loads(subprocess.run(
        [program, "embed", "--text=" + text] + sys.argv[7:], check=True,
        capture_output=True, text=True).stdout)
    found = printed["embedding"]
    worst = max(abs(a - b) for a, b in zip(expected, found))
    same = (len(found) == width and printed["tokens"] == len(tokens) and
            worst <= 1e-8 * max(map(abs, expected)))
    print("same" if same else f"differs by {worst}")
    return not same


if __name__ == "__main__":
    sys.exit(main())
