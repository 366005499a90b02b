"""Checks that the reference says of each op what a reader needs.

Usage: ops.py ROOT

A description has a formula (in backquotes or a block), says what rounds (a
sentence with "round" in it, or that nothing is computed), shows an example that
uses the op (a ```mlir block), and names its source ("Source: ...").
"""

import re
import sys

import tree

OP = re.compile(r'^def \w+ : Attune_\w*Op<"(\w+)".*?^  let description = \[\{(.*?)\}\];',
                re.MULTILINE | re.DOTALL)
START = re.compile(r'^def \w+ : Attune_\w*Op<"(\w+)"', re.MULTILINE)


def lacks(name, text):
    example = "".join(re.findall(r"```mlir(.*?)```", text, re.DOTALL))
    prose = re.sub(r"```mlir.*?```", "", text, flags=re.DOTALL)
    if not re.search(r"`[^`]*[=<(+*|][^`]*`|```", prose):
        yield "a formula"
    if not re.search(r"\b[Rr]ound|[Nn]othing is computed", prose):
        yield "what rounds (\"Rounds ...\" or \"Nothing is computed\")"
    if "attune." + name not in example:
        yield "an example (```mlir)"
    if not re.search(r"^\s*Source: \S", prose, re.MULTILINE):
        yield "its source (\"Source: ...\")"


def main():
    root = sys.argv[1]
    errors, checked = [], 0
    for name in tree.files(root):
        if not name.endswith(".td") or not name.startswith("dialects/"):
            continue
        text = tree.read(root, name)
        found = {match.group(1): match for match in OP.finditer(text)}
        for start in START.finditer(text):
            checked += 1
            op = start.group(1)
            line = text.count("\n", 0, start.start()) + 1
            if op not in found or found[op].start() != start.start():
                errors.append(f"{name}:{line}: {op} has no description")
                continue
            for part in lacks(op, found[op].group(2)):
                errors.append(f"{name}:{line}: the description of {op} lacks {part}")
    tree.finish(checked, "ops", errors)


if __name__ == "__main__":
    main()
