#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Gemma 3 or PaliGemma with random weights against float64 arithmetic
done here: SigLIP's tower, the projector, and a Gemma that reads its vectors in
the places of image tokens. Those of one picture see each other in both
directions (Gemma 3), or all of the prompt's do (PaliGemma).

  gemma_vision.py ATTUNE WORK gemma3|paligemma|paligemma2 [model|FLAG...]

Logits of a batch; greedy ids behind pictures from PNG files and from tensors, as
prompts and as messages. Leaves the folder WORK/model, a program WORK/see and
pictures for other tests; with `model` nothing but the folder and pictures. With
FLAGs for the compiler it is the text behind one picture alone.
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
                            gelu_tanh, layer_norm, linear, plus, rms_norm,
                            scaled, split, turn)

IMAGE, PATCH, SIDE, COUNT = 37, 4, 16, 4
SEEN, SEEN_HEADS, SEEN_INNER = 16, 2, 24
PATCHES = SIDE // PATCH
# Letters, and newlines of which a run is one token; then special tokens.
LETTERS = ([*"abcdefghi", "\n", "\n\n", "\n\n\n", "u"]
           + [*"jklmnopqrstvwxyz01234"])
SPECIAL = {0: "<pad>", 1: "<eos>", 2: "<bos>", 36: "<start_of_image>",
           38: "<end_of_image>"}
TEMPLATE = """\
{{ bos_token }}{%- for message in messages -%}u{{ '\\n' }}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{ '<start_of_image>' }}
{%- else -%}{{ part['text'] }}{%- endif -%}{%- endfor -%}{%- endif -%}
{%- endfor -%}{%- if add_generation_prompt -%}{{ '\\na' }}{%- endif -%}
"""
VISION = {"model_type": "siglip_vision_model", "hidden_size": SEEN,
          "intermediate_size": SEEN_INNER, "image_size": SIDE,
          "patch_size": PATCH, "num_attention_heads": SEEN_HEADS,
          "num_hidden_layers": 2, "vision_use_head": False}
TEXT = {"vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER,
        "num_attention_heads": HEADS, "head_dim": DIM,
        "max_position_embeddings": 2048}
