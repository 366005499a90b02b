# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop of examples/flux/denoise.c once more, around `attune run`, with texts and
noise made up.

  flow.py ATTUNE FOLDER LIBRARY DENOISE CHANNELS HEIGHT WIDTH GUIDANCE STEPS

FOLDER has model.json and weights.safetensors; files of the program go there, too.
"""
import array
import json
import math
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib"))
import tensors  # noqa: E402

WORDS, DRAW = 3, random.Random(5)


def numbers(count):
    return array.array("f", (DRAW.gauss(0, 1) for _ in range(count)))


def shares(steps, is_flux, tokens):
    """Of noise, from the first step to the end: FLUX.1-dev's, and those of SD3."""
    result = []
    for i in range(steps):
        if is_flux:
            mu = 0.5 + (1.15 - 0.5) * (tokens - 256) / (4096 - 256)
            even = 1 - i / steps
            result.append(math.exp(mu) / (math.exp(mu) + 1 / even - 1))
        else:
            least = 3 * 0.001 / (1 + 2 * 0.001)
            even = 1 + (least - 1) * i / (steps - 1)
            result.append(3 * even / (1 + 2 * even))
    return result + [0.0]


def main():
    attune, folder, library, program = sys.argv[1:5]
    channels, height, width = map(int, sys.argv[5:8])
    guidance, steps = float(sys.argv[8]), int(sys.argv[9])
    model = os.path.join(folder, "model.json")
    with open(model, encoding="utf-8") as file:
        described = json.load(file)
    is_flux = "img_ids" in described["inputs"]
    sizes, batch = described["dims"], 1 if is_flux else 2
    count, tokens = channels * height * width, height * width // 4
    files = {name: os.path.join(folder, name + ".raw")
             for name in ("noise", "text", "pooled", "latents")}
    given = {"noise": numbers(count), "text": numbers(batch * WORDS * sizes["TEXT"]),
             "pooled": numbers(batch * sizes["POOLED"])}
    for name, values in given.items():
        with open(files[name], "wb") as file:
            values.tofile(file)
    subprocess.run([program, library, files["noise"], str(height), str(width),
                    files["text"], files["pooled"], str(guidance), str(steps),
                    files["latents"]], check=True)

    # The latents of each row of a token.
    order = [(c * height + 2 * y + p) * width + 2 * x + q
             for y in range(height // 2) for x in range(width // 2)
             for c in range(channels) for p in range(2) for q in range(2)]
    x = list(given["noise"])
    share = shares(steps, is_flux, tokens)
    step_in, step_out = (os.path.join(folder, "step." + end)
                         for end in ("in.safetensors", "out.safetensors"))

    def f32(shape, values):
        return "F32", shape, array.array("f", values).tobytes()
    for now, then in zip(share, share[1:]):
        inputs = {
            "encoder_hidden_states": f32([batch, WORDS, sizes["TEXT"]], given["text"]),
            "pooled_projections": f32([batch, sizes["POOLED"]], given["pooled"]),
            "timestep": f32([batch], [now if is_flux else 1000 * now] * batch)}
        if is_flux:
            inputs["hidden_states"] = f32([1, tokens, 4 * channels],
                                          [x[i] for i in order])
            inputs["guidance"] = f32([1], [guidance])
            inputs["txt_ids"] = f32([WORDS, 3], [0.0] * 3 * WORDS)
            inputs["img_ids"] = f32([tokens, 3], [
                v for t in range(tokens) for v in (0, *divmod(t, width // 2))])
        else:
            inputs["hidden_states"] = f32([2, channels, height, width], x + x)
        tensors.save(step_in, inputs)
        subprocess.run([attune, "run", model, "--weights",
                        os.path.join(folder, "weights.safetensors"), "--inputs",
                        step_in, "--outputs", step_out], check=True)
        flow = array.array("f", tensors.load(step_out)["sample"][2])
        if is_flux:
            placed = [0.0] * count
            for i, value in zip(order, flow):
                placed[i] = value
            flow = placed
        else:
            flow = [a + guidance * (b - a) for a, b in zip(flow, flow[count:])]
        x = [a + (then - now) * b for a, b in zip(x, flow)]
    got = array.array("f")
    with open(files["latents"], "rb") as file:
        got.frombytes(file.read())
    worst = max(abs(a - b) for a, b in zip(x, got))
    good = len(got) == count and worst <= 1e-4 * max(map(abs, x))
    print(f"{'PASS' if good else 'FAIL'} differs by {worst:.1e}")


if __name__ == "__main__":
    main()
