#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GGUF files beside llama.cpp, which reads them as they are.

  llama_cpp.py ATTUNE FOLDER [--types=Q4_0,Q8_0,Q4_K_M] [--prompt=128]
               [--tokens=32] [--rounds=3] [--threads=2]

Writes a GGUF file of TinyLlama's shape with random blocks for each type,
compiles it, and lets both programs read a prompt and write tokens, in turns,
each time as a new process: what a first prompt takes is part of it. llama.cpp is
that of node-llama-cpp (npm install -g --ignore-scripts node-llama-cpp, with
NODE_PATH=$(npm root -g)).
"""
import argparse
import itertools
import os
import random
import re
import statistics
import string
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, INNER, LAYERS, VOCAB, HEADS, KEY_HEADS = 2048, 5632, 22, 32000, 32, 4
# number, values and bytes of a block, places and values of its factors
TYPES = {"F32": (0, 1, 4, {}), "Q4_0": (2, 32, 18, {0: 0.004}),
         "Q8_0": (8, 32, 34, {0: 0.0004}),
         "Q4_K": (12, 256, 144, {0: 0.0002, 2: 0.0015}),
         "Q6_K": (14, 256, 210, {208: 0.00001})}


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def keys():
    letters = string.ascii_lowercase
    words = itertools.chain(*(map("".join, itertools.product(letters, repeat=n))
                              for n in range(1, 5)))
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    pieces += itertools.islice(words, VOCAB - len(pieces))
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCAB - 259)
    numbers = {"context_length": 2048, "embedding_length": WIDTH,
               "block_count": LAYERS, "feed_forward_length": INNER,
               "rope.dimension_count": WIDTH // HEADS,
               "attention.head_count": HEADS,
               "attention.head_count_kv": KEY_HEADS, "vocab_size": VOCAB}
    strings = {"general.architecture": "llama", "tokenizer.ggml.model": "llama"}
    result = [text(k) + struct.pack("<I", 8) + text(v)
              for k, v in strings.items()]
    result += [text("llama." + k) + struct.pack("<II", 4, v)
               for k, v in numbers.items()]
    result.append(text("llama.attention.layer_norm_rms_epsilon") +
                  struct.pack("<If", 6, 1e-5))
    for name, kind, raw in [
            ("tokens", 8, b"".join(map(text, pieces))),
            ("scores", 6, struct.pack(f"<{VOCAB}f", *range(0, -VOCAB, -1))),
            ("token_type", 5, struct.pack(f"<{VOCAB}i", *kinds))]:
        result.append(text("tokenizer.ggml." + name) +
                      struct.pack("<IIQ", 9, kind, VOCAB) + raw)
    return result


def tensors(mix):
    """Names, types and shapes; of Q4_K_M as llama.cpp mixes them."""
    def put(name, rows, columns, wide=False):
        kind = mix
        if mix == "Q4_K_M":
            kind = "Q6_K" if wide else "Q4_K"
        return name + ".weight", kind, (rows, columns)
    yield put("token_embd", VOCAB, WIDTH)
    yield "output_norm.weight", "F32", (WIDTH,)
    yield put("output", VOCAB, WIDTH, wide=True)
    key_width = WIDTH // HEADS * KEY_HEADS
    for i in range(LAYERS):
        edge = LAYERS // 8
        wide = i < edge or i >= LAYERS * 7 // 8 or (i - edge) % 3 == 2
        at = f"blk.{i}."
        for norm in "attn_norm", "ffn_norm":
            yield f"{at}{norm}.weight", "F32", (WIDTH,)
        yield put(at + "attn_q", WIDTH, WIDTH)
        yield put(at + "attn_k", key_width, WIDTH)
        yield put(at + "attn_v", key_width, WIDTH, wide)
        yield put(at + "attn_output", WIDTH, WIDTH)
        yield put(at + "ffn_gate", INNER, WIDTH)
        yield put(at + "ffn_up", INNER, WIDTH)
        yield put(at + "ffn_down", WIDTH, INNER, wide)


def values(kind, shape):
    _, block, size, factors = TYPES[kind]
    count = 1
    for length in shape:
        count *= length
    if kind == "F32":
        return struct.pack(f"<{count}f", *[1.0] * count)
    raw = bytearray(os.urandom(count // block * size))
    for place, factor in factors.items():
        for i, byte in enumerate(struct.pack("<e", factor)):
            raw[place + i::size] = bytes([byte]) * (count // block)
    return raw


def write(path, mix):
    infos, sizes, at = [], [], 0
    for name, kind, shape in tensors(mix):
        number, block, size, _ = TYPES[kind]
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        infos.append(text(name) + struct.pack(
            f"<I{len(shape)}QIQ", len(shape), *shape[::-1], number, at))
        sizes.append(count // block * size)
        at += sizes[-1] + -sizes[-1] % 32
    meta = keys()
    head = (b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(meta)) +
            b"".join(meta + infos))
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for (_, kind, shape), size in zip(tensors(mix), sizes):
            file.write(values(kind, shape) + bytes(-size % 32))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("attune")
    parser.add_argument("folder")
    parser.add_argument("--types", default="Q4_0,Q8_0,Q4_K_M")
    for name, value in ("prompt", 128), ("tokens", 32), ("rounds", 3), ("threads", 2):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    draw = random.Random(1)
    ids = ",".join(str(draw.randrange(300, VOCAB)) for _ in range(options.prompt))
    threads, tokens = str(options.threads), options.tokens

    def run(*command):
        return subprocess.run(command, check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def attune(product):
        said = run(product, "generate", "--prompt-ids=" + ids, "--stats",
                   f"--max-new-tokens={tokens + 1}", "--ignore-eos",
                   "--threads=" + threads).stderr
        seconds = re.findall(r"in ([0-9.]+) s", said)
        return [float(s) for s in seconds[:2]]

    def llama(file):
        said = run("node", os.path.join(HERE, "llama_cpp.js"), file, threads,
                   ids, str(tokens)).stdout
        return [float(s) for s in said.split()]

    print(f"tokens/s, {threads} threads: a first prompt of {options.prompt}, "
          f"then {tokens} tokens")
    for mix in options.types.split(","):
        file = os.path.join(options.folder, mix + ".gguf")
        product = os.path.join(options.folder, mix)
        write(file, mix)
        run(options.attune, "compile", file, "-o", product)
        rounds = [(attune(product), llama(file)) for _ in range(options.rounds)]
        for name, count, i in ("prompt", options.prompt, 0), ("tokens", tokens, 1):
            ours, theirs = ([count / one[who][i] for one in rounds]
                            for who in (0, 1))
            ratio = statistics.median(a / b for a, b in zip(ours, theirs))
            print(f"{mix:8}{name:8}attune {statistics.median(ours):7.1f}   "
                  f"llama.cpp {statistics.median(theirs):7.1f}   {ratio:.2f}x")


if __name__ == "__main__":
    main()
