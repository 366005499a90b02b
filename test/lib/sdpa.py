#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs recorded attention cases through the compiler and compares.

  sdpa.py ATTUNE FOLDER WORK [FLAG]...

FOLDER holds cases (or is one). Each becomes a description with one bare
attention and a file of its inputs in WORK, is run by `ATTUNE run FLAG...` and
compared within the tolerance of its case.json. Exit status 0: all passed.
"""
import array
import json
import os
import subprocess
import sys

import tensors

HERE = os.path.dirname(os.path.abspath(__file__))


def describe(case, fixtures):
    """The description of a case, and the inputs it wants."""
    queries, keys = case["H"], case["Hkv"]
    width, value_width = case["head_dim"], case["v_head_dim"]

    def heads(count, length, size):
        return {"dtype": "f32", "shape": ["batch", count, length, size]}
    shapes = {"q": heads(queries, "queries", width),
              "k": heads(keys, "keys", width),
              "v": heads(keys, "keys", value_width)}
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
        # A length per row of the batch is a mask over its keys.
        lengths = array.array("q", fixtures["kv_lens"][2])
        bits = bytes(column < length for length in lengths
                     for column in range(case["kv_len"]))
        fixtures["bool_mask"] = (
            "BOOL", [case["B"], 1, 1, case["kv_len"]], bits)
    if "bool_mask" in fixtures:
        attention["mask"] = "mask"
        inputs["mask"] = fixtures["bool_mask"]
        shapes["mask"] = broadcast(inputs["mask"], "bool")
    return {"attune": 1, "name": case["name"], "inputs": shapes,
            "layers": [{"name": "attention", "attention": attention}],
            "outputs": {"out": "attention", "lse": "attention.lse"}}, inputs


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
    good = result.returncode == 0
    print(("PASS " if good else "FAIL ") + case["name"])
    print(result.stdout + result.stderr)
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
