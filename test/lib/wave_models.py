#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small wav2vec 2.0 and HuBERT folders with random weights, run by the compiler and
compared with their formulas in f64, and what `generate --audio` writes of a sound.

  wave_models.py ATTUNE WORK [FLAG]...
"""
import array
import json
import math
import os
import random
import struct
import subprocess
import sys

import tensors
from decoder_layers import Weights, dot, gelu, layer_norm, linear, plus, split
from encoders import Runner

WIDTH, HEADS, INNER, GROUPS, LAYERS, VOCAB = 16, 2, 24, 4, 2, 12
WIDTHS, KERNELS, STRIDES = [6, 8, 12], [5, 3, 2], [3, 2, 2]
LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|"] + list("ABCDEF") + ["É"]
RATE = 8000


def convolve(x, weight, bias, kernel, stride, groups=1):
    """Rows of `weight` are [channels of the group, kernel]; x is [places][channels]."""
    inner, outer = len(x[0]) // groups, len(weight) // groups
    result = []
    for start in range(0, len(x) - kernel + 1, stride):
        result.append([
            dot(row, [x[start + k][o // outer * inner + c]
                      for c in range(inner) for k in range(kernel)]) + bias[o]
            for o, row in enumerate(weight)])
    return result


def instance_norm(w, name, x):
    gamma, beta = w.vector(name + ".weight", len(x[0]), 1.0), w.vector(
        name + ".bias", len(x[0]))
    columns = []
    for column, g, b in zip(zip(*x), gamma, beta):
        mean = math.fsum(column) / len(column)
        scale = g / math.sqrt(math.fsum((v - mean) ** 2 for v in column)
                              / len(column) + 1e-5)
        columns.append([(v - mean) * scale + b for v in column])
    return [list(row) for row in zip(*columns)]


def normed_weight(w, name, old, kernel, inner):
    """Row by row; the length is over all rows and channels of one place."""
    g, v = ((".weight_g", ".weight_v") if old else
            (".parametrizations.weight.original0",
             ".parametrizations.weight.original1"))
    lengths = w.vector(name + g, kernel, 1.5)
    rows = w.matrix(name + v, WIDTH, inner * kernel)
    w.made[name + g] = ([1, 1, kernel], w.made[name + g][1])
    w.made[name + v] = ([WIDTH, inner, kernel], w.made[name + v][1])
    for k, length in enumerate(lengths):
        norm = math.sqrt(math.fsum(row[c * kernel + k] ** 2 for row in rows
                                   for c in range(inner)))
        for row in rows:
            for c in range(inner):
                row[c * kernel + k] *= length / norm
    return rows


def attend(w, at, x, shown):
    q, k, v = (split(linear(w, f"{at}.{n}_proj", x, WIDTH, True), HEADS)
               for n in "qkv")
    size = WIDTH // HEADS
    joined = [[] for _ in x]
    for h in range(HEADS):
        for m, query in enumerate(q[h]):
            scores = [dot(query, k[h][n]) / math.sqrt(size)
                      for n in range(shown)]
            top = max(scores)
            powers = [math.exp(s - top) for s in scores]
            total = math.fsum(powers)
            joined[m] += [math.fsum(p * v[h][n][c] for n, p in enumerate(powers))
                          / total for c in range(size)]
    return linear(w, at + ".out_proj", joined, WIDTH, True)


def feed(w, at, x):
    x = linear(w, at + ".intermediate_dense", x, INNER, True)
    return linear(w, at + ".output_dense",
                  [[gelu(v) for v in row] for row in x], WIDTH, True)


def places_of(samples):
    for kernel, stride in zip(KERNELS, STRIDES):
        samples = (samples - kernel) // stride + 1
    return samples


def model(w, config, samples, count, old):
    """Rows of all places, of which those of the first `count` samples are shown."""
    prefix = config["model_type"] + "."
    each = config["feat_extract_norm"] == "layer"
    stable, kernel = config["do_stable_layer_norm"], config[
        "num_conv_pos_embeddings"]
    x = [[s] for s in samples]
    for i, (out, size, stride) in enumerate(zip(WIDTHS, KERNELS, STRIDES)):
        at = f"{prefix}feature_extractor.conv_layers.{i}."
        inner = len(x[0])
        weight = w.matrix(at + "conv.weight", out, inner * size)
        w.made[at + "conv.weight"] = ([out, inner, size],
                                      w.made[at + "conv.weight"][1])
        bias = (w.vector(at + "conv.bias", out) if config["conv_bias"]
                else [0.0] * out)
        x = convolve(x, weight, bias, size, stride)
        if each:
            x = layer_norm(w, at + "layer_norm", x)
        elif i == 0:
            x = instance_norm(w, at + "layer_norm", x)
        x = [[gelu(v) for v in row] for row in x]
    if config.get("feat_proj_layer_norm", True):
        x = layer_norm(w, prefix + "feature_projection.layer_norm", x)
    x = linear(w, prefix + "feature_projection.projection", x, WIDTH, True)
    shown = places_of(count) if count < len(samples) else len(x)
    x = [row if t < shown else [0.0] * WIDTH for t, row in enumerate(x)]
    at = prefix + "encoder.pos_conv_embed.conv"
    weight = normed_weight(w, at, old, kernel, WIDTH // GROUPS)
    zeros = [[0.0] * WIDTH] * (kernel // 2)
    places = convolve(zeros + x + zeros, weight, w.vector(at + ".bias", WIDTH),
                      kernel, 1, GROUPS)[:len(x)]
    x = plus(x, [[gelu(v) for v in row] for row in places])
    norm = prefix + "encoder.layer_norm"
    if not stable:
        x = layer_norm(w, norm, x)
    for i in range(LAYERS):
        at = f"{prefix}encoder.layers.{i}."
        if stable:
            y = layer_norm(w, at + "layer_norm", x)
            x = plus(x, attend(w, at + "attention", y, shown))
            y = layer_norm(w, at + "final_layer_norm", x)
            x = plus(x, feed(w, at + "feed_forward", y))
        else:
            x = plus(x, attend(w, at + "attention", x, shown))
            x = layer_norm(w, at + "layer_norm", x)
            x = plus(x, feed(w, at + "feed_forward", x))
            x = layer_norm(w, at + "final_layer_norm", x)
    if stable:
        x = layer_norm(w, norm, x)
    if config["architectures"][0].endswith("ForCTC"):
        x = linear(w, "lm_head", x, VOCAB, True)
    return x, shown


BASE = {"hidden_size": WIDTH, "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS, "intermediate_size": INNER,
        "conv_dim": WIDTHS, "conv_kernel": KERNELS, "conv_stride": STRIDES,
        "num_conv_pos_embedding_groups": GROUPS, "vocab_size": VOCAB,
        "num_feat_extract_layers": 3, "pad_token_id": 0}
GROUP = {**BASE, "feat_extract_norm": "group", "do_stable_layer_norm": False,
         "conv_bias": False, "num_conv_pos_embeddings": 6}
LAYER = {**BASE, "feat_extract_norm": "layer", "do_stable_layer_norm": True,
         "conv_bias": True, "num_conv_pos_embeddings": 5}
# The configuration, and whether its weights have their old names.
CASES = {
    "wav2vec2": ({**GROUP, "model_type": "wav2vec2",
                  "architectures": ["Wav2Vec2ForCTC"]}, True),
    "hubert": ({**LAYER, "model_type": "hubert", "num_conv_pos_embeddings": 8,
                "feat_proj_layer_norm": False,
                "architectures": ["HubertModel"]}, False),
    "wav2vec2_layer": ({**LAYER, "model_type": "wav2vec2",
                        "architectures": ["Wav2Vec2ForCTC"]}, False),
}


def save_folder(folder, config, w):
    os.makedirs(folder, exist_ok=True)
    w.vector(config["model_type"] + ".masked_spec_embed", WIDTH)
    w.save(os.path.join(folder, "model.safetensors"))

    def save(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    save("config.json", config)
    save("vocab.json", {letter: i for i, letter in enumerate(LETTERS)})
    save("preprocessor_config.json",
         {"feature_extractor_type": "Wav2Vec2FeatureExtractor",
          "do_normalize": True, "feature_size": 1, "padding_value": 0.0,
          "sampling_rate": RATE, "return_attention_mask": True})


def compare(run, work, name):
    """Two sounds, of which the second is shorter where a mask can say so."""
    config, old = CASES[name]
    w = Weights(name)
    draw = random.Random(name)
    length, short = 97, 61
    masked = config["feat_extract_norm"] == "layer"
    sounds = [[struct.unpack("<f", struct.pack("<f", draw.gauss(0, 1)))[0]
               for _ in range(length)] for _ in range(2)]
    counts = [length, short if masked else length]
    for sound, count in zip(sounds, counts):
        sound[count:] = [0.0] * (length - count)
    rows, keep = [], []
    for sound, count in zip(sounds, counts):
        found, shown = model(w, config, sound, count, old)
        rows.append(found)
        keep += [t < shown for t in range(len(found))]
    folder = os.path.join(work, name)
    save_folder(folder, config, w)
    inputs = {"input_values": ("F32", [2, length], array.array(
        "f", [s for sound in sounds for s in sound]).tobytes())}
    if masked:
        inputs["attention_mask"] = ("BOOL", [2, length], bytes(
            int(i < count) for count in counts for i in range(length)))
    output = ("logits" if config["architectures"][0].endswith("ForCTC")
              else "last_hidden_state")
    run.compare(name, folder, inputs, {output: rows}, keep)
    return w


def write_down(run, work, name, w):
    """The likeliest letters of a WAV file."""
    config, old = CASES[name]
    folder = os.path.join(work, name)
    draw = random.Random("sound")
    numbers = [int(9000 * math.sin(i * i / 900)) + draw.randrange(-6000, 6000)
               for i in range(400)]
    raw = struct.pack(f"<{len(numbers)}h", *numbers)
    with open(os.path.join(folder, "sound.wav"), "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt "
                   + struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16)
                   + b"data" + struct.pack("<I", len(raw)) + raw)
    mean = sum(numbers) / len(numbers) / 32768
    variance = sum((v / 32768 - mean) ** 2 for v in numbers) / len(numbers)
    samples = [(v / 32768 - mean) / math.sqrt(variance + 1e-7)
               for v in numbers]
    rows, _ = model(w, config, samples, len(samples), old)
    best = [max(range(VOCAB), key=row.__getitem__) for row in rows]
    ids = [i for t, i in enumerate(best) if i and (t == 0 or best[t - 1] != i)]
    text = "".join({"|": " "}.get(LETTERS[i], LETTERS[i]) if i > 3 else ""
                   for i in ids).strip()
    program = os.path.join(folder, "program")
    subprocess.run([run.attune, "compile", folder, "-o", program] + run.flags,
                   check=True)
    for form, want in (("text", text), ("ids", ",".join(map(str, ids))),
                       ("json", {"ids": ids, "text": text})):
        told = subprocess.run(
            [program, "generate", "--audio=" + os.path.join(folder, "sound.wav"),
             "--format=" + form], capture_output=True, text=True)
        got = json.loads(told.stdout) if form == "json" and told.stdout else (
            told.stdout[:-1])
        good = told.returncode == 0 and got == want
        print(f"{'PASS' if good else 'FAIL'} {name} {form}"
              + ("" if good else f": {got} {told.stderr} instead of {want}"))
        run.failures += not good
    print(f"{len(set(ids))} letters, {len(best)} frames")


def main():
    attune, work = sys.argv[1:3]
    os.makedirs(work, exist_ok=True)
    run = Runner(attune, work, sys.argv[3:])
    for name in CASES:
        w = compare(run, work, name)
        if name == "wav2vec2":
            write_down(run, work, name, w)
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
