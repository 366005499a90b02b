#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes tensors out of a safetensors file; needs nothing but Python.

  tensors.py select FILE OUT NAME[=NEW]...    a file with these tensors, renamed
  tensors.py split FILE OUT NAME              NAME cut along its first dimension
                                              into NAME.0, NAME.1, ...; the other
                                              tensors as they are
  tensors.py ids FILE NAME                    integers, comma-separated
"""
import json
import struct
import sys
from array import array


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = (entry["dtype"], entry["shape"],
                             raw[8 + size + begin:8 + size + end])
    return tensors


def save(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, raw in tensors.values():
            file.write(raw)


def save_empty(path, tensors):
    """Zeros of two bytes of {name: (dtype, shape)}, which take no space. Gives how
    many there are."""
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        size = 2
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return at // 2


def rounded(number, kind):
    """The number of type f32, f16 or bf16 that is nearest, as a float."""
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<e", number))[0]
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    if kind == "bf16" and bits & 0x7f800000 != 0x7f800000:
        bits += 0x7fff + (bits >> 16 & 1)
        bits &= 0xffff0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def stored(numbers, kind):
    """The bytes of numbers of type f32, f16 or bf16 that hold them exactly."""
    if kind == "f16":
        return struct.pack(f"<{len(numbers)}e", *numbers)
    raw = struct.pack(f"<{len(numbers)}f", *numbers)
    if kind == "bf16":
        raw = b"".join(raw[at + 2:at + 4] for at in range(0, len(raw), 4))
    return raw


def numbers(tensor):
    """The numbers of a tensor of f32, f16 or bf16."""
    dtype, _, raw = tensor
    if dtype == "BF16":
        raw = b"".join(b"\0\0" + raw[at:at + 2] for at in range(0, len(raw), 2))
    kind, size = ("e", 2) if dtype == "F16" else ("f", 4)
    return struct.unpack(f"<{len(raw) // size}{kind}", raw)


def split(tensors, cut):
    """The tensors, with the one named `cut` in pieces."""
    result = {}
    for name, (dtype, shape, raw) in tensors.items():
        if name != cut:
            result[name] = (dtype, shape, raw)
            continue
        each = len(raw) // shape[0]
        for i in range(shape[0]):
            result[f"{name}.{i}"] = (dtype, shape[1:],
                                     raw[i * each:(i + 1) * each])
    return result


def main():
    verb, path = sys.argv[1:3]
    tensors = load(path)
    if verb == "select":
        chosen = {}
        for item in sys.argv[4:]:
            name, _, new = item.partition("=")
            chosen[new or name] = tensors[name]
        save(sys.argv[3], chosen)
    elif verb == "split":
        save(sys.argv[3], split(tensors, sys.argv[4]))
    elif verb == "ids":
        dtype, _, raw = tensors[sys.argv[3]]
        code = {"I64": "q", "I32": "i"}[dtype]
        print(",".join(str(value) for value in array(code, raw)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
