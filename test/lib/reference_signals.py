# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images, chunks and conditions for reference.py, as lib/Spec/Guide has
them: one sequence, plain numbers."""
import math
import sys
from operator import mul

KINDS = ("chunk", "timestep", "modulate", "conv", "add", "pool", "class_tokens",
         "slice", "concat", "unpatch")


def dot(a, b):
    return sum(map(mul, a, b))


def add(a, b):
    return [[x + y for x, y in zip(p, q)] for p, q in zip(a, b)]


def modulate(rows, shift, scale):
    return [[x * (1 + s) + t for x, s, t in zip(row, scale, shift)] for row in rows]


class Chunks(list):
    """Sequences that one was cut into; `tokens` says how long it was."""

    def __init__(self, sequences, tokens):
        super().__init__(sequences)
        self.tokens = tokens


def cut(rows, size):
    half, blank = size // 2, [0.0] * len(rows[0])
    count = 2 * ((len(rows) + half) // size + 1)
    padded = [blank] * half + rows + [blank] * (count * size)
    return Chunks([padded[i * half:i * half + size] for i in range(count)],
                  len(rows))


def overlap_add(chunks):
    half, width = len(chunks[0]) // 2, len(chunks[0][0])
    total = [[0.0] * width for _ in range((len(chunks) + 1) * half)]
    for i, chunk in enumerate(chunks):
        for j, row in enumerate(chunk):
            total[i * half + j] = [x + y for x, y in zip(total[i * half + j], row)]
    return total[half:half + chunks.tokens]


def convolve(image, table, bias, kernel, stride, padding, groups):
    """Places of image[channel][y][x], row by row; `table` in PyTorch's order:
    [out, channels of a group * kernel]."""
    height, width = len(image[0]), len(image[0][0])
    each, places = len(image) // groups, []
    for y in range(-padding[0], height + padding[0] - kernel[0] + 1, stride[0]):
        for x in range(-padding[1], width + padding[1] - kernel[1] + 1, stride[1]):
            place = []
            for out, (row, shift) in enumerate(zip(table, bias)):
                first = out * groups // len(table) * each
                seen = [channel[y + i][x + j]
                        if 0 <= y + i < height and 0 <= x + j < width else 0.0
                        for channel in image[first:first + each]
                        for i in range(kernel[0]) for j in range(kernel[1])]
                place.append(dot(seen, row) + shift)
            places.append(place)
    return places


def convolution(model, rows, options, one, start, batch):
    dims = options.get("dims", 2)

    def sizes(key, fallback):
        given = options.get(key, fallback)
        given = given if isinstance(given, list) else [given] * dims
        return [fallback] * (2 - dims) + [model.number(x) for x in given]

    if start in model.inputs and rows == model.rows_of(start, batch):
        shape, data = model.inputs[start]
        shape = shape[1:2] + [1] * (2 - dims) + shape[2:]
        numbers = iter(data[batch * math.prod(shape):])
        image = [[[next(numbers) for _ in range(shape[2])]
                  for _ in range(shape[1])] for _ in range(shape[0])]
    else:  # places row by row, or frames
        height, width = model.grid if dims == 2 else (1, len(rows))
        image = [[list(channel[y * width:(y + 1) * width]) for y in range(height)]
                 for channel in zip(*rows)]
    kernel, stride, padding = sizes("kernel", 1), sizes("stride", 1), sizes("padding", 0)
    out, groups = model.number(options["out"]), model.number(options.get("groups", 1))
    table = one.weight("weight", out, len(image) // groups * kernel[0] * kernel[1])
    bias = one.weight("bias", out) if options.get("bias", True) else [0.0] * out
    model.before = 0
    model.grid = [(size + 2 * p - k) // s + 1
                  for size, k, s, p in zip((len(image[0]), len(image[0][0])), kernel,
                                           stride, padding)]
    act = model.ACTIVATIONS[options.get("activation", "identity")]
    return [[act(x) for x in row]
            for row in convolve(image, table, bias, kernel, stride, padding, groups)]


def timestep(model, number, options):
    width, shift = model.number(options["width"]), options.get("shift", 0)
    angles = [number * options.get("scale", 1) * options.get("period", 10000.0)
              ** (-i / (width // 2 - shift)) for i in range(width // 2)]
    sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
    return [cosines + sines if options.get("cosines_first", True)
            else sines + cosines]


def sinusoids(t, channels, layout):
    half = channels // 2
    last = half - 1 if layout in ("tensor2tensor", "cosines_first") else half
    angles = [t * 10000.0 ** (-k / last) for k in range(half)]
    sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
    if layout == "interleaved":
        return [x for pair in zip(sines, cosines) for x in pair]
    return cosines + sines if layout == "cosines_first" else sines + cosines


def kernel(name, d):
    """The share of a place that is d away."""
    d = abs(d)
    if name == "bilinear":
        return max(0.0, 1 - d)
    a = -0.75
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def interpolated(table, before, grid, size, name):
    """The rows of a grid for an image of another size: each place is the sum of
    all those that its kernel reaches, the border's counting for what is outside."""
    def shares(at, count, extent):
        where = (at + 0.5) * count / extent - 0.5
        if name == "bilinear":
            where = max(where, 0.0)
        result = {}
        for place in range(math.floor(where) - 2, math.floor(where) + 4):
            inside = min(max(place, 0), count - 1)
            result[inside] = result.get(inside, 0.0) + kernel(name, where - place)
        return result.items()

    places = []
    for y in range(size[0]):
        for x in range(size[1]):
            row = [0.0] * len(table[0])
            for i, p in shares(y, grid[0], size[0]):
                for j, q in shares(x, grid[1], size[1]):
                    row = [r + p * q * t for r, t in
                           zip(row, table[before + i * grid[1] + j])]
            places.append(row)
    return table[:before] + places


