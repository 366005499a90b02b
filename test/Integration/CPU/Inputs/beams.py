#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Beam search by `PROGRAM generate --beams` against one over `PROGRAM run`.

  beams.py WORK PROGRAM [FOLDER PROGRAM FOLDER...]

A program that is followed by its folder searches with that folder's settings
of beams, too; all programs are one model. The reference keeps no cache: it
runs the whole texts again for every token.
"""
import array
import json
import math
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "..", "lib"))
import tensors  # noqa: E402

WORK, FIRST = sys.argv[1:3]
# Pairs of a program and its folder.
WITH_SETTINGS = list(zip(sys.argv[2::2], sys.argv[3::2]))
FAR = -1e9
PROMPT, START, LENGTH = [9, 8, 7, 6, 5, 0], 255, 6


def ids(rows):
    flat = [value for row in rows for value in row]
    return ("I64", [len(rows), len(rows[0])], struct.pack(f"<{len(flat)}q", *flat))


def logits_of(texts):
    """Log-probabilities of what follows each text."""
    inputs, outputs = (os.path.join(WORK, name) for name in ("in", "out"))
    tensors.save(inputs, {"input_ids": ids([PROMPT] * len(texts)),
                          "decoder_input_ids": ids(texts)})
    subprocess.run([FIRST, "run", "--inputs", inputs, "--outputs", outputs],
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


def search(beams, ends, penalty, stopping):
    """Running and ended texts, as many of each as beams, as transformers 4.57
    keeps them; a text that is missing has the score FAR."""
    running = [(0.0, [START])] + [(FAR, [START])] * (beams - 1)
    ended = [(FAR, [START], False)] * beams
    for length in range(1, LENGTH + 1):
        following = logits_of([text for _, text in running])
        longer = [(score + more, text + [token])
                  for (score, text), row in zip(running, following)
                  for token, more in enumerate(row)]
        longer.sort(key=lambda pair: -pair[0])
        longer = longer[:max(2, 1 + len(ends)) * beams]
        ends_here = [text[-1] in ends or length == LENGTH for _, text in longer]
        ended += [(score / length ** penalty, text, True)
                  for (score, text), ends_now in zip(longer[:beams], ends_here)
                  if ends_now]
        ended = sorted(ended, key=lambda each: -each[0])[:beams]
        running = [pair for pair, ends_now in zip(longer, ends_here)
                   if not ends_now][:beams]
        if not all(is_text for _, _, is_text in ended):
            continue
        hoped = LENGTH if stopping == "never" and penalty > 0 else length
        if not running or stopping is True or \
                ended[-1][0] >= running[0][0] / hoped ** penalty:
            break
    return ended[0][1][1:]


def generate(program, *options):
    result = subprocess.run(
        [program, "generate", f"--max-new-tokens={LENGTH}", "--format=json",
         "--prompt-ids=" + ",".join(map(str, PROMPT)), *options],
        check=True, capture_output=True, text=True)
    return json.loads(result.stdout)["ids"]


def main():
    cases = [(FIRST, 2, [], 1, False, ["--ignore-eos"]),
             (FIRST, 4, [], 1, False, ["--ignore-eos"])]
    for program, folder in WITH_SETTINGS:
        with open(os.path.join(folder, "generation_config.json")) as file:
            settings = json.load(file)
        cases.append((program, 4, settings["eos_token_id"],
                      settings["length_penalty"], settings["early_stopping"],
                      []))
    good = True
    for program, beams, ends, penalty, stopping, options in cases:
        found = generate(program, f"--beams={beams}", *options)
        expected = search(beams, ends, penalty, stopping)
        # The settings matter: the defaults give another text.
        plain = search(beams, ends, 1, False) if ends else None
        print(beams, "beams:", found, "by default", plain)
        if found != expected or found == plain:
            print("expected", expected)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
