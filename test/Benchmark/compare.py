#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What became slower from one build of Attune to another.

  compare.py OLD NEW [--groups=matmul,attention,model,compile] [--rounds=5]
             [--runs=5] [--threads=N] [--limit=3] [--small]

OLD and NEW are two programs `attune`. Each round runs every case of benchmark.py
with one right after the other, in turns the other way round, and compares what
they reach of the machine's peak, or, in the group compile, how long they compile.
A case counts as slower if the median of its rounds is more than --limit percent
below, and as faster if it is as much above. Exit code 1 if one is slower.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import benchmark

COMPILED = ("gpt2-small", "whisper", "mixtral")


def compile_case(name):
    return {"group": "compile", "name": f"compile {name}",
            "path": os.path.join(benchmark.EXAMPLES, name, "model.json")}


def measure(attune, case, folder, options):
    """The speeds of a case by name, larger is better, and the peaks."""
    if case["group"] == "compile":
        command = [attune, "compile", case["path"], "--cache=off", "--emit=obj",
                   f"--threads={options.threads}", "-o", os.path.join(folder, "case.o")]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{attune}: {case['name']}: {done.stderr.strip()}")
        return {"": 1 / (time.perf_counter() - start)}, {}
    found = benchmark.run_attune(attune, case, folder, options, options.threads)
    return {run["name"]: run["of_peak"] for run in found["runs"]}, found["peak"]


def choose(options):
    groups = options.groups.split(",")
    chosen = list(benchmark.cases(groups, options.small))
    if "compile" in groups:
        names = ("block-512",) if options.small else COMPILED
        chosen += [compile_case(name) for name in names]
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--groups", default="matmul,attention,model,compile")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=3, help="percent")
    parser.add_argument("--small", action="store_true",
                        help="tiny shapes: whether it runs, not how fast")
    options = parser.parse_args()
    groups = {"matmul", "attention", "model", "compile"}
    if unknown := set(options.groups.split(",")) - groups:
        parser.error(f"--groups: no group is called {', '.join(sorted(unknown))}; "
                     f"there are {', '.join(sorted(groups))}")
    chosen, ratios = choose(options), {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for case in chosen:  # which the first round may lengthen
                order = [options.old, options.new][::1 if number % 2 == 0 else -1]
                pair = [measure(attune, case, folder, options) for attune in order]
                (old, peak), (new, _) = pair[::1 if number % 2 == 0 else -1]
                if number == 0 and peak and "narrow" not in case:
                    chosen += benchmark.narrowed(case, peak)
                for name in old.keys() & new.keys():
                    full = f"{case['name']} {name}".strip()
                    ratios.setdefault(full, []).append(new[name] / old[name])
    slower = 0
    for name, all_rounds in ratios.items():
        percent = 100 * (statistics.median(all_rounds) - 1)
        low, high = (100 * (pick(all_rounds) - 1) for pick in (min, max))
        word = ("slower" if percent < -options.limit else
                "faster" if percent > options.limit else "")
        slower += word == "slower"
        print(f"{name:40} {percent:+6.1f}% ({low:+.1f} to {high:+.1f}) {word}".rstrip())
    print(f"{slower} of {len(ratios)} are slower by more than {options.limit:g}%")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