def centred(table, before, grid, size):
    top, left = ((a - b) // 2 for a, b in zip(grid, size))
    return table[:before] + [table[before + (top + y) * grid[1] + left + x]
                             for y in range(size[0]) for x in range(size[1])]


def positions(model, rows, options, layer):
    offset, layout = options.get("offset", 0), options.get("layout", "interleaved")
    channels = model.number(options.get("concat", len(rows[0])))
    learned = options.get("kind", "learned") == "learned"
    grid = [model.number(x) for x in options.get("grid", [])]
    if options.get("dims") == 2:
        half, parts = channels // 2, []
        tables = [layer.weight(f"{name}.weight", count, half)
                  for name, count in zip(("rows", "columns"), grid)]
        for t in range(len(rows)):
            place = divmod(t, model.grid[1])
            pair = [tables[i][place[i]] if learned
                    else sinusoids(place[i] + offset, half, layout) for i in (0, 1)]
            parts.append(pair[1] + pair[0] if options.get("columns_first")
                         else pair[0] + pair[1])
    elif learned:
        table = layer.weight("weight", model.number(options["length"]), channels)
        if options.get("interpolate", "none") != "none":
            table = centred(table, model.before, grid, model.grid) if options[
                "interpolate"] == "centre" else interpolated(table, model.before, grid, model.grid,
                                 options["interpolate"])
        parts = table[offset:offset + len(rows)]
    else:
        parts = [sinusoids(t + offset, channels, layout) for t in range(len(rows))]
    if "concat" in options:
        return [row + part for row, part in zip(rows, parts)]
    return add(rows, parts)


def unpatch(model, rows, side):
    """Rows of all channels of an image."""
    height, width = model.grid
    channels = len(rows[0]) // side**2
    return [[rows[y // side * width + x // side][
        (y % side * side + x % side) * channels + c] for x in range(width * side)]
        for c in range(channels) for y in range(height * side)]


def pool(model, rows, options, start, batch):
    kind = options.get("kind", "first")
    if kind in ("id", "last_id"):
        ids = model.rows_of(options.get("input") or start, batch)
        found = [t for t, x in enumerate(ids) if x == model.number(options["id"])] or [0]
        return [rows[found[0 if kind == "id" else -1]]]
    if kind == "mean":
        return [[sum(c) / len(rows) for c in zip(*rows)]]
    if kind not in ("first", "last"):
        sys.exit(f"reference.py does not know the pool {kind}")
    return [rows[0 if kind == "first" else -1]]


def knows(rows, layer):
    return isinstance(rows, Chunks) or any(kind in layer for kind in KINDS)


def run(model, one, rows, layer, start, batch, each):
    """A layer that knows() of; `each` runs any layer on one sequence."""
    if isinstance(rows, Chunks):
        if "swap" in layer:
            return Chunks([list(tokens) for tokens in zip(*rows)], rows.tokens)
        if "overlap_add" in layer:
            return overlap_add(rows)
        if "add" in layer:
            other = model.results[layer["add"]["source"]]
            return Chunks([add(p, q) for p, q in zip(rows, other)], rows.tokens)
        return Chunks([each(sequence) for sequence in rows], rows.tokens)
    if "chunk" in layer:
        return cut(rows, model.number(layer["chunk"]["size"]))
    if "timestep" in layer:
        return timestep(model, model.rows_of(start, batch)[0], layer["timestep"])
    if "modulate" in layer:
        width = len(rows[0])
        made = one.modulation(layer["modulate"], "", 2 * width)
        return modulate(rows, made[:width], made[width:])
    if "conv" in layer:
        return convolution(model, rows, layer["conv"], one, start, batch)
    if "add" in layer:
        total = add(rows, model.results[layer["add"]["source"]])
        return [[layer["add"].get("scale", 1) * x for x in row] for row in total]
    if "pool" in layer:
        return pool(model, rows, layer["pool"], start, batch)
    if "unpatch" in layer:
        return unpatch(model, rows, model.number(layer["unpatch"].get("size", 2)))
    if "slice" in layer and "part" in layer["slice"]:
        part = layer["slice"]["part"]
        first = sum(model.parts[:part])
        return rows[first:first + model.parts[part]]
    if "slice" in layer:
        first = model.number(layer["slice"].get("first", 0))
        count = model.number(layer["slice"].get("count", len(rows)))
        return rows[first:first + count]
    if "concat" in layer:
        other = model.results[layer["concat"]["source"]]
        model.parts = [len(rows), len(other)]
        return rows + other
    count = model.number(layer["class_tokens"].get("count", 1))
    model.before += count
    return one.weight("weight", count, len(rows[0])) + rows
