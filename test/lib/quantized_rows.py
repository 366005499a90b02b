#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs linear layers in int8 or int4 on CPUs with and without instructions for it
and compares them: with each other bit by bit, which takes CPUs that all have or all
lack fused multiply-adds, and with the definition, whose sums of a group are whole
numbers here, too.

  quantized_rows.py ATTUNE MODEL.json WORK ROWS CPU... [--OPTION=VALUE...]

MODEL has one linear layer without bias from x [1, seq, K], or a gated one and
one behind it, or a mixture of such experts, whose router is taken to have the full
width; options go to `attune run`. One may be --quantize=int4:g64, int4:g32:asym,
fp8, mxfp4 and the like, or patterns and then that; by default it is int8. With
--activations=exact, and of fp8, rows are numbers as they are.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
from array import array

import tensors


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def quantize(row, group, reciprocal):
    """Scales, and values in [-127, 127], of the groups of a row. `reciprocal`
    gives what values are multiplied by, as the definition has it."""
    scales, values = [], []
    for begin in range(0, len(row), group):
        part = row[begin:begin + group]
        most = max(map(abs, part))
        scales.append(f32(most / 127))
        factor = reciprocal(most) if most > 0 else 0.0
        values += [round(f32(v * factor)) for v in part]  # ties to even
    return scales, values


def half(number):
    return struct.unpack("<e", struct.pack("<e", number))[0]


def quantize4(row, group):
    """Scales of 16 bits, and values in [-8, 7]: what is largest in a group, the
    first of equals, is -8 steps."""
    scales, values = [], []
    for begin in range(0, len(row), group):
        part = row[begin:begin + group]
        scales.append(half(f32(max(part, key=abs) / -8)))
        factor = f32(1 / scales[-1]) if scales[-1] else 0.0
        values += [min(max(round(f32(v * factor)), -8), 7) for v in part]
    return scales, values


def quantize_zeros(row, group, bits):
    """Scales, of 16 bits for 4 bits, and differences of numbers and zero points:
    the least of a group, or 0, is the number 0, the greatest the last one."""
    scales, values = [], []
    most = 2 ** bits - 1
    for begin in range(0, len(row), group):
        part = row[begin:begin + group]
        low, high = min(0.0, *part), max(0.0, *part)
        scale = f32(f32(high - low) / most)
        scales.append(half(scale) if bits == 4 else scale)
        factor = f32(1 / scales[-1]) if scales[-1] else 0.0
        zero = round(f32(-low * factor))
        values += [min(max(round(f32(v * factor)) + zero, 0), most) - zero
                   for v in part]
    return scales, values


def quantize_floats(row):
    """Powers of two, and floats of 4 bits: a sign, two bits of an exponent and one
    of a fraction."""
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    scales, values = [], []
    for begin in range(0, len(row), 32):
        part = row[begin:begin + 32]
        most = max(map(abs, part))
        scale = 2.0 ** max(math.frexp(most)[1] - 3, -127) if most else 2.0 ** -127
        scales.append(scale)
        for v in part:
            size = abs(v) / scale
            code = min(range(8), key=lambda c: (abs(sizes[c] - size), c % 2))
            values.append(math.copysign(sizes[code], v))
    return scales, values


def nearest_float8(number):
    """Of 1 sign, 4 exponent and 3 fraction bits, ties to the even fraction."""
    size = abs(number)
    exponent = max(math.frexp(size)[1] - 1, -6) if size else -6
    step = 2.0 ** (exponent - 3)
    return math.copysign(min(round(size / step) * step, 448.0), number)


def quantize_floats8(row, group):
    """Scales, by which the largest of a group is 448, and floats of 8 bits."""
    scales, values = [], []
    for begin in range(0, len(row), group):
        part = row[begin:begin + group]
        scales.append(f32(max(map(abs, part)) / 448))
        factor = f32(1 / scales[-1]) if scales[-1] else 0.0
        values += [nearest_float8(f32(v * factor)) for v in part]
    return scales, values


