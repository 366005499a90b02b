#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs linear layers in int8 or int4 on CPUs with and without instructions for it
and compares them: with each other bit by bit, which takes CPUs that all have or all
lack fused multiply-adds, and with the definition, whose sums of a group are whole
numbers here, too.

  quantized_rows.py ATTUNE MODEL.json WORK ROWS CPU... [--OPTION=VALUE...]

MODEL has one linear layer from x [1, seq, K], or a gated one and one behind it,
or a mixture of such experts without biases, whose router is taken to have the full
width; options go to `attune run`. One may be --quantize=int4:g64, int4:g32:asym,
fp8, mxfp4 and the like, or patterns and then that; by default it is int8. With
--activations=exact, of fp8 and on GPUs rows are numbers as they are. With --dtype=bf16 or
f16 rows, weights and biases are such numbers, rows meet the weights as these, and
so does a hidden layer, if that may be: not in f16, whose range it might leave.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
from array import array
from operator import mul

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


def cut(number, kind):
    """The next number of 16 bits towards zero; of f32 it is there."""
    if kind == "f32":
        return number
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    return struct.unpack("<f", struct.pack(
        "<I", bits & (0xffff0000 if kind == "bf16" else 0xffffe000)))[0]


def nearest_bf16(number):
    """And the largest error if the number itself has an error of f32 sums."""
    low = cut(number, "bf16")
    step = math.ldexp(1.0, math.frexp(number)[1] - 8) if number else 0.0
    high = low + math.copysign(step, number)
    near = abs(abs(number - low) - step / 2) < abs(number) * 2.0 ** -16
    return (low if abs(number - low) < abs(high - number) else high,
            step if near else 0.0)


def layer(x, weights, group, gated, exact=False, bias=None):
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
    if bias:
        out = [a + c for a, c in zip(out, bias)]
    if gated:
        half = len(out) // 2
        out = [g / (1 + math.exp(-g)) * u for g, u in zip(out, out[half:])]
    return out


def shares(x, router, active):
    """The experts of a row, best first, and their weights: softmax over all."""
    logits = [sum(map(mul, x, row)) for row in router]
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
    exact = "--activations=exact" in more or "--target=cuda" in more or kind == "fp8"
    zeros = "asym" in details
    dtype = next((word[8:] for word in more if word.startswith("--dtype=")), "f32")
    rounds = dtype == "bf16" and "--activations=exact" not in more
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
    x = array("f", (cut(v, dtype) for v in x))
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
    matrices = {name: [array("f", (cut(draw.gauss(0, 1) / depth, dtype)
                                   for _ in range(k)))
                       for _ in range(n)] for name, (n, k) in names.items()}
    biases = {}
    if linear.get("bias"):
        biases = {name: [cut(draw.gauss(0, 1), dtype) for _ in range(n)]
                  for name, (n, _) in names.items()}
    else:
        rounds = rounds and experts > 0  # nothing else tells the type of the rest
    paths = {name: os.path.join(work, name + ".safetensors")
             for name in ("weights", "in")}
    stored = {name: ("F32", list(names[name]),
                     b"".join(row.tobytes() for row in matrix))
              for name, matrix in matrices.items()}
    stored |= {name.replace("weight", "bias"):
               ("F32", [len(bias)], array("f", bias).tobytes())
               for name, bias in biases.items()}
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
    worst = largest = tied = 0.0
    for i in range(0, rows, max(1, rows // 40)):
        row = x[i * depth:(i + 1) * depth]
        if not gated:
            want = layer(row, both, group, gated, exact,
                         biases.get("layers.0.weight"))
        else:
            router = matrices.get("layers.0.router.weight")
            chosen = shares(row, router, linear["active"]) if experts else \
                [(0, 1.0)]
            want = [0.0] * depth
            for expert, share in chosen:
                both, down = stacks[expert]
                up = [c for part in ("gate", "up")
                      for c in biases.get(f"layers.0.{part}.weight", [])]
                hidden = array("f", layer(row, both, group, gated, exact, up))
                if rounds:
                    near = [nearest_bf16(v) for v in hidden]
                    hidden = [number for number, _ in near]
                    ties = [error for _, error in near]
                    tied = max([tied] + [share * sum(
                        ties[k] * abs(values[k]) * scales[k // size]
                        for k in range(width)) for scales, values in down])
                one = layer(hidden, down, size, False, exact,
                            biases.get("layers.0.down.weight"))
                want = [a + share * b for a, b in zip(want, one)]
        for a, b in zip(got[i * len(want):(i + 1) * len(want)], want):
            worst = max(worst, abs(a - b))
            largest = max(largest, abs(b))
    # Sums of groups are exact; products of scales and sums of a few groups round
    # in f32, the activation of a gate in a few more operations, and no value
    # behind it lies so near the middle between two bytes that this decides. Sums
    # of numbers round with each of them. A number of the hidden layer that lies
    # near the middle between two of bf16 may become either.
    bound = largest * 2.0 ** (-18 if gated or exact else -21) + tied
    print(f"{rows} rows by groups of {group}: worst error {worst:.1e}, "
          f"bound {bound:.1e}, largest {largest:.2f}")
    if worst > bound:
        sys.exit("too large")


if __name__ == "__main__":
    main()
