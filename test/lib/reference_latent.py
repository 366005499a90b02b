# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention for reference.py: `part` is its layer."""
import math
from operator import mul


def has_bias(options):
    bias = options.get("bias", False)
    return bias if isinstance(bias, bool) else bias.get("qkv", False)


def compressed(part, rows, options, role):
    """What queries are made of."""
    latent = options["latent"]
    low = part.linear(rows, role + "q_a.", part.model.number(latent["query_rank"]),
                      has_bias(options))
    return part.norm(low, latent.get("norm", {}), role + "q_norm.", "rms_norm")


def heads(part, rows, options, role):
    """Queries, keys and values of each head, all written out."""
    number, latent = part.model.number, options["latent"]
    count, dim = number(options["heads"]), number(options["head_dim"])
    value_dim = number(options.get("value_dim", dim))
    turned, rank = number(options["rope"]["channels"]), number(latent["rank"])
    plain, norm = dim - turned, latent.get("norm", {})
    bias = has_bias(options)
    if "query_rank" in latent:
        low = compressed(part, rows, options, role)
        flat = part.linear(low, role + "q_b.", count * dim, False)
    else:
        flat = part.linear(rows, role + "q.", count * dim, False)
    both = part.linear(rows, role + "kv_a.", rank + turned, bias)
    low = part.norm([r[:rank] for r in both], norm, role + "kv_norm.", "rms_norm")
    wide = part.linear(low, role + "kv_b.", count * (plain + value_dim), False)

    def turn(head, t):
        return part.rotate(head, options["rope"], t, turned, len(rows))
    query, key, value = [], [], []
    for t in range(len(rows)):
        shared = turn(both[t][rank:], t)
        query.append([flat[t][h * dim:h * dim + plain] +
                      turn(flat[t][h * dim + plain:(h + 1) * dim], t)
                      for h in range(count)])
        each = [wide[t][h * (plain + value_dim):(h + 1) * (plain + value_dim)]
                for h in range(count)]
        key.append([e[:plain] + shared for e in each])
        value.append([e[plain:] for e in each])
    return query, key, value


def chosen(part, rows, options, role, mask):
    """For each query the keys that its index chooses; None without an index."""
    index = options.get("latent", {}).get("index")
    if index is None:
        return None
    number = part.model.number
    count, dim = number(index["heads"]), number(index["head_dim"])
    rope = dict(options["rope"], interleaved=index.get("interleaved", False))
    norm = {"eps": 1e-6, **index.get("norm", {})}
    asked = part.linear(compressed(part, rows, options, role), role + "index.q.",
                        count * dim, False)
    keys = part.linear(rows, role + "index.k.", dim, False)
    keys = part.norm(keys, norm, role + "index.k_norm.",
                     norm.get("kind", "layer_norm"))
    shares = part.linear(rows, role + "index.shares.", count, False)

    def turn(head, t):
        return part.rotate(head, rope, t, dim, len(rows))
    keys = [turn(key, t) for t, key in enumerate(keys)]
    result = []
    for m, flat in enumerate(asked):
        heads_ = [turn(flat[h * dim:(h + 1) * dim], m) for h in range(count)]
        scores = []
        for n, key in enumerate(keys):
            if (options.get("causal") and n > m) or (mask and not mask[n]):
                continue
            if n >= part.model.length(options):
                continue
            products = (math.fsum(map(mul, h, key)) for h in heads_)
            score = math.fsum(w * max(p, 0) / math.sqrt(count * dim)
                              for w, p in zip(shares[m], products))
            scores.append((-score, n))
        result.append({n for _, n in sorted(scores)[:number(index["top"])]})
    return result
