#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the kernels of small and of full-size models with ptxas.

  assemble.py ATTUNE EXAMPLES ORACLE CHIP... [--only=MODEL,MODEL...]

The largest numbers of rows as wide as vocabularies are among them. Prints for
every model and chip how many kernels there are, how much they spill, and the
most that a thread of one has on its stack; exits with 1 if one cannot be
assembled, spills or has a stack, or if ptxas says that it had to change how
products of warpgroups follow each other.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

words = [word for word in sys.argv[1:] if not word.startswith("--only=")]
only = [word[len("--only="):].split(",") for word in sys.argv[1:]
        if word.startswith("--only=")]
attune, examples, oracle, *chips = words
MODELS = [os.path.join(oracle, name) for name in
          ("llama_bf16", "llama_gqa_llama3rope", "mixtral", "t5", "gpt2_f16",
           "deepseek_v3_noqlora")]
MODELS += [os.path.join(examples, name, "model.json") for name in
           ("bert", "dit", "mamba", "linear-attention", "bahdanau-translation",
            "block-sparse", "captioning", "crossvit", "experts-1024",
            "linformer", "musicgen", "pilot-symbols", "range-doppler",
            "rnn-translation", "sepformer", "show-attend-tell",
            "spatial-transformer", "time-series", "transformer-original",
            "vit", "whisper")]
# These once more with other arithmetic, or numbers in few bits.
MORE = (("llama_gqa_llama3rope", "--dtype=tf32"), ("bert", "--dtype=tf32"),
        ("linear.mlir", "--quantize=int4:asym"), ("linear.mlir", "--quantize=mxfp4"),
        ("linear.mlir", "--quantize=int8"))
TOP_K = """
func.func @forward(%x: tensor<?x{0}xf32> {{attune.kind = "input", attune.name = "x", attune.shape = ["rows", {0}]}},
                   %k: index {{attune.kind = "size", attune.name = "count"}})
    -> (tensor<?x?xi64> {{attune.kind = "output", attune.name = "ids", attune.shape = ["rows", "count"]}},
        tensor<?x?xf32> {{attune.kind = "output", attune.name = "values", attune.shape = ["rows", "count"]}}) attributes {{attune.entry}} {{
  %i, %v = attune.top_k %x count %k : tensor<?x{0}xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  return %i, %v : tensor<?x?xi64>, tensor<?x?xf32>
}}
"""
# So deep that products of warpgroups are in a loop.
LINEAR = """
attune.weight @w : tensor<1024x512xbf16> from [#attune.source<"w">]
func.func @forward(%x: tensor<?x512xbf16> {attune.kind = "input", attune.name = "x", attune.shape = ["rows", 512]})
    -> (tensor<?x1024xbf16> {attune.kind = "output", attune.name = "y", attune.shape = ["rows", 1024]}) attributes {attune.entry} {
  %w = attune.weight_get @w : tensor<1024x512xbf16>
  %y = attune.linear %x, %w : tensor<?x512xbf16>, tensor<1024x512xbf16> -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}
"""
# Columns that no four and no tile divide, and more than a chunk of 32 leaves room
# for.
SUMS = """
func.func @forward(%q: tensor<1x4x?x{0}xbf16> {{attune.kind = "input", attune.name = "q", attune.shape = [1, 4, "seq", {0}]}},
                   %k: tensor<1x2x?x{0}xbf16> {{attune.kind = "input", attune.name = "k", attune.shape = [1, 2, "seq", {0}]}},
                   %m: tensor<1x1x1x?xi1> {{attune.kind = "input", attune.name = "m", attune.shape = [1, 1, 1, "seq"]}},
                   %s: tensor<1x2x{0}x{1}xf32> {{attune.kind = "input", attune.name = "s", attune.shape = [1, 2, {0}, {1}]}})
    -> (tensor<1x4x?x{0}xbf16> {{attune.kind = "output", attune.name = "y", attune.shape = [1, 4, "seq", {0}]}},
        tensor<1x2x{0}x{1}xf32> {{attune.kind = "output", attune.name = "t", attune.shape = [1, 2, {0}, {1}]}}) attributes {{attune.entry}} {{
  %y, %t = attune.linear_attention %q, %k, %k <elu_plus_one> causal normalised 1.0e-6 mask %m : tensor<1x1x1x?xi1> state %s : tensor<1x2x{0}x{1}xf32>
    : tensor<1x4x?x{0}xbf16>, tensor<1x2x?x{0}xbf16>, tensor<1x2x?x{0}xbf16> -> tensor<1x4x?x{0}xbf16> state tensor<1x2x{0}x{1}xf32>
  return %y, %t : tensor<1x4x?x{0}xbf16>, tensor<1x2x{0}x{1}xf32>
}}
"""


def assemble(work, model, chip, flags):
    """What there is to say of a model's kernels, and whether they are good."""
    name = os.path.basename(model)
    if name == "model.json":
        name = os.path.basename(os.path.dirname(model)) + " (full)"
    name = " ".join([name, *flags, chip])
    text = os.path.join(work, name + ".ptx")
    subprocess.run([attune, "compile", model, f"--gpu={chip}", "-o", text,
                    *flags], check=True)
    result = subprocess.run(
        ["ptxas", "-v", f"-arch={chip}", text, "-o", os.devnull],
        capture_output=True, text=True)
    report = result.stdout + result.stderr
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", report))
    kernels = report.count("Compiling entry function")
    stack = max(map(int, re.findall(r"(\d+) bytes stack frame", report)),
                default=0)
    line = (f"{name}: {kernels} kernels, {spills} bytes spilled, "
            f"{stack} bytes of stack")
    reordered = "wgmma" in report or "warpgroup." in report
    bad = result.returncode or spills or stack or not kernels or reordered
    return f"{line}\n{report}" if bad else line, not bad


with tempfile.TemporaryDirectory() as work:
    texts = {"linear": LINEAR}
    texts |= {f"top_k {width}": TOP_K.format(width)
              for width in (32000, 50257, 128256, 262144, 524288)}
    texts |= {f"sums {width}": SUMS.format(width, width + 1)
              for width in (18, 256)}
    for name, text in texts.items():
        MODELS.append(os.path.join(work, name + ".mlir"))
        with open(MODELS[-1], "w", encoding="utf-8") as file:
            file.write(text)
    if only:
        MODELS = [model for model in MODELS
                  if any(name in model.split(os.sep) for name in only[0])]
    runs = [(model, chip, []) for model in MODELS for chip in chips]
    runs += [(model, chip, [flag]) for name, flag in MORE for model in MODELS
             if name in model.split(os.sep) for chip in chips]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda run: assemble(work, *run), runs))
for text, _ in results:
    print(text)
good = all(fine for _, fine in results)
print("all assembled" if good else "failed")
sys.exit(not good)
