#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small RoBERTa, MPNet, ESM, ALBERT, CLIP and NomicBERT folders with random weights, run by the
compiler and compared with their formulas in f64.

  encoders.py ATTUNE WORK [--FLAG]... [CASE]...

CASEs are among CASES; without any, all.
"""
import array
import json
import math
import os
import random
import subprocess
import sys
from operator import mul

import tensors

RNG = random.Random(7)
D, HEADS, INNER, V, T = 16, 2, 24, 30, 6


def attend(q, k, v):
    """Every row sees every row."""
    size, merged = D // HEADS, []
    for row in q:
        joined = []
        for head in range(0, D, size):
            scores = [sum(row[head + c] * key[head + c] for c in range(size))
                      / math.sqrt(size) for key in k]
            powers = [math.exp(s - max(scores)) for s in scores]
            joined += [sum(p * value[head + c] for p, value in zip(powers, v))
                       / sum(powers) for c in range(size)]
        merged.append(joined)
    return merged


class Weights:
    def __init__(self):
        self.values = {}

    def new(self, name, *shape, scale=0.4):
        count = math.prod(shape)
        raw = array.array("f", [RNG.uniform(-scale, scale)
                                for _ in range(count)])
        self.values[name] = (list(shape), raw)

    def linear(self, name, out, inner, bias=True):
        self.new(name + ".weight", out, inner)
        if bias:
            self.new(name + ".bias", out)

    def norm(self, name, width):
        self.new(name + ".weight", width, scale=1.5)
        self.new(name + ".bias", width)

    def rows(self, name):
        shape, raw = self.values[name]
        width = math.prod(shape[1:])
        return [list(raw[i * width:(i + 1) * width]) for i in range(shape[0])]

    def vector(self, name):
        return list(self.values[name][1])

    def save(self, folder, config):
        os.makedirs(folder, exist_ok=True)
        tensors.save(os.path.join(folder, "model.safetensors"),
                     {name: ("F32", shape, raw.tobytes())
                      for name, (shape, raw) in self.values.items()})
        with open(os.path.join(folder, "config.json"), "w",
                  encoding="utf-8") as file:
            json.dump(config, file)

    # --- Formulas, on lists of rows

    def apply(self, name, rows, act=lambda x: x):
        matrix = self.rows(name + ".weight")
        bias = (self.vector(name + ".bias") if name + ".bias" in self.values
                else [0.0] * len(matrix))
        return [[act(sum(map(mul, x, w)) + c)
                 for w, c in zip(matrix, bias)] for x in rows]

    def layer_norm(self, name, rows, eps):
        gamma = self.vector(name + ".weight")
        beta = self.vector(name + ".bias")
        result = []
        for x in rows:
            mean = sum(x) / len(x)
            variance = sum((v - mean) ** 2 for v in x) / len(x)
            scale = 1 / math.sqrt(variance + eps)
            result.append([(v - mean) * scale * g + b
                           for v, g, b in zip(x, gamma, beta)])
        return result

    def attention(self, names, rows, mask, causal=False):
        q, k, v = (self.apply(name, rows) for name in names[:3])
        size = D // HEADS
        merged = [[] for _ in rows]
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            for i, x in enumerate(q):
                seen = [j for j in range(len(rows))
                        if mask[j] and (not causal or j <= i)]
                scores = [sum(map(mul, x[part], k[j][part]))
                          / math.sqrt(size) for j in seen]
                top = max(scores)
                powers = [math.exp(s - top) for s in scores]
                merged[i] += [sum(p * v[j][part][c]
                                  for p, j in zip(powers, seen)) / sum(powers)
                              for c in range(size)]
        return self.apply(names[3], merged)


def add(*parts):
    return [[sum(values) for values in zip(*rows)] for rows in zip(*parts)]


def gelu(x):
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi)
                                  * (x + 0.044715 * x ** 3)))


def quick_gelu(x):
    return x / (1 + math.exp(-1.702 * x))


def unit(x):
    length = math.sqrt(sum(v * v for v in x))
    return [v / length for v in x]


def integers(rows):
    flat = [v for row in rows for v in row]
    return "I64", [len(rows), len(rows[0])], array.array("q", flat).tobytes()


class Runner:
    def __init__(self, attune, work, flags):
        self.attune, self.work, self.flags = attune, work, flags
        self.failures = 0
        # Values are of the order of one. Twenty numbers in a chain that are
        # rounded to 8 bits, each by up to 2^-9 of itself, are 0.009 together
        # as a random walk, and the worst of all outputs twice that.
        rounds = {"--dtype=bf16", "--quantize=int8"} & set(flags)
        self.allowed = 2e-2 if rounds else 2e-5

    def compare(self, name, model, inputs, expected, keep=None):
        """Of a folder, a description or a program that was compiled from one."""
        path = os.path.join(self.work, name)
        tensors.save(path + ".in.safetensors", inputs)
        command = [self.attune, "run", model] + self.flags
        if os.path.isfile(model) and os.access(model, os.X_OK):
            command = [model, "run"]
        subprocess.run(command + ["--inputs", path + ".in.safetensors",
                                  "--outputs", path + ".out.safetensors"],
                       check=True)
        found = tensors.load(path + ".out.safetensors")
        for output, want in expected.items():
            got = array.array("f", found[output][2]) if output in found else []
            flat = flatten(want)
            counts = [True] * len(flat)
            if keep and len(flat) % len(keep) == 0 and len(keep) > 2 and (
                    isinstance(want[0][0], list) or len(flat) == len(keep)):
                step = len(flat) // len(keep)
                counts = [keep[i // step] for i in range(len(flat))]
            worst = max((abs(a - b) for a, b, c in zip(got, flat, counts)
                         if c), default=math.inf)
            good = len(got) == len(flat) and worst < self.allowed
            print(f"{'PASS' if good else 'FAIL'} {name} {output} {worst:.2g}")
            self.failures += not good


def flatten(value):
    if isinstance(value, list):
        return [v for part in value for v in flatten(part)]
    return [value]


def given(values):
    """The tensor, and the numbers as the program gets them."""
    raw = array.array("f", flatten(values))
    shape, inner = [], values
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0]
    rest = iter(raw)

    def again(value):
        if isinstance(value, list):
            return [again(part) for part in value]
        return next(rest)
    return ("F32", shape, raw.tobytes()), again(values)


def roberta(run):
    w = Weights()
    w.new("roberta.embeddings.word_embeddings.weight", V, D)
    w.new("roberta.embeddings.position_embeddings.weight", 12, D)
    w.new("roberta.embeddings.token_type_embeddings.weight", 1, D)
    w.norm("roberta.embeddings.LayerNorm", D)
    block = "roberta.encoder.layer.0."
    heads = [block + "attention." + n for n in (
        "self.query", "self.key", "self.value", "output.dense")]
    for name in heads:
        w.linear(name, D, D)
    w.norm(block + "attention.output.LayerNorm", D)
    w.linear(block + "intermediate.dense", INNER, D)
    w.linear(block + "output.dense", D, INNER)
    w.norm(block + "output.LayerNorm", D)
    w.linear("lm_head.dense", D, D)
    w.norm("lm_head.layer_norm", D)
    w.new("lm_head.bias", V)
    folder = os.path.join(run.work, "roberta")
    w.save(folder, {
        "model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
        "vocab_size": V, "hidden_size": D, "num_attention_heads": HEADS,
        "num_hidden_layers": 1, "intermediate_size": INNER,
        "max_position_embeddings": 12, "type_vocab_size": 1,
        "layer_norm_eps": 1e-5})
    ids = [[0, 5, 9, 4, 2, 1], [0, 7, 2, 1, 1, 1]]
    masks = [[int(i != 1) for i in row] for row in ids]
    words = w.rows("roberta.embeddings.word_embeddings.weight")
    places = w.rows("roberta.embeddings.position_embeddings.weight")
    kind = w.rows("roberta.embeddings.token_type_embeddings.weight")[0]
    logits, states = [], []
    for row, mask in zip(ids, masks):
        count, x = 0, []
        for i in row:
            count += i != 1
            place = 1 + (count if i != 1 else 0)
            x.append([a + b + c for a, b, c in zip(words[i], kind,
                                                   places[place])])
        x = w.layer_norm("roberta.embeddings.LayerNorm", x, 1e-5)
        x = w.layer_norm(block + "attention.output.LayerNorm",
                         add(x, w.attention(heads, x, mask)), 1e-5)
        y = w.apply(block + "output.dense",
                    w.apply(block + "intermediate.dense", x, gelu))
        x = w.layer_norm(block + "output.LayerNorm", add(x, y), 1e-5)
        states.append(x)
        h = w.layer_norm("lm_head.layer_norm",
                         w.apply("lm_head.dense", x, gelu), 1e-5)
        bias = w.vector("lm_head.bias")
        logits.append([[sum(map(mul, r, word)) + c
                        for word, c in zip(words, bias)] for r in h])
    run.compare("roberta", folder,
                {"input_ids": integers(ids),
                 "attention_mask": integers(masks)},
                {"logits": logits, "last_hidden_state": states},
                [m for mask in masks for m in mask])


def mpnet(run):
    """Scores have biases by distance, the same in both layers; what is farther
    than 127 shares one."""
    w, heads, layers = Weights(), ("q", "k", "v", "o"), 2
    w.new("mpnet.embeddings.word_embeddings.weight", V, D)
    w.new("mpnet.embeddings.position_embeddings.weight", 150, D)
    w.norm("mpnet.embeddings.LayerNorm", D)
    w.new("mpnet.encoder.relative_attention_bias.weight", 32, HEADS, scale=2)
    for i in range(layers):
        at = f"mpnet.encoder.layer.{i}."
        for name in heads:
            w.linear(at + "attention.attn." + name, D, D)
        w.norm(at + "attention.LayerNorm", D)
        w.linear(at + "intermediate.dense", INNER, D)
        w.linear(at + "output.dense", D, INNER)
        w.norm(at + "output.LayerNorm", D)
    w.linear("classifier.dense", D, D)
    w.linear("classifier.out_proj", 3, D)
    folder = os.path.join(run.work, "mpnet")
    config = {
        "model_type": "mpnet",
        "architectures": ["MPNetForSequenceClassification"],
        "vocab_size": V, "hidden_size": D, "num_attention_heads": HEADS,
        "num_hidden_layers": layers, "intermediate_size": INNER,
        "max_position_embeddings": 150, "layer_norm_eps": 1e-5,
        "num_labels": 3}
    w.save(folder, config)
    ids = [[0] + [3 + i * i % 26 for i in range(140)] + [2],
           [0, 7, 9, 2] + [1] * 138]
    masks = [[int(i != 1) for i in row] for row in ids]

    def bucket(ahead):
        """Sixteen for each side: eight distances, then by their logarithm."""
        side, far = (16 if ahead > 0 else 0), abs(ahead)
        if far < 8:
            return side + far
        return side + min(15, 8 + int(math.log(far / 8) / math.log(16) * 8))
    biases = w.rows("mpnet.encoder.relative_attention_bias.weight")
    words = w.rows("mpnet.embeddings.word_embeddings.weight")
    places = w.rows("mpnet.embeddings.position_embeddings.weight")
    states, size = [], D // HEADS
    for row, mask in zip(ids, masks):
        # Positions count from 2; padding is at 1.
        x = [[a + b for a, b in zip(words[i], places[
            sum(mask[:t + 1]) + 1 if mask[t] else 1])]
            for t, i in enumerate(row)]
        x = w.layer_norm("mpnet.embeddings.LayerNorm", x, 1e-5)
        for i in range(layers):
            at = f"mpnet.encoder.layer.{i}."
            q, k, v = (w.apply(at + "attention.attn." + n, x)
                       for n in heads[:3])
            merged = [[] for _ in x]
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                for m in range(len(x)):
                    seen = [n for n in range(len(x)) if mask[n]]
                    scores = [sum(map(mul, q[m][part], k[n][part]))
                              / math.sqrt(size) + biases[bucket(n - m)][head]
                              for n in seen]
                    powers = [math.exp(s - max(scores)) for s in scores]
                    merged[m] += [sum(p * v[n][part][c] for p, n in zip(
                        powers, seen)) / sum(powers) for c in range(size)]
            y = w.apply(at + "attention.attn.o", merged)
            x = w.layer_norm(at + "attention.LayerNorm", add(x, y), 1e-5)
            y = w.apply(at + "output.dense",
                        w.apply(at + "intermediate.dense", x, gelu))
            x = w.layer_norm(at + "output.LayerNorm", add(x, y), 1e-5)
        states.append(x)
    pooled = w.apply("classifier.dense", [x[0] for x in states], math.tanh)
    inputs = {"input_ids": integers(ids), "attention_mask": integers(masks)}
    run.compare("mpnet", folder, inputs,
                {"logits": w.apply("classifier.out_proj", pooled),
                 "last_hidden_state": states},
                [m for mask in masks for m in mask])
    # As sentence-transformers leaves it: the file names a head that it lacks,
    # and tensors have no prefix.
    w.values = {name[6:]: value for name, value in w.values.items()
                if name.startswith("mpnet.")}
    folder = os.path.join(run.work, "mpnet_sentences")
    w.save(folder, {**config, "architectures": ["MPNetForMaskedLM"]})
    with open(os.path.join(folder, "modules.json"), "w") as file:
        json.dump([{"idx": 0, "name": "0", "path": "", "type":
                    "sentence_transformers.models.Transformer"}], file)
    run.compare("mpnet_sentences", folder, inputs,
                {"last_hidden_state": states},
                [m for mask in masks for m in mask])


def esm_heads(run, w, config, inputs, states, keep):
    """The other classes, of the last layer's `states`."""
    first = [rows[0] for rows in states]

    def compare(name, layers, expected, keep=None):
        used, folder = Weights(), os.path.join(run.work, name)
        for layer, out in layers:
            w.linear(layer, out, D)
        starts = ("esm.embeddings.", "esm.encoder.",
                  *(layer + "." for layer, _ in layers))
        used.values = {key: value for key, value in w.values.items()
                       if key.startswith(starts)}
        used.save(folder, {**config, "architectures": [name],
                           "id2label": {"0": "a", "1": "b", "2": "c"}})
        run.compare(name, folder, inputs, expected(), keep)
    compare("EsmForTokenClassification", [("classifier", 3)], lambda: {
        "logits": [w.apply("classifier", rows) for rows in states]}, keep)
    compare("EsmForSequenceClassification",
            [("classifier.dense", D), ("classifier.out_proj", 3)],
            lambda: {"logits": w.apply("classifier.out_proj", w.apply(
                "classifier.dense", first, math.tanh))})
    compare("EsmModel", [("esm.pooler.dense", D)], lambda: {
        "pooler_output": w.apply("esm.pooler.dense", first, math.tanh)})


