#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small LLaVA with random weights against float64 arithmetic done here: CLIP's
tower up to the last block but one, the projector, and a LLaMA that reads its
vectors in the places of image tokens.

  llava.py ATTUNE WORK

Logits of two texts, one of them padded on its left; greedy ids behind pictures
from PNG files and from tensors, behind two of them, and without any. Leaves the
folder WORK/llava, a program WORK/see and pictures for other tests.
"""
import json
import math
import os
import struct
import subprocess
import sys
import zlib

import tensors
from decoder_layers import (DIM, HEADS, VOCAB, WIDTH, Weights, attend, dot,
                            gated, layer_norm, linear, plus, rms_norm, silu,
                            split, turn)

IMAGE, EACH, PATCH, SIDE = 37, 9, 4, 12
SEEN, SEEN_HEADS, SEEN_INNER = 16, 2, 24
MEAN, DEVIATION = (0.4, 0.5, 0.3), (0.25, 0.3, 0.2)

CONFIG = {
    "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
    "image_token_index": IMAGE, "ignore_index": -100, "pad_token_id": 0,
    "projector_hidden_act": "gelu", "vision_feature_layer": -2,
    "vision_feature_select_strategy": "default", "image_seq_length": EACH,
    "torch_dtype": "float32",
    "text_config": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": 48,
        "num_attention_heads": HEADS, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5, "eos_token_id": 2, "torch_dtype": "float32"},
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": SEEN,
        "intermediate_size": SEEN_INNER, "image_size": SIDE,
        "patch_size": PATCH, "num_attention_heads": SEEN_HEADS,
        "num_hidden_layers": 3, "projection_dim": 20, "vocab_size": VOCAB}}

PREPARATION = {
    "image_processor_type": "CLIPImageProcessor", "do_resize": True,
    "size": {"shortest_edge": SIDE}, "resample": 3, "do_center_crop": True,
    "crop_size": {"height": SIDE, "width": SIDE}, "do_rescale": True,
    "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": MEAN,
    "image_std": DEVIATION, "do_convert_rgb": True}


def quick_gelu(x):
    return x / (1 + math.exp(-1.702 * x))


def gelu(x):
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def see_all(q, k, v):
    """Attention of every token to every token, heads side by side."""
    made = []
    for t in range(len(q[0])):
        row = []
        for qs, ks, vs in zip(q, k, v):
            scores = [dot(qs[t], other) / math.sqrt(len(other)) for other in ks]
            powers = [math.exp(s - max(scores)) for s in scores]
            row += [math.fsum(p * other[c] for p, other in zip(powers, vs))
                    / math.fsum(powers) for c in range(len(vs[0]))]
        made.append(row)
    return made


def tower_block(w, at, x):
    h = layer_norm(w, at + "layer_norm1", x)
    q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", h, SEEN, True),
                     SEEN_HEADS) for n in "qkv")
    x = plus(x, linear(w, at + "self_attn.out_proj", see_all(q, k, v), SEEN, True))
    h = linear(w, at + "mlp.fc1", layer_norm(w, at + "layer_norm2", x),
               SEEN_INNER, True)
    h = [[quick_gelu(a) for a in row] for row in h]
    return plus(x, linear(w, at + "mlp.fc2", h, SEEN, True))


def picture_vectors(w, pixels):
    """What the text model reads of one picture [3][row][column]."""
    at = "vision_tower.vision_model."
    count = 3 * PATCH * PATCH
    kernel = w.matrix(at + "embeddings.patch_embedding.weight", SEEN, count)
    w.made[at + "embeddings.patch_embedding.weight"] = (
        [SEEN, 3, PATCH, PATCH], w.made[at + "embeddings.patch_embedding.weight"][1])
    x = [w.vector(at + "embeddings.class_embedding", SEEN)]
    for top in range(0, SIDE, PATCH):
        for left in range(0, SIDE, PATCH):
            part = [pixels[c][top + i][left + j] for c in range(3)
                    for i in range(PATCH) for j in range(PATCH)]
            x.append([dot(row, part) for row in kernel])
    x = plus(x, w.matrix(at + "embeddings.position_embedding.weight", EACH + 1, SEEN))
    x = layer_norm(w, at + "pre_layrnorm", x)
    for i in range(2):
        x = tower_block(w, f"{at}encoder.layers.{i}.", x)
    # The last block and the norm behind it are in files, and not read.
    tower_block(w, f"{at}encoder.layers.2.", x)
    layer_norm(w, at + "post_layernorm", x)
    x = linear(w, "multi_modal_projector.linear_1", x[1:], WIDTH, True)
    x = [[gelu(a) for a in row] for row in x]
    return linear(w, "multi_modal_projector.linear_2", x, WIDTH, True)


def logits(w, ids, pictures):
    """Of every token; `pictures` are the vectors of those that it shows."""
    table = w.matrix("language_model.model.embed_tokens.weight", VOCAB, WIDTH)
    rows = iter([row for one in pictures for row in one])
    x = [next(rows) if pictures and t == IMAGE else table[t] for t in ids]
    for i in range(2):
        at = f"language_model.model.layers.{i}."
        h = rms_norm(w, at + "input_layernorm", x, 1e-5)
        q = split(linear(w, at + "self_attn.q_proj", h, HEADS * DIM), HEADS)
        k, v = (split(linear(w, f"{at}self_attn.{n}_proj", h, 2 * DIM), 2)
                for n in "kv")
        x = plus(x, linear(w, at + "self_attn.o_proj",
                           attend(turn(q), turn(k), v), WIDTH))
        x = plus(x, gated(w, at + "mlp.",
                          rms_norm(w, at + "post_attention_layernorm", x, 1e-5), silu))
    return linear(w, "language_model.lm_head",
                  rms_norm(w, "language_model.model.norm", x, 1e-5), VOCAB)


def expanded(ids):
    return [t for i in ids for t in ([i] * EACH if i == IMAGE else [i])]


def greedy(w, ids, pictures, count):
    ids, made = expanded(ids), []
    for _ in range(count):
        last = logits(w, ids + made, pictures)[-1]
        made.append(max(range(VOCAB), key=lambda i: last[i]))
    return made


def beam_search(w, ids, pictures, beams, count):
    """The likeliest text of `count` tokens among those that are followed."""
    texts = [(0.0, [])]
    for _ in range(count):
        longer = []
        for score, text in texts:
            last = logits(w, ids + text, pictures)[-1]
            largest = max(last)
            total = largest + math.log(math.fsum(
                math.exp(x - largest) for x in last))
            longer += [(score + x - total, text + [i])
                       for i, x in enumerate(last)]
        texts = sorted(longer, key=lambda pair: -pair[0])[:beams]
    return texts[0][1]


def png(width, height, rows):
    def chunk(name, body):
        return (struct.pack(">I", len(body)) + name + body
                + struct.pack(">I", zlib.crc32(name + body)))
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def make_picture(path, rng):
    """A picture two columns wider than the model sees; gives what it sees."""
    wide = SIDE + 2
    rows = [[rng.randrange(256) for _ in range(3 * wide)] for _ in range(SIDE)]
    with open(path, "wb") as file:
        file.write(png(wide, SIDE, rows))
    return [[[(row[3 * (x + 1) + c] / 255 - MEAN[c]) / DEVIATION[c]
              for x in range(SIDE)] for row in rows] for c in range(3)]


def flatten(value):
    if not isinstance(value, list):
        return [value]
    return [x for part in value for x in flatten(part)]


def pixel_tensor(pictures):
    numbers = flatten(pictures)
    return ("F32", [len(pictures), 3, SIDE, SIDE],
            struct.pack(f"<{len(numbers)}f", *numbers))


def integer_tensor(rows):
    flat = flatten(rows)
    return "I64", [len(rows), len(rows[0])], struct.pack(f"<{len(flat)}q", *flat)


failures = 0


def check(name, good, detail=""):
    global failures
    failures += not good
    print(("PASS " if good else "FAIL ") + name + ("" if good else f": {detail}"))


def compare_forward(see, work, w, pixels, vectors):
    """Two texts with a picture each; the shorter one begins with padding."""
    texts = [[5, IMAGE, 7, 9, 11, 3], [IMAGE, 8, 6]]
    texts = [expanded(text) for text in texts]
    longest = max(map(len, texts))
    tensors.save(f"{work}/in.safetensors", {
        "input_ids": integer_tensor([[0] * (longest - len(t)) + t for t in texts]),
        "attention_mask": integer_tensor(
            [[0] * (longest - len(t)) + [1] * len(t) for t in texts]),
        "pixel_values": pixel_tensor(pixels)})
    subprocess.run([see, "run", "--inputs", f"{work}/in.safetensors",
                    "--outputs", f"{work}/out.safetensors"], check=True)
    found = tensors.numbers(tensors.load(f"{work}/out.safetensors")["logits"])
    worst, limit = 0.0, 2e-5
    for row, (text, seen) in enumerate(zip(texts, vectors)):
        for t, expected in enumerate(logits(w, text, [seen])):
            limit = max(limit, *(2e-5 * abs(x) for x in expected))
            at = (row * longest + longest - len(text) + t) * VOCAB
            worst = max(worst, *(abs(a - b) for a, b in zip(
                found[at:at + VOCAB], expected)))
    print(f"  {worst:.2e} of {limit:.2e}")
    check("logits", worst < limit, f"{worst} apart")


def main():
    attune, work = sys.argv[1:3]
    folder, see = f"{work}/llava", f"{work}/see"
    os.makedirs(folder, exist_ok=True)
    w = Weights(11)
    pixels = [make_picture(f"{work}/{name}.png", w.random) for name in "ab"]
    vectors = [picture_vectors(w, one) for one in pixels]
    logits(w, [1], [])  # makes the tensors of the text model
    w.save(f"{folder}/model.safetensors")
    for name, content in (("config", CONFIG), ("preprocessor_config", PREPARATION)):
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(content, file)
    subprocess.run([attune, "compile", folder, "-o", see], check=True)
    compare_forward(see, work, w, pixels, vectors)

    def generate(ids, *options, count=6):
        done = subprocess.run(
            [see, "generate", "--prompt-ids=" + ",".join(map(str, ids)), "--greedy",
             "--ignore-eos", f"--max-new-tokens={count}", "--format=ids",
             *options],
            capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        return [int(i) for i in done.stdout.split(",")]
    prompt = [5, IMAGE, 7, 9]
    expected = greedy(w, prompt, vectors[:1], 6)
    found = generate(prompt, f"--image={work}/a.png")
    check("generate --image", found == expected, f"{found}, not {expected}")
    other = greedy(w, prompt, vectors[1:], 6)
    check("another picture", generate(prompt, f"--image={work}/b.png") == other
          and other != expected, other)
    found = generate(expanded(prompt), f"--image={work}/a.png")
    check("all tokens given", found == expected, found)
    tensors.save(f"{work}/pixels.safetensors", {"pixel_values": pixel_tensor(pixels[:1])})
    found = generate(expanded(prompt), f"--inputs={work}/pixels.safetensors")
    check("generate --inputs", found == expected, found)
    both = [IMAGE, 5, IMAGE, 6]
    found = generate(both, f"--image={work}/a.png", f"--image={work}/b.png")
    expected = greedy(w, both, vectors, 6)
    check("two pictures", found == expected, f"{found}, not {expected}")
    found = generate(both, f"--image={work}/a.png", f"--image={work}/b.png",
                     "--beams=3", count=4)
    greedily = expected[:4]
    expected = beam_search(w, expanded(both), vectors, 3, 4)
    check("beams see two pictures", found == expected != greedily,
          f"{found}, not {expected}")
    found, expected = generate([5, 7, 9]), greedy(w, [5, 7, 9], [], 6)
    check("no picture", found == expected, f"{found}, not {expected}")
    # An image token of a text without pictures is a token.
    found = generate([5, IMAGE, 9])
    table = w.matrix("language_model.model.embed_tokens.weight", VOCAB, WIDTH)
    alone = []
    for _ in range(6):
        ids = [5, IMAGE, 9] + alone
        last = logits(w, ids, [[table[IMAGE]]] * ids.count(IMAGE))[-1]
        alone.append(max(range(VOCAB), key=lambda i: last[i]))
    check("a token alone", found == alone, f"{found}, not {alone}")
    print("failures:", failures)
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
