#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a product that serves has its weights mapped from its file.

  mapped.py PROGRAM [OPTION...]
"""
import os
import subprocess
import sys

PROGRAM = os.path.realpath(sys.argv[1])


def is_weights(line):
    """Code is mapped, too; the weights are the end of the file."""
    fields = line.split()
    if len(fields) < 6 or fields[5] != PROGRAM:
        return False
    begin, end = (int(number, 16) for number in fields[0].split("-"))
    return int(fields[2], 16) + end - begin >= os.path.getsize(PROGRAM) - 4096


server = subprocess.Popen([PROGRAM, "serve", "--port=0", *sys.argv[2:]],
                          stderr=subprocess.PIPE, text=True)
said = server.stderr.readline()
with open(f"/proc/{server.pid}/maps") as file:
    mapped = any(map(is_weights, file))
server.terminate()
server.wait()
if not said:
    sys.exit("the server says nothing")
print("weights are", "mapped" if mapped else "not mapped")
