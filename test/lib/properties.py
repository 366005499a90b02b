#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What must hold of attention whatever its weights are.

  properties.py ATTUNE WORK PROPERTY [FLAG]...

A property is one small model with random weights. The sides of its equation
are two streams of that model, or two calls with other inputs. Differences are
relative to the largest value; f32 sums in another order give 1e-6. FLAGs go to
the compiler. Exit status 0: the property holds.
"""
import array
import ctypes
import json
import os
import random
import subprocess
import sys

import tensors

TOLERANCE = 2e-5
WIDTH, TOKENS, BATCH, HEADS = 24, 19, 2, 4
VOCAB = 37


def numbers(rng, count):
    return array.array("f", [rng.gauss(0, 1) for _ in range(count)])


class Model:
    """A compiled description. `weights` gives the shape of each tensor, or its
    values with it."""

    def __init__(self, setup, layers, weights, inputs=None, suffix=".exe"):
        attune, work, flags, self.rng = setup
        path = os.path.join(work, "model")
        spec = {"attune": 1, "inputs": inputs or {
            "x": {"dtype": "f32", "shape": ["batch", "tokens", WIDTH]}}}
        if isinstance(layers, dict):
            spec["streams"] = {name: {"input": "x", "layers": [
                dict(layer, name=name)]} for name, layer in layers.items()}
            spec["outputs"] = {name: name for name in layers}
        else:
            spec["layers"] = layers
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump(spec, file, indent=1)
        made = {}
        for name, shape in weights.items():
            shape, values = shape if isinstance(shape, tuple) else (shape, None)
            count = 1
            for size in shape:
                count *= size
            scale = shape[-1] ** -0.5
            made[name] = ("F32", shape, (values or array.array(
                "f", [v * scale for v in numbers(self.rng, count)])).tobytes())
        tensors.save(path + ".safetensors", made)
        self.path, self.product = path, path + suffix
        command(attune, "compile", path + ".json", "-o", self.product,
                "--weights", path + ".safetensors", *flags)

    def run(self, **inputs):
        """The outputs by name, as arrays."""
        tensors.save(self.path + ".in", inputs)
        # Threads would only wait for each other on work this small.
        command(self.product, "run", "--inputs", self.path + ".in",
                "--outputs", self.path + ".out.safetensors", "--threads=1")
        return {name: array.array("f", raw) for name, (_, _, raw) in
                tensors.load(self.path + ".out.safetensors").items()}


def command(*words):
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode:
        sys.exit(" ".join(words) + "\n" + result.stderr)


def floats(values, *shape):
    return "F32", list(shape), values.tobytes()


def ids(values, *shape):
    return "I64", list(shape), array.array("q", values).tobytes()


def compare(what, got, want):
    if len(got) != len(want) or not len(want):
        sys.exit(f"{what}: {len(got)} values, {len(want)} expected")
    largest = max(map(abs, want))
    difference = max(abs(a - b) for a, b in zip(got, want))
    # Written so that a NaN fails.
    if not difference <= TOLERANCE * largest:
        sys.exit(f"{what}: differs by {difference} of {largest}")
    print(f"{what}: holds, to {difference / largest:.1e}")


def rows(values, picks, width):
    """Some rows of a matrix, in this order."""
    result = array.array("f")
    for pick in picks:
        result.extend(values[pick * width:(pick + 1) * width])
    return result


def block_weights(name):
    weights = {f"{name}.attention.{role}.weight": [WIDTH, WIDTH]
               for role in "qkvo"}
    weights.update({f"{name}.ffn.up.weight": [40, WIDTH],
                    f"{name}.ffn.down.weight": [WIDTH, 40],
                    f"{name}.norm1.weight": [WIDTH],
                    f"{name}.norm2.weight": [WIDTH]})
    return weights


def block(**attention):
    return {"block": {
        "norm": {"kind": "rms_norm"},
        "attention": dict({"heads": HEADS}, **attention),
        "ffn": {"width": 40, "bias": False}}}


def equivariance(setup):
    """Without positions, permuted tokens give permuted results."""
    model = Model(setup, {"b": block()}, block_weights("b"))
    x = numbers(setup[3], TOKENS * WIDTH)
    order = list(range(TOKENS))
    setup[3].shuffle(order)
    straight = model.run(x=floats(x, 1, TOKENS, WIDTH))["b"]
    permuted = model.run(x=floats(rows(x, order, WIDTH),
                                  1, TOKENS, WIDTH))["b"]
    compare("permutation equivariance", permuted,
            rows(straight, order, WIDTH))


def causal_prefix(setup):
    """What comes later changes nothing, whether it is other or missing."""
    model = Model(setup, {"b": block(causal=True, rope={}, window=11)},
                  block_weights("b"))
    x = numbers(setup[3], TOKENS * WIDTH)
    whole = model.run(x=floats(x, 1, TOKENS, WIDTH))["b"]
    for prefix in (1, 7, 16):
        part = x[:prefix * WIDTH]
        alone = model.run(x=floats(part, 1, prefix, WIDTH))["b"]
        compare(f"prefix of {prefix}, alone", alone, whole[:prefix * WIDTH])
        other = part + numbers(setup[3], (TOKENS - prefix) * WIDTH)
        changed = model.run(x=floats(other, 1, TOKENS, WIDTH))["b"]
        compare(f"prefix of {prefix}, others after it",
                changed[:prefix * WIDTH], whole[:prefix * WIDTH])


def projections(**sources):
    return {f"{role}.weight": source for role, source in sources.items()}


def heads(setup):
    """Attention with many heads is the sum of its heads, each with its part of
    the projections: the output projection meets their concatenation."""
    dim = WIDTH // HEADS
    o = numbers(setup[3], WIDTH * WIDTH)
    weights = {name: [WIDTH, WIDTH] for name in "qkv"}
    weights["o"] = ([WIDTH, WIDTH], o)
    options = {"head_dim": dim, "causal": True, "rope": {}}
    layers = {"all": {"attention": dict(options, heads=HEADS),
                      "weights": projections(q="q", k="k", v="v", o="o")}}
    for h in range(HEADS):
        columns = array.array("f")
        for row in range(WIDTH):
            at = row * WIDTH + h * dim
            columns.extend(o[at:at + dim])
        weights[f"o{h}"] = ([WIDTH, dim], columns)
        part = {name: {"tensor": name, "rows": [h * dim, (h + 1) * dim]}
                for name in "qkv"}
        layers[f"head{h}"] = {"attention": dict(options, heads=1),
                              "weights": projections(o=f"o{h}", **part)}
    found = Model(setup, layers, weights).run(x=floats(
        numbers(setup[3], BATCH * TOKENS * WIDTH), BATCH, TOKENS, WIDTH))
    total = array.array("f", [sum(values) for values in zip(
        *(found[f"head{h}"] for h in range(HEADS)))])
    compare("heads side by side", found["all"], total)


def window(setup):
    """A window over the whole sequence is none; a smaller one is not."""
    weights = {f"w.{role}.weight": [WIDTH, WIDTH] for role in "qkvo"}
    shared = projections(**{role: f"w.{role}.weight" for role in "qkvo"})
    layers = {name: {"attention": dict(options, heads=HEADS, causal=True),
                     "weights": shared}
              for name, options in (("none", {}),
                                    ("equal", {"window": TOKENS}),
                                    ("larger", {"window": 1000}),
                                    ("smaller", {"window": TOKENS - 1}))}
    found = Model(setup, layers, weights).run(x=floats(
        numbers(setup[3], TOKENS * WIDTH), 1, TOKENS, WIDTH))
    compare("window of the sequence", found["equal"], found["none"])
    compare("window beyond it", found["larger"], found["none"])
    last = (TOKENS - 1) * WIDTH
    compare("a shorter window, but for the last token",
            found["smaller"][:last], found["none"][:last])
    if found["smaller"][last:] == found["none"][last:]:
        sys.exit("a shorter window hides nothing")


def groups(setup):
    """Grouped heads are heads whose keys and values are repeated; groups of
    one are plain heads."""
    dim, kv = WIDTH // HEADS, HEADS // 2
    weights = {"q": [WIDTH, WIDTH], "o": [WIDTH, WIDTH],
               "k": [kv * dim, WIDTH], "v": [kv * dim, WIDTH],
               "kk": [WIDTH, WIDTH], "vv": [WIDTH, WIDTH]}
    repeated = {name: [{"tensor": name, "rows": [g * dim, (g + 1) * dim]}
                       for g in range(kv) for _ in range(HEADS // kv)]
                for name in "kv"}
    options = {"heads": HEADS, "causal": True, "rope": {}}
    layers = {
        "grouped": {"attention": dict(options, kv_heads=kv),
                    "weights": projections(q="q", k="k", v="v", o="o")},
        "repeated": {"attention": options,
                     "weights": projections(q="q", o="o", **repeated)},
        "ones": {"attention": dict(options, kv_heads=HEADS),
                 "weights": projections(q="q", k="kk", v="vv", o="o")},
        "plain": {"attention": options,
                  "weights": projections(q="q", k="kk", v="vv", o="o")}}
    found = Model(setup, layers, weights).run(x=floats(
        numbers(setup[3], BATCH * TOKENS * WIDTH), BATCH, TOKENS, WIDTH))
    compare("grouped heads", found["grouped"], found["repeated"])
    compare("groups of one", found["ones"], found["plain"])


def language_model(setup, suffix=".exe"):
    layers = [{"embedding": {"vocab": VOCAB, "width": WIDTH}, "name": "wte"},
              dict(block(causal=True, rope={}), name="h.{i}", repeat=2),
              {"linear": {"tied": "wte"}, "name": "head"}]
    weights = {"wte.weight": [VOCAB, WIDTH]}
    for i in range(2):
        weights.update(block_weights(f"h.{i}"))
    return Model(setup, layers, weights, {
        "input_ids": {"dtype": "i64", "shape": ["batch", "seq"]}}, suffix)


def padding(setup):
    """Rows of a batch, padded on either side, give what they give alone."""
    model = language_model(setup)
    lengths, longest = (12, 5, 1), 12
    prompts = [[setup[3].randrange(VOCAB) for _ in range(n)] for n in lengths]
    alone = [model.run(input_ids=ids(prompt, 1, len(prompt)))["logits"]
             for prompt in prompts]
    for side in ("right", "left"):
        batch, mask, positions = [], [], []
        for prompt in prompts:
            pad = [0] * (longest - len(prompt))
            here = list(range(len(prompt)))
            ones = [1] * len(prompt)
            left = side == "left"
            batch += pad + prompt if left else prompt + pad
            mask += pad + ones if left else ones + pad
            positions += pad + here if left else here + pad
        shape = (len(prompts), longest)
        found = model.run(input_ids=ids(batch, *shape),
                          attention_mask=ids(mask, *shape),
                          position_ids=ids(positions, *shape))["logits"]
        for row, length in enumerate(lengths):
            first = row * longest + (longest - length if side == "left" else 0)
            compare(f"{side} padding of {longest - length}",
                    rows(found, range(first, first + length), VOCAB),
                    alone[row])


def chunks(setup):
    """A prompt in pieces gives what it gives in one: several tokens at once
    after cached ones, through the C interface."""
    model = language_model(setup, ".so")
    library = ctypes.CDLL(model.product)
    for name in ("attune_open", "attune_session_open",
                 "attune_session_logits"):
        getattr(library, name).restype = ctypes.c_void_p
    library.attune_last_error.restype = ctypes.c_char_p
    descriptor = ctypes.addressof(ctypes.c_char.in_dll(
        library, "attune_model"))
    instance = library.attune_open(ctypes.c_void_p(descriptor), None)
    if not instance:
        sys.exit(library.attune_last_error().decode())
    session = ctypes.c_void_p(library.attune_session_open(
        ctypes.c_void_p(instance), ctypes.c_int64(BATCH),
        ctypes.c_int64(TOKENS)))
    prompt = [[setup[3].randrange(VOCAB) for _ in range(TOKENS)]
              for _ in range(BATCH)]

    def last_logits(pieces):
        library.attune_session_reset(session)
        at = 0
        for count in pieces:
            step = [row[at + i] for row in prompt for i in range(count)]
            status = library.attune_session_step(
                session, (ctypes.c_int64 * len(step))(*step),
                ctypes.c_int64(count))
            if status:
                sys.exit(library.attune_last_error().decode())
            at += count
        values = library.attune_session_logits(session)
        return array.array("f", (ctypes.c_float * (BATCH * VOCAB))
                           .from_address(values))
    whole = last_logits([TOKENS])
    for pieces in ([1] * TOKENS, [7, 7, 5], [1, 16, 2], [18, 1], [2, 17]):
        compare("prefill in pieces of " + " ".join(map(str, pieces)),
                last_logits(pieces), whole)


PROPERTIES = {"equivariance": equivariance, "causal-prefix": causal_prefix,
              "heads": heads, "window": window, "groups": groups,
              "padding": padding, "chunks": chunks}


def main():
    attune, work, name = sys.argv[1:4]
    os.makedirs(work, exist_ok=True)
    PROPERTIES[name]((attune, work, sys.argv[4:], random.Random(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
