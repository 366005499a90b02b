#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times products, attention and language models with random weights, beside
PyTorch where that is installed, and checks some of what they compute.

  speed.py FOLDER [--runs=N]
"""
import array
import ctypes
import json
import operator
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

import speed_models

CHUNK = 1 << 20


def to_bf16(value):
    """Rounded to the nearest, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


FLOATS = [from_bf16(bits) for bits in range(1 << 16)]


def rounded(values):
    return [from_bf16(to_bf16(value)) for value in values]


def random_bf16(count, size, seed):
    """`count` numbers with standard deviation `size`; they come again after a
    while, which no kernel knows."""
    draw = random.Random(seed)
    some = array.array("H", (to_bf16(draw.gauss(0, size))
                             for _ in range(min(count, 9973))))
    return (some * (count // len(some) + 1))[:count]


def small_bf16(size, seed):
    """So many bytes of numbers from 1/64 to 1/32 with random signs."""
    words = size // 2
    random_bits = int.from_bytes(random.Random(seed).randbytes(size), "little")
    sign_and_fraction = int.from_bytes(b"\x7f\x80" * words, "little")
    exponent = int.from_bytes(b"\x80\x3c" * words, "little")
    return (random_bits & sign_and_fraction | exponent).to_bytes(size, "little")


def write_weights(path, size, data=None):
    """The packed table with the 32 bytes that end it. Without `data` every two
    bytes are a small number of bf16, so that wider numbers are small as well."""
    with open(path, "wb") as file:
        if data is not None:
            file.write(data)
        else:
            # Each chunk is turned further: were rows of embeddings equal, their
            # tokens would be as likely as each other.
            chunk = small_bf16(CHUNK, 1)
            for number, at in enumerate(range(0, size, CHUNK)):
                turn = number * 8198 % CHUNK
                file.write((chunk[turn:] + chunk[:turn])
                           [:min(CHUNK, size - at)])
        file.write(struct.pack("<QQQ", 0, size, 0) + b"ATTUNEW1")


# ---------------------------------------------------------------------------
# Shared libraries through their C interface
# ---------------------------------------------------------------------------

class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int),
                ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8),
                ("data", ctypes.c_void_p)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32),
                ("memory_limit", ctypes.c_uint64),
                ("weights_path", ctypes.c_char_p),
                ("weights", ctypes.c_void_p),
                ("weights_bytes", ctypes.c_uint64)]


BF16 = 8


class Model:
    def __init__(self, path, weights):
        self.lib = ctypes.CDLL(path)
        self.lib.attune_open.restype = ctypes.c_void_p
        self.lib.attune_last_error.restype = ctypes.c_char_p
        options = OpenOptions(ctypes.sizeof(OpenOptions))
        options.weights_path = weights.encode()
        self.instance = self.lib.attune_open(
            ctypes.byref(ctypes.c_char.in_dll(self.lib, "attune_model")),
            ctypes.byref(options))
        if not self.instance:
            raise RuntimeError(self.error())

    def error(self):
        return self.lib.attune_last_error().decode()

    def run(self, x, rows):
        given = Tensor(b"x", BF16, 3)
        given.shape[0:3] = [1, rows, 8]
        given.data = x.buffer_info()[0]
        made = Tensor(b"y")
        if self.lib.attune_run(ctypes.c_void_p(self.instance),
                               ctypes.byref(given), 1, ctypes.byref(made), 1):
            raise RuntimeError(self.error())
        return ctypes.cast(made.data, ctypes.POINTER(ctypes.c_float))

    def close(self):
        self.lib.attune_close(ctypes.c_void_p(self.instance))


def best(function, runs):
    """Seconds, after a run that nobody counts."""
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


# ---------------------------------------------------------------------------
# What a chain computes
# ---------------------------------------------------------------------------

def panels(matrix, rows, columns):
    """[rows, columns] as the table has it: [rows / 8][columns][8]."""
    packed = array.array("H", bytes(2 * rows * columns))
    for row in range(rows):
        start = row // 8 * columns * 8 + row % 8
        packed[start:start + columns * 8:8] = \
            matrix[row * columns:(row + 1) * columns]
    return packed


