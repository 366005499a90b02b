#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many products on tensor cores one text has for those of another.

  count_mma.py F32 TF32

In kernels of f32 linear layers multiply parts of bf16, attention parts of tf32.
"""
import collections
import math
import re
import sys


def count(path):
    """Products of each kernel, by type."""
    with open(path, encoding="utf-8") as file:
        kernels = file.read().split(".visible .entry ")[1:]
    return [collections.Counter(
        re.findall(r"\bmma\.sync\.\S*\.(bf16|tf32)\.f32", kernel))
        for kernel in kernels]


pairs = list(zip(count(sys.argv[1]), count(sys.argv[2]), strict=True))


def ratio(kind):
    found = {(before[kind] // math.gcd(before[kind], after["tf32"]),
              after["tf32"] // math.gcd(before[kind], after["tf32"]))
             for before, after in pairs if before[kind]}
    (before, after), = found
    return before, after


before, after = ratio("bf16")
print(f"linear: {before * 2} of 16 are {after * 2} of 8")
before, after = ratio("tf32")
print(f"attention: {before} of 8 are {after} of 8")
