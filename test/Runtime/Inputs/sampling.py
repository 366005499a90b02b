#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`generate` against a second implementation of its rule, in double precision.

  sampling.py PROGRAM WEIGHTS     PROGRAM is the model of fake-model.c

Draws settings at random, generates with them, and repeats every choice from the
model's logits: logits processors and warpers in the order of transformers, then
the first id whose cumulative probability exceeds the random number.
"""
import math
import random
import struct
import subprocess
import sys

PROGRAM = sys.argv[1]
WEIGHTS = [struct.unpack("<f", struct.pack("<f", float(w)))[0]
           for w in sys.argv[2].split(",")]
END, LENGTH, VOCABULARY = 15, 12, 16
MASK = (1 << 64) - 1


def logits_after(history):
    """What fake_decode computes, in f32."""
    place = sum(history) % VOCABULARY
    return [struct.unpack("<f", struct.pack("<f", w + (v == place)))[0]
            for v, w in enumerate(WEIGHTS)]


class Random:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return ((z ^ z >> 31) >> 11) / 2.0 ** 53


def process(scores, history, prompt, settings):
    for token, bias in settings.get("logit-bias", []):
        scores[token] += bias
    penalty = settings.get("repetition-penalty", 1)
    for token in set(history):
        scores[token] = (scores[token] * penalty if scores[token] < 0
                         else scores[token] / penalty)
    new = history[prompt:]
    for token in set(new):
        scores[token] -= settings.get("frequency-penalty", 0) * new.count(token)
        scores[token] -= settings.get("presence-penalty", 0)
    size = settings.get("no-repeat-ngram", 0)
    if size:
        start = tuple(history[len(history) - size + 1:])
        for gram in zip(*(history[i:] for i in range(size))):
            if gram[:-1] == start:
                scores[gram[-1]] = -math.inf
    if len(new) < settings.get("min-new-tokens", 0):
        scores[END] = -math.inf
    return scores


def softmax(pairs):
    largest = max(score for _, score in pairs)
    weights = [(token, math.exp(score - largest)) for token, score in pairs]
    total = sum(weight for _, weight in weights)
    return [(token, weight / total) for token, weight in weights]


def warp(scores, settings):
    """The distribution, by id."""
    heat = settings.get("temperature", 1)
    pairs = [(token, score / heat) for token, score in enumerate(scores)
             if score != -math.inf]
    pairs.sort(key=lambda pair: (-pair[1], pair[0]))
    if settings.get("top-k", 0):
        pairs = pairs[:settings["top-k"]]
    if "top-p" in settings:
        kept, sum_before = [], 0.0
        for (token, probability), pair in zip(softmax(pairs), pairs):
            if not kept or sum_before < settings["top-p"]:
                kept.append(pair)
            sum_before += probability
        pairs = kept
    if "min-p" in settings:
        odds = softmax(pairs)
        least = settings["min-p"] * max(odds[i][1] for i in range(len(odds)))
        pairs = [pair for pair, (_, p) in zip(pairs, odds) if p >= least]
    return sorted(softmax(pairs))


def expected(prompt, settings):
    history, stream = list(prompt), Random(settings.get("seed", 0))
    samples = any(name in settings
                  for name in ("temperature", "top-k", "top-p", "min-p"))
    for _ in range(LENGTH):
        scores = process(logits_after(history), history, len(prompt), settings)
        if samples:
            threshold, cumulative = stream.uniform(), 0.0
            for token, probability in warp(scores, settings):
                cumulative += probability
                if cumulative > threshold:
                    break
        else:
            token = scores.index(max(scores))
        history.append(token)
        if token == END:
            break
    return history[len(prompt):]


def draw_settings(rng):
    settings = {}

    def maybe(name, draw):
        if rng.random() < 0.4:
            settings[name] = draw()
    maybe("temperature", lambda: round(rng.uniform(0.2, 3), 3))
    maybe("top-k", lambda: rng.randint(0, 18))
    maybe("top-p", lambda: round(rng.uniform(0, 0.99), 3))
    maybe("min-p", lambda: round(rng.uniform(0, 0.9), 3))
    maybe("repetition-penalty", lambda: round(rng.uniform(0.5, 3), 3))
    maybe("frequency-penalty", lambda: round(rng.uniform(-1, 2), 3))
    maybe("presence-penalty", lambda: round(rng.uniform(-1, 2), 3))
    maybe("no-repeat-ngram", lambda: rng.randint(2, 3))
    maybe("min-new-tokens", lambda: rng.randint(0, 8))
    maybe("seed", lambda: rng.randint(0, 1 << 62))
    maybe("logit-bias", lambda: [(rng.randrange(VOCABULARY),
                                  round(rng.uniform(-5, 5), 3))
                                 for _ in range(rng.randint(1, 3))])
    return settings


def main():
    rng, wrong = random.Random(5), 0
    cases = 250
    for _ in range(cases):
        settings = draw_settings(rng)
        prompt = [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 6))]
        command = [PROGRAM, "generate", "--threads=1", "--format=ids",
                   f"--max-new-tokens={LENGTH}",
                   "--prompt-ids=" + ",".join(map(str, prompt))]
        for name, value in settings.items():
            if name == "logit-bias":
                command += [f"--{name}={token}:{bias}" for token, bias in value]
            else:
                command.append(f"--{name}={value}")
        printed = subprocess.run(command, check=True, capture_output=True,
                                 text=True).stdout
        found = [int(token) for token in printed.split(",")]
        if found != expected(prompt, settings):
            wrong += 1
            print("WRONG", " ".join(command), found, expected(prompt, settings))
    print(f"{cases - wrong} of {cases} agree")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
