# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What decoders are made of, in plain float64 loops: random weights by name and
the layers that read them. `decoders.py` puts architectures together."""
import json
import math
import os
import random
import re
import shlex
import struct
import subprocess
from operator import mul

import tensors

TOKENS, VOCAB, WIDTH, HEADS, DIM, INNER = 11, 40, 32, 4, 8, 48

BASE = {"vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER,
        "num_attention_heads": HEADS, "num_hidden_layers": 2,
        "max_position_embeddings": 64}


class Weights:
    """Random tensors by name; each is made when it is first asked for."""

    def __init__(self, seed):
        self.random, self.made = random.Random(seed), {}

    def vector(self, name, size, center=0.0):
        if name not in self.made:
            raw = struct.pack(f"<{size}f", *(
                center + self.random.uniform(-0.5, 0.5) for _ in range(size)))
            self.made[name] = ([size], raw)
        return list(struct.unpack(f"<{size}f", self.made[name][1]))

    def matrix(self, name, rows, columns):
        flat = self.vector(name, rows * columns)
        self.made[name] = ([rows, columns], self.made[name][1])
        return [flat[i * columns:(i + 1) * columns] for i in range(rows)]

    def save(self, path):
        tensors.save(path, {name: ("F32", shape, raw)
                            for name, (shape, raw) in self.made.items()})


def dot(a, b):
    return math.fsum(map(mul, a, b))


def add(*vectors):
    return [sum(values) for values in zip(*vectors)]


def scaled(vector, factor):
    return [x * factor for x in vector]


def linear(w, name, x, rows, bias=False):
    matrix = w.matrix(name + ".weight", rows, len(x[0]))
    offset = w.vector(name + ".bias", rows) if bias else [0.0] * rows
    return [[dot(row, v) + b for row, b in zip(matrix, offset)] for v in x]


def layer_norm(w, name, x, eps=1e-5, bias=True, affine=True, offset=0.0):
    size = len(x[0])
    gamma = [offset + g for g in w.vector(name + ".weight", size, 1.0 - offset)
             ] if affine else [1.0] * size
    beta = w.vector(name + ".bias", size) if bias and affine else [0.0] * size
    result = []
    for v in x:
        mean = math.fsum(v) / size
        scale = 1 / math.sqrt(math.fsum((a - mean) ** 2 for a in v) / size + eps)
        result.append([(a - mean) * scale * g + b
                       for a, g, b in zip(v, gamma, beta)])
    return result


def rms_norm(w, name, x, eps=1e-6, offset=0.0):
    size = len(x[0])
    gamma = w.vector(name + ".weight", size, 1.0 - offset)
    result = []
    for v in x:
        scale = 1 / math.sqrt(dot(v, v) / size + eps)
        result.append([a * scale * (offset + g) for a, g in zip(v, gamma)])
    return result


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi)
                                    * (x + 0.044715 * x ** 3)))


def gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def silu(x):
    return x / (1 + math.exp(-x))


def relu(x):
    return max(x, 0.0)


def split(x, heads):
    """Rows to heads of rows."""
    size = len(x[0]) // heads
    return [[v[h * size:(h + 1) * size] for v in x] for h in range(heads)]


def turn(heads, theta=10000.0, channels=None, interleaved=False,
         frequencies=None, factor=1.0, first=0):
    """`first`: the position of the first row."""
    channels = channels or len(heads[0][0])
    half = channels // 2
    frequencies = frequencies or [theta ** (-2.0 * i / channels)
                                  for i in range(half)]
    result = []
    for rows in heads:
        turned = []
        for t, v in enumerate(rows, first):
            v = list(v)
            for i, frequency in enumerate(frequencies):
                a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
                c = factor * math.cos(t * frequency)
                s = factor * math.sin(t * frequency)
                v[a], v[b] = v[a] * c - v[b] * s, v[b] * c + v[a] * s
            turned.append(v)
        result.append(turned)
    return result


def yarn(theta, channels, factor, length, fast=32.0, slow=1.0, whole=False):
    """Frequencies and what multiplies the table. The ends of the ramp stay as
    they are computed, or become `whole` numbers around them."""
    def pair(turns):
        return (channels * math.log(length / (turns * 2 * math.pi))
                / (2 * math.log(theta)))
    low, high = pair(fast), pair(slow)
    if whole:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, channels - 1)
    frequencies = []
    for i in range(channels // 2):
        kept = 1 - min(max((i - low) / (high - low), 0), 1)
        plain = theta ** (-2.0 * i / channels)
        frequencies.append(plain / factor * (1 - kept) + plain * kept)
    return frequencies, 0.1 * math.log(factor) + 1


def attend(q, k, v, scale=None, window=None, cap=None, bias=None, sinks=None,
           chunk=None):
    """Causal; `bias(head, query, key)` is added to the scaled scores, and the
    softmax counts each head's sink. Tokens see those of their chunk."""
    scale = scale or 1 / math.sqrt(len(q[0][0]))
    group = len(q) // len(k)
    joined = [[] for _ in q[0]]
    for h, rows in enumerate(q):
        for m, query in enumerate(rows):
            first = max(0, m - window + 1) if window else 0
            first = m - m % chunk if chunk else first
            scores = []
            for n in range(first, m + 1):
                score = scale * dot(query, k[h // group][n])
                score = cap * math.tanh(score / cap) if cap else score
                scores.append(score + (bias(h, m, n) if bias else 0.0))
            more = [sinks[h]] if sinks else []
            top = max(scores + more)
            weights = [math.exp(s - top) for s in scores]
            total = math.fsum(weights + [math.exp(s - top) for s in more])
            joined[m] += [math.fsum(a * v[h // group][first + i][c]
                                    for i, a in enumerate(weights)) / total
                          for c in range(len(v[0][0]))]
    return joined


def gated(w, name, x, function, width=INNER):
    gate = linear(w, name + "gate_proj", x, width)
    up = linear(w, name + "up_proj", x, width)
    inner = [[function(g) * u for g, u in zip(a, b)] for a, b in zip(gate, up)]
    return linear(w, name + "down_proj", inner, WIDTH)


def plain(w, up, down, x, function, bias=True, inner=INNER):
    hidden = linear(w, up, x, inner, bias)
    hidden = [[function(a) for a in v] for v in hidden]
    return linear(w, down, hidden, WIDTH, bias)


def embed(w, name, ids, factor=1.0, width=WIDTH):
    table = w.matrix(name, VOCAB, width)
    return [scaled(table[i], factor) for i in ids]


def head(w, name, x):
    return linear(w, name, x, VOCAB)


def tied(w, name, x):
    table = w.matrix(name, VOCAB, len(x[0]))
    return [[dot(row, v) for row in table] for v in x]


def plus(x, y):
    return [add(a, b) for a, b in zip(x, y)]


def llama_like(w, ids, layers, self_attention, offset=0.0, factor=1.0,
               function=silu, untied=True, eps=1e-6):
    x = embed(w, "model.embed_tokens.weight", ids, factor)
    for i in range(layers):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x, eps, offset)
        x = plus(x, self_attention(w, at + "self_attn.", normed, i))
        normed = rms_norm(w, at + "post_attention_layernorm", x, eps, offset)
        x = plus(x, gated(w, at + "mlp.", normed, function))
    x = rms_norm(w, "model.norm", x, eps, offset)
    return head(w, "lm_head", x) if untied else tied(
        w, "model.embed_tokens.weight", x)


def norm_each(w, name, heads, function):
    """One gamma for all heads."""
    return [function(w, name, rows) for rows in heads]


def projections(w, at, x, kv, dim=DIM, bias=False):
    return [split(linear(w, at + n, x, heads * dim, bias), heads)
            for n, heads in (("q_proj", HEADS), ("k_proj", kv), ("v_proj", kv))]


# What the compiler is told and what stands before each program, as
# --flag=--mesh=tp=2 and --launch="mpirun -n 2" say.
FLAGS, LAUNCH = [], []


def take_options(words):
    """The words without options, which count from now on."""
    rest = []
    for word in words:
        name, _, value = word.partition("=")
        if name == "--flag":
            FLAGS.append(value)
        elif name == "--launch":
            LAUNCH.extend(shlex.split(value))
        else:
            rest.append(word)
    return rest


def is_refusal(error):
    """Whether a cut among ranks was refused, and where that stands said."""
    return bool(FLAGS) and re.match(
        r"\S*config\.json:\d+:\d+: error: .*(ranks|--mesh=)", error) is not None


def program(folder, *words):
    """Runs the program of a folder."""
    options = ["--check-ranks"] if LAUNCH else []
    return subprocess.run(
        [*LAUNCH, os.path.join(folder, "program"), *words, *options],
        capture_output=True, text=True)


def build(attune, folder, weights, config):
    """Compiles a checkpoint with what its config says to a program, once for
    all of its inputs; nothing, or what is wrong."""
    weights.save(os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as file:
        json.dump(config, file)
    result = subprocess.run(
        [attune, "compile", folder, *FLAGS, "-o",
         os.path.join(folder, "program")],
        capture_output=True, text=True)
    return result.stderr if result.returncode else ""
