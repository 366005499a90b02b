#!/usr/bin/env python3
"""Writes CaseTables.inc: case and classes of characters as Python has them.

  python3 GenerateCaseTables.py > CaseTables.inc
"""

import sys
import unicodedata

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def classes(test):
    ranges, start = [], None
    for c in range(0x110001):
        inside = c < 0x110000 and not 0xD800 <= c < 0xE000 and test(chr(c))
        if inside and start is None:
            start = c
        elif not inside and start is not None:
            ranges.append((start, c - 1))
            start = None
    return ranges


def mapping(change):
    """Runs of characters that move by the same distance, and the rest."""
    runs, special = [], []
    for c in CODES:
        to = change(chr(c))
        if to == chr(c):
            continue
        if len(to) != 1:
            special.append((c, to))
            continue
        delta = ord(to) - c
        if runs:
            first, last, stride, known = runs[-1]
            gap = c - last
            if known == delta and gap <= 2 and (stride in (0, gap)):
                runs[-1] = (first, c, gap, delta)
                continue
        runs.append((c, c, 0, delta))
    return [(a, b, s or 1, d) for a, b, s, d in runs], special


def table(name, kind, rows):
    print(f"static const {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > 80:
            print(line)
            line = "   "
        line += f" {row},"
    print(line)
    print("};")


def escape(text):
    return '"' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"'


def main():
    print("// Made by GenerateCaseTables.py of Unicode "
          f"{unicodedata.unidata_version}; do not edit.")
    print("// clang-format off")
    for name, test in (
        ("casedClass", lambda c: unicodedata.category(c) in ("Lu", "Ll", "Lt")
         or c.islower() or c.isupper()),
        ("alphaClass", str.isalpha),
        ("printableClass", str.isprintable),
    ):
        rows = [f"{{0x{a:x}, 0x{b:x}}}" for a, b in classes(test)]
        table(name, "CodeRange", rows)
    for name, change in (("upper", str.upper), ("lower", str.lower),
                         ("title", str.title)):
        runs, special = mapping(change)
        table(name + "Runs", "CaseRun",
              [f"{{0x{a:x}, 0x{b:x}, {s}, {d}}}" for a, b, s, d in runs])
        table(name + "Special", "CaseSpecial",
              [f"{{0x{c:x}, {escape(to)}}}" for c, to in special])
    print("// clang-format on")


sys.exit(main())
