#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tensor cores multiply in the kernels of a model.

  products.py ATTUNE MODEL CHIP [FLAG]...

Prints for each function of the host how many of its kernels multiply what:
`wgmma.bf16`, `mma.tf32` and so on, `cut` where activations of f32 are cut into
parts of bf16 first, and `streams` where weights meet few rows without tensor
cores, 16 bytes at a time in each thread.
"""
import collections
import re
import subprocess
import sys

attune, model, chip = sys.argv[1:4]
text = subprocess.run(
    [attune, "compile", model, "--emit=ptx", f"--gpu={chip}", "-o", "-",
     *sys.argv[4:]], check=True, capture_output=True, text=True).stdout
counts = collections.defaultdict(collections.Counter)
for kernel in text.split(".visible .entry ")[1:]:
    name = re.sub(r"_\d+$", "", kernel.split("(")[0])
    kinds = set()
    for line in re.findall(r"wgmma\.mma_async\.\S+", kernel):
        kinds.add("wgmma." + line.split(".")[-1])
    for line in re.findall(r"\bmma\.sync\.\S+", kernel):
        kinds.add("mma." + line.split(".")[-2])
    # Each part but the last is subtracted from what it is a part of.
    if "mma.bf16" in kinds and re.search(r"and\.b32\s.*(-65536|0xFFFF0000)",
                                         kernel) and "sub" in kernel:
        kinds.add("cut")
    if not kinds and re.search(r"ld\.global\S*\.v4\.[bu]32", kernel) and \
            "shfl.sync" in kernel and "bar.sync" in kernel:
        kinds.add("streams")
    for kind in kinds:
        counts[name][kind] += 1
for name, kinds in counts.items():
    print(f"{name}:", ", ".join(f"{count} {kind}"
                                for kind, count in sorted(kinds.items())))
