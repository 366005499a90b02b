#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small folders of SigLIP 2 on images of different sizes (NaFlex), run by the
compiler and compared with their formulas in f64.

  naflex.py ATTUNE WORK all|tower|positions [FLAG]...

`tower` is that of images alone, `positions` a description of these alone.
"""
import array
import json
import os
import subprocess
import sys

import tensors
from encoders import D, RNG, Runner, Weights, add, flatten, integers
from image_encoders import (siglip_models, siglip_patches, siglip_towers,
                            siglip_weights)

SIDE, PATCH, TOKENS = 4, 2, 16


def shares(count, extent):
    """How much each place of a row of `count` counts for each of `extent` places,
    as torch's upsample_bilinear2d_aa has it."""
    scale = count / extent
    support, shrunk = max(scale, 1.0), min(1 / scale, 1.0)
    result = []
    for i in range(extent):
        centre = scale * (i + 0.5)
        first = max(int(centre - support + 0.5), 0)
        size = min(int(centre + support + 0.5), count) - first
        weights = [max(0.0, 1 - abs((j + first - centre + 0.5) * shrunk))
                   for j in range(size)]
        result.append([(first + j, weight / sum(weights))
                       for j, weight in enumerate(weights)])
    return result


def resized(table, height, width):
    """First along rows, then along columns."""
    rows = []
    for y in range(SIDE):
        line = table[y * SIDE:(y + 1) * SIDE]
        rows.append([[sum(p * line[x][c] for x, p in near)
                      for c in range(len(table[0]))]
                     for near in shares(SIDE, width)])
    return [[sum(p * rows[y][x][c] for y, p in near)
             for c in range(len(table[0]))]
            for near in shares(SIDE, height) for x in range(width)]


# As the table is, smaller and larger than it, and lines of patches.
SHAPES = [(4, 4), (2, 7), (1, 16), (3, 2), (8, 1), (3, 5), (1, 1)]


def positions(table, shape, tokens):
    """Those of an image's patches, and of what stands behind them."""
    places = resized(table, *shape)
    return places + places[:1] * (tokens - len(places))


def positions_alone(run):
    w = Weights()
    w.new("table.weight", SIDE * SIDE, D)
    path = os.path.join(run.work, "positions.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"attune": 1, "inputs": {
            "x": {"dtype": "f32", "shape": ["images", TOKENS, D]},
            "sizes": {"dtype": "i64", "shape": ["images", 2]}},
                   "layers": [{"name": "table", "positions": {
                       "length": SIDE * SIDE, "grid": [SIDE, SIDE],
                       "interpolate": "antialias", "shapes": "sizes"}}]}, file)
    w.save(os.path.join(run.work, "table"), {})
    run.flags = run.flags + ["--weights=" + os.path.join(
        run.work, "table", "model.safetensors")]
    zeros = bytes(4 * len(SHAPES) * TOKENS * D)
    run.compare("positions", path,
                {"x": ("F32", [len(SHAPES), TOKENS, D], zeros),
                 "sizes": integers(SHAPES)},
                {"last_hidden_state": [
                    positions(w.rows("table.weight"), shape, TOKENS)
                    for shape in SHAPES]})


def batch(w, shapes, tokens):
    """The inputs for images of these shapes, and what the tower makes of each."""
    pixels = [[[RNG.uniform(-1, 1) if t < h * v else 0.0
                for _ in range(3 * PATCH * PATCH)] for t in range(tokens)]
              for h, v in shapes]
    raw = array.array("f", flatten(pixels))
    numbers = iter(raw)
    shown = [[int(t < h * v) for t in range(tokens)] for h, v in shapes]
    table = w.rows("vision_model.embeddings.position_embedding.weight")
    seen = []
    for shape, ones, image in zip(shapes, shown, pixels):
        rows = [[next(numbers) for _ in row] for row in image]
        x = w.apply("vision_model.embeddings.patch_embedding", rows)
        seen.append(siglip_patches(w, add(x, positions(table, shape, tokens)),
                                   ones))
    # Masks are 32 bits wide, as the published processor makes them.
    ones = array.array("i", flatten(shown))
    return {"pixel_values": ("F32", [len(shapes), tokens, 3 * PATCH * PATCH],
                             raw.tobytes()),
            "pixel_attention_mask": ("I32", [len(shapes), tokens],
                                     ones.tobytes()),
            "spatial_shapes": integers(shapes)}, seen, shown


def models(run, what):
    work, w = run.work, Weights()
    siglip_weights(w, (3 * PATCH * PATCH,), SIDE * SIDE)
    inputs, seen, shown = batch(w, SHAPES, TOKENS)
    configs, towers = siglip_towers(
        run, w, "siglip2", {"num_patches": SIDE * SIDE, "patch_size": PATCH},
        inputs, seen)
    if what == "all":
        siglip_models(run, w, "siglip2", configs, towers, shown)
    # Compiled once, for the test to run, too.
    tower = os.path.join(work, "tower")
    subprocess.run([run.attune, "compile", os.path.join(work, "siglip2_vision"),
                    "-o", tower] + run.flags, check=True)
    run.compare("siglip2_vision", tower, *towers["vision"])
    # One image that fills its tokens, whose mask may be left out.
    inputs, seen, _ = batch(w, [(1, 3)], 3)
    del inputs["pixel_attention_mask"]
    run.compare("siglip2_one", tower, inputs,
                {"last_hidden_state": [x for x, _ in seen],
                 "pooler_output": [pooled for _, pooled in seen]})
    # Shapes that cannot be, for the test to see refused.
    for name, shape in (("none", (3, 0)), ("more", (2, 2))):
        tensors.save(os.path.join(work, name + ".safetensors"),
                     dict(inputs, spatial_shapes=integers([shape])))


def main():
    attune, work, what = sys.argv[1:4]
    os.makedirs(work, exist_ok=True)
    run = Runner(attune, work, sys.argv[4:])
    if what == "positions":
        positions_alone(run)
    else:
        models(run, what)
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
