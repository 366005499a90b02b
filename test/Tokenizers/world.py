# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RWKV's World vocabulary: of the tokens that the rest of a text begins with,
the longest is next.

    python3 world.py FOLDER COMMAND...

COMMAND is `attune tokenize`. The vocabulary has all bytes, parts of the texts
of kinds.py, as text or bytes as Python writes them, and is searched here byte
by byte.
"""
import os
import random
import sys

import kinds
from conversions import Folder, check


def vocabulary(texts):
    draw = random.Random(11)
    tokens = [bytes([i]) for i in range(256)]
    known = set(tokens)
    for text in texts:
        raw = text.encode()
        for _ in range(4):
            size = draw.choice((2, 3, 4, 6, 9, 17))
            at = draw.randrange(max(1, len(raw) - size))
            part = raw[at:at + size]
            if len(part) > 1 and part not in known:
                known.add(part)
                tokens.append(part)
    return tokens


def spelled(token):
    try:
        return repr(token.decode())
    except UnicodeDecodeError:
        return repr(token)


def ids(text, numbers, longest):
    raw, found, at = text.encode(), [], 0
    while at < len(raw):
        size = next(n for n in range(longest, 0, -1) if raw[at:at + n] in numbers)
        found.append(numbers[raw[at:at + size]])
        at += len(raw[at:at + size])
    return found


def main():
    root, *command = sys.argv[1:]
    folder = Folder(root, command)
    tokens = vocabulary(list(kinds.texts(300, 7)))
    numbers = {token: i + 1 for i, token in enumerate(tokens)}
    folder.write("rwkv_vocab_v20230424.txt", "".join(
        f"{i} {spelled(token)} {len(token)}\n" for token, i in numbers.items()))
    texts = list(kinds.texts(500, 3))
    longest = max(map(len, tokens))
    want = [",".join(map(str, ids(text, numbers, longest))) for text in texts]
    return 0 if check("world", want, folder.ids(texts)) else 1


if __name__ == "__main__":
    sys.exit(main())
