#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one attention on a GPU and compares it with sums in f64.

  attention_numbers.py ATTUNE WORK [KEY=VALUE]...

Keys are the defaults below. `with=` lists further operands: bias, diagonals,
slopes, sinks, and lengths, which are more than all keys, then half, then none,
with NaN behind them; `mask=` has one row of keys for each batch, or one for
every head and query; `blocks=P,Q` hides some blocks. `cached=1` reads keys and values from a cache
that holds NaN behind them. `bytes=i8` or `f8E4M3FN`: what is read are rows in
bytes with a scale, some of them of zeros, some with a number that stands out.
`products=tf32` has tensor cores round numbers of
f32, and fails if they do not. `tile=query_block:32,stages:3` is what a schedule
says.
"""
import bisect
import math
import os
import random
import struct
import subprocess
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

case = {"batch": 1, "heads": 2, "kv": 1, "queries": 33, "keys": 33,
        "width": 32, "values": 0, "type": "f32", "result": "", "with": "",
        "mask": "", "blocks": "", "causal": "", "window": 0, "softcap": 0.0,
        "cached": 0, "scale": 0.25, "gpu": "sm_80", "spread": 1.0,
        "products": "", "tile": "", "bytes": ""}
attune, work = sys.argv[1:3]
for argument in sys.argv[3:]:
    key, _, value = argument.partition("=")
    case[key] = type(case[key])(value)
B, H, G, M, N, D = (case[key] for key in (
    "batch", "heads", "kv", "queries", "keys", "width"))
E = case["values"] or D
kind, result = case["type"], case["result"] or case["type"]
extra = case["with"].split(",") if case["with"] else []
BEHIND = 5 if case["cached"] else 0
draw = random.Random(17)


def narrow(values, kind):
    """As stored, and what that is."""
    if kind == "f16":
        data = struct.pack(f"<{len(values)}e", *values)
        return data, struct.unpack(f"<{len(values)}e", data)
    if kind == "f32":
        data = array("f", values)
        return data.tobytes(), list(data)
    halves = [(word + 0x7fff + (word >> 16 & 1)) >> 16
              if word & 0x7f800000 != 0x7f800000 else 0x7fc0
              for word in struct.unpack(f"<{len(values)}I",
                                        array("f", values).tobytes())]
    return (struct.pack(f"<{len(values)}H", *halves), struct.unpack(
        f"<{len(values)}f", b"".join(struct.pack("<I", half << 16)
                                     for half in halves)))


def say(byte):
    """What a byte of a row says before it is scaled."""
    if case["bytes"] == "i8":
        return byte - 256 if byte > 127 else byte
    size = (math.ldexp(8 + (byte & 7), (byte >> 3 & 15) - 10)
            if byte & 0x78 else math.ldexp(byte & 7, -9))
    return -size if byte & 128 else size


SAID = [say(byte) for byte in range(256)] if case["bytes"] else []


def in_bytes(values, width):
    """Rows as a cache has them, and what that is. Rows that are not numbers get
    bytes and scales that are none."""
    integers = case["bytes"] == "i8"
    # Of floats in the order of their sizes the nearest is one of two neighbours.
    codes = sorted((SAID[byte], byte) for byte in range(256)
                   if integers or byte & 127 != 127)
    sizes = [size for size, _ in codes]
    data, kept = b"", []
    for at in range(0, len(values), width):
        own = values[at:at + width]
        if math.isnan(own[0]):
            data += bytes([127]) * width + struct.pack("<f", math.nan)
            kept += own
            continue
        kind = at // width % 13
        if kind == 5:
            own = [0.0] * width
        elif kind == 9:
            own[at % width] *= 30
        scale, = struct.unpack("<f", struct.pack(
            "<f", max(map(abs, own)) / (127 if integers else 448)))
        made = []
        for x in own:
            x = x / scale if scale else 0.0
            place = bisect.bisect(sizes, x)
            made.append(min(codes[max(0, place - 1):place + 1],
                            key=lambda code: abs(code[0] - x))[1])
        data += bytes(made) + struct.pack("<f", scale)
        kept += [scale * SAID[byte] for byte in made]
    return data, kept


inputs, arguments, shapes = {}, [], {}


def argument(name, kind, sizes, shape, values):
    """`sizes` are numbers; `shape` what the program calls them."""
    if kind == "i1":
        data, kept = bytes(values), values
    elif kind == case["bytes"]:
        data, kept = in_bytes(values, shape[-1])
        sizes, shape = ([*all[:-1], all[-1] + 4] for all in (sizes, shape))
    elif kind == "i64":
        data, kept = struct.pack(f"<{len(values)}q", *values), values
    else:
        data, kept = narrow(values, kind)
    names = {"i1": "BOOL", "i64": "I64", "f8E4M3FN": "F8_E4M3"}
    inputs[name] = (names.get(kind, kind.upper()), sizes, data)
    text = "x".join("?" if isinstance(size, str) else str(size)
                    for size in shape)
    written = ", ".join(f'"{size}"' if isinstance(size, str) else str(size)
                        for size in shape)
    shapes[name] = f"tensor<{text}x{kind}>"
    arguments.append(
        f'%{name}: {shapes[name]} {{attune.kind = "input", '
        f'attune.name = "{name}", attune.shape = [{written}]}}')
    return kept


def numbers(count, spread=1.0):
    return [draw.uniform(-spread, spread) for _ in range(count)]


def length(b):
    """How many keys of a batch there are."""
    return [N + 1, N // 2, 0][b % 3] if "lengths" in extra else N


def rows(width):
    """Keys or values with what lies behind them."""
    values = []
    for b in range(B):
        there = min(N, length(b))
        for _ in range(G):
            values += numbers(there * width)
            values += [math.nan] * ((N - there + BEHIND) * width)
    return values


q = argument("q", kind, [B, H, M, D], ["batch", H, "queries", D],
             numbers(B * H * M * D, case["spread"]))
whole, stored = N + BEHIND, case["bytes"] or kind
if case["cached"]:
    k = argument("k", stored, [1, B, G, whole, D],
                 [1, "batch", G, "room", D], rows(D))
    v = argument("v", stored, [1, B, G, whole, E],
                 [1, "batch", G, "room", E], rows(E))
else:
    k = argument("k", stored, [B, G, N, D], ["batch", G, "keys", D], rows(D))
    v = argument("v", stored, [B, G, N, E], ["batch", G, "keys", E], rows(E))
words = []
mask = bias = diagonals = slopes = sinks = lengths = blocks = None
if case["mask"]:
    each = case["mask"] == "each"
    sizes = [B, H, M, N] if each else [B, 1, 1, N]
    mask = argument("mask", "i1", sizes, ["batch", H, "queries", "keys"]
                    if each else ["batch", 1, 1, "keys"],
                    [draw.random() < 0.7 for _ in range(math.prod(sizes))])
    if each:  # Nothing for the first query of the first head.
        mask[:N] = [False] * N
        inputs["mask"] = ("BOOL", sizes, bytes(mask))
    words.append(f"mask %mask : {shapes['mask']}")
if "lengths" in extra:
    lengths = argument("lengths", "i64", [B], ["batch"],
                       [length(b) for b in range(B)])
    words.append(f"lengths %lengths : {shapes['lengths']}")
if case["blocks"]:
    P, Q = (int(size) for size in case["blocks"].split(","))
    sizes = [1, 1, -(-M // P), -(-N // Q)]
    blocks = argument("blocks", "i1", sizes, [1, 1, "p", "q"],
                      [draw.random() < 0.6 for _ in range(math.prod(sizes))])
    words.append(f"blocks %blocks of [{P}, {Q}] : {shapes['blocks']}")
if "bias" in extra:
    bias = argument("bias", "f32", [1, H, M, N], [1, H, "queries", "keys"],
                    numbers(H * M * N))
    words.append(f"bias %bias : {shapes['bias']}")
if "diagonals" in extra:
    diagonals = argument("diagonals", "f32", [H, M + N - 1],
                         [H, "diagonals"], numbers(H * (M + N - 1)))
    words.append(f"diagonals %diagonals : {shapes['diagonals']}")
for name in ("slopes", "sinks"):
    if name in extra:
        values = argument(name, "f32", [H], [H], numbers(H, 0.1))
        slopes, sinks = (values, sinks) if name == "slopes" else (slopes,
                                                                  values)
        words.append(f"{name} %{name} : {shapes[name]}")
if case["causal"]:
    words.append(f"causal <{case['causal']}>")
if case["window"]:
    words.append(f"window {case['window']}")
if case["softcap"]:
    words.append(f"softcap {case['softcap']}")

scale = 4 if case["bytes"] else 0
heads = {"q": f"tensor<?x{H}x?x{D}x{kind}>",
         "k": f"tensor<?x{G}x?x{D + scale}x{stored}>",
         "v": f"tensor<?x{G}x?x{E + scale}x{stored}>"}
y, s = f"tensor<?x{H}x?x{E}x{result}>", f"tensor<?x{H}x?xf32>"
body = ""
key, value = "%k", "%v"
if case["cached"]:
    key, value = "%keys", "%values"
    body = f"""
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %behind = arith.constant {BEHIND} : index
    %room = tensor.dim %k, %c3 : {shapes["k"]}
    %n = arith.subi %room, %behind : index
    %keys = attune.cache_read %k[%c0] length %n : {shapes["k"]} -> {heads["k"]}
    %values = attune.cache_read %v[%c0] length %n : {shapes["v"]} -> {heads["v"]}"""


def output(name, type, shape):
    return (f'{type} {{attune.kind = "output", attune.name = "{name}", '
            f'attune.shape = ["batch", {H}, "queries"{shape}]}}')


numbers = ", ".join(f"attune.{word.replace(':', ' = ')}"
                    for word in case["tile"].split(",") if word)
text = f"""module attributes {{attune.name = "model"}} {{
  func.func @forward({", ".join(arguments)}) -> ({output("y", y, f", {E}")}, {output("lse", s, "")}) attributes {{attune.entry}} {{{body}
    %y, %lse = attune.attention %q, {key}, {value} scale {case["scale"]} {" ".join(words)} {{{numbers}}}
      : {heads["q"]}, {heads["k"]}, {heads["v"]} -> {y} lse {s}
    return %y, %lse : {y}, {s}
  }}
}}
"""


def scores(b, h, m):
    """Of one query, -inf where hidden."""
    g = h * G // H
    found = []
    for n in range(N):
        at = ((b * G + g) * whole + n) * D
        score = case["scale"] * math.fsum(
            q[((b * H + h) * M + m) * D + d] * k[at + d] for d in range(D))
        if case["softcap"]:
            score = case["softcap"] * math.tanh(score / case["softcap"])
        if bias:
            score += bias[(h * M + m) * N + n]
        if diagonals:
            score += diagonals[h * (M + N - 1) + n - m + M - 1]
        if slopes:
            score += slopes[h] * (n - (m + N - M))
        place = m if case["causal"] == "top_left" else m + N - M
        last = place + (case["window"] - 1
                        if case["causal"] == "symmetric" else 0)
        hidden = (case["causal"] and n > last) or (
            case["window"] and n <= place - case["window"])
        hidden = hidden or (lengths is not None and n >= lengths[b])
        if mask is not None:
            at = ((b * H + h) * M + m) * N + n if case["mask"] == "each" \
                else b * N + n
            hidden = hidden or not mask[at]
        if blocks is not None:
            hidden = hidden or not blocks[m // P * -(-N // Q) + n // Q]
        found.append(-math.inf if hidden else score)
    return found


def expected(b, h, m):
    found = scores(b, h, m)
    most = max(found + ([sinks[h]] if sinks else []))
    if most == -math.inf:
        return [(0.0, 0.0)] * E, -math.inf
    weights = [math.exp(score - most) for score in found]
    total = math.fsum(weights) + (math.exp(sinks[h] - most) if sinks else 0)
    first = (b * G + h * G // H) * whole
    columns = []
    for e in range(E):
        terms = [weight * v[(first + n) * E + e]
                 for n, weight in enumerate(weights) if weight]
        columns.append((math.fsum(terms) / total,
                        math.fsum(map(abs, terms)) / total))
    return columns, most + math.log(total)


os.makedirs(work, exist_ok=True)
path = {name: os.path.join(work, name)
        for name in ("model.mlir", "in.safetensors", "out.safetensors")}
with open(path["model.mlir"], "w", encoding="utf-8") as file:
    file.write(text)
tensors.save(path["in.safetensors"], inputs)
subprocess.run([attune, "run", path["model.mlir"], "--target=cuda",
                "--gpu=" + case["gpu"], "--inputs", path["in.safetensors"],
                "--outputs", path["out.safetensors"],
                *(["--dtype=" + case["products"]] if case["products"] else [])],
               check=True)
found = tensors.load(path["out.safetensors"])
raw = found["y"][2]
if result == "f32":
    outputs = array("f", raw)
elif result == "f16":
    outputs = struct.unpack(f"<{len(raw) // 2}e", raw)
else:
    outputs = [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0]
               for i in range(0, len(raw), 2)]
sums = array("f", found["lse"][2])
error = error_lse = 0.0
good = len(outputs) == B * H * M * E
# Weights and result each round once to 16 bits; what is 0 or -inf is so exactly.
allowed = {"f32": 4e-6, "f16": 2e-3, "bf16": 1.2e-2}[result]
allowed_lse = 1e-5
if case["bytes"]:
    # Of the sizes of the terms, which differ: weights and the result round.
    allowed = {"f32": 4e-6, "f16": 2 ** -10, "bf16": 2 ** -7}[result] + 1e-6
if case["products"] == "tf32":
    # Two numbers that are off by 2^-11 each make a product that is off by 2^-10.
    # So is a score, in terms of its products' sizes; weights by twice that, as
    # a share of each; and weights and values are rounded again.
    largest = max(math.fsum(abs(q[(row * M + m) * D + d] * k[at + d])
                            for d in range(D))
                  for row in range(B * H) for m in range(M)
                  for at in [((row // H * G + row % H * G // H) * whole + n) * D
                             for n in range(N)])
    allowed_lse = 2 ** -10 * case["scale"] * largest
    allowed = 2 * allowed_lse + 2 ** -10
for row in range(B * H * M):
    wanted, log_sum = expected(row // (H * M), row // M % H, row % M)
    for e, (value, size) in enumerate(wanted):
        here = outputs[row * E + e]
        good = good and not math.isnan(here) and (value != 0 or here == 0)
        error = max(error, abs(here - value) / (size or 1 if case["bytes"]
                                                else 1))
    if log_sum == -math.inf or sums[row] == -math.inf:
        good = good and sums[row] == log_sum
    else:
        error_lse = max(error_lse, abs(sums[row] - log_sum) /
                        max(1, abs(log_sum) / 16))
good = good and error <= allowed and error_lse <= allowed_lse
if case["products"] == "tf32":
    good = good and error > 1e-5
print(f"{'PASS' if good else 'FAIL'} error {error:.1e} of {allowed:.1e}, "
      f"lse {error_lse:.1e}")
sys.exit(not good)
