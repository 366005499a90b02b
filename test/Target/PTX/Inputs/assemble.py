#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the kernels of small and of full-size models with ptxas.

  assemble.py ATTUNE EXAMPLES ORACLE CHIP...

Some models need fewer chips. The largest numbers of rows as wide as vocabularies
are among them. Prints for every model and chip how many kernels there are, how
much they spill, and the most that a thread of one has on its stack; exits with 1
if one cannot be assembled or spills, has a stack and is not known to, or if
ptxas says that it had to change how products of warpgroups follow each other.
"""
import os
import re
import subprocess
import sys
import tempfile

attune, examples, oracle = sys.argv[1:4]
MODELS = [os.path.join(oracle, name) for name in
          ("llama_bf16", "llama_gqa_llama3rope", "mixtral", "t5")]
MODELS += [os.path.join(examples, "bert", "model.json")]
# What only these have needs no more chips.
FEWER = [(os.path.join(examples, "dit", "model.json"), ["sm_80", "sm_90a"]),
         (os.path.join(examples, "mamba", "model.json"), ["sm_80"]),
         (os.path.join(examples, "linear-attention", "model.json"), ["sm_80"]),
         (os.path.join(oracle, "gpt2_f16"), ["sm_80", "sm_90a"]),
         (os.path.join(oracle, "deepseek_v3_noqlora"), ["sm_90a"])]
# A channel's state, and what a chunk of a head needs.
STACKS = {"mamba (full)": 1072, "linear-attention (full)": 41008}
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
failed = False
with tempfile.TemporaryDirectory() as work:
    MODELS.append(os.path.join(work, "linear.mlir"))
    with open(MODELS[-1], "w", encoding="utf-8") as file:
        file.write(LINEAR)
    for width in (32000, 50257, 128256, 262144, 524288):
        MODELS.append(os.path.join(work, f"top_k {width}.mlir"))
        with open(MODELS[-1], "w", encoding="utf-8") as file:
            file.write(TOP_K.format(width))
    # Once more with other arithmetic.
    tf32 = [MODELS[1], MODELS[4]]
    for model, flags, chips in (
            [(model, [], sys.argv[4:]) for model in MODELS] +
            [(model, ["--dtype=tf32"], sys.argv[4:]) for model in tf32] +
            [(model, [], chips) for model, chips in FEWER]):
        for chip in chips:
            name = os.path.basename(model)
            if name == "model.json":
                name = os.path.basename(os.path.dirname(model)) + " (full)"
            name = " ".join([name, *flags])
            text = os.path.join(work, "kernels.ptx")
            subprocess.run([attune, "compile", model, f"--gpu={chip}", "-o",
                            text, *flags], check=True)
            result = subprocess.run(
                ["ptxas", "-v", f"-arch={chip}", text, "-o", os.devnull],
                capture_output=True, text=True)
            report = result.stdout + result.stderr
            spills = sum(int(n) for n in
                         re.findall(r"(\d+) bytes spill", report))
            kernels = report.count("Compiling entry function")
            stack = max(map(int, re.findall(r"(\d+) bytes stack frame", report)),
                        default=0)
            print(f"{name} {chip}: {kernels} kernels, {spills} bytes spilled, "
                  f"{stack} bytes of stack")
            reordered = "wgmma" in report or "warpgroup." in report
            if (result.returncode or spills or not kernels or reordered or
                    stack > STACKS.get(name, 0)):
                print(report)
                failed = True
print("failed" if failed else "all assembled")
sys.exit(failed)
