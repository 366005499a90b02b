#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare tensors in safetensors files; needs nothing but Python.

  compare_safetensors.py CASE_DIR GOT          against CASE_DIR/fixtures.safetensors
                                               with the tolerances of CASE_DIR/case.json
  compare_safetensors.py REFERENCE GOT --atol A [--rtol R]
  compare_safetensors.py REFERENCE GOT --exact the same bits

Tensors are matched by name; `--map GOT=REFERENCE` compares under another name.
Every name given by `--require` must be there. Without it every tensor of GOT
that the reference knows is compared, and comparing none is a failure. Floats
pass when |got - ref| <= K * (atol + rtol * |ref|), K from --loose; integers must
be equal. Where a case masks positions (attention_mask 0, padded rows), only the
others count. Exit status 0: all passed; 1: a mismatch; 2: bad usage or file.
"""
import argparse
import array
import json
import math
import os
import struct
import sys

FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i",
           "I16": "h", "I8": "b", "U64": "Q", "U32": "I", "U16": "H",
           "U8": "B", "BOOL": "B", "BF16": "H"}


class Tensor:
    def __init__(self, dtype, shape, raw):
        self.dtype, self.shape, self.raw = dtype, shape, raw
        self.is_float = dtype in ("F64", "F32", "F16", "BF16")

    def values(self):
        code = FORMATS[self.dtype]
        if code == "e":
            return struct.unpack("<%de" % (len(self.raw) // 2), self.raw)
        values = array.array(code, self.raw)
        if self.dtype == "BF16":
            wide = array.array("I", (v << 16 for v in values))
            return array.array("f", wide.tobytes())
        return values


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = Tensor(entry["dtype"], entry["shape"],
                                   raw[8 + size + begin:8 + size + end])
    return tensors


def rows_that_count(name, shape, reference, where):
    """One flag per row of the two leading axes, or None for all of them."""
    def flags(mask, keep):
        if mask in reference and reference[mask].shape == shape[:2]:
            return [(v != 0) == keep for v in reference[mask].values()]
        return None
    if name.startswith("leftpad."):
        return flags("leftpad.attention_mask", True)
    if name == "memory":
        return flags("src_key_padding_mask", False)
    if where.startswith("not ") and name == "out":
        return flags(where[4:], False)
    if where == "attention_mask" or "encoder" in name:
        return flags("attention_mask", True)
    return None


def compare(name, got, want, atol, rtol, keep):
    """Returns (what is wrong or "", the largest difference)."""
    if got.shape != want.shape:
        return f"has shape {got.shape}, expected {want.shape}", 0.0
    left, right = got.values(), want.values()
    if not want.is_float:
        differing = [i for i, (a, b) in enumerate(zip(left, right)) if a != b]
        if not differing:
            return "", 0.0
        first = differing[0]
        return (f"{len(differing)} of {len(right)} differ, first at {first}: "
                f"{left[first]}, expected {right[first]}"), float(len(differing))
    inner = len(right) // len(keep) if keep else 1
    largest, wrong = 0.0, ""
    for i, (a, b) in enumerate(zip(left, right)):
        if keep and not keep[i // inner]:
            continue
        if a == b:
            continue
        difference = abs(a - b)
        if math.isfinite(difference):
            largest = max(largest, difference)
        # Written so that a NaN on either side fails.
        if not difference <= atol + rtol * abs(b) and not wrong:
            wrong = f"{a!r} where {b!r} is expected, at element {i}"
    return wrong, largest


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("got")
    parser.add_argument("--atol", type=float)
    parser.add_argument("--rtol", type=float, default=0.0)
    parser.add_argument("--loose", type=float, default=1.0, metavar="K")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--map", action="append", default=[], metavar="GOT=REF")
    parser.add_argument("--require", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    case, path = {}, options.reference
    if os.path.isdir(path):
        with open(os.path.join(path, "case.json"), encoding="utf-8") as file:
            case = json.load(file)
        path = os.path.join(path, "fixtures.safetensors")
    elif not options.exact and options.atol is None:
        parser.error("comparing two files needs --atol or --exact")
    try:
        reference, got = load(path), load(options.got)
    except (OSError, ValueError, KeyError, struct.error) as problem:
        print(f"compare_safetensors: {problem}", file=sys.stderr)
        return 2
    renamed = dict(pair.split("=", 1) for pair in options.map)
    tolerances = case.get("tolerance", {})
    fallback = (tolerances.get("logits") or
                next(iter(tolerances.values()), {"atol": 0.0}))
    passed = failed = 0
    for name in options.require:
        if name not in got:
            print(f"FAIL {name}: not in {options.got}")
            failed += 1
    for name in sorted(got):
        other = renamed.get(name, name)
        if other not in reference:
            if name in options.require or options.exact:
                print(f"FAIL {name}: the reference has no '{other}'")
                failed += 1
            continue
        if options.exact:
            same = (got[name].dtype, got[name].shape, got[name].raw) == (
                reference[other].dtype, reference[other].shape,
                reference[other].raw)
            wrong, note = "" if same else "the bits differ", "same bits"
        else:
            rule = tolerances.get(other, fallback)
            atol = options.atol if options.atol is not None else rule["atol"]
            rtol = options.rtol or rule.get("rtol", 0.0)
            keep = rows_that_count(other, reference[other].shape, reference,
                                   case.get("compare_where", ""))
            wrong, largest = compare(name, got[name], reference[other],
                                     options.loose * atol,
                                     options.loose * rtol, keep)
            note = f"largest difference {largest:.3g}, allowed {atol:.2g}"
        print(f"FAIL {name}: {wrong}" if wrong else f"ok   {name}: {note}")
        failed, passed = failed + bool(wrong), passed + (not wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
