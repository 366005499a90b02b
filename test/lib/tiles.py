#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small SmolVLM (Idefics 3), InternVL or LLaVA-NeXT with random weights against
float64 arithmetic done here: pictures are resized, cut into tiles and written into
texts here as their processors do it.

  tiles.py ATTUNE WORK idefics3|smolvlm|internvl|internvl3_5|llava_next [model]

Logits of two texts, one of them padded on its left; greedy ids behind pictures
from PNG files and from tensors, behind two of them, in messages, and without any.
Of LLaVA-NeXT tensors do not say how large pictures were: those are left out. With
`model` it makes the folder and the pictures alone.
Leaves the folder WORK/model, a program WORK/see and pictures for other tests.
"""
import json
import math
import os
import struct
import subprocess
import sys

import llava
import tensors
from decoder_layers import (DIM, HEADS, INNER, VOCAB, WIDTH, Weights, attend, gated,
                            gelu, gelu_tanh, layer_norm, linear, plus, rms_norm,
                            silu, split, turn)

KIND = sys.argv[3]
INTERN, NEXT = KIND.startswith("internvl"), KIND == "llava_next"
PATCH, SIDE, SQUARE = 4, 3 if NEXT else 4, 1 if NEXT else 2
EDGE, EACH = PATCH * SIDE, (SIDE // SQUARE) ** 2
# Heights and widths that a LLaVA-NeXT's pictures may have in tiles.
PINPOINTS = [[h * EDGE, w * EDGE] for h, w in ((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))]
SEEN, SEEN_HEADS, SEEN_INNER, DEPTH = 16, 2, 20, 2
LONGEST, MOST = 3 * EDGE, 6
MEAN, DEVIATION = (0.4, 0.5, 0.3), (0.25, 0.3, 0.2)
# What merges (a row's end before the whole) is one token.
LETTERS, LINE, LINES, FAKE, WHOLE, ROWS, START, END = range(20), 20, 21, 23, 24, 25, 34, 35
IMAGE = 36 if INTERN else 22

TEXT = {"hidden_size": WIDTH, "intermediate_size": INNER,
        "vocab_size": VOCAB, "num_attention_heads": HEADS,
        "num_key_value_heads": 2, "num_hidden_layers": 2,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5}
SIZES = {"hidden_size": SEEN, "intermediate_size": SEEN_INNER, "image_size": EDGE,
         "patch_size": PATCH, "num_attention_heads": SEEN_HEADS,
         "num_hidden_layers": DEPTH}
# Of the training code's keys in text_config none is the class's.
IDEFICS3 = {
    "model_type": "idefics3", "architectures": ["Idefics3ForConditionalGeneration"],
    "image_token_id": IMAGE, "scale_factor": SQUARE, "tie_word_embeddings": False,
    "use_cache": True, "eos_token_id": 2, "torch_dtype": "float32",
    "text_config": {**TEXT, "model_type": "llama", "is_llama_config": True,
                    "architectures": ["VLlama3ForCausalLM"],
                    "_flash_attn_2_enabled": True, "pixel_shuffle_factor": 4,
                    "qk_layer_norms": True, "rope_interleaved": True,
                    "use_resampler": True, "perceiver_config": {"a": 1}},
    "vision_config": {**SIZES, "model_type": "idefics3",
                      "max_image_size": {"longest_edge": EDGE},
                      "size": {"longest_edge": LONGEST}, "use_base_siglip": True}}
INTERNVL = {
    "model_type": "internvl", "architectures": ["InternVLForConditionalGeneration"],
    "image_token_id": IMAGE, "downsample_ratio": 1 / SQUARE, "eos_token_id": 2,
    "image_seq_length": EACH, "projector_hidden_act": "gelu",
    "vision_feature_layer": -1, "vision_feature_select_strategy": "default",
    "torch_dtype": "float32", "tie_word_embeddings": False,
    "text_config": {**TEXT, "model_type": "qwen2"},
    "vision_config": {
        **SIZES, "model_type": "internvl_vision", "image_size": [EDGE, EDGE],
        "patch_size": [PATCH, PATCH], "attention_bias": True, "use_qk_norm": False,
        "norm_type": "layer_norm", "layer_norm_eps": 1e-6, "hidden_act": "gelu",
        "layer_scale_init_value": 0.1, "use_mask_token": False,
        "use_absolute_position_embeddings": True, "use_mean_pooling": True,
        "hidden_dropout_prob": 0.0, "projection_dropout": 0.0}}
CONFIGS = {
    "idefics3": IDEFICS3,
    "smolvlm": {**IDEFICS3, "model_type": "smolvlm", "max_frames": 64,
                "architectures": ["SmolVLMForConditionalGeneration"],
                "vision_config": {**IDEFICS3["vision_config"],
                                  "model_type": "smolvlm_vision"}},
    "internvl": INTERNVL,
    # The tower of the largest ones, before a Qwen 3.
    "internvl3_5": {
        **INTERNVL, "text_config": {**TEXT, "model_type": "qwen3", "head_dim": DIM},
        "vision_config": {**INTERNVL["vision_config"], "norm_type": "rms_norm",
                          "attention_bias": False, "use_qk_norm": True,
                          "use_mean_pooling": False}},
    "llava_next": {
        **llava.CONFIG, "model_type": "llava_next", "image_token_index": IMAGE,
        "architectures": ["LlavaNextForConditionalGeneration"],
        "image_grid_pinpoints": PINPOINTS, "use_image_newline_parameter": True,
        "tie_word_embeddings": False,
        "text_config": {**TEXT, "model_type": "llama"}}}
PREPARATION = {"do_resize": True, "do_rescale": True, "do_convert_rgb": True,
               "rescale_factor": 1 / 255, "do_normalize": True,
               "image_mean": MEAN, "image_std": DEVIATION}
if NEXT:
    PREPARATION.update({
        "image_processor_type": "LlavaNextImageProcessor", "resample": 3,
        "size": {"shortest_edge": EDGE}, "do_center_crop": True, "do_pad": True,
        "crop_size": {"height": EDGE, "width": EDGE}, "aspect_ratio_setting": "anyres",
        "image_grid_pinpoints": PINPOINTS, "processor_class": "LlavaNextProcessor"})
elif INTERN:
    PREPARATION.update({
        "image_processor_type": "GotOcr2ImageProcessorFast", "resample": 3,
        "size": {"height": EDGE, "width": EDGE}, "crop_to_patches": False,
        "min_patches": 1, "max_patches": MOST, "crop_size": None,
        "processor_class": "InternVLProcessor"})
else:
    name = "Idefics3" if KIND == "idefics3" else "SmolVLM"
    PREPARATION.update({
        "image_processor_type": name + "ImageProcessor", "resample": 1,
        "do_image_splitting": True, "do_pad": True,
        "max_image_size": {"longest_edge": EDGE},
        "size": {"longest_edge": LONGEST}, "processor_class": name + "Processor"})

SPECIAL = {22: "<image>", FAKE: "<fake_token_around_image>", WHOLE: "<global-img>",
           START: "<img>", END: "</img>", 36: "<IMG_CONTEXT>",
           **{ROWS + 3 * r + c: f"<row_{r + 1}_col_{c + 1}>"
              for r in range(3) for c in range(3)}}
TOKENIZER = {
    "version": "1.0", "normalizer": None, "post_processor": None,
    "added_tokens": [{"id": i, "content": text, "special": True,
                      "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False} for i, text in SPECIAL.items()],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["\u010a \u010a"],
              "vocab": {**{chr(97 + i): i for i in LETTERS}, "\u010a": LINE,
                        "\u010a\u010a": LINES}}}
TEMPLATE = """\
{%- for message in messages %}s{% for part in message.content -%}
{% if part.type == 'image' %}{{ 'TOKEN' }}{% else %}{{ part.text }}{% endif -%}
{% endfor %}{% endfor %}{% if add_generation_prompt %}a{% endif -%}
""".replace("TOKEN", SPECIAL[IMAGE])


def lanczos(x):
    def sinc(x):
        return math.sin(math.pi * x) / (math.pi * x) if x else 1.0
    return sinc(x) * sinc(x / 3) if -3 <= x < 3 else 0.0


def bicubic(x):
    x = abs(x)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


def shrunk(row, size):
    """A row of bytes at another size: Pillow's sums of weights of 22 bits."""
    if len(row) == size:
        return row
    kernel, reach = (bicubic, 2) if INTERN or NEXT else (lanczos, 3)
    step = len(row) / size
    wide = max(step, 1.0)
    made = []
    for i in range(size):
        center = (i + 0.5) * step
        first = max(int(center - reach * wide + 0.5), 0)
        last = min(int(center + reach * wide + 0.5), len(row))
        weights = [kernel((x - center + 0.5) / wide) for x in range(first, last)]
        total = sum(weights)
        whole = [int(math.copysign(0.5, k) + k / total * (1 << 22)) for k in weights]
        value = (1 << 21) + sum(k * row[x] for k, x in zip(whole, range(first, last)))
        made.append(min(max(value >> 22, 0), 255))
    return made


