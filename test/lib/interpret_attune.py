#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an imported module in f64, op by op as the dialect defines them.

  interpret_attune.py MODULE.mlir CASE_DIR

checks @forward and @decode against the recorded outputs of CASE_DIR (see
compare_safetensors.py): logits, hidden states, left-padded rows, greedy ids.
It shares no code with the compiler, so it tells an import that is wrong from a
lowering that is. It needs nothing but Python, and tiny models.
"""
import glob
import json
import math
import os
import re
import sys
from operator import mul

from compare_safetensors import load
from tensors import rounded


class Tensor:
    """Numbers in row-major order."""

    def __init__(self, shape, data):
        self.shape, self.data = tuple(shape), data
        assert len(data) == math.prod(self.shape), (self.shape, len(data))

    def rows(self):
        width = self.shape[-1]
        return [self.data[i:i + width] for i in range(0, len(self.data), width)]

    def planes(self):
        """The last two dimensions as lists of rows."""
        rows, count = self.rows(), self.shape[-2]
        return [rows[i:i + count] for i in range(0, len(rows), count)]


def from_rows(shape, rows):
    return Tensor(shape, [value for row in rows for value in row])


def dot(a, b):
    return sum(map(mul, a, b))


# --- Text to functions. An op is (results, name, text, nested ops).
class Module:
    def __init__(self, text):
        self.weights, self.functions = {}, {}
        lines = iter(text.splitlines())
        for line in lines:
            line = line.strip()
            if line.startswith("attune.weight "):
                self.weight(line)
            elif line.startswith("func.func"):
                name = re.search(r"@([\w.$]+)\(", line).group(1)
                arguments = re.findall(r"(%arg\d+): (\S+?)(?: \{(.*?)\})?[,)]", line)
                self.functions[name] = (arguments, self.block(lines))

    def weight(self, line):
        name = re.search(r"@([\w.$]+)", line).group(1)
        shape = re.search(r" : tensor<([\dx]+)x", line).group(1)
        sources = re.findall(r'#attune.source<"([^"]*)"(, transposed)?'
                             r"(?:, rows = (\d+) to (-?\d+))?>", line)
        self.weights[name] = ([int(d) for d in shape.split("x")],
                              " stacked " in line, sources)

    def block(self, lines):
        ops = []
        for line in lines:
            line = line.strip()
            if line.startswith("}"):
                return ops
            results, rest = line.split(" = ", 1) if line.startswith("%") else ("", line)
            name = rest.split(" ")[0].split("(")[0]
            nested = self.block(lines) if line.endswith("{") else None
            ops.append((re.findall(r"%[\w]+(?::\d+)?", results), name, rest, nested))
        return ops


ACTIVATIONS = {
    "identity": lambda x: x,
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "relu_squared": lambda x: max(x, 0.0) ** 2,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
}


class Interpreter:
    def __init__(self, module, checkpoint):
        self.module, self.checkpoint, self.cache = module, checkpoint, {}

    # --- Weights.
    def layer_weight(self, name, layer):
        shape, stacked, sources = self.module.weights[name]
        if (name, layer) not in self.cache:
            rows = []
            for tensor, transposed, begin, end in sources:
                if stacked:
                    tensor = re.sub(r"\{i(?:\+(\d+))?\}",
                                    lambda m: str(layer + int(m.group(1) or 0)), tensor)
                stored = self.checkpoint[tensor]
                width = stored.shape[1] if len(stored.shape) == 2 else 1
                values = list(stored.values())
                piece = [values[i:i + width] for i in range(0, len(values), width)]
                if transposed:
                    piece = [list(column) for column in zip(*piece)]
                rows += piece[int(begin or 0):None if end in ("", "-1") else int(end)]
            self.cache[name, layer] = from_rows(shape[1:] if stacked else shape, rows)
        return self.cache[name, layer]

    # --- Control.
    def call(self, name, arguments):
        declared, body = self.module.functions[name]
        return self.run(body, dict(zip((a[0] for a in declared), arguments)))

    def run(self, body, env):
        for results, name, text, nested in body:
            if name in ("return", "scf.yield"):
                return [env[v] for v in re.findall(r"%[\w#]+", text.split(" : ")[0])]
            if name == "scf.for":
                values = self.loop(text, nested, env)
            elif name in ("func.call", "call"):
                callee, operands = re.search(r"@([\w.$]+)\((.*?)\)", text).groups()
                values = self.call(callee, [env[v] for v in operands.split(", ")])
            else:
                values = getattr(self, name.replace(".", "_"))(text, env)
                values = values if isinstance(values, tuple) else (values,)
            if results and ":" in results[0]:
                results = [f"{results[0].split(':')[0]}#{i}" for i in range(len(values))]
            env.update(zip(results, values))
        return []

    def loop(self, text, nested, env):
        index, low, high, step, carried = re.search(
            r"scf.for (%\w+) = (%\w+) to (%\w+) step (%\w+) iter_args\((.*?)\)", text).groups()
        pairs = re.findall(r"(%\w+) = (%[\w#]+)", carried)
        values = [env[start] for _, start in pairs]
        for i in range(env[low], env[high], env[step]):
            inner = dict(env)
            inner[index] = i
            inner.update(zip((name for name, _ in pairs), values))
            values = self.run(nested, inner)
        return values

    # --- Upstream ops.
    def sizes(self, text, env):
        return [env[t] if t.startswith("%") else int(t) for t in text.split(", ") if t]

    def arith_constant(self, text, env):
        if "dense<" in text:
            numbers = re.search(r"dense<\[?(.*?)\]?>", text).group(1).split(", ")
            return Tensor([len(numbers)], [float(n) for n in numbers])
        return int(text.split()[1])

    def arith_addi(self, text, env):
        a, b = re.findall(r"%[\w#]+", text)
        return env[a] + env[b]

    def arith_subi(self, text, env):
        a, b = re.findall(r"%[\w#]+", text)
        return env[a] - env[b]

    def arith_addf(self, text, env):
        a, b = (env[v] for v in re.findall(r"%[\w#]+", text))
        return Tensor(a.shape, [x + y for x, y in zip(a.data, b.data)])

    def tensor_dim(self, text, env):
        a, b = re.findall(r"%[\w#]+", text)
        return env[a].shape[env[b]]

    def tensor_empty(self, text, env):
        dynamic = iter(re.findall(r"%\w+", text))
        dims = re.search(r"tensor<(.*)x\w+>", text).group(1).split("x")
        shape = [env[next(dynamic)] if d == "?" else int(d) for d in dims]
        return Tensor(shape, [math.nan] * math.prod(shape))

    def tensor_expand_shape(self, text, env):
        source, shape = re.search(r"expand_shape (%\w+).*output_shape \[(.*?)\]", text).groups()
        return Tensor(self.sizes(shape, env), env[source].data)

    def tensor_collapse_shape(self, text, env):
        source, groups = re.search(r"collapse_shape (%\w+) \[(.*?)\] :", text).groups()
        shape = env[source].shape
        return Tensor([math.prod(shape[int(d)] for d in group.split(", "))
                       for group in re.findall(r"\[(.*?)\]", groups)], env[source].data)

    def places(self, whole, offsets, sizes):
        """Where the rows of a slice begin in the data of the whole."""
        starts = [0]
        for size, offset, count in zip(whole, offsets, sizes):
            starts = [s * size + offset + i for s in starts for i in range(count)]
        return starts

    def tensor_insert_slice(self, text, env):
        source, into, offsets, sizes = re.search(
            r"(%[\w#]+) into (%[\w#]+)\[(.*?)\] \[(.*?)\]", text).groups()
        whole = env[into]
        data = list(whole.data)
        places = self.places(whole.shape, self.sizes(offsets, env), self.sizes(sizes, env))
        for place, value in zip(places, env[source].data):
            data[place] = value
        return Tensor(whole.shape, data)

    def tensor_extract_slice(self, text, env):
        source, offsets, sizes = re.search(r"(%[\w#]+)\[(.*?)\] \[(.*?)\]", text).groups()
        whole, sizes = env[source], self.sizes(sizes, env)
        places = self.places(whole.shape, self.sizes(offsets, env), sizes)
        return Tensor(sizes, [whole.data[place] for place in places])

    # --- Ops of the dialect.
    def operand(self, text, env, keyword):
        found = re.search(rf"\b{keyword} (%[\w#]+)", text)
        return env[found.group(1)] if found else None

    def number(self, text, keyword, default):
        found = re.search(rf"\b{keyword} (-?[\d.eE+-]+)", text)
        return float(found.group(1)) if found else default

    def leading(self, text, env):
        """The operands before the first keyword."""
        head = re.match(r"\S+ ((?:%[\w#]+(?:, )?)+)", text).group(1)
        return [env[v] for v in head.strip(", ").split(", ")]

    def attune_weight_get(self, text, env):
        name, index = re.search(r"@([\w.$]+)(?:\[(%\w+)\])?", text).groups()
        return self.layer_weight(name, env[index] if index else 0)

    def project(self, x, weight, bias, gated=False, activation="identity", residual=None):
        rows, function = [], ACTIVATIONS[activation]
        bias = bias.data if bias else [0.0] * weight.shape[0]
        matrix = weight.rows()
        for row in x.rows():
            out = [dot(row, w) + b for w, b in zip(matrix, bias)]
            if gated:
                half = len(out) // 2
                rows.append([function(g) * u for g, u in zip(out[:half], out[half:])])
            else:
                rows.append([function(value) for value in out])
        if residual:
            rows = [[a + b for a, b in zip(*pair)] for pair in zip(rows, residual.rows())]
        return from_rows(x.shape[:-1] + (len(rows[0]),), rows)

    def activation(self, text):
        found = re.search(r"activation <(\w+)>", text)
        return found.group(1) if found else "identity"

    def attune_linear(self, text, env):
        x, weight = self.leading(text, env)
        return self.project(x, weight, self.operand(text, env, "bias"),
                            activation=self.activation(text),
                            residual=self.operand(text, env, "residual"))

    def attune_ffn(self, text, env, gated=False, first="up_bias"):
        x, up, down = self.leading(text, env)
        hidden = self.project(x, up, self.operand(text, env, first), gated,
                              self.activation(text))
        return self.project(hidden, down, self.operand(text, env, "down_bias"),
                            residual=self.operand(text, env, "residual"))

    def attune_gated_ffn(self, text, env):
        return self.attune_ffn(text, env, True, "gate_up_bias")

    def norm(self, text, env, centred):
        (x,) = self.leading(text, env)
        width = x.shape[-1]
        gamma, beta = (self.operand(text, env, k) for k in ("gamma", "beta"))
        eps, offset = self.number(text, "eps", 0), self.number(text, "offset", 0)
        gain = [g + offset for g in gamma.data] if gamma else [1.0] * width
        shift = beta.data if beta else [0.0] * width
        rows = []
        for row in x.rows():
            mean = sum(row) / width if centred else 0.0
            scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in row) / width + eps)
            rows.append([(v - mean) * scale * g + b for v, g, b in zip(row, gain, shift)])
        return from_rows(x.shape, rows)

    def attune_layer_norm(self, text, env):
        return self.norm(text, env, True)

    def attune_rms_norm(self, text, env):
        return self.norm(text, env, False)

    def attune_embedding(self, text, env):
        ids, table = self.leading(text, env)
        offset, scale = int(self.number(text, "offset", 0)), self.number(text, "scale", 1)
        add, rows = self.operand(text, env, "add"), table.rows()
        out = [[scale * v for v in rows[i + offset]] for i in ids.data]
        if add:
            out = [[a + b for a, b in zip(*pair)] for pair in zip(out, add.rows())]
        return from_rows(ids.shape + (table.shape[1],), out)

    def attune_sinusoidal(self, text, env):
        (positions,) = self.leading(text, env)
        add, width = self.operand(text, env, "add"), int(re.search(r"x(\d+)xf32>$", text).group(1))
        layout = re.search(r"convention <(\w+)>", text).group(1)
        half = width // 2
        steps = half - 1 if layout == "tensor2tensor" else half
        rows = []
        for p in positions.data:
            angles = [p * 10000 ** (-k / steps) for k in range(half)]
            pairs = [(math.sin(a), math.cos(a)) for a in angles]
            rows.append([v for pair in pairs for v in pair] if layout == "interleaved"
                        else [s for s, _ in pairs] + [c for _, c in pairs])
        if add:
            rows = [[a + b for a, b in zip(*pair)] for pair in zip(rows, add.rows())]
        return from_rows(positions.shape + (width,), rows)

    def attune_rotary_table(self, text, env):
        (positions,) = self.leading(text, env)
        numbers = re.search(r"frequencies \[(.*?)\]", text).group(1)
        frequencies = [float(n) for n in numbers.split(", ")]
        factor, shape = self.number(text, "factor", 1), positions.shape + (len(frequencies),)
        growth = re.search(r"growth \[(.*?)\]", text)
        beta, length, shift = ((float(n) for n in growth.group(1).split(", "))
                               if growth else (0.0, 1.0, 0.0))

        def by(p):
            return factor * (1 + beta * math.log(1 + (p + shift) // length))
        return tuple(from_rows(shape, [[by(p) * f(p * w) for w in frequencies]
                                       for p in positions.data])
                     for f in (math.cos, math.sin))

    def attune_rotary(self, text, env):
        x, cos, sin = self.leading(text, env)
        batch, heads, tokens, width = x.shape
        pairs = cos.shape[-1]
        interleaved, rows = "<interleaved>" in text, x.rows()
        for n, row in enumerate(rows):
            at = n // (heads * tokens) * tokens + n % tokens
            new = list(row)
            for i in range(pairs):
                a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + pairs)
                c, s = cos.data[at * pairs + i], sin.data[at * pairs + i]
                new[a], new[b] = row[a] * c - row[b] * s, row[b] * c + row[a] * s
            rows[n] = new
        return from_rows(x.shape, rows)

    def attune_split_heads(self, text, env):
        (x,) = self.leading(text, env)
        offset = int(self.number(text, "at", 0))
        heads, dim = map(int, re.search(r"-> tensor<\?x(\d+)x\?x(\d+)x", text).groups())
        batch, tokens, _ = x.shape
        rows = [row[offset + h * dim:offset + (h + 1) * dim]
                for plane in x.planes() for h in range(heads) for row in plane]
        return from_rows((batch, heads, tokens, dim), rows)

    def attune_merge_heads(self, text, env):
        (x,) = self.leading(text, env)
        batch, heads, tokens, dim = x.shape
        planes = x.planes()
        rows = [planes[b * heads + h][t]
                for b in range(batch) for t in range(tokens) for h in range(heads)]
        return from_rows((batch, tokens, heads * dim), rows)

    def grouped(self, query, key):
        """(plane of the query, plane of its key head) for each head."""
        batch, heads, groups = query.shape[0], query.shape[1], key.shape[1]
        queries, keys = query.planes(), key.planes()
        return [(queries[b * heads + h], keys[b * groups + h * groups // heads])
                for b in range(batch) for h in range(heads)]

    def attune_similarity(self, text, env):
        query, key = self.leading(text, env)
        scale = self.number(text, "scale", 1)
        rows = [[scale * dot(q, k) for k in keys]
                for queries, keys in self.grouped(query, key) for q in queries]
        return from_rows(query.shape[:3] + (key.shape[2],), rows)

    def attune_mask_scores(self, text, env):
        (scores,) = self.leading(text, env)
        mask, slopes = (self.operand(text, env, k) for k in ("mask", "slopes"))
        assert not re.search(r"\bbias %", text), "not needed so far"
        window, cap = self.number(text, "window", 0), self.number(text, "softcap", 0)
        causal = re.search(r"causal <(\w+)>", text)
        sides = causal and causal.group(1) == "symmetric"
        batch, heads, queries, keys = scores.shape
        shift = 0 if causal and causal.group(1) == "top_left" else keys - queries
        rows = scores.rows()
        for at, row in enumerate(rows):
            m, h, b = at % queries, at // queries % heads, at // queries // heads
            here = m + shift
            for n, score in enumerate(row):
                if cap:
                    score = cap * math.tanh(score / cap)
                if slopes:
                    score += slopes.data[h] * (n - (m + keys - queries))
                hidden = mask and not mask.data[b * keys + n]
                end = here + window - 1 if sides else here
                if hidden or causal and n > end or window and n <= here - window:
                    score = -math.inf
                row[n] = score
        return from_rows(scores.shape, rows)

    def attune_softmax(self, text, env):
        (scores,) = self.leading(text, env)
        rows = []
        for row in scores.rows():
            top = max(row)
            weights = [0.0 if v == -math.inf else math.exp(v - top) for v in row]
            total = sum(weights) or 1.0
            rows.append([w / total for w in weights])
        return from_rows(scores.shape, rows)

    def attune_weighted_sum(self, text, env):
        probs, value = self.leading(text, env)
        rows = []
        for weights, values in self.grouped(probs, value):
            columns = list(zip(*values))
            rows += [[dot(row, column) for column in columns] for row in weights]
        return from_rows(probs.shape[:3] + (value.shape[3],), rows)

    def attune_cache_append(self, text, env):
        new, into, layer, past = (env[v] for v in re.findall(r"%[\w#]+", text))
        data, (_, batch, heads, capacity, width) = list(into.data), into.shape
        kind = text.rpartition("x")[2].rstrip(">")  # stored in f32: not rounded
        for n, row in enumerate(new.rows()):
            plane, t = divmod(n, new.shape[2])
            at = ((layer * batch * heads + plane) * capacity + past + t) * width
            data[at:at + width] = row if kind == "f32" else [
                rounded(value, kind) for value in row]
        return Tensor(into.shape, data)

    def attune_cache_read(self, text, env):
        cache, layer, length = (env[v] for v in re.findall(r"%[\w#]+", text))
        _, batch, heads, _, width = cache.shape
        planes = cache.planes()[layer * batch * heads:(layer + 1) * batch * heads]
        return from_rows((batch, heads, length, width),
                         [row for plane in planes for row in plane[:length]])


# --- Entries.
def attribute(text, name):
    found = re.search(rf'attune.{name} = ("[^"]*"|\[[^\]]*\])', text)
    return found and found.group(1).strip('"')


def bind(arguments, given):
    """Values for an entry's arguments, in order, defaults filled in; None if
    one without a default is missing."""
    shapes = {attribute(text, "shape"): given[attribute(text, "name")].shape
              for _, kind, text in arguments
              if attribute(text, "name") in given and kind != "index"}
    values = []
    for _, _, text in arguments:
        value, default = given.get(attribute(text, "name")), attribute(text, "default")
        if value is None:
            shape = shapes.get(attribute(text, "shape"))
            if not default or not shape:
                return None
            start = given.get("past", 0)
            row = [1] * shape[1] if default == "ones" else range(start, start + shape[1])
            value = Tensor(shape, list(row) * shape[0])
        values.append(value)
    return values


def output_names(module_text, entry):
    line = next(l for l in module_text.splitlines() if f"@{entry}(" in l and "func.func" in l)
    return re.findall(r'attune.name = "([^"]*)"', line.split(" -> ", 1)[1])


def generate(interpreter, names, prompt, count):
    arguments = interpreter.module.functions["decode"][0]
    given = {}
    for _, kind, attributes in arguments:
        if '"cache"' in attributes:
            layers, heads, width = re.search(r"tensor<(\d+)x\?x(\d+)x\?x(\d+)x", kind).groups()
            shape = (int(layers), 1, int(heads), len(prompt) + count, int(width))
            given[attribute(attributes, "name")] = Tensor(shape, [math.nan] * math.prod(shape))
    ids, result, past = list(prompt), [], 0
    while len(result) < count:
        given["input_ids"] = Tensor((1, len(ids)), ids)
        for _, kind, attributes in arguments: # of all caches, and of rings
            if '"past"' in attributes:
                given[attribute(attributes, "name") or "past"] = past
        given.pop("position_ids", None)
        values = interpreter.call("decode", bind(arguments, given))
        logits = values[0].data
        given.update(zip(names[1:], values[1:]))
        past += len(ids)
        ids = [max(range(len(logits)), key=logits.__getitem__)]
        result += ids
    return result


def main():
    text, case = open(sys.argv[1]).read(), sys.argv[2]
    checkpoint = {}
    for path in glob.glob(os.path.join(case, "*.safetensors")):
        if not path.endswith("fixtures.safetensors"):
            checkpoint.update(load(path))
    fixtures = load(os.path.join(case, "fixtures.safetensors"))
    with open(os.path.join(case, "case.json")) as file:
        tolerance = json.load(file)["tolerance"]["logits"]["atol"]
    interpreter = Interpreter(Module(text), checkpoint)
    names, failures = output_names(text, "forward"), 0

    def tensor(name):
        return Tensor(fixtures[name].shape, list(fixtures[name].values()))

    def compare(name, got, keep=None):
        nonlocal failures
        pairs = list(zip(got, tensor(name).data))
        if keep:
            width = len(pairs) // len(keep)
            pairs = [p for i, p in enumerate(pairs) if keep[i // width]]
        error = max(abs(a - b) for a, b in pairs)
        bad = not error <= tolerance
        failures += bad
        print(f"{name}: {'FAILED' if bad else 'ok'}, error {error:.1e} of {tolerance:.1e}")

    for prefix in ("", "single.", "leftpad."):
        arguments = interpreter.module.functions["forward"][0]
        given = {name: tensor(prefix + name)
                 for name in (attribute(text, "name") for _, _, text in arguments)
                 if prefix + name in fixtures}
        bound = bind(arguments, given)
        if not bound:
            continue
        mask = given["attention_mask"].data if "attention_mask" in given else None
        results = dict(zip(names, interpreter.call("forward", bound)))
        compare(prefix + "logits", results["logits"].data, mask)
        states = results.get("hidden_states")
        for i in range(states.shape[0] if states and not prefix else 0):
            size = len(states.data) // states.shape[0]
            compare(f"hidden_states.{i}", states.data[i * size:(i + 1) * size])
    if "greedy.prompt_ids" in fixtures:
        expected = tensor("greedy.generated_ids").data
        got = generate(interpreter, output_names(text, "decode"),
                       tensor("greedy.prompt_ids").data, len(expected))
        failures += got != expected
        print(f"greedy ids: {'ok' if got == expected else 'FAILED'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
