#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selective state spaces of many sizes against their formulas in f64.

  state_space_reference.py ATTUNE WORK [FLAG]...

The rows of a batch are padded, at the front or at the end, and compared with
what their own tokens give alone; so a wrong mask is a wrong number.
"""
import array
import json
import os
import random
import subprocess
import sys

import reference
import reference_recurrent
import tensors

# Channels, options, tokens, (first, last) token of each row that counts.
CASES = {
    "plain": (12, {}, 7, None),
    "one-token": (12, {"states": 3}, 1, None),
    "ragged": (5, {"inner": 11, "states": 17, "kernel": 3, "rank": 2}, 6, None),
    "one-state": (8, {"inner": 16, "states": 1, "kernel": 1}, 5, None),
    "long-kernel": (6, {"kernel": 7}, 4, None),
    "biases": (6, {"bias": True, "conv_bias": False}, 5, None),
    "norms": (20, {"norm": {"kind": "rms_norm", "eps": 1e-6}}, 5, None),
    "heads": (12, {"heads": 3, "states": 5}, 7, None),
    "head-groups": (16, {"heads": 4, "groups": 2, "states": 6,
                         "out_norm": {"kind": "rms_norm", "parts": 2}}, 6, None),
    "wide-heads": (32, {"heads": 2, "kernel": 3,
                        "out_norm": {"kind": "rms_norm", "offset": 1}}, 5, None),
    "head-padding": (8, {"heads": 2, "conv_bias": False}, 6,
                     [(0, 6), (3, 6), (5, 6)]),
    "padded-end": (12, {}, 6, [(0, 6), (0, 2), (0, 1)]),
    "padded-front": (12, {"kernel": 3}, 6, [(0, 6), (4, 6), (5, 6)]),
    "hidden-row": (4, {}, 3, [(0, 3), (0, 0), (1, 2)]),
}


def run(name, attune, work, flags):
    channels, options, tokens, shown = CASES[name]
    batch = len(shown) if shown else 2
    layer = {"mamba": options, "name": "mixer"}
    spec = {"attune": 1, "inputs": {
        "x": {"dtype": "f32", "shape": ["batch", "tokens", channels]}},
        "streams": {"main": {"input": "x", "layers": [layer]}},
        "outputs": {"y": "mixer"}}
    model = reference.Model(spec, {})
    source = random.Random(name)
    x = array.array("f", (source.gauss(0, 1.5)
                          for _ in range(batch * tokens * channels)))
    inputs = {"x": ("F32", [batch, tokens, channels], x.tobytes())}
    if shown:
        spec["inputs"]["attention_mask"] = {
            "dtype": "bool", "shape": ["batch", "tokens"]}
        inputs["attention_mask"] = ("BOOL", [batch, tokens], bytes(
            first <= t < last for first, last in shown for t in range(tokens)))
    want = {}
    for row, (first, last) in enumerate(shown or [(0, tokens)] * batch):
        rows = [list(x[(row * tokens + t) * channels:][:channels])
                for t in range(first, last)]
        made = reference_recurrent.mamba(
            reference.Layer(model, layer, "mixer", 0), rows, options, "") if rows else []
        for t, numbers in enumerate(made):
            want[row, first + t] = numbers
    path = os.path.join(work, name)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(spec, file)
    # Published checkpoints keep the convolution as [channels, 1, taps].
    made = {key: ("F32", [shape[0], 1, shape[1]] if "conv1d.weight" in key
                  else shape, values.tobytes())
            for key, (shape, values) in model.weights.made.items()}
    tensors.save(path + ".weights.safetensors", made)
    tensors.save(path + ".in.safetensors", inputs)
    result = subprocess.run(
        [attune, "run", path + ".json",
         f"--weights={path}.weights.safetensors", "--inputs",
         path + ".in.safetensors", "--outputs", path + ".out.safetensors",
         *flags], capture_output=True, text=True)
    if result.returncode != 0:
        print(f"FAIL {name}: {result.stderr}")
        return False
    found = array.array("f", tensors.load(path + ".out.safetensors")["y"][2])
    largest = max(abs(number) for numbers in want.values() for number in numbers)
    worst = max(abs(found[(row * tokens + t) * channels + c] - number)
                for (row, t), numbers in want.items()
                for c, number in enumerate(numbers)) / largest
    good = worst < 2e-6 and all(v == v for v in found)
    print(f"{'PASS' if good else 'FAIL'} {name}: {worst:.1e}")
    return good


def main():
    attune, work, *flags = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    return 0 if all([run(name, attune, work, flags) for name in CASES]) else 1


if __name__ == "__main__":
    sys.exit(main())