class Chain:
    """The weights of a chain and the row of its result that is checked."""

    def __init__(self, name, config):
        self.name, self.config = name, config
        self.size = config.get("size") or config["heads"] * config["width"]
        n = self.size
        self.x = random_bf16(config["rows"] * 8, 1, 2)
        self.first = random_bf16(n * 8, 0.35, 3)
        self.middle = random_bf16(n * n, n ** -0.5, 4) \
            if name == "matmul" else None
        # Of attention only the first head is looked at.
        self.last = random_bf16(8 * n, n ** -0.5, 5)
        if name != "matmul":
            for row in range(8):
                self.last[row * n + config["width"]:(row + 1) * n] = \
                    array.array("H", bytes(2 * (n - config["width"])))

    def table(self):
        n = self.size
        parts = [panels(self.first, n, 8)]
        if self.middle is not None:
            parts.append(panels(self.middle, n, n))
        parts.append(panels(self.last, 8, n))
        return b"".join(part.tobytes() for part in parts)

    def row(self, bits, number, width):
        return list(map(FLOATS.__getitem__,
                        bits[number * width:(number + 1) * width]))

    def times(self, bits, vector, rows):
        width = len(vector)
        return [sum(map(operator.mul, self.row(bits, row, width), vector))
                for row in range(rows)]

    def expected(self, number):
        """Row `number` of the result of one link."""
        inputs = self.row(self.x, number, 8)
        if self.middle is not None:
            values = rounded(self.times(self.first, inputs, self.size))
            values = rounded(self.times(self.middle, values, self.size))
            return self.times(self.last, values, 8)
        width = self.config["width"]
        first = [self.row(self.first, row, 8) for row in range(width)]

        def head(number):
            values = self.row(self.x, number, 8)
            return rounded([sum(map(operator.mul, row, values))
                            for row in first])
        query = head(number)
        keys = [head(key) for key in range(self.config["rows"])]
        scores = [sum(map(operator.mul, query, key)) * width ** -0.5
                  for key in keys]
        top = max(scores)
        shares = [2.718281828459045 ** (score - top) for score in scores]
        total = sum(shares)
        values = rounded([sum(map(operator.mul, shares, column)) / total
                          for column in zip(*keys)])
        return self.times(self.last, values + [0.0] * (self.size - width), 8)

    def check(self, result):
        """The largest difference, and what is allowed: the result is of bf16
        that were rounded once or twice."""
        number = self.config["rows"] - 1
        want = self.expected(number)
        found = [result[number * 8 + i] for i in range(8)]
        scale = max(1.0, max(map(abs, want)))
        return max(map(lambda a, b: abs(a - b), want, found)), 0.02 * scale


# ---------------------------------------------------------------------------
# Rivals
# ---------------------------------------------------------------------------

def load_torch():
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def time_torch(torch, function, runs):
    def once():
        function()
        torch.cuda.synchronize()
    return best(once, runs)


def rivals_of_matmul(torch, config, runs):
    n, m = config["size"], config["rows"]
    a = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)

    def product():
        return torch.nn.functional.linear(a, b)
    yield "PyTorch (cuBLAS)", time_torch(torch, product, runs)
    yield "torch.compile", time_torch(torch, torch.compile(product), runs)


def rivals_of_attention(torch, config, runs):
    shape = (1, config["heads"], config["rows"], config["width"])
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16)
               for _ in range(3))
    from torch.nn.attention import (  # pylint: disable=import-outside-toplevel
        SDPBackend, sdpa_kernel)

    def attend():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)
    for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION"):
        backend = getattr(SDPBackend, name, None)
        if backend is None:
            continue
        try:
            with sdpa_kernel(backend):
                yield f"SDPA {name.lower()}", time_torch(torch, attend, runs)
        except RuntimeError as error:
            print(f"  {name}: {error}", file=sys.stderr)


