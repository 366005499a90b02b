#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small XLNet folders with random weights, run by the compiler and compared with
their formulas in f64.

  xlnet.py ATTUNE WORK [FLAG]...
"""
import math
import os
import sys
from operator import mul

from encoders import D, HEADS, INNER, RNG, V, Runner, Weights, add, gelu, integers

SIZE = D // HEADS


def distance_row(distance):
    """Sines of all frequencies, then cosines."""
    angles = [distance / 10000 ** (2 * k / D) for k in range(D // 2)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]


class Case:
    def __init__(self, name, layers):
        self.name, self.layers, self.w = name, layers, Weights()
        w = self.w
        w.new("transformer.word_embedding.weight", V, D)
        w.new("transformer.mask_emb", 1, 1, D)
        for i in range(layers):
            at = f"transformer.layer.{i}."
            for n in "qkvor":
                w.new(at + "rel_attn." + n, D, HEADS, SIZE)
            for n in ("r_w_bias", "r_r_bias", "r_s_bias"):
                w.new(at + "rel_attn." + n, HEADS, SIZE)
            w.new(at + "rel_attn.seg_embed", 2, HEADS, SIZE, scale=1.0)
            w.norm(at + "rel_attn.layer_norm", D)
            w.linear(at + "ff.layer_1", INNER, D)
            w.linear(at + "ff.layer_2", D, INNER)
            w.norm(at + "ff.layer_norm", D)

    def heads(self, name, rows):
        """[tokens][head][channel] of rows times a tensor [D, heads, size]."""
        flat = self.w.vector(name)

        def number(x, h, c):
            return sum(a * flat[(d * HEADS + h) * SIZE + c]
                       for d, a in enumerate(x))
        return [[[number(x, h, c) for c in range(SIZE)] for h in range(HEADS)]
                for x in rows]

    def attention(self, at, x, kinds, mask):
        w, count = self.w, len(x)
        q, k, v = (self.heads(at + n, x) for n in "qkv")
        far = {d: self.heads(at + "r", [distance_row(d)])[0]
               for d in range(1 - count, count)}
        bias = {n: w.vector(at + f"r_{n}_bias") for n in "wrs"}
        segments = w.vector(at + "seg_embed")
        out = w.vector(at + "o")
        result = [[0.0] * D for _ in x]
        for h in range(HEADS):
            part = slice(h * SIZE, (h + 1) * SIZE)

            def product(token, kind, key):
                return sum((a + b) * c for a, b, c
                           in zip(q[token][h], bias[kind][part], key))
            for i in range(count):
                scores = []
                for j in range(count):
                    which = int(kinds[i] != kinds[j]) * HEADS * SIZE + h * SIZE
                    score = (product(i, "w", k[j][h])
                             + product(i, "r", far[i - j][h])
                             + product(i, "s", segments[which:which + SIZE]))
                    scores.append(score / math.sqrt(SIZE)
                                  if mask[j] or i == j else -math.inf)
                top = max(scores)
                powers = [math.exp(s - top) for s in scores]
                for c in range(SIZE):
                    value = (sum(p * y[h][c] for p, y in zip(powers, v))
                             / sum(powers))
                    for d in range(D):
                        result[i][d] += value * out[(d * HEADS + h) * SIZE + c]
        return result

    def states(self, ids, kinds, mask):
        w = self.w
        table = w.rows("transformer.word_embedding.weight")
        x = [list(table[i]) for i in ids]
        for i in range(self.layers):
            at = f"transformer.layer.{i}."
            y = self.attention(at + "rel_attn.", x, kinds, mask)
            x = w.layer_norm(at + "rel_attn.layer_norm", add(x, y), 1e-12)
            y = w.apply(at + "ff.layer_2", w.apply(at + "ff.layer_1", x, gelu))
            x = w.layer_norm(at + "ff.layer_norm", add(x, y), 1e-12)
        return x

    def run(self, run, kind, head, segments=True, names=("logits",), **more):
        """`head` gives logits of one text's states, or as many as `names`.
        Padding is in front, as the class's tokenizer puts it."""
        folder = os.path.join(run.work, self.name)
        self.w.save(folder, {
            "model_type": "xlnet", "architectures": ["XLNet" + kind],
            "vocab_size": V, "d_model": D, "n_head": HEADS, "d_head": SIZE,
            "n_layer": self.layers, "d_inner": INNER, "ff_activation": "gelu",
            "layer_norm_eps": 1e-12, "attn_type": "bi", "clamp_len": -1,
            "untie_r": True, "summary_type": "last", "summary_use_proj": True,
            "summary_activation": "tanh", **more})
        length = 19
        ids = [[RNG.randrange(V) for _ in range(length)] for _ in range(2)]
        kinds = [[int(t > 11) + int(t == length - 1) for t in range(length)],
                 [3] * 6 + [int(t > 13) for t in range(6, length)]]
        masks = [[1] * length, [0] * 6 + [1] * (length - 6)]
        inputs = {"input_ids": integers(ids), "attention_mask": integers(masks)}
        if segments:
            inputs["token_type_ids"] = integers(kinds)
        else:
            kinds = [[0] * length] * 2
        states = [self.states(*text) for text in zip(ids, kinds, masks)]
        found = [head(x) for x in states]
        if len(names) == 1:
            found = [[logits] for logits in found]
        run.compare(self.name, folder, inputs,
                    {"last_hidden_state": states,
                     **dict(zip(names, map(list, zip(*found))))},
                    [m for mask in masks for m in mask])


def labels(run):
    """Of texts, which the last token says."""
    case = Case("labels", 3)
    w = case.w
    w.linear("sequence_summary.summary", D, D)
    w.linear("logits_proj", 3, D)
    case.run(run, "ForSequenceClassification", lambda x: w.apply(
        "logits_proj", w.apply("sequence_summary.summary", x[-1:], math.tanh))[0],
             num_labels=3)


def words(run):
    """Words again, of one segment that nobody names."""
    case = Case("words", 1)
    w = case.w
    w.new("lm_loss.bias", V)
    case.run(run, "LMHeadModel", lambda x: [
        [sum(map(mul, row, word)) + c for word, c in zip(
            w.rows("transformer.word_embedding.weight"),
            w.vector("lm_loss.bias"))] for row in x], segments=False)


def kinds(run):
    """Of words."""
    case = Case("kinds", 1)
    case.w.linear("classifier", 5, D)
    case.run(run, "ForTokenClassification",
             lambda x: case.w.apply("classifier", x), num_labels=5)


def spans(run):
    """Where an answer begins, and where it ends."""
    case = Case("spans", 1)
    case.w.linear("qa_outputs", 2, D)
    case.run(run, "ForQuestionAnsweringSimple",
             lambda x: list(map(list, zip(*case.w.apply("qa_outputs", x)))),
             names=("start_logits", "end_logits"))


def main():
    run = Runner(sys.argv[1], sys.argv[2], sys.argv[3:])
    os.makedirs(run.work, exist_ok=True)
    for case in (labels, words, kinds, spans):
        case(run)
    return run.failures != 0


if __name__ == "__main__":
    sys.exit(main())