def resized(picture, width, height):
    """Of [channel][row][column]: along rows, then along columns."""
    result = []
    for plane in picture:
        rows = [shrunk(row, width) for row in plane]
        columns = [shrunk(list(column), height) for column in zip(*rows)]
        result.append([list(row) for row in zip(*columns)])
    return result


def grid_by_shape(width, height):
    """Columns and rows: the grid with the nearest shape."""
    grids = [(c, r) for c in range(1, MOST + 1) for r in range(1, MOST + 1)
             if c * r <= MOST]
    best, nearest = (1, 1), math.inf
    for grid in sorted(grids, key=lambda g: g[0] * g[1]):
        distance = abs(width / height - grid[0] / grid[1])
        fills = width * height > 0.5 * EDGE * EDGE * grid[0] * grid[1]
        if distance < nearest or (distance == nearest and fills):
            best, nearest = grid, distance
    return best


def size_of_list(width, height):
    """Of the sizes that are listed the one that keeps the most pixels, and then
    has the fewest others; height first."""
    def rank(size):
        scale = min(size[1] / width, size[0] / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - size[0] * size[1]
    return max(PINPOINTS, key=rank)


def in_the_middle(picture, size):
    """As large as fits into a size, black around it."""
    height, width = len(picture[0]), len(picture[0][0])
    if size[1] / width < size[0] / height:
        wide, high = size[1], min(math.ceil(height * (size[1] / width)), size[0])
    else:
        wide, high = min(math.ceil(width * (size[0] / height)), size[1]), size[0]
    left, top = (size[1] - wide) // 2, (size[0] - high) // 2
    result = [[[0] * size[1] for _ in range(size[0])] for _ in range(3)]
    for plane, part in zip(result, resized(picture, wide, high)):
        for y, row in enumerate(part):
            plane[top + y][left:left + wide] = row
    return result


def cut_picture(picture):
    """Its rows and columns of tiles (0, 0: none), and all of them, the whole
    picture last."""
    height, width = len(picture[0]), len(picture[0][0])
    small = picture
    if NEXT:
        picture = in_the_middle(picture, size_of_list(width, height))
        rows, columns = len(picture[0]) // EDGE, len(picture[0][0]) // EDGE
    elif INTERN:
        columns, rows = grid_by_shape(width, height)
    else:
        shape = width / height
        if width >= height:
            width, height = LONGEST, int(LONGEST / shape)
            height += height % 2
        else:
            width, height = int(LONGEST * shape), LONGEST
            width += width % 2
        picture = resized(picture, width, height)
        shape = width / height
        if width >= height:
            columns = math.ceil(width / EDGE)
            rows = math.ceil(int(columns * EDGE / shape) / EDGE)
        else:
            rows = math.ceil(height / EDGE)
            columns = math.ceil(int(rows * EDGE * shape) / EDGE)
    large = resized(picture, columns * EDGE, rows * EDGE)
    tiles = [[[row[c * EDGE:(c + 1) * EDGE] for row in plane[r * EDGE:(r + 1) * EDGE]]
              for plane in large] for r in range(rows) for c in range(columns)]
    if len(tiles) == 1 and not NEXT:
        return (0, 0), tiles
    whole = small if INTERN or NEXT else large
    return (rows, columns), tiles + [resized(whole, EDGE, EDGE)]


def numbers_of(tile):
    return [[[(x / 255 - m) / d for x in row] for row in plane]
            for plane, m, d in zip(tile, MEAN, DEVIATION)]


def patches(w, name, pixels):
    x = [[pixels[c][r * PATCH + i][k * PATCH + j] for c in range(3)
          for i in range(PATCH) for j in range(PATCH)]
         for r in range(SIDE) for k in range(SIDE)]
    x = linear(w, name, x, SEEN, True)
    w.made[name + ".weight"] = ([SEEN, 3, PATCH, PATCH],
                                w.made[name + ".weight"][1])
    return x


def siglip(w, pixels):
    at = "model.vision_model."
    x = patches(w, at + "embeddings.patch_embedding", pixels)
    x = plus(x, w.matrix(at + "embeddings.position_embedding.weight",
                         SIDE * SIDE, SEEN))
    for i in range(DEPTH):
        own = f"{at}encoder.layers.{i}."
        h = layer_norm(w, own + "layer_norm1", x, 1e-6)
        q, k, v = (split(linear(w, f"{own}self_attn.{n}_proj", h, SEEN, True),
                         SEEN_HEADS) for n in "qkv")
        x = plus(x, linear(w, own + "self_attn.out_proj",
                           llava.see_all(q, k, v), SEEN, True))
        h = layer_norm(w, own + "layer_norm2", x, 1e-6)
        h = linear(w, own + "mlp.fc1", h, SEEN_INNER, True)
        h = [[gelu_tanh(a) for a in row] for row in h]
        x = plus(x, linear(w, own + "mlp.fc2", h, SEEN, True))
    return layer_norm(w, at + "post_layernorm", x, 1e-6)


def intern_tower(w, pixels):
    """Without the class token's row."""
    at, own = "model.vision_tower.", CONFIGS[KIND]["vision_config"]
    bias, norms = own["attention_bias"], own["use_qk_norm"]
    norm = layer_norm if own["norm_type"] == "layer_norm" else rms_norm
    x = patches(w, at + "embeddings.patch_embeddings.projection", pixels)
    first = w.vector(at + "embeddings.cls_token", SEEN)
    w.made[at + "embeddings.cls_token"] = (
        [1, 1, SEEN], w.made[at + "embeddings.cls_token"][1])
    table = at + "embeddings.position_embeddings"
    x = plus([first] + x, w.matrix(table, SIDE * SIDE + 1, SEEN))
    w.made[table] = ([1, SIDE * SIDE + 1, SEEN], w.made[table][1])
    for i in range(DEPTH):
        own = f"{at}encoder.layer.{i}."
        h = norm(w, own + "layernorm_before", x, 1e-6)
        q, k, v = (linear(w, f"{own}attention.{n}_proj", h, SEEN, bias) for n in "qkv")
        if norms:
            q = rms_norm(w, own + "attention.q_norm", q)
            k = rms_norm(w, own + "attention.k_norm", k)
        h = llava.see_all(*(split(rows, SEEN_HEADS) for rows in (q, k, v)))
        h = linear(w, own + "attention.projection_layer", h, SEEN, True)
        x = plus(x, grown_by(w, own + "lambda_1", h))
        h = linear(w, own + "mlp.fc1", norm(w, own + "layernorm_after", x, 1e-6),
                   SEEN_INNER, True)
        h = linear(w, own + "mlp.fc2", [[gelu(a) for a in row] for row in h], SEEN, True)
        x = plus(x, grown_by(w, own + "lambda_2", h))
    if not CONFIGS[KIND]["vision_config"]["use_mean_pooling"]:
        x = layer_norm(w, at + "layernorm", x, 1e-6)
    return x[1:]


def grown_by(w, name, x):
    factors = w.vector(name, SEEN)
    return [[a * b for a, b in zip(row, factors)] for row in x]


def tile_vectors(w, pixels):
    """What the text model reads of one tile [3][row][column]."""
    if NEXT:
        return llava.picture_vectors(w, pixels)
    x = (intern_tower if INTERN else siglip)(w, pixels)
    # The places of a square side by side, row by row.
    x = [[value for i in range(SQUARE) for j in range(SQUARE)
          for value in x[(r + i) * SIDE + c + j]]
         for r in range(0, SIDE, SQUARE) for c in range(0, SIDE, SQUARE)]
    if not INTERN:
        return linear(w, "model.connector.modality_projection.proj", x, WIDTH)
    at = "model.multi_modal_projector."
    x = linear(w, at + "linear_1", layer_norm(w, at + "layer_norm", x, 1e-5), WIDTH, True)
    return linear(w, at + "linear_2", [[gelu(a) for a in row] for row in x], WIDTH, True)


class Shown:
    """A picture as the model sees it."""

    def __init__(self, w, picture):
        (self.rows, self.columns), tiles = cut_picture(picture)
        self.pixels = [numbers_of(tile) for tile in tiles]
        seen = [tile_vectors(w, one) for one in self.pixels]
        self.vectors = [row for one in seen for row in one]
        if NEXT:
            line = w.vector("image_newline", WIDTH)
            self.vectors = seen[-1] + self.in_rows(
                seen, len(picture[0][0]), len(picture[0]), line)

    def in_rows(self, seen, width, height, line):
        """All places of the tiles that show the picture, and what ends rows."""
        rows, columns, left, top = self.rows * SIDE, self.columns * SIDE, 0, 0
        if width / height > columns / rows:
            top = (rows - int(round(height * (columns / width), 7))) // 2
        else:
            left = (columns - int(round(width * (rows / height), 7))) // 2
        vectors = []
        for y in range(top, rows - top):
            vectors += [seen[y // SIDE * self.columns + x // SIDE][
                y % SIDE * SIDE + x % SIDE] for x in range(left, columns - left)]
            vectors.append(line)
        return vectors

    def tokens(self):
        if NEXT:
            return [IMAGE] * len(self.vectors)
        if INTERN:
            return [START] + [IMAGE] * len(self.vectors) + [END]
        ids = []
        for r in range(self.rows):
            for c in range(self.columns):
                ids += [FAKE, ROWS + 3 * r + c] + [IMAGE] * EACH
            ids.append(LINE)
        if self.rows:
            ids[-1] = LINES
        return ids + [FAKE, WHOLE] + [IMAGE] * EACH + [FAKE]


def logits(w, ids, pictures, last=False):
    """Of every token, or the last one; `pictures` are those that it shows."""
    base = ("model.language_model." if INTERN else "language_model.model." if NEXT
            else "model.text_model.")
    table = w.matrix(base + "embed_tokens.weight", VOCAB, WIDTH)
    rows = iter([row for one in pictures for row in one.vectors])
    x = [next(rows, table[t]) if t == IMAGE else table[t] for t in ids]
    for i in range(2):
        at = f"{base}layers.{i}."
        h = rms_norm(w, at + "input_layernorm", x, 1e-5)
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", h, count * DIM,
                                KIND == "internvl"), count)
                   for n, count in (("q", HEADS), ("k", 2), ("v", 2)))
        if KIND == "internvl3_5":
            q = [rms_norm(w, at + "self_attn.q_norm", head, 1e-5) for head in q]
            k = [rms_norm(w, at + "self_attn.k_norm", head, 1e-5) for head in k]
        x = plus(x, linear(w, at + "self_attn.o_proj",
                           attend(turn(q), turn(k), v), WIDTH))
        h = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        x = plus(x, gated(w, at + "mlp.", h, silu))
    return linear(w, "language_model.lm_head" if NEXT else "lm_head",
                  rms_norm(w, base + "norm", x[-1:] if last else x, 1e-5), VOCAB)


