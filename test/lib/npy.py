#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a .npy file as its specification says and compares it with a tensor.

  npy.py FILE.npy FILE.safetensors NAME

Prints the type and shape, and "same bytes" or "other bytes".
"""
import ast
import json
import struct
import sys


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n"
    header = ast.literal_eval(data[10:10 + length].decode("latin-1"))
    assert not header["fortran_order"]
    return header["descr"], list(header["shape"]), data[10 + length:]


def read_tensor(path, name):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    entry = json.loads(data[8:8 + length])[name]
    begin, end = entry["data_offsets"]
    return entry["shape"], data[8 + length + begin:8 + length + end]


descr, shape, values = read_npy(sys.argv[1])
other_shape, other = read_tensor(sys.argv[2], sys.argv[3])
same = shape == other_shape and values == other
print(descr, shape, "same bytes" if same else "other bytes")
