#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small transformers of diffusers' Flux and Stable Diffusion 3 with random weights,
run by the compiler and compared with their formulas in f64.

  diffusion_models.py ATTUNE WORK [FLAG]...

The numbers of a prediction are of the order of one; they may differ by 2e-5, or
by what Runner says where the model is rounded.
"""
import json
import math
import os
import random
import struct
import sys

import tensors
from decoder_layers import Weights, dot, gelu_tanh, linear, plus, rms_norm, silu, split
from encoders import Runner, given

BATCH, TEXT, TEXT_WIDTH, POOLED, SINES = 2, 3, 10, 6, 256
FLUX = {"_class_name": "FluxTransformer2DModel", "_diffusers_version": "0.30.0",
        "patch_size": 1, "in_channels": 8, "num_layers": 2,
        "num_single_layers": 2, "attention_head_dim": 12,
        "num_attention_heads": 2, "joint_attention_dim": TEXT_WIDTH,
        "pooled_projection_dim": POOLED, "guidance_embeds": False,
        "axes_dims_rope": [2, 4, 6]}
SD3 = {"_class_name": "SD3Transformer2DModel", "_diffusers_version": "0.29.0",
       "sample_size": 8, "patch_size": 2, "in_channels": 3, "num_layers": 3,
       "attention_head_dim": 8, "num_attention_heads": 2,
       "joint_attention_dim": TEXT_WIDTH, "caption_projection_dim": 16,
       "pooled_projection_dim": POOLED, "out_channels": 5,
       "pos_embed_max_size": 7}
CASES = {
    "schnell": FLUX,
    "dev": dict(FLUX, guidance_embeds=True, num_single_layers=1,
                out_channels=4),
    "sd3": SD3,
    "sd35": dict(SD3, qk_norm="rms_norm", dual_attention_layers=[0]),
    "sd35_last": dict(SD3, num_layers=1, qk_norm="rms_norm",
                      dual_attention_layers=[0]),
}


class Scaled(Weights):
    """Matrices that keep the size of what they multiply; gammas near 1."""

    def vector(self, name, size, center=0.0):
        if name not in self.made and name.endswith("weight") and center == 0:
            raise KeyError(name)
        return super().vector(name, size, center)

    def matrix(self, name, rows, columns):
        if name not in self.made:
            bound = 1.2 / math.sqrt(columns)
            self.made[name] = ([rows, columns], struct.pack(
                f"<{rows * columns}f",
                *(self.random.uniform(-bound, bound)
                  for _ in range(rows * columns))))
        flat = struct.unpack(f"<{rows * columns}f", self.made[name][1])
        return [list(flat[i * columns:(i + 1) * columns]) for i in range(rows)]


def full(w, name, x, rows):
    return linear(w, name, x, rows, bias=True)


def two_layers(w, name, x, width):
    inner = [[silu(v) for v in row]
             for row in full(w, name + ".linear_1", x, width)]
    return full(w, name + ".linear_2", inner, width)


def sines(number):
    """Cosines first; the longest wave is 10000 * 2 pi numbers long."""
    half = SINES // 2
    angles = [number * 10000.0 ** (-i / half) for i in range(half)]
    return [math.cos(a) for a in angles] + [math.sin(a) for a in angles]


def embed(w, pooled, numbers, width):
    """What modulates: one vector, activated."""
    at = "time_text_embed."
    sums = two_layers(w, at + "text_embedder", [pooled], width)
    for name, number in numbers:
        sums = plus(sums, two_layers(w, f"{at}{name}_embedder",
                                     [sines(number)], width))
    return [[silu(v) for v in sums[0]]]


def chunks(w, name, condition, count, width):
    flat = full(w, name, condition, count * width)[0]
    return [flat[i * width:(i + 1) * width] for i in range(count)]


def plain_norm(x):
    result = []
    for v in x:
        mean = math.fsum(v) / len(v)
        scale = 1 / math.sqrt(math.fsum((a - mean) ** 2 for a in v) / len(v)
                              + 1e-6)
        result.append([(a - mean) * scale for a in v])
    return result


def modulate(x, shift, scale):
    return [[v * (1 + s) + t for v, s, t in zip(row, scale, shift)]
            for row in x]


def gated(x, gate, y):
    return [[a + g * b for a, g, b in zip(row, gate, other)]
            for row, other in zip(x, y)]


def heads_of(w, config, names, x, normed):
    """Queries, keys and values by head; `names` are those of their tensors."""
    width, heads = len(x[0]), config["num_attention_heads"]
    made = [split(full(w, name, x, width), heads) for name in names[:3]]
    for i in range(2 if normed else 0):
        made[i] = [rms_norm(w, names[3 + i], rows) for rows in made[i]]
    return made


def attend(q, k, v):
    """Rows of all heads side by side."""
    joined = [[] for _ in q[0]]
    for queries, keys, values in zip(q, k, v):
        for row, query in zip(joined, queries):
            scores = [dot(query, key) / math.sqrt(len(query)) for key in keys]
            top = max(scores)
            powers = [math.exp(s - top) for s in scores]
            total = math.fsum(powers)
            row += [math.fsum(p * value[c] for p, value in zip(powers, values))
                    / total for c in range(len(values[0]))]
    return joined


def own_names(at):
    return [at + n for n in ("to_q", "to_k", "to_v", "norm_q", "norm_k")]


def added_names(at):
    return [at + n for n in ("add_q_proj", "add_k_proj", "add_v_proj",
                             "norm_added_q", "norm_added_k")]


def feed(w, name, x):
    width = len(x[0])
    inner = full(w, name + ".net.0.proj", x, 4 * width)
    return full(w, name + ".net.2", [[gelu_tanh(v) for v in row]
                                     for row in inner], width)


def turned(heads, places, axes):
    """Neighbours turn: an axis has as many channels as `axes` says."""
    result = []
    for rows in heads:
        result.append([])
        for row, place in zip(rows, places):
            y, channel = list(row), 0
            for position, share in zip(place, axes):
                for pair in range(share // 2):
                    angle = position * 10000.0 ** (-2 * pair / share)
                    c, s = math.cos(angle), math.sin(angle)
                    a, b = row[channel], row[channel + 1]
                    y[channel], y[channel + 1] = a * c - b * s, b * c + a * s
                    channel += 2
            result[-1].append(y)
    return result


def side_by_side(w, config, at, image, text, condition, turn, normed,
                 last=False, second=False, text_first=False):
    """A block of image and text; behind the last the text is not needed."""
    width = len(image[0])
    own = chunks(w, at + "norm1.linear", condition, 9 if second else 6, width)
    before = plain_norm(image)
    q, k, v = heads_of(w, config, own_names(at + "attn."),
                       modulate(before, own[0], own[1]), normed)
    if last:  # scales before shifts
        scale, shift = chunks(w, at + "norm1_context.linear", condition, 2,
                              width)
    else:
        other = chunks(w, at + "norm1_context.linear", condition, 6, width)
        shift, scale = other[0], other[1]
    tq, tk, tv = heads_of(w, config, added_names(at + "attn."),
                          modulate(plain_norm(text), shift, scale), normed)
    both = [[b + a for a, b in zip(x, y)] if text_first else
            [a + b for a, b in zip(x, y)]
            for x, y in ((q, tq), (k, tk), (v, tv))]
    joined = attend(turn(both[0]), turn(both[1]), both[2])
    begin = len(text) if text_first else 0
    image_rows = joined[begin:begin + len(image)]
    text_rows = joined[:len(text)] if text_first else joined[len(image):]
    image = gated(image, own[2],
                  full(w, at + "attn.to_out.0", image_rows, width))
    if second:
        alone = attend(*heads_of(w, config, own_names(at + "attn2."),
                                 modulate(before, own[6], own[7]), normed))
        image = gated(image, own[8],
                      full(w, at + "attn2.to_out.0", alone, width))
    image = gated(image, own[5], feed(w, at + "ff", modulate(
        plain_norm(image), own[3], own[4])))
    if last:
        return image, text
    text = gated(text, other[2],
                 full(w, at + "attn.to_add_out", text_rows, width))
    text = gated(text, other[5], feed(w, at + "ff_context", modulate(
        plain_norm(text), other[3], other[4])))
    return image, text


def one_sequence(w, config, at, x, condition, turn):
    width = len(x[0])
    shift, scale, gate = chunks(w, at + "norm.linear", condition, 3, width)
    read = modulate(plain_norm(x), shift, scale)
    inner = [[gelu_tanh(v) for v in row]
             for row in full(w, at + "proj_mlp", read, 4 * width)]
    q, k, v = heads_of(w, config, own_names(at + "attn."), read, True)
    rows = [a + b for a, b in zip(attend(turn(q), turn(k), v), inner)]
    return gated(x, gate, full(w, at + "proj_out", rows, width))


def end(w, x, condition, out):
    scale, shift = chunks(w, "norm_out.linear", condition, 2, len(x[0]))
    return full(w, "proj_out", modulate(plain_norm(x), shift, scale), out)


def flux(w, config, image, text, pooled, time, guidance, places):
    width = config["attention_head_dim"] * config["num_attention_heads"]
    numbers = [("timestep", 1000 * time)]
    if config["guidance_embeds"]:
        numbers.append(("guidance", 1000 * guidance))
    condition = embed(w, pooled, numbers, width)
    image = full(w, "x_embedder", image, width)
    text = full(w, "context_embedder", text, width)

    def turn(heads):
        return turned(heads, places, config["axes_dims_rope"])
    for i in range(config["num_layers"]):
        image, text = side_by_side(w, config, f"transformer_blocks.{i}.",
                                   image, text, condition, turn, True,
                                   text_first=True)
    x = text + image
    for i in range(config["num_single_layers"]):
        x = one_sequence(w, config, f"single_transformer_blocks.{i}.", x,
                         condition, turn)
    return end(w, x[len(text):], condition,
               config.get("out_channels", config["in_channels"]))


def stable_diffusion(w, config, latent, text, pooled, time):
    """`latent` is [channels][rows][columns], and so is the result."""
    width = config["attention_head_dim"] * config["num_attention_heads"]
    side, most = config["patch_size"], config["pos_embed_max_size"]
    rows, columns = len(latent[0]) // side, len(latent[0][0]) // side
    kernel = w.matrix("pos_embed.proj.weight", width,
                      config["in_channels"] * side * side)
    bias = w.vector("pos_embed.proj.bias", width)
    table = w.matrix("pos_embed.pos_embed", most * most, width)
    image = []
    for i in range(rows):
        for j in range(columns):
            patch = [channel[i * side + p][j * side + q] for channel in latent
                     for p in range(side) for q in range(side)]
            place = table[((most - rows) // 2 + i) * most
                          + (most - columns) // 2 + j]
            image.append([dot(row, patch) + b + t
                          for row, b, t in zip(kernel, bias, place)])
    condition = embed(w, pooled, [("timestep", time)], width)
    text = full(w, "context_embedder", text, width)
    for i in range(config["num_layers"]):
        image, text = side_by_side(
            w, config, f"transformer_blocks.{i}.", image, text, condition,
            lambda heads: heads, "qk_norm" in config,
            last=i + 1 == config["num_layers"],
            second=i in config.get("dual_attention_layers", []))
    out = config["out_channels"]
    places = end(w, image, condition, side * side * out)
    return [[[places[i // side * columns + j // side][
        (i % side * side + j % side) * out + c]
        for j in range(columns * side)] for i in range(rows * side)]
        for c in range(out)]


def save_folder(folder, config, w, shards):
    """A pipeline's folder, or that of the transformer alone; in one file or in
    two with an index."""
    os.makedirs(folder, exist_ok=True)
    if config["_class_name"].startswith("SD3"):
        width = w.made["pos_embed.pos_embed"][0][1]
        shape, raw = w.made["pos_embed.proj.weight"]
        w.made["pos_embed.proj.weight"] = (
            [width, config["in_channels"]] + 2 * [config["patch_size"]], raw)
        shape, raw = w.made["pos_embed.pos_embed"]
        w.made["pos_embed.pos_embed"] = ([1] + shape, raw)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as file:
        json.dump(config, file)
    path = os.path.join(folder, "diffusion_pytorch_model")
    if not shards:
        w.save(path + ".safetensors")
        return
    names, index = list(w.made), {}
    for i, part in enumerate((names[::2], names[1::2])):
        name = f"diffusion_pytorch_model-0000{i + 1}-of-00002.safetensors"
        tensors.save(os.path.join(folder, name),
                     {key: ("F32", *w.made[key]) for key in part})
        index.update(dict.fromkeys(part, name))
    with open(path + ".safetensors.index.json", "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": index}, file)


def compare(run, work, name):
    config, w, draw = CASES[name], Scaled(name), random.Random(name)

    def numbers(*shape):
        if not shape:
            return draw.uniform(-1.5, 1.5)
        return [numbers(*shape[1:]) for _ in range(shape[0])]
    is_flux = config["_class_name"].startswith("Flux")
    inputs = {}

    def take(key, values):
        inputs[key], seen = given(values)
        return seen
    text = take("encoder_hidden_states", numbers(BATCH, TEXT, TEXT_WIDTH))
    pooled = take("pooled_projections", numbers(BATCH, POOLED))
    if is_flux:
        rows, columns = 2, 3
        image = take("hidden_states",
                     numbers(BATCH, rows * columns, config["in_channels"]))
        times = take("timestep", [0.93, 0.0371])
        places = take("txt_ids", [[0.0] * 3] * TEXT) + take(
            "img_ids", [[0.0, float(i), float(j)] for i in range(rows)
                        for j in range(columns)])
        guidance = [None] * BATCH
        if config["guidance_embeds"]:
            guidance = take("guidance", [3.5, 1.0])
        expected = [flux(w, config, image[b], text[b], pooled[b], times[b],
                         guidance[b], places) for b in range(BATCH)]
    else:
        image = take("hidden_states", numbers(BATCH, config["in_channels"], 6, 8))
        times = take("timestep", [971.25, 3.0])
        expected = [stable_diffusion(w, config, image[b], text[b], pooled[b],
                                     times[b]) for b in range(BATCH)]
    pipeline = os.path.join(work, name)
    save_folder(os.path.join(pipeline, "transformer"), config, w,
                shards=name == "dev")
    with open(os.path.join(pipeline, "model_index.json"), "w",
              encoding="utf-8") as file:
        json.dump({"_class_name": "Pipeline"}, file)
    run.compare(name, pipeline, inputs, {"sample": expected})


def main():
    attune, work = sys.argv[1:3]
    os.makedirs(work, exist_ok=True)
    only = [arg for arg in sys.argv[3:] if arg in CASES]
    run = Runner(attune, work, [arg for arg in sys.argv[3:] if arg not in CASES])
    for name in only or CASES:
        compare(run, work, name)
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
