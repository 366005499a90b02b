"""Writes attention in linalg in several spellings, inputs of several lengths for
it, and what it gives, computed in f64."""
import math
import os
import random
import struct
import sys
from operator import mul

sys.path.insert(0, sys.argv[1])
import tensors

OUT = sys.argv[2]
WIDTH, VALUE_WIDTH, HEADS, KEY_HEADS = 8, 6, 4, 2
S, Y = "tensor<?x?x?xf32>", f"tensor<?x?x{VALUE_WIDTH}xf32>"

HEAD = f"""
#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
func.func @forward(INPUTS) -> (RESULTS) attributes {{attune.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x{WIDTH}xf32>
  %m = tensor.dim %q, %c1 : tensor<?x?x{WIDTH}xf32>
  %n = tensor.dim %k, %c1 : tensor<?x?x{WIDTH}xf32>
  %es = tensor.empty(%b, %m, %n) : {S}
  %rs = tensor.empty(%b, %m) : tensor<?x?xf32>
  %ys = tensor.empty(%b, %m) : {Y}
  %e0 = linalg.fill ins(%zero : f32) outs(%es : {S}) -> {S}
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : {Y}) -> {Y}
  %r0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<?x?xf32>) -> tensor<?x?xf32>
  %ri = linalg.fill ins(%inf : f32) outs(%rs : tensor<?x?xf32>) -> tensor<?x?xf32>
"""
PARALLEL = 'iterator_types = ["parallel", "parallel", "parallel"]'


def scores(name):
    return f"""
  %{name}e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<?x?x{WIDTH}xf32>, tensor<?x?x{WIDTH}xf32>) outs(%e0 : {S}) -> {S}
  %{name}f = linalg.generic {{indexing_maps = [#id, #id], {PARALLEL}}} ins(%{name}e : {S}) outs(%es : {S}) {{
  ^bb0(%x: f32, %o: f32):
    %scale = arith.constant 0.35 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %past = arith.subi %n, %m : index
    %own = arith.addi %i, %past : index
    %s = arith.mulf %x, %scale : f32
"""


def softmax(name):
    return f"""    linalg.yield %r : f32
  }} -> {S}
  %{name}a = linalg.softmax dimension(2) ins(%{name}f : {S}) outs(%es : {S}) -> {S}
  %{name} = linalg.batch_matmul ATTR ins(%{name}a, %v : {S}, {Y}) outs(%y0 : {Y}) -> {Y}
"""


TOP_LEFT = """    %low = arith.constant -1.0e9 : f32
    %c = arith.cmpi sle, %j, %i : index
    %r = arith.select %c, %s, %low : f32
"""
BOTTOM_RIGHT = """    %c = arith.cmpi sgt, %j, %own : index
    %r = arith.select %c, %inf, %s : f32
"""
WINDOW = """    %two = arith.constant 2 : index
    %age = arith.subi %own, %j : index
    %c = arith.cmpi sle, %j, %own : index
    %w = arith.cmpi sle, %age, %two : index
    %cw = arith.andi %c, %w : i1
    %cap = arith.constant 2.0 : f32
    %d = arith.divf %s, %cap : f32
    %t = math.tanh %d : f32
    %u = arith.mulf %t, %cap : f32
    %r = arith.select %cw, %u, %inf : f32
"""
FLASH = f"""    linalg.yield %s : f32
  }} -> {S}
  %flashm = linalg.reduce {{ arith.maximumf }} ins(%flashf : {S}) outs(%ri : tensor<?x?xf32>) dimensions = [2]
  %flashp = linalg.generic {{indexing_maps = [#id, #row, #id], {PARALLEL}}} ins(%flashf, %flashm : {S}, tensor<?x?xf32>) outs(%es : {S}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %log2e = arith.constant 1.44269504 : f32
    %d = arith.subf %x, %y : f32
    %t = arith.mulf %d, %log2e : f32
    %r = math.exp2 %t : f32
    linalg.yield %r : f32
  }} -> {S}
  %flashl = linalg.reduce {{ arith.addf }} ins(%flashp : {S}) outs(%r0 : tensor<?x?xf32>) dimensions = [2]
  %flashy = linalg.batch_matmul ATTR ins(%flashp, %v : {S}, {Y}) outs(%y0 : {Y}) -> {Y}
  %flash = linalg.generic {{indexing_maps = [#id, #row, #id], {PARALLEL}}} ins(%flashy, %flashl : {Y}, tensor<?x?xf32>) outs(%ys : {Y}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  }} -> {Y}
"""
H = HEADS // KEY_HEADS
SH, YH = f"tensor<?x{HEADS}x?x?xf32>", f"tensor<?x?x{HEADS}x{VALUE_WIDTH}xf32>"


