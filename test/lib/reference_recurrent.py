# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers and scans for reference.py, as lib/Spec/Guide has them:
one sequence, plain numbers, every product written out."""
import math
from operator import mul

GATES = {"rnn": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def product(matrix, vector, bias=None):
    return [sum(map(mul, row, vector)) + (bias[i] if bias else 0.0)
            for i, row in enumerate(matrix)]


def step(cell, x, u, h, c):
    """The next state from the gates of the input and of the state."""
    n = len(h)
    if cell == "rnn":
        return [math.tanh(a + b) for a, b in zip(x, u)], c
    if cell == "rnn_relu":
        return [max(a + b, 0.0) for a, b in zip(x, u)], c
    if cell == "gru":
        r = [sigmoid(x[i] + u[i]) for i in range(n)]
        z = [sigmoid(x[n + i] + u[n + i]) for i in range(n)]
        new = [math.tanh(x[2 * n + i] + r[i] * u[2 * n + i]) for i in range(n)]
        return [(1 - z[i]) * new[i] + z[i] * h[i] for i in range(n)], c
    i, f, g, o = ([x[k * n + j] + u[k * n + j] for j in range(n)]
                  for k in range(4))
    c = [sigmoid(f[j]) * c[j] + sigmoid(i[j]) * math.tanh(g[j])
         for j in range(n)]
    return [sigmoid(o[j]) * math.tanh(c[j]) for j in range(n)], c


class Cell:
    def __init__(self, layer, kind, width, inputs, prefix, suffix, bias):
        rows = GATES[kind] * width
        self.kind = kind
        self.input = layer.weight(f"{prefix}weight_ih{suffix}", rows, inputs)
        self.state = layer.weight(f"{prefix}weight_hh{suffix}", rows, width)
        self.biases = [layer.weight(f"{prefix}bias_{of}{suffix}", rows)
                       if bias else None for of in ("ih", "hh")]

    def __call__(self, x, h, c):
        return step(self.kind, product(self.input, x, self.biases[0]),
                    product(self.state, h, self.biases[1]), h, c)


def recurrent(layer, rows, options, further):
    """The sequence; last states go to `further` under their names."""
    number, kind = layer.model.number, options.get("cell", "gru")
    width = number(options["width"])
    for level in range(number(options.get("layers", 1))):
        sides = []
        for suffix in ("", "_reverse") if options.get("bidirectional") else ("",):
            place = f"_l{level}{suffix}"
            cell = Cell(layer, kind, width, len(rows[0]), "", place,
                        options.get("bias", True))
            h, c = ([0.0] * width if name not in options.get("initial", {})
                    else further[options["initial"][name]]
                    for name in ("h" + place, "c" + place))
            side = []
            for x in rows[::-1] if suffix else rows:
                h, c = cell(x, h, c)
                side.append(h)
            sides.append(side[::-1] if suffix else side)
            further[f"{layer.name}.h{place}"] = h
            further[f"{layer.name}.c{place}"] = c
        rows = [[x for side in token for x in side] for token in zip(*sides)]
    return rows


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def attend(layer, name, options, query, source, activations):
    number, score = layer.model.number, options.get("score", "additive")
    width = len(query)
    if score == "additive":
        width = number(options["width"])
        act = activations[options.get("activation", "tanh")]
        query = product(layer.weight(f"{name}.query.weight", width, len(query)),
                        query, layer.weight(f"{name}.query.bias", width)
                        if options.get("query_bias") else None)
    if score == "concat":
        width = number(options["width"])
        act = activations[options.get("activation", "tanh")]
        matrix = layer.weight(f"{name}.weight", width,
                              len(query) + len(source[0]))
        bias = (layer.weight(f"{name}.bias", width)
                if options.get("key_bias") else None)
    if score in ("additive", "concat"):
        vector = layer.weight(f"{name}.score.weight", 1, width)[0]
    keys = source
    if score in ("general", "additive"):
        matrix = layer.weight(f"{name}.key.weight", width, len(source[0]))
        bias = (layer.weight(f"{name}.key.bias", width)
                if options.get("key_bias") else None)
        keys = [product(matrix, x, bias) for x in source]
    if score == "concat":
        scores = [sum(v * act(p) for v, p in zip(
            vector, product(matrix, query + key, bias))) for key in keys]
    elif score == "additive":
        scores = [sum(v * act(q + k) for v, q, k in zip(vector, query, key))
                  for key in keys]
    else:
        scores = [sum(map(mul, query, key)) for key in keys]
    powers = [math.exp(s - max(scores)) for s in scores]
    weights = [p / sum(powers) for p in powers]
    return [sum(map(mul, weights, column))
            for column in zip(*source)], weights


def linear(layer, name, options, values, activations):
    out = layer.model.number(options["out"])
    given = [x for key in options["inputs"] for x in values[key]]
    act = activations[options.get("activation", "identity")]
    made = [act(x) for x in product(
        layer.weight(f"{name}.weight", out, len(given)), given,
        layer.weight(f"{name}.bias", out) if options.get("bias") else None)]
    if "multiply" in options:
        made = [x * y for x, y in zip(made, values[options["multiply"]])]
    if "add" in options:
        made = [x + y for x, y in zip(made, values[options["add"]])]
    return made


def scan(layer, rows, options, further, source, activations):
    """`source(name)` gives the rows of a stream or an input. Every step's values
    go to `further`, those of attention with their weights."""
    values, cells = dict(further), {}
    for one in options.get("start", ()):
        name = one["name"]
        values[name] = mean(source(one["mean"]["source"])) if "mean" in one else (
            linear(layer, name, one["linear"], values, activations))
    widths = {"input": len(rows[0]), **{k: len(v) for k, v in values.items()}}
    for one in options["steps"]:
        kind = next(k for k in ("cell", "attend", "linear") if k in one)
        widths[one["name"]] = (
            len(source(one[kind]["source"])[0]) if kind == "attend" else
            layer.model.number(one[kind]["out" if kind == "linear" else "width"]))
    for one in options["steps"]:
        # What a first token reads of a token before it.
        for state in (one["name"], one["name"] + ".cell"):
            first = options.get("initial", {}).get(state)
            values[state] = (values[first] if first
                             else [0.0] * widths[one["name"]])
    sequences = {}
    for row in rows:
        values["input"] = row
        for one in options["steps"]:
            name = one["name"]
            if "cell" in one:
                cell = one["cell"]
                if name not in cells:
                    cells[name] = Cell(
                        layer, cell.get("cell", "gru"), widths[name],
                        sum(widths[key] for key in cell["inputs"]),
                        name + ".", "", cell.get("bias", True))
                values[name], values[name + ".cell"] = cells[name](
                    [x for key in cell["inputs"] for x in values[key]],
                    values[name], values[name + ".cell"])
            elif "attend" in one:
                values[name], values[name + ".weights"] = attend(
                    layer, name, one["attend"], values[one["attend"]["query"]],
                    source(one["attend"]["source"]), activations)
            else:
                values[name] = linear(layer, name, one["linear"], values,
                                      activations)
        for name, value in values.items():
            sequences.setdefault(name, []).append(value)
    for name, sequence in sequences.items():
        further[f"{layer.name}.{name}"] = sequence
    result = options.get("result") or [options["steps"][-1]["name"]]
    return [[x for part in token for x in part]
            for token in zip(*(sequences[name] for name in result))]


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def convolved(layer, rows, role, taps, bias):
    """Each channel over the tokens up to its own."""
    count = len(rows[0])
    filters = layer.weight(role + "weight", count, taps)
    shift = layer.weight(role + "bias", count) if bias else [0.0] * count
    return [[shift[c] + sum(filters[c][k] * rows[t - taps + 1 + k][c]
                            for k in range(taps) if t - taps + 1 + k >= 0)
             for c in range(count)] for t in range(len(rows))]


def short_conv(layer, rows, options, prefix):
    """C * conv(B * x) with the thirds of a projection."""
    number, width = layer.model.number, len(rows[0])
    bias = options.get("bias", False)
    thirds = layer.linear(rows, prefix + "in_proj.", 3 * width, bias)
    read = [[b * x for b, x in zip(row[:width], row[2 * width:])]
            for row in thirds]
    made = convolved(layer, read, prefix + "conv.",
                     number(options.get("kernel", 3)), bias)
    made = [[c * x for c, x in zip(row[width:2 * width], y)]
            for row, y in zip(thirds, made)]
    return layer.linear(made, prefix + "out_proj.", width, bias)


def delta_rule(layer, rows, options, prefix):
    """A memory for each head: it forgets, and what it should have given for a
    key is added to it."""
    number, width = layer.model.number, len(rows[0])
    heads = number(options["heads"])
    size = number(options.get("value_dim", width // heads))
    dim = number(options.get("key_dim", size))
    groups = number(options.get("key_heads", heads))
    keys, values = groups * dim, heads * size
    seen = convolved(
        layer, layer.linear(rows, prefix + "in_proj.", 2 * keys + values, False),
        prefix + "conv1d.", number(options.get("kernel", 4)), False)
    seen = [[v * sigmoid(v) for v in row] for row in seen]
    low = layer.linear(rows, prefix + "gate_down.", options["gate_rank"],
                       False) if "gate_rank" in options else rows
    gates = layer.linear(low, prefix + "gate.", values, False)
    each = dim if options.get("channel_steps") else 1
    low = layer.linear(rows, prefix + "step_down.", options["step_rank"],
                       False) if "step_rank" in options else rows
    steps = layer.linear(low, prefix + "step.", heads * each, True)
    betas = layer.linear(rows, prefix + "beta.", heads, False)
    logs = layer.weight(prefix + "A_log", heads)
    memory = [[[0.0] * size for _ in range(dim)] for _ in range(heads)]
    made = []
    for t, row in enumerate(seen):
        joined = []
        for h, held in enumerate(memory):
            first = h * groups // heads * dim
            query, key = (unit(row[at:at + dim], options.get("eps", 1e-6))
                          for at in (first, keys + first))
            value = row[2 * keys + h * size:][:size]
            keep = [math.exp(-math.exp(logs[h]) * softplus(step))
                    for step in steps[t][h * each:(h + 1) * each]]
            held = [[keep[s % each] * x for x in line]
                    for s, line in enumerate(held)]
            told = [sum(k * line[c] for k, line in zip(key, held))
                    for c in range(size)]
            wrong = [sigmoid(betas[t][h]) * (v - x) for v, x in zip(value, told)]
            memory[h] = [[x + k * e for x, e in zip(line, wrong)]
                         for k, line in zip(key, held)]
            joined += layer.norm([[
                sum(q * line[c] for q, line in zip(query, memory[h]))
                / math.sqrt(dim) for c in range(size)]],
                options.get("norm", {"kind": "rms_norm"}), prefix + "norm.")[0]
        silu = options.get("gate_activation", "silu") == "silu"
        made.append([x * (g if silu else 1) * sigmoid(g)
                     for x, g in zip(joined, gates[t])])
    return layer.linear(made, prefix + "out_proj.", width, False)


def shifted(rows, by):
    """Each token with shares of the one before, which the first has not."""
    before = [[0.0] * len(by)] + rows[:-1]
    return [[x + (old - x) * share for x, old, share in zip(row, last, by)]
            for row, last in zip(rows, before)]


def time_mix(layer, rows, options, prefix):
    """A memory for each head, of which each token takes a part that one vector
    finds and puts back another (RWKV-7)."""
    number, width = layer.model.number, len(rows[0])
    heads = number(options["heads"])
    dim = number(options.get("key_dim", width // heads))
    size = number(options.get("value_dim", dim))
    keys, values = heads * dim, heads * size
    of = {part: shifted(rows, layer.weight(f"{prefix}x_{part}", width))
          for part in "rwkvag"}

    def through(part, rank, out, inner=None, name=None, bias=True):
        low = layer.linear(of[part], f"{prefix}{part}_down.", number(rank), False)
        if inner:
            low = [[inner(x) for x in row] for row in low]
        return layer.linear(low, f"{prefix}{name or part}.", out, bias)
    asks, key, value = (layer.linear(of[part], f"{prefix}{part}.", out, False)
                        for part, out in (("r", keys), ("k", keys),
                                          ("v", values)))
    keep = [[math.exp(-math.exp(-0.5) * sigmoid(x)) for x in row]
            for row in through("w", options["decay_rank"], keys, math.tanh)]
    rate = [[sigmoid(x) for x in row]
            for row in through("a", options["rate_rank"], keys)]
    gate = through("g", options["gate_rank"], values, sigmoid, bias=False)
    if "value_rank" in options:
        mixed = through("v", options["value_rank"], values, name="v_mix")
        value = [[own + (first - own) * sigmoid(x)
                  for own, first, x in zip(*lines)]
                 for lines in zip(value, layer.model.first_values, mixed)]
    else:
        layer.model.first_values = value
    finds, grows, bonus = (layer.weight(prefix + name, keys)
                           for name in ("k_k", "k_a", "r_k"))
    norm = options.get("norm", {})
    gamma, beta = (layer.weight(f"{prefix}norm.{name}", values)
                   for name in ("weight", "bias"))
    memory = [[[0.0] * size for _ in range(dim)] for _ in range(heads)]
    made = []
    for t in range(len(rows)):
        joined = []
        for h in range(heads):
            own, out = slice(h * dim, (h + 1) * dim), slice(h * size, (h + 1) * size)
            found = unit([k * f for k, f in zip(key[t][own], finds[own])],
                         options.get("eps", 1e-12))
            fresh = [k + k * (a - 1) * g for k, a, g in zip(
                key[t][own], rate[t][own], grows[own])]
            known = [sum(f * line[c] for f, line in zip(found, memory[h]))
                     for c in range(size)]
            memory[h] = [
                [m * w - f * a * was + k * v
                 for m, was, v in zip(line, known, value[t][out])]
                for line, w, f, a, k in zip(memory[h], keep[t][own], found,
                                            rate[t][own], fresh)]
            told = [sum(r * line[c] for r, line in zip(asks[t][own], memory[h]))
                    for c in range(size)]
            mean = sum(told) / size
            spread = math.sqrt(sum((x - mean) ** 2 for x in told) / size
                               + norm.get("eps", 1e-5))
            more = sum(r * k * b for r, k, b in zip(asks[t][own], fresh,
                                                    bonus[own]))
            joined += [(x - mean) / spread * g + b + more * v for x, g, b, v in zip(
                told, gamma[out], beta[out], value[t][out])]
        made.append([x * g for x, g in zip(joined, gate[t])])
    return layer.linear(made, prefix + "o.", width, False)


def unit(values, eps):
    scale = math.sqrt(sum(v * v for v in values) + eps)
    return [v / scale for v in values]


def mamba_heads(layer, rows, options, prefix):
    """Mamba-2: one step, decay and skip for each head, inputs and outputs for
    each group of heads."""
    number, width = layer.model.number, len(rows[0])
    inner = number(options.get("inner", 2 * width))
    states, heads = number(options.get("states", 16)), number(options["heads"])
    groups = number(options.get("groups", 1))
    count = inner + 2 * groups * states
    both = layer.linear(rows, prefix + "in_proj.", inner + count, False)
    steps = layer.linear(rows, prefix + "dt_proj.", heads, True)
    seen = convolved(layer, [row[inner:] for row in both], prefix + "conv1d.",
                     number(options.get("kernel", 4)),
                     options.get("conv_bias", True))
    seen = [[v * sigmoid(v) for v in row] for row in seen]
    logs, skip = (layer.weight(prefix + name, heads) for name in ("A_log", "D"))
    h, made = [[0.0] * states for _ in range(inner)], []
    for t, row in enumerate(seen):
        y = []
        for c in range(inner):
            head = c * heads // inner
            first = inner + head * groups // heads * states
            dt = softplus(steps[t][head])
            for s in range(states):
                h[c][s] = (math.exp(-dt * math.exp(logs[head])) * h[c][s]
                           + dt * row[first + s] * row[c])
            first += groups * states
            z = both[t][c]
            y.append((skip[head] * row[c] + sum(
                a * b for a, b in zip(row[first:], h[c]))) * z * sigmoid(z))
        made.append(y)
    norm = options.get("out_norm")
    if norm:
        parts = number(norm.get("parts", 1))
        size = inner // parts
        gamma = layer.weight(prefix + "norm.weight", inner)
        made = [[x * (gamma[c] + norm.get("offset", 0)) / math.sqrt(
            sum(v * v for v in row[c // size * size:][:size]) / size
            + norm.get("eps", 1e-5)) for c, x in enumerate(row)]
                for row in made]
    return layer.linear(made, prefix + "out_proj.", width, False)


def mamba(layer, rows, options, prefix):
    """A selective state space: one state for each channel and number."""
    if "heads" in options:
        return mamba_heads(layer, rows, options, prefix)
    number, width = layer.model.number, len(rows[0])
    inner = number(options.get("inner", 2 * width))
    states, taps = number(options.get("states", 16)), number(options.get("kernel", 4))
    rank = number(options.get("rank", (width + 15) // 16))

    def project(role, given, out, bias):
        return layer.linear(given, f"{prefix}{role}.", out, bias)

    both = project("in_proj", rows, 2 * inner, options.get("bias", False))
    x = convolved(layer, [row[:inner] for row in both], prefix + "conv1d.",
                  taps, options.get("conv_bias", True))
    x = [[v * sigmoid(v) for v in row] for row in x]
    chosen = project("x_proj", x, rank + 2 * states, False)
    parts = {"dt": [c[:rank] for c in chosen],
             "b": [c[rank:rank + states] for c in chosen],
             "c": [c[rank + states:] for c in chosen]}
    if "norm" in options:
        parts = {name: layer.norm(part, options["norm"], f"{prefix}{name}_norm.")
                 for name, part in parts.items()}
    steps = project("dt_proj", parts["dt"], inner, True)
    logs = layer.weight(prefix + "A_log", inner, states)
    skip = layer.weight(prefix + "D", inner)
    h, made = [[0.0] * states for _ in range(inner)], []
    for t in range(len(rows)):
        row = []
        for c in range(inner):
            dt = softplus(steps[t][c])
            for s in range(states):
                h[c][s] = (math.exp(-dt * math.exp(logs[c][s])) * h[c][s]
                           + dt * parts["b"][t][s] * x[t][c])
            y = skip[c] * x[t][c] + sum(map(mul, parts["c"][t], h[c]))
            z = both[t][inner + c]
            row.append(y * z * sigmoid(z))
        made.append(row)
    return project("out_proj", made, width, options.get("bias", False))
