#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what `attune perplexity` says against the logits of `attune run`.

  perplexity.py ATTUNE MODEL TEXT WINDOW WORK [--OPTION=VALUE...]
      the same cross-entropy from logits of windows, in double precision
  perplexity.py compare BASE.json OTHER.json PERCENT
      fails if OTHER's cross-entropy is more than PERCENT above BASE's
"""
import json
import math
import os
import subprocess
import sys
from array import array

import tensors


def read(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def compare(base, other, percent):
    entropies = []
    for path in (base, other):
        with open(path, encoding="utf-8") as file:
            entropies.append(json.load(file)["cross_entropy"])
    above = 100 * (entropies[1] / entropies[0] - 1)
    print(f"{above:+.2f}% within {percent}%")
    if above > float(percent):
        sys.exit("too far")


def main():
    if sys.argv[1] == "compare":
        return compare(*sys.argv[2:])
    attune, model, text, window, work, *more = sys.argv[1:]
    window = int(window)
    os.makedirs(work, exist_ok=True)
    said = json.loads(read([attune, "perplexity", model, "--file=" + text,
                            f"--window={window}", "--format=json", *more]))
    with open(text, encoding="utf-8") as file:
        cut = read([attune, "tokenize", model, "--text=" + file.read(),
                    "--format=ids"])
    ids = [int(word) for word in cut.decode().replace(",", " ").split()]
    total, done, begin = 0.0, 1, 0
    while done < len(ids):
        part = ids[begin:begin + window]
        paths = [os.path.join(work, name) for name in ("in", "out")]
        tensors.save(paths[0], {"input_ids": ("I64", [1, len(part)],
                                              array("q", part).tobytes())})
        read([attune, "run", model, "--inputs", paths[0], "--outputs",
              paths[1], *more])
        _, (_, _, width), raw = tensors.load(paths[1])["logits"]
        logits = array("f", raw)
        for place in range(done, begin + len(part)):
            row = logits[(place - 1 - begin) * width:][:width]
            most = max(row)
            total += most + math.log(sum(math.exp(x - most) for x in row))
            total -= row[ids[place]]
        done = begin + len(part)
        begin += window // 2
    mean = total / (len(ids) - 1)
    print(f"{len(ids) - 1} tokens: {mean:.6f}, said {said['tokens']} tokens: "
          f"{said['cross_entropy']:.6f}")
    # Six digits are said.
    if (said["tokens"] != len(ids) - 1 or
            abs(said["cross_entropy"] - mean) > 1e-6 or
            abs(said["perplexity"] / math.exp(mean) - 1) > 1e-5):
        sys.exit("not the same")


if __name__ == "__main__":
    main()