def layer(x, weights, group, gated, exact=False):
    """One row times all rows of the matrix, in double precision but for scales
    and quotients."""
    scales, values = ([1.0] * (len(x) // group), x) if exact else \
        quantize(x, group, lambda most: f32(127 / most))
    out = []
    for factors, bytes_ in weights:
        total = 0.0
        for g, (s, t) in enumerate(zip(scales, factors)):
            span = range(g * group, (g + 1) * group)
            total += s * t * sum(values[k] * bytes_[k] for k in span)
        out.append(total)
    if gated:
        half = len(out) // 2
        out = [g / (1 + math.exp(-g)) * u for g, u in zip(out, out[half:])]
    return out


def shares(x, router, active):
    """The experts of a row, best first, and their weights: softmax over all."""
    logits = [sum(a * b for a, b in zip(x, row)) for row in router]
    powers = [math.exp(z - max(logits)) for z in logits]
    best = sorted(range(len(logits)), key=lambda e: -logits[e])[:active]
    return [(e, powers[e] / sum(powers)) for e in best]


def main():
    attune, model, work, rows, *cpus = [
        word for word in sys.argv[1:] if not word.startswith("--")]
    more = [word for word in sys.argv[1:] if word.startswith("--")]
    form = next((word for word in more if word.startswith("--quantize=")),
                "--quantize=int8")
    more = [word for word in more if word != form]
    kind, *details = form.split("=")[-1].split(",")[-1].split(":")
    exact = "--activations=exact" in more or kind == "fp8"
    zeros = "asym" in details
    size = next((word[1:] for word in details if word[0] == "g"), None)
    most = int(size) if size else 128 if kind in ("int8", "fp8") else 32
    rows = int(rows)
    os.makedirs(work, exist_ok=True)
    with open(model, encoding="utf-8") as file:
        spec = json.load(file)
    depth, width = spec["dims"]["K"], spec["dims"]["N"]
    linear = next(iter(spec["layers"][0].values()))
    experts = linear.get("experts", 0)
    gated = linear.get("gated", experts > 0)

    def group_of(width):
        return next(g for g in (128, 64, 32, 16)
                    if width % g == 0 and g <= most)

    group = group_of(depth)
    draw = random.Random(11)
    x = array("f", (draw.gauss(0, 1) for _ in range(rows * depth)))
    # A row and a group of zeros, and a group with one large number.
    if rows > 1:
        x[:depth] = array("f", bytes(4 * depth))
        x[depth:depth + group] = array("f", bytes(4 * group))
        x[2 * depth - 1] = 1000.0
    names = {"layers.0.weight": (width, depth)}
    if gated:
        prefixes = [f"layers.0.experts.{e}." for e in range(experts)] or \
            ["layers.0."]
        names = {prefix + part + ".weight": shape for prefix in prefixes
                 for part, shape in (("gate", (width, depth)),
                                     ("up", (width, depth)),
                                     ("down", (depth, width)))}
    if experts:
        names["layers.0.router.weight"] = (experts, depth)
    matrices = {name: [array("f", (draw.gauss(0, 1) / depth for _ in range(k)))
                       for _ in range(n)] for name, (n, k) in names.items()}
    paths = {name: os.path.join(work, name + ".safetensors")
             for name in ("weights", "in")}
    stored = {name: ("F32", list(names[name]),
                     b"".join(row.tobytes() for row in matrix))
              for name, matrix in matrices.items()}
    tensors.save(paths["weights"], stored)
    tensors.save(paths["in"], {"x": ("F32", [1, rows, depth], x.tobytes())})

    first = None
    for cpu in cpus:
        out = os.path.join(work, "out-" + cpu)
        subprocess.run([attune, "run", model, "--weights", paths["weights"],
                        form, "--cpu=" + cpu, "--inputs", paths["in"],
                        "--outputs", out, *more], check=True)
        raw = tensors.load(out)["last_hidden_state"][2]
        if first is None:
            first = raw
        elif raw != first:
            got, want = array("f", raw), array("f", first)
            worst = max(abs(a - b) for a, b in zip(got, want))
            sys.exit(f"{cpu} differs from {cpus[0]} by {worst:.1e}")

    def packed(name, size=group):
        def reciprocal(most):
            return f32(1 / f32(most / 127))
        return [quantize_floats(row) if kind == "mxfp4" else
                quantize_floats8(row, size) if kind == "fp8" else
                quantize_zeros(row, size, int(kind[-1])) if zeros else
                quantize4(row, size) if kind == "int4" else
                quantize(row, size, reciprocal) for row in matrices[name]]

    got = array("f", first)
    if gated:
        size = group_of(width)
        stacks = [(packed(prefix + "gate.weight") + packed(prefix + "up.weight"),
                   packed(prefix + "down.weight", size)) for prefix in prefixes]
    else:
        both = packed("layers.0.weight")
    worst = largest = 0.0
    for i in range(rows):
        row = x[i * depth:(i + 1) * depth]
        if not gated:
            want = layer(row, both, group, gated, exact)
        else:
            router = matrices.get("layers.0.router.weight")
            chosen = shares(row, router, linear["active"]) if experts else \
                [(0, 1.0)]
            want = [0.0] * depth
            for expert, share in chosen:
                both, down = stacks[expert]
                hidden = array("f", layer(row, both, group, gated, exact))
                one = layer(hidden, down, size, False, exact)
                want = [a + share * b for a, b in zip(want, one)]
        for a, b in zip(got[i * len(want):(i + 1) * len(want)], want):
            worst = max(worst, abs(a - b))
            largest = max(largest, abs(b))
    # Sums of groups are exact; products of scales and sums of a few groups round
    # in f32, the activation of a gate in a few more operations, and no value
    # behind it lies so near the middle between two bytes that this decides. Sums
    # of numbers round with each of them.
    bound = largest * 2.0 ** (-18 if gated or exact else -21)
    print(f"{rows} rows by groups of {group}: worst error {worst:.1e}, "
          f"bound {bound:.1e}, largest {largest:.2f}")
    if worst > bound:
        sys.exit("too large")


if __name__ == "__main__":
    main()
