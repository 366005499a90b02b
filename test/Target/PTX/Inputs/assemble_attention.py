#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles attention over a cache for a chip with ptxas.

  assemble_attention.py ATTUNE CHIP WIDTH TYPE[/CACHE] [OPERANDS...]

CACHE is the type of what is cached, if it is another: i8 or f8E4M3FN, rows of
which have four bytes more. OPERANDS are further words of attune.attention. Prints what each of its kernels
takes: few queries, the merge, many queries, and on sm_90a those of warpgroups.
Exits with 1 if one cannot be assembled or spills, or if ptxas says that it had
to change how products of warpgroups follow each other.
"""
import os
import re
import subprocess
import sys
import tempfile

attune, chip, width, kind = sys.argv[1:5]
kind, _, stored = kind.partition("/")
room = int(width) + 4 if stored else width
stored = stored or kind
words = " ".join(sys.argv[5:])


def heads(count):
    return f"tensor<?x{count}x?x{width}x{kind}>"


def argument(name, type, shape):
    return (f'%{name}: {type} {{attune.kind = "input", attune.name = "{name}", '
            f'attune.shape = [{shape}]}}')


cache = f"tensor<1x?x2x?x{room}x{stored}>"
rows = f"tensor<?x2x?x{room}x{stored}>"
more = [argument("mask", "tensor<?x1x1x?xi1>", '"batch", 1, 1, "keys"'),
        argument("bias", "tensor<1x8x?x?xf32>", '1, 8, "queries", "keys"'),
        argument("lengths", "tensor<?xi64>", '"batch"'),
        argument("none", "tensor<8xf32>", "8")]
inputs = [argument("q", heads(8), f'"batch", 8, "queries", {width}'),
          argument("k", cache, f'1, "batch", 2, "keys", {room}'),
          argument("v", cache, f'1, "batch", 2, "keys", {room}')]
result = (f'{heads(8)} {{attune.kind = "output", attune.name = "y", '
          f'attune.shape = ["batch", 8, "queries", {width}]}}')
text = f"""module attributes {{attune.name = "model"}} {{
  func.func @forward({", ".join(inputs + more)}) -> ({result}) attributes {{attune.entry}} {{
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %n = tensor.dim %k, %c3 : {cache}
    %keys = attune.cache_read %k[%c0] length %n : {cache} -> {rows}
    %values = attune.cache_read %v[%c0] length %n : {cache} -> {rows}
    %y = attune.attention %q, %keys, %values scale 0.125 {words} : {heads(8)}, {rows}, {rows} -> {heads(8)}
    return %y : {heads(8)}
  }}
}}
"""
with tempfile.TemporaryDirectory() as work:
    model, kernels = (os.path.join(work, name)
                      for name in ("model.mlir", "kernels.ptx"))
    with open(model, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run([attune, "compile", model, f"--gpu={chip}", "-o", kernels],
                   check=True)
    # What ptxas does not know: launches say it.
    launches = subprocess.run(
        [attune, "compile", model, "--target=cuda", f"--gpu={chip}",
         "--emit=vector", "-o", "-"], check=True, capture_output=True, text=True)
    dynamic = {name: int(size) for name, size in re.findall(
        r"@(\w+) blocks .* dynamic_shared_memory_size %c(\d+)_i32",
        launches.stdout)}
    done = subprocess.run(["ptxas", "-v", f"-arch={chip}", kernels, "-o",
                           os.devnull], capture_output=True, text=True)
report = done.stdout + done.stderr
failed = done.returncode != 0 or "wgmma" in report or "warpgroup." in report
for entry in sorted(report.split("Compiling entry function '")[1:]):
    name = entry.split("'")[0]
    registers = re.search(r"Used (\d+) registers", entry).group(1)
    shared = dynamic.get(name, 0) + sum(
        int(n) for n in re.findall(r"(\d+) bytes smem", entry))
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", entry))
    stack = int(re.search(r"(\d+) bytes stack frame", entry).group(1))
    print(f"{name}: {registers} registers, "
          f"{shared // 1024} KiB shared, "
          f"{stack} bytes of stack, {spills} bytes spilled")
    failed = failed or spills > 0
if failed:
    print(report)
sys.exit(failed)
