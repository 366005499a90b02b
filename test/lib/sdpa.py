#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs recorded attention cases through the compiler and compares.

  sdpa.py ATTUNE FOLDER WORK [FLAG]...

FOLDER holds cases (or is one). Each becomes a description with one bare
attention and a file of its inputs in WORK, is run by `ATTUNE run FLAG...` and
compared within the tolerance of its case.json. Attention weights are asked for as
well, those of all heads and of the last: every row must sum to one, or to zero if
it sees nothing, and some rows are made anew in f64. Exit status 0: all passed.
"""
import array
import json
import math
import os
import struct
import subprocess
import sys

import tensors

HERE = os.path.dirname(os.path.abspath(__file__))


def describe(case, fixtures):
    """The description of a case, and the inputs it wants."""
    queries, keys = case["H"], case["Hkv"]
    width, value_width = case["head_dim"], case["v_head_dim"]

    def heads(name, count, length, size):
        return {"dtype": fixtures[name][0].lower(),
                "shape": ["batch", count, length, size]}
    shapes = {"q": heads("q", queries, "queries", width),
              "k": heads("k", keys, "keys", width),
              "v": heads("v", keys, "keys", value_width)}
    inputs = {name: fixtures[name] for name in "qkv"}
    attention = {"heads": queries, "kv_heads": keys, "head_dim": width,
                 "value_dim": value_width, "scale": case["scale"],
                 "causal": case["align"] if case["causal"] else False,
                 "query": "q", "key": "k", "value": "v", "lse": True}
    if case["window_left"]:
        attention["window"] = case["window_left"]
    if case["softcap"]:
        attention["softcap"] = case["softcap"]
    if case["alibi"]:
        attention["slopes"] = "slopes"
        shapes["slopes"] = {"dtype": "f32", "shape": [queries]}
        inputs["slopes"] = fixtures["alibi_slopes"]

    def broadcast(tensor, dtype):
        sizes = ["batch", "masked_heads", "queries", "keys"]
        return {"dtype": dtype, "shape": [1 if size == 1 else symbol
                for size, symbol in zip(tensor[1], sizes)]}
    if "additive_mask" in fixtures:
        attention["bias_input"] = "bias"
        inputs["bias"] = fixtures["additive_mask"]
        shapes["bias"] = broadcast(inputs["bias"], "f32")
    if case["kv_lens"]:
        attention["lengths"] = "lengths"
        inputs["lengths"] = fixtures["kv_lens"]
        shapes["lengths"] = {"dtype": "i64", "shape": ["batch"]}
    if "bool_mask" in fixtures:
        attention["mask"] = "mask"
        inputs["mask"] = fixtures["bool_mask"]
        shapes["mask"] = broadcast(inputs["mask"], "bool")
    return {"attune": 1, "name": case["name"], "inputs": shapes,
            "layers": [{"name": "attention", "attention": attention}],
            "outputs": {"out": "attention", "lse": "attention.lse",
                        "maps": "attention.attention",
                        "last": f"attention.attention:heads={queries - 1}"}
            }, inputs


def numbers(tensor):
    kind, _, raw = tensor
    if kind == "BF16":  # the upper half of a float
        return array.array("f", b"".join(
            b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2)))
    if kind == "F16":
        return struct.unpack(f"<{len(raw) // 2}e", raw)
    return array.array({"F32": "f", "F64": "d", "BOOL": "B", "I64": "q"}[kind], raw)


def row_of_weights(case, inputs, batch, head, query):
    """One row of weights in f64, as the case describes it."""
    width, keys = case["head_dim"], case["kv_len"]
    group = case["H"] // case["Hkv"]
    shift = keys - case["q_len"]
    q = values_of("q", inputs)[((batch * case["H"] + head) * case["q_len"] + query)
                               * width:][:width]
    first = (batch * case["Hkv"] + head // group) * keys
    k = values_of("k", inputs)

    def picked(name, key):
        _, shape, _ = inputs[name]
        at = [min(i, size - 1) for i, size in zip((batch, head, query, key), shape)]
        index = 0
        for i, size in zip(at, shape):
            index = index * size + i
        return values_of(name, inputs)[index]
    at = query if case["align"] == "top_left" else query + shift
    scores = []
    for n in range(keys):
        score = case["scale"] * math.fsum(
            x * y for x, y in zip(q, k[(first + n) * width:][:width]))
        if case["softcap"]:
            score = case["softcap"] * math.tanh(score / case["softcap"])
        if "bias" in inputs:
            score += picked("bias", n)
        if "slopes" in inputs:
            score += values_of("slopes", inputs)[head] * (n - query - shift)
        hidden = case["causal"] and n > at
        hidden |= bool(case["window_left"]) and n <= at - case["window_left"]
        hidden |= "mask" in inputs and not picked("mask", n)
        hidden |= "lengths" in inputs and n >= values_of("lengths",
                                                         inputs)[batch]
        scores.append(-math.inf if hidden else score)
    top = max(scores)
    if top == -math.inf:
        return [0.0] * keys
    powers = [math.exp(s - top) for s in scores]
    total = math.fsum(powers)
    return [p / total for p in powers]


def values_of(name, inputs, known={}):
    """The numbers of an input; kept, since many rows read them."""
    key = (name, id(inputs))
    if key not in known:
        known[key] = (inputs, numbers(inputs[name]))
    return known[key][1]


def check_weights(case, inputs, path):
    """What is wrong with the weights, or nothing."""
    made = tensors.load(path)
    heads, queries, keys = case["H"], case["q_len"], case["kv_len"]
    maps, last = numbers(made["maps"]), numbers(made["last"])
    each = queries * keys
    largest = 0.0
    for b in range(case["B"]):
        # The same kernel makes both: the same bits.
        if maps[((b + 1) * heads - 1) * each:][:each] != last[b * each:][:each]:
            return "the last head asked for alone differs"
    count = case["B"] * heads * queries
    for row in range(count):
        total = math.fsum(maps[row * keys:(row + 1) * keys])
        if not (abs(total - 1) < 1e-5 * max(1, case["max_abs_logit"]) or
                total == 0):
            return f"row {row} sums to {total}"
    for row in sorted({0, count - 1, count // 2, *range(7, count, count // 5 + 1)}):
        want = row_of_weights(case, inputs, row // queries // heads,
                              row // queries % heads, row % queries)
        got = maps[row * keys:(row + 1) * keys]
        largest = max(largest, max(abs(a - b) for a, b in zip(got, want)))
    # A score of s in f32 is off by s * 2^-24 at the least.
    if not largest <= 1e-6 + 4e-7 * case["max_abs_logit"]:
        return f"weights are off by {largest}"
    return ""


def run(attune, folder, work, flags):
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        case = json.load(file)
    model, inputs = describe(
        case, tensors.load(os.path.join(folder, "fixtures.safetensors")))
    path = os.path.join(work, case["name"])
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(model, file, indent=1)
    tensors.save(path + ".in.safetensors", inputs)
    output = path + ".out.safetensors"
    result = subprocess.run(
        [attune, "run", path + ".json", "--inputs", path + ".in.safetensors",
         "--outputs", output] + flags, capture_output=True, text=True)
    if result.returncode == 0:
        result = subprocess.run(
            [sys.executable, os.path.join(HERE, "compare_safetensors.py"),
             folder, output, "--require=out", "--require=lse"],
            capture_output=True, text=True)
    wrong = ""
    if result.returncode == 0:
        wrong = check_weights(case, inputs, output)
    good = result.returncode == 0 and not wrong
    print(("PASS " if good else "FAIL ") + case["name"])
    print(result.stdout + result.stderr + wrong)
    return good


def main():
    attune, folder, work = sys.argv[1:4]
    os.makedirs(work, exist_ok=True)
    cases = [folder] if os.path.exists(os.path.join(folder, "case.json")) else [
        os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    results = [run(attune, case, work, sys.argv[4:]) for case in cases]
    print(f"{sum(results)} of {len(results)} cases passed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
