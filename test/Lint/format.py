"""Checks C++ sources against the pinned clang-format, or rewrites them.

Usage: format.py CLANG_FORMAT ROOT [--fix]
"""

import os
import re
import subprocess
import sys

import tree

TITLE = re.compile(r"^//===-+ (.*?)[ -]*(-\*- C(?:\+\+)? -\*-)?[ -]*===-*//$")
WIDTH = 80


def title(line):
    """The first line of a file, padded to the full width with dashes."""
    match = TITLE.match(line)
    if not match:
        return line
    text, mode = match.group(1), match.group(2) or ""
    for tail in (mode + "===//", "===//"):
        dashes = WIDTH - len("//===- ") - len(text) - len(" ") - len(tail)
        if dashes >= 1:
            return f"//===- {text} {'-' * dashes}{tail}"
    return line


def fix_titles(root, names):
    for name in names:
        text = tree.read(root, name)
        first, newline, rest = text.partition("\n")
        if title(first) != first:
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(title(first) + newline + rest)


def main():
    tool, root = sys.argv[1:3]
    fix = "--fix" in sys.argv[3:]
    names = [name for name in tree.files(root)
             if name.endswith(tree.CXX) and not tree.is_data(name)]
    errors = []
    if fix:
        fix_titles(root, names)
    for start in range(0, len(names), 16):
        batch = [os.path.join(root, name) for name in names[start:start + 16]]
        mode = ["-i"] if fix else ["--dry-run", "-Werror"]
        result = subprocess.run([tool, "--style=file"] + mode + batch,
                                capture_output=True, text=True)
        if result.returncode:
            errors += result.stderr.splitlines()
    places = {error.split(":")[0] for error in errors if ": error:" in error}
    if errors and not places:
        sys.exit("\n".join(errors))
    tree.finish(len(names), "files", [
        f"{os.path.relpath(name, root)}: not formatted; run ninja -C BUILD format"
        for name in sorted(places)])


if __name__ == "__main__":
    main()
