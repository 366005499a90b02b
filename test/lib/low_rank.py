#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Truncated singular value decompositions by definition, in double precision.

  low_rank.py base OUT ROWS COLUMNS DECAY COUNT   COUNT random matrices "w.0.weight",
      ..., whose singular values fall by the factor DECAY from one to the next,
      and a bias "b.0.bias" for each
  low_rank.py cut BASE OUT RANK|ERROR% [STEP]     the nearest matrices of a rank,
      or of the least rank, a multiple of STEP, that keeps all of them to an
      error; says the rank and the errors
"""
import math
import random
import sys
from operator import mul

import tensors


def decompose(matrix):
    """Triples (singular value, left vector, right vector), largest first: by
    rotations of pairs of rows until all are orthogonal (Hestenes 1958)."""
    rows = [list(row) for row in matrix]
    turns = [[float(i == j) for j in range(len(rows))] for i in range(len(rows))]
    for _ in range(60):
        worst = 0.0
        for p in range(len(rows)):
            for q in range(p + 1, len(rows)):
                a = sum(x * x for x in rows[p])
                b = sum(x * x for x in rows[q])
                c = sum(map(mul, rows[p], rows[q]))
                if a * b == 0 or abs(c) <= 1e-12 * math.sqrt(a * b):
                    continue
                worst = max(worst, abs(c) / math.sqrt(a * b))
                zeta = (b - a) / (2 * c)
                t = math.copysign(1, zeta) / (abs(zeta) + math.hypot(1, zeta))
                cosine = 1 / math.hypot(1, t)
                sine = cosine * t
                for table in (rows, turns):
                    table[p], table[q] = (
                        [cosine * x - sine * y
                         for x, y in zip(table[p], table[q])],
                        [sine * x + cosine * y
                         for x, y in zip(table[p], table[q])])
        if worst < 1e-9:
            break
    triples = []
    for row, turn in zip(rows, turns):
        length = math.sqrt(sum(x * x for x in row))
        triples.append((length, turn, [x / length if length else 0 for x in row]))
    return sorted(triples, key=lambda triple: -triple[0])


def errors_of(values):
    """The error of each rank, from 0 on."""
    total = sum(value * value for value in values)
    return [math.sqrt(sum(v * v for v in values[rank:]) / total)
            for rank in range(len(values) + 1)]


def make(path, rows, columns, decay, count):
    rng = random.Random(7)
    entries = {}
    for layer in range(count):
        def basis(size):
            made = []
            for _ in range(min(rows, columns)):
                row = [rng.gauss(0, 1) for _ in range(size)]
                for other in made:
                    dot = sum(map(mul, row, other))
                    row = [x - dot * y for x, y in zip(row, other)]
                length = math.sqrt(sum(x * x for x in row))
                made.append([x / length for x in row])
            return made
        left, right = basis(rows), basis(columns)
        matrix = [[sum(decay ** i * 3 * left[i][r] * right[i][c]
                       for i in range(len(left)))
                   for c in range(columns)] for r in range(rows)]
        numbers = [x for row in matrix for x in row]
        entries[f"w.{layer}.weight"] = (
            "F32", [rows, columns], tensors.stored(numbers, "f32"))
        bias = [rng.gauss(0, 1) for _ in range(rows)]
        entries[f"w.{layer}.bias"] = ("F32", [rows], tensors.stored(bias, "f32"))
    tensors.save(path, entries)


def cut(base, out, bound, step=1):
    entries = tensors.load(base)
    triples = {}
    for name, entry in entries.items():
        if len(entry[1]) == 2:
            rows, columns = entry[1]
            numbers = tensors.numbers(entry)
            triples[name] = decompose(
                [numbers[r * columns:(r + 1) * columns] for r in range(rows)])
    errors = {name: errors_of([t[0] for t in all])
              for name, all in triples.items()}
    if bound.endswith("%"):
        allowed = float(bound[:-1]) / 100
        rank = max(next(r for r in range(step, len(e), step) if e[r] <= allowed)
                   for e in errors.values())
    else:
        rank = int(bound)
    for name, all in triples.items():
        rows, columns = entries[name][1]
        numbers = [sum(v * left[r] * right[c] for v, left, right in all[:rank])
                   for r in range(rows) for c in range(columns)]
        entries[name] = ("F32", [rows, columns], tensors.stored(numbers, "f32"))
    tensors.save(out, entries)
    print(f"rank {rank} errors",
          ", ".join(f"{100 * e[rank]:.2f}%" for e in errors.values()))


if __name__ == "__main__":
    if sys.argv[1] == "base":
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
             float(sys.argv[5]), int(sys.argv[6]))
    else:
        cut(*sys.argv[2:5], *map(int, sys.argv[5:]))
