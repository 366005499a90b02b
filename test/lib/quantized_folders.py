#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantizes Hugging Face folders as others do; needs nothing but Python.

  quantized_folders.py folder FOLDER OUT METHOD [VALUES]
      OUT becomes the model of FOLDER with the projections of its layers
      quantized, and VALUES, if given, a folder with the numbers that these
      stand for, in F32
  quantized_folders.py matrices OUT
      a folder OUT/METHOD with a random matrix "x.weight" for each method;
      "values" has what it stands for, in F64

The numbers come from the methods' published definitions, in double precision.

METHOD: gptq, gptq-order (groups of columns that stand apart, the same for
matrices of one input, and zero points that differ), gptq-orders (the same with
others for each matrix), gptq-v2-8 (8 bits, zero points as they are), awq, packed4,
packed8, packed-order and int8 (compressed-tensors), float8 (the same, a scale for
each row), block8 (a scale for each block of 16 x 16), fp8 (the same, as
weight_scale_inv), fp8-wide (of 32 x 32), mxfp4 (stacks of experts alone), nf4 (with
double quantization), fp4 (without) and llm-int8 (bitsandbytes), nvfp4 (ModelOpt, which
says so in hf_quant_config.json alone), nvfp4-packed (compressed-tensors), fp8-whole
(ModelOpt, a scale for each matrix), auto-round (GPTQ's packing with zero points as
they are) and auto-round-awq.
"""
import json
import math
import os
import random
import struct
import sys

import tensors as safetensors

GROUP = 32
BLOCK = 16
METHODS = ["gptq", "gptq-order", "gptq-v2-8", "awq", "packed4", "packed8",
           "packed-order", "int8", "float8", "block8", "fp8", "fp8-wide",
           "mxfp4", "nf4", "fp4", "llm-int8", "nvfp4", "nvfp4-packed",
           "fp8-whole", "auto-round", "auto-round-awq"]
# The means of 16 equal shares of a normal distribution, as bitsandbytes has them.
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
       -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
       0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
       0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1.0]
FP4 = [sign * magnitude / 12 for sign in (1, -1)
       for magnitude in (0, 0.0625, 8, 12, 4, 6, 2, 3)]
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def half(number):
    return safetensors.rounded(number, "f16")


def words(numbers, bits):
    """Numbers packed in words of 32 bits, the first in the lowest bits."""
    count, out = 32 // bits, b""
    for at in range(0, len(numbers), count):
        word = 0
        for i, number in enumerate(numbers[at:at + count]):
            word |= number << bits * i
        out += struct.pack("<I", word)
    return out


def transposed(rows):
    return [list(column) for column in zip(*rows)]


def packed_down(rows, bits):
    """[in, out] packed along `in`: words [in / n, out]."""
    count, out = 32 // bits, b""
    for at in range(0, len(rows), count):
        for column in zip(*rows[at:at + count]):
            out += words(list(column), bits)
    return out


def decode_float8(code):
    """e4m3 without infinities."""
    sign = -1.0 if code & 128 else 1.0
    exponent, fraction = code >> 3 & 15, code & 7
    if exponent == 0:
        return sign * fraction / 8 * 2.0 ** -6
    return sign * (1 + fraction / 8) * 2.0 ** (exponent - 7)


FLOATS = sorted((decode_float8(code), code) for code in range(256)
                if code & 127 != 127)


def nearest_float8(number):
    return min(FLOATS, key=lambda entry: abs(entry[0] - number))[1]


def nearest(number, table):
    return min(range(len(table)), key=lambda i: abs(table[i] - number))


def single(number):
    return safetensors.rounded(number, "f32")


def singles(numbers, shape=None):
    return ("F32", [len(numbers)] if shape is None else shape,
            struct.pack(f"<{len(numbers)}f", *numbers))


def codebook(rows, kind):
    """bitsandbytes' 4 bits: blocks go on from row to row."""
    flat = [number for row in rows for number in row]
    table = [single(value) for value in (NF4 if kind == "nf4" else FP4)]
    block, nested = (64, 16) if kind == "nf4" else (128, 0)
    blocks = [flat[at:at + block] for at in range(0, len(flat), block)]
    tops = [single(max(map(abs, part))) for part in blocks]
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16",
             "shape": [len(rows), len(rows[0])]}
    parts = {"weight.quant_map": singles(table)}
    if nested:
        bytes_table = [single((i - 127) / 128) for i in range(256)]
        offset = single(sum(tops) / len(tops))
        groups = [tops[at:at + nested] for at in range(0, len(tops), nested)]
        largest = [single(max(abs(top - offset) for top in group) or 1)
                   for group in groups]
        codes = [nearest((top - offset) / largest[i // nested], bytes_table)
                 for i, top in enumerate(tops)]
        tops = [bytes_table[code] * largest[i // nested] + offset
                for i, code in enumerate(codes)]
        state.update(nested_blocksize=nested, nested_dtype="float32",
                     nested_offset=offset)
        parts["weight.nested_quant_map"] = singles(bytes_table)
        parts["weight.nested_absmax"] = singles(largest)
        parts["weight.absmax"] = ("U8", [len(codes)], bytes(codes))
    else:
        parts["weight.absmax"] = singles(tops)
    numbers = [nearest(number / top, table)
               for part, top in zip(blocks, tops) for number in part]
    pairs = bytes(a << 4 | b for a, b in zip(numbers[::2], numbers[1::2]))
    text = json.dumps(state).encode()
    parts["weight"] = ("U8", [len(pairs), 1], pairs)
    parts["weight.quant_state.bitsandbytes__" + kind] = (
        "U8", [len(text)], text)
    return parts, [table[number] * tops[i // block]
                   for i, number in enumerate(numbers)]


def nvfp4(rows, packed):
    """e2m1, a float of 8 bits for 16 neighbours, and a float for all."""
    out, inner = len(rows), len(rows[0])
    whole = single(max(abs(n) for row in rows for n in row) / (6 * 448))
    if packed:
        divisor = single(1 / whole)
        whole = 1 / divisor
    pairs, scales, values = b"", b"", []
    for row in rows:
        codes = []
        for at in range(0, inner, 16):
            group = row[at:at + 16]
            scale = nearest_float8(max(map(abs, group)) / 6 / whole)
            scales += bytes([scale])
            by = decode_float8(scale) * whole
            for number in group:
                code = nearest(number / by if by else 0, E2M1)
                codes.append(code)
                values.append(E2M1[code] * by)
        pairs += bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2]))
    end = "weight_packed" if packed else "weight"
    parts = {end: ("U8", [out, inner // 2], pairs),
             "weight_scale": ("F8_E4M3", [out, inner // 16], scales)}
    if packed:
        parts["weight_global_scale"] = singles([divisor])
        parts["input_global_scale"] = singles([1.0])
    else:
        parts["weight_scale_2"] = singles([whole], [])
        parts["input_scale"] = singles([1.0], [])
    return parts, values


def quantize(rows, method, rng, order_rng=None):
    """Tensors by the end of their name, and the values that they stand for.
    `order_rng` draws the groups of columns."""
    out, inner = len(rows), len(rows[0])
    if method in ("nf4", "fp4"):
        return codebook(rows, method)
    if method.startswith("nvfp4"):
        return nvfp4(rows, method == "nvfp4-packed")
    if method == "fp8-whole":
        scale = single(max(abs(n) for row in rows for n in row) / 448)
        codes = [nearest_float8(n / scale) for row in rows for n in row]
        return {"weight": ("F8_E4M3", [out, inner], bytes(codes)),
                "weight_scale": singles([scale], []),
                "input_scale": singles([1.0], [])}, [
                    decode_float8(code) * scale for code in codes]
    if method == "llm-int8":
        tops = [single(max(map(abs, row))) for row in rows]
        # A scale is a number of f32, as kernels read it.
        by = [single(top / 127) for top in tops]
        numbers = [max(-127, min(127, round(n / by[r])))
                   for r, row in enumerate(rows) for n in row]
        return {"weight": ("I8", [out, inner],
                           struct.pack(f"<{len(numbers)}b", *numbers)),
                "SCB": singles(tops),
                "weight_format": ("U8", [], bytes(1))}, [
                    number * by[i // inner]
                    for i, number in enumerate(numbers)]
    if method == "mxfp4":
        codes, exponents, values = b"", b"", []
        for row in rows:
            for at in range(0, inner, 32):
                group = row[at:at + 32]
                power = math.floor(math.log2(max(map(abs, group)) / 6)) + 1
                near = [min(range(16), key=lambda c: abs(
                    E2M1[c] * 2.0 ** power - number)) for number in group]
                codes += bytes(a | b << 4
                               for a, b in zip(near[::2], near[1::2]))
                exponents += bytes([power + 127])
                values += [E2M1[c] * 2.0 ** power for c in near]
        return {"_blocks": ("U8", [out, inner // 32, 16], codes),
                "_scales": ("U8", [out, inner // 32], exponents)}, values
    if method in ("int8", "float8"):
        codes, scales, values = b"", [], []
        for row in rows:
            top = 127 if method == "int8" else 448
            scale = safetensors.rounded(max(map(abs, row)) / top, "bf16")
            scales.append(scale)
            for number in row:
                if method == "int8":
                    q = max(-128, min(127, round(number / scale)))
                    codes += struct.pack("<b", q)
                else:
                    code = nearest_float8(number / scale)
                    q = decode_float8(code)
                    codes += bytes([code])
                values.append(q * scale)
        kind = "I8" if method == "int8" else "F8_E4M3"
        return {"weight": (kind, [out, inner], codes),
                "weight_scale": ("BF16", [out, 1],
                                 safetensors.stored(scales, "bf16"))}, values
    if method in ("fp8", "fp8-wide", "block8"):
        end = "weight_scale" if method == "block8" else "weight_scale_inv"
        block = block_of(method)
        down, across = -(-out // block), -(-inner // block)
        scales = [rng.uniform(0.001, 0.002) for _ in range(down * across)]
        scales = [safetensors.rounded(s, "f32") for s in scales]
        codes, values = b"", []
        for r, row in enumerate(rows):
            for c, number in enumerate(row):
                scale = scales[r // block * across + c // block]
                code = nearest_float8(number / scale)
                codes += bytes([code])
                values.append(decode_float8(code) * scale)
        return {"weight": ("F8_E4M3", [out, inner], codes),
                end: ("F32", [down, across], struct.pack(
                    f"<{len(scales)}f", *scales))}, values
    bits = 8 if method in ("gptq-v2-8", "packed8") else 4
    top, middle = (1 << bits) - 1, 1 << (bits - 1)
    groups = inner // GROUP
    group_of = [c // GROUP for c in range(inner)]
    if "-order" in method:
        (order_rng or rng).shuffle(group_of)
    free = "-order" in method or method in ("gptq-v2-8", "awq", "auto-round",
                                            "auto-round-awq")
    scales = [[0.0] * out for _ in range(groups)]
    zeros = [[middle] * out for _ in range(groups)]
    for r, row in enumerate(rows):
        for g in range(groups):
            members = [row[c] for c in range(inner) if group_of[c] == g]
            scales[g][r] = half(max(map(abs, members)) / (middle - 1))
            if free:
                zeros[g][r] = rng.randrange(middle - 2, middle + 2)
    numbers = [[max(0, min(top, round(row[c] / scales[group_of[c]][r])
                           + zeros[group_of[c]][r])) for c in range(inner)]
               for r, row in enumerate(rows)]
    values = [scales[group_of[c]][r] * (numbers[r][c] - zeros[group_of[c]][r])
              for r in range(out) for c in range(inner)]
    flat = [s for line in scales for s in line]
    if method.startswith("packed"):
        by_row = [s for line in transposed(scales) for s in line]
        result = {"weight_packed": ("I32", [out, inner * bits // 32],
                                    b"".join(words(row, bits)
                                             for row in numbers)),
                  "weight_scale": ("F16", [out, groups],
                                   safetensors.stored(by_row, "f16")),
                  "weight_shape": ("I64", [2],
                                   struct.pack("<2q", out, inner))}
        if method == "packed-order":
            result["weight_zero_point"] = (
                "I32", [out * bits // 32, groups],
                packed_down(transposed(zeros), bits))
            result["weight_g_idx"] = ("I32", [inner],
                                      struct.pack(f"<{inner}i", *group_of))
        return result, values
    result = {"scales": ("F16", [groups, out], safetensors.stored(flat, "f16"))}
    if method in ("awq", "auto-round-awq"):
        def ordered(line):
            return [line[at + i] for at in range(0, len(line), 8)
                    for i in AWQ_ORDER]
        result["qweight"] = ("I32", [inner, out // 8], b"".join(
            words(ordered(line), 4) for line in transposed(numbers)))
        result["qzeros"] = ("I32", [groups, out // 8], b"".join(
            words(ordered(line), 4) for line in zeros))
        return result, values
    less = 0 if method in ("gptq-v2-8", "auto-round") else 1
    result["qweight"] = ("I32", [inner * bits // 32, out],
                         packed_down(transposed(numbers), bits))
    result["qzeros"] = ("I32", [groups, out * bits // 32], b"".join(
        words([z - less for z in line], bits) for line in zeros))
    result["g_idx"] = ("I32", [inner],
                       struct.pack(f"<{inner}i", *group_of))
    return result, values


def block_of(method):
    return 2 * BLOCK if method == "fp8-wide" else BLOCK


def settings(method):
    """The "quantization_config" of a method; none: it is in a file beside."""
    if method == "nvfp4":
        return None
    if method == "mxfp4":
        return {"quant_method": "mxfp4",
                "modules_to_not_convert": ["model.layers.*.self_attn"]}
    if method.startswith("gptq"):
        config = {"quant_method": "gptq", "bits": 4, "group_size": GROUP,
                  "desc_act": "-order" in method, "sym": method == "gptq"}
        if method == "gptq-v2-8":
            config.update(bits=8, checkpoint_format="gptq_v2")
        return config
    if method.startswith("auto-round"):
        awq = ":auto_awq" if method == "auto-round-awq" else ""
        return {"quant_method": "auto-round", "bits": 4, "group_size": GROUP,
                "sym": False, "data_type": "int",
                "packing_format": "auto_round" + awq,
                "extra_config": {"lm_head": {"bits": 16}}}
    if method in ("nf4", "fp4", "llm-int8"):
        return {"quant_method": "bitsandbytes",
                "load_in_8bit": method == "llm-int8",
                "load_in_4bit": method != "llm-int8",
                "bnb_4bit_quant_type": method,
                "bnb_4bit_use_double_quant": method == "nf4"}
    if method == "fp8-whole":
        return {"quant_method": "modelopt", "quant_algo": "FP8",
                "ignore": ["lm_head"]}
    if method == "nvfp4-packed":
        return {"quant_method": "compressed-tensors",
                "format": "nvfp4-pack-quantized", "ignore": ["lm_head"],
                "config_groups": {"group_0": {
                    "targets": ["Linear"], "weights": {
                        "num_bits": 4, "type": "float", "group_size": 16,
                        "strategy": "tensor_group", "symmetric": True}}}}
    if method == "awq":
        return {"quant_method": "awq", "bits": 4, "group_size": GROUP,
                "version": "gemm", "zero_point": True}
    if method in ("fp8", "fp8-wide"):
        return {"quant_method": "fp8", "activation_scheme": "dynamic",
                "weight_block_size": [block_of(method)] * 2}
    form = {"int8": "int-quantized", "float8": "float-quantized",
            "block8": "float-quantized"}
    packed = method.startswith("packed")
    weights = {"num_bits": 4 if method in ("packed4", "packed-order") else 8,
               "symmetric": method != "packed-order",
               "type": "int" if packed or method == "int8" else "float",
               "strategy": "group" if packed else
                           "block" if method == "block8" else "channel",
               "block_structure": [BLOCK, BLOCK] if method == "block8" else None,
               "group_size": GROUP if packed else None}
    return {"quant_method": "compressed-tensors",
            "format": form.get(method, "pack-quantized"), "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"],
                                          "weights": weights}}}


def write(path, config, tensors):
    os.makedirs(path, exist_ok=True)
    # Settings of ModelOpt's NVFP4 are in a file of their own.
    if config.get("quantization_config", 0) is None:
        config = {k: v for k, v in config.items() if k != "quantization_config"}
        with open(os.path.join(path, "hf_quant_config.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"producer": {"name": "modelopt"},
                       "quantization": {"quant_algo": "NVFP4",
                                        "kv_cache_quant_algo": None,
                                        "group_size": 16,
                                        "exclude_modules": ["lm_head"]}},
                      file, indent=1)
            file.write("\n")
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
        file.write("\n")
    safetensors.save(os.path.join(path, "model.safetensors"), tensors)


def make_matrices(out):
    for method in METHODS:
        rng = random.Random(method)
        rows = [[rng.gauss(0, 0.1) for _ in range(64)] for _ in range(24)]
        parts, known = quantize(rows, method, rng)
        tensors = {"x" + (end if end[0] == "_" else "." + end): part
                   for end, part in parts.items()}
        tensors["values"] = ("F64", [24, 64],
                             struct.pack(f"<{len(known)}d", *known))
        write(os.path.join(out, method),
              {"quantization_config": settings(method)}, tensors)


def make_stack(name, tensor, rng, made, values):
    """Experts [count, in, out] as rows in few bits."""
    (count, inner, out), numbers = tensor[1], safetensors.numbers(tensor)
    codes, scales, flat = b"", b"", []
    for e in range(count):
        part = numbers[e * inner * out:(e + 1) * inner * out]
        parts, known = quantize([list(part[r::out]) for r in range(out)],
                                "mxfp4", rng)
        codes += parts["_blocks"][2]
        scales += parts["_scales"][2]
        flat += [known[r * inner + c] for c in range(inner)
                 for r in range(out)]
    made[name + "_blocks"] = ("U8", [count, out, inner // 32, 16], codes)
    made[name + "_scales"] = ("U8", [count, out, inner // 32], scales)
    values[name] = ("F32", tensor[1], struct.pack(f"<{len(flat)}f", *flat))


def make_folder(folder, out, method, reference=None):
    rng = random.Random(method)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    loaded = safetensors.load(os.path.join(folder, "model.safetensors"))
    made, values = {}, {}
    for name, tensor in loaded.items():
        made[name] = values[name] = tensor
        if method == "mxfp4" and len(tensor[1]) == 3:
            del made[name]
            make_stack(name, tensor, rng, made, values)
        if method == "mxfp4" or "_proj.weight" not in name:
            continue
        shape, numbers = tensor[1], safetensors.numbers(tensor)
        rows = [list(numbers[at:at + shape[1]])
                for at in range(0, len(numbers), shape[1])]
        # Matrices of one input get one order, as tools find it by the input.
        reader = name.split("_proj")[0]
        for one, other in (("q", "qkv"), ("k", "qkv"), ("v", "qkv"),
                           ("gate", "ffn"), ("up", "ffn")):
            if reader.endswith("." + one) and method != "gptq-orders":
                reader = reader[:-len(one)] + other
        parts, known = quantize(rows, method, rng, random.Random(reader))
        del made[name]
        base = name[:-len("weight")]
        for end, part in parts.items():
            made[base + end] = part
        # Tools write a bias for every matrix, also where there is none.
        if method.startswith("gptq") and base + "bias" not in loaded:
            made[base + "bias"] = ("F16", [shape[0]], bytes(2 * shape[0]))
        values[name] = ("F32", shape, struct.pack(f"<{len(known)}f", *known))
    # Numbers of mxfp4 are no reason to widen the others.
    kept = "float32" if method == "mxfp4" else "float16"
    write(out, dict(config, torch_dtype=kept,
                    quantization_config=settings(method)), made)
    if reference is not None:
        write(reference, dict(config, torch_dtype="float32"), values)


if __name__ == "__main__":
    {"folder": make_folder,
     "matrices": make_matrices}[sys.argv[1]](*sys.argv[2:])
