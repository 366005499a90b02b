#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose heads do nothing: what pruning these has to give.

  prune_heads.py base SHAPES OUT         random weights of the shapes that a
      JSON file lists by name
  prune_heads.py zero BASE OUT TENSOR:WIDTH:HEADS...   zeros in the columns of
      TENSOR, the matrix that takes the heads, WIDTH for each of HEADS (0,2)
"""
import json
import random
import sys

import tensors


def base(description, out):
    with open(description) as file:
        shapes = json.load(file)
    rng = random.Random(11)
    entries = {}
    for name, shape in shapes.items():
        count = 1
        for size in shape:
            count *= size
        spread = 1 / shape[-1] ** 0.5 if len(shape) > 1 else 0.3
        numbers = [rng.gauss(0, spread) for _ in range(count)]
        if len(shape) == 1 and name.endswith("weight"):
            numbers = [1 + number for number in numbers]
        entries[name] = ("F32", shape, tensors.stored(numbers, "f32"))
    tensors.save(out, entries)


def zero(path, out, rules):
    entries = tensors.load(path)
    for rule in rules:
        name, width, heads = rule.split(":")
        width = int(width)
        rows, columns = entries[name][1]
        numbers = list(tensors.numbers(entries[name]))
        for head in map(int, heads.split(",")):
            for row in range(rows):
                start = row * columns + head * width
                numbers[start:start + width] = [0.0] * width
        entries[name] = ("F32", [rows, columns], tensors.stored(numbers, "f32"))
    tensors.save(out, entries)


if __name__ == "__main__":
    if sys.argv[1] == "base":
        base(*sys.argv[2:4])
    else:
        zero(sys.argv[2], sys.argv[3], sys.argv[4:])