def expanded(ids, pictures):
    rest = iter(pictures)
    return [t for i in ids
            for t in (next(rest).tokens() if i == IMAGE and pictures else [i])]


known = {}  # what is asked for in several ways


def greedy(w, ids, pictures, forced=None, count=2):
    """The likeliest ids, or a certain one, and the logarithms of their shares."""
    key = (forced, *ids, *map(id, pictures))
    if key in known:
        return known[key]
    ids, made, shares = expanded(ids, pictures), [], []
    for _ in range(count):
        last = logits(w, ids + made, pictures, last=True)[0]
        likeliest = max(range(VOCAB), key=lambda i: last[i])
        made.append(likeliest if forced is None else forced)
        shares.append(last[made[-1]] - last[likeliest] - math.log(
            math.fsum(math.exp(x - max(last)) for x in last)))
    known[key] = made, shares
    return made, shares


def make_picture(path, rng, width, height):
    """Smooth enough that filters matter, and of every brightness."""
    planes = [[[rng.randrange(256) for _ in range(width)] for _ in range(height)]
              for _ in range(3)]
    with open(path, "wb") as file:
        file.write(llava.png(width, height, [
            [planes[c][y][x] for x in range(width) for c in range(3)]
            for y in range(height)]))
    return planes


def pixel_tensor(pictures):
    tiles = [tile for one in pictures for tile in one.pixels]
    flat = llava.flatten(tiles)
    return "F32", [len(tiles), 3, EDGE, EDGE], struct.pack(f"<{len(flat)}f", *flat)


