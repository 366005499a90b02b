# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of numbers and of rows of scores, for `reference.py`."""
import math

ACTIVATIONS = {
    "identity": lambda x: x,
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "relu_squared": lambda x: max(x, 0.0) ** 2,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
    "mish": lambda x: x * math.tanh(ACTIVATIONS["softplus"](x)),
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "hardswish": lambda x: x * min(max(x + 3, 0.0), 6.0) / 6,
}


def softmax(scores, sink=None):
    """`sink` is one score more, whose share nobody gets."""
    everything = scores + ([] if sink is None else [sink])
    top = max(everything)
    if top == -math.inf:
        return [0.0] * len(scores)
    total = sum(math.exp(s - top) for s in everything)
    return [math.exp(s - top) / total for s in scores]


FEATURES = {
    "elu_plus_one": lambda x: x + 1 if x > 0 else math.exp(x),
    "relu": lambda x: max(x, 0.0),
    "identity": lambda x: x,
}


def share(products, linear):
    """What linear attention does to a row of products of features."""
    seen = [0.0 if p == -math.inf else p for p in products]
    if not linear.get("normalise", True):
        return seen
    total = sum(seen) + linear.get("eps", 1e-6)
    return [p / total if total else 0.0 for p in seen]


def alibi_slope(head, heads):
    power = 1 << (heads.bit_length() - 1)
    if head < power:
        return 2.0 ** (-8.0 * (head + 1) / power)
    return 2.0 ** (-8.0 * (2 * (head - power) + 1) / (2 * power))


def xielu(p, n):
    """xIELU with the numbers of its two sides behind their softplus."""
    def act(x):
        below = (0.5 + n) * (math.expm1(min(x, -1e-6)) - x)
        return 0.5 * x + (p * x * x if x > 0 else below)
    return act


def among_near(scores, chosen, eps):
    """Of each chosen number its share of a softmax over those near it that were
    not chosen before."""
    shares = []
    for a, e in enumerate(chosen):
        best = scores[e]
        shares.append(1 / math.fsum(
            math.exp(s - best) for n, s in enumerate(scores)
            if n not in chosen[:a] and best - s <= 2 * eps * max(abs(s), best)))
    return shares
