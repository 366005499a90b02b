# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of attention for reference.py: `part` is its layer."""
import math
from operator import mul

from reference_functions import ACTIVATIONS


def mix(part, tokens, options, role, name, mask):
    """Sums over the tokens in place of them, as Linformer has it."""
    low, number = options["sequence_rank"], part.model.number
    shared, rank = low.get("shared", "heads"), number(low["rank"])
    if shared == "keys_values":
        name = "k"
    role = f"{role}sequence_{name}."
    heads = len(tokens[0]) if shared == "none" else 1
    matrix = part.weight(role + "weight", heads * rank, number(low["positions"]))
    shift = (part.weight(role + "bias", heads * rank)
             if low.get("bias") else [0.0] * (heads * rank))
    seen = [n for n in range(len(tokens))
            if n < part.model.length(options) and (not mask or mask[n])]
    return [[[shift[r + h % heads * rank] + sum(
        matrix[r + h % heads * rank][n] * tokens[n][h][d]
        for n in seen) for d in range(len(tokens[0][h]))]
        for h in range(len(tokens[0]))] for r in range(rank)]


def fading(part, query, key, value, options, role):
    """Sums of keys times values of which each token leaves a part: in closed
    form, a token weighs what is left of it after those behind it."""
    form, mask = options["linear"]["fading"], part.model.mask
    act = ACTIVATIONS[form.get("activation", "silu")]
    query, key, value = ([[[act(x) for x in h] for h in token] for token in part_]
                         for part_ in (query, key, value))
    layers, heads = part.model.number(form["layers"]), len(query[0])
    of_layer = 1 - part.number / (layers - 1 + 1e-5) + 1e-5
    rows = []
    for m, token in enumerate(query):
        row = []
        for h in range(heads):
            rate = 2.0 ** (-8.0 * (h + 1) / heads) * of_layer
            weights = [0.0 if mask and not mask[n] else
                       math.exp(-rate * (m - n)) * math.fsum(
                           a * b for a, b in zip(token[h], key[n][h]))
                       for n in range(m + 1)]
            row += [math.fsum(w * value[n][h][d] for n, w in enumerate(weights))
                    for d in range(len(value[0][h]))]
        rows.append(row)
    norm = {"eps": 1e-6, **form.get("norm", {})}
    return part.norm(rows, norm, role + "out_norm.", norm.get("kind", "rms_norm"))


def row_of(distance, form, number):
    """Of the table of disentangled attention."""
    span = number(form.get("span", 256))
    middle, size = span // 2, abs(distance)
    if form.get("buckets", True) and size > middle:
        most = number(form.get("max_distance", 512))
        share = math.log(size / middle) / math.log((most - 1) / middle)
        # Distances that are whole steps stay so, however logarithms round.
        size = math.ceil(share * (middle - 1) - 1e-9) + middle
    return min(max(span + (size if distance > 0 else -size), 0), 2 * span - 1)


def positions(part, query, key, options, role, width):
    """What `disentangled` adds to the products: of head, query and key."""
    form, number = options["disentangled"], part.model.number
    heads, dim = len(query[0]), len(query[0][0])
    table = part.weight(role + "positions.weight",
                        2 * number(form.get("span", 256)), width)
    if "norm" in form:
        table = part.norm(table, form["norm"], role + "positions_norm.",
                          form["norm"].get("kind", "layer_norm"))
    bias = options.get("bias", False)
    bias = bias if isinstance(bias, bool) else bias.get("qkv", False)

    def made(name):
        own = "" if form.get("shared", True) else "position_"
        return part.linear(table, f"{role}{own}{name}.", heads * dim, bias)
    keys = made("k") if form.get("content_to_position", True) else None
    queries = made("q") if form.get("position_to_content", True) else None

    def score(h, m, n):
        row, total = row_of(m - n, form, number), 0.0
        for side, of in ((keys, query[m][h]), (queries, key[n][h])):
            if side:
                total += math.fsum(map(mul, side[row][h * dim:], of))
        return total
    return score
