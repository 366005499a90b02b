#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mesh_oracle.py ATTUNE ORACLE WORK MPICH OPENMPI [--only=TEXT]

Cuts each recorded model for two, three and four ranks and runs it
under both launchers, as oracle_table.py does, with --check-ranks. What a launcher's
ranks have written is compared with the other's, byte by byte.

A model that the compiler refuses to cut in so many parts has to say so where it stands
in its config.json; it is listed and is no failure. Exit status 1 if anything differs or fails.
"""
import filecmp
import os
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "oracle_table.py")
# What is refused, and why.
REFUSED = ("some have more heads", "some would have none", "cannot have copies of",
           "cannot share its keys", "keys ranks could share")


def meshes_of(folder, ranks):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        mixture = "experts" in file.read()
    return [f"tp={ranks}", f"sp={ranks}"] + ([f"ep={ranks}"] if mixture else [])


def run(attune, oracle, work, name, mesh, launch):
    return subprocess.run(
        [sys.executable, TABLE, attune, oracle, work, "--fused",
         f"--only=hf/{name}/", "--jobs=1", f"--flag=--mesh={mesh}",
         f"--launch={launch}", "--option=--check-ranks"],
        capture_output=True, text=True).stdout


def outputs(work):
    return sorted(os.path.join(folder, file)[len(work):]
                  for folder, _, files in os.walk(work) for file in files
                  if file.endswith(".out.safetensors"))


def check(attune, oracle, work, name, ranks, mesh, launchers):
    """What is said of one case: "ok", why it is refused, or what failed."""
    works = []
    for number, launcher in enumerate(launchers):
        works.append(os.path.join(work, name, mesh, str(number)))
        said = run(attune, oracle, works[-1], name, mesh,
                   f"{launcher} -n {ranks}")
        if "FAIL" in said or " ok" not in said:
            refused = any(text in said for text in REFUSED)
            return "refused" if refused else "FAIL\n" + said
    if outputs(works[0]) != outputs(works[1]):
        return "FAIL: other files"
    for file in outputs(works[0]):
        if not filecmp.cmp(works[0] + file, works[1] + file, shallow=False):
            return f"FAIL: {file} has other bytes"
    return f"ok, {len(outputs(works[0]))} files with the same bytes"


def main():
    only = [word[7:] for word in sys.argv if word.startswith("--only=")]
    attune, oracle, work, *launchers = [
        word for word in sys.argv[1:] if not word.startswith("--only=")]
    cases = failures = 0
    for name in sorted(os.listdir(os.path.join(oracle, "hf"))):
        if only and not any(text in name for text in only):
            continue
        folder = os.path.join(oracle, "hf", name)
        for ranks, mesh in [(ranks, mesh) for ranks in (2, 3, 4)
                            for mesh in meshes_of(folder, ranks)]:
            verdict = check(attune, oracle, work, name, ranks, mesh, launchers)
            print(f"{name} {mesh}: {verdict}", flush=True)
            cases += 1
            failures += verdict.startswith("FAIL")
    print(f"{cases} cases, {failures} failures")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