def esm(run):
    """Positions turn, norms come first, and embeddings are 0.88 of what the
    table has."""
    w, layers = Weights(), 2
    names = ("self.query", "self.key", "self.value", "output.dense")
    w.new("esm.embeddings.word_embeddings.weight", V, D)
    for i in range(layers):
        at = f"esm.encoder.layer.{i}."
        for name in names:
            w.linear(at + "attention." + name, D, D)
        for name in ("attention.LayerNorm", "LayerNorm"):
            w.norm(at + name, D)
        w.linear(at + "intermediate.dense", INNER, D)
        w.linear(at + "output.dense", D, INNER)
    w.norm("esm.encoder.emb_layer_norm_after", D)
    w.linear("lm_head.dense", D, D)
    w.norm("lm_head.layer_norm", D)
    w.new("lm_head.bias", V)
    folder = os.path.join(run.work, "esm")
    config = {
        "model_type": "esm", "architectures": ["EsmForMaskedLM"],
        "vocab_size": V, "hidden_size": D, "num_attention_heads": HEADS,
        "num_hidden_layers": layers, "intermediate_size": INNER,
        "max_position_embeddings": 1026, "layer_norm_eps": 1e-5,
        "position_embedding_type": "rotary", "emb_layer_norm_before": False,
        "token_dropout": True, "mask_token_id": V - 1, "pad_token_id": 1,
        "esmfold_config": None, "vocab_list": None, "is_folding_model": False}
    w.save(folder, config)
    ids = [[0, 5, 9, 4, 12, 2], [0, 7, 9, 2, 1, 1]]
    masks = [[int(i != 1) for i in row] for row in ids]
    table = w.rows("esm.embeddings.word_embeddings.weight")
    size, states, logits = D // HEADS, [], []

    def turned(rows):
        out = []
        for t, row in enumerate(rows):
            row = list(row)
            for head in range(0, D, size):
                for i in range(size // 2):
                    angle = t * 10000.0 ** (-2.0 * i / size)
                    a, b = row[head + i], row[head + i + size // 2]
                    row[head + i] = a * math.cos(angle) - b * math.sin(angle)
                    row[head + i + size // 2] = (
                        b * math.cos(angle) + a * math.sin(angle))
            out.append(row)
        return out
    for row, mask in zip(ids, masks):
        x = [[0.88 * a for a in table[i]] for i in row]
        for i in range(layers):
            at = f"esm.encoder.layer.{i}."
            normed = w.layer_norm(at + "attention.LayerNorm", x, 1e-5)
            q, k, v = (w.apply(at + "attention." + n, normed)
                       for n in names[:3])
            q, k = turned(q), turned(k)
            seen = [n for n in range(len(x)) if mask[n]]
            y = attend(q, [k[n] for n in seen], [v[n] for n in seen])
            x = add(x, w.apply(at + "attention.output.dense", y))
            y = w.layer_norm(at + "LayerNorm", x, 1e-5)
            y = w.apply(at + "output.dense",
                        w.apply(at + "intermediate.dense", y, gelu))
            x = add(x, y)
        x = w.layer_norm("esm.encoder.emb_layer_norm_after", x, 1e-5)
        states.append(x)
        h = w.layer_norm("lm_head.layer_norm",
                         w.apply("lm_head.dense", x, gelu), 1e-5)
        logits.append([[sum(map(mul, r, word)) + c for word, c in zip(
            table, w.vector("lm_head.bias"))] for r in h])
    inputs = {"input_ids": integers(ids), "attention_mask": integers(masks)}
    run.compare("esm", folder, inputs,
                {"logits": logits, "last_hidden_state": states},
                [m for mask in masks for m in mask])
    esm_heads(run, w, config, inputs, states, [m for mask in masks for m in mask])
    # What masked tokens do to the others' embeddings no layer knows.
    path = os.path.join(run.work, "masked.safetensors")
    tensors.save(path, {**inputs, "input_ids": integers(
        [[0, 5, V - 1, 4, 12, 2], ids[1]])})
    refused = subprocess.run(
        [run.attune, "run", folder] + run.flags +
        ["--inputs", path,
         "--outputs", os.path.join(run.work, "masked.out.safetensors")],
        capture_output=True, text=True)
    good = refused.returncode and str(V - 1) in refused.stderr
    print(f"{'PASS' if good else 'FAIL'} esm refuses masks: {refused.stderr}")
    run.failures += not good


def albert(run):
    w, tables = Weights(), 10
    for name, rows in (("word", V), ("position", 8), ("token_type", 2)):
        w.new(f"albert.embeddings.{name}_embeddings.weight", rows, tables)
    w.norm("albert.embeddings.LayerNorm", tables)
    w.linear("albert.encoder.embedding_hidden_mapping_in", D, tables)
    groups = []
    for group in range(2):
        g = f"albert.encoder.albert_layer_groups.{group}.albert_layers.0."
        groups.append(g)
        for n in ("query", "key", "value", "dense"):
            w.linear(g + "attention." + n, D, D)
        w.norm(g + "attention.LayerNorm", D)
        w.linear(g + "ffn", INNER, D)
        w.linear(g + "ffn_output", D, INNER)
        w.norm(g + "full_layer_layer_norm", D)
    w.linear("albert.pooler", D, D)
    w.linear("classifier", 3, D)
    folder = os.path.join(run.work, "albert")
    w.save(folder, {
        "model_type": "albert",
        "architectures": ["AlbertForSequenceClassification"],
        "vocab_size": V, "embedding_size": tables, "hidden_size": D,
        "num_attention_heads": HEADS, "num_hidden_layers": 5,
        "num_hidden_groups": 2, "intermediate_size": INNER,
        "max_position_embeddings": 8, "type_vocab_size": 2,
        "id2label": {"0": "a", "1": "b", "2": "c"}})
    ids, kinds = [[2, 5, 9, 4, 3, 8]], [[0, 0, 0, 1, 1, 1]]
    table = [w.rows(f"albert.embeddings.{n}_embeddings.weight")
             for n in ("word", "token_type", "position")]
    x = [[sum(v) for v in zip(table[0][i], table[1][k], table[2][t])]
         for t, (i, k) in enumerate(zip(ids[0], kinds[0]))]
    x = w.layer_norm("albert.embeddings.LayerNorm", x, 1e-12)
    x = w.apply("albert.encoder.embedding_hidden_mapping_in", x)
    for layer in range(5):
        g = groups[int(layer / (5 / 2))]
        heads = [g + "attention." + n
                 for n in ("query", "key", "value", "dense")]
        x = w.layer_norm(g + "attention.LayerNorm",
                         add(x, w.attention(heads, x, [1] * T)), 1e-12)
        y = w.apply(g + "ffn_output", w.apply(g + "ffn", x, gelu_tanh))
        x = w.layer_norm(g + "full_layer_layer_norm", add(x, y), 1e-12)
    pooled = w.apply("albert.pooler", x[:1], math.tanh)
    run.compare("albert", folder,
                {"input_ids": integers(ids),
                 "token_type_ids": integers(kinds)},
                {"last_hidden_state": [x],
                 "logits": w.apply("classifier", pooled)})


TOWER_HEADS = ("q_proj", "k_proj", "v_proj", "out_proj")


def tower_block(w, prefix):
    """A block of CLIP's and SigLIP's towers."""
    for n in TOWER_HEADS:
        w.linear(prefix + "self_attn." + n, D, D)
    w.norm(prefix + "layer_norm1", D)
    w.norm(prefix + "layer_norm2", D)
    w.linear(prefix + "mlp.fc1", INNER, D)
    w.linear(prefix + "mlp.fc2", D, INNER)


def run_tower_block(w, prefix, x, eps, activation, causal=False, shown=None):
    h = w.layer_norm(prefix + "layer_norm1", x, eps)
    x = add(x, w.attention([prefix + "self_attn." + n for n in TOWER_HEADS],
                           h, shown or [1] * len(x), causal))
    h = w.layer_norm(prefix + "layer_norm2", x, eps)
    return add(x, w.apply(prefix + "mlp.fc2",
                          w.apply(prefix + "mlp.fc1", h, activation)))


def clip(run, end):
    w, image, patch, space = Weights(), 8, 4, 12

    w.new("text_model.embeddings.token_embedding.weight", V, D)
    w.new("text_model.embeddings.position_embedding.weight", 9, D)
    tower_block(w, "text_model.encoder.layers.0.")
    w.norm("text_model.final_layer_norm", D)
    w.new("vision_model.embeddings.class_embedding", D)
    w.new("vision_model.embeddings.patch_embedding.weight", D, 3, patch, patch)
    w.new("vision_model.embeddings.position_embedding.weight", 5, D)
    w.norm("vision_model.pre_layrnorm", D)
    tower_block(w, "vision_model.encoder.layers.0.")
    w.norm("vision_model.post_layernorm", D)
    w.linear("text_projection", space, D, bias=False)
    w.linear("visual_projection", space, D, bias=False)
    w.values["logit_scale"] = ([], array.array("f", [1.25]))
    name = f"clip{end}"
    folder = os.path.join(run.work, name)
    sizes = {"hidden_size": D, "intermediate_size": INNER,
             "num_attention_heads": HEADS, "num_hidden_layers": 1}
    w.save(folder, {
        "model_type": "clip", "architectures": ["CLIPModel"],
        "projection_dim": space, "logit_scale_init_value": 2.6592,
        "text_config": dict(sizes, vocab_size=V, eos_token_id=end,
                            max_position_embeddings=9,
                            model_type="clip_text_model"),
        "vision_config": dict(sizes, image_size=image, patch_size=patch,
                              model_type="clip_vision_model")})
    ids = [[3, 5, 29, 7, 29, 1], [4, 8, 9, 10, 29, 12], [3, 29, 5, 5, 6, 7]]
    words = w.rows("text_model.embeddings.token_embedding.weight")
    places = w.rows("text_model.embeddings.position_embedding.weight")
    text = []
    for row in ids:
        x = [[a + b for a, b in zip(words[i], places[t])]
             for t, i in enumerate(row)]
        x = run_tower_block(w, "text_model.encoder.layers.0.", x, 1e-5,
                            quick_gelu, causal=True)
        x = w.layer_norm("text_model.final_layer_norm", x, 1e-5)
        at = row.index(max(row) if end == 2 else end)
        text.append(unit(w.apply("text_projection", [x[at]])[0]))
    pixels = [[[[RNG.uniform(-1, 1) for _ in range(image)]
                for _ in range(image)] for _ in range(3)] for _ in range(2)]
    raw = array.array("f", flatten(pixels))
    kernel = w.rows("vision_model.embeddings.patch_embedding.weight")
    places = w.rows("vision_model.embeddings.position_embedding.weight")
    vision, means = [], []
    for sample in range(2):
        x = [w.vector("vision_model.embeddings.class_embedding")]
        for top in range(0, image, patch):
            for left in range(0, image, patch):
                seen = [raw[((sample * 3 + c) * image + top + i) * image
                            + left + j]
                        for c in range(3) for i in range(patch)
                        for j in range(patch)]
                x.append([sum(map(mul, seen, k))
                          for k in kernel])
        x = w.layer_norm("vision_model.pre_layrnorm", add(x, places), 1e-5)
        x = run_tower_block(w, "vision_model.encoder.layers.0.", x, 1e-5,
                            quick_gelu)
        means.append([sum(c) / (len(x) - 1) for c in zip(*x[1:])])
        pooled = w.layer_norm("vision_model.post_layernorm", x[:1], 1e-5)
        vision.append(unit(w.apply("visual_projection", pooled)[0]))
    scale = math.exp(1.25)
    scores = [[scale * sum(map(mul, t, v)) for v in vision]
              for t in text]
    run.compare(name, folder,
                {"input_ids": integers(ids),
                 "pixel_values": ("F32", [2, 3, image, image],
                                  raw.tobytes())},
                {"text_embeds": text, "image_embeds": vision,
                 "logits_per_text": scores,
                 "logits_per_image": [list(c) for c in zip(*scores)]})
    # A classifier has the image tower alone, and scores the mean of its patches.
    w.values = {n: value for n, value in w.values.items()
                if n.startswith("vision_model.")}
    w.linear("classifier", 3, D)
    folder = os.path.join(run.work, name + "_classifier")
    w.save(folder, {
        "model_type": "clip", "architectures": ["CLIPForImageClassification"],
        "num_labels": 3, "text_config": {}, "vision_config": dict(
            sizes, image_size=image, patch_size=patch,
            model_type="clip_vision_model")})
    run.compare(name + "_classifier", folder,
                {"pixel_values": ("F32", [2, 3, image, image],
                                  raw.tobytes())},
                {"logits": w.apply("classifier", means)})


def nomic_bert(run):
    """Positions rotate, feed-forward layers have gates and a width that is
    rounded up to 256, nothing has a bias but the norms."""
    w = Weights()
    w.new("embeddings.word_embeddings.weight", V + 2, D)
    w.new("embeddings.token_type_embeddings.weight", 2, D)
    w.norm("emb_ln", D)
    block = "encoder.layers.0."
    w.linear(block + "attn.Wqkv", 3 * D, D, False)
    w.linear(block + "attn.out_proj", D, D, False)
    for name in ("norm1", "norm2"):
        w.norm(block + name, D)
    w.linear(block + "mlp.fc11", 256, D, False)
    w.linear(block + "mlp.fc12", 256, D, False)
    w.linear(block + "mlp.fc2", D, 256, False)
    folder = os.path.join(run.work, "nomic_bert")
    w.save(folder, {
        "model_type": "nomic_bert", "architectures": ["NomicBertModel"],
        "activation_function": "swiglu", "n_embd": D, "n_head": HEADS,
        "n_inner": INNER, "n_layer": 1, "vocab_size": V,
        "pad_vocab_size_multiple": 16, "qkv_proj_bias": False,
        "mlp_fc1_bias": False, "mlp_fc2_bias": False, "rotary_emb_base": 1000,
        "rotary_emb_fraction": 1.0, "layer_norm_epsilon": 1e-12})
    ids = [[4, 5, 9, 4, 2, 1], [3, 7, 2, 0, 0, 0]]
    masks = [[1] * T, [1, 1, 1, 0, 0, 0]]
    kinds = [[0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0]]
    words = w.rows("embeddings.word_embeddings.weight")
    types = w.rows("embeddings.token_type_embeddings.weight")
    # Three matrices for the attention, rotated as it reads them.
    whole = w.rows(block + "attn.Wqkv.weight")
    size = D // HEADS

    def turned(rows):
        out = []
        for t, row in enumerate(rows):
            row = list(row)
            for head in range(0, D, size):
                for i in range(size // 2):
                    angle = t * 1000.0 ** (-2.0 * i / size)
                    a, b = row[head + i], row[head + i + size // 2]
                    row[head + i] = a * math.cos(angle) - b * math.sin(angle)
                    row[head + i + size // 2] = (
                        b * math.cos(angle) + a * math.sin(angle))
            out.append(row)
        return out

    def attention(x, mask):
        q, k, v = ([[sum(map(mul, r, line)) for line in part]
                    for r in x]
                   for part in (whole[:D], whole[D:2 * D], whole[2 * D:]))
        q, k = turned(q), turned(k)
        merged = [[] for _ in x]
        for head in range(0, D, size):
            part = slice(head, head + size)
            for i, row in enumerate(q):
                seen = [j for j in range(len(x)) if mask[j]]
                scores = [sum(map(mul, row[part], k[j][part]))
                          / math.sqrt(size) for j in seen]
                powers = [math.exp(s - max(scores)) for s in scores]
                merged[i] += [sum(p * v[j][head + c] for p, j in zip(
                    powers, seen)) / sum(powers) for c in range(size)]
        return w.apply(block + "attn.out_proj", merged)
    states = []
    for row, mask, kind in zip(ids, masks, kinds):
        x = [[a + b for a, b in zip(words[i], types[n])]
             for i, n in zip(row, kind)]
        x = w.layer_norm("emb_ln", x, 1e-12)
        x = w.layer_norm(block + "norm1", add(x, attention(x, mask)), 1e-12)
        up = w.apply(block + "mlp.fc11", x)
        gate = w.apply(block + "mlp.fc12", x, lambda a: a / (1 + math.exp(-a)))
        y = w.apply(block + "mlp.fc2", [[a * b for a, b in zip(u, g)]
                                        for u, g in zip(up, gate)])
        states.append(w.layer_norm(block + "norm2", add(x, y), 1e-12))
    run.compare("nomic_bert", folder,
                {"input_ids": integers(ids), "token_type_ids": integers(kinds),
                 "attention_mask": integers(masks)},
                {"last_hidden_state": states},
                [m for mask in masks for m in mask])


CASES = {"roberta": roberta, "mpnet": mpnet, "esm": esm, "albert": albert,
         "clip29": lambda run: clip(run, end=29),
         "clip2": lambda run: clip(run, end=2), "nomic_bert": nomic_bert}


def main():
    attune, work, *rest = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    flags = [word for word in rest if word.startswith("--")]
    run = Runner(attune, work, flags)
    for name in [word for word in rest if word not in flags] or CASES:
        CASES[name](run)
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
