#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each code of a program that was compiled with --cpu=multi.

  variants.py PROGRAM CASE [COMPARE_FLAG]...

CASE is a recorded model (see oracle.py). Of every code that this machine runs
the logits are compared with those of CASE, as compare_safetensors.py does with
the flags, and greedy ids must be equal. Of every other one the program has to
say what the CPU lacks. Exit status 0: all passed.
"""
import array
import json
import os
import subprocess
import sys

import tensors

HERE = os.path.dirname(os.path.abspath(__file__))


def run(program, cpu, *arguments):
    return subprocess.run([program, *arguments], capture_output=True,
                          text=True, env={**os.environ, "ATTUNE_CPU": cpu})


def check(program, cpu, case, flags):
    """What is wrong with one code, or what it gave."""
    fixtures = tensors.load(os.path.join(case, "fixtures.safetensors"))
    given, found = program + ".in.safetensors", program + ".out.safetensors"
    tensors.save(given, {"input_ids": fixtures["input_ids"]})
    result = run(program, cpu, "run", "--inputs", given, "--outputs", found)
    if result.returncode != 0:
        lacks = "this one lacks" in result.stderr or "AMX" in result.stderr
        return result.stderr, "refused" if lacks else ""
    result = subprocess.run(
        [sys.executable, os.path.join(HERE, "compare_safetensors.py"), case,
         found, "--require=logits", *flags], capture_output=True, text=True)
    if result.returncode != 0:
        return result.stdout + result.stderr, ""
    prompt, expected = (
        ",".join(map(str, array.array("q", fixtures["greedy." + name][2])))
        for name in ("prompt_ids", "generated_ids"))
    made = run(program, cpu, "generate", "--greedy", "--ignore-eos",
               "--format=ids", "--prompt-ids", prompt,
               f"--max-new-tokens={expected.count(',') + 1}")
    good = made.stdout.strip() == expected
    return made.stderr + made.stdout, "passed" if good else ""


def main():
    program, case, *flags = sys.argv[1:]
    listed = json.loads(run(program, "", "inspect", "--format=json").stdout)
    failures = 0
    for entry in listed["cpus"]:
        text, state = check(program, entry["cpu"], case, flags)
        print(f"{entry['cpu']}: {state or 'FAILED'}")
        if not state:
            print(text)
            failures += 1
    print(f"{failures} failed" if failures else "all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
