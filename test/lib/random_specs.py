#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random descriptions, fused against unfused.

  random_specs.py ATTUNE WORK --seeds=FIRST:LAST [--jobs=N] [--flag=FLAG]...
  random_specs.py --print SEED

Each seed in [FIRST, LAST) is a small description that mixes what descriptions
can say: placements, norms, heads, masks, windows, caps, positions, streams.
`ATTUNE verify` compiles it fused and step by step, and compares both on short,
long, padded and extreme inputs of several batches, and a language model's cache
with the whole sequence. Its tolerance is relative to the largest value of a
layer: f32 sums in another order differ by 1e-6 of it after some layers, a wrong
mask or scale by 1e-3 and more.

A description that fails is shrunk to a smaller one that fails in the same way:
keys and layers are left out and numbers made small as long as it does. Exit
status 0: all passed.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import random
import subprocess
import sys

ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "quick_gelu", "silu",
               "relu_squared", "sigmoid", "tanh"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *values):
        return self.random.choice(values)

    def norm(self):
        norm = {"kind": self.pick("layer_norm", "rms_norm"),
                "eps": self.pick(1e-5, 1e-6, 1e-3)}
        if self.chance(0.2):
            norm["scale"] = False
        elif norm["kind"] == "rms_norm" and self.chance(0.3):
            norm["offset"] = 1
        if norm["kind"] == "layer_norm" and self.chance(0.3):
            norm["bias"] = False
        return norm

    def rope(self, width):
        rope = {"theta": self.pick(10000, 500, 1e6)}
        if self.chance(0.4):
            rope["interleaved"] = True
        if self.chance(0.4):
            rope["channels"] = self.random.randrange(2, width + 1, 2)
        kind = self.pick("none", "none", "linear", "llama3", "yarn", "dynamic")
        if kind == "dynamic" and rope.get("channels", width) < 4:
            kind = "none"  # its exponent is R / (R - 2)
        if kind != "none":
            rope["scaling"] = {"type": kind, "factor": self.pick(2, 4, 8)}
            if kind != "linear":
                rope["scaling"]["original_length"] = self.pick(8, 32)
            if kind == "llama3":
                rope["scaling"]["high_freq_factor"] = 4
        return rope

    def attention(self, source=None):
        heads = self.pick(1, 2, 3, 4, 6)
        groups = self.pick(*[n for n in range(1, heads + 1) if heads % n == 0])
        head_dim = self.pick(2, 4, 6, 8, 10, 16, 20)
        attention = {"heads": heads, "head_dim": head_dim}
        if groups != heads:
            attention["kv_heads"] = groups
        if self.chance(0.2):
            attention["value_dim"] = self.pick(1, 3, 8, 12)
        if self.chance(0.3):
            attention["scale"] = self.pick(1.0, 0.1, 0.25)
        if not source:
            causal = self.pick(False, True, True, "top_left")
            if causal:
                attention["causal"] = causal
            if causal and self.chance(0.35):
                attention["window"] = self.pick(1, 2, 5, 16, 100)
            positions = self.pick("none", "none", "rope", "rope", "alibi")
            if positions == "rope":
                attention["rope"] = self.rope(head_dim)
            elif positions == "alibi":
                attention["alibi"] = True
        else:
            attention["source"] = source
        if not source:
            self.form(attention)
        if "linear" in attention:
            pass
        elif self.chance(0.2):
            attention["softcap"] = self.pick(1.0, 5.0, 30.0)
        if self.chance(0.2):
            attention["qk_norm"] = dict(self.norm(), kind="rms_norm")
            attention["qk_norm"].pop("bias", None)
        if self.chance(0.5):
            attention["bias"] = self.pick(
                True, {"qkv": True}, {"out": True})
        return attention

    def form(self, attention):
        """Sometimes fewer keys than all, or sums of features."""
        kind = self.pick(*["all"] * 7, "block_sparse", "linear", "sequence_rank")
        if kind == "block_sparse":
            attention[kind] = {"block": self.pick(1, 4, 8, 32),
                               "local": self.pick(0, 1),
                               "global": self.pick(0, 1)}
        if kind == "linear":
            for key in ("window", "alibi", "scale"):
                attention.pop(key, None)
            attention[kind] = {"feature_map": self.pick(
                "elu_plus_one", "relu")}
        if kind == "sequence_rank":
            for key in ("window", "alibi", "causal"):
                attention.pop(key, None)
            attention[kind] = {"rank": self.pick(1, 5, 16), "positions": 300,
                               "shared": self.pick("none", "heads",
                                                   "keys_values")}

    def ffn(self):
        ffn = {"width": self.pick(1, 7, 16, 33, 48),
               "activation": self.pick(*ACTIVATIONS)}
        if self.chance(0.4):
            ffn["gated"] = True
        if self.chance(0.4):
            ffn["bias"] = False
        return ffn

    def block(self, source=None):
        # Sublayers side by side have no room for a third.
        block = {"placement": self.pick("pre", "pre", "post", "peri",
                                        "pre" if source else "parallel"),
                 "norm": self.norm()}
        if self.chance(0.85):
            block["attention"] = self.attention()
        if source:
            block["cross"] = self.attention(source)
        if (self.chance(0.4) or len(block) == 2 or
                block["placement"] == "parallel"):
            block["ffn"] = self.ffn()
        if block["placement"] == "parallel":
            block.setdefault("attention", self.attention())
        return {"block": block}

    def layers(self, label, source=None):
        """One layer or two. Attention has the most variants and is the most
        frequent."""
        layers = []
        for _ in range(self.pick(1, 1, 1, 1, 2)):
            kind = self.pick("block", "block", "block", "attention",
                             "attention", "attention", "ffn", "norm", "linear")
            if source or kind == "block":
                layer = self.block(source)
                source = None
                if self.chance(0.2):
                    layer["repeat"] = 2
            elif kind == "attention":
                layer = {"attention": self.attention()}
            elif kind == "ffn":
                layer = {"ffn": self.ffn()}
            elif kind == "norm":
                layer = {"norm": self.norm()}
            else:
                layer = {"linear": {
                    "out": self.pick(8, 12, 24), "bias": self.chance(0.5),
                    "activation": self.pick("identity", *ACTIVATIONS)}}
            number = ".{i}" if layer.get("repeat") else ""
            layer["name"] = f"{label}{len(layers)}{number}"
            layers.append(layer)
        return layers

    def language_model(self):
        width, vocab = self.pick(8, 12, 20), self.pick(11, 40)
        layers = [{"embedding": {"vocab": vocab, "width": width},
                   "name": "wte"}]
        if self.chance(0.3):
            layers[0]["embedding"]["scale"] = 2.5
        if self.chance(0.5):
            layers.append({"positions": self.pick(
                {"kind": "learned", "length": 80},
                {"kind": "sinusoidal", "layout": "blocks"},
                {"kind": "sinusoidal"}), "name": "wpe"})
        block = self.block()
        block["block"].setdefault("attention", self.attention())
        block["block"]["attention"].pop("sequence_rank", None)
        block["block"]["attention"]["causal"] = True
        layers.append(dict(block, name="h"))
        layers.append({"linear": self.pick({"tied": "wte"}, {"out": vocab}),
                       "name": "head"})
        return {"attune": 1, "name": f"random{self.seed}", "layers": layers}

    def model(self):
        if self.chance(0.08):
            return self.language_model()
        widths = [self.pick(4, 8, 12, 20, 24, 40) for _ in range(2)]
        model = {"attune": 1, "name": f"random{self.seed}", "inputs": {
            "x": {"dtype": "f32", "shape": ["batch", "tokens", widths[0]]}}}
        if self.chance(0.15):
            model["inputs"]["y"] = {
                "dtype": "f32", "shape": ["batch", "keys", widths[1]]}
            masks = [("x", "tokens"), ("y", "keys")]
            model["streams"] = {
                "encoder": {"input": "y", "layers": self.layers("e")},
                "decoder": {"input": "x", "layers": self.layers(
                    "d", "encoder")}}
        else:
            masks = [("", "tokens")]
            model["layers"] = self.layers("l")
        for prefix, tokens in masks:
            if self.chance(0.4):
                name = prefix + ("_" if prefix else "") + "attention_mask"
                model["inputs"][name] = {"dtype": "bool",
                                         "shape": ["batch", tokens]}
        return model


