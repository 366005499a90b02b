"""Checks pages against the tree, and gives out what it shows.

Usage: readme.py paths ROOT    every path named in a page (.md) exists
       readme.py json ROOT     prints the description shown in README.md
"""

import os
import re
import sys

import tree

# Paths from the top of the tree, in code quotes or code blocks.
PATH = re.compile(r"(?<![\w./<-])(?:\.ci|dialects|examples|include|lib|test|tools)"
                  r"/[\w./-]*\w")


def main():
    what, root = sys.argv[1:3]
    if what == "json":
        print(re.search(r"^```json\n(.*?)^```", tree.read(root, "README.md"),
                        re.MULTILINE | re.DOTALL).group(1))
        return
    errors, checked = [], 0
    for name in tree.files(root):
        if not name.endswith(".md"):
            continue
        checked += 1
        for number, line in enumerate(tree.read(root, name).splitlines(), 1):
            for path in PATH.findall(line):
                here = os.path.join(root, os.path.dirname(name), path)
                if not os.path.exists(os.path.join(root, path)) and \
                        not os.path.exists(here):
                    errors.append(f"{name}:{number}: {path} does not exist")
    tree.finish(checked, "READMEs", errors)


if __name__ == "__main__":
    main()
