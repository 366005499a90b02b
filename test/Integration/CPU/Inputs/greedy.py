#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `PROGRAM generate` says with its caches against argmax over whole runs.

  greedy.py PROGRAM WORK COUNT BANNED FIRST PROMPT...    each a list of ids

BANNED is never said, FIRST not first ("-" for none).
"""
import array
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "..", "lib"))
import tensors  # noqa: E402


def ids_of(text):
    return [] if text == "-" else [int(x) for x in text.split(",")]


PROGRAM, WORK, COUNT = sys.argv[1:4]
BANNED, FIRST = map(ids_of, sys.argv[4:6])


def next_id(text, banned):
    inputs, outputs = (os.path.join(WORK, name) for name in ("in", "out"))
    tensors.save(inputs, {"input_ids": (
        "I64", [1, len(text)], struct.pack(f"<{len(text)}q", *text))})
    subprocess.run([PROGRAM, "run", "--inputs", inputs, "--outputs", outputs],
                   check=True)
    _, shape, raw = tensors.load(outputs)["logits"]
    row = array.array("f", raw)[-shape[-1]:]
    return max((i for i in range(len(row)) if i not in banned),
               key=lambda i: row[i])


for prompt in sys.argv[6:]:
    said = subprocess.run(
        [PROGRAM, "generate", "--prompt-ids", prompt, "--max-new-tokens", COUNT,
         "--ignore-eos", "--format=ids"], check=True, text=True,
        stdout=subprocess.PIPE).stdout.strip()
    expected = []
    for i in range(int(COUNT)):
        expected.append(next_id(ids_of(prompt) + expected,
                                BANNED + (FIRST if i == 0 else [])))
    if ids_of(said) != expected:
        print(f"FAIL {prompt}: {said} instead of {expected}")
    else:
        print(f"PASS {prompt}: {len(set(expected))} different")
