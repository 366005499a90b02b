#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Pixtral, Mistral 3, Ministral 3 (whose text model is in floats of 8 bits),
LLaVA with SigLIP's tower, or LFM2-VL, with random weights against float64 arithmetic done
here, patch by patch and token by token.

  pixtral.py ATTUNE WORK pixtral|mistral3|ministral3|siglip|lfm2_vl [model]

Logits of two texts with a picture each, one of them padded on its left; greedy
ids behind pictures from PNG files and from tensors, behind two of them, in
messages, and without any. Leaves the folder WORK/model, a program WORK/see and
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
from decoder_layers import (DIM, HEADS, INNER, VOCAB, WIDTH, Weights, attend, dot,
                            gated, gelu, gelu_tanh, layer_norm, linear, plus,
                            rms_norm, silu, split, turn, yarn)
from decoder_hybrids import lfm2_behind
from decoder_relatives import grown
from quantized_folders import decode_float8, nearest_float8
from qwen_vl import turned

IMAGE, BREAK, END, PATCH, MERGE, DEPTH = 37, 38, 39, 4, 2, 3
SEEN, SEEN_HEADS, SEEN_INNER, THETA = 16, 2, 20, 30.0
MEAN, DEVIATION = (0.4, 0.5, 0.3), (0.25, 0.3, 0.2)
KIND = sys.argv[3]
# SigLIP sees squares, whose last pixels are in no patch.
HEIGHT, LENGTH = (14, 14) if KIND == "siglip" else (16, 24)
ROWS, COLUMNS = HEIGHT // PATCH, LENGTH // PATCH
MERGES = KIND.endswith("stral3") or KIND == "lfm2_vl"
GRID = (ROWS // MERGE, COLUMNS // MERGE) if MERGES else (ROWS, COLUMNS)
EACH = GRID[0] * GRID[1]

TEXT = {"hidden_size": WIDTH, "intermediate_size": INNER, "head_dim": DIM,
        "vocab_size": VOCAB, "num_attention_heads": HEADS,
        "num_key_value_heads": 2, "num_hidden_layers": 2,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5}
TOWER = {"model_type": "pixtral", "hidden_size": SEEN, "image_size": 40,
         "intermediate_size": SEEN_INNER, "num_attention_heads": SEEN_HEADS,
         "num_hidden_layers": DEPTH, "patch_size": PATCH, "head_dim": 8,
         "hidden_act": "silu"}
LLAVA = {"model_type": "llava", "ignore_index": -100, "eos_token_id": 2,
         "architectures": ["LlavaForConditionalGeneration"],
         "image_token_index": IMAGE, "image_seq_length": 1,
         "projector_hidden_act": "gelu", "torch_dtype": "float32",
         "vision_feature_layer": -1, "vision_feature_select_strategy": "full"}
MISTRAL3 = {"model_type": "mistral3", "image_token_index": IMAGE,
            "architectures": ["Mistral3ForConditionalGeneration"],
            "multimodal_projector_bias": False, "projector_hidden_act": "gelu",
            "spatial_merge_size": MERGE, "vision_feature_layer": -1,
            "torch_dtype": "float32", "eos_token_id": 2}
CONFIGS = {
    "pixtral": {
        **LLAVA, "text_config": {**TEXT, "model_type": "mistral",
                                 "is_composition": True, "sliding_window": None},
        "vision_config": {**TOWER, "rope_theta": THETA, "is_composition": True,
                          "tie_word_embeddings": False}},
    "mistral3": {
        **MISTRAL3, "text_config": {**TEXT, "sliding_window": None},
        "vision_config": {**TOWER, "num_channels": 3, "initializer_range": 0.02,
                          "rope_theta": THETA, "attention_dropout": 0.0}},
    "ministral3": {
        **MISTRAL3, "quantization_config": {
            "activation_scheme": "static", "dequantize": False,
            "modules_to_not_convert": ["model.vision_tower", "lm_head",
                                       "model.multi_modal_projector"],
            "quant_method": "fp8", "weight_block_size": None},
        "text_config": {
            **TEXT, "model_type": "ministral3", "rope_parameters": {
                "rope_type": "yarn", "type": "yarn", "rope_theta": 5000.0,
                "factor": 16.0, "original_max_position_embeddings": 7,
                "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
                "mscale_all_dim": 1.0, "truncate": False,
                "llama_4_scaling_beta": 0.5}},
        "vision_config": {**TOWER, "rope_parameters": {
            "rope_theta": THETA, "rope_type": "default"}}},
    "siglip": {
        **LLAVA, "text_config": {**TEXT, "model_type": "llama"},
        "vision_feature_layer": -2,
        "vision_config": {
            "model_type": "siglip_vision_model", "hidden_size": SEEN,
            "intermediate_size": SEEN_INNER, "image_size": HEIGHT,
            "patch_size": PATCH, "num_attention_heads": SEEN_HEADS,
            "num_hidden_layers": DEPTH, "vision_use_head": False}},
    "lfm2_vl": {
        "model_type": "lfm2_vl", "architectures": ["Lfm2VlForConditionalGeneration"],
        "image_token_id": IMAGE, "downsample_factor": MERGE, "tile_size": 512,
        "projector_hidden_act": "gelu", "projector_hidden_size": 28,
        "projector_bias": True, "do_image_splitting": True, "eos_token_id": 2,
        "encoder_patch_size": PATCH, "max_image_tokens": 256,
        "text_config": {
            "model_type": "lfm2", "hidden_size": WIDTH, "vocab_size": VOCAB,
            "intermediate_size": INNER, "num_attention_heads": HEADS,
            "num_key_value_heads": 2, "num_hidden_layers": 3,
            "block_auto_adjust_ff_dim": False, "max_position_embeddings": 256,
            "layer_types": ["conv", "full_attention", "conv"]},
        "vision_config": {
            "model_type": "siglip2_vision_model", "hidden_size": SEEN,
            "intermediate_size": SEEN_INNER, "num_patches": 9,
            "patch_size": PATCH, "num_attention_heads": SEEN_HEADS,
            "num_hidden_layers": DEPTH, "vision_use_head": False}}}
PREPARATION = {
    "image_processor_type": "PixtralImageProcessor", "do_resize": True,
    "size": {"longest_edge": 40}, "resample": 3, "do_convert_rgb": True,
    "patch_size": {"height": PATCH, "width": PATCH}, "do_rescale": True,
    "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": MEAN,
    "image_std": DEVIATION}
SIGLIP = {**PREPARATION, "image_processor_type": "SiglipImageProcessor",
          "size": {"height": HEIGHT, "width": LENGTH}}
LFM2 = {**PREPARATION, "image_processor_type": "Lfm2VlImageProcessorFast",
        "size": {"height": 512, "width": 512}, "resample": 2,
        "do_image_splitting": True, "do_pad": True, "downsample_factor": MERGE}

# Each letter is a token.
LETTERS = "abcdefghijklmnopqrstuvwxyz012345678"
SPECIAL = {35: "<s>", 36: "</s>", 37: "[IMG]", 38: "[IMG_BREAK]", 39: "[IMG_END]"}
TOKENIZER = {
    "version": "1.0", "normalizer": None, "post_processor": None,
    "added_tokens": [{"id": i, "content": text, "special": True,
                      "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False} for i, text in SPECIAL.items()],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": [],
              "vocab": {c: i for i, c in enumerate(LETTERS)}}}
TEMPLATE = """\
{%- for message in messages %}u{% if message.content is string -%}
{{ message.content }}
{%- else %}{% for part in message.content %}{% if part.type == 'image' -%}
[IMG]{%- else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor -%}
{%- if add_generation_prompt %}a{% endif -%}
"""


def cut(w, pixels, name, bias):
    """A vector of each patch, row by row."""
    x = [[pixels[c][r * PATCH + i][k * PATCH + j] for c in range(3)
          for i in range(PATCH) for j in range(PATCH)]
         for r in range(ROWS) for k in range(COLUMNS)]
    x = linear(w, name, x, SEEN, bias)
    w.made[name + ".weight"] = ([SEEN, 3, PATCH, PATCH],
                                w.made[name + ".weight"][1])
    return x


def shares(count, extent):
    """Of each of `extent` places the weights of the `count` that it covers."""
    step, rows = count / extent, []
    for place in range(extent):
        row = [max(1 - abs(i + 0.5 - (place + 0.5) * step) / max(step, 1), 0)
               for i in range(count)]
        rows.append([a / sum(row) for a in row])
    return rows


def siglip(w, pixels):
    """Behind its second block of three; of LFM2-VL behind all and the norm. Then
    the matrix reads patches pixel by pixel, and a table of 3 x 3 positions is
    stretched."""
    flexible = KIND == "lfm2_vl"
    at = ("model." if flexible else "") + "vision_tower.vision_model."
    if flexible:
        x = linear(w, at + "embeddings.patch_embedding", [
            [pixels[c][r * PATCH + i][k * PATCH + j] for i in range(PATCH)
             for j in range(PATCH) for c in range(3)]
            for r in range(ROWS) for k in range(COLUMNS)], SEEN, True)
        table = w.matrix(at + "embeddings.position_embedding.weight", 9, SEEN)
        x = plus(x, [[sum(p * q * table[3 * i + j][c]
                          for i, p in enumerate(down) for j, q in enumerate(across))
                      for c in range(SEEN)]
                     for down in shares(3, ROWS) for across in shares(3, COLUMNS)])
    else:
        x = cut(w, pixels, at + "embeddings.patch_embedding", True)
        x = plus(x, w.matrix(at + "embeddings.position_embedding.weight",
                             ROWS * COLUMNS, SEEN))
    for i in range(DEPTH):
        own = f"{at}encoder.layers.{i}."
        seen = x
        h = layer_norm(w, own + "layer_norm1", x, 1e-6)
        q, k, v = (split(linear(w, f"{own}self_attn.{n}_proj", h, SEEN, True),
                         SEEN_HEADS) for n in "qkv")
        x = plus(x, linear(w, own + "self_attn.out_proj",
                           llava.see_all(q, k, v), SEEN, True))
        h = layer_norm(w, own + "layer_norm2", x, 1e-6)
        h = linear(w, own + "mlp.fc1", h, SEEN_INNER, True)
        h = [[gelu_tanh(a) for a in row] for row in h]
        x = plus(x, linear(w, own + "mlp.fc2", h, SEEN, True))
    normed = layer_norm(w, at + "post_layernorm", x, 1e-6)
    return normed if flexible else seen


def pixtral(w, pixels):
    at = "vision_tower."
    x = rms_norm(w, at + "ln_pre", cut(w, pixels, at + "patch_conv", False), 1e-5)
    # Of the frequencies of a head the even ones turn by rows, the odd ones by
    # columns.
    size = SEEN // SEEN_HEADS
    frequencies = [THETA ** (-2 * i / size) for i in range(size // 2)]
    angles = [[r * f for f in frequencies[::2]] + [c * f for f in frequencies[1::2]]
              for r in range(ROWS) for c in range(COLUMNS)]
    for i in range(DEPTH):
        own = f"{at}transformer.layers.{i}."
        h = rms_norm(w, own + "attention_norm", x, 1e-5)
        q, k, v = (split(linear(w, f"{own}attention.{n}_proj", h, SEEN), SEEN_HEADS)
                   for n in "qkv")
        seen = llava.see_all(turned(q, angles), turned(k, angles), v)
        x = plus(x, linear(w, own + "attention.o_proj", seen, SEEN))
        h = rms_norm(w, own + "ffn_norm", x, 1e-5)
        gate = linear(w, own + "feed_forward.gate_proj", h, SEEN_INNER)
        up = linear(w, own + "feed_forward.up_proj", h, SEEN_INNER)
        h = [[silu(a) * b for a, b in zip(*rows)] for rows in zip(gate, up)]
        x = plus(x, linear(w, own + "feed_forward.down_proj", h, SEEN))
    return x


def picture_vectors(w, pixels):
    """What the text model reads of one picture [3][row][column]."""
    x = (pixtral if "stral" in KIND or KIND == "pixtral" else siglip)(w, pixels)
    at = "multi_modal_projector."
    if KIND == "lfm2_vl":  # place by place, row by row
        at = "model." + at
        x = [[a for i in range(MERGE) for j in range(MERGE)
              for a in x[(r * MERGE + i) * COLUMNS + c * MERGE + j]]
             for r in range(GRID[0]) for c in range(GRID[1])]
        x = linear(w, at + "linear_1", layer_norm(w, at + "layer_norm", x), 28, True)
        return linear(w, at + "linear_2", [[gelu(a) for a in row] for row in x],
                      WIDTH, True)
    if MERGES:
        x = rms_norm(w, at + "norm", x, 1e-5)
        # Channel by channel the places of a square, row by row.
        x = [[x[(r * MERGE + i) * COLUMNS + c * MERGE + j][channel]
              for channel in range(SEEN) for i in range(MERGE)
              for j in range(MERGE)]
             for r in range(GRID[0]) for c in range(GRID[1])]
        x = linear(w, at + "patch_merger.merging_layer", x, SEEN)
    x = linear(w, at + "linear_1", x, WIDTH, not MERGES)
    x = [[gelu(a) for a in row] for row in x]
    return linear(w, at + "linear_2", x, WIDTH, not MERGES)


def logits(w, ids, pictures):
    """Of every token; `pictures` are the vectors of those that it shows."""
    base, tail = "language_model.model.", "language_model.lm_head"
    if KIND == "ministral3":
        base, tail = "model.language_model.", "lm_head"
    if KIND == "lfm2_vl":
        base = "model.language_model."
    table = w.matrix(base + "embed_tokens.weight", VOCAB, WIDTH)
    rows = iter([row for one in pictures for row in one])
    # Beyond all vectors such a token is one.
    x = [next(rows, table[t]) if t == IMAGE else table[t] for t in ids]
    if KIND == "lfm2_vl":
        return lfm2_behind(w, x, base, ["conv", "full_attention", "conv"], INNER, 3,
                           None)
    for i in range(2):
        at = f"{base}layers.{i}."
        h = rms_norm(w, at + "input_layernorm", x, 1e-5)
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", h, count * DIM), count)
                   for n, count in (("q", HEADS), ("k", 2), ("v", 2)))
        if KIND == "ministral3":
            frequencies, _ = yarn(5000.0, DIM, 16.0, 7)
            q, k = (turn(heads, frequencies=frequencies) for heads in (q, k))
            q = grown(q, 0.5, 7)
        else:
            q, k = turn(q), turn(k)
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH))
        h = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        x = plus(x, gated(w, at + "mlp.", h, silu))
    return linear(w, tail, rms_norm(w, base + "norm", x, 1e-5), VOCAB)


def tokens_of_picture():
    if KIND in ("siglip", "lfm2_vl"):
        return [IMAGE] * EACH
    rows = ([IMAGE] * GRID[1] + [BREAK]) * GRID[0]
    return rows[:-1] + [END]


def expanded(ids):
    return [t for i in ids for t in (tokens_of_picture() if i == IMAGE else [i])]


def greedy(w, ids, pictures, count=5):
    ids, made = expanded(ids) if pictures else list(ids), []
    for _ in range(count):
        last = logits(w, ids + made, pictures)[-1]
        made.append(max(range(VOCAB), key=lambda i: last[i]))
    return made


def make_picture(path, rng):
    rows = [[rng.randrange(256) for _ in range(3 * LENGTH)] for _ in range(HEIGHT)]
    with open(path, "wb") as file:
        file.write(llava.png(LENGTH, HEIGHT, rows))
    return [[[(row[3 * x + c] / 255 - MEAN[c]) / DEVIATION[c]
              for x in range(LENGTH)] for row in rows] for c in range(3)]


def pixel_tensor(pictures):
    numbers = llava.flatten(pictures)
    return ("F32", [len(pictures), 3, HEIGHT, LENGTH],
            struct.pack(f"<{len(numbers)}f", *numbers))


def compare_forward(see, work, w, pixels, seen):
    """Two texts with a picture each; the shorter one begins with padding."""
    texts = [expanded(text) for text in ([5, IMAGE, 7, 9, 11, 3], [IMAGE, 8, 6])]
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
        # Growth goes by places in the row, as the class counts them without
        # position_ids; the longer row alone begins at 0.
        if KIND == "ministral3" and len(text) != longest:
            continue
        for t, expected in enumerate(logits(w, text, [one])):
            limit = max(limit, *(2e-5 * abs(x) for x in expected))
            at = (row * longest + longest - len(text) + t) * VOCAB
            worst = max(worst, *(abs(a - b) for a, b in zip(
                found[at:at + VOCAB], expected)))
    print(f"  {worst:.2e} of {limit:.2e}")
    llava.check("logits", worst < limit, f"{worst} apart")


def to_eights(w):
    """The text model's matrices in floats of 8 bits with one scale each, as the
    file has them; `w` then holds their values."""
    file = {name: ("F32", shape, raw) for name, (shape, raw) in w.made.items()}
    for name, (shape, raw) in [*w.made.items()]:
        if not (name.startswith("model.language_model.layers.")
                and name.endswith("_proj.weight")):
            continue
        numbers = struct.unpack(f"<{len(raw) // 4}f", raw)
        scale = 2.0 ** -9  # 0.5, the largest, becomes 256 of 448
        codes = bytes(nearest_float8(x / scale) for x in numbers)
        w.made[name] = (shape, struct.pack(
            f"<{len(codes)}f", *(decode_float8(code) * scale for code in codes)))
        file[name] = ("F8_E4M3", shape, codes)
        file[name + "_scale_inv"] = ("F32", [], struct.pack("<f", scale))
        file[name.replace("weight", "activation_scale")] = (
            "F32", [], struct.pack("<f", 0.5))
    return file


def make_model(work):
    folder = f"{work}/model"
    os.makedirs(folder, exist_ok=True)
    w = Weights({"pixtral": 31, "mistral3": 32, "ministral3": 33, "siglip": 34,
                 "lfm2_vl": 35}[KIND])
    pixels = [make_picture(f"{work}/{name}.png", w.random) for name in "ab"]
    seen = [picture_vectors(w, one) for one in pixels]
    logits(w, [1], [])  # makes the tensors of the text model
    if KIND == "ministral3":  # as later files call them
        for name in [*w.made]:
            if name.startswith(("vision_tower.", "multi_modal_projector.")):
                w.made["model." + name] = w.made.pop(name)
        tensors.save(f"{folder}/model.safetensors", to_eights(w))
    else:
        w.save(f"{folder}/model.safetensors")
    settings, tokenizer = {"chat_template": TEMPLATE}, TOKENIZER
    files = {"preprocessor_config": {**PREPARATION,
                                     "processor_class": "PixtralProcessor"}}
    if KIND == "siglip":
        files = {"preprocessor_config": SIGLIP}
    elif KIND == "lfm2_vl":
        files = {"preprocessor_config": LFM2}
        settings.update(image_token="[IMG]", image_start_token="[IMG_BREAK]",
                        image_end_token="[IMG_END]")
    elif KIND == "ministral3":
        # As later folders have it.
        files = {"processor_config": {
            "processor_class": "PixtralProcessor", "image_processor": PREPARATION,
            "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]",
            "image_token": "[IMG]", "patch_size": PATCH,
            "spatial_merge_size": MERGE}}
        settings["added_tokens_decoder"] = {
            str(i): {"content": text, "special": True}
            for i, text in SPECIAL.items()}
    for name, content in (("config", CONFIGS[KIND]), ("tokenizer", tokenizer),
                          ("tokenizer_config", settings), *files.items()):
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(content, file)
    return w, pixels, seen


def main():
    attune, work = sys.argv[1:3]
    see = f"{work}/see"
    w, pixels, seen = make_model(work)
    if sys.argv[4:] == ["model"]:
        return 0
    size = [] if KIND == "siglip" else [f"--image-size={HEIGHT}x{LENGTH}"]
    subprocess.run([attune, "compile", f"{work}/model", *size, "-o", see],
                   check=True)
    compare_forward(see, work, w, pixels, seen)

    def compare(name, ids, pictures, *options, prompt=None):
        prompt = prompt or "--prompt-ids=" + ",".join(map(str, ids))
        done = subprocess.run(
            [see, "generate", prompt, "--greedy", "--ignore-eos",
             "--max-new-tokens=5", "--format=ids", *options],
            capture_output=True, text=True)
        found = done.stderr if done.returncode else [
            int(i) for i in done.stdout.split(",")]
        expected = greedy(w, ids, pictures)
        llava.check(name, found == expected, f"{found}, not {expected}")
    first, second = (f"--image={work}/{name}.png" for name in "ab")
    compare("generate --image", [5, IMAGE, 7, 9], seen[:1], first)
    compare("another picture", [5, IMAGE, 7, 9], seen[1:], second)
    tensors.save(f"{work}/pixels.safetensors", {"pixel_values": pixel_tensor(pixels[:1])})
    given = "--prompt-ids=" + ",".join(map(str, expanded([5, IMAGE, 7, 9])))
    compare("all tokens given", [5, IMAGE, 7, 9], seen[:1], first, prompt=given)
    compare("generate --inputs", [5, IMAGE, 7, 9], seen[:1],
            f"--inputs={work}/pixels.safetensors", prompt=given)
    compare("two pictures", [IMAGE, 5, IMAGE, 6], seen, first, second)
    compare("no picture", [5, 7, 9], [])
    # In a text LFM2-VL's processor puts a token before and one behind.
    shown = [BREAK, IMAGE, END] if KIND == "lfm2_vl" else [IMAGE]
    compare("a prompt", [2, *shown, 3, *shown], seen, first, second,
            prompt="--prompt=c[IMG]d[IMG]")
    compare("a message", [20, *shown, 2, 3, 0], seen[:1], first, "--chat",
            prompt="--prompt=cd")
    print("failures:", llava.failures)
    return llava.failures != 0


if __name__ == "__main__":
    sys.exit(main())
