#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers of every kind against their formulas in f64.

  recurrent_reference.py ATTUNE WORK [FLAG]...

Each case is a stack of `layers`, bidirectional or not, over rows of different
lengths, with random weights; the sequence and all last states are compared.
"""
import array
import json
import math
import os
import random
import subprocess
import sys

import tensors
from reference_recurrent import GATES, product, step


class Case:
    def __init__(self, seed, cell, width, layers, bidirectional, bias, masked):
        random.seed(seed)
        self.name = (f"{cell}-{width}x{layers}"
                     + "-bidirectional" * bidirectional
                     + "-no-bias" * (not bias) + "-masked" * masked)
        self.cell, self.width, self.count = cell, width, layers
        self.suffixes = ["", "_reverse"] if bidirectional else [""]
        self.bias, self.masked = bias, masked
        self.batch, self.tokens, self.channels = 3, 6, 5
        self.lengths = [6, 2, 4] if masked else [6] * 3
        self.weights = {}
        inputs = self.channels
        for level in range(layers):
            for suffix in self.suffixes:
                for role, columns in (("ih", inputs), ("hh", width)):
                    place = f"{role}_l{level}{suffix}"
                    rows = GATES[cell] * width
                    self.random("rnn.weight_" + place, rows, columns)
                    if bias:
                        self.random("rnn.bias_" + place, rows)
            inputs = width * len(self.suffixes)
        self.x = self.numbers(self.batch * self.tokens * self.channels)

    @staticmethod
    def numbers(count):
        return array.array("f", [random.uniform(-0.8, 0.8)
                                 for _ in range(count)])

    def random(self, name, *shape):
        self.weights[name] = (list(shape), self.numbers(math.prod(shape)))

    def matrix(self, name):
        (rows, columns), flat = self.weights["rnn.weight_" + name]
        return [flat[i * columns:(i + 1) * columns] for i in range(rows)]

    def vector(self, name, rows):
        return (self.weights["rnn.bias_" + name][1] if self.bias
                else [0.0] * rows)

    def reference(self):
        """{output: numbers}"""
        results, rows = {}, GATES[self.cell] * self.width
        streams = [[self.x[(b * self.tokens + t) * self.channels:][
            :self.channels] for t in range(self.tokens)]
            for b in range(self.batch)]
        for level in range(self.count):
            outputs = [[[] for _ in range(self.tokens)]
                       for _ in range(self.batch)]
            for suffix in self.suffixes:
                place = f"l{level}{suffix}"
                w_ih, w_hh = (self.matrix(f"{r}_{place}") for r in ("ih", "hh"))
                b_ih, b_hh = (self.vector(f"{r}_{place}", rows)
                              for r in ("ih", "hh"))
                last = {"h": [], "c": []}
                for b in range(self.batch):
                    h, c = [0.0] * self.width, [0.0] * self.width
                    order = range(self.lengths[b])
                    for t in reversed(order) if suffix else order:
                        h, c = step(self.cell,
                                    product(w_ih, streams[b][t], b_ih),
                                    product(w_hh, h, b_hh), h, c)
                        outputs[b][t] = outputs[b][t] + h
                    for t in range(self.lengths[b], self.tokens):
                        outputs[b][t] = outputs[b][t] + [0.0] * self.width
                    last["h"] += h
                    last["c"] += c
                results[f"rnn.h_{place}"] = last["h"]
                if self.cell == "lstm":
                    results[f"rnn.c_{place}"] = last["c"]
            streams = outputs
        results["rnn"] = [v for row in streams for t in row for v in t]
        return results

    def run(self, attune, work, flags):
        options = {"cell": self.cell, "width": self.width,
                   "layers": self.count, "bias": self.bias,
                   "bidirectional": len(self.suffixes) == 2}
        want = self.reference()
        path = os.path.join(work, self.name)
        inputs = {"x": ("F32", [self.batch, self.tokens, self.channels],
                        self.x.tobytes())}
        model = {"attune": 1, "inputs": {
            "x": {"dtype": "f32",
                  "shape": ["batch", "tokens", self.channels]}},
            "streams": {"main": {"input": "x", "layers": [
                {"recurrent": options, "name": "rnn"}]}},
            "outputs": {name: name for name in want}}
        if self.masked:
            model["inputs"]["attention_mask"] = {
                "dtype": "bool", "shape": ["batch", "tokens"]}
            inputs["attention_mask"] = ("BOOL", [self.batch, self.tokens], bytes(
                t < n for n in self.lengths for t in range(self.tokens)))
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump(model, file)
        tensors.save(path + ".weights.safetensors", {
            name: ("F32", shape, flat.tobytes())
            for name, (shape, flat) in self.weights.items()})
        tensors.save(path + ".in.safetensors", inputs)
        result = subprocess.run(
            [attune, "run", path + ".json",
             f"--weights={path}.weights.safetensors", "--inputs",
             path + ".in.safetensors", "--outputs", path + ".out.safetensors",
             *flags], capture_output=True, text=True)
        if result.returncode != 0:
            print(f"FAIL {self.name}: {result.stderr}")
            return False
        found = tensors.load(path + ".out.safetensors")
        worst = max(abs(a - b) for name, numbers in want.items()
                    for a, b in zip(array.array("f", found[name][2]), numbers,
                                    strict=True))
        good = worst < 2e-6
        print(f"{'PASS' if good else 'FAIL'} {self.name}: {worst:.1e}")
        return good


def main():
    attune, work, *flags = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    good = True
    for seed, (cell, width, layers, both, bias, masked) in enumerate([
            ("rnn", 7, 1, False, True, False),
            ("rnn", 16, 2, True, True, True),
            ("rnn_relu", 9, 1, True, True, False),
            ("gru", 8, 1, False, False, True),
            ("gru", 17, 2, True, True, True),
            ("lstm", 16, 1, False, True, False),
            ("lstm", 11, 2, True, True, True)]):
        good &= Case(seed, cell, width, layers, both, bias, masked).run(
            attune, work, flags)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
