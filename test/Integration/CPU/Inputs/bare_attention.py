"""Writes models of bare attention and inputs of eight bits for them."""
import json
import os
import random
import struct
import sys

sys.path.insert(0, sys.argv[1])
import tensors

random.seed(11)


def make(heads, kv_heads, width, value_width, queries, keys, dtype="bf16",
         batch="B", **more):
    def heads_of(count, rows, channels):
        return {"dtype": dtype, "shape": [batch, count, rows, channels]}
    spec = {"attune": 1,
            "inputs": {"q": heads_of(heads, queries, width),
                       "k": heads_of(kv_heads, "N", width),
                       "v": heads_of(kv_heads, "N", value_width)},
            "layers": [{"attention": {"query": "q", "key": "k", "value": "v",
                                      "causal": queries != 1, **more},
                        "name": "y"}],
            "outputs": {"y": "y"}}
    path = os.path.join(sys.argv[2], f"{heads}-of-{kv_heads}x{width}")
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(spec, file)
    inputs = {}
    for name, tensor in spec["inputs"].items():
        shape = [{"B": 2, "M": 5, "N": keys}.get(size, size)
                 for size in tensor["shape"]]
        count = 1
        for size in shape:
            count *= size
        numbers = (struct.pack("<f", random.randrange(-255, 256) / 128)
                   for _ in range(count))
        raw = b"".join(number[2:] if dtype == "bf16" else number
                       for number in numbers)
        inputs[name] = (dtype.upper(), shape, raw)
    tensors.save(path + ".safetensors", inputs)


make(1, 1, 64, 64, 1, 77)
make(8, 1, 32, 32, 1, 301)
make(3, 1, 64, 64, 1, 45)
make(10, 2, 96, 32, 3, 77)
make(4, 2, 48, 64, 2, 77)
make(6, 1, 64, 64, 2, 77)
make(2, 1, 80, 40, "M", 77)  # 5 of any number
make(8, 2, 64, 64, 1, 1901, "f32", 2)
make(4, 1, 84, 44, 3, 1901, "f32", 2)
make(2, 2, 64, 64, 2, 1901, "f32", 2, window=700)
make(2, 1, 64, 64, 8, 513, "f32", 2)
make(2, 2, 16, 16, 701, 701, "f32", 2)