def decoder_of_torch(torch, config):
    """The blocks of a language model of this size, one token a call, over
    weights as large; norms and rotations, which read little, are left out."""
    width = config.get("hidden_size") or config["n_embd"]
    layers = config.get("num_hidden_layers") or config["n_layer"]
    heads = config.get("num_attention_heads") or config["n_head"]
    shared = config.get("num_key_value_heads") or heads
    inner = config.get("intermediate_size") or 4 * width
    gated = config["model_type"] == "llama"
    head = width // heads

    def weight(rows, columns):
        return torch.randn(rows, columns, device="cuda",
                           dtype=torch.bfloat16) * 0.02
    blocks = [(weight((heads + 2 * shared) * head, width),
               weight(width, width), weight(inner * (1 + gated), width),
               weight(width, inner)) for _ in range(layers)]
    vocabulary = weight(config["vocab_size"], width)
    functional = torch.nn.functional

    def step(x, keys, values):
        tokens = x.shape[0]
        for number, (qkv, out, up, down) in enumerate(blocks):
            mixed = functional.linear(x, qkv)
            q, k, v = mixed.split((width, shared * head, shared * head), 1)
            q = q.view(1, tokens, heads, head).transpose(1, 2)
            if keys is None:
                k = k.view(1, tokens, shared, head).transpose(1, 2)
                v = v.view(1, tokens, shared, head).transpose(1, 2)
            else:
                k, v = keys[number], values[number]
            y = functional.scaled_dot_product_attention(
                q, k, v, is_causal=tokens > 1, enable_gqa=shared != heads)
            x = x + functional.linear(
                y.transpose(1, 2).reshape(tokens, width), out)
            z = functional.linear(x, up)
            if gated:
                a, b = z.chunk(2, 1)
                z = functional.silu(a) * b
            else:
                z = functional.gelu(z, approximate="tanh")
            x = x + functional.linear(z, down)
        return functional.linear(x[-1:], vocabulary)

    def inputs(tokens, past):
        x = weight(tokens, width)
        if not past:
            return x, None, None
        cache = [weight(past * shared, head).view(1, shared, past, head)
                 for _ in range(layers)]
        return x, cache, cache
    return step, inputs


