#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times products, attention and language models with random weights, beside
PyTorch where that is installed, and checks some of what they compute.

  speed.py FOLDER [--runs=N] [--only=TEXT]...
"""
import argparse
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
    """So many bytes of numbers from 1/64 to 3/128 with random signs; as floats of
    8 bits, too, they are all finite."""
    words = size // 2
    random_bits = int.from_bytes(random.Random(seed).randbytes(size), "little")
    sign_and_fraction = int.from_bytes(b"\x3f\x80" * words, "little")
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
            if speed_models.is_product(config) else None
        # Of attention only the first head is looked at.
        self.last = random_bf16(8 * n, n ** -0.5, 5)
        if self.middle is None:
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


def rivals_of_attention(torch, runs, kind, heads, kv_heads, queries, keys,
                        width, causal):
    if causal and queries != keys:
        return  # its mask begins at the first key
    type_ = {"f32": torch.float32, "f16": torch.float16,
             "bf16": torch.bfloat16}[kind]

    def made(count, tokens):
        return torch.randn(1, count, tokens, width, device="cuda", dtype=type_)
    q, k, v = (made(heads, queries), made(kv_heads, keys),
               made(kv_heads, keys))
    from torch.nn.attention import (  # pylint: disable=import-outside-toplevel
        SDPBackend, sdpa_kernel)

    def attend():
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
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
        batch, tokens = x.shape[:2]
        for number, (qkv, out, up, down) in enumerate(blocks):
            mixed = functional.linear(x, qkv)
            q, k, v = mixed.split((width, shared * head, shared * head), 2)
            q = q.view(batch, tokens, heads, head).transpose(1, 2)
            if keys is None:
                k = k.view(batch, tokens, shared, head).transpose(1, 2)
                v = v.view(batch, tokens, shared, head).transpose(1, 2)
            else:
                k, v = keys[number], values[number]
            y = functional.scaled_dot_product_attention(
                q, k, v, is_causal=tokens > 1, enable_gqa=shared != heads)
            x = x + functional.linear(
                y.transpose(1, 2).reshape(batch, tokens, width), out)
            z = functional.linear(x, up)
            if gated:
                a, b = z.chunk(2, 2)
                z = functional.silu(a) * b
            else:
                z = functional.gelu(z, approximate="tanh")
            x = x + functional.linear(z, down)
        return functional.linear(x[:, -1], vocabulary)

    def inputs(batch, tokens, past):
        x = weight(batch * tokens, width).view(batch, tokens, width)
        if not past:
            return x, None, None
        # One for all layers would stay in the chip's cache.
        cache = [weight(batch * shared * past, head).view(
            batch, shared, past, head) for _ in range(2 * layers)]
        return x, cache[:layers], cache[layers:]
    return step, inputs


def rivals_of_model(torch, config, plan, runs):
    """(who, seconds of a prompt, seconds of a step by the number of sequences);
    beyond one of these, compiled alone."""
    step, inputs = decoder_of_torch(torch, config)
    past = plan["prompt"] + plan["tokens"] // 2
    for name, function, batches in (
            ("PyTorch", step, plan["batches"][:1]),
            ("torch.compile", torch.compile(
                step, mode="reduce-overhead", dynamic=False),
             plan["batches"])):
        def seconds(*sizes, function=function):
            given = inputs(*sizes)
            # Compiled code runs a few times before it becomes a graph.
            function(*given), function(*given)
            return time_torch(torch, lambda: function(*given), runs)
        with torch.no_grad():
            yield (name, seconds(1, plan["prompt"], 0),
                   {batch: seconds(batch, 1, past) for batch in batches})


# ---------------------------------------------------------------------------
# The table
# ---------------------------------------------------------------------------

def row(case, who, what, rate, rest=""):
    print(f"{case:<18} {who:<22} {what:>14} {rate:>18}  {rest}".rstrip(),
          flush=True)


# Bytes a second of memory by data sheet, of GPUs whose names have such a part.
DATA_SHEETS = {"H200": 4.8e12, "H100 80GB HBM3": 3.35e12, "H100 PCIe": 2e12,
               "A100-SXM4-80GB": 2.039e12, "A100-SXM4-40GB": 1.555e12}


class Memory:
    """What the device's memory does: by copies within it, which read and write,
    and by its data sheet, if that is known."""

    def __init__(self, runs):
        name, self.sheet = ctypes.create_string_buffer(256), None
        self.copies = bandwidth(runs, name)
        for part, rate in DATA_SHEETS.items():
            if part in name.value.decode():
                self.sheet = rate
        print(f"memory: {self.copies / 1e9:.0f} GB/s read and written by "
              "copies" + (f", {self.sheet / 1e9:.0f} by the data sheet"
                          if self.sheet else ""))

    def share(self, rate):
        return f"{rate / self.copies:.1%} of the memory's bandwidth" + (
            f", {rate / self.sheet:.1%} of the data sheet's"
            if self.sheet else "")


def bandwidth(runs, name):
    """Bytes a second of copies, and the device's name."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, a, b = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    device = ctypes.c_int()
    cuda.cuInit(0)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, len(name) - 1, device)
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
    flops = speed_models.flops(config)

    def show(who, seconds):
        # Sizes so small that the clock does not tell them apart say nothing.
        row(name, who, f"{seconds * 1e3:.3f} ms",
            f"{flops / seconds / 1e12:.1f} TFLOP/s" if seconds > 0 else
            "? TFLOP/s")
    show("attune", (times[1] - times[0]) / (links[1] - links[0]))
    if torch:
        rivals = rivals_of_matmul(torch, config, runs) \
            if speed_models.is_product(config) else rivals_of_attention(
                torch, runs, "bf16", config["heads"], config["heads"],
                config["rows"], config["rows"], config["width"], False)
        for who, seconds in rivals:
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


