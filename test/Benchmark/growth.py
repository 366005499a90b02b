#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the time of each stage grows with a model's layers.

  growth.py ATTUNE WORK [--layers=2,4,8,16] [--runs=3]

The layers differ in width, so that each is code of its own (equal ones are one
function). Prints, for each stage, the least seconds of all runs and how much
more each doubling takes, and the same of the lines of loops. Exits with 1 if with
the last doubling, to 8 layers or more, a stage that takes a twentieth of the time
or more grew by over a quarter more than the lines did: a quadratic stage doubles
once more than they do, and least times differ by less than a tenth.
"""
import argparse
import json
import os
import subprocess
import sys

BLOCK = {"placement": "pre", "norm": {"kind": "rms_norm", "eps": 1e-5},
         "attention": {"heads": 4, "kv_heads": 2, "causal": True,
                       "rope": {"theta": 10000}}}


def write_model(path, layers):
    blocks = [{"block": {**BLOCK, "ffn": {"width": 512 + 16 * i, "gated": True,
                                          "activation": "silu"}},
               "name": f"layer{i}"} for i in range(layers)]
    model = {"attune": 1, "name": "growth",
             "layers": [{"embedding": {"vocab": 1000, "width": 256}, "name": "embed"},
                        *blocks, {"linear": {"out": 1000}, "name": "head"}]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(model, file)


def stages(attune, path):
    """Seconds by stage, in their order."""
    result = subprocess.run(
        [attune, "compile", path, "--emit=obj", "-o", path + ".o",
         "--cpu=x86-64-v3", "--cache=off", "--timing", "--message-format=json"],
        capture_output=True, text=True, check=True)
    timing = next(json.loads(line)["timing"] for line in result.stderr.splitlines()
                  if line.startswith('{"timing"'))
    return {stage["stage"]: stage["seconds"] for stage in timing}


def lines_of_loops(attune, path):
    text = path + ".mlir"
    subprocess.run([attune, "compile", path, "--emit=vector", "-o", text,
                    "--cpu=x86-64-v3"], capture_output=True, check=True)
    with open(text, encoding="utf-8") as file:
        return sum(1 for _ in file)


def table_row(name, values, form):
    growth = [b / a for a, b in zip(values, values[1:]) if a > 0]
    print(f"{name:26}" + "".join(format(value, form) for value in values)
          + "   x " + " ".join(f"{ratio:.2f}" for ratio in growth))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attune")
    parser.add_argument("work")
    parser.add_argument("--layers", default="2,4,8,16")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    counts = [int(word) for word in options.layers.split(",")]
    best, lines = [], []
    for count in counts:
        path = os.path.join(options.work, f"{count}.json")
        write_model(path, count)
        least = {}
        for _ in range(options.runs):
            for stage, seconds in stages(options.attune, path).items():
                least[stage] = min(seconds, least.get(stage, seconds))
        best.append(least)
        lines.append(lines_of_loops(options.attune, path))
    print(f"{'layers':26}" + "".join(f"{count:8}" for count in counts))
    for stage in best[0]:
        table_row(stage, [least[stage] for least in best], "8.3f")
    table_row("lines of loops", lines, "8")
    if len(counts) < 2 or counts[-1] < 8:
        return
    total = sum(best[-1].values())
    fast = [stage for stage, seconds in best[-1].items()
            if seconds >= total / 20 and
            seconds / best[-2][stage] > 1.25 * lines[-1] / lines[-2]]
    if fast:
        sys.exit(f"faster than the lines grew: {', '.join(fast)}")
    print("no stage grew faster than the lines")


if __name__ == "__main__":
    main()
