#!/usr/bin/env python3
"""Writes EntityTable.inc: the named characters of HTML 5, as Python has them.

  python3 GenerateEntityTable.py > EntityTable.inc
"""

import html.entities


def main():
    print("// Made by GenerateEntityTable.py; do not edit.")
    print("// clang-format off")
    print("// Names in the order of their bytes: a name, \\001, what it stands")
    print("// for, \\002.")
    print("static const char entityTable[] =")
    line = ""
    for name, text in sorted(html.entities.html5.items()):
        escaped = "".join(f"\\{byte:03o}" for byte in text.encode())
        entry = f"{name}\\001{escaped}\\002"
        if line and len(line) + len(entry) > 110:
            print(f'    "{line}"')
            line = ""
        line += entry
    print(f'    "{line}";')


if __name__ == "__main__":
    main()
