#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what `attune compare --format=json` says; needs nothing but Python.

  differences.py REPORT.json TEACHER STUDENT

TEACHER and STUDENT are the outputs of both models (safetensors, F32). The
figures are computed again, in double precision, from their definitions.
"""
import json
import math
import sys
from operator import mul

import tensors


def softmax(row):
    powers = [math.exp(x - max(row)) for x in row]
    return [p / math.fsum(powers) for p in powers]


def figures(name, teacher, student, width):
    rows = [(teacher[at:at + width], student[at:at + width])
            for at in range(0, len(teacher), width)]
    cosines = [math.fsum(map(mul, t, s)) /
               math.sqrt(math.fsum(a * a for a in t)) /
               math.sqrt(math.fsum(b * b for b in s)) for t, s in rows]
    result = {"name": name, "rows": len(rows),
              "cosine": math.fsum(cosines) / len(rows),
              "least_cosine": min(cosines),
              "error": math.sqrt(
                  math.fsum((a - b) ** 2 for a, b in zip(teacher, student)) /
                  math.fsum(a * a for a in teacher))}
    if name == "logits":
        result["kl_divergence"] = math.fsum(
            p * math.log(p / q) for t, s in rows
            for p, q in zip(softmax(t), softmax(s))) / len(rows)
        result["top1_agreement"] = sum(
            t.index(max(t)) == s.index(max(s)) for t, s in rows) / len(rows)
    return result


def main(report, teacher, student):
    with open(report, encoding="utf-8") as file:
        found = json.load(file)["outputs"]
    both = [tensors.load(path) for path in (teacher, student)]
    assert {one["name"] for one in found} == set(both[0]), found
    for one in found:
        name = one["name"]
        want = figures(name, *(tensors.numbers(side[name]) for side in both),
                       both[0][name][1][-1])
        assert set(one) == set(want), (one, want)
        for key, value in want.items():
            good = one[key] == value if isinstance(value, (str, int)) else \
                abs(one[key] - value) <= 1e-9
            assert good, (name, key, one[key], value)
        print(f"{name}: {len(want)} figures agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
