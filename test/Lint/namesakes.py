"""Checks that a type in a named namespace is defined in one place.

Two classes of one qualified name in one program break the one-definition rule:
the linker keeps one destructor and drops the other, without a word. Types in
unnamed namespaces and in functions may share names. Programs and plugins of
`examples` and `test` are compared with the compiler, not with each other.
Usage: namesakes.py ROOT
"""

import re
import sys

import tree

HOUSE = ("lib/", "include/", "dialects/", "tools/")

# Comments, strings and characters, which may hold braces.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
NAMESPACE = re.compile(r"\bnamespace(?:\s+([\w:]+))?\s*$")
# What stands before the brace of a definition. A specialisation does not match:
# its name is the primary template's.
TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:\[\[[^\]]*\]\]\s*|[A-Z_]+\([^)]*\)\s*)?"
    r"(?P<name>\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)


def blank(match):
    """Keeps the lines of what is taken out."""
    return " " + "\n" * match.group(0).count("\n")


def types(text):
    """Yields (line, qualified name) of the types defined in `text`."""
    text = DIRECTIVE.sub(blank, OPAQUE.sub(blank, text))
    scopes = []  # a namespace's name, "" for unnamed ones, None for the rest
    start = 0
    for match in re.finditer(r"[{};]", text):
        if match.group() == "{":
            head = text[start:match.start()]
            scope = None
            namespace = NAMESPACE.search(head)
            if namespace:
                scope = namespace.group(1) or ""
            elif all(scopes):
                found = TYPE.search(head)
                if found:
                    line = text.count("\n", 0, start + found.start("name")) + 1
                    yield line, "::".join(scopes + [found["name"]])
            scopes.append(scope)
        elif match.group() == "}" and scopes:
            scopes.pop()
        start = match.end()


def main():
    root, errors, checked = sys.argv[1], [], 0
    first = {}
    names = [name for name in tree.files(root)
             if name.endswith(tree.CXX) and not tree.is_data(name)]
    for name in sorted(names, key=lambda name: not name.startswith(HOUSE)):
        checked += 1
        for line, qualified in types(tree.read(root, name)):
            if qualified in first:
                errors.append(f"{name}:{line}: {qualified} is defined in "
                              f"{first[qualified]}, too; rename one")
            elif name.startswith(HOUSE):
                first[qualified] = f"{name}:{line}"
    tree.finish(checked, "files", sorted(errors))


if __name__ == "__main__":
    main()
