#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""inner_loop.py INSTRUCTION < ASSEMBLY: what stands in each innermost loop that
has INSTRUCTION: how many of which instructions on vectors and on tiles, of the
rest, and how many of the former access the stack."""
import collections
import re
import sys

lines = [line.strip() for line in sys.stdin]
labels, loops = {}, []
for i, line in enumerate(lines):
    if match := re.match(r"(\.LBB\w+):", line):
        labels[match[1]] = i
    elif match := re.match(r"j\w+\s+(\.LBB\w+)", line):
        if match[1] in labels:
            loops.append((labels[match[1]], i))
inner = [(a, b) for a, b in loops
         if not any((c, d) != (a, b) and a <= c and d <= b for c, d in loops)]
for a, b in inner:
    body = [line for line in lines[a:b + 1] if re.match(r"[a-z]", line)]
    if not any(sys.argv[1] in op for op in body):
        continue
    names = collections.Counter(op.split()[0] for op in body)
    wide = ("v", "tile", "tdp")
    rest = sum(n for name, n in names.items() if not name.startswith(wide))
    print(" ".join(f"{name}={n}" for name, n in sorted(names.items())
                   if name.startswith(wide)),
          f"scalar={rest}",
          f"stack={sum('(%rsp' in op and op.startswith(wide) for op in body)}")
