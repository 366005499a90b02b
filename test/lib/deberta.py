#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small DeBERTa-v2 and -v3 folders with random weights, run by the compiler and
compared with their formulas in f64.

  deberta.py ATTUNE WORK [FLAG]...
"""
import math
import os
import sys
from operator import mul

from encoders import D, HEADS, INNER, RNG, V, Runner, Weights, add, gelu, integers

SIZE = D // HEADS


def bucket(distance, span, most):
    """Distances below span / 2 stand for themselves, the others for the
    logarithm of what they are of it."""
    middle = span // 2
    if abs(distance) <= middle:
        return distance
    share = math.log(abs(distance) / middle) / math.log((most - 1) / middle)
    # The last distance has the last bucket, however logarithms are rounded.
    step = math.ceil(share * (middle - 1) - 1e-9) + middle
    return step if distance > 0 else -step


class Case:
    """`form` has what differs: span, most (0: no buckets), types, shared, norm,
    absolute, kinds, tables (their width)."""

    def __init__(self, name, layers, **form):
        self.name, self.layers, self.form, self.w = name, layers, form, Weights()

    def make(self):
        w, form, tables = self.w, self.form, self.form.get("tables", D)
        at = "deberta.embeddings."
        w.new(at + "word_embeddings.weight", V, tables)
        if form.get("absolute"):
            w.new(at + "position_embeddings.weight", 40, tables)
        if form.get("kinds"):
            w.new(at + "token_type_embeddings.weight", form["kinds"], tables)
        if tables != D:
            w.linear(at + "embed_proj", D, tables, bias=False)
        w.norm(at + "LayerNorm", D)
        w.new("deberta.encoder.rel_embeddings.weight", 2 * form["span"], D,
              scale=1.0)
        if form["norm"]:
            w.norm("deberta.encoder.LayerNorm", D)
        for i in range(self.layers):
            at = f"deberta.encoder.layer.{i}."
            for n in ("query_proj", "key_proj", "value_proj"):
                w.linear(at + "attention.self." + n, D, D)
            if not form["shared"]:
                for kind, n in (("c2p", "pos_key_proj"),
                                ("p2c", "pos_query_proj")):
                    if kind in form["types"]:
                        w.linear(at + "attention.self." + n, D, D)
            w.linear(at + "attention.output.dense", D, D)
            w.norm(at + "attention.output.LayerNorm", D)
            w.linear(at + "intermediate.dense", INNER, D)
            w.linear(at + "output.dense", D, INNER)
            w.norm(at + "output.LayerNorm", D)

    def config(self, kind):
        form = self.form
        config = {
            "model_type": "deberta-v2", "architectures": ["DebertaV2" + kind],
            "vocab_size": V, "hidden_size": D, "num_attention_heads": HEADS,
            "num_hidden_layers": self.layers, "intermediate_size": INNER,
            "max_position_embeddings": 40, "layer_norm_eps": 1e-7,
            "relative_attention": True, "max_relative_positions": -1,
            "position_buckets": form["span"] if form["most"] else -1,
            "pos_att_type": form["types"], "share_att_key": form["shared"],
            "norm_rel_ebd": "layer_norm" if form["norm"] else "none",
            "position_biased_input": bool(form.get("absolute")),
            "type_vocab_size": form.get("kinds", 0)}
        if "tables" in form:
            config["embedding_size"] = form["tables"]
        return config

    def attention(self, at, x, mask):
        """Scores one by one, as the paper writes them."""
        w, form = self.w, self.form
        rows = w.rows("deberta.encoder.rel_embeddings.weight")
        if form["norm"]:
            rows = w.layer_norm("deberta.encoder.LayerNorm", rows, 1e-7)
        q, k, v = (w.apply(at + n, x)
                   for n in ("query_proj", "key_proj", "value_proj"))
        names = (("query_proj", "key_proj") if form["shared"]
                 else ("pos_query_proj", "pos_key_proj"))
        pq = w.apply(at + names[0], rows) if "p2c" in form["types"] else None
        pk = w.apply(at + names[1], rows) if "c2p" in form["types"] else None
        scale = math.sqrt(SIZE * (1 + bool(pq) + bool(pk)))
        merged = [[] for _ in x]
        for head in range(HEADS):
            part = slice(head * SIZE, (head + 1) * SIZE)

            def product(a, b):
                return sum(map(mul, a[part], b[part]))
            for m in range(len(x)):
                scores = []
                for n in range(len(x)):
                    to = m - n
                    if form["most"]:
                        to = bucket(to, form["span"], form["most"])
                    row = min(max(to + form["span"], 0), 2 * form["span"] - 1)
                    score = product(q[m], k[n])
                    score += product(q[m], pk[row]) if pk else 0
                    score += product(k[n], pq[row]) if pq else 0
                    scores.append(score / scale if mask[n] else -math.inf)
                top = max(scores)
                powers = [math.exp(s - top) for s in scores]
                merged[m] += [sum(p * r[part][c] for p, r in zip(powers, v))
                              / sum(powers) for c in range(SIZE)]
        return merged

    def states(self, ids, kinds, mask):
        w, form, at = self.w, self.form, "deberta.embeddings."
        x = [list(w.rows(at + "word_embeddings.weight")[i]) for i in ids]
        if form.get("absolute"):
            x = add(x, w.rows(at + "position_embeddings.weight")[:len(x)])
        if form.get("kinds"):
            table = w.rows(at + "token_type_embeddings.weight")
            x = add(x, [table[k] for k in kinds])
        if "tables" in form:
            x = w.apply(at + "embed_proj", x)
        x = w.layer_norm(at + "LayerNorm", x, 1e-7)
        for i in range(self.layers):
            at = f"deberta.encoder.layer.{i}."
            y = w.apply(at + "attention.output.dense",
                        self.attention(at + "attention.self.", x, mask))
            x = w.layer_norm(at + "attention.output.LayerNorm", add(x, y), 1e-7)
            y = w.apply(at + "output.dense",
                        w.apply(at + "intermediate.dense", x, gelu))
            x = w.layer_norm(at + "output.LayerNorm", add(x, y), 1e-7)
        return x

    def run(self, run, kind, head):
        """`head` gives logits of one text's states; None: there are none."""
        folder = os.path.join(run.work, self.name)
        self.w.save(folder, self.config(kind))
        length = 23
        ids = [[RNG.randrange(V) for _ in range(length)] for _ in range(2)]
        kinds = [[int(t > 8) for t in range(length)] for _ in ids]
        masks = [[1] * length, [1] * 14 + [0] * 9]
        inputs = {"input_ids": integers(ids), "attention_mask": integers(masks)}
        if self.form.get("kinds"):
            inputs["token_type_ids"] = integers(kinds)
        states = [self.states(*text) for text in zip(ids, kinds, masks)]
        expected = {"last_hidden_state": states}
        if head:
            expected["logits"] = [head(x) for x in states]
        run.compare(self.name, folder, inputs, expected,
                    [m for mask in masks for m in mask])


