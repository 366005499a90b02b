"""Three sequences with different numbers of cached tokens.

unequal_sequences.py TEST_LIB OUT make DTYPE   inputs for all and for each alone
unequal_sequences.py TEST_LIB OUT alone MODEL  runs it for each alone
unequal_sequences.py TEST_LIB OUT check        compares bits of what came out
unequal_sequences.py TEST_LIB OUT close        compares results that are rounded
                                               in another order
"""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
import tensors

PAST = [0, 850, 300]
CAPACITY, LAYERS, HEADS, KV_HEADS, WIDTH = 900, 2, 8, 2, 64


def path(name):
    return os.path.join(sys.argv[2], name + ".safetensors")


def numbers(shape, dtype):
    count = 1
    for size in shape:
        count *= size
    if dtype == "I8":  # with the scale of each row
        rows = count // shape[-1]
        return dtype, shape[:-1] + [shape[-1] + 4], b"".join(
            random.randbytes(shape[-1]) +
            struct.pack("<f", random.uniform(0.5, 2) / 127)
            for _ in range(rows))
    return (dtype, shape, tensors.stored(
        [(byte - 128) / 64 for byte in random.randbytes(count)],
        dtype.lower()))


def sequence(tensor, number):
    """Of [sequences, ...]."""
    dtype, shape, raw = tensor
    size = len(raw) // shape[0]
    return dtype, [1, *shape[1:]], raw[number * size:(number + 1) * size]


def make(dtype):
    random.seed(5)
    batch = len(PAST)
    cache = [batch, LAYERS, KV_HEADS, CAPACITY, WIDTH]
    whole = {"q": numbers([batch, HEADS, 1, WIDTH], "F32"),
             "k": numbers([batch, KV_HEADS, 1, WIDTH], "F32"),
             "keys": numbers(cache, dtype),
             "past": ("I64", [batch], struct.pack(f"<{batch}q", *PAST))}
    tensors.save(path("all"), whole)
    for number in range(batch):
        alone = {name: sequence(tensor, number)
                 for name, tensor in whole.items()}
        # Of one sequence, the layers are first.
        kind, shape, raw = alone["keys"]
        alone["keys"] = (kind, [shape[1], 1, *shape[2:]], raw)
        del alone["past"]
        alone["tokens"] = ("I64", [PAST[number] + 1],
                           bytes(8 * (PAST[number] + 1)))
        tensors.save(path(f"alone{number}"), alone)


def run_alone(model):
    for number in range(len(PAST)):
        name = f"alone{number}"
        subprocess.run([model, "run", "--inputs", path(name),
                        "--outputs", path(name + ".out")], check=True)


def check():
    whole = tensors.load(path("all.out"))
    for number, past in enumerate(PAST):
        alone = tensors.load(path(f"alone{number}.out"))
        for name in ("y", "keys_out"):
            assert sequence(whole[name], number)[2] == alone[name][2], \
                f"{name} of {past} tokens"
    print("equal bits")


def close():
    """Sums of keys in other parts, each of which is rounded once in f32."""
    whole = tensors.load(path("all.out"))
    for number, past in enumerate(PAST):
        alone = tensors.load(path(f"alone{number}.out"))
        _, _, raw = sequence(whole["y"], number)
        count = len(raw) // 4
        worst = max(abs(a - b) for a, b in
                    zip(struct.unpack(f"<{count}f", raw),
                        struct.unpack(f"<{count}f", alone["y"][2])))
        assert worst < 2e-6, f"{worst} of {past} tokens"
    print("close")


{"make": make, "alone": run_alone, "check": check, "close": close}[sys.argv[3]](*sys.argv[4:])
