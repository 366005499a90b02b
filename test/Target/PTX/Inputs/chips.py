#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles a model for every chip that --gpu takes.

  chips.py ATTUNE MODEL FOLDER

The compiler says which there are when it is asked for one that is none.
"""
import os
import re
import subprocess
import sys

attune, model, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)


def call(*command):
    return subprocess.run(command, capture_output=True, text=True)


asked = call(attune, "compile", model, "--gpu=none", "--emit=ptx", "-o", "-")
chips = re.findall(r"\bsm_\w+", asked.stderr)
assert asked.returncode == 2 and chips, asked.stderr
failed = False
for chip in chips:
    text = os.path.join(folder, chip + ".ptx")
    made = call(attune, "compile", model, "--gpu=" + chip, "--emit=ptx", "-o",
                text)
    if made.returncode == 0:
        made = call("ptxas", "-v", "-arch=" + chip, text, "-o", os.devnull)
    spilled = sum(int(count) for count in re.findall(
        r"(\d+) bytes spill (?:stores|loads)", made.stderr))
    kernels = made.stderr.count("Compiling entry function")
    failed |= made.returncode != 0 or spilled != 0 or kernels == 0
    print(f"{chip}: {kernels} kernels, {spilled} bytes spilled"
          if made.returncode == 0 else made.stderr, flush=True)
print("FAIL" if failed else f"all {len(chips)} chips assembled")