def v3(run):
    """Both kinds of scores through the projections of contents, buckets, a norm
    of the rows; labels of texts."""
    case = Case("v3", 3, span=8, most=40, types=["p2c", "c2p"], shared=True,
                norm=True)
    case.make()
    w = case.w
    w.linear("pooler.dense", D, D)
    w.linear("classifier", 3, D)
    config = case.config
    case.config = lambda kind: dict(config(kind), num_labels=3,
                                    pos_att_type="p2c|c2p")
    case.run(run, "ForSequenceClassification", lambda x: w.apply(
        "classifier", w.apply("pooler.dense", x[:1], gelu))[0])


def own_projections(run):
    """Rows with projections of their own, distances one by one, positions and
    kinds in the embeddings, which are narrower; labels of tokens."""
    case = Case("own", 2, span=40, most=0, types=["c2p", "p2c"], shared=False,
                norm=False, absolute=True, kinds=2, tables=10)
    case.make()
    case.w.linear("classifier", 2, D)
    case.run(run, "ForTokenClassification",
             lambda x: case.w.apply("classifier", x))


def one_kind(run):
    """Only products of queries and rows; the words again."""
    case = Case("one", 1, span=6, most=40, types=["c2p"], shared=False, norm=True)
    case.make()
    w = case.w
    w.linear("cls.predictions.transform.dense", D, D)
    w.norm("cls.predictions.transform.LayerNorm", D)
    w.new("cls.predictions.bias", V)

    def words(x):
        h = w.layer_norm("cls.predictions.transform.LayerNorm",
                         w.apply("cls.predictions.transform.dense", x, gelu),
                         1e-7)
        return [[sum(map(mul, row, word)) + c
                 for word, c in zip(
                     w.rows("deberta.embeddings.word_embeddings.weight"),
                     w.vector("cls.predictions.bias"))] for row in h]
    case.run(run, "ForMaskedLM", words)


def main():
    run = Runner(sys.argv[1], sys.argv[2], sys.argv[3:])
    os.makedirs(run.work, exist_ok=True)
    for case in (v3, own_projections, one_kind):
        case(run)
    return run.failures != 0


if __name__ == "__main__":
    sys.exit(main())