def repeated(name, width):
    few = f"tensor<?x?x{KEY_HEADS}x{width}xf32>"
    wide = f"tensor<?x?x{KEY_HEADS}x{H}x{width}xf32>"
    return f"""
  %{name}s = tensor.empty(%b, %n) : {wide}
  %{name}b = linalg.broadcast ins(%{name} : {few}) outs(%{name}s : {wide}) dimensions = [3]
  %{name}r = tensor.collapse_shape %{name}b [[0], [1], [2, 3], [4]] : {wide} into tensor<?x?x{HEADS}x{width}xf32>
"""


GROUPS = repeated("kh", WIDTH) + repeated("vh", VALUE_WIDTH) + f"""
  %hes = tensor.empty(%b, %m, %n) : {SH}
  %he0 = linalg.fill ins(%zero : f32) outs(%hes : {SH}) -> {SH}
  %hys = tensor.empty(%b, %m) : {YH}
  %hy0 = linalg.fill ins(%zero : f32) outs(%hys : {YH}) -> {YH}
  %ms = tensor.empty(%m, %n) : tensor<?x?xi1>
  %mask = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}} outs(%ms : tensor<?x?xi1>) {{
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %past = arith.subi %n, %m : index
    %own = arith.addi %i, %past : index
    %c = arith.cmpi sle, %j, %own : index
    linalg.yield %c : i1
  }} -> tensor<?x?xi1>
  %he = linalg.contract indexing_maps = [affine_map<(b, h, m, n, d) -> (b, m, h, d)>, affine_map<(b, h, m, n, d) -> (b, n, h, d)>, affine_map<(b, h, m, n, d) -> (b, h, m, n)>]
      ins(%qh, %khr : tensor<?x?x{HEADS}x{WIDTH}xf32>, tensor<?x?x{HEADS}x{WIDTH}xf32>) outs(%he0 : {SH}) -> {SH}
  %hf = linalg.generic {{indexing_maps = [affine_map<(b, h, m, n) -> (m, n)>, affine_map<(b, h, m, n) -> (b, h, m, n)>, affine_map<(b, h, m, n) -> (b, h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} ins(%mask, %he : tensor<?x?xi1>, {SH}) outs(%hes : {SH}) {{
  ^bb0(%c: i1, %x: f32, %o: f32):
    %scale = arith.constant 0.35 : f32
    %s = arith.mulf %x, %scale : f32
    %r = arith.select %c, %s, %inf : f32
    linalg.yield %r : f32
  }} -> {SH}
  %ha = linalg.softmax dimension(3) ins(%hf : {SH}) outs(%hes : {SH}) -> {SH}
  %groups = linalg.contract indexing_maps = [affine_map<(b, h, m, n, d) -> (b, h, m, n)>, affine_map<(b, h, m, n, d) -> (b, n, h, d)>, affine_map<(b, h, m, n, d) -> (b, m, h, d)>]
      ATTR ins(%ha, %vhr : {SH}, {YH}) outs(%hy0 : {YH}) -> {YH}
"""
CHAINS = {
    "top_left": scores("top_left") + TOP_LEFT + softmax("top_left"),
    "bottom_right":
        scores("bottom_right") + BOTTOM_RIGHT + softmax("bottom_right"),
    "window": scores("window") + WINDOW + softmax("window"),
    "flash": scores("flash") + FLASH,
    "groups": GROUPS,
}


def described(name, kind, shape):
    """The type of an argument or a result, and what the model says of it."""
    sizes = "x".join("?" if isinstance(size, str) else str(size)
                     for size in shape)
    words = ", ".join(f'"{size}"' if isinstance(size, str) else str(size)
                      for size in shape)
    return (f'tensor<{sizes}xf32> {{attune.kind = "{kind}", '
            f'attune.name = "{name}", attune.shape = [{words}]}}')


