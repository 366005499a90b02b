# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small safetensors files and weight blobs for the tests of the command line.

  tensors.py write FILE name:DTYPE:2x3=1,2,3,4,5,6 ...
                                      3*20 stands for twenty times 3
  tensors.py show FILE
  tensors.py weights FILE 1.5,2,... [BYTES]  append a blob of f32 and its
                                      trailer, so many bytes behind a page
"""
import json
import os
import struct
import sys

CODES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "U8": "B", "BOOL": "B"}


def write(path, tensors):
    header, data = {}, b""
    for text in tensors:
        description, values = text.split("=")
        name, dtype, shape = description.split(":")
        code = CODES[dtype]
        cast = float if code in "fd" else int
        raw = b""
        for value in filter(None, values.split(",")):
            value, _, count = value.partition("*")
            raw += struct.pack("<" + code, cast(value)) * int(count or 1)
        header[name] = {"dtype": dtype,
                        "shape": [int(n) for n in shape.split("x") if n],
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def show(path):
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in sorted(json.loads(raw[8:8 + size]).items()):
        begin, end = entry["data_offsets"]
        code = CODES[entry["dtype"]]
        values = [v[0] for v in struct.iter_unpack(
            "<" + code, raw[8 + size + begin:8 + size + end])]
        print(name, entry["dtype"], entry["shape"], *values)


def weights(path, values, shift=0):
    data = b"".join(struct.pack("<f", float(v)) for v in values.split(","))
    offset = os.path.getsize(path) if os.path.exists(path) else 0
    padding = -offset % 4096 + shift
    with open(path, "ab") as file:
        file.write(b"\0" * padding + data +
                   struct.pack("<QQQ", offset + padding, len(data), 0) +
                   b"ATTUNEW1")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "show":
        show(sys.argv[2])
    else:
        weights(sys.argv[2], sys.argv[3], int((sys.argv[4:] or [0])[0]))
