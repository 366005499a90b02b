# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of two kinds of tokens and of one shared matrix for reference.py: `part`
is its layer, `rows` one sequence."""
import math
from operator import mul

from reference_functions import ACTIVATIONS, softmax
from reference_signals import modulate


def chunks(row, width):
    return [row[i:i + width] for i in range(0, len(row), width)]


def gated(rows, gate, more):
    return [[x + g * y for x, g, y in zip(p, gate, q)] for p, q in zip(rows, more)]


def heads(part, rows, options, role, names):
    """Projections of the names, each as [head][token]."""
    count = part.model.number(options["heads"])
    bias = options.get("bias", False)
    bias = bias if isinstance(bias, bool) else bias.get("qkv", False)
    norm, made = options.get("qk_norm"), []
    for name in names:
        flat = part.linear(rows, f"{role}{name}.", len(rows[0]), bias)
        size = len(rows[0]) // count
        split = [[row[h * size:(h + 1) * size] for row in flat] for h in range(count)]
        if norm and name != "v":
            split = [part.norm(head, norm, f"{role}{name}_norm.",
                               norm.get("kind", "rms_norm")) for head in split]
        made.append(split)
    return made


def attend(query, key, value):
    rows = [[] for _ in query[0]]
    for q, k, v in zip(query, key, value):
        for row, mine in zip(rows, q):
            probs = softmax([sum(map(mul, mine, other))
                             / math.sqrt(len(mine)) for other in k])
            row += [sum(p * x[c] for p, x in zip(probs, v))
                    for c in range(len(v[0]))]
    return rows


def turned(part, head, rope, token):
    """By the numbers that inputs give the token, a share of channels each."""
    result, begin, half = list(head), 0, len(head) // 2
    for name in rope["axes"]["inputs"]:
        (count, axes), data = part.model.inputs[name]
        if token < count:
            place = data[token * axes:(token + 1) * axes]
            break
        token -= count
    for number, share in zip(place, rope["axes"]["channels"]):
        share = part.model.number(share)
        for i in range(share // 2):
            angle = number * rope.get("theta", 10000.0) ** (-2 * i / share)
            c, s, at = math.cos(angle), math.sin(angle), begin + i
            a, b = (2 * at, 2 * at + 1) if rope.get("interleaved") else (at, at + half)
            result[a], result[b] = head[a] * c - head[b] * s, head[b] * c + head[a] * s
        begin += share // 2
    return result


def out_of(part, rows, options, role):
    bias = options.get("bias", False)
    bias = bias if isinstance(bias, bool) else bias.get("out", False)
    return part.linear(rows, role + "o.", len(rows[0]), bias)


def joint(part, rows, block):
    options, form, norm = block["attention"], block["joint"], block.get("norm", {})
    width, first = len(rows[0]), part.model.parts[0]
    kinds, keys_only = [rows[:first], rows[first:]], form.get("keys_only", False)
    second, made, before = form.get("second_attention", False), [], None
    for i, x in enumerate(kinds):
        other = i == form["part"]
        role, only = "joint." if other else "", other and keys_only
        count = 2 if only else 9 if second and not other else 6
        by = chunks(part.modulation(block["modulation"], role + "modulation.",
                                    count * width), width)
        normed = part.norm(x, norm, role + "norm1.")
        before = before if other else normed
        read = modulate(normed, by[0], by[1])
        qkv = heads(part, read, options, role + "attention.", "kv" if only else "qkv")
        made.append((role, only, by, [[[] for _ in qkv[0]]] + qkv if only else qkv))
    both = [[a + b for a, b in zip(*(kind[3][j] for kind in made))] for j in range(3)]
    if "rope" in options:
        both[:2] = [[[part.rotate(x, options["rope"], t, len(x), len(head))
                      for t, x in enumerate(head)] for head in one]
                    for one in both[:2]]
    joined, result = attend(*both), []
    for i, (x, (role, only, by, qkv)) in enumerate(zip(kinds, made)):
        mine = joined[:len(qkv[0][0])]
        joined = joined[len(mine):]
        if not only:
            x = gated(x, by[2], out_of(part, mine, options, role + "attention."))
            if second and not role:
                alone = attend(*heads(part, modulate(before, by[6], by[7]), options,
                                      "attention2.", "qkv"))
                x = gated(x, by[8], out_of(part, alone, options, "attention2."))
            read = modulate(part.norm(x, norm, role + "norm2."), by[3], by[4])
            x = gated(x, by[5], part.ffn(read, block["ffn"], role + "ffn."))
        result += x
    return result


def shared_out(part, rows, block, read):
    """What attention and the feed-forward layer give, through one matrix."""
    ffn = block["ffn"]
    part.joined = lambda _, result, *rest: result
    mixed = part.attention(read, block["attention"], "attention.", None)
    del part.joined
    act = ACTIVATIONS[ffn.get("activation", "gelu")]
    inner = part.linear(read, "ffn.up.", part.model.number(ffn["width"]),
                        ffn.get("bias", True))
    return part.linear([a + [act(x) for x in b] for a, b in zip(mixed, inner)], "out.",
                       len(rows[0]), ffn.get("bias", True))


def side_by_side(part, rows, block):
    """Modulated by one shift, scale and gate, or with one matrix for both."""
    read, gate = part.norm(rows, block.get("norm", {}), "norm1."), None
    width = len(rows[0])
    if "modulation" in block:
        shift, scale, gate = chunks(part.modulation(
            block["modulation"], "modulation.", 3 * width), width)
        read = modulate(read, shift, scale)
    if block.get("shared_out"):
        made = shared_out(part, rows, block, read)
    else:
        made = [[a + b for a, b in zip(p, q)] for p, q in zip(
            part.attention(read, block["attention"], "attention.", None),
            part.ffn(read, block["ffn"], "ffn."))]
    return gated(rows, gate or [1.0] * width, made)
