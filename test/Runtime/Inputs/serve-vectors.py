# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-vectors.py PRODUCT WHOLE SEA: vectors of "A fox" without an adapter and with
the adapter sea, beside the files that hold them."""

import array
import json
import struct
import sys

import serving


def read(path):
    with open(path, "rb") as file:
        raw = file.read()
    size, = struct.unpack("<Q", raw[:8])
    entry = json.loads(raw[8:8 + size])["embeddings"]
    begin, end = entry["data_offsets"]
    kind = {"F32": "f", "F64": "d"}[entry["dtype"]]
    return array.array(kind, raw[8 + size + begin:8 + size + end])


def check(name, wanted, answers):
    fields = {"model": name} if name else {}
    reply = server.post("/v1/embeddings", {"input": "A fox", **fields})
    vector = reply["data"][0]["embedding"]
    assert reply["model"] == answers, reply["model"]
    assert len(vector) == len(wanted)
    assert max(abs(a - b) for a, b in zip(vector, wanted)) < 1e-6


whole, sea = read(sys.argv[2]), read(sys.argv[3])
assert max(abs(a - b) for a, b in zip(whole, sea)) > 1e-3
with serving.Server([sys.argv[1]]) as server:
    _, _, models = server.request("GET", "/v1/models")
    base = models["data"][0]["id"]
    # One after the other: none keeps the adapter of the one before.
    check("", whole, base)
    check("sea", sea, "sea")
    check(base, whole, base)
    print("ok none")
    check("sea", sea, "sea")
    print("ok sea")
    server.stop()
with serving.Server([sys.argv[1]], "--adapter=sea") as server:
    check("", sea, "sea")
    check(base, whole, base)
    print("ok chosen")
    reply = server.post("/v1/embeddings", {"input": "A fox", "model": "owl"}, status=404)
    assert "it has sea" in reply["error"]["message"], reply
    print("ok unknown")
    server.stop()
