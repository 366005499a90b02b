# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop of examples/dit/denoise.c once more, around `attune run`.

  denoise.py ATTUNE MODEL.json WEIGHTS SIDE LABEL STEPS NOISE DENOISED WORK
  denoise.py noise SIDE FILE
"""
import array
import math
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib"))
import tensors  # noqa: E402

CHANNELS, PATCH, TRAINED = 4, 2, 1000


def alpha(time):
    return math.prod(1 - (1e-4 + (0.02 - 1e-4) * t / (TRAINED - 1))
                     for t in range(time + 1))


def floats(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def main():
    if sys.argv[1] == "noise":
        source = random.Random(3)
        count = CHANNELS * int(sys.argv[2]) ** 2
        with open(sys.argv[3], "wb") as file:
            array.array("f", (source.gauss(0, 1) for _ in range(count))).tofile(file)
        return
    attune, model, weights = sys.argv[1:4]
    side, label, steps = map(int, sys.argv[4:7])
    x, got = floats(sys.argv[7]), floats(sys.argv[8])
    files = [os.path.join(sys.argv[9], name) for name in ("step.in", "step.out.safetensors")]
    for step in reversed(range(steps)):
        time = step * TRAINED // steps
        tensors.save(files[0], {
            "latents": ("F32", [1, CHANNELS, side, side], x.tobytes()),
            "time": ("F32", [1], array.array("f", [time]).tobytes()),
            "label": ("I64", [1, 1], array.array("q", [label]).tobytes())})
        subprocess.run([attune, "run", model, "--weights", weights, "--inputs",
                        files[0], "--outputs", files[1]], check=True)
        patches = array.array("f", tensors.load(files[1])["patches"][2])
        now = alpha(time)
        then = alpha((step - 1) * TRAINED // steps) if step else 1.0
        made, across = array.array("f"), side // PATCH
        for i, value in enumerate(x):
            c, y, column = i // side ** 2, i // side % side, i % side
            token = y // PATCH * across + column // PATCH
            place = y % PATCH * PATCH + column % PATCH
            noise = patches[(token * PATCH ** 2 + place) * 2 * CHANNELS + c]
            image = (value - math.sqrt(1 - now) * noise) / math.sqrt(now)
            made.append(math.sqrt(then) * image + math.sqrt(1 - then) * noise)
        x = made
    worst = max(abs(a - b) for a, b in zip(x, got))
    good = len(x) == len(got) and worst <= 1e-4 * max(map(abs, x))
    print(f"{'PASS' if good else 'FAIL'} differs by {worst:.1e}")


if __name__ == "__main__":
    main()
