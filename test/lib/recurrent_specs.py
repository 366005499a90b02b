#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions of the recorded recurrent encoder-decoders, as torch_specs.py
has them of other modules.

  recurrent_specs.py spec CASE OUT      the description of a recorded case
  recurrent_specs.py greedy ATTUNE CASE WORK [FLAG]...
                                        greedy ids of the case, by repeated runs
  recurrent_specs.py weights ATTUNE CASE WORK [FLAG]...
                                        attention weights of each step add up to
                                        one, and padding has none
"""
import array
import json
import math
import os
import subprocess
import sys

import tensors


def ids(*shape):
    return {"dtype": "i64", "shape": list(shape)}


def cell_weights(step, module, suffix=""):
    return {f"{step}.{role}": f"{module}.{role}{suffix}"
            for role in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}


def encoder(source, table, layers, width, bidirectional, cell, vocab, emb):
    options = {"cell": cell, "width": width}
    if layers > 1:
        options["layers"] = layers
    if bidirectional:
        options["bidirectional"] = True
    return {"input": source, "layers": [
        {"embedding": {"vocab": vocab, "width": emb}, "name": "source",
         "weights": {"weight": table + ".weight"}},
        {"recurrent": options, "name": "enc"}]}


def mask(name):
    return {name: {"dtype": "bool", "shape": ["batch", "keys"]}}


def bahdanau(name, case, fixtures):
    """The recorded module, or the trained one, whose state starts from zeros
    and whose projection leaves the embedding out."""
    torch = case["torch"]
    trained = "vocab" in torch
    emb, width, attn = torch["emb"], torch["hidden"], torch["attn"]
    cell = torch.get("cell", "gru")
    src, mask_name, tgt = (
        ("input_ids", "attention_mask", "decoder_input_ids") if trained else
        ("src", "src_attention_mask", "tgt"))
    table = "emb" if trained else "src_emb"
    vocab = torch["vocab"] if trained else torch["src_vocab"]
    out = torch["vocab"] if trained else torch["tgt_vocab"]
    scan = {
        "steps": [
            {"name": "attention", "attend": {
                "score": "additive", "query": "h", "source": "encoder",
                "width": attn, "key_bias": True}},
            {"name": "h", "cell": {"cell": cell, "width": width,
                                   "inputs": ["input", "attention"]}}],
        "result": ["h", "attention"] + ([] if trained else ["input"])}
    weights = dict(cell_weights("h", "dec", "_l0"), **{
        "attention.query.weight": "Wq.weight",
        "attention.key.weight": "Wk.weight",
        "attention.key.bias": "Wk.bias",
        "attention.score.weight": "v.weight"})
    if not trained:
        scan["start"] = [{"name": "init", "linear": {
            "inputs": ["enc.h_l0_reverse"], "out": width, "bias": True,
            "activation": "tanh"}}]
        scan["initial"] = {"h": "init"}
        weights.update({"init.weight": "init_h.weight",
                        "init.bias": "init_h.bias"})
    model = {
        "attune": 1, "name": name,
        "inputs": {src: ids("batch", "keys"), **mask(mask_name),
                   tgt: ids("batch", "tokens")},
        "streams": {
            "encoder": encoder(src, table, 1, width, True, cell, vocab, emb),
            "decoder": {"input": tgt, "layers": [
                {"embedding": {"vocab": out, "width": emb}, "name": "target",
                 "weights": {"weight": "emb.weight" if trained
                             else "tgt_emb.weight"}},
                {"scan": scan, "name": "dec", "weights": weights},
                {"linear": {"out": out, "bias": True}, "name": "out"}]}},
        "outputs": {"logits": "out", "attention": "dec.attention.weights",
                    "encoder_states": "enc"}}
    given = fixtures["attention_mask" if trained else "src_mask"]
    inputs = {src: fixtures[src], mask_name: given, tgt: fixtures[tgt]}
    outputs = {"logits": ("logits", None), "attention": ("attention", None)}
    if trained:
        del model["outputs"]["encoder_states"]
    else:
        outputs["encoder_states"] = ("encoder_states", None)
    return model, inputs, outputs


def luong(name, case, fixtures):
    torch = case["torch"]
    emb, width, count = torch["emb"], torch["hidden"], torch["layers"]
    steps, weights, initial = [], {}, {}
    below = ["input", "feed"]
    for i in range(count):
        steps.append({"name": f"h{i}", "cell": {
            "cell": "lstm", "width": width, "inputs": below}})
        weights.update(cell_weights(f"h{i}", "dec", f"_l{i}"))
        initial[f"h{i}"] = f"enc.h_l{i}"
        initial[f"h{i}.cell"] = f"enc.c_l{i}"
        below = [f"h{i}"]
    steps += [
        {"name": "attention", "attend": {
            "score": torch["score"], "query": f"h{count - 1}",
            "source": "encoder"}},
        {"name": "feed", "linear": {
            "inputs": ["attention", f"h{count - 1}"], "out": width,
            "activation": "tanh"}}]
    weights["feed.weight"] = "Wc.weight"
    if torch["score"] == "general":
        weights["attention.key.weight"] = "Wa.weight"
    model = {
        "attune": 1, "name": name,
        "inputs": {"src": ids("batch", "keys"), "tgt": ids("batch", "tokens")},
        "streams": {
            "encoder": encoder("src", "emb", count, width, False, "lstm",
                               torch["vocab"], emb),
            "decoder": {"input": "tgt", "layers": [
                {"embedding": {"vocab": torch["vocab"], "width": emb},
                 "name": "emb"},
                {"scan": {"steps": steps, "initial": initial,
                          "result": ["feed"]},
                 "name": "dec", "weights": weights},
                {"linear": {"out": torch["vocab"], "bias": True},
                 "name": "Ws"}]}},
        "outputs": {"logits": "Ws", "attention": "dec.attention.weights"}}
    return (model, {key: fixtures[key] for key in ("src", "tgt")},
            {key: (key, None) for key in ("logits", "attention")})


def show_attend_tell(name, case, fixtures):
    torch = case["torch"]
    rows, columns, channels = torch["grid"]
    emb, width = torch["emb"], torch["hidden"]
    scan = {
        "start": [
            {"name": "mean", "mean": {"source": "annotations"}},
            *({"name": key, "linear": {"inputs": ["mean"], "out": width,
                                       "bias": True, "activation": "tanh"}}
              for key in ("init_h", "init_c"))],
        "initial": {"h": "init_h", "h.cell": "init_c"},
        "steps": [
            {"name": "attention", "attend": {
                "score": "additive", "query": "h", "source": "annotations",
                "width": torch["attn"], "activation": "relu",
                "query_bias": True, "key_bias": True, "score_bias": True}},
            {"name": "z", "linear": {
                "inputs": ["h"], "out": channels, "bias": True,
                "activation": "sigmoid", "multiply": "attention"}},
            {"name": "h", "cell": {"cell": "lstm", "width": width,
                                   "inputs": ["input", "z"]}},
            {"name": "deep_h", "linear": {"inputs": ["h"], "out": emb,
                                          "add": "input"}},
            {"name": "deep", "linear": {"inputs": ["z"], "out": emb,
                                        "add": "deep_h"}}],
        "result": ["deep"]}
    weights = cell_weights("h", "lstm")
    for role in ("weight", "bias"):
        weights.update({f"init_h.{role}": f"init_h.{role}",
                        f"init_c.{role}": f"init_c.{role}",
                        f"attention.query.{role}": f"att_h.{role}",
                        f"attention.key.{role}": f"att_a.{role}",
                        f"z.{role}": f"f_beta.{role}"})
    weights.update({"attention.score.weight": "att_v.weight",
                    "attention.score.bias": "att_v.bias",
                    "deep_h.weight": "L_h.weight",
                    "deep.weight": "L_z.weight"})
    model = {
        "attune": 1, "name": name,
        "inputs": {"annotations": {"dtype": "f32", "shape": [
            "batch", rows, columns, channels]},
            "captions": ids("batch", "tokens")},
        "streams": {"main": {"input": "captions", "layers": [
            {"embedding": {"vocab": torch["vocab"], "width": emb},
             "name": "emb"},
            {"scan": scan, "name": "dec", "weights": weights},
            {"linear": {"out": torch["vocab"], "bias": True},
             "name": "L_o"}]}},
        "outputs": {"logits": "L_o", "alpha": "dec.attention.weights",
                    "hidden": "dec.h"}}
    return (model, {key: fixtures[key] for key in ("annotations", "captions")},
            {key: (key, None) for key in ("logits", "alpha", "hidden")})


BY_PREFIX = {"bahdanau": bahdanau, "dates_rnnsearch": bahdanau,
             "luong": luong, "show_attend_tell": show_attend_tell}


def describe(name, case, fixtures):
    for prefix, build in BY_PREFIX.items():
        if name.startswith(prefix):
            return build(name, case, fixtures)
    return None


# --- Greedy decoding: the forward pass over what was decoded so far.

def read(folder):
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        case = json.load(file)
    return case, tensors.load(os.path.join(folder, "fixtures.safetensors"))


def longs(tensor):
    return list(array.array("q", tensor[2]))


def decode(run, source, target, first, count):
    """`count` ids for each row of the inputs `source`, always the likeliest,
    where `run` gives the logits of `first` and all ids so far, as `target`."""
    rows = source[next(iter(source))][1][0]
    found = [[first] for _ in range(rows)]
    for step in range(count):
        flat = array.array("q", [i for row in found for i in row])
        _, (_, tokens, vocab), raw = run({**source, target: (
            "I64", [rows, step + 1], flat.tobytes())})["logits"]
        values = array.array("f", raw)
        for row, ids in enumerate(found):
            at = (row * tokens + tokens - 1) * vocab
            ids.append(max(range(vocab),
                           key=values[at:at + vocab].__getitem__))
    return [row[1:] for row in found]


def greedy_ids(run, case, fixtures, inputs):
    """What a case's `greedy_ids` should be, and what they are."""
    _, (rows, count), _ = fixtures["greedy_ids"]
    flat = longs(fixtures["greedy_ids"])
    source = {key: inputs[key] for key in ("src", "src_attention_mask")}
    return ([flat[i * count:(i + 1) * count] for i in range(rows)],
            decode(run, source, "tgt", case["torch"]["bos"], count))


