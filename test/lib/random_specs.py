#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random descriptions, fused against unfused.

  random_specs.py ATTUNE WORK --seeds=FIRST:LAST [--jobs=N] [--flag=FLAG]...
  random_specs.py --print SEED

Each seed in [FIRST, LAST) is a small description that mixes what descriptions
can say (spec_generator.py).
`ATTUNE verify` compiles it fused and step by step, and compares both on short,
long, padded and extreme inputs of several batches, and a language model's cache
with the whole sequence. Its tolerance is relative to the largest value of a
layer: f32 sums in another order differ by 1e-6 of it after some layers, a wrong
mask or scale by 1e-3 and more.

A description that fails is shrunk to a smaller one that fails in the same way:
keys and layers are left out and numbers made small as long as it does. Exit
status 0: all passed.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import subprocess
import sys

from spec_generator import Generator


# --- Running

class Checker:
    def __init__(self, options):
        self.options = options

    def verify(self, model, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file, indent=1)
        result = subprocess.run(
            [self.options.attune, "verify", path, "--threads=1",
             *self.options.flag],
            capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def check(self, seed):
        """None, or what is wrong with the description of this seed."""
        path = os.path.join(self.options.work, f"{seed}.json")
        model = Generator(seed).model()
        status, text = self.verify(model, path)
        if status == 0:
            return None
        # A refused description cannot be told from one that shrinking broke.
        if status != 1:
            model, text = self.shrink(model, status, text, path)
        return (f"seed {seed}: status {status}\n{text}\n"
                f"{json.dumps(model, indent=1)}")

    def shrink(self, model, status, text, path):
        """Takes the first smaller description that fails alike, again and
        again, until none does."""
        smaller = path.replace(".json", ".smaller.json")
        progress = True
        while progress:
            progress = False
            for candidate in simpler(model):
                found, output = self.verify(candidate, smaller)
                if found == status:
                    model, text, progress = candidate, output, True
                    break
        return model, text


def places(value, path=()):
    """Every place in a JSON value, outer ones first."""
    if path:
        yield path
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, item in items:
        yield from places(item, path + (key,))


def simpler(model):
    """The descriptions that are one step smaller."""
    for path in places(model):
        holder = model
        for key in path[:-1]:
            holder = holder[key]
        old = holder[path[-1]]
        candidates = [None]
        if isinstance(old, (int, float)) and not isinstance(old, bool):
            candidates += [new for new in (1, 2, 4, 8) if new < old]
        for new in candidates:
            result = copy.deepcopy(model)
            inner = result
            for key in path[:-1]:
                inner = inner[key]
            if new is None:
                del inner[path[-1]]
            else:
                inner[path[-1]] = new
            yield result


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--print":
        print(json.dumps(Generator(int(sys.argv[2])).model(), indent=1))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attune")
    parser.add_argument("work")
    parser.add_argument("--seeds", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--flag", action="append", default=[])
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    first, last = map(int, options.seeds.split(":"))
    checker, failed = Checker(options), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for problem in pool.map(checker.check, range(first, last)):
            if problem:
                failed += 1
                print(problem, flush=True)
    print(f"{last - first - failed} of {last - first} descriptions agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
