#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of two kinds of tokens, one behind the other, turned by three
numbers that inputs give for each, compared with its formula in f64.

  rotary_axes.py ATTUNE WORK [FLAG]...
"""
import json
import math
import os
import sys

from encoders import D, HEADS, RNG, Runner, Weights, attend, given

AXES, THETA = (4, 2, 2), 10000


def numbers(*shape):
    if not shape:
        return RNG.uniform(-1, 1)
    return [numbers(*shape[1:]) for _ in range(shape[0])]


def turned(row, place):
    """Pairs of neighbours: an axis has as many as its share of channels."""
    size, y = D // HEADS, list(row)
    for head in range(0, D, size):
        channel = head
        for axis, share in enumerate(AXES):
            for pair in range(share // 2):
                angle = place[axis] * THETA ** (-2 * pair / share)
                a, b = row[channel], row[channel + 1]
                y[channel] = a * math.cos(angle) - b * math.sin(angle)
                y[channel + 1] = b * math.cos(angle) + a * math.sin(angle)
                channel += 2
    return y


def mix(w, rows, places):
    q, k, v = (w.apply("mix." + part, rows) for part in "qkv")
    q, k = ([turned(row, place) for row, place in zip(x, places)]
            for x in (q, k))
    return w.apply("mix.o", attend(q, k, v))


def main():
    attune, work = sys.argv[1:3]
    os.makedirs(work, exist_ok=True)
    w = Weights()
    w.linear("first", D, D)
    w.linear("second", D, D)
    for part in "qkvo":
        w.linear("mix." + part, D, D)
    w.save(work, {})
    model = os.path.join(work, "model.json")
    with open(model, "w", encoding="utf-8") as file:
        json.dump({
            "attune": 1,
            "inputs": {
                "x": {"dtype": "f32", "shape": ["batch", "texts", D]},
                "y": {"dtype": "f32", "shape": ["batch", "places", D]},
                "x_ids": {"dtype": "f32", "shape": ["texts", 3]},
                "y_ids": {"dtype": "f32", "shape": ["places", 3]}},
            "streams": {
                "image": {"input": "y", "layers": [
                    {"linear": {"out": D, "bias": True}, "name": "second"}]},
                "all": {"input": "x", "layers": [
                    {"linear": {"out": D, "bias": True}, "name": "first"},
                    {"concat": {"source": "image"}, "name": "both"},
                    {"attention": {"heads": HEADS, "bias": True, "rope": {
                        "interleaved": True,
                        "axes": {"channels": AXES,
                                 "inputs": ["x_ids", "y_ids"]}}},
                     "name": "mix"}]}},
            "outputs": {"mixed": "mix"}}, file)
    run = Runner(attune, work, sys.argv[3:] + [
        "--weights=" + os.path.join(work, "model.safetensors"),
        "--dim=both.tokens=9"])
    inputs, (x, y, x_ids, y_ids) = {}, (numbers(2, 3, D), numbers(2, 6, D),
                                        [[0, 0, 0]] * 3,
                                        [[0, i // 3, i % 3] for i in range(6)])
    inputs["x"], x = given(x)
    inputs["y"], y = given(y)
    inputs["x_ids"], x_ids = given(x_ids)
    inputs["y_ids"], y_ids = given(y_ids)
    run.compare("axes", model, inputs, {"mixed": [
        mix(w, w.apply("first", texts) + w.apply("second", image),
            x_ids + y_ids) for texts, image in zip(x, y)]})
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
