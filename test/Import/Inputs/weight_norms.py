#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of one matrix [2, 3] as lengths and directions, good and bad.

  weight_norms.py FOLDER
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
import tensors  # noqa: E402


def floats(shape, *numbers):
    return "F32", shape, struct.pack(f"<{len(numbers)}f", *numbers)


DIRECTIONS = floats([2, 3], 1, 2, 2, 0, 3, 4)
OLD, NEW = ("fc.weight_g", "fc.weight_v"), (
    "fc.parametrizations.weight.original0", "fc.parametrizations.weight.original1")
CASES = {"good": (OLD, floats([2, 1], 3, 5), DIRECTIONS),
         "shape": (OLD, floats([4, 1], 3, 5, 1, 1), DIRECTIONS),
         "rank": (OLD, floats([2], 3, 5), DIRECTIONS),
         "type": (OLD, ("I64", [2, 1], struct.pack("<2q", 3, 5)), DIRECTIONS),
         "zeros": (NEW, floats([2, 1], 3, 5), floats([2, 3], 1, 2, 2, 0, 0, 0))}
for name, (names, *parts) in CASES.items():
    tensors.save(os.path.join(sys.argv[1], name + ".safetensors"),
                 dict(zip(names, parts)))
