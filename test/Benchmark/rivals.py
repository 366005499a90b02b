# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a system has installed that multiplies matrices or attends.

Each rival is a function that prepares its operands, of type "f32" or "bf16",
once and returns what one run calls, or None if it does not have the type. A
rival that is not installed is None; none is needed. Libraries are called through
their C interfaces: an interpreter's overhead is a microsecond beside
milliseconds.
"""
import array
import contextlib
import ctypes
import functools
import importlib
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile

import onnx_stack

HERE = os.path.dirname(os.path.abspath(__file__))


def in_pages(values):
    """The same in memory like that of Attune's tensors: large pages."""
    size = len(values) * values.itemsize
    memory = mmap.mmap(-1, size)
    with contextlib.suppress(OSError):  # where the system has them
        memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(values.tobytes())
    return (ctypes.c_char * size).from_buffer(memory)


def operands(*sizes, dtype="f32"):
    """Arrays in [-0.5, 0.5): zeros could be cheaper than numbers."""
    draw = random.Random(1)
    some = array.array("f", (draw.random() - 0.5 for _ in range(4099)))
    if dtype == "bf16":  # the upper halves
        some = array.array("H", some.tobytes())[1::2]
    return [in_pages((some * (size // len(some) + 1))[:size]) for size in sizes]


def library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def openblas(threads):
    lib = library("libopenblas.so.0", "libopenblas.so")
    if not lib:
        return None
    lib.openblas_set_num_threads(threads)

    def prepare(dtype, m, n, k):
        if dtype != "f32":
            return None
        a, w, y = operands(m * k, n * k, m * n)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        rows, plain, transposed = 101, 111, 112
        return lambda: lib.cblas_sgemm(
            rows, plain, transposed, m, n, k, one, a, k, w, k, zero, y, n)

    return prepare


def built(compiler, name, *arguments):
    """A shared library that a compiler makes for this machine, or None."""
    if not shutil.which(compiler):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"lib{name}.so")
        done = subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", path,
                               *arguments], capture_output=True, check=False)
        return None if done.returncode else ctypes.CDLL(path)


@functools.lru_cache
def onednn_library(threads):
    # Its threads are OpenMP's, which reads the variable when it is loaded.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    lib = built("c++", "onednn", os.path.join(HERE, "onednn.cpp"), "-ldnnl")
    if not lib:
        return None

    def prepare(name, sizes, dtype, arrays):
        function = getattr(lib, name)
        function.restype = ctypes.c_void_p
        prepared = function(*map(ctypes.c_int64, sizes),
                            ctypes.c_bool(dtype == "bf16"), *arrays)
        if not prepared:
            return None

        def once(owners=arrays):  # which live as long as it does
            lib.onednn_run(ctypes.c_void_p(prepared))

        once.stop = lambda: lib.onednn_free(ctypes.c_void_p(prepared))
        return once

    return prepare


def onednn(threads):
    prepare_steps = onednn_library(threads)

    def prepare(dtype, m, n, k):
        x, w = operands(m * k, n * k, dtype=dtype)
        return prepare_steps("onednn_prepare_product", (m, n, k), dtype,
                             [x, w, *operands(m * n)])

    return prepare_steps and prepare


def onednn_attention(threads):
    prepare_steps = onednn_library(threads)

    def prepare(dtype, heads, width, tokens, causal):
        # It would compute what is hidden, too.
        if causal or too_many_scores(heads, tokens):
            return None
        size = heads * tokens * width
        return prepare_steps("onednn_prepare_attention", (heads, tokens, width),
                             dtype, operands(*[size] * 4, dtype=dtype))

    return prepare_steps and prepare


def too_many_scores(heads, tokens):
    """Where a matrix of them is in memory, and perhaps copies of it."""
    return heads * tokens * tokens * 4 > 4 << 30


def libxsmm(threads):
    """Debian has it as archives only: the compiler makes a library of them."""
    archives = [f"/usr/lib/lib{name}.a"
                for name in ("xsmmext", "xsmm", "xsmmnoblas")]
    if not all(map(os.path.exists, archives)):
        return None
    os.environ["OMP_NUM_THREADS"] = str(threads)
    lib = built("cc", "xsmm", "-Wl,--whole-archive", *archives,
                "-Wl,--no-whole-archive", "-fopenmp", "-lm", "-ldl",
                "-lpthread")
    if not lib:
        return None

    def prepare(dtype, m, n, k):
        if dtype != "f32":
            return None
        # By columns, so the operands change places; the weight is [K, N], since
        # the library has no kernels for the other one.
        a, w, y = operands(m * k, n * k, m * n)
        plain, one, zero = ctypes.c_char(b"N"), ctypes.c_float(1), ctypes.c_float(0)
        rows, columns, depth = (ctypes.c_int(size) for size in (m, n, k))
        by = ctypes.byref
        return lambda: lib.libxsmm_sgemm_omp_(
            by(plain), by(plain), by(columns), by(rows), by(depth), by(one), w,
            by(columns), a, by(depth), by(zero), y, by(columns))

    return prepare


def torch(threads):
    try:
        module = importlib.import_module("torch")
    except ImportError:
        return None
    module.set_num_threads(threads)
    module.set_grad_enabled(False)
    return module


def torch_linear(threads):
    module = torch(threads)
    if not module:
        return None

    def prepare(dtype, m, n, k):
        x, w = (torch_random(module, dtype, rows, k) for rows in (m, n))
        return lambda: module.nn.functional.linear(x, w)

    return prepare


def torch_random(module, dtype, *shape):
    return (module.rand(*shape) - 0.5).to(
        module.bfloat16 if dtype == "bf16" else module.float32)


def torch_attend(module, q, k, v, causal):
    """Its fused op; in plain steps before PyTorch 2, which did not have it."""
    fused = getattr(module.nn.functional, "scaled_dot_product_attention", None)
    if fused:
        return fused(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        hidden = module.ones(scores.shape[-2:], dtype=module.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ v


def torch_attention(threads):
    module = torch(threads)
    if not module:
        return None

    fused = hasattr(module.nn.functional, "scaled_dot_product_attention")

    def prepare(dtype, heads, width, tokens, causal):
        if not fused and too_many_scores(heads, tokens):
            return None
        q, k, v = (torch_random(module, dtype, 1, heads, tokens, width)
                   for _ in range(3))
        return lambda: torch_attend(module, q, k, v, causal)

    return prepare


def torch_decode_attention(threads):
    module = torch(threads)
    if not module:
        return None

    def prepare(dtype, heads, kv_heads, width, cached, batch):
        # Heads that share a key are its queries.
        q = torch_random(module, dtype, batch, kv_heads, heads // kv_heads, width)
        k, v = (torch_random(module, dtype, batch, kv_heads, cached, width)
                for _ in range(2))
        return lambda: torch_attend(module, q, k, v, causal=False)

    return prepare


def torch_stack(threads):
    """Stacks of the same blocks, op by op as PyTorch runs them."""
    module = torch(threads)
    if not module:
        return None

    def prepare(dtype, layers, vocabulary, tokens, width, heads, hidden,
                gelu, causal, post_norm):
        def layer(rows, columns):
            return (torch_random(module, dtype, rows, columns),
                    torch_random(module, dtype, rows))

        def norm(x):
            return module.nn.functional.layer_norm(x, (width,))

        def attention(x, qkv, out):
            q, k, v = module.nn.functional.linear(x, *qkv).view(
                1, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = torch_attend(module, q, k, v, causal)
            return module.nn.functional.linear(
                seen.transpose(1, 2).reshape(x.shape), *out)

        def feed_forward(x, up, down):
            wide = module.nn.functional.gelu(
                module.nn.functional.linear(x, *up), approximate=gelu)
            return module.nn.functional.linear(wide, *down)

        parts = [(part, layer(rows, columns), layer(width, depth))
                 for _ in range(layers)
                 for part, rows, columns, depth in (
                     (attention, 3 * width, width, width),
                     (feed_forward, hidden, width, hidden))]
        head = layer(vocabulary, width)[0] if vocabulary else None
        start = torch_random(module, dtype, 1, tokens, width)

        def once():
            x = start
            for part, *weights in parts:
                x = (norm(x + part(x, *weights)) if post_norm
                     else x + part(norm(x), *weights))
            return module.nn.functional.linear(norm(x), head) if vocabulary else x

        return once

    return prepare


def onnxruntime(threads):
    """The npm package onnxruntime-node, on stacks of the same blocks."""
    script = os.path.join(HERE, "onnxruntime.js")
    probe = ["node", "-e", "require('onnxruntime-node')"]
    if not shutil.which("node") or subprocess.run(
            probe, capture_output=True, check=False).returncode:
        return None

    def prepare(dtype, layers, vocabulary, *shape):
        if dtype != "f32":
            return None
        stack = onnx_stack.Stack(*shape)
        for _ in range(layers):
            stack.block()
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "stack.onnx")
        stack.write(path, vocabulary)
        node = subprocess.Popen(["node", script, path, str(threads)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True)
        if node.stdout.readline() != "ready\n":
            sys.exit("onnxruntime-node does not read its model")

        def once(owner=folder):  # the file goes when the last run is over
            node.stdin.write("\n")
            node.stdin.flush()
            node.stdout.readline()

        def stop():
            node.stdin.close()
            node.wait()

        once.stop = stop
        return once

    return prepare


TYPES = ("f32", "bf16")
MATMUL = {"OpenBLAS": openblas, "oneDNN": onednn, "libxsmm": libxsmm,
          "PyTorch": torch_linear}
ATTENTION = {"oneDNN": onednn_attention, "PyTorch": torch_attention}
DECODE_ATTENTION = {"PyTorch": torch_decode_attention}
MODEL = {"ONNX Runtime": onnxruntime, "PyTorch": torch_stack}
