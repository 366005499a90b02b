#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small random descriptions, the same for the same seed on every machine.

Fused and unfused attention differ in the last bits. What follows must not jump
there: after an attention a mixture has all its experts active, as another choice
of experts is another result, and nobody takes the largest of anything.
"""
import copy
import random

ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "quick_gelu", "silu",
               "relu_squared", "sigmoid", "tanh", "softplus", "mish", "elu",
               "leaky_relu", "hardswish"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.forms = random.Random(seed + 1000000)
        self.behind = random.Random(seed + 2000000)
        self.seed = seed
        self.attended = False  # an attention came before

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *values):
        return self.random.choice(values)

    # --- Parts of layers

    def norm(self, kind=None):
        norm = {"kind": kind or self.pick("layer_norm", "rms_norm"),
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
        channels = rope.get("channels", width)
        kind = self.pick("none", "none", "linear", "llama3", "yarn", "dynamic",
                         "longrope")
        if kind == "dynamic" and channels < 4:
            kind = "none"  # its exponent is R / (R - 2)
        if kind != "none":
            scaling = rope["scaling"] = {"type": kind}
            if kind != "longrope":
                scaling["factor"] = self.pick(2, 4, 8)
            if kind != "linear":
                scaling["original_length"] = self.pick(8, 32)
            if kind == "llama3":
                scaling["high_freq_factor"] = 4
            if kind == "longrope":
                for length in ("short", "long"):
                    scaling[length + "_factors"] = [
                        self.pick(1, 1.5, 3) for _ in range(channels // 2)]
        return rope

    def relative_bias(self, causal):
        bias = {"buckets": self.pick(4, 8, 32), "max_distance": 20}
        if bias["buckets"] == 32:
            bias["max_distance"] = self.pick(40, 128)
        if causal and self.chance(0.2):
            bias["bidirectional"] = True
        return bias

    def attention(self, source=None):
        heads = self.pick(1, 2, 3, 4, 6)
        groups = self.pick(*[n for n in range(1, heads + 1) if heads % n == 0])
        head_dim = self.pick(2, 4, 6, 8, 10, 16, 20)
        attention = {"heads": heads, "head_dim": head_dim}
        if self.chance(0.2):
            attention["value_dim"] = self.pick(1, 3, 8, 12)
        if self.chance(0.3):
            attention["scale"] = self.pick(1.0, 0.1, 0.25)
        if self.chance(0.2):
            attention["softcap"] = self.pick(1.0, 5.0, 30.0)
        if self.chance(0.5):
            attention["bias"] = self.pick(
                True, {"qkv": True}, {"out": True},
                {"qkv": True, "key": False})
        if source:
            attention["source"] = source
        else:
            self.masking(attention)
            if head_dim >= 4 and self.chance(0.12):
                return self.latent(attention)
            self.positions_inside(attention)
        if groups != heads:
            attention["kv_heads"] = groups
        if self.chance(0.25):
            attention["qk_norm"] = self.norm(
                self.pick("rms_norm", "rms_norm", "layer_norm"))
            if self.chance(0.6):
                attention["qk_norm"]["scope"] = self.pick(
                    "head", "heads", "projection")
        if self.chance(0.1):
            attention["clip"] = self.pick(0.5, 4)
        if not source and "relative_bias" not in attention:
            self.form(attention)
        return attention

    def form(self, attention):
        """Sometimes fewer keys than all, or sums of features."""
        pick = self.forms.choice
        kind = pick(["all"] * 7 + ["block_sparse", "linear", "sequence_rank"])
        if kind == "block_sparse":
            attention[kind] = {"block": pick([1, 4, 8, 32]),
                               "local": pick([0, 1]), "global": pick([0, 1])}
        if kind == "linear":
            for key in ("window", "alibi", "scale", "softcap"):
                attention.pop(key, None)
            attention[kind] = {"feature_map": pick(["elu_plus_one", "relu"])}
        if kind == "sequence_rank":
            for key in ("window", "alibi", "causal"):
                attention.pop(key, None)
            attention[kind] = {"rank": pick([1, 5, 16]), "positions": 300,
                               "shared": pick(["none", "heads", "keys_values"])}
        if kind != "linear" and pick([True, False, False]):
            attention["sinks"] = True

    def masking(self, attention):
        causal = self.pick(False, True, True, "top_left")
        if causal:
            attention["causal"] = causal
        if causal and self.chance(0.35):
            attention["window"] = self.pick(1, 2, 5, 16, 100, 4096)
        if not causal and self.forms.random() < 0.3:
            attention["window"] = self.forms.choice([1, 3, 16, 100, 4096])

    def positions_inside(self, attention):
        kind = self.pick("none", "none", "rope", "rope", "alibi", "bias")
        if kind == "rope":
            attention["rope"] = self.rope(attention["head_dim"])
        elif kind == "alibi":
            attention["alibi"] = self.pick(True, True, "falcon")
        elif kind == "bias":
            attention["relative_bias"] = self.relative_bias(
                "causal" in attention)

    def latent(self, attention):
        dim = attention["head_dim"]
        attention["rope"] = self.rope(dim)
        attention["rope"]["channels"] = 2 * self.random.randrange(
            1, (dim + 1) // 2)
        attention["rope"].pop("scaling", None)
        attention["latent"] = {"rank": self.pick(2, 5, 12)}
        if self.chance(0.5):
            attention["latent"]["query_rank"] = self.pick(3, 8)
        if self.chance(0.3):
            attention["latent"]["norm"] = {"kind": "rms_norm", "eps": 1e-6}
        if isinstance(attention.get("bias"), dict):
            attention["bias"].pop("key", None)
        return attention

    def ffn(self):
        ffn = {"width": self.pick(1, 7, 16, 33, 48),
               "activation": self.pick(*ACTIVATIONS)}
        if self.chance(0.4):
            ffn["gated"] = True
        if self.chance(0.4):
            ffn["bias"] = False
        if self.forms.random() < 0.05 and not ffn.get("gated"):
            del ffn["activation"]
            ffn["xielu"] = True
        return ffn

    def moe(self, free):
        """`free`: the router may choose."""
        experts = self.pick(2, 4, 6, 8, 16)
        moe = {"experts": experts, "active": experts,
               "width": self.pick(3, 8, 20), "router": {}}
        router = moe["router"]
        if self.chance(0.4):
            moe["gated"] = False
        if self.chance(0.5):
            moe["activation"] = self.pick(*ACTIVATIONS)
        if free:
            moe["active"] = self.pick(*range(1, min(experts, 4) + 1))
        if self.chance(0.4):
            router["scores"] = "sigmoid"
        elif self.chance(0.3):
            router["softmax_after"] = True
        if self.chance(0.4):
            router["select_bias"] = True
        if free and "softmax_after" not in router and self.chance(0.5):
            groups = router["groups"] = 2
            if self.chance(0.5) and moe["active"] <= experts // groups:
                router["active_groups"] = 1
            if experts // groups >= 2 and self.chance(0.5):
                router["group_score"] = "top_two"
        if self.chance(0.5):
            router["renormalise"] = True
            if self.chance(0.3):
                router["eps"] = 1e-20
        if self.chance(0.3):
            router["scale"] = 2.5
        if self.chance(0.4):
            moe["shared"] = {"width": self.pick(2, 9)}
            if self.chance(0.5):
                moe["shared"]["gate"] = True
        if self.forms.random() < 0.3:
            moe["bias"] = router["logit_bias"] = True
        if moe.get("gated", True) and "shared" not in moe:
            if self.forms.random() < 0.3:
                moe["limit"] = self.forms.choice([0.25, 2.0])
            if self.forms.random() < 0.3:
                moe["up_offset"] = 1.0
        return moe

    # --- Layers

    def block(self, source=None):
        # Sublayers side by side have no room for a third.
        block = {"placement": self.pick("pre", "pre", "post", "peri", "branch",
                                        "pre" if source else "parallel"),
                 "norm": self.norm()}
        if self.chance(0.85) or block["placement"] == "parallel":
            block["attention"] = self.attention()
        if source:
            block["cross"] = self.attention(source)
        attends = self.attended or len(block) > 2
        if (self.chance(0.45) or len(block) == 2 or
                block["placement"] == "parallel"):
            if self.chance(0.3):
                block["moe"] = self.moe(not attends)
            else:
                block["ffn"] = self.ffn()
        if self.chance(0.1):
            block["residual_scale"] = self.pick(0.5, 2.0)
        if block["placement"] == "pre" and self.chance(0.1):
            block["residual"] = "norm"
        self.attended = attends
        layer = {"block": block}
        if self.chance(0.2):
            # The second time around something attended.
            if "moe" in block and attends:
                block["moe"]["active"] = block["moe"]["experts"]
            layer["repeat"] = 2
            if "attention" in block and self.chance(0.5) and not (
                    {"linear", "sequence_rank"} & set(block["attention"])):
                self.turn_to_cycle(layer)
        return layer

    def turn_to_cycle(self, layer):
        """Blocks that take turns differ in what they see, not in weights."""
        block = layer.pop("block")
        other = dict(block, attention=dict(block["attention"]))
        if other["attention"].get("causal"):
            other["attention"]["window"] = 3
        else:
            other["attention"]["scale"] = 0.125
        layer["cycle"] = [block, other]

    def layer(self, source):
        kind = self.pick("block", "block", "block", "attention", "attention",
                         "attention", "other")
        if source or kind == "block":
            return self.block(source)
        if kind == "attention":
            self.attended = True
            return {"attention": self.attention()}
        kind = self.pick("ffn", "moe", "norm", "linear", "rotary", "activation",
                         "softmax", "l2_norm", "batch_norm", "conv")
        if kind == "norm":
            return {"norm": self.norm()}
        if kind in ("ffn", "moe"):
            return {kind: self.ffn() if kind == "ffn" else
                    self.moe(not self.attended)}
        if kind == "linear":
            linear = {"out": self.pick(8, 12, 24), "bias": self.chance(0.5),
                      "activation": self.pick("identity", *ACTIVATIONS)}
            if self.chance(0.2):
                linear["softcap"] = 3.0
            return {"linear": linear}
        if kind == "rotary":
            return {"rotary": {"rope": {"channels": 2}}}
        if kind == "activation":
            return {"activation": {"function": self.pick(*ACTIVATIONS)}}
        if kind == "conv":
            return {"conv": {"dims": 1, "out": self.pick(6, 8), "kernel": 3,
                             "padding": 1, "activation": "gelu"}}
        if kind == "softmax":
            return {"softmax": {"log": True} if self.chance(0.5) else {}}
        return {kind: {}}

    def layers(self, label, source=None, masked=False):
        """One layer or two. Attention has the most variants and is the most
        frequent."""
        layers = []
        for _ in range(self.pick(1, 1, 1, 1, 2)):
            layer = self.layer(source)
            # No mask has numbers for its places, and an input whose length is
            # open has its channels elsewhere.
            if "conv" in layer and (masked or not layers):
                continue
            source = None
            number = ".{i}" if layer.get("repeat") else ""
            layer["name"] = f"{label}{len(layers)}{number}"
            layers.append(layer)
        if not layers:
            layers.append({"ffn": self.ffn(), "name": label + "0"})
        return layers

    def go_on(self, layers):
        """Layers in a loop behind the last attention, and the block again,
        which shares its functions with the first one."""
        block = layers[-1]
        if self.behind.random() < 0.3:
            layers.append({"block": {"ffn": {"width": 7}}, "name": "g.{i}",
                           "repeat": 2})
        if self.behind.random() < 0.3:
            again = block["name"].replace("h", "again")
            layers.append(dict(copy.deepcopy(block), name=again))

    # --- Models

    def language_model(self):
        width, vocab = self.pick(8, 12, 20), self.pick(11, 40)
        layers = [{"embedding": {"vocab": vocab, "width": width},
                   "name": "wte"}]
        if self.chance(0.3):
            layers[0]["embedding"]["scale"] = 2.5
        if self.chance(0.5):
            layers.append({"positions": self.pick(
                {"kind": "learned", "length": 80},
                {"kind": "learned", "length": 90, "skip_padding": True},
                {"kind": "learned", "length": 90, "count": "unpadded",
                 "pad": 3},
                {"kind": "sinusoidal", "layout": "blocks"},
                {"kind": "sinusoidal"}), "name": "wpe"})
        block = self.block()
        for one in block.get("cycle", [block.get("block")]):
            one.setdefault("attention", {"heads": 2, "head_dim": 4})
            one["attention"].pop("sequence_rank", None)
            one["attention"]["causal"] = True
            if "moe" in one:
                one["moe"]["active"] = one["moe"]["experts"]
                one["moe"]["router"].pop("active_groups", None)
        block["name"] = "h.{i}" if block.get("repeat") else "h"
        layers.append(block)
        self.go_on(layers)
        head = self.pick({"tied": "wte"}, {"out": vocab})
        if self.chance(0.2):
            head["softcap"] = 2.0
        layers.append({"linear": head, "name": "head"})
        model = {"attune": 1, "name": f"random{self.seed}", "layers": layers}
        if self.chance(0.3):
            # A loss instead of generation.
            model["inputs"] = {
                name: {"dtype": "i64", "shape": ["batch", "seq"]}
                for name in ("input_ids", "labels")}
            layers.append({"cross_entropy": {"targets": "labels"},
                           "name": "loss"})
            model["outputs"] = {"logits": "head", "loss": "loss"}
        return model

    def bare(self):
        """Attention on inputs, with everything that can happen to a score."""
        heads = self.pick(1, 2, 4, 6)
        groups = self.pick(*[n for n in range(1, heads + 1) if heads % n == 0])
        width, value = self.pick(4, 8, 24), self.pick(4, 8, 17)
        model = {"attune": 1, "name": f"random{self.seed}", "inputs": {
            name: {"dtype": "f32", "shape": ["batch", count, rows, size]}
            for name, count, rows, size in (
                ("q", heads, "rows", width), ("k", groups, "keys", width),
                ("v", groups, "keys", value))}}
        attention = {"query": "q", "key": "k", "value": "v"}
        self.masking(attention)
        if self.chance(0.2):
            attention["softcap"] = 5.0
        for key, name, dtype, chance in (
                ("mask", "m", "bool", 0.5), ("bias_input", "b", "f32", 0.4)):
            if self.chance(chance):
                attention[key] = name
                model["inputs"][name] = {"dtype": dtype, "shape": [
                    self.pick(1, "batch"), self.pick(1, heads),
                    self.pick(1, "rows", "rows"), "keys"]}
        for key in ("slopes", "sinks"):
            if self.chance(0.4):
                attention[key] = key
                model["inputs"][key] = {"dtype": "f32", "shape": [heads]}
        model["outputs"] = {"y": "a"}
        if self.chance(0.4):
            attention["lse"] = True
            model["outputs"]["lse"] = "a.lse"
        model["layers"] = [{"attention": attention, "name": "a"}]
        return model

    def image(self):
        """Patches, class tokens, a block, a vector, a head."""
        size, patch = self.pick((8, 4), (9, 3), (10, 4), (6, 2))
        channels, width = self.pick(1, 3), self.pick(8, 12)
        conv = {"out": width, "kernel": patch, "stride": patch}
        if self.chance(0.3):
            conv["padding"] = 1
        shape = ["batch", channels, size, size]
        if self.chance(0.3):
            conv["layout"] = "channels_last"
            shape = ["batch", size, size, channels]
        side = (size + 2 * conv.get("padding", 0) - patch) // patch + 1
        layers = [{"conv": conv}]
        if self.chance(0.3):
            layers.append({"conv": {"out": width, "kernel": 3, "padding": 1,
                                    "bias": False, "activation": "relu"}})
        if self.chance(0.3):
            layers.append({"batch_norm": {}})
        if self.chance(0.4):
            attention = {"heads": 2 if width == 8 else 1, "rope": {
                "places": True, **({"alternating": True} if self.seed % 2 else {})}}
            layers += [{"windows": {"size": self.pick(1, 2, 3, [1, 3], [4, 2])}},
                       {"block": {"attention": attention, "ffn": {"width": 16}}},
                       {"whole": {}}]
        if side % 2 == 0 and self.chance(0.4):
            layers += [{"merge": {}}, {"linear": {"out": width}}]
            side //= 2
        tokens = side * side
        if self.chance(0.6):
            count = self.pick(1, 2)
            layers.append({"class_tokens": {"count": count}})
            tokens += count
        layers.append({"positions": {"length": tokens}})
        block = self.block()
        layers.append(block)
        if "repeat" in block:
            block["name"] = "block.{i}"
        layers.append({"pool": self.pick(
            {"kind": "first"}, {"kind": "last"}, {"kind": "mean"},
            {"kind": "max"}, {"kind": "token", "index": 1})})
        layers.append(self.pick(
            {"linear": {"out": 5}}, {"l2_norm": {}}, {"softmax": {}}))
        return {"attune": 1, "name": f"random{self.seed}", "inputs": {
            "pixels": {"dtype": "f32", "shape": shape}}, "layers": layers}

    def sequence(self):
        """One stream of frames, or two of which the second reads the first."""
        widths = [self.pick(4, 8, 12, 20, 24, 40) for _ in range(2)]
        model = {"attune": 1, "name": f"random{self.seed}", "inputs": {
            "x": {"dtype": "f32", "shape": ["batch", "tokens", widths[0]]}}}
        inputs = model["inputs"]

        def mask(prefix, tokens):
            if not self.chance(0.4):
                return False
            inputs[prefix + "attention_mask"] = {"dtype": "bool",
                                                 "shape": ["batch", tokens]}
            return True
        if self.chance(0.2):
            inputs["y"] = {"dtype": "f32", "shape": ["batch", "keys", widths[1]]}
            model["streams"] = {
                "encoder": {"input": "y", "layers": self.layers(
                    "e", masked=mask("y_", "keys"))},
                "decoder": {"input": "x", "layers": self.layers(
                    "d", "encoder", masked=mask("x_", "tokens"))}}
            return model
        masked = mask("", "tokens")
        layers = model["layers"] = self.layers("l", masked=masked)
        if self.chance(0.15):
            layers.append({"pool": self.pick(
                {"kind": "mean"}, {"kind": "last"}, {"kind": "max"})})
        return model

    def model(self):
        kind = self.random.random()
        if kind < 0.1:
            model = self.language_model()
        elif kind < 0.2:
            model = self.bare()
        elif kind < 0.27:
            model = self.image()
        else:
            model = self.sequence()
        if self.chance(0.15):
            model["dtype"] = self.pick("bf16", "f16")
        return model