def write_module():
    inputs = {"q": ["B", "M", WIDTH], "k": ["B", "N", WIDTH],
              "v": ["B", "N", VALUE_WIDTH], "qh": ["B", "M", HEADS, WIDTH],
              "kh": ["B", "N", KEY_HEADS, WIDTH],
              "vh": ["B", "N", KEY_HEADS, VALUE_WIDTH]}
    results = {name: ["B", "M", VALUE_WIDTH] for name in CHAINS}
    results["groups"] = ["B", "M", HEADS, VALUE_WIDTH]
    text = HEAD.replace("INPUTS", ",\n    ".join(
        f"%{name}: " + described(name, "input", shape)
        for name, shape in inputs.items()))
    text = text.replace("RESULTS", ",\n    ".join(
        described(name, "output", shape) for name, shape in results.items()))
    text += "".join(CHAINS.values())
    text = text.replace("ATTR", '{attune.fusion = "required"}')
    text += "  return " + ", ".join(f"%{name}" for name in CHAINS) + " : "
    text += ", ".join(YH if name == "groups" else Y for name in CHAINS)
    with open(os.path.join(OUT, "chains.mlir"), "w", encoding="utf-8") as file:
        file.write(text + "\n}\n")


def attention(q, k, v, seen, cap=None):
    """Rows of q, k, v in f64; `seen(m, n)`. A row that sees nothing is zeros."""
    result = []
    for m, row in enumerate(q):
        weights = {}
        for n, key in enumerate(k):
            if seen(m, n):
                e = 0.35 * math.fsum(map(mul, row, key))
                weights[n] = cap * math.tanh(e / cap) if cap else e
        top = max(weights.values(), default=0)
        weights = {n: math.exp(e - top) for n, e in weights.items()}
        total = math.fsum(weights.values()) or 1
        result.append([math.fsum(w * v[n][d] for n, w in weights.items()) / total
                       for d in range(VALUE_WIDTH)])
    return result


def write_case(queries, keys, batch=2):
    random.seed(queries * 100 + keys)

    def draw(*shape):
        if not shape:
            return struct.unpack("<f", struct.pack("<f", random.gauss(0, 1.5)))[0]
        return [draw(*shape[1:]) for _ in range(shape[0])]

    def flat(x):
        return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]

    def pack(x, code):
        shape, inner = [], x
        while isinstance(inner, list):
            shape.append(len(inner))
            inner = inner[0]
        numbers = flat(x)
        return {"f": "F32", "d": "F64"}[code], shape, struct.pack(
            f"<{len(numbers)}{code}", *numbers)

    q, k = draw(batch, queries, WIDTH), draw(batch, keys, WIDTH)
    v = draw(batch, keys, VALUE_WIDTH)
    qh = draw(batch, queries, HEADS, WIDTH)
    kh = draw(batch, keys, KEY_HEADS, WIDTH)
    vh = draw(batch, keys, KEY_HEADS, VALUE_WIDTH)
    past = keys - queries
    edges = {"top_left": lambda m, n: n <= m,
             "bottom_right": lambda m, n: n <= m + past,
             "window": lambda m, n: m + past - 2 <= n <= m + past,
             "flash": lambda m, n: True}
    want = {name: [attention(*rows, seen, 2.0 if name == "window" else None)
                   for rows in zip(q, k, v)] for name, seen in edges.items()}
    groups = []
    for b in range(batch):
        heads = [attention([row[h] for row in qh[b]],
                           [row[h // H] for row in kh[b]],
                           [row[h // H] for row in vh[b]],
                           edges["bottom_right"]) for h in range(HEADS)]
        groups.append([[heads[h][m] for h in range(HEADS)]
                       for m in range(queries)])
    want["groups"] = groups
    path = os.path.join(OUT, f"{queries}x{keys}")
    inputs = {"q": q, "k": k, "v": v, "qh": qh, "kh": kh, "vh": vh}
    tensors.save(path + ".inputs", {n: pack(x, "f") for n, x in inputs.items()})
    tensors.save(path + ".want", {n: pack(x, "d") for n, x in want.items()})


write_module()
for sizes in ((5, 7), (1, 1), (1, 70), (70, 70), (9, 4)):
    write_case(*sizes)