def compare_forward(see, work, w, shown):
    """Two texts with a picture each; the shorter one begins with padding."""
    texts = [expanded([5, IMAGE, 7, 9, 11, 3], shown[:1]),
             expanded([IMAGE, 8, 6], shown[1:2])]
    longest = max(map(len, texts))
    tensors.save(f"{work}/in.safetensors", {
        "input_ids": llava.integer_tensor(
            [[0] * (longest - len(t)) + t for t in texts]),
        "attention_mask": llava.integer_tensor(
            [[0] * (longest - len(t)) + [1] * len(t) for t in texts]),
        "pixel_values": pixel_tensor(shown[:2])})
    subprocess.run([see, "run", "--inputs", f"{work}/in.safetensors",
                    "--outputs", f"{work}/out.safetensors"], check=True)
    found = tensors.numbers(tensors.load(f"{work}/out.safetensors")["logits"])
    # A few hundred roundings of f32 on the way to each number.
    worst, limit = 0.0, 2e-5
    for row, (text, one) in enumerate(zip(texts, shown)):
        for t, expected in enumerate(logits(w, text, [one])):
            limit = max(limit, *(2e-5 * abs(x) for x in expected))
            at = (row * longest + longest - len(text) + t) * VOCAB
            worst = max(worst, *(abs(a - b) for a, b in zip(
                found[at:at + VOCAB], expected)))
    print(f"  {worst:.2e} of {limit:.2e}")
    llava.check("logits", worst < limit, f"{worst} apart")