GEMMA3 = {
    "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
    "boi_token_index": 36, "eoi_token_index": 38, "image_token_index": IMAGE,
    "mm_tokens_per_image": 4, "initializer_range": 0.02, "eos_token_id": [1],
    "torch_dtype": "float32",
    "text_config": {
        **TEXT, "model_type": "gemma3_text", "num_key_value_heads": 2,
        "num_hidden_layers": 4, "sliding_window": 5, "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 8, "rope_theta": 1e6,
        "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "vision_config": VISION}


def paligemma(**text):
    return {
        "model_type": "paligemma", "_vocab_size": VOCAB, "ignore_index": -100,
        "architectures": ["PaliGemmaForConditionalGeneration"],
        "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0,
        "hidden_size": WIDTH, "image_token_index": IMAGE,
        "projection_dim": WIDTH, "torch_dtype": "float32",
        "text_config": {**TEXT, "num_image_tokens": PATCHES ** 2, **text},
        "vision_config": {**VISION, "num_image_tokens": PATCHES ** 2,
                          "projection_dim": WIDTH,
                          "projector_hidden_act": "gelu_fast"}}


CONFIGS = {
    "gemma3": GEMMA3,
    "paligemma": paligemma(model_type="gemma", num_key_value_heads=1,
                           num_hidden_layers=2),
    "paligemma2": paligemma(
        model_type="gemma2", num_key_value_heads=2, num_hidden_layers=2,
        sliding_window=30, query_pre_attn_scalar=20,
        attn_logit_softcapping=2.0, final_logit_softcapping=3.0)}
SEEDS = {"gemma3": 25, "paligemma": 22, "paligemma2": 25}
PREPARATIONS = {
    "gemma3": {
        "image_processor_type": "Gemma3ImageProcessor", "do_resize": True,
        "processor_class": "Gemma3Processor", "do_pan_and_scan": None,
        "size": {"height": SIDE, "width": SIDE}, "resample": 2,
        "image_seq_length": 4, "do_rescale": True, "rescale_factor": 1 / 255,
        "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    "paligemma": {
        "image_processor_type": "SiglipImageProcessor", "do_resize": True,
        "processor_class": "PaliGemmaProcessor", "image_seq_length": PATCHES ** 2,
        "size": {"height": SIDE, "width": SIDE}, "resample": 3,
        "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": [0.5] * 3, "image_std": [0.5] * 3}}
PREPARATIONS["paligemma2"] = PREPARATIONS["paligemma"]


def tokenizer(kind):
    image = "<image_soft_token>" if kind == "gemma3" else "<image>"
    special = {**SPECIAL, IMAGE: image}
    free = [i for i in range(VOCAB) if i not in special]
    vocab = {text: i for i, text in special.items()}
    vocab.update(zip(LETTERS, free))
    return {
        "version": "1.0", "normalizer": None, "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing", "special_tokens": {
                "<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}},
            "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}]},
        "decoder": {"type": "Fuse"},
        "added_tokens": [
            {"id": i, "content": text, "special": True, "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False}
            for i, text in sorted(special.items())],
        "model": {"type": "BPE", "merges": ["\n \n", "\n\n \n"],
                  "vocab": vocab}}


def picture_vectors(w, kind, pixels):
    """What the text model reads of one picture [3][row][column]."""
    at = "vision_tower.vision_model."
    name = at + "embeddings.patch_embedding"
    kernel = w.matrix(name + ".weight", SEEN, 3 * PATCH * PATCH)
    w.made[name + ".weight"] = ([SEEN, 3, PATCH, PATCH],
                                w.made[name + ".weight"][1])
    offset = w.vector(name + ".bias", SEEN)
    x = []
    for top in range(0, SIDE, PATCH):
        for left in range(0, SIDE, PATCH):
            part = [pixels[c][top + i][left + j] for c in range(3)
                    for i in range(PATCH) for j in range(PATCH)]
            x.append([dot(row, part) + b for row, b in zip(kernel, offset)])
    x = plus(x, w.matrix(at + "embeddings.position_embedding.weight",
                         PATCHES ** 2, SEEN))
    for i in range(2):
        own = f"{at}encoder.layers.{i}."
        h = layer_norm(w, own + "layer_norm1", x, 1e-6)
        q, k, v = (split(linear(w, f"{own}self_attn.{n}_proj", h, SEEN, True),
                         SEEN_HEADS) for n in "qkv")
        x = plus(x, linear(w, own + "self_attn.out_proj",
                           llava.see_all(q, k, v), SEEN, True))
        h = linear(w, own + "mlp.fc1", layer_norm(w, own + "layer_norm2", x, 1e-6),
                   SEEN_INNER, True)
        h = [[gelu_tanh(a) for a in row] for row in h]
        x = plus(x, linear(w, own + "mlp.fc2", h, SEEN, True))
    x = layer_norm(w, at + "post_layernorm", x, 1e-6)
    if kind != "gemma3":
        return linear(w, "multi_modal_projector.linear", x, WIDTH, True)
    half = PATCHES // 2
    pooled = [[math.fsum(x[(2 * (t // half) + i) * PATCHES + 2 * (t % half) + j][c]
                         for i in (0, 1) for j in (0, 1)) / 4
               for c in range(SEEN)] for t in range(half * half)]
    x = rms_norm(w, "multi_modal_projector.mm_soft_emb_norm", pooled, 1e-6,
                 offset=1.0)
    matrix = w.matrix("multi_modal_projector.mm_input_projection_weight", SEEN,
                      WIDTH)
    return [[math.fsum(a * matrix[i][c] for i, a in enumerate(row))
             for c in range(WIDTH)] for row in x]


def attend(q, k, v, sees, scale, cap=None):
    group, joined = len(q) // len(k), [[] for _ in q[0]]
    for h, rows in enumerate(q):
        for m, query in enumerate(rows):
            keys = [n for n in range(len(rows)) if sees(m, n)]
            scores = [scale * dot(query, k[h // group][n]) for n in keys]
            if cap:
                scores = [cap * math.tanh(s / cap) for s in scores]
            powers = [math.exp(s - max(scores)) for s in scores]
            joined[m] += [math.fsum(p * v[h // group][n][c]
                                    for p, n in zip(powers, keys))
                          / math.fsum(powers) for c in range(len(v[0][0]))]
    return joined


def mask_of(kind, ids, pictures, prompt):
    """Whether one token sees another, with a window or without. Each picture of
    Gemma 3 has a number."""
    shown, number = [], 0
    each = 4 if kind == "gemma3" else PATCHES ** 2
    for t in ids:
        seen = t == IMAGE and number < each * len(pictures)
        shown.append(number // each + 1 if seen else 0)
        number += seen

    def sees(m, n, window):
        if kind == "gemma3" and shown[m] and shown[m] == shown[n]:
            return True
        if kind != "gemma3" and m < prompt and n < prompt:
            return True
        return n <= m and (not window or m - n < window)
    return sees


def logits(w, kind, ids, pictures, prompt=None):
    """Of every token; `pictures` are the vectors of those that it shows, and the
    first `prompt` tokens were not generated."""
    base = "language_model.model."
    config = CONFIGS[kind]["text_config"]
    sees = mask_of(kind, ids, pictures, len(ids) if prompt is None else prompt)
    table = w.matrix(base + "embed_tokens.weight", VOCAB, WIDTH)
    rows = iter([row for one in pictures for row in one])
    x = [next(rows, None) if t == IMAGE else None for t in ids]
    x = [scaled(table[t], math.sqrt(WIDTH)) if v is None else v
         for t, v in zip(ids, x)]
    kv, peri = config["num_key_value_heads"], kind != "paligemma"
    scale = config.get("query_pre_attn_scalar", DIM) ** -0.5
    for i in range(config["num_hidden_layers"]):
        at = f"{base}layers.{i}."

        def norm(name, rows):
            return rms_norm(w, at + name, rows, offset=1.0)
        h = norm("input_layernorm", x)
        q, k, v = (split(linear(w, f"{at}self_attn.{n}_proj", h, count * DIM), count)
                   for n, count in (("q", HEADS), ("k", kv), ("v", kv)))
        local = i % 2 == 0
        window = config.get("sliding_window") if local else None
        if kind == "gemma3":
            q, k = ([rms_norm(w, f"{at}self_attn.{n}_norm", rows, offset=1.0)
                     for rows in heads] for n, heads in (("q", q), ("k", k)))
            frequencies = [1e4 ** (-j / 4) if local else 1e6 ** (-j / 4) / 4
                           for j in range(DIM // 2)]
            q, k = (turn(heads, frequencies=frequencies) for heads in (q, k))
        else:
            q, k = turn(q), turn(k)
        y = linear(w, at + "self_attn.o_proj", attend(
            q, k, v, lambda m, n: sees(m, n, window), scale,
            config.get("attn_logit_softcapping")), WIDTH)
        if peri:
            x = plus(x, norm("post_attention_layernorm", y))
            y = gated(w, at + "mlp.", norm("pre_feedforward_layernorm", x), gelu_tanh)
            x = plus(x, norm("post_feedforward_layernorm", y))
        else:
            x = plus(x, y)
            x = plus(x, gated(w, at + "mlp.", norm("post_attention_layernorm", x),
                              gelu_tanh))
    x = rms_norm(w, base + "norm", x, offset=1.0)
    scores = [[dot(row, v) for row in table] for v in x]
    cap = config.get("final_logit_softcapping")
    return [[cap * math.tanh(a / cap) for a in v] for v in scores] \
        if cap else scores


def expanded(kind, ids):
    each = 4 if kind == "gemma3" else PATCHES ** 2
    return [t for i in ids for t in ([i] * each if i == IMAGE else [i])]


def greedy(w, kind, ids, pictures, count):
    ids, made = expanded(kind, ids) if pictures else list(ids), []
    for _ in range(count):
        last = logits(w, kind, ids + made, pictures, len(ids))[-1]
        made.append(max(range(VOCAB), key=lambda i: last[i]))
    return made


def make_picture(path, rng):
    rows = [[rng.randrange(256) for _ in range(3 * SIDE)] for _ in range(SIDE)]
    with open(path, "wb") as file:
        file.write(llava.png(SIDE, SIDE, rows))
    return [[[(row[3 * x + c] / 255 - 0.5) / 0.5 for x in range(SIDE)]
             for row in rows] for c in range(3)]


def pixel_tensor(pictures):
    numbers = llava.flatten(pictures)
    return ("F32", [len(pictures), 3, SIDE, SIDE],
            struct.pack(f"<{len(numbers)}f", *numbers))


def compare_forward(see, work, w, kind, pixels, seen):
    """Texts of unequal length, the others padded on their left: two pictures
    with words between them, one, and none."""
    texts = [([5, IMAGE, 7, IMAGE, 11, 3], seen), ([IMAGE, 8, 6], seen[1:]),
             ([4, 9, 10, 5, 6, 12], [])]
    if kind != "gemma3":
        texts = texts[1:]
    texts = [(expanded(kind, text), own) for text, own in texts]
    shown = [one for _, own in texts for one in own]
    longest = max(len(text) for text, _ in texts)
    tensors.save(f"{work}/in.safetensors", {
        "input_ids": llava.integer_tensor(
            [[0] * (longest - len(t)) + t for t, _ in texts]),
        "attention_mask": llava.integer_tensor(
            [[0] * (longest - len(t)) + [1] * len(t) for t, _ in texts]),
        "pixel_values": pixel_tensor([pixels[seen.index(one)] for one in shown])})
    subprocess.run([see, "run", "--inputs", f"{work}/in.safetensors",
                    "--outputs", f"{work}/out.safetensors"], check=True)
    found = tensors.numbers(tensors.load(f"{work}/out.safetensors")["logits"])
    worst, limit = 0.0, 2e-5
    for row, (text, own) in enumerate(texts):
        for t, expected in enumerate(logits(w, kind, text, own)):
            limit = max(limit, *(2e-5 * abs(x) for x in expected))
            at = (row * longest + longest - len(text) + t) * VOCAB
            worst = max(worst, *(abs(a - b) for a, b in zip(
                found[at:at + VOCAB], expected)))
    print(f"  {worst:.2e} of {limit:.2e}")
    llava.check("logits", worst < limit, f"{worst} apart")


def make_model(work, kind):
    folder = f"{work}/model"
    os.makedirs(folder, exist_ok=True)
    w = Weights(SEEDS[kind])
    # Small ones, so that a token is not mostly followed by itself.
    name = "language_model.model.embed_tokens.weight"
    rows = w.matrix(name, VOCAB, WIDTH)
    w.made[name] = ([VOCAB, WIDTH], struct.pack(
        f"<{VOCAB * WIDTH}f", *(x / 4 for row in rows for x in row)))
    pixels = [make_picture(f"{work}/{name}.png", w.random) for name in "ab"]
    seen = [picture_vectors(w, kind, one) for one in pixels]
    logits(w, kind, [1], [])  # makes the tensors of the text model
    w.save(f"{folder}/model.safetensors")
    settings = {"bos_token": "<bos>", "eos_token": "<eos>"}
    if kind == "gemma3":
        settings.update(boi_token="<start_of_image>", eoi_token="<end_of_image>",
                        image_token="<image_soft_token>",
                        chat_template=TEMPLATE)
    for name, content in (("config", CONFIGS[kind]), ("tokenizer", tokenizer(kind)),
                          ("preprocessor_config", PREPARATIONS[kind]),
                          ("tokenizer_config", settings)):
        with open(f"{folder}/{name}.json", "w") as file:
            json.dump(content, file)
    return w, pixels, seen


class Program:
    def __init__(self, see, w, kind):
        self.see, self.w, self.kind, self.count = see, w, kind, COUNT

    def generate(self, prompt, *options):
        if not isinstance(prompt, str):
            prompt = "--prompt-ids=" + ",".join(map(str, prompt))
        done = subprocess.run(
            [self.see, "generate", prompt, "--greedy", "--ignore-eos",
             f"--max-new-tokens={self.count}", "--format=ids", *options],
            capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        return [int(i) for i in done.stdout.split(",")]

    def compare(self, name, ids, pictures, *options, prompt=None):
        expected = greedy(self.w, self.kind, ids, pictures, self.count)
        found = self.generate(prompt or ids, *options)
        llava.check(name, found == expected, f"{found}, not {expected}")


def check_gemma3(program, first, second):
    """Texts of messages: a newline of the template and those around a picture
    are one token. Then prompts that name it."""
    seen = program.seen
    program.compare("a message", [2, 15, 14, 36, IMAGE, 38, 13, 5, 4, 12, 3],
                    seen[:1], first, "--chat", prompt="--prompt=cb")
    # What a message says stands where it says so.
    program.compare("a message with a picture in it",
                    [2, 15, 12, 5, 13, 36, IMAGE, 38, 13, 4, 12, 3], seen[:1],
                    first, "--chat", prompt="--prompt=c<start_of_image>b")
    program.compare("a prompt", [2, 5, 13, 36, IMAGE, 38, 13, 4, 13, 36, IMAGE, 38,
                                 13], seen, first, second,
                    prompt="--prompt=c<start_of_image>b<start_of_image>")
    program.compare("two pictures", [3, IMAGE, 5, 4, IMAGE, 6], seen, first, second)
    program.compare("a picture at the end", [3, 4, 5, 6, 7, 8, 9, IMAGE], seen[:1],
                    first)


def check_rings(work, program, pixels, first, second):
    """A text that is longer than what caches of windows hold, which forget what
    no later token sees. The other side computes it at once, without a cache."""
    text = [3 + i * i % 30 for i in range(260)]
    ids = expanded(program.kind, text[:70] + [IMAGE] + text[70:] + [IMAGE]
                   + text[:30])
    found, made = program.generate(ids, first, second), []
    for _ in range(COUNT):
        tensors.save(f"{work}/in.safetensors", {
            "input_ids": llava.integer_tensor([ids + made]),
            "pixel_values": pixel_tensor(pixels)})
        subprocess.run([program.see, "run", "--inputs", f"{work}/in.safetensors",
                        "--outputs", f"{work}/out.safetensors"], check=True)
        last = tensors.numbers(tensors.load(
            f"{work}/out.safetensors")["logits"])[-VOCAB:]
        made.append(max(range(VOCAB), key=lambda i: last[i]))
    llava.check("rings", found == made, f"{found}, not {made}")


def check_paligemma(program, first):
    seen = program.seen
    program.compare("a prompt", [IMAGE, 2, 5, 4, 12], seen[:1], first,
                    prompt="--prompt=cb")
    program.compare("a prompt with a picture in it", [IMAGE, 5, 4, 12], seen[:1],
                    first, prompt="--prompt=<image>cb")


def main():
    attune, work, kind = sys.argv[1:4]
    see = f"{work}/see"
    w, pixels, seen = make_model(work, kind)
    if sys.argv[4:] == ["model"]:
        return 0
    flags = sys.argv[4:]
    subprocess.run([attune, "compile", f"{work}/model", "-o", see,
                    "--window-slack=256", *flags], check=True)
    program = Program(see, w, kind)
    program.seen = seen
    if flags:
        program.count = 3
        program.compare("generate --image", [5, IMAGE, 7, 9], seen[:1],
                        f"--image={work}/a.png")
        print("failures:", llava.failures)
        return llava.failures != 0
    compare_forward(see, work, w, kind, pixels, seen)
    first, second = (f"--image={work}/{name}.png" for name in "ab")
    program.count = 11
    program.compare("generate --image", [5, IMAGE, 7, 9], seen[:1], first)
    program.count = COUNT
    program.compare("another picture", [5, IMAGE, 7, 9], seen[1:], second)
    tensors.save(f"{work}/pixels.safetensors",
                 {"pixel_values": pixel_tensor(pixels[:1])})
    program.compare("generate --inputs", [5, IMAGE, 7, 9], seen[:1],
                    f"--inputs={work}/pixels.safetensors",
                    prompt="--prompt-ids=" + ",".join(
                        map(str, expanded(kind, [5, IMAGE, 7, 9]))))
    program.compare("guesses", [5, IMAGE, 7, 9, 7, 9], seen[:1], first, "--lookup=3")
    program.compare("no picture", [5, 7, 9], [])
    program.compare("a token alone", [5, IMAGE, 9], [])
    if kind == "gemma3":
        check_gemma3(program, first, second)
        check_rings(work, program, pixels, first, second)
    else:
        check_paligemma(program, first)
    print("failures:", llava.failures)
    return llava.failures != 0


if __name__ == "__main__":
    sys.exit(main())
