#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command and passes if it exits with the code given first.

  exits.py CODE COMMAND ARGUMENT...
"""
import subprocess
import sys

expected = int(sys.argv[1])
got = subprocess.run(sys.argv[2:]).returncode
if got != expected:
    print(f"exits.py: exit code {got}, expected {expected}", file=sys.stderr)
sys.exit(got != expected)
