# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""rename_tensors.py FOLDER OUT WHAT [FROM=TO ...]

Copies a folder of one safetensors file. The start FROM of each name becomes TO; both may be
empty. WHAT is "f64", for tensors of doubles beside which there is one of whole numbers, or
"names".
"""
import array
import json
import os
import shutil
import struct
import sys


def main():
    folder, out, what = sys.argv[1:4]
    rules = [rule.split("=") for rule in sys.argv[4:]]
    shutil.copytree(folder, out)
    path = os.path.join(out, "model.safetensors")
    os.chmod(path, 0o644)
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    renamed, body = {}, b""
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = data[begin:end]
        if what == "f64":
            assert entry["dtype"] == "F32"
            values = array.array("d", array.array("f", values)).tobytes()
            entry["dtype"] = "F64"
        start, to = next(((f, t) for f, t in rules if name.startswith(f)), ("", ""))
        entry["data_offsets"] = [len(body), len(body) + len(values)]
        renamed[to + name[len(start):]] = entry
        body += values
    if what == "f64":
        renamed["places"] = {"dtype": "I64", "shape": [1],
                             "data_offsets": [len(body), len(body) + 8]}
        body += bytes(8)
    text = json.dumps(renamed).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


main()
