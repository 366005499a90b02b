#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a mixture of experts in bf16 and checks some tokens, to the last bit.

  experts.py ATTUNE MODEL.mlir WORK TOKENS [FLAG...]

MODEL is attune.moe of x [TOKENS, 504], or of its last 504 columns if it has
more, two of five experts each (e) and their shares (s), to y; gated, by relu.
Of the experts one is chosen by most tokens, two by some, one by a single token
and one by none. Numbers are small integers, so that only the hidden layer is
rounded, and each of its numbers once.
"""
import os
import random
import re
import struct
import subprocess
import sys
from array import array
from operator import mul

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

WIDTH, HIDDEN, EXPERTS, ACTIVE = 504, 248, 5, 2


def stored(values):
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def rounded(value):
    """To eight bits, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7fff + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xffff0000))[0]


def choose(draw, tokens):
    """Two experts for each token."""
    lone = draw.randrange(tokens)
    for token in range(tokens):
        pair = [1, 2] if draw.random() < 0.1 else [0, draw.choice([1, 2, 2])]
        if token == lone:
            pair = [0, 4]
        draw.shuffle(pair)
        yield from pair


def main():
    attune, model, work, tokens = sys.argv[1:5]
    tokens = int(tokens)
    os.makedirs(work, exist_ok=True)
    draw = random.Random(7)

    def numbers(size):
        return draw.choices([-1, 0, 1], k=size)

    with open(model, encoding="utf-8") as file:
        text = file.read()
    columns = int(re.search(r"%x: tensor<\?x(\d+)x", text).group(1))
    biased = "up_bias" in text
    x = numbers(tokens * columns)
    experts = list(choose(draw, tokens))
    shares = [draw.choice([0.5, 1.0, 2.0]) for _ in experts]
    matrices = [{"gate": numbers(HIDDEN * WIDTH), "up": numbers(HIDDEN * WIDTH),
                 "down": numbers(WIDTH * HIDDEN)} for _ in range(EXPERTS)]
    biases = [{"gate": numbers(HIDDEN), "up": numbers(HIDDEN),
               "down": numbers(WIDTH)} for _ in range(EXPERTS if biased else 0)]
    weights = os.path.join(work, "weights.safetensors")
    tensors.save(weights, {
        **{f"{e}.{name}": ("BF16", [WIDTH, HIDDEN] if name == "down"
                           else [HIDDEN, WIDTH], stored(values))
           for e, matrix in enumerate(matrices)
           for name, values in matrix.items()},
        **{f"{e}.{name}.bias": ("BF16", [len(values)], stored(values))
           for e, bias in enumerate(biases) for name, values in bias.items()}})
    inputs, outputs = (os.path.join(work, name) for name in
                       ("in.safetensors", "out.safetensors"))
    tensors.save(inputs, {
        "x": ("BF16", [tokens, columns], stored(x)),
        "e": ("I64", [tokens, ACTIVE], array("q", experts).tobytes()),
        "s": ("F32", [tokens, ACTIVE], array("f", shares).tobytes())})
    subprocess.run([attune, "run", model, "--target=cuda", *sys.argv[5:],
                    "--weights", weights, "--inputs", inputs,
                    "--outputs", outputs], check=True)
    y = array("f", tensors.load(outputs)["y"][2])

    def times(matrix, vector):
        return [sum(map(mul, matrix[i:i + len(vector)], vector))
                for i in range(0, len(matrix), len(vector))]

    def expected(token):
        sums = [0.0] * WIDTH
        row = x[(token + 1) * columns - WIDTH:(token + 1) * columns]
        for slot in range(token * ACTIVE, (token + 1) * ACTIVE):
            of = matrices[experts[slot]]
            gate, up = times(of["gate"], row), times(of["up"], row)
            if biased:
                by = biases[experts[slot]]
                gate = [min(g + b, 3) for g, b in zip(gate, by["gate"])]
                up = [max(min(u + b, 3), -3) + 1
                      for u, b in zip(up, by["up"])]
            hidden = [rounded(max(g, 0) * u) for g, u in zip(gate, up)]
            down = times(of["down"], hidden)
            if biased:
                down = [a + b for a, b in zip(down, by["down"])]
            sums = [s + shares[slot] * r for s, r in zip(sums, down)]
        return sums

    # Some tokens, and that of the lone expert.
    checked = {*range(0, tokens, 1 if tokens < 200 else 97),
               experts.index(4) // ACTIVE}
    wrong = [token for token in sorted(checked) if
             list(y[token * WIDTH:(token + 1) * WIDTH]) != expected(token)]
    print(f"{'FAIL' if wrong else 'PASS'} {tokens} tokens {wrong[:9]}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
