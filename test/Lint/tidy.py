#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang-tidy over the sources that changed.

  tidy.py CLANG_TIDY SOURCES BUILD [--base=REVISION] [--all] [--jobs=N]
          [--seconds=N]

Without --all, files that differ from REVISION (HEAD~1), committed or not. After
N seconds no other file is begun, and the sum says how many are left. The
list of checks is SOURCES/.clang-tidy. BUILD has been built, since checks read
generated headers. Exit code 1 if there is a finding.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

FOLDERS = ("lib/", "tools/", "dialects/")


def git(sources, *arguments):
    done = subprocess.run(["git", "-C", sources, *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clang_tidy")
    parser.add_argument("sources")
    parser.add_argument("build")
    parser.add_argument("--base", default="HEAD~1")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    names = (git(options.sources, "ls-files", "*.cpp") if options.all else
             git(options.sources, "diff", "--name-only", "--diff-filter=d",
                 options.base, "--", "*.cpp"))
    if names is None:
        print(f"there is no {options.base} to compare with: nothing is checked")
        return
    files = [name for name in names if name.startswith(FOLDERS)]

    end = time.monotonic() + options.seconds

    def check(name):
        if time.monotonic() > end:
            return name, None
        return name, subprocess.run(
            [options.clang_tidy, "-p", options.build, "--quiet",
             str(pathlib.Path(options.sources) / name)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    findings = left = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, done in pool.map(check, files):
            if done is None:
                left += 1
            elif done.returncode:
                findings += 1
                print(done.stdout.strip() or f"{name}: {done.stderr.strip()}", flush=True)
    print(f"{len(files) - left} files checked, findings in {findings}"
          + (f"; {left} not checked for want of time" if left else ""))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
