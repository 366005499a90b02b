# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""hostile.py FOLDER ATTUNE [large]: files that ask for too much.

Each is read with 1 GiB of address space and a minute of processor time. It must end with
exit code 0 or 1, and with the message that the table states if that is 1.
"""
import base64
import itertools
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "lib"))
import limited

SMALL = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}


def tokenizer(**parts):
    return {"tokenizer.json": json.dumps({"model": SMALL, **parts})}


def split(pattern):
    return tokenizer(pre_tokenizer={
        "type": "Split", "pattern": {"Regex": pattern},
        "behavior": "Isolated", "invert": False})


def varint(number):
    out = b""
    while True:
        out += bytes([number & 127 | (128 if number > 127 else 0)])
        number >>= 7
        if not number:
            return out


def piece(text):
    body = b"\x0a" + varint(len(text)) + text + b"\x15" + struct.pack("<f", 0)
    return b"\x0a" + varint(len(body)) + body


def every_text(letters, count):
    lengths = (itertools.product(letters, repeat=n) for n in itertools.count(1))
    return itertools.islice(itertools.chain.from_iterable(lengths), count)


def ranks(tokens):
    return {"x.tiktoken": "".join(
        base64.b64encode(token).decode() + f" {i}\n"
        for i, token in enumerate(tokens))}


def small_cases():
    """Name, files, text, the message or None for success."""
    long = "a" * 30000 + "b"
    steps = "takes too many steps on this text"
    yield "catastrophe", split("(a+)+$"), long, steps
    yield "alternatives", split("(a|aa)+$"), long, steps
    yield "look-ahead", split("(?=(a+))\\w*c|(a*)*c"), long, steps
    yield ("counts", split("((a{0,60000})*){0,60000}"), "a",
           "too large when its counts are written out")
    yield ("long pattern", split("a" * 200000), "a",
           "a pattern of more than 65536 bytes")
    yield ("deep pattern", split("(" * 30000 + "a" + ")" * 30000), "a",
           "groups nested deeper than 50")
    yield ("deep file", {"tokenizer.json": '{"model":' + "[" * 1000000}, "a",
           "nested deeper than 64 levels")
    yield ("growing text", tokenizer(normalizer={
        "type": "Sequence", "normalizers": 12 * [
            {"type": "Replace", "pattern": {"String": "a"},
             "content": "a" * 100}]}), "aaaa",
        "the normalizers make more than 4194320 bytes of this text")
    nest = {"type": "NFC"}
    for _ in range(25):
        nest = {"type": "Sequence", "normalizers": [nest]}
    yield ("deep normalizer", tokenizer(normalizer=nest), "a",
           "more than 9 times a 'Sequence' within another")
    yield "empty file", {"tokenizer.json": ""}, "a", "the file is empty"
    yield ("growing row", tokenizer(post_processor={
        "type": "TemplateProcessing", "special_tokens": {}, "pair": [],
        "single": 100000 * [{"Sequence": {"id": "A", "type_id": 0}}]}), "a",
        "'single' has more than 8 texts or 4096 tokens")
    yield ("padding", tokenizer(padding={
        "strategy": {"Fixed": 10 ** 15}, "direction": "Right", "pad_id": 0,
        "pad_type_id": 0, "pad_token": "a"}), "a",
        "'padding' has a value that is not a number of tokens")
    yield ("charsmap", tokenizer(normalizer={
        "type": "Precompiled", "precompiled_charsmap": base64.b64encode(
            struct.pack("<I", 1 << 20) + bytes(range(256)) * 4100).decode()}),
        "ab", None)
    yield ("largest id", {"tokenizer.json": json.dumps({"model": {
        "type": "BPE", "merges": [], "vocab": {"a": (1 << 22) - 1}}})}, "a",
        None)
    yield ("long word", {"tokenizer.json": json.dumps({"model": {
        "type": "WordPiece", "unk_token": "u", "vocab": {
            "u": 0, "a": 1, "##a": 2}, "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 10 ** 8}})}, long, None)
    yield ("length of a piece", {
        "tokenizer.model": b"\x0a" + b"\xff" * 8 + b"\x7fabc"}, "a",
        "a SentencePiece model that is cut off or damaged at byte 10")
    yield ("long ranks", ranks(
        [bytes([i]) for i in range(256)] +
        [b"a" * i for i in range(2, 512)] +
        [b"a" * 500 + b"%05d" % i for i in range(2000)]), "a",
        "tokens so long that their merges take too many steps to find")
    yield ("values", {
        **tokenizer(), "tokenizer_config.json":
            '{"a":[' + "0," * 1100000 + "0]}"}, "a",
        "more than 1048576 values")


def large_cases():
    """Files near the limit of 128 MiB, or of 4,194,304 tokens."""
    hexes = ",".join(f'"{i:x}":{i}' for i in range(4000000))
    yield ("four million tokens", {"tokenizer.json":
           '{"model":{"type":"BPE","merges":[],"vocab":{' + hexes + "}}}"},
           "a", None)
    yield ("a long token", {"tokenizer.json":
           '{"model":{"type":"BPE","merges":[],"vocab":{"' + "a" * (100 << 20) +
           '":0}}}'}, "b", None)
    yield ("four million merges", {"tokenizer.json":
           '{"model":{"type":"BPE","vocab":{"a":0,"aa":1},"merges":[' +
           ",".join(['"a a"'] * 4000000) + "]}}"}, "a", None)
    yield ("lines", {"vocab.txt": "\n" * (120 << 20)}, "a",
           "more than 4194304 tokens")
    yield ("empty pieces", {"tokenizer.model": b"\x0a\x00" * (60 << 20)}, "a",
           "more than 4194304 pieces")
    yield ("merges of pieces", {"tokenizer.model": b"".join(
        piece(bytes(text)) for text in every_text(b"ab", 800000)) +
        b"\x12\x02\x18\x02"}, "a",
        "pieces that can be cut into two others in more than 4194304 ways")


def main():
    folder, attune = sys.argv[1:3]
    cases = list(large_cases() if sys.argv[3:] == ["large"] else small_cases())
    wrong = 0
    for name, files, text, message in cases:
        path = os.path.join(folder, name)
        os.makedirs(path)
        for file, content in files.items():
            if isinstance(content, str):
                content = content.encode()
            with open(os.path.join(path, file), "wb") as out:
                out.write(content)
        code, said = limited.run(
            [attune, "tokenize", path, "--text=" + text], seconds=60)
        for file in files:
            os.remove(os.path.join(path, file))
        good = code == 0 if message is None else (
            code == 1 and message in said and path in said)
        if not good:
            wrong += 1
            print(f"{name}: exit code {code}: {said[:300]}")
    print(len(cases), "files,", wrong, "wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