def rivals_of_model(torch, config, plan, runs):
    step, inputs = decoder_of_torch(torch, config)
    prefill = inputs(plan["prompt"], 0)
    decode = inputs(1, plan["prompt"] + plan["tokens"] // 2)
    for name, function in (("PyTorch", step), (
            "torch.compile", torch.compile(step, mode="reduce-overhead"))):
        with torch.no_grad():
            yield (name, time_torch(torch, lambda: function(*prefill), runs),
                   time_torch(torch, lambda: function(*decode), runs))


# ---------------------------------------------------------------------------
# The table
# ---------------------------------------------------------------------------

def row(case, who, what, rate, rest=""):
    print(f"{case:<18} {who:<22} {what:>14} {rate:>18}  {rest}".rstrip(),
          flush=True)


def bandwidth(runs):
    """Bytes a second that copies within the device's memory read and write."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, a, b = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    device = ctypes.c_int()
    cuda.cuInit(0)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    size = 1 << 30
    while size > 1 << 20 and any(
            cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size))
            for place in (a, b)):
        size //= 2

    def copy():
        for _ in range(4):
            cuda.cuMemcpyDtoDAsync_v2(b, a, ctypes.c_size_t(size), None)
        cuda.cuStreamSynchronize(None)
    seconds = best(copy, runs)
    cuda.cuMemFree_v2(a)
    cuda.cuMemFree_v2(b)
    return 8 * size / seconds


def time_chain(folder, work, name, config, torch, runs):
    """False if the result is wrong."""
    chain = Chain(name, config)
    table = chain.table()
    weights = os.path.join(work, "weights")
    write_weights(weights, len(table), table)
    times, good = [], True
    for number, links in enumerate(config["links"]):
        model = Model(os.path.join(folder, f"{name}-{links}.so"), weights)
        if number == 0:
            difference, allowed = chain.check(
                model.run(chain.x, config["rows"]))
            good = difference <= allowed
            row(name, "attune", f"{difference:.1e}", f"of {allowed:.1e}",
                "ok" if good else "FAIL")
        times.append(best(lambda: model.run(chain.x, config["rows"]), runs))
        model.close()
    links = config["links"]
    flops = speed_models.flops(name, config)

    def show(who, seconds):
        # Sizes so small that the clock does not tell them apart say nothing.
        row(name, who, f"{seconds * 1e3:.3f} ms",
            f"{flops / seconds / 1e12:.1f} TFLOP/s" if seconds > 0 else
            "? TFLOP/s")
    show("attune", (times[1] - times[0]) / (links[1] - links[0]))
    if torch:
        rivals = rivals_of_matmul if name == "matmul" else rivals_of_attention
        for who, seconds in rivals(torch, config, runs):
            show(who, seconds)
    return good


def generate(program, weights, ids, tokens, *how):
    """The new ids, and of prompt and steps how many tokens in how many seconds."""
    result = subprocess.run(
        [program, "generate", "--weights", weights, "--prompt-ids=" + ids,
         "--ignore-eos", f"--max-new-tokens={tokens}", "--format=ids",
         "--stats", *how], capture_output=True, text=True, check=False)
    numbers = re.search(r"prompt: (\d+) tokens in ([\d.]+) s; then (\d+) "
                        r"tokens in ([\d.]+) s", result.stderr)
    if result.returncode or not numbers:
        raise RuntimeError(result.stderr.strip())
    return (result.stdout.strip(),
            [float(number) for number in numbers.groups()])


def time_model(folder, work, name, plan, torch, runs, memory):
    """False if its graph says something else than its kernels, or what chooses
    tokens on the GPU something else than the host."""
    program = os.path.join(folder, name)
    text = subprocess.run([program, "inspect"], capture_output=True,
                          text=True, check=True).stdout
    size = int(re.search(r"weights: ([\d,]+) bytes", text)[1].replace(",", ""))
    weights = os.path.join(work, "weights")
    write_weights(weights, size)
    ids = ",".join(str(1 + i % 90) for i in range(plan["prompt"]))
    tokens = plan["tokens"]
    texts = [generate(program, weights, ids, tokens, "--greedy")
             for _ in range(2)]
    good = texts[0][0] == texts[1][0] and (
        texts[0][0].count(",") == tokens - 1)
    prompt, first, steps, later = min((numbers for _, numbers in texts),
                                      key=lambda numbers: numbers[3])

    def show(who, prefill, decode):
        row(name, who, "prefill", f"{prompt / max(prefill, 1e-9):.0f} tokens/s")
        rate = 1 / max(decode, 1e-9)
        row(name, who, "decode", f"{rate:.1f} tokens/s",
            f"{size * rate / memory:.1%} of the memory's bandwidth")
    show("attune", first, later / max(steps, 1))
    if not good:
        row(name, "attune", "", "", "FAIL: two runs give different tokens")
    # A penalty that changes nothing has the host look at all logits.
    sample = ("--top-k=50", "--seed=1")
    chosen = [generate(program, weights, ids, tokens, *sample, *more)
              for more in ((), ("--repetition-penalty=1.0000000000000002",))]
    for what, (_, numbers) in zip(("top-k 50", "all logits"), chosen):
        rate = max(numbers[2], 1) / max(numbers[3], 1e-9)
        row(name, "attune", what, f"{rate:.1f} tokens/s")
    if chosen[0][0] != chosen[1][0]:
        row(name, "attune", "", "", "FAIL: the GPU chooses other tokens")
        good = False
    if torch:
        config = plan[name]
        for who, prefill, decode in rivals_of_model(torch, config, plan, runs):
            show(who, prefill, decode)
    return good


def main():
    folder, runs = os.path.abspath(sys.argv[1]), 5
    for argument in sys.argv[2:]:
        if argument.startswith("--runs="):
            runs = int(argument[len("--runs="):])
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    torch = load_torch()
    print("PyTorch " + torch.__version__ if torch else
          "no PyTorch with a GPU on this machine: no rivals")
    memory = bandwidth(runs)
    print(f"memory: {memory / 1e9:.0f} GB/s read and written by copies")
    good = True
    for name, config in plan.items():
        if not isinstance(config, dict):
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                if speed_models.is_language_model(config):
                    good &= time_model(folder, work, name, plan, torch, runs,
                                       memory)
                else:
                    good &= time_chain(folder, work, name, config, torch, runs)
            except (RuntimeError, OSError) as error:
                row(name, "attune", "", "", f"FAIL {error}")
                good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