class Decoder:
    def __init__(self, attune, folder, work, flags):
        self.case, self.fixtures = read(folder)
        self.name = self.case["name"]
        self.work = work
        os.makedirs(work, exist_ok=True)
        model, self.inputs, _ = describe(self.name, self.case, self.fixtures)
        path = os.path.join(work, "model.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file)
        self.program = os.path.join(work, "model")
        subprocess.run(
            [attune, "compile", path, "-o", self.program, "--weights=" +
             os.path.join(folder, "model.safetensors"), *flags], check=True)

    def outputs(self, inputs):
        tensors.save(self.program + ".in", inputs)
        subprocess.run([self.program, "run", "--inputs", self.program + ".in",
                        "--outputs", self.program + ".out.safetensors"], check=True)
        return tensors.load(self.program + ".out.safetensors")

    def weights(self):
        found = self.outputs(self.inputs)
        name = "alpha" if "alpha" in found else "attention"
        _, (rows, tokens, *places), raw = found[name]
        values, count = array.array("f", raw), math.prod(places)
        mask = next((t for key, t in self.inputs.items() if "mask" in key),
                    ("BOOL", [rows, count], bytes([1] * rows * count)))
        # Of an i64 the lowest byte comes first.
        seen = mask[2][::len(mask[2]) // (rows * count)]
        worst, padding = 0.0, 0.0
        for at in range(rows * tokens):
            step = values[at * count:(at + 1) * count]
            row = at // tokens * count
            worst = max(worst, abs(sum(step) - 1))
            padding = max([padding, *(abs(a) for a, shown in zip(
                step, seen[row:row + count]) if not shown)])
        good = worst < 1e-6 and padding == 0
        print(f"{rows * tokens} steps of {count} weights, sums off by "
              f"{worst:.0e}, padding {padding}: {'ok' if good else 'FAIL'}")
        return not good

    def run(self):
        failures = 0

        def check(label, got, want):
            nonlocal failures
            good = got == want
            failures += not good
            print(f"{label} {'ok' if good else 'FAIL'}"
                  + ("" if good else f": {got}, not {want}"))

        if "greedy_ids" in self.fixtures:
            want, got = greedy_ids(self.outputs, self.case, self.fixtures,
                                   self.inputs)
            check("greedy_ids", got, want)
        for i, sample in enumerate(self.case.get("samples", ())):
            want = longs(self.fixtures[f"sample{i}.generated_ids"])
            first = longs(self.fixtures["decoder_input_ids"])[0]
            got = decode(
                self.outputs, {"input_ids": self.fixtures[f"sample{i}.input_ids"]},
                "decoder_input_ids", first, len(want))
            check(f"sample{i}", got, [want])
        return failures


def main():
    if sys.argv[1] == "spec":
        case, fixtures = read(sys.argv[2])
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            json.dump(describe(case["name"], case, fixtures)[0], file, indent=2)
        return 0
    decoder = Decoder(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    failed = decoder.weights() if sys.argv[1] == "weights" else decoder.run()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
