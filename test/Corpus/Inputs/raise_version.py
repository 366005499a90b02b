#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies a module in bytecode and says that the dialect is one version newer.

  raise_version.py IN.mlirbc OUT.mlirbc

The version is a section of one byte in the table of dialects: a variable-length
integer, whose lowest bit is set where one byte is enough.
"""
import sys

data = bytearray(open(sys.argv[1], "rb").read())
current, newer = 5, 6
# Section id 7 (dialect versions), length 1, the number.
place = data.find(bytes([7, 1 << 1 | 1, current << 1 | 1]))
assert place >= 0, "no version in the bytecode"
data[place + 2] = newer << 1 | 1
open(sys.argv[2], "wb").write(data)
