#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the commands that READMEs show.

  readme_commands.py ROOT WORK [--installed=PREFIX] [--only=REGEX]
                     [--except=REGEX]

Commands are the lines of ```sh blocks, and the lines of ```console blocks that
start with "$ ". They run one after the other in a folder of their own that has
everything of the tree in it and, in front, what is beside the README; the first
that fails is reported with its line. <where Attune is installed> stands for
PREFIX.

A block is left out if `<!-- not run: REASON -->` stands above it. A command
that names a .safetensors file that is not there, one that the reader brings,
must get as far as missing it; what calls a program that it would have made, is
left out.
"""
import argparse
import os
import re
import subprocess
import sys

FENCE = re.compile(r"^```(sh|console)\s*$")
LEFT_OUT = re.compile(r"<!-- not run: (.+) -->")


def commands(text):
    """(line, command, reason why it is not run) of every command."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if not fence:
            number += 1
            continue
        above = number - 1
        while above > 0 and not lines[above].strip():
            above -= 1
        reason = LEFT_OUT.search(lines[above])
        number += 1
        while not lines[number].startswith("```"):
            first, line = number + 1, lines[number]
            number += 1
            if fence.group(1) == "console":
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            while line.endswith("\\"):
                line = line[:-1] + lines[number].strip()
                number += 1
            line = re.sub(r"(^|\s+)#\s.*$", "", line).strip()
            if line:
                yield first, line, reason and reason.group(1)
        number += 1


def missing(command, folder):
    """The first file that the command reads and that is not there."""
    for match in re.finditer(r"--(weights|inputs)[= ](\S+\.safetensors)", command):
        if not os.path.exists(os.path.join(folder, match.group(2))):
            return match.group(2)
    return None


def prepare(root, name, work):
    """A folder with the tree in it and what is beside the README in front."""
    folder = os.path.join(work, os.path.dirname(name).replace("/", "-") or "top")
    os.makedirs(folder)
    for place in (os.path.join(root, os.path.dirname(name)), root):
        for entry in os.listdir(place):
            target = os.path.join(folder, entry)
            if entry not in (".git", "build") and not os.path.lexists(target):
                os.symlink(os.path.join(place, entry), target)
    return folder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("work")
    parser.add_argument("--installed", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--except", dest="without", default="^$")
    options = parser.parse_args()
    options.root = os.path.abspath(options.root)
    names = subprocess.run(["git", "ls-files", "*README.md"], cwd=options.root,
                           capture_output=True, text=True).stdout.split()
    if not names:  # no clone
        for folder, _, files in os.walk(options.root):
            inside = os.path.relpath(folder, options.root).split(os.sep)
            if "README.md" in files and "build" not in inside:
                names.append(os.path.relpath(os.path.join(folder, "README.md"),
                                             options.root))
    environment = dict(os.environ)
    if options.installed:
        environment["PATH"] = os.pathsep.join(
            [os.path.join(options.installed, "bin"), environment["PATH"]])
    count, failures = 0, 0
    for name in sorted(names):
        if not re.search(options.only, name) or re.search(options.without, name):
            continue
        with open(os.path.join(options.root, name), encoding="utf-8") as file:
            found = list(commands(file.read()))
        if not found:
            continue
        folder = prepare(options.root, name, options.work)
        for line, command, reason in found:
            if reason:
                print(f"{name}:{line}: not run: {reason}")
                continue
            lost = [program for program in re.findall(r"(?<!\S)\./\S+", command)
                    if not os.path.exists(os.path.join(folder, program))]
            if lost:
                print(f"{name}:{line}: not run: {lost[0]} is not made without weights")
                continue
            count += 1
            text = command.replace("<where Attune is installed>", options.installed)
            result = subprocess.run(["bash", "-ec", text], cwd=folder, text=True,
                                    stdin=subprocess.DEVNULL, capture_output=True,
                                    env=environment)
            said = result.stdout + result.stderr
            lacks = missing(command, folder)
            if lacks and result.returncode == 1 and lacks in said:
                continue
            if lacks or result.returncode != 0:
                print(f"{name}:{line}: exit code {result.returncode}: {command}\n"
                      + said[-2000:])
                failures += 1
                break
    print(f"{count} commands of READMEs run, {failures} failed")
    sys.exit(failures != 0)


main()
