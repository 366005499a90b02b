#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the pictures of a page of heat-maps and compares them with tensors.

  heatmap.py PAGE.html OUTPUTS.safetensors

Prints each picture's title, sizes and labels. Its numbers have 16 bits between
the least and the greatest; further off than that is an error. Of a table of
likeliest tokens it compares the probabilities and prints the first row.
"""
import array
import base64
import json
import math
import re
import sys

import tensors


def check_words(table, labels, wanted):
    _, shape, raw = wanted["logits"]
    row = int(table["title"].split()[-1]) * shape[1]
    tokens = labels[table["labels"]]
    if not len(table["rows"]) == len(tokens) == shape[1]:
        sys.exit(f"{table['title']} has {len(table['rows'])} rows")
    for choices in table["rows"]:
        logits = array.array("f", raw)[row * shape[2]:][:shape[2]]
        row += 1
        most = max(logits)
        total = sum(math.exp(x - most) for x in logits)
        best = sorted((math.exp(x - most) / total for x in logits), reverse=True)
        if any(abs(p - q) > 1e-3 for (_, p), q in zip(choices, best[:5])):
            sys.exit(f"{table['title']}: {choices} are not {best[:5]}")
    print(table["title"], "behind", "|".join(tokens[:3]), "words:",
          "|".join(word for word, _ in table["rows"][0]))


def main():
    page, outputs = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    # Nothing is fetched from anywhere.
    if re.search(r"(src|href)=|url\(|import |fetch\(", text):
        sys.exit("the page needs something else")
    labels = json.loads(re.search(r"const labels = (\[.*?\n?\]);\n", text, re.S)[1])
    maps = json.loads(re.search(r"const maps = (\[.*?\]);\n", text, re.S)[1])
    tables = json.loads(re.search(r"const words = (\[.*?\]);\n", text, re.S)[1])
    wanted = tensors.load(outputs)
    for table in tables:
        check_words(table, labels, wanted)
    for map_ in maps:
        name, at = map_["name"], map_["at"]
        _, shape, raw = wanted[name]
        rows, columns = map_["size"]
        if shape != shape[:len(at)] + [rows, columns]:
            sys.exit(f"{map_['title']} is {rows} x {columns} of {shape}")
        first = 0
        for i, size in zip(at, shape):
            first = first * size + i
        values = array.array("f", raw)[first * rows * columns:][:rows * columns]
        words = array.array("H", base64.b64decode(map_["data"]))
        step = (map_["high"] - map_["low"]) / 65535
        worst = max(abs(map_["low"] + step * w - v) for w, v in zip(words, values))
        if len(words) != len(values) or worst > step * 0.51 + 1e-6:
            sys.exit(f"{map_['title']} is off by {worst}")
        shown = ["none" if i < 0 else "|".join(labels[i]) for i in map_["labels"]]
        print(map_["title"], f"{rows} x {columns}", "rows:", shown[0],
              "columns:", shown[1])


if __name__ == "__main__":
    main()
