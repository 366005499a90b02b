#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Beam search by `PROGRAM generate --beams` against one over `PROGRAM run`.

  beams.py PROGRAM WORK

The reference keeps no cache: it runs the whole texts again for every token.
"""
import array
import math
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "..", "lib"))
import tensors  # noqa: E402

PROGRAM, WORK = sys.argv[1:]
PROMPT, START, LENGTH = [9, 8, 7, 6, 5, 0], 255, 6


def ids(rows):
    flat = [value for row in rows for value in row]
    return ("I64", [len(rows), len(rows[0])], struct.pack(f"<{len(flat)}q", *flat))


def logits_of(texts):
    """Log-probabilities of what follows each text."""
    inputs, outputs = (os.path.join(WORK, name) for name in ("in", "out"))
    tensors.save(inputs, {"input_ids": ids([PROMPT] * len(texts)),
                          "decoder_input_ids": ids(texts)})
    subprocess.run([PROGRAM, "run", "--inputs", inputs, "--outputs", outputs],
                   check=True)
    _, (batch, length, width), raw = tensors.load(outputs)["logits"]
    values, result = array.array("f", raw), []
    for row in range(batch):
        begin = (row * length + length - 1) * width
        logits = values[begin:begin + width]
        largest = max(logits)
        total = largest + math.log(sum(math.exp(x - largest) for x in logits))
        result.append([x - total for x in logits])
    return result


def search(beams):
    open_texts = [(0.0, [START])]
    for _ in range(LENGTH):
        following = logits_of([text for _, text in open_texts])
        longer = [(score + more, text + [token])
                  for (score, text), row in zip(open_texts, following)
                  for token, more in enumerate(row)]
        longer.sort(key=lambda pair: -pair[0])
        open_texts = longer[:beams]
    return open_texts[0][1][1:]


def main():
    good = True
    for beams in (2, 4):
        result = subprocess.run(
            [PROGRAM, "generate", f"--beams={beams}", "--ignore-eos",
             f"--max-new-tokens={LENGTH}", "--format=ids",
             "--prompt-ids=" + ",".join(map(str, PROMPT))],
            check=True, capture_output=True, text=True)
        found = [int(word) for word in result.stdout.split(",")]
        expected = search(beams)
        print(beams, "beams:", found)
        if found != expected:
            print("expected", expected)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
