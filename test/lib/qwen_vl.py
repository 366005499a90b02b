#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Qwen2-VL, Qwen2.5-VL, Qwen3-VL or Qwen3.5 (the last two with experts, too)
with random weights against float64 arithmetic done here, patch by patch and token by token.

  qwen_vl.py ATTUNE WORK 2|2.5|3|3moe|3.5|3.5moe [model]

Logits of two texts with a picture each, one of them padded on its left; greedy
ids behind pictures from PNG files and from tensors, behind two of them, between
texts, in messages, and without any. Leaves the folder WORK/model, a program WORK/see and
pictures for other tests; with `model` it makes the folder and the pictures alone.
"""
import json
import math
import os
import struct
import subprocess
import sys

import llava
import tensors
from decoder_layers import (DIM, HEADS, INNER, VOCAB, WIDTH, Weights, dot, gated,
                            gelu, gelu_tanh, layer_norm, linear, plus, rms_norm,
                            silu, split)
from decoder_hybrids import NEXT, next_layers, separate_parts
from decoder_memories import fused_expert, qwen3_5_mixture

IMAGE, PATCH, MERGE, FRAMES = 37, 4, 2, 2
HEIGHT, LENGTH = 24, 32                        # 6 x 8 patches, 3 x 4 squares
ROWS, COLUMNS = HEIGHT // PATCH, LENGTH // PATCH
GRID = ROWS // MERGE, COLUMNS // MERGE
EACH = GRID[0] * GRID[1]
SEEN, SEEN_HEADS, SEEN_INNER, DEPTH, THETA = 16, 2, 20, 4, 1e6
MEAN, DEVIATION = (0.4, 0.5, 0.3), (0.25, 0.3, 0.2)
SECTIONS = [2, 1, 1]
EXPERTS, ACTIVE, EXPERT = 5, 2, 12

TEXT = {"vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER,
        "num_attention_heads": HEADS, "num_key_value_heads": 2,
        "num_hidden_layers": 3, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
        "hidden_act": "silu", "rope_theta": THETA, "eos_token_id": 2}
VISION = {"depth": DEPTH, "hidden_size": SEEN, "intermediate_size": SEEN_INNER,
          "num_heads": SEEN_HEADS, "out_hidden_size": WIDTH,
          "patch_size": PATCH, "spatial_merge_size": MERGE,
          "temporal_patch_size": FRAMES}
# As the published file has it: keys of the text model among the others.
SECOND = {"image_token_id": IMAGE, "video_token_id": 38,
          "vision_start_token_id": 35, "vision_end_token_id": 36,
          "torch_dtype": "float32", **TEXT, "use_sliding_window": False,
          "rope_scaling": {"type": "mrope", "mrope_section": SECTIONS}}
CONFIGS = {
    "2": {"model_type": "qwen2_vl",
          "architectures": ["Qwen2VLForConditionalGeneration"],
          **SECOND, "vision_token_id": 34, "sliding_window": 128,
          "max_window_layers": 3,
          "vision_config": {
              "depth": DEPTH, "embed_dim": SEEN, "mlp_ratio": SEEN_INNER / SEEN,
              "num_heads": SEEN_HEADS, "in_chans": 3, "hidden_size": WIDTH,
              "patch_size": PATCH, "spatial_merge_size": MERGE,
              "spatial_patch_size": PATCH, "temporal_patch_size": FRAMES}},
    "2.5": {"model_type": "qwen2_5_vl",
            "architectures": ["Qwen2_5_VLForConditionalGeneration"], **SECOND,
            "vision_config": {
                **VISION, "hidden_act": "silu", "in_chans": 3,
                "model_type": "qwen2_5_vl", "window_size": 16,
                "fullatt_block_indexes": [1, 3], "tokens_per_second": 2,
                "spatial_patch_size": PATCH}}}


def third(name, architecture, text=TEXT, **more):
    return {"model_type": name, "architectures": [architecture],
            "image_token_id": IMAGE, "video_token_id": 38,
            "vision_start_token_id": 35, "vision_end_token_id": 36,
            "tie_word_embeddings": False, "torch_dtype": "float32",
            "text_config": {
                **text, "model_type": name + "_text", "head_dim": DIM,
                "attention_bias": False,
                "rope_scaling": {"rope_type": "default", "mrope_interleaved": True,
                                 "mrope_section": SECTIONS}, **more},
            "vision_config": {
                **VISION, "hidden_act": "gelu_pytorch_tanh", "in_channels": 3,
                "model_type": name, "num_position_embeddings": 25,
                "deepstack_visual_indexes": [0, 2] if text is TEXT else []}}


CONFIGS["3"] = third("qwen3_vl", "Qwen3VLForConditionalGeneration")
CONFIGS["3moe"] = third(
    "qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration",
    decoder_sparse_step=1, mlp_only_layers=[2], moe_intermediate_size=EXPERT,
    norm_topk_prob=True, num_experts=EXPERTS, num_experts_per_tok=ACTIVE,
    router_aux_loss_coef=0.001)
# Qwen3.5: half of each head turns, three of its four pairs by places.
TYPES = ["linear_attention", "full_attention"]
NEXT_DIM, NEXT_TURNED = NEXT["head_dim"], 8
NEXT_TEXT = {**NEXT, "max_position_embeddings": 128, "tie_word_embeddings": False,
             "layer_types": TYPES, "eos_token_id": 2}
NEXT_ROPE = {"head_dim": NEXT_DIM, "num_hidden_layers": 2, "rope_scaling": None,
             "rope_parameters": {
                 "rope_type": "default", "rope_theta": THETA,
                 "partial_rotary_factor": NEXT_TURNED / NEXT_DIM,
                 "mrope_interleaved": True, "mrope_section": SECTIONS}}
NEXT_KINDS = ("3.5", "3.5moe")
CONFIGS["3.5"] = third("qwen3_5", "Qwen3_5ForConditionalGeneration", NEXT_TEXT,
                       attn_output_gate=True, mtp_num_hidden_layers=1,
                       mamba_ssm_dtype="float32", **NEXT_ROPE)
CONFIGS["3.5moe"] = third(
    "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", NEXT_TEXT,
    intermediate_size=None, num_experts=6, num_experts_per_tok=2,
    moe_intermediate_size=24, shared_expert_intermediate_size=40, **NEXT_ROPE)
PREPARATION = {
    "image_processor_type": "Qwen2VLImageProcessor", "patch_size": PATCH,
    "merge_size": MERGE, "temporal_patch_size": FRAMES, "min_pixels": 16,
    "max_pixels": 100000, "image_mean": MEAN, "image_std": DEVIATION}


# Each letter is a token.
LETTERS = "abcdefghijklmnopqrstuvwxyz012345678"
SPECIAL = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>", "<|im_end|>"]
TOKENIZER = {
    "version": "1.0", "normalizer": None, "post_processor": None,
    "added_tokens": [{"id": 35 + i, "content": text, "special": True,
                      "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False} for i, text in enumerate(SPECIAL)],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": [],
              "vocab": {c: i for i, c in enumerate(LETTERS)}}}
TEMPLATE = """\
{%- for message in messages %}u{% if message.content is string -%}
{{ message.content }}
{%- else %}{% for part in message.content %}{% if part.type == 'image' -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor -%}
{%- if add_generation_prompt %}a{% endif -%}
"""


def turned(heads, angles):
    """Channels i and i + half of each token turn by angles[token][i]."""
    half = len(heads[0][0]) // 2
    result = []
    for rows in heads:
        result.append([])
        for v, angle in zip(rows, angles):
            low = [v[i] * math.cos(a) - v[i + half] * math.sin(a)
                   for i, a in enumerate(angle)]
            high = [v[i + half] * math.cos(a) + v[i] * math.sin(a)
                    for i, a in enumerate(angle)]
            result[-1].append(low + high)
    return result


def attend(q, k, v, sees):
    group, joined = len(q) // len(k), [[] for _ in q[0]]
    for h, rows in enumerate(q):
        keys, values = k[h // group], v[h // group]
        for m, query in enumerate(rows):
            seen = [n for n in range(len(keys)) if sees(m, n)]
            scores = [dot(query, keys[n]) / math.sqrt(len(query)) for n in seen]
            powers = [math.exp(s - max(scores)) for s in scores]
            joined[m] += [math.fsum(p * values[n][c] for p, n in zip(powers, seen))
                          / math.fsum(powers) for c in range(len(values[0]))]
    return joined


class Sight:
    """The tower. Patches are counted row by row."""

    def __init__(self, w, kind):
        self.w, self.kind, self.third = w, kind, kind[0] == "3"
        self.at = "model.visual." if self.third else "visual."
        self.places = [(r, c) for r in range(ROWS) for c in range(COLUMNS)]
        pairs = SEEN // SEEN_HEADS // 4
        self.angles = [[place * 10000.0 ** (-i / pairs) for place in pair
                        for i in range(pairs)] for pair in self.places]

    def norm(self, name, x):
        function = rms_norm if self.kind == "2.5" else layer_norm
        return function(self.w, self.at + name, x, 1e-6)

    def linear(self, name, x, rows):
        return linear(self.w, self.at + name, x, rows, True)

    def patches(self, pixels):
        name, count = self.at + "patch_embed.proj", 3 * FRAMES * PATCH * PATCH
        x = [[pixels[c][r * PATCH + i][k * PATCH + j] for c in range(3)
              for _ in range(FRAMES) for i in range(PATCH) for j in range(PATCH)]
             for r, k in self.places]
        x = linear(self.w, name, x, SEEN, self.third)
        raw = self.w.made[name + ".weight"][1]
        self.w.made[name + ".weight"] = ([SEEN, 3, FRAMES, PATCH, PATCH], raw)
        assert len(raw) == 4 * SEEN * count
        return x

    def positions(self):
        """A table of 5 x 5 places, its corners at those of the picture."""
        table = self.w.matrix(self.at + "pos_embed.weight", 25, SEEN)
        result = []
        for r, c in self.places:
            y, x = r * 4 / (ROWS - 1), c * 4 / (COLUMNS - 1)
            mixed = [0.0] * SEEN
            for dy in (0, 1):
                for dx in (0, 1):
                    top, left = int(y) + dy, int(x) + dx
                    part = (1 - abs(y - top)) * (1 - abs(x - left))
                    row = table[min(top, 4) * 5 + min(left, 4)]
                    mixed = [a + part * b for a, b in zip(mixed, row)]
            result.append(mixed)
        return result

    def block(self, i, x):
        at = f"blocks.{i}."
        side = 16 // MERGE // PATCH * MERGE    # patches of a window
        whole = self.kind != "2.5" or i in (1, 3)

        def sees(m, n):
            (a, b), (c, d) = self.places[m], self.places[n]
            return whole or (a // side, b // side) == (c // side, d // side)
        joined = self.linear(at + "attn.qkv", self.norm(at + "norm1", x), 3 * SEEN)
        q, k, v = (split([row[n * SEEN:(n + 1) * SEEN] for row in joined],
                         SEEN_HEADS) for n in range(3))
        seen = attend(turned(q, self.angles), turned(k, self.angles), v, sees)
        x = plus(x, self.linear(at + "attn.proj", seen, SEEN))
        h = self.norm(at + "norm2", x)
        if self.third:
            h = self.linear(at + "mlp.linear_fc1", h, SEEN_INNER)
            h = [[gelu_tanh(a) for a in row] for row in h]
            return plus(x, self.linear(at + "mlp.linear_fc2", h, SEEN))
        if self.kind == "2":
            h = self.linear(at + "mlp.fc1", h, SEEN_INNER)
            h = [[llava.quick_gelu(a) for a in row] for row in h]
            return plus(x, self.linear(at + "mlp.fc2", h, SEEN))
        gate = self.linear(at + "mlp.gate_proj", h, SEEN_INNER)
        up = self.linear(at + "mlp.up_proj", h, SEEN_INNER)
        h = [[silu(a) * b for a, b in zip(*rows)] for rows in zip(gate, up)]
        return plus(x, self.linear(at + "mlp.down_proj", h, SEEN))

    def merge(self, at, x, last=False):
        """Squares of patches as one; `last`: the norm is theirs."""
        norm = at + ("norm" if self.third else "ln_q")
        if not last:
            x = self.norm(norm, x)
        x = [sum((x[(r * MERGE + i) * COLUMNS + c * MERGE + j]
                  for i in range(MERGE) for j in range(MERGE)), [])
             for r in range(GRID[0]) for c in range(GRID[1])]
        if last:
            x = self.norm(norm, x)
        first, second = (("linear_fc1", "linear_fc2") if self.third
                         else ("mlp.0", "mlp.2"))
        x = self.linear(at + first, x, SEEN * MERGE * MERGE)
        x = [[gelu(a) for a in row] for row in x]
        return self.linear(at + second, x, WIDTH)

    def see(self, pixels):
        """What the text model gets of one picture: at first, and behind its
        first blocks."""
        x = self.patches(pixels)
        if self.third:
            x = plus(x, self.positions())
        deep = []
        for i in range(DEPTH):
            x = self.block(i, x)
            if self.kind in ("3", "3moe") and i in (0, 2):
                deep.append(self.merge(f"deepstack_merger_list.{len(deep)}.", x,
                                       last=True))
        return self.merge("merger.", x), deep


def positions_of(ids, seeing):
    """Number, row and column of each token: a picture's go on from its first
    one, and the text behind the largest of them."""
    result, at, place = [], 0, 0
    for t in ids:
        if not seeing or t != IMAGE:
            result.append((at, at, at))
            at += 1
            continue
        result.append((at, at + place // GRID[1], at + place % GRID[1]))
        place += 1
        if place == EACH:
            at, place = at + max(GRID), 0
    return result


def axis_of(pair, kind):
    numbers, rows, columns = SECTIONS
    if kind[0] == "2":
        return 0 if pair < numbers else 1 if pair < numbers + rows else 2
    if pair % 3 == 1 and pair < 3 * rows:
        return 1
    return 2 if pair % 3 == 2 and pair < 3 * columns else 0


def mixture(w, at, x):
    """Of each token the likeliest experts, whose weights are made to sum to 1.
    Matrices of all experts are one tensor, [in, out] each."""
    both = w.vector(at + "experts.gate_up_proj", EXPERTS * WIDTH * 2 * EXPERT)
    down = w.vector(at + "experts.down_proj", EXPERTS * EXPERT * WIDTH)
    for name, shape in (("gate_up_proj", [EXPERTS, WIDTH, 2 * EXPERT]),
                        ("down_proj", [EXPERTS, EXPERT, WIDTH])):
        w.made[f"{at}experts.{name}"] = (shape, w.made[f"{at}experts.{name}"][1])
    result = []
    for v, scores in zip(x, linear(w, at + "gate", x, EXPERTS)):
        powers = [math.exp(s - max(scores)) for s in scores]
        chosen = sorted(range(EXPERTS), key=lambda e: -powers[e])[:ACTIVE]
        total, row = math.fsum(powers[e] for e in chosen), [0.0] * WIDTH
        for e in chosen:
            def column(c, stack, height, width):
                first = e * height * width
                return stack[first + c:first + height * width:width]
            inner = [silu(dot(v, column(c, both, WIDTH, 2 * EXPERT)))
                     * dot(v, column(EXPERT + c, both, WIDTH, 2 * EXPERT))
                     for c in range(EXPERT)]
            row = [old + powers[e] / total * dot(inner, column(c, down, EXPERT, WIDTH))
                   for c, old in enumerate(row)]
        result.append(row)
    return result


def next_logits(w, kind, ids, x, angles, base):
    """The text model of Qwen3.5."""
    def turn_heads(heads):
        first = turned([[v[:NEXT_TURNED] for v in rows] for rows in heads], angles)
        return [[a + v[NEXT_TURNED:] for a, v in zip(*pair)]
                for pair in zip(first, heads)]

    def feed(i, at, x):
        if kind == "3.5":
            return gated(w, at, x, silu)
        return qwen3_5_mixture(w, at, x, lambda w, at, e, x: fused_expert(
            w, at, e, 6, x, 24))
    return next_layers(w, x, base, TYPES, separate_parts, turn_heads, feed)


def logits(w, kind, ids, pictures):
    base = "model." if kind[0] == "2" else "model.language_model."
    table = w.matrix(base + "embed_tokens.weight", VOCAB, WIDTH)
    rows = iter([row for first, _ in pictures for row in first])
    x = [next(rows) if pictures and t == IMAGE else table[t] for t in ids]
    channels = NEXT_TURNED if kind in NEXT_KINDS else DIM
    angles = [[where[axis_of(i, kind)] * THETA ** (-2 * i / channels)
               for i in range(channels // 2)]
              for where in positions_of(ids, bool(pictures))]
    if kind in NEXT_KINDS:
        return next_logits(w, kind, ids, x, angles, base)
    for i in range(3):
        at = f"{base}layers.{i}."
        h = rms_norm(w, at + "input_layernorm", x)
        bias = kind[0] == "2"
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", h, heads * DIM, bias),
                         heads) for n, heads in (("q", HEADS), ("k", 2), ("v", 2)))
        if kind[0] == "3":
            q, k = ([rms_norm(w, f"{at}self_attn.{n}_norm", rows) for rows in heads]
                    for n, heads in (("q", q), ("k", k)))
        seen = attend(turned(q, angles), turned(k, angles), v,
                      lambda m, n: n <= m)
        x = plus(x, linear(w, at + "self_attn.o_proj", seen, WIDTH))
        h = rms_norm(w, at + "post_attention_layernorm", x)
        x = plus(x, mixture(w, at + "mlp.", h) if kind == "3moe" and i < 2
                 else gated(w, at + "mlp.", h, silu))
        if pictures and kind[0] == "3" and i < 2:
            rows = iter([row for _, deep in pictures for row in deep[i]])
            x = [plus([v], [next(rows)])[0] if t == IMAGE else v
                 for t, v in zip(ids, x)]
    return linear(w, "lm_head", rms_norm(w, base + "norm", x), VOCAB)


def expanded(ids):
    return [t for i in ids for t in ([i] * EACH if i == IMAGE else [i])]


def greedy(w, kind, ids, pictures, count=5):
    ids, made = expanded(ids) if pictures else list(ids), []
    for _ in range(count):
        last = logits(w, kind, ids + made, pictures)[-1]
        # That token would be another one where a picture could be.
        made.append(max(range(VOCAB), key=lambda i: last[i]))
    return made


def make_picture(path, rng):
    rows = [[rng.randrange(256) for _ in range(3 * LENGTH)] for _ in range(HEIGHT)]
    with open(path, "wb") as file:
        file.write(llava.png(LENGTH, HEIGHT, rows))
    return [[[(row[3 * x + c] / 255 - MEAN[c]) / DEVIATION[c]
              for x in range(LENGTH)] for row in rows] for c in range(3)]


def pixel_tensor(pictures):
    numbers = llava.flatten([[plane] * FRAMES for one in pictures for plane in one])
    return ("F32", [len(pictures), 3 * FRAMES, HEIGHT, LENGTH],
            struct.pack(f"<{len(numbers)}f", *numbers))


def compare_forward(see, work, w, kind, pixels, seen):
    """Two texts with a picture each; the shorter one begins with padding."""
    texts = [[5, IMAGE, 7, 9, 11, 3], [IMAGE, 8, 6]]
    texts = [expanded(text) for text in texts]
    longest = max(map(len, texts))
    tensors.save(f"{work}/in.safetensors", {
        "input_ids": llava.integer_tensor(
            [[0] * (longest - len(t)) + t for t in texts]),
        "attention_mask": llava.integer_tensor(
            [[0] * (longest - len(t)) + [1] * len(t) for t in texts]),
        "pixel_values": pixel_tensor(pixels)})
    subprocess.run([see, "run", "--inputs", f"{work}/in.safetensors",
                    "--outputs", f"{work}/out.safetensors"], check=True)
    found = tensors.numbers(tensors.load(f"{work}/out.safetensors")["logits"])
    worst, limit = 0.0, 2e-5
    for row, (text, one) in enumerate(zip(texts, seen)):
        for t, expected in enumerate(logits(w, kind, text, [one])):
            limit = max(limit, *(2e-5 * abs(x) for x in expected))
            at = (row * longest + longest - len(text) + t) * VOCAB
            worst = max(worst, *(abs(a - b) for a, b in zip(
                found[at:at + VOCAB], expected)))
    print(f"  {worst:.2e} of {limit:.2e}")
    llava.check("logits", worst < limit, f"{worst} apart")


def make_model(work, kind):
    folder = f"{work}/model"
    os.makedirs(folder, exist_ok=True)
    w = Weights({"2": 14, "2.5": 12, "3": 13, "3moe": 15,
                 "3.5": 17, "3.5moe": 21}[kind])
    sight = Sight(w, kind)
    pixels = [make_picture(f"{work}/{name}.png", w.random) for name in "ab"]
    seen = [sight.see(one) for one in pixels]
    logits(w, kind, [1], [])  # makes the tensors of the text model
    w.save(f"{folder}/model.safetensors")
    for name, content in (("config", CONFIGS[kind]), ("tokenizer", TOKENIZER),
                          ("preprocessor_config", PREPARATION),
                          ("tokenizer_config", {"chat_template": TEMPLATE})):
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(content, file)
    return w, pixels, seen


def main():
    attune, work, kind = sys.argv[1:4]
    see = f"{work}/see"
    w, pixels, seen = make_model(work, kind)
    if sys.argv[4:] == ["model"]:
        return 0
    subprocess.run([attune, "compile", f"{work}/model", "-o", see,
                    f"--image-size={HEIGHT}x{LENGTH}"], check=True)
    compare_forward(see, work, w, kind, pixels, seen)

    def generate(prompt, *options):
        if not isinstance(prompt, str):
            prompt = "--prompt-ids=" + ",".join(map(str, prompt))
        done = subprocess.run(
            [see, "generate", prompt, "--greedy", "--ignore-eos", "--max-new-tokens=5", "--format=ids", *options],
            capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        return [int(i) for i in done.stdout.split(",")]

    def compare(name, ids, pictures, *options):
        expected = greedy(w, kind, ids, pictures)
        found = generate(ids, *options)
        llava.check(name, found == expected, f"{found}, not {expected}")
    prompt, first = [5, IMAGE, 7, 9], f"--image={work}/a.png"
    compare("generate --image", prompt, seen[:1], first)
    compare("another picture", prompt, seen[1:], f"--image={work}/b.png")
    tensors.save(f"{work}/pixels.safetensors", {"pixel_values": pixel_tensor(pixels[:1])})
    found = generate(expanded(prompt), f"--inputs={work}/pixels.safetensors")
    llava.check("generate --inputs", found == greedy(w, kind, prompt, seen[:1]), found)
    compare("two pictures", [IMAGE, 5, 4, IMAGE, 6], seen, first,
            f"--image={work}/b.png")
    compare("no picture", [5, 7, 9], [])
    compare("a token alone", [5, IMAGE, 9], [])
    # u, the picture or what the message says of it, the message, a.
    for name, message, ids in (
            ("a message", "hey", [20, 35, IMAGE, 36, 7, 4, 24, 0]),
            ("a message with a token", "he<|image_pad|>y",
             [20, 7, 4, IMAGE, 24, 0])):
        expected = greedy(w, kind, ids, seen[:1])
        found = generate(f"--prompt={message}", "--chat", first)
        llava.check(name, found == expected, f"{found}, not {expected}")
    print("failures:", llava.failures)
    return llava.failures != 0


if __name__ == "__main__":
    sys.exit(main())
