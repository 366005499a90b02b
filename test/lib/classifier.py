#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder that scores labels, beside the bare decoder of the same weights.

  classifier.py ATTUNE FOLDER WORK

FOLDER holds a LLaMA. Its scores are those that float64 makes of the bare
network's state at the last token that is no padding.
"""
import array
import json
import math
import os
import random
import subprocess
import sys

import tensors

LABELS, IDS = 3, [[5, 9, 3, 7, 1], [4, 8, 2, 0, 0]]
MASK = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]


def run(attune, folder, config, weights, inputs):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as file:
        json.dump(config, file)
    tensors.save(os.path.join(folder, "model.safetensors"), weights)
    tensors.save(os.path.join(folder, "in"), inputs)
    subprocess.run([attune, "run", folder, "--inputs",
                    os.path.join(folder, "in"), "--outputs",
                    os.path.join(folder, "out")], check=True)
    return tensors.load(os.path.join(folder, "out"))


def main():
    attune, source, work = sys.argv[1:]
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    weights = tensors.load(os.path.join(source, "model.safetensors"))
    width = config["hidden_size"]
    inputs = {name: ("I64", [2, 5], array.array("q", sum(rows, [])).tobytes())
              for name, rows in (("input_ids", IDS), ("attention_mask", MASK))}
    config["architectures"] = ["LlamaModel"]
    bare = run(attune, os.path.join(work, "bare"), config, weights, inputs)
    states = array.array("f", bare["last_hidden_state"][2])

    rng = random.Random(1)
    score = array.array("f", [rng.uniform(-1, 1)
                              for _ in range(LABELS * width)])
    config["architectures"] = ["LlamaForSequenceClassification"]
    config["id2label"] = {str(i): f"LABEL_{i}" for i in range(LABELS)}
    found = run(attune, os.path.join(work, "scored"), config,
                dict(weights, **{"score.weight": (
                    "F32", [LABELS, width], score.tobytes())}), inputs)
    assert found["logits"][1] == [2, LABELS], found["logits"][1]
    logits = array.array("f", found["logits"][2])
    worst = 0.0
    for b, mask in enumerate(MASK):
        start = (b * 5 + sum(mask) - 1) * width
        for i in range(LABELS):
            wanted = math.fsum(states[start + c] * score[i * width + c]
                               for c in range(width))
            # Sums of `width` products of values near 1, in f32.
            worst = max(worst, abs(logits[b * LABELS + i] - wanted)
                        / max(1.0, abs(wanted)))
    print(f"{'PASS' if worst < 2e-5 else 'FAIL'} {worst:.1e}")


main()
