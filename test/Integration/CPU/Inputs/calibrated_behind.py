#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer behind a rounded block is calibrated by what that one gives.

  calibrated_behind.py make FOLDER
      weights, tokens to calibrate with, and an input with every token
  calibrated_behind.py check FOLDER WHOLE ROUNDED NOTES
      what NOTES say that the head loses is what it loses in ROUNDED, the outputs
      of the block and of the head, and not what it would lose behind the block
      of WHOLE
"""
import os
import random
import re
import sys
from operator import mul

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

WIDTH, VOCAB = 64, 96


def make(folder):
    draw = random.Random(5)

    def normal(rows, far=0.0):
        """In each group of a row one number may be so large that steps of 4 bits
        are as large as the others."""
        return [draw.gauss(0, 1) + (far if k % 32 == n % 32 else 0.0)
                for n in range(rows) for k in range(WIDTH)]

    made = {"embed.weight": normal(VOCAB), "head.weight": normal(VOCAB),
            "one.ffn.up.weight": normal(WIDTH, 15.0),
            "one.ffn.down.weight": normal(WIDTH, 15.0),
            "one.norm2.weight": [1.0] * WIDTH,
            "one.norm2.bias": [0.0] * WIDTH}
    tensors.save(os.path.join(folder, "weights.safetensors"), {
        name: ("F32", [len(values)] if "norm" in name else
               [len(values) // WIDTH, WIDTH], tensors.stored(values, "f32"))
        for name, values in made.items()})
    ids = [min(int(draw.expovariate(0.15)), WIDTH - 1) for _ in range(400)]
    with open(os.path.join(folder, "seen.ids"), "w", encoding="utf-8") as file:
        print(*ids, file=file)
    tensors.save(os.path.join(folder, "in.safetensors"), {
        "input_ids": ("I64", [1, WIDTH], b"".join(
            t.to_bytes(8, "little") for t in range(WIDTH)))})


def numbers(path, name):
    return tensors.numbers(tensors.load(path)[name])


def by_token(path, name):
    flat = list(numbers(path, name))
    width = len(flat) // WIDTH
    return [flat[t * width:(t + 1) * width] for t in range(WIDTH)]


def times(matrix, vector):
    return [sum(map(mul, row, vector)) for row in matrix]


def lost(head, rounded, states, ids):
    """How far results of the rounded matrix are off, in percent."""
    off = total = 0.0
    for token in set(ids):
        want, got = times(head, states[token]), times(rounded, states[token])
        off += ids.count(token) * sum((a - b) ** 2 for a, b in zip(want, got))
        total += ids.count(token) * sum(a * a for a in want)
    return 100 * (off / total) ** 0.5


def check(folder, whole, rounded, notes):
    flat = list(numbers(os.path.join(folder, "weights.safetensors"),
                        "head.weight"))
    head = [flat[n * WIDTH:(n + 1) * WIDTH] for n in range(VOCAB)]
    with open(os.path.join(folder, "seen.ids"), encoding="utf-8") as file:
        ids = [int(word) for word in file.read().split()]

    # The head as it is rounded, from what it makes of as many states as these
    # have numbers, by elimination: rows [state | results].
    states = by_token(rounded, "one")
    system = [x + y for x, y in zip(states, by_token(rounded, "logits"))]
    for k in range(WIDTH):
        best = max(range(k, WIDTH), key=lambda r, k=k: abs(system[r][k]))
        system[k], system[best] = system[best], system[k]
        by = system[k][k]
        system[k] = [v / by for v in system[k]]
        for r in range(WIDTH):
            if r != k and system[r][k]:
                factor = system[r][k]
                system[r] = [a - factor * b
                             for a, b in zip(system[r], system[k])]
    few = [[system[k][WIDTH + n] for k in range(WIDTH)] for n in range(VOCAB)]
    behind = lost(head, few, states, ids)
    before = lost(head, few, by_token(whole, "one"), ids)

    with open(notes, encoding="utf-8") as file:
        said = float(re.search(r"'head.weight' in int4: .* off by ([0-9.]+)%",
                               file.read()).group(1))
    print(f"behind the rounded block {behind:.3f}%, behind the whole one "
          f"{before:.3f}%, said {said}%")
    # It is said in two digits behind the point; sums are of floats.
    bound = 0.005 + 0.001 * behind
    if abs(said - behind) > bound:
        sys.exit("not what is said")
    if abs(before - behind) < 10 * bound:
        sys.exit("the test cannot tell them apart")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
