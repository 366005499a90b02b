#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speed of a tokenizer on one core.

  tokenizer.py ATTUNE TOKENIZER TEXT... [--megabytes=16] [--runs=5]

TOKENIZER is a folder with a tokenizer, or a tokenizer.json; each TEXT is a file
in UTF-8. `attune tokenize --texts` gets the files as texts of a megabyte, over
and over (it remembers words within a text, not beyond it). The time of one such
text, starting and loading included, is taken off; reading JSON and printing ids
are part of the figure. A median of the runs.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile


def seconds(command):
    """Of the processor: other programs may run, this one has one thread."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    start = spent()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return spent() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("attune")
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="+")
    parser.add_argument("--megabytes", type=float, default=16)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    whole = ""
    for path in options.text:
        with open(path, encoding="utf-8", errors="replace") as file:
            whole += file.read() + "\n"
    texts = [whole[i:i + 1000000] for i in range(0, len(whole), 1000000)]
    folder = options.tokenizer
    extra = []
    if os.path.isfile(folder):
        extra = ["--tokenizer=" + folder]
        folder = os.path.dirname(folder) or "."
    with tempfile.TemporaryDirectory() as scratch:
        def write(name, lines):
            path = os.path.join(scratch, name)
            with open(path, "w", encoding="utf-8") as file:
                for line in lines:
                    json.dump(line, file, ensure_ascii=False)
                    file.write("\n")
            return [options.attune, "tokenize", folder, *extra,
                    "--texts=" + path]
        many, size = texts[:1], 0
        while size < options.megabytes * 1e6:
            many.append(texts[len(many) % len(texts)])
            size += len(many[-1].encode())
        one, all_of_them = write("one", texts[:1]), write("all", many)
        runs = [size / 1e6 / (seconds(all_of_them) - seconds(one))
                for _ in range(options.runs)]
    print(f"{options.tokenizer}: {statistics.median(runs):.1f} MB/s, "
          f"{min(runs):.1f} to {max(runs):.1f} in {options.runs} runs, "
          f"texts of {len(whole.encode()) / 1e6:.2f} MB in all")


if __name__ == "__main__":
    sys.exit(main())
