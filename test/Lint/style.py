"""Checks what a formatter does not: headers, lengths, whitespace, leftovers.

Usage: style.py ROOT
"""

import re
import sys

import tree

MAX_LINES = 800
MAX_README_LINES = 60
LICENSED = (".cpp", ".h", ".c", ".td")
SPDX = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
# cl::opt belongs to the mains: a library with global flags has hidden inputs.
FLAG = re.compile(r"\bcl::(opt|list|bits|alias)\b")
LEFTOVERS = [
    (re.compile(r"DO NOT " r"SUBMIT", re.IGNORECASE), "marked as not to submit"),
    (re.compile(r"\bTODO(?!\(#\d+\))"), "TODO without an issue: TODO" r"(#12)"),
    (re.compile(r"\b(?:FIX" r"ME|XX" r"X)\b"), "leftover marker"),
]


def check_file(name, text, errors):
    lines = text.split("\n")
    base = name.split("/")[-1]
    if name.endswith(LICENSED) and not name.startswith("test/"):
        head = "\n".join(lines[:12])
        if SPDX not in head:
            errors.append(f"{name}:1: no license header ('{SPDX}')")
        elif f"===- {base} " not in lines[0]:
            errors.append(f"{name}:1: the header's first line names another file")
    if name.startswith(("lib/", "include/", "dialects/")) and FLAG.search(text):
        errors.append(f"{name}:1: command-line flags belong to tools/; a pass "
                      "takes options")
    if len(lines) - 1 > MAX_LINES:
        errors.append(f"{name}:{MAX_LINES + 1}: {len(lines) - 1} lines; split "
                      f"files before {MAX_LINES}")
    if text and not text.endswith("\n"):
        errors.append(f"{name}:{len(lines)}: no newline at the end")
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            errors.append(f"{name}:{number}: tab")
        if line != line.rstrip():
            errors.append(f"{name}:{number}: trailing whitespace")
        if name == "test/Lint/style.py":
            continue
        for pattern, message in LEFTOVERS:
            if pattern.search(line):
                errors.append(f"{name}:{number}: {message}")


def check_examples(root, names, errors):
    for folder in {name.split("/")[1] for name in names
                   if name.startswith("examples/") and name.count("/") > 1}:
        readme = f"examples/{folder}/README.md"
        if readme not in names:
            errors.append(f"examples/{folder}:1: an example needs a README.md")
        elif tree.read(root, readme).count("\n") > MAX_README_LINES:
            errors.append(f"{readme}:{MAX_README_LINES + 1}: longer than a page")


def main():
    root, errors, checked = sys.argv[1], [], 0
    names = tree.files(root)
    for name in names:
        if tree.is_data(name):
            continue
        try:
            text = tree.read(root, name)
        except UnicodeDecodeError:
            errors.append(f"{name}:1: neither UTF-8 text nor known data")
            continue
        checked += 1
        check_file(name, text, errors)
    check_examples(root, set(names), errors)
    tree.finish(checked, "files", errors)


if __name__ == "__main__":
    main()
