# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a system has installed that multiplies matrices or attends.

Each rival is a function that prepares its operands once and returns what one
run calls. A rival that is not installed is None; none is needed. Libraries are
called through their C interfaces: an interpreter's overhead is a microsecond
beside milliseconds.
"""
import array
import ctypes
import importlib
import os
import random
import shutil
import subprocess
import sys
import tempfile

import onnx_stack


def operands(*sizes):
    """Arrays of f32 in [-0.5, 0.5): zeros could be cheaper than numbers."""
    draw = random.Random(1)
    some = array.array("f", (draw.random() - 0.5 for _ in range(4099)))
    result = []
    for size in sizes:
        values = some * (size // len(some) + 1)
        result.append((ctypes.c_float * size).from_buffer(values))
    return result


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

    def prepare(m, n, k):
        a, w, y = operands(m * k, n * k, m * n)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        rows, plain, transposed = 101, 111, 112
        return lambda: lib.cblas_sgemm(
            rows, plain, transposed, m, n, k, one, a, k, w, k, zero, y, n)

    return prepare


def onednn(threads):
    # Its threads are OpenMP's, which reads the variable when it is loaded.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    lib = library("libdnnl.so.3", "libdnnl.so.2", "libdnnl.so")
    if not lib:
        return None
    size = ctypes.c_int64

    def prepare(m, n, k):
        a, w, y = operands(m * k, n * k, m * n)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        return lambda: lib.dnnl_sgemm(
            ctypes.c_char(b"N"), ctypes.c_char(b"T"), size(m), size(n), size(k),
            one, a, size(k), w, size(k), zero, y, size(n))

    return prepare


def libxsmm(threads):
    """Debian has it as archives only: the compiler makes a library of them."""
    archives = [f"/usr/lib/lib{name}.a"
                for name in ("xsmmext", "xsmm", "xsmmnoblas")]
    if not all(map(os.path.exists, archives)) or not shutil.which("cc"):
        return None
    os.environ["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "libxsmm.so")
        subprocess.run(["cc", "-shared", "-o", path, "-Wl,--whole-archive",
                        *archives, "-Wl,--no-whole-archive", "-fopenmp", "-lm",
                        "-ldl", "-lpthread"], check=True)
        lib = ctypes.CDLL(path)

    def prepare(m, n, k):
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

    def prepare(m, n, k):
        x, w = module.rand(m, k) - 0.5, module.rand(n, k) - 0.5
        return lambda: module.nn.functional.linear(x, w)

    return prepare


def torch_attention(threads):
    module = torch(threads)
    attend = module and getattr(
        module.nn.functional, "scaled_dot_product_attention", None)
    if not attend:
        return None

    def prepare(heads, width, tokens, causal):
        q, k, v = (module.rand(1, heads, tokens, width) - 0.5 for _ in range(3))
        return lambda: attend(q, k, v, is_causal=causal)

    return prepare


def onnxruntime(threads):
    """The npm package onnxruntime-node, on stacks of the same blocks."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "onnxruntime.js")
    probe = ["node", "-e", "require('onnxruntime-node')"]
    if not shutil.which("node") or subprocess.run(
            probe, capture_output=True, check=False).returncode:
        return None

    def prepare(layers, vocabulary, *shape):
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


MATMUL = {"OpenBLAS": openblas, "oneDNN": onednn, "libxsmm": libxsmm,
          "PyTorch": torch_linear}
ATTENTION = {"PyTorch": torch_attention}
MODEL = {"ONNX Runtime": onnxruntime}