# --- Running

class Checker:
    def __init__(self, options):
        self.options = options

    def verify(self, model, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file, indent=1)
        result = subprocess.run(
            [self.options.attune, "verify", path, "--threads=1",
             *self.options.flag],
            capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def check(self, seed):
        """None, or what is wrong with the description of this seed."""
        path = os.path.join(self.options.work, f"{seed}.json")
        model = Generator(seed).model()
        status, text = self.verify(model, path)
        if status == 0:
            return None
        # A refused description cannot be told from one that shrinking broke.
        if status != 1:
            model, text = self.shrink(model, status, text, path)
        return (f"seed {seed}: status {status}\n{text}\n"
                f"{json.dumps(model, indent=1)}")

    def shrink(self, model, status, text, path):
        """Takes the first smaller description that fails alike, again and
        again, until none does."""
        smaller = path.replace(".json", ".smaller.json")
        progress = True
        while progress:
            progress = False
            for candidate in simpler(model):
                found, output = self.verify(candidate, smaller)
                if found == status:
                    model, text, progress = candidate, output, True
                    break
        return model, text


def places(value, path=()):
    """Every place in a JSON value, outer ones first."""
    if path:
        yield path
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, item in items:
        yield from places(item, path + (key,))


def simpler(model):
    """The descriptions that are one step smaller."""
    for path in places(model):
        holder = model
        for key in path[:-1]:
            holder = holder[key]
        old = holder[path[-1]]
        candidates = [None]
        if isinstance(old, (int, float)) and not isinstance(old, bool):
            candidates += [new for new in (1, 2, 4, 8) if new < old]
        for new in candidates:
            result = copy.deepcopy(model)
            inner = result
            for key in path[:-1]:
                inner = inner[key]
            if new is None:
                del inner[path[-1]]
            else:
                inner[path[-1]] = new
            yield result


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--print":
        print(json.dumps(Generator(int(sys.argv[2])).model(), indent=1))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attune")
    parser.add_argument("work")
    parser.add_argument("--seeds", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--flag", action="append", default=[])
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    first, last = map(int, options.seeds.split(":"))
    checker, failed = Checker(options), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for problem in pool.map(checker.check, range(first, last)):
            if problem:
                failed += 1
                print(problem, flush=True)
    print(f"{last - first - failed} of {last - first} descriptions agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
