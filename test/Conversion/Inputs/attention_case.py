"""Fills in attention-against-chain.mlir; prints the result.

Usage: attention_case.py [key=value]...

Keys are the defaults below. `mask=batch` is one row of keys for each batch,
`mask=rows` one for each query as well, `mask=heads` one for each head too;
`blocks=[rows, columns]` hides some blocks of these sizes, and `block-heads=all`
others for each head. `with=` lists further operands: bias, diagonals, slopes,
sinks, and lengths, which are more than all keys, then half, then none.
`stored` is the type of keys and values where it is not that of queries.
"""

import os
import sys

case = {
    "batch": "1", "heads": "2", "kv": "1", "queries": "33", "keys": "33",
    "width": "24", "values": "", "type": "f32", "stored": "", "mask": "", "with": "",
    "attrs": "", "blocks": "", "block-heads": "1", "scale": "0.25", "spread": "1.0", "tolerance": "2.0e-6",
}
for argument in sys.argv[1:]:
    key, _, value = argument.partition("=")
    if key not in case:
        sys.exit(f"{key} is none of {', '.join(case)}")
    case[key] = value

heads = case["heads"]
mask_heads = heads if case["mask"] == "heads" else "1"
mask_rows = "1" if case["mask"] == "batch" else "?"
extra = case["with"].split(",") if case["with"] else []
operands = []
if case["mask"]:
    operands.append(f"mask %mask : tensor<?x{mask_heads}x{mask_rows}x?xi1>")
if "lengths" in extra:
    operands.append("lengths %lengths : tensor<?xi64>")
block_heads = heads if case["block-heads"] == "all" else "1"
if case["blocks"]:
    operands.append(f"blocks %blocks of {case['blocks']} : "
                    f"tensor<?x{block_heads}x?x?xi1>")
block_sizes = case["blocks"].strip("[]").split(",") if case["blocks"] else "11"
if "bias" in extra:
    operands.append(f"bias %bias : tensor<1x{heads}x?x?xf32>")
if "diagonals" in extra:
    operands.append(f"diagonals %diagonals : tensor<{heads}x?xf32>")
if "slopes" in extra:
    operands.append(f"slopes %slopes : tensor<{heads}xf32>")
stored = case["stored"] or case["type"]


def conversions(narrow, widen, kind):
    """From f32 and back, and the types that they say."""
    wide = kind == "f32"
    return {narrow: "arith.bitcast" if wide else "arith.truncf",
            f"{narrow}TYPES": f": f32 to {kind}",
            widen: "arith.bitcast" if wide else "arith.extf",
            f"{widen}TYPES": f": {kind} to f32"}


words = {
    "HQ": heads, "HKV": case["kv"], "DQK": case["width"],
    "DV": case["values"] or case["width"], "ELEM": case["type"],
    "MASKHEADS": mask_heads, "MASKROWS": mask_rows,
    "MASKSIZE": "1" if mask_rows == "1" else "%queries",
    "OPERANDS": " ".join(operands), "BLOCKHEADS": block_heads,
    "BLOCKROWS": block_sizes[0], "BLOCKCOLUMNS": block_sizes[1].strip(),
    "SINKS": f"sinks %sinks : tensor<{heads}xf32>" if "sinks" in extra else "",
    "ATTRIBUTES": case["attrs"], "SCALE": case["scale"],
    "BATCH": case["batch"], "QUERIES": case["queries"], "KEYS": case["keys"],
    "SPREAD": case["spread"], "TOLERANCE": case["tolerance"],
    "STORED": stored, **conversions("NARROW", "WIDEN", case["type"]),
    **conversions("STORE", "TAKE", stored),
}
template = os.path.join(os.path.dirname(__file__), "attention-against-chain.mlir")
with open(template) as file:
    text = file.read()
for word, value in words.items():
    text = text.replace(f"@{word}@", value)
sys.stdout.write(text)
