#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the CHECK lines of an .mlir test.

  update_checks.py [--tools=FOLDER] TEST.mlir...

Runs every RUN line of the form `// RUN: attune-opt %s FLAGS | FileCheck %s
[--check-prefix=NAME]` and writes, above each function of the file, a
CHECK-LABEL line and one line for each operation that the function has in the
output. Values become variables, so that their numbers may change. Earlier lines
of the same prefix are replaced. Read what it wrote: it records what the tool
does, right or wrong. Lines that the test is not about are best deleted.

--tools is the folder with attune-opt; by default it is looked up on PATH.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

RUN = re.compile(r"^//\s*RUN:\s*(.*)$")
FUNCTION = re.compile(r"^\s*func\.func\s+(?:private\s+|public\s+)?@([\w$.-]+)\s*\(")
VALUE = re.compile(r"%([A-Za-z0-9_$.-]+)")


def fail(path, why):
    print(f"{path}: error: {why}", file=sys.stderr)
    sys.exit(1)


def read_runs(path, lines):
    """[(command before the pipe, prefix)] of the RUN lines."""
    commands, continued = [], ""
    for line in lines:
        match = RUN.match(line)
        if not match:
            continue
        text = continued + match.group(1).rstrip()
        if text.endswith("\\"):
            continued = text[:-1]
            continue
        continued = ""
        commands.append(text)
    runs = []
    for text in commands:
        parts = [part.strip() for part in text.split("|")]
        if len(parts) != 2 or not parts[1].startswith("FileCheck %s"):
            fail(path, f"not of the form 'COMMAND | FileCheck %s': {text}")
        prefix = re.search(r"--check-prefix[= ](\S+)", parts[1])
        unknown = re.sub(r"%s\b", "", parts[0])
        if re.search(r"(?<!\S)%\w", unknown):
            fail(path, f"only %s is known here: {text}")
        runs.append((parts[0], prefix.group(1) if prefix else "CHECK"))
    if not runs:
        fail(path, "there is no RUN line")
    return runs


def run(path, command, tools):
    words = [re.sub(r"%s$", path, word) for word in shlex.split(command)]
    if tools:
        words[0] = os.path.join(tools, words[0])
    try:
        result = subprocess.run(words, capture_output=True, text=True)
    except OSError as problem:
        fail(path, f"{words[0]} cannot be run: {problem.strerror}")
    if result.returncode != 0:
        fail(path, f"exit code {result.returncode}: {command}\n{result.stderr}")
    return result.stdout


def split_functions(output):
    """{name: its lines}, from `func.func` to the brace that ends it."""
    functions, name, indent = {}, None, ""
    for line in output.split("\n"):
        match = FUNCTION.match(line)
        if match and name is None:
            name = match.group(1)
            indent = line[:len(line) - len(line.lstrip())]
            functions[name] = []
        if name is not None:
            functions[name].append(line[len(indent):])
            if line == indent + "}" or (line.strip() and not line.rstrip().endswith("{")
                                        and len(functions[name]) == 1):
                name = None
    return functions


class Pattern:
    """Turns printed IR into FileCheck's patterns."""

    def __init__(self):
        self.names = {}

    def variable(self, value):
        known = value in self.names
        if not known:
            stem = re.sub(r"\W", "_", value).upper()
            self.names[value] = "V" + stem if stem[0].isdigit() else stem
        name = self.names[value]
        return f"%[[{name}]]" if known else f"%[[{name}:[a-zA-Z0-9_]+]]"

    def line(self, text):
        pieces, at = [], 0
        for match in VALUE.finditer(text):
            pieces.append(self.literal(text[at:match.start()]))
            pieces.append(self.variable(match.group(1)))
            at = match.end()
        return "".join(pieces) + self.literal(text[at:])

    @staticmethod
    def literal(text):
        text = text.replace("{{", "{{[{][{]}}").replace("[[", "{{\\[\\[}}")
        return re.sub(r"#map\d*\b", "#{{map[0-9]*}}", text)


def checks_of(name, lines, prefix):
    pattern = Pattern()
    head = lines[0].split("{")[0] if lines[0].rstrip().endswith("{") else lines[0]
    result = [f"// {prefix}-LABEL: @{name}("]
    arguments = head[head.index("@" + name) + len(name) + 1:].strip()
    if VALUE.search(arguments):
        result.append(f"// {prefix}-SAME: {pattern.line(arguments[1:].strip())}")
    width = len(prefix) + 6
    for line in lines[1:-1]:
        if line.strip():
            result.append(f"// {(prefix + '-NEXT:').ljust(width)}{pattern.line(line)}")
    return result


def update(path, tools):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    runs = read_runs(path, lines)
    prefixes = {prefix for _, prefix in runs}
    if len(prefixes) != len(runs):
        fail(path, "two RUN lines have the same prefix")
    old = re.compile(r"^//\s*(?:" + "|".join(map(re.escape, sorted(prefixes))) +
                     r")(?:-(?:LABEL|NEXT|SAME|NOT|DAG|COUNT-\d+|EMPTY))?:")
    outputs = [(split_functions(run(path, command, tools)), prefix)
               for command, prefix in runs]
    kept = [line for line in lines if not old.match(line)]
    result, written = [], 0
    for line in kept:
        match = FUNCTION.match(line)
        if match:
            for functions, prefix in outputs:
                found = functions.get(match.group(1))
                if found:
                    result += checks_of(match.group(1), found, prefix)
                    written += 1
        result.append(line)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(result))
    print(f"{path}: checks of {written} functions written")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="")
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    for path in options.tests:
        update(path, options.tools)


main()