def time_many(program, weights, batch, plan, runs):
    """Of so many sequences, seconds of a prompt after others and of a step."""
    result = subprocess.run(
        [program, "bench", "--weights", weights, f"--runs={runs}",
         f"--dim=batch={batch},seq={plan['prompt']}",
         f"--tokens={plan['tokens'] // 2}", "--format=json"],
        capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr.strip())
    return [run["seconds"] for run in json.loads(result.stdout)["runs"]]


def time_model(folder, work, name, plan, runs, memory):
    """Its prompts and steps; whether two texts are equal, of which the second
    may differ only if something is not waited for; the bytes of its weights."""
    program = os.path.join(folder, name)
    text = subprocess.run([program, "inspect"], capture_output=True,
                          text=True, check=True).stdout
    size = int(re.search(r"weights: ([\d,]+) bytes", text)[1].replace(",", ""))
    weights = os.path.join(work, "weights")
    write_weights(weights, size)
    ids = prompt_of(plan)
    texts = [generate(program, weights, ids, plan["tokens"], "--greedy")
             for _ in range(2)]
    good = texts[0][0] == texts[1][0] and (
        texts[0][0].count(",") == plan["tokens"] - 1)
    _, first, steps, later = min((numbers for _, numbers in texts),
                                 key=lambda numbers: numbers[3])
    show_prompt(name, "attune", "prefill first", plan, first)
    show_steps(name, "attune", "decode", 1, later / max(steps, 1), size, memory)
    if not good:
        row(name, "attune", "", "", "FAIL: two runs give different tokens")
    for batch in plan["batches"]:
        prompt, step = time_many(program, weights, batch, plan, runs)
        if batch == 1:
            show_prompt(name, "attune", "prefill warm", plan, prompt)
        show_steps(name, "attune", f"decode x{batch}", batch, step, size,
                   memory)
    return good, size


def prompt_of(plan):
    return ",".join(str(1 + i % 90) for i in range(plan["prompt"]))


def time_choices(folder, work, name, plan):
    """False if what chooses tokens on the GPU takes others than the host."""
    program = os.path.join(folder, name)
    weights = os.path.join(work, "weights")
    # A penalty that changes nothing has the host look at all logits.
    sample = ("--top-k=50", "--seed=1")
    chosen = [generate(program, weights, prompt_of(plan), plan["tokens"],
                       *sample, *more)
              for more in ((), ("--repetition-penalty=1.0000000000000002",))]
    for what, (_, numbers) in zip(("top-k 50", "all logits"), chosen):
        rate = max(numbers[2], 1) / max(numbers[3], 1e-9)
        row(name, "attune", what, f"{rate:.1f} tokens/s")
    if chosen[0][0] == chosen[1][0]:
        return True
    row(name, "attune", "", "", "FAIL: the GPU chooses other tokens")
    return False


def show_prompt(name, who, what, plan, seconds):
    row(name, who, what, f"{plan['prompt'] / max(seconds, 1e-9):.0f} tokens/s",
        f"{seconds * 1e3:.3f} ms")


def show_steps(name, who, what, batch, seconds, size, memory):
    rate = 1 / max(seconds, 1e-9)
    row(name, who, what, f"{batch * rate:.1f} tokens/s",
        "weights at " + memory.share(size * rate))


def time_forms(folder, work, name, plan, torch, runs, memory):
    """A language model with weights of each type. False if one is wrong."""
    good, size = True, 0
    for program, _ in speed_models.programs(name, plan):
        right, bytes_ = time_model(folder, work, program, plan, runs, memory)
        good &= right
        if program == name:
            size = bytes_
            good &= time_choices(folder, work, name, plan)
    if torch:
        for who, prompt, steps in rivals_of_model(torch, plan[name], plan,
                                                  runs):
            show_prompt(name, who, "prefill warm", plan, prompt)
            for batch, seconds in steps.items():
                show_steps(name, who, f"decode x{batch}", batch, seconds, size,
                           memory)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    folder, runs = options.folder, options.runs
    with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    torch = load_torch()
    print("PyTorch " + torch.__version__ if torch else
          "no PyTorch with a GPU on this machine: no rivals")
    memory = Memory(runs)
    good = True
    for name, config in plan.items():
        if not isinstance(config, dict) or options.only and not any(
                text in name for text in options.only):
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                if speed_models.is_language_model(config):
                    good &= time_forms(folder, work, name, plan, torch, runs,
                                       memory)
                else:
                    good &= time_chain(folder, work, name, config, torch, runs)
            except (RuntimeError, OSError) as error:
                row(name, "attune", "", "", f"FAIL {error}")
                good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
