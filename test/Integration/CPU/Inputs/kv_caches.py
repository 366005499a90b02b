"""Attention over a cache in bytes against double precision.

kv_caches.py TEST_LIB OUT ATTUNE CODE HEADS KV_HEADS WIDTH VALUE_WIDTH PAST NEW
    [--OPTION=VALUE...]

makes a module that appends NEW rows to PAST ones and attends to all, and inputs
for it, has it run and checks what came out. CODE is I8 or F8_E4M3.

What a row was stored as is held against the row: its scale is the largest
number over 127 (448), and each number is within half a step of what its byte
says. The result is held against double precision over what those bytes say, so
that the bound there is that of sums in f32: a product of `width` terms is off
by width * 2^-24 of the sum of their sizes, and exp turns a score's error into a
relative one of the weights; sums of weights and values add as much again.
"""
import math
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
import tensors

code = sys.argv[4]
heads, kv_heads, width, value_width, past, new = map(int, sys.argv[5:11])
CAPACITY, LAYERS, BATCH, SCALE = past + new + 5, 2, 2, 0.125
MOST = {"I8": 127, "F8_E4M3": 448}[code]


MODULE = """
func.func @forward(
    %q: tensor<?xHxTxWxf32> {attune.kind = "input", attune.name = "q", attune.shape = ["batch", H, T, W]},
    %k: tensor<?xGxTxWxf32> {attune.kind = "input", attune.name = "k", attune.shape = ["batch", G, T, W]},
    %v: tensor<?xGxTxVxf32> {attune.kind = "input", attune.name = "v", attune.shape = ["batch", G, T, V]},
    %keys: KEYS {attune.kind = "input", attune.name = "keys", attune.shape = [2, "batch", G, "capacity", K]},
    %values: VALUES {attune.kind = "input", attune.name = "values", attune.shape = [2, "batch", G, "capacity", L]},
    %tokens: tensor<?xi64> {attune.kind = "input", attune.name = "tokens", attune.shape = ["past"]})
    -> (tensor<?xHxTxVxf32> {attune.kind = "output", attune.name = "y", attune.shape = ["batch", H, T, V]},
        KEYS {attune.kind = "output", attune.name = "keys_out", attune.shape = [2, "batch", G, "capacity", K]},
        VALUES {attune.kind = "output", attune.name = "values_out", attune.shape = [2, "batch", G, "capacity", L]})
    attributes {attune.entry} {
  %zero = arith.constant 0 : index
  %layer = arith.constant 1 : index
  %new = arith.constant T : index
  %past = tensor.dim %tokens, %zero : tensor<?xi64>
  %length = arith.addi %past, %new : index
  %k1 = attune.cache_append %k into %keys[%layer, %past] : tensor<?xGxTxWxf32>, KEYS
  %v1 = attune.cache_append %v into %values[%layer, %past] : tensor<?xGxTxVxf32>, VALUES
  %kr = attune.cache_read %k1[%layer] length %length : KEYS -> tensor<?xGx?xKxTYPE>
  %vr = attune.cache_read %v1[%layer] length %length : VALUES -> tensor<?xGx?xLxTYPE>
  %e = attune.similarity %q, %kr scale 0.125 : tensor<?xHxTxWxf32>, tensor<?xGx?xKxTYPE> -> tensor<?xHxTx?xf32>
  %s = attune.mask_scores %e causal <bottom_right> : tensor<?xHxTx?xf32>
  %p = attune.softmax %s : tensor<?xHxTx?xf32>
  %y = attune.weighted_sum %p, %vr : tensor<?xHxTx?xf32>, tensor<?xGx?xLxTYPE> -> tensor<?xHxTxVxf32>
  return %y, %k1, %v1 : tensor<?xHxTxVxf32>, KEYS, VALUES
}
"""


def path(name):
    return os.path.join(sys.argv[2], name + ".safetensors")


def module():
    text = MODULE.replace("KEYS", "tensor<2x?xGx?xKxTYPE>")
    text = text.replace("VALUES", "tensor<2x?xGx?xLxTYPE>")
    text = text.replace("TYPE", {"I8": "i8", "F8_E4M3": "f8E4M3FN"}[code])
    for letter, size in zip("HGWVTKL", (heads, kv_heads, width, value_width,
                                        new, width + 4, value_width + 4)):
        text = re.sub(rf"\b{letter}\b|(?<=x){letter}(?=x)", str(size), text)
    return text


def decode(byte):
    """What a byte says before it is scaled."""
    if code == "I8":
        return byte - 256 if byte > 127 else byte
    sign, exponent, mantissa = byte >> 7, byte >> 3 & 15, byte & 7
    size = (math.ldexp(8 + mantissa, exponent - 10) if exponent
            else math.ldexp(mantissa, -9))
    return -size if sign else size


