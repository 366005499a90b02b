# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""with-tokenizer.py FAKE_MODEL_C TOKENIZER_JSON OUT_C

Gives the hand-written model a tokenizer of 1,024 tokens.
"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    source = file.read()
with open(sys.argv[2], encoding="utf-8") as file:
    tokenizer = json.dumps(json.dumps(json.load(file)))
literal = json.dumps('"tokenizer_json":' + tokenizer + ",")
source = source.replace('\\"max\\":16', '\\"max\\":1024')
source = source.replace('[\\"batch\\",16]', '[\\"batch\\",1024]')
source = source.replace('"\\"inspect\\":', literal + '\n  "\\"inspect\\":')
with open(sys.argv[3], "w", encoding="utf-8") as file:
    file.write(source)
