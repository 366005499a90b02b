#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sends a signal to the second rank once the first one has printed something.

  signal_rank.py SIGNAL COMMAND [ARGUMENT]...

Prints what COMMAND says, without ids, and whether it failed. A command that does not
end within 60 seconds is killed: exit status 1.
"""
import os
import re
import signal
import subprocess
import sys


def second_rank(token):
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if token in words and (b"PMI_RANK=1" in words or
                               b"OMPI_COMM_WORLD_RANK=1" in words):
            return int(entry)
    raise SystemExit("there is no second rank")


def main():
    token = f"ATTUNE_TEST_TOKEN={os.getpid()}"
    name, value = token.split("=")
    process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE,
                               env={**os.environ, name: value})
    process.stdout.read(1)
    os.kill(second_rank(token.encode()), getattr(signal, sys.argv[1]))
    try:
        printed, said = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise SystemExit("the command did not end") from None
    # mpirun says on stdout what became of its ranks, behind what they printed.
    print(re.sub("[0-9,]{9,}", "", printed.decode(errors="replace")))
    print(said.decode(errors="replace"))
    print("failed" if process.returncode else "succeeded")


if __name__ == "__main__":
    main()