def rows_of(raw, size):
    return [raw[i:i + size] for i in range(0, len(raw), size)]


def floats(tensor, size):
    return [struct.unpack(f"<{size}f", row)
            for row in rows_of(tensor[2], 4 * size)]


def make():
    random.seed(3)

    def numbers(shape):
        # Sizes of rows differ, some are zeros, and one number may stand out.
        rows = []
        for row in range(math.prod(shape[:-1])):
            size = 0 if row % 11 == 7 else 10 ** random.uniform(-2, 0.3)
            own = [size * random.gauss(0, 1) for _ in range(shape[-1])]
            if row % 5 == 2:
                own[row % shape[-1]] *= 8
            rows += own
        return "F32", shape, struct.pack(f"<{len(rows)}f", *rows)

    def cache(size):
        shape = [LAYERS, BATCH, kv_heads, CAPACITY, size + 4]
        raw = b""
        for _ in range(math.prod(shape[:-1])):
            own = bytes(byte for byte in random.randbytes(4 * size)
                        if byte & 127 != 127)[:size]
            raw += own + struct.pack("<f", random.uniform(0.1, 2) / MOST)
        return code, shape, raw

    tensors.save(path("in"), {
        "q": numbers([BATCH, heads, new, width]),
        "k": numbers([BATCH, kv_heads, new, width]),
        "v": numbers([BATCH, kv_heads, new, value_width]),
        "keys": cache(width), "values": cache(value_width),
        "tokens": ("I64", [past], bytes(8 * past))})


def stored(before, after, rows, size):
    """The numbers [batch, kv heads, positions] that layer 1 has now."""
    was, now = (rows_of(tensor[2], size + 4) for tensor in (before, after))
    fresh = iter(floats(rows, size))
    plane = BATCH * kv_heads * CAPACITY
    assert was[:plane] == now[:plane], "another layer changed"
    numbers = []
    for head in range(BATCH * kv_heads):
        own = []
        for place in range(past + new):
            at = plane + head * CAPACITY + place
            row = now[at]
            scale, = struct.unpack("<f", row[size:])
            own.append([scale * decode(byte) for byte in row[:size]])
            if place < past:
                assert row == was[at], f"position {place} changed"
                continue
            given = next(fresh)
            most = max(map(abs, given))
            assert abs(scale - most / MOST) <= 2 ** -23 * scale, (scale, most)
            for x, made in zip(given, own[-1]):
                # Half a step, and what scaling in f32 may add.
                step = scale if code == "I8" else max(
                    abs(x) / 8, scale * 2 ** -9)
                assert abs(x - made) <= step * (0.5 + 2 ** -14), (x, made, step)
        assert now[plane + head * CAPACITY + past + new:
                   plane + (head + 1) * CAPACITY] == \
            was[plane + head * CAPACITY + past + new:
                plane + (head + 1) * CAPACITY], "what is behind changed"
        numbers.append(own)
    return numbers


def check():
    given, made = tensors.load(path("in")), tensors.load(path("out"))
    keys = stored(given["keys"], made["keys_out"], given["k"], width)
    values = stored(given["values"], made["values_out"], given["v"],
                    value_width)
    queries, results = floats(given["q"], width), floats(made["y"], value_width)
    unit, worst = 2 ** -24, 0
    for row, (query, result) in enumerate(zip(queries, results)):
        head, token = divmod(row, new)
        group = head // heads * kv_heads + head % heads * kv_heads // heads
        seen = past + token + 1
        scores, sizes = [], []
        for key in keys[group][:seen]:
            products = [a * b for a, b in zip(query, key)]
            scores.append(SCALE * sum(products))
            sizes.append(SCALE * sum(map(abs, products)))
        largest = max(scores)
        weights = [math.exp(score - largest) for score in scores]
        total = sum(weights)
        # Of the weights: a score's error, and that of exp itself.
        off = max((width + 8) * unit * size for size in sizes) + 16 * unit
        for column, y in enumerate(result):
            terms = [weight / total * value[column]
                     for weight, value in zip(weights, values[group])]
            allowed = (2 * off + (seen + 8) * unit) * sum(map(abs, terms))
            error = abs(sum(terms) - y)
            assert error <= allowed + 1e-30, (row, column, error, allowed)
            worst = max(worst, error / allowed if allowed else 0)
    print(f"as in double precision: {worst:.2f} of what is allowed")


make()
with open(os.path.join(sys.argv[2], "model.mlir"), "w", encoding="utf-8") as file:
    file.write(module())
subprocess.run([sys.argv[3], "run", file.name, "--inputs", path("in"),
                "--outputs", path("out"), *sys.argv[11:]], check=True)
check()
