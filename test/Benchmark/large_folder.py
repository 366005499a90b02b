#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a large model takes to compile, and how much memory.

  large_folder.py make DIR [LAYERS]     a folder of Llama-3.1-8B's shape with random
                                        weights in bf16, a file for each layer: 16 GB
  large_folder.py measure ATTUNE DIR    reads the folder, writes as many bytes as the
                                        product has, compiles to int4, says a token

Both are made and read piece by piece. Files are dropped from the page cache before
they are read, so that times are those of the disk.
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import time

WIDTH, HIDDEN, HEADS, KEY_HEADS, LAYERS, VOCABULARY = 4096, 14336, 32, 8, 32, 128256
PIECE = 16 << 20


def random_pool(size):
    """Numbers of bf16 between 1/128 and 1/32, of both signs."""
    source = random.Random(7)
    pool = bytearray(size)
    pool[0::2] = source.randbytes(size // 2)
    signs = bytes(0x3c | (value & 0x80) for value in range(256))
    pool[1::2] = source.randbytes(size // 2).translate(signs)
    return memoryview(bytes(pool))


def write_tensors(path, shapes, pool):
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2
        for count in shape:
            size *= count
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    turn = random.Random(path)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            begin, end = header[name]["data_offsets"]
            if len(shape) == 1:
                file.write(b"\x80\x3f" * shape[0])
                continue
            left = end - begin
            while left:
                # Any place of the pool begins other numbers.
                start = 2 * turn.randrange(len(pool) // 4)
                count = min(left, len(pool) - start, PIECE)
                file.write(pool[start:start + count])
                left -= count
    return list(header), at


def make(folder, layers):
    os.makedirs(folder)
    pool = random_pool(4 * PIECE)
    files, total = {}, 0

    def add(file, shapes):
        nonlocal total
        names, size = write_tensors(os.path.join(folder, file), shapes, pool)
        files.update((name, file) for name in names)
        total += size

    keys = WIDTH // HEADS * KEY_HEADS
    add("ends.safetensors", {"model.embed_tokens.weight": [VOCABULARY, WIDTH],
                             "model.norm.weight": [WIDTH],
                             "lm_head.weight": [VOCABULARY, WIDTH]})
    for layer in range(layers):
        add(f"layer-{layer}.safetensors", {f"model.layers.{layer}.{name}.weight": shape for name, shape in {
            "input_layernorm": [WIDTH], "post_attention_layernorm": [WIDTH],
            "self_attn.q_proj": [WIDTH, WIDTH], "self_attn.k_proj": [keys, WIDTH],
            "self_attn.v_proj": [keys, WIDTH], "self_attn.o_proj": [WIDTH, WIDTH],
            "mlp.gate_proj": [HIDDEN, WIDTH], "mlp.up_proj": [HIDDEN, WIDTH],
            "mlp.down_proj": [WIDTH, HIDDEN]}.items()})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": files}, file)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
            "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": layers,
            "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS, "vocab_size": VOCABULARY,
            "hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
            "rope_theta": 500000.0, "tie_word_embeddings": False, "attention_bias": False,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                             "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
            "bos_token_id": 128000, "eos_token_id": 128001}, file)
    print(f"{total / 1e9:.1f} GB")


def forget(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def weights_of(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".safetensors")]


def seconds_to_read(paths):
    for path in paths:
        forget(path)
    start = time.monotonic()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.read(PIECE):
                pass
    return time.monotonic() - start


def seconds_to_write(path, size):
    piece, start = os.urandom(PIECE), time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for at in range(0, size, PIECE):
            file.write(piece[:size - at])
        os.fsync(file.fileno())
    passed = time.monotonic() - start
    os.remove(path)
    return passed


def run(command):
    """Its output, seconds, and the most memory that it had, without and with pages of files."""
    start, most, resident = time.monotonic(), 0, 0
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while child.poll() is None:
        try:
            with open(f"/proc/{child.pid}/status") as file:
                status = dict(re.findall(r"(\w+):\s+(\d+) kB", file.read()))
            most = max(most, int(status.get("RssAnon", 0)))
            resident = max(resident, int(status.get("VmHWM", 0)))
        except OSError:
            pass
        time.sleep(0.02)
    passed = time.monotonic() - start
    if child.returncode:
        raise SystemExit(f"{command[:2]} failed")
    return child.stdout.read(), passed, f"{most / 1e6:.2f} GB of memory ({resident / 1e6:.2f} with pages of files)"


def measure(attune, folder):
    product, paths = os.path.join(folder, "product"), weights_of(folder)
    for path in paths:
        forget(path)
    _, compiling, memory = run([attune, "compile", folder, "--quantize=int4", "-o", product])
    size, start = os.path.getsize(product), time.monotonic()
    with open(product, "rb") as file:
        os.fsync(file.fileno())
    compiling += time.monotonic() - start
    reading = seconds_to_read(paths)
    writing = seconds_to_write(product + ".other", size)
    print(f"reading {sum(map(os.path.getsize, paths)) / 1e9:.1f} GB: {reading:.1f} s, "
          f"writing {size / 1e9:.1f} GB: {writing:.1f} s")
    print(f"compiling: {compiling:.1f} s, {compiling / (reading + writing):.2f} times that; {memory}")
    token, passed, memory = run([product, "generate", "--prompt-ids=128000,9906", "--max-new-tokens=1", "--greedy",
                                 "--ignore-eos", "--format=ids"])
    print(f"first token {token.strip()}: {passed:.1f} s, {memory}")


if __name__ == "__main__":
    if len(sys.argv) in (3, 4) and sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else LAYERS)
    elif len(sys.argv) == 4 and sys.argv[1] == "measure":
        measure(sys.argv[2], sys.argv[3])
    else:
        raise SystemExit(__doc__)
