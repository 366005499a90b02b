#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks a compiled description against its formulas in f64.

  reference.py ATTUNE MODEL.json WORK [--set D=16]... [--dim seq=7]...
               [--store bf16 [--narrow]] [FLAG]...

Evaluates the description as lib/Spec/Guide defines it, one number at a time,
with random weights and inputs; compiles and runs it on the same; compares every
output. It reads the JSON itself and shares no code with the compiler. --set
changes a number of "dims", so that a big model is checked in a small size, and
--dim gives a symbol of the inputs' shapes. --store keeps the weights in bf16 or
f16; they are numbers which both hold exactly, so nothing is rounded more often
than in f32. FLAGs go to `attune run`.

The tolerance is 2e-5 of the largest value of an output: f32 sums of a few hundred
terms differ by about 1e-6 of it, a slip in a formula by thousands of times more.
With --narrow the target rounds inputs of products to the type of --store, whose
step is 2^-8 or 2^-11: four such steps of the largest value are allowed, where a
slip still makes a difference of the order of the values.
"""
import array
import json
import math
import os
import random
import subprocess
import sys
import zlib
from operator import mul

import reference_forms
import reference_joint
import reference_latent
import reference_recurrent
import reference_signals
import tensors
from reference_functions import (ACTIVATIONS, FEATURES, alibi_slope,
                                 among_near, share, softmax, xielu)


def dot(a, b):
    return sum(map(mul, a, b))


def matmul(rows, matrix):
    """rows [M, K] times the transpose of matrix [N, K]."""
    return [[dot(row, column) for column in matrix] for row in rows]


def add(a, b):
    return [[x + y for x, y in zip(p, q)] for p, q in zip(a, b)]


class Weights:
    """Tensors made up when they are first asked for, kept as f32."""

    def __init__(self, short):
        self.made, self.short = {}, short

    def get(self, name, shape):
        if name not in self.made:
            source = random.Random(zlib.crc32(name.encode()))
            spread, middle = 0.1, 0.0
            if len(shape) == 2:
                spread = 1 / math.sqrt(shape[1])
            elif name.endswith("weight"):
                middle = 1.0
            elif name.endswith("router.bias"):
                middle = -0.6  # so that choices are negative, too
            values = array.array("f", (source.gauss(middle, spread)
                                       for _ in range(math.prod(shape))))
            if self.short:
                # Eight bits, none of them below 2^-24.
                bits = array.array("I", values.tobytes())
                values = array.array("f", array.array("I", (
                    x & 0xffff0000 if abs(y) >= 2.0 ** -17 else 0
                    for x, y in zip(bits, values))).tobytes())
            self.made[name] = (shape, values)
        held, values = self.made[name]
        if held != shape:
            sys.exit(f"{name} is {held} here and {shape} there")
        if len(shape) == 1:
            return list(values)
        return [list(values[i:i + shape[1]])
                for i in range(0, len(values), shape[1])]

    def save(self, path):
        tensors.save(path, {name: ("F32", shape, values.tobytes())
                            for name, (shape, values) in self.made.items()})


class Loss(list):
    """The terms of a loss over one sequence, whose mean is over all of them."""


class Layer:
    """One repeat of a layer: its weights by role."""

    def __init__(self, model, layer, name, number):
        self.model, self.layer = model, layer
        self.name, self.number = name, number

    def instance(self):
        return self.name.replace("{i}", str(self.number))

    def weight(self, role, *shape, expert=None):
        source = self.layer.get("weights", {}).get(role)
        transposed = False
        if isinstance(source, dict):
            transposed, source = source.get("transposed", False), source["tensor"]
        name = source or f"{self.name}.{role}"
        name = name.replace("{i}", str(self.number)).replace("{e}", str(expert))
        if not transposed:
            return self.model.weights.get(name, list(shape))
        return [list(c) for c in zip(*self.model.weights.get(name, list(shape)[::-1]))]

    def linear(self, rows, role, out, bias, matrix=None):
        matrix = matrix or self.weight(role + "weight", out, len(rows[0]))
        result = matmul(rows, matrix)
        if bias:
            shift = self.weight(role + "bias", out)
            result = [[x + b for x, b in zip(row, shift)] for row in result]
        return result

    def norm(self, rows, options, role, kind=None):
        kind = kind or options.get("kind", "layer_norm")
        eps, width = options.get("eps", 1e-5), len(rows[0])
        gamma, beta = [1.0] * width, [0.0] * width
        if options.get("scale", True):
            gamma = [options.get("offset", 0) + g
                     for g in self.weight(role + "weight", width)]
        if kind == "layer_norm" and options.get("bias", True):
            beta = self.weight(role + "bias", width)
        result = []
        for row in rows:
            mean = sum(row) / width if kind == "layer_norm" else 0.0
            spread = math.sqrt(sum((x - mean) ** 2 for x in row) / width + eps)
            result.append([(x - mean) / spread * g + b
                           for x, g, b in zip(row, gamma, beta)])
        return result

    def ffn(self, rows, options, role):
        inner, width = self.model.number(options["width"]), len(rows[0])
        act = ACTIVATIONS[options.get("activation", "gelu")]
        bias = options.get("bias", True)
        if options.get("xielu"):
            p, n = (math.log1p(math.exp(self.weight(role + name, 1, 1)[0][0]))
                    for name in ("alpha_p", "alpha_n"))
            act = xielu(p, n)
        if options.get("shift"):
            rows = reference_recurrent.shifted(rows, self.weight(role + "x_k",
                                                                 width))
        up = self.linear(rows, role + "up.", inner, bias)
        if options.get("gated", False):
            gate = self.linear(rows, role + "gate.", inner, bias)
            hidden = [[act(g) * u for g, u in zip(p, q)]
                      for p, q in zip(gate, up)]
        else:
            hidden = [[act(u) for u in row] for row in up]
        return self.linear(hidden, role + "down.", width, bias)

    def expert(self, rows, options, role, number, width):
        """One expert's feed-forward layer; a shared one has no biases."""
        inner = self.model.number(width)
        act = ACTIVATIONS[options.get("activation", "silu")]
        bias = options.get("bias", False) and number is not None

        def project(name, out, x):
            result = matmul(x, self.weight(f"{role}{name}.weight", out,
                                           len(x[0]), expert=number))
            if bias:
                shift = self.weight(f"{role}{name}.bias", out, expert=number)
                result = [[a + b for a, b in zip(row, shift)]
                          for row in result]
            return result
        hidden = project("up", inner, rows)
        if options.get("gated", True):
            limit = options.get("limit", math.inf)
            more = options.get("up_offset", 0)
            gate = project("gate", inner, rows)
            hidden = [[act(min(g, limit)) * (max(min(u, limit), -limit) + more)
                       for g, u in zip(p, q)] for p, q in zip(gate, hidden)]
        else:
            hidden = [[act(u) for u in row] for row in hidden]
        return project("down", len(rows[0]), hidden)

    def route(self, logits, bias, router, experts, active):
        """The experts of one token, and what each counts."""
        after = router.get("softmax_after", False)
        mixes = router.get("scores", "softmax") == "sparse_mixer"
        if mixes:
            scores = list(logits)
        elif router.get("scores", "softmax") == "sigmoid":
            scores = [ACTIVATIONS["sigmoid"](x) for x in logits]
        else:
            scores = list(logits) if after else softmax(logits)
        choice = [s + b for s, b in zip(scores, bias)]
        groups = self.model.number(router.get("groups", 1))
        kept = self.model.number(router.get("active_groups", groups))
        size = experts // groups
        best = 2 if router.get("group_score", "max") == "top_two" else 1

        def judge(g):
            return sum(sorted(choice[g * size:(g + 1) * size])[-best:])
        stay = sorted(range(groups), key=lambda g: -judge(g))[:kept]
        choice = [c if e // size in stay else -math.inf
                  for e, c in enumerate(choice)]
        chosen = sorted(range(experts), key=lambda e: -choice[e])[:active]
        shares = [scores[e] for e in chosen]
        if after:
            shares = softmax(shares)
        if mixes:
            shares = among_near(scores, chosen, router.get("eps", 0))
        if router.get("renormalise", False):
            total = sum(shares) + router.get("eps", 0)
            shares = [s / total for s in shares]
        return [(e, s * router.get("scale", 1)) for e, s in zip(chosen, shares)]

    def moe(self, rows, options, role):
        """Every expert on every token, most of them times nothing."""
        number, width = self.model.number, len(rows[0])
        experts, active = number(options["experts"]), number(options["active"])
        router = options.get("router", {})
        logits = self.linear(rows, role + "router.", experts, False)
        if router.get("logit_bias"):
            shift = self.weight(role + "router.logit_bias", experts)
            logits = [[a + b for a, b in zip(row, shift)] for row in logits]
        bias = [0.0] * experts
        if router.get("select_bias"):
            bias = self.weight(role + "router.bias", experts)
        routes = [dict(self.route(x, bias, router, experts, active))
                  for x in logits]
        result = [[0.0] * width for _ in rows]
        for e in range(experts):
            read, shares = rows, [route.get(e, 0.0) for route in routes]
            if options.get("scale_input"):
                read = [[share * x for x in row]
                        for row, share in zip(rows, shares)]
                shares = [float(e in route) for route in routes]
            given = self.expert(read, options, role + "experts.{e}.", e,
                                options["width"])
            result = [[x + share * y for x, y in zip(p, q)]
                      for p, q, share in zip(result, given, shares)]
        if "shared" in options:
            shared = options["shared"]
            given = self.expert(rows, options, role + "shared.", None,
                                shared["width"])
            factors = [[1.0]] * len(rows)
            if shared.get("gate"):
                factors = self.linear(rows, role + "shared_gate.", 1, False)
                factors = [[ACTIVATIONS["sigmoid"](x[0])] for x in factors]
            result = [[x + f[0] * y for x, y in zip(p, q)]
                      for p, q, f in zip(result, given, factors)]
        return result

    def rotate(self, head, rope, position, width, length):
        if "axes" in rope:
            return reference_joint.turned(self, head, rope, position)
        channels = self.model.number(rope.get("channels", width))
        half, result = channels // 2, list(head)
        theta, scaling = rope.get("theta", 10000.0), rope.get("scaling", {})
        kind, original = scaling.get("type"), scaling.get("original_length")
        divisors, factor = [1] * half, scaling.get("attention_factor", 1)
        if kind == "linear":
            divisors = [scaling["factor"]] * half
        elif kind == "longrope":
            divisors = scaling["long_factors" if length > original
                               else "short_factors"]
        elif kind == "dynamic":
            grown = scaling["factor"] * (length / original - 1) + 1
            theta *= max(grown, 1) ** (channels / (channels - 2))
        else:
            assert kind is None, kind
        for i in range(half):
            angle = position * theta ** (-2 * i / channels) / divisors[i]
            a, b = ((2 * i, 2 * i + 1) if rope.get("interleaved")
                    else (i, i + half))
            x, y = head[a], head[b]
            result[a] = factor * (x * math.cos(angle) - y * math.sin(angle))
            result[b] = factor * (y * math.cos(angle) + x * math.sin(angle))
        return result

    def rotary(self, rows, options):
        width = len(rows[0]) // self.model.number(options.get("heads", 1))
        return [[x for at in range(0, len(row), width) for x in self.rotate(
                 row[at:at + width], options.get("rope", {}), t, width,
                 len(rows))]
                for t, row in enumerate(rows)]

    def attention(self, rows, options, role, memory):
        number, width = self.model.number, len(rows[0])
        heads = number(options["heads"])
        groups = number(options.get("kv_heads", heads))
        dim = number(options.get("head_dim", width // heads))
        value_dim = number(options.get("value_dim", dim))
        bias = options.get("bias", False)
        if isinstance(bias, bool):
            bias = {"qkv": bias, "out": bias}
        source = memory if memory is not None else rows

        def project(what, rows, count, size):
            flat = self.linear(rows, f"{role}{what}.", count * size,
                               bias.get("qkv", False))
            return [[row[h * size:(h + 1) * size] for h in range(count)]
                    for row in flat]
        if "latent" in options:
            query, key, value = reference_latent.heads(self, rows, options, role)
        else:
            query = project("q", rows, heads, dim)
            key = project("k", source, groups, dim)
            value = project("v", source, groups, value_dim)
        if "qk_norm" in options:
            norm = options["qk_norm"]
            kind = norm.get("kind", "rms_norm")
            query = [self.norm(t, norm, role + "q_norm.", kind) for t in query]
            key = [self.norm(t, norm, role + "k_norm.", kind) for t in key]
        if "rope" in options and "latent" not in options:
            rope = options["rope"]
            query = [[self.rotate(h, rope, t, dim, len(query)) for h in token]
                     for t, token in enumerate(query)]
            key = [[self.rotate(h, rope, t, dim, len(key)) for h in token]
                   for t, token in enumerate(key)]
        growth = options.get("query_growth")
        if growth is not None:
            steps = [(t + growth.get("shift", 0)) // growth.get("length", 8192)
                     for t in range(len(query))]
            query = [[[x * (1 + growth.get("by", 0.1) * math.log(1 + step))
                       for x in h] for h in token]
                     for token, step in zip(query, steps)]
        linear = options.get("linear")
        if linear and "fading" in linear:
            return self.joined(rows, reference_forms.fading(
                self, query, key, value, options, role), options, role, bias)
        if linear is not None:
            f = FEATURES[linear.get("feature_map", "elu_plus_one")]
            query, key = ([[[f(x) for x in h] for h in token] for token in heads_]
                          for heads_ in (query, key))
            options = dict(options, scale=1)
        scale = options.get("scale", 1 / math.sqrt(dim))
        causal, window = options.get("causal", False), options.get("window")
        cap = options.get("softcap")
        mask = self.model.mask
        if memory is not None:
            mask = self.model.masks.get(options["source"])
        if "sequence_rank" in options:
            key = reference_forms.mix(self, key, options, role, "k", mask)
            value = reference_forms.mix(self, value, options, role, "v",
                                        mask)
            options = {name: options[name] for name in options
                       if name != "lengths"}
            mask = None
        shift = 0 if causal == "top_left" else len(key) - len(rows)
        more = (reference_forms.positions(self, query, key, options, role, width)
                if "disentangled" in options else lambda h, m, n: 0.0)
        chosen = reference_latent.chosen(self, rows, options, role, mask)
        result, maps = [], [[] for _ in range(heads)]
        sinks = [None] * heads
        if options.get("sinks"):
            sinks = self.weight(role + "sinks", heads)
        place = "cross" if role == "cross." else "attention"
        self.model.maps[f"{self.instance()}.{place}"] = maps
        for m in range(len(rows)):
            joined = []
            for h in range(heads):
                g = h * groups // heads
                scores = []
                for n in range(len(key)):
                    hidden = causal and n > m + shift
                    hidden |= chosen is not None and n not in chosen[m]
                    hidden |= bool(window) and n <= m + shift - number(window)
                    hidden |= (bool(window) and not causal
                               and n >= m + shift + number(window))
                    if hidden:
                        scores.append(-math.inf)
                        continue
                    s = scale * (dot(query[m][h], key[n][g]) + more(h, m, n))
                    if options.get("scale_by_layer"):
                        s /= self.number - self.layer.get("first", 0) + 1
                    if cap:
                        s = cap * math.tanh(s / cap)
                    if options.get("alibi"):
                        s += alibi_slope(h, heads) * (n - m - shift)
                    hidden = bool(mask) and not mask[n]
                    hidden |= self.hides(options, h, m, n)
                    scores.append(-math.inf if hidden else s)
                probs = (softmax(scores, sinks[h]) if linear is None
                         else share(scores, linear))
                maps[h].append(probs)
                seen = [(n, p) for n, p in enumerate(probs) if p]
                joined += [sum(p * value[n][g][d] for n, p in seen)
                           for d in range(value_dim)]
            result.append(joined)
        return self.joined(rows, result, options, role, bias)

    def joined(self, rows, result, options, role, bias):
        """The heads' results, gated and projected."""
        if options.get("gate"):
            gates = self.linear(rows, role + "gate.", len(result[0]),
                                bias.get("qkv", False))
            result = [[x / (1 + math.exp(-g)) for x, g in zip(row, gate)]
                      for row, gate in zip(result, gates)]
        return self.linear(result, role + "o.", len(rows[0]),
                           bias.get("out", False))

    def hides(self, options, h, m, n):
        """Whether a length or the blocks hide key n from query m."""
        model, sparse = self.model, options.get("block_sparse")
        if n >= model.length(options):
            return True
        if not sparse:
            return False
        size = model.number(sparse.get("block", 64))
        # A pattern is counted from the first token that the mask shows.
        shown = [bool(seen) for seen in model.mask or [True]]
        first = shown.index(True) if "mask" not in sparse and any(shown) else 0
        i, j = (m - first) // size, (n - first) // size
        if "mask" in sparse:
            shape, data = model.inputs[sparse["mask"]]
            at = 0
            for index, count in zip((model.batch, h, i, j), shape):
                at = at * count + (index if count > 1 else 0)
            return not data[at]
        first = model.number(sparse.get("global", 0))
        near = abs(i - j) <= model.number(sparse.get("local", 1))
        return not (near or i < first or j < first)

    def modulation(self, options, role, columns):
        """What a linear layer makes of the condition."""
        condition = self.model.results[options["source"]]
        if options.get("activation", "silu") == "silu":
            condition = [[ACTIVATIONS["silu"](x) for x in row] for row in condition]
        return self.linear(condition, role, columns, options.get("bias", True))[0]

    def block(self, rows, block, memory):
        place, norm = block.get("placement", "pre"), block.get("norm", {})

        def attend(x):
            made = self.attention(x, block["attention"], "attention.", None)
            return add(made, mix(x)) if "mamba" in block else made

        def cross(x):
            return self.attention(x, block["cross"], "cross.",
                                  memory(block["cross"]["source"]))

        def feed(x):
            if "moe" in block:
                return self.moe(x, block["moe"], "moe.")
            return self.ffn(x, block["ffn"], "ffn.")
        def mix(x):
            return reference_recurrent.mamba(self, x, block["mamba"], "mamba.")

        def convolve(x):
            return reference_recurrent.short_conv(self, x, block["short_conv"],
                                                  "short_conv.")

        def remember(x):
            return reference_recurrent.delta_rule(self, x, block["delta_rule"],
                                                  "delta_rule.")

        def shift(x):
            return reference_recurrent.time_mix(self, x, block["time_mix"],
                                                "time_mix.")
        if "joint" in block:
            return reference_joint.joint(self, rows, block)
        if "shared_out" in block or (place == "parallel" and "modulation" in block):
            return reference_joint.side_by_side(self, rows, block)
        parts = [(key, role, f) for key, role, f in (
            ("attention", "norm1", attend), ("mamba", "norm1", mix),
            ("short_conv", "norm1", convolve),
            ("delta_rule", "norm1", remember), ("time_mix", "norm1", shift),
            ("cross", "norm_cross", cross),
            ("ffn", "norm2", feed), ("moe", "norm2", feed))
            if key in block and not (key == "mamba" and "attention" in block)]
        if place == "parallel":
            total = rows
            for _, role, f in parts:
                total = add(total, f(self.norm(rows, norm, role + ".")))
            return total
        if "modulation" in block:
            width = len(rows[0])
            made = self.modulation(block["modulation"], "modulation.",
                                   3 * width * len(parts))
            for i, (_, role, f) in enumerate(parts):
                shift, scale, gate = (
                    made[(3 * i + j) * width:(3 * i + j + 1) * width]
                    for j in range(3))
                read = reference_signals.modulate(self.norm(rows, norm, role + "."), shift, scale)
                rows = [[x + g * y for x, g, y in zip(p, gate, q)]
                        for p, q in zip(rows, f(read))]
            return rows
        for _, role, f in parts:
            if place == "post":
                rows = self.norm(add(rows, f(rows)), norm, role + ".")
                continue
            result = f(self.norm(rows, norm, role + "."))
            if block.get("layer_scale"):
                scales = self.weight("layer_scale" + role[-1], len(rows[0]), 1)
                result = [[a * s for a, (s,) in zip(row, scales)]
                          for row in result]
            if place == "peri":
                result = self.norm(result, norm, role + "_post.")
            rows = add(rows, result)
        return rows


class Model:
    ACTIVATIONS = ACTIVATIONS

    def __init__(self, spec, sizes):
        self.spec, self.sizes, self.weights = spec, sizes, Weights(
            spec.get("dtype", "f32") != "f32")
        self.dims, self.inputs, self.maps = {}, {}, {}
        for name in spec.get("dims", {}):
            self.dims[name] = self.evaluate(spec["dims"][name])

    def evaluate(self, text):
        if not isinstance(text, str):
            return text
        names = {name: self.evaluate(value)
                 for name, value in self.spec.get("dims", {}).items()
                 if name != text and name in text}
        return int(eval(text.replace("/", "//"), {"__builtins__": {}}, names))

    def number(self, text):
        return int(eval(text.replace("/", "//"), {"__builtins__": {}}, self.dims)
                   ) if isinstance(text, str) else text

    def make_inputs(self):
        described = self.spec.get("inputs") or {
            "input_ids": {"dtype": "i64", "shape": ["batch", "seq"]}}
        source, bounds, ignored = random.Random(7), {}, {}
        for stream in self.streams().values():
            shape = described.get(self.start(stream), {}).get("shape", [0])
            width, tables = shape[-1], {}
            for layer in stream["layers"]:
                if "embedding" in layer:
                    options = layer["embedding"]
                    name = options.get("input") or self.start(stream)
                    bounds[name] = self.number(options["vocab"])
                    tables[layer.get("name")] = bounds[name]
                    width = options["width"]
                elif "linear" in layer:
                    options = layer["linear"]
                    width = tables.get(options.get("tied")) or options["out"]
                elif "cross_entropy" in layer:
                    options = layer["cross_entropy"]
                    name = options["targets"]
                    bounds[name] = self.number(width)
                    ignored[name] = options.get("ignore_index", -100)
                for part in (layer, layer.get("block", {})):
                    for kind in ("attention", "cross"):
                        lengths = part.get(kind, {}).get("lengths")
                        if lengths:
                            bounds[lengths] = max(self.sizes.values()) + 2
        for name, entry in described.items():
            shape = [self.sizes[d] if d in self.sizes else self.number(d)
                     for d in entry["shape"]]
            count = math.prod(shape)
            if entry["dtype"] == "i64":
                data = array.array("q", (source.randrange(bounds[name])
                                         for _ in range(count)))
                if name in ignored:
                    data = array.array("q", (
                        ignored[name] if source.random() < 0.25 else x
                        for x in data))
            elif entry["dtype"] == "bool":  # the first token is always there
                data = array.array("B", (i % shape[-1] == 0 or
                                         source.random() < 0.7
                                         for i in range(count)))
            else:
                data = array.array("f", (source.gauss(0, 1) for _ in range(count)))
            self.inputs[name] = (shape, data)

    def length(self, options):
        """How many keys the sequence at hand has."""
        name = options.get("lengths")
        return self.inputs[name][1][self.batch] if name else math.inf

    def streams(self):
        return self.spec.get("streams") or {"main": {"layers": self.spec["layers"]}}

    def start(self, stream):
        names = self.spec.get("inputs", {"input_ids": 0})
        return stream.get("input") or (
            "input" if "input" in names else next(iter(names)))

    def rows_of(self, name, batch):
        """One sequence of an input: rows, or ids."""
        shape, data = self.inputs[name]
        each = math.prod(shape[1:])
        flat = list(data[batch * each:(batch + 1) * each])
        if len(shape) <= 2:
            return flat
        return [flat[i:i + shape[-1]] for i in range(0, each, shape[-1])]

    def mask_of(self, start, batch):
        """Which tokens of the input `start` count; None if all do."""
        name = "attention_mask"
        if len(self.streams()) > 1:
            name = (start[:-len("input_ids")] if start.endswith("input_ids")
                    else start + "_") + name
        return self.rows_of(name, batch) if name in self.inputs else None

    def run_one(self, batch):
        """Results by layer name for one sequence of the batch."""
        results, ends, embeddings, self.further = {}, {}, {}, {}
        self.stacks, self.masks = {}, {}
        self.batch, self.before = batch, 0
        self.results = results
        several = "streams" in self.spec
        for title, stream in self.streams().items():
            rows = None
            start = self.start(stream)
            if start in self.inputs:
                self.masks[title] = self.mask_of(start, batch)
                rows = self.rows_of(start, batch)
                if not isinstance(rows[0], list):  # ids, or one vector
                    first = stream["layers"][0]
                    vector = len(self.inputs[start][0]) == 2 and isinstance(
                        rows[0], float) and "conv" not in first
                    rows = [rows] if vector else None
            else:  # an earlier stream
                self.masks[title] = self.masks.get(start)
                rows = ends[start] if start in ends else results[start]
            self.mask = self.masks[title]
            for index, layer in enumerate(stream["layers"]):
                repeat = self.number(layer.get("repeat", 1))
                name = layer.get("name") or (
                    f"{title}." if several else "") + f"layers.{index}" + (
                        ".{i}" if repeat > 1 else "")
                for i in range(repeat):
                    one = Layer(self, layer, name,
                                i + self.number(layer.get("first", 0)))
                    rows = self.run_layer(one, rows, start, batch, ends, embeddings)
                    if name not in results:
                        self.stacks.setdefault(name, []).append(one.instance())
                results[name] = rows
                self.last = name
            ends[title] = results[title] = rows
        results.update(self.further)
        self.add_maps(results)
        return results

    def add_maps(self, results):
        """The attention weights that outputs ask for: heads of one layer, or of
        all repeats of one."""
        for target in self.spec.get("outputs", {}).values():
            name, _, choice = target.partition(":heads=")
            layer, _, place = name.rpartition(".")
            if place not in ("attention", "cross") or target in results:
                continue
            heads = [int(h) for h in choice.split("-")] if choice else [0, 10**6]
            results[target] = {
                one: self.maps[f"{one}.{place}"][heads[0]:heads[-1] + 1]
                for one in self.stacks.get(layer, [layer])}

    def run_layer(self, one, rows, start, batch, ends, embeddings):
        layer = one.layer
        if reference_signals.knows(rows, layer):
            return reference_signals.run(
                self, one, rows, layer, start, batch, lambda sequence: self.run_layer(
                    one, sequence, start, batch, ends, embeddings))
        if "embedding" in layer:
            options = layer["embedding"]
            table = one.weight("weight", self.number(options["vocab"]),
                               self.number(options["width"]))
            embeddings[one.name] = table
            found = [[options.get("scale", 1) * x for x in table[i]]
                     for i in self.rows_of(options.get("input") or start, batch)]
            return add(rows, found) if rows else found
        if "positions" in layer:
            return reference_signals.positions(self, rows, layer["positions"], one)
        if "block" in layer:
            return one.block(rows, layer["block"], ends.get)
        if "cycle" in layer:
            turn = (one.number - layer.get("first", 0)) % len(layer["cycle"])
            return one.block(rows, layer["cycle"][turn], ends.get)
        if "attention" in layer:
            options = layer["attention"]
            return one.attention(rows, options, "", ends.get(options.get("source")))
        if "moe" in layer:
            return one.moe(rows, layer["moe"], "")
        if "ffn" in layer:
            return one.ffn(rows, layer["ffn"], "")
        for kind in ("norm", "layer_norm", "rms_norm"):
            if kind in layer:
                return one.norm(rows, layer[kind], "",
                                None if kind == "norm" else kind)
        if "linear" in layer:
            options = layer["linear"]
            act = ACTIVATIONS[options.get("activation", "identity")]
            table = embeddings.get(options.get("tied"))
            out = len(table) if table else self.number(options["out"])
            made = one.linear(rows, "", out, options.get("bias", False), table)
            return [[act(x) for x in row] for row in made]
        if "activation" in layer:
            act = ACTIVATIONS[layer["activation"]["function"]]
            return [[act(x) for x in row] for row in rows]
        if "softmax" in layer:
            log = layer["softmax"].get("log", False)
            return [[math.log(p) if log else p for p in softmax(row)]
                    for row in rows]
        if "rotary" in layer:
            return one.rotary(rows, layer["rotary"])
        if "cross_entropy" in layer:
            options = layer["cross_entropy"]
            targets = self.rows_of(options["targets"], batch)
            return Loss(-math.log(softmax(row)[t])
                        for row, t in zip(rows, targets)
                        if t != options.get("ignore_index", -100))
        if "mamba" in layer:
            return reference_recurrent.mamba(one, rows, layer["mamba"], "")
        if "recurrent" in layer:
            return reference_recurrent.recurrent(one, rows, layer["recurrent"],
                                                 self.further)
        if "scan" in layer:
            return reference_recurrent.scan(
                one, rows, layer["scan"], self.further,
                lambda name: ends[name] if name in ends
                else self.rows_of(name, batch), ACTIVATIONS)
        sys.exit(f"reference.py does not know the layer {sorted(layer)}")

    def run(self):
        self.make_inputs()
        size = next(iter(self.inputs.values()))[0][0]
        batches = [self.run_one(b) for b in range(size)]
        outputs = self.spec.get("outputs")
        if not outputs:
            sys.exit("the description must name its outputs")

        def joined(layer):
            if isinstance(batches[0][layer], dict):  # attention weights
                return [x for one in batches[0][layer] for results in batches
                        for head in results[layer][one] for row in head
                        for x in row]
            rows = [row for results in batches for row in results[layer]]
            if isinstance(batches[0][layer], Loss):
                return [sum(rows) / len(rows)]
            return [x for row in rows for x in row]
        return {name: joined(layer) for name, layer in outputs.items()
                if layer != "hidden_states"}


def main():
    attune, path, work = sys.argv[1:4]
    spec = json.load(open(path, encoding="utf-8"))
    sizes, flags = {"batch": 2}, []
    spec["dtype"], allowed = "f32", 2e-5
    arguments = iter(sys.argv[4:])
    for argument in arguments:
        if argument in ("--set", "--dim"):
            name, value = next(arguments).split("=")
            target = sizes if argument == "--dim" else spec["dims"]
            if argument == "--set" and name not in target:
                sys.exit(f"the description has no dimension '{name}'")
            target[name] = int(value)
        elif argument == "--store":
            spec["dtype"] = next(arguments)
        elif argument == "--narrow":
            allowed = {"bf16": 2 ** -6, "f16": 2 ** -9}[spec["dtype"]]
        else:
            flags.append(argument)
    model = Model(spec, sizes)
    expected = model.run()

    os.makedirs(work, exist_ok=True)
    files = {name: os.path.join(work, name) for name in (
        "model.json", "weights.safetensors", "in.safetensors", "out.safetensors")}
    with open(files["model.json"], "w", encoding="utf-8") as file:
        json.dump(spec, file, indent=1)
    model.weights.save(files["weights.safetensors"])
    tensors.save(files["in.safetensors"], {
        name: ({"q": "I64", "B": "BOOL", "f": "F32"}[data.typecode], shape,
               data.tobytes())
        for name, (shape, data) in model.inputs.items()})
    subprocess.run([attune, "run", files["model.json"],
                    "--weights", files["weights.safetensors"],
                    "--inputs", files["in.safetensors"],
                    "--outputs", files["out.safetensors"], *flags], check=True)
    produced = tensors.load(files["out.safetensors"])
    failed = False
    for name, values in expected.items():
        got = array.array("f", produced[name][2])
        top = max(map(abs, values))
        worst = max((abs(a - b) for a, b in zip(got, values)), default=math.inf)
        good = len(got) == len(values) and worst <= allowed * top
        failed |= not good
        print(f"{'PASS' if good else 'FAIL'} {name}: error {worst:.1e}, "
              f"largest value {top:.3g}, {len(values)} values")
    sys.exit(failed)


if __name__ == "__main__":
    main()