def make_model(work):
    folder = f"{work}/model"
    os.makedirs(folder, exist_ok=True)
    w = Weights(51 + [*CONFIGS].index(KIND))
    shown = [Shown(w, make_picture(f"{work}/{name}.png", w.random, *size))
             for name, size in (("a", (20, 13)), ("b", (9, 22)), ("c", (12, 12)))]
    logits(w, [1], [])  # makes the tensors of the text model
    w.save(f"{folder}/model.safetensors")
    for name, content in (
            ("config", CONFIGS[KIND]), ("tokenizer", TOKENIZER),
            ("preprocessor_config", PREPARATION),
            ("tokenizer_config", {"chat_template": TEMPLATE})):
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(content, file)
    return w, shown


def main():
    attune, work = sys.argv[1:3]
    see = f"{work}/see"
    w, shown = make_model(work)
    if sys.argv[4:] == ["model"]:
        return 0
    print("tiles:", *(f"{one.rows}x{one.columns}" for one in shown))
    subprocess.run([attune, "compile", f"{work}/model", "-o", see], check=True)
    if not NEXT:
        compare_forward(see, work, w, shown)

    def compare(name, ids, pictures, *options, prompt=None, forced=None):
        prompt = prompt or "--prompt-ids=" + ",".join(map(str, ids))
        done = subprocess.run(
            [see, "generate", prompt, "--greedy", "--ignore-eos",
             "--max-new-tokens=2", "--format=json", "--logprobs", *options],
            capture_output=True, text=True)
        made, shares = greedy(w, ids, pictures, forced)
        if done.returncode:
            llava.check(name, False, done.stderr)
            return
        found = json.loads(done.stdout)
        found_shares = [token["logprob"] for token in found["logprobs"]]
        # As much as a logit is off, and what it changes in the sum.
        worst = max(abs(a - b) for a, b in zip(found_shares, shares))
        llava.check(name, found["ids"] == made and worst < 5e-5
                    and found["prompt_ids"] == expanded(ids, pictures),
                    f"{found['ids']}, not {made}; {worst} apart; "
                    f"{found['prompt_ids']}")
    first, second, third = (f"--image={work}/{name}.png" for name in "abc")
    compare("generate --image", [5, IMAGE, 7, 9], shown[:1], first)
    if KIND in ("smolvlm", "internvl3_5"):  # as the others, but for what is above
        print("failures:", llava.failures)
        return llava.failures != 0
    compare("another picture", [5, IMAGE, 7, 9], shown[1:2], second)
    if NEXT:  # Vectors fill a part of the last tile; a token behind them has none.
        compare("a written token", [5, IMAGE, 7, 9], shown[:1], first,
                f"--logit-bias={IMAGE}:1000", forced=IMAGE)
    given = "--prompt-ids=" + ",".join(
        map(str, expanded([5, IMAGE, 7, 9], shown[:1])))
    compare("all tokens given", [5, IMAGE, 7, 9], shown[:1], first, prompt=given)
    if not NEXT:
        tensors.save(f"{work}/pixels.safetensors",
                     {"pixel_values": pixel_tensor(shown[:1])})
        compare("generate --inputs", [5, IMAGE, 7, 9], shown[:1],
                f"--inputs={work}/pixels.safetensors", prompt=given)
    compare("two pictures", [2, IMAGE, 3, IMAGE], shown[1:], second, third)
    compare("no picture", [5, 7, 9], [])
    compare("a prompt", [2, IMAGE, 3, IMAGE], shown[1:], second, third,
            prompt=f"--prompt=c{SPECIAL[IMAGE]}d{SPECIAL[IMAGE]}")
    compare("a message", [18, IMAGE, 2, 3, 0], shown[:1], first, "--chat",
            prompt="--prompt=cd")
    print("failures:", llava.failures)
    return llava.failures != 0


if __name__ == "__main__":
    sys.exit(main())
