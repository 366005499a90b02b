#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes GGUF files; needs nothing but Python.

  gguf.py folder OUT MODEL_TYPE [WIDTH]
      a small Hugging Face folder of this type with random values
  gguf.py model FOLDER OUT TYPE [REFERENCE]
      the model of a Hugging Face folder of such a type with its matrices
      in TYPE (F32, F16, BF16, Q8_0, ..., or Q4_0,Q6_K: in turns; or Q4_0/Q8_0:
      values and the FFN's second matrices of odd layers in Q8_0, as Q4_K_M has
      those of some layers in Q6_K). REFERENCE, if given, becomes a folder with
      the values that these stand for, in F32.
  gguf.py blocks OUT [VALUES]
      a tensor of random blocks of each type, "TYPE.weight"; VALUES, a
      safetensors file of F64, has what each stands for by the type's published
      definition.
  gguf.py rows OUT VALUES
      every row of every table of the types IQ; VALUES has FNV-1a of the values
      in f32 by the types' published definitions.
  gguf.py change FILE OUT OFFSET BYTES
      FILE with these bytes (in hex) at OFFSET, or cut there if BYTES is "cut".
"""
import json
import math
import os
import random
import re
import shutil
import struct
import sys

import gguf_rows
import tensors as safetensors

# name: number, values of a block, bytes of a block
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2),
         "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
         "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84),
         "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144),
         "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
         "IQ4_NL": (20, 32, 18), "MXFP4": (39, 32, 17), **gguf_rows.TYPES}
IQ4_NL = [-127, -104, -83, -65, -49, -35, -22, -10,
          1, 13, 25, 38, 53, 69, 89, 113]
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def half(raw, at):
    return struct.unpack_from("<e", raw, at)[0]


def bits_of(raw):
    """All bits of some bytes as one number, the first byte's lowest first."""
    return int.from_bytes(raw, "little")


def two_halves(raw):
    """32 numbers of 4 bits: the lower halves of 16 bytes, then the upper."""
    return [b & 15 for b in raw] + [b >> 4 for b in raw]


def six_bits(raw):
    """The scales and minima of Q4_K and Q5_K, from 12 bytes."""
    low = [b & 63 for b in raw[:8]]
    top = [b >> 6 for b in raw[:8]]
    rest = raw[8:]
    scales = low[:4] + [rest[j] & 15 | top[j] << 4 for j in range(4)]
    minima = low[4:] + [rest[j] >> 4 | top[4 + j] << 4 for j in range(4)]
    return scales, minima


def planes(raw, width, bits):
    """Numbers of so many bits: each `width` bytes hold the first `width`
    numbers in their lowest bits, the next ones above these, and so on."""
    out = []
    for at in range(0, len(raw), width):
        for shift in range(0, 8, bits):
            out += [b >> shift & ((1 << bits) - 1) for b in raw[at:at + width]]
    return out


def decode(kind, raw):
    """The values of one block, in double precision."""
    if kind in gguf_rows.TYPES:
        return gguf_rows.decode(kind, raw)
    if kind == "F32":
        return list(struct.unpack("<f", raw))
    if kind == "F16":
        return [half(raw, 0)]
    if kind == "BF16":
        return list(struct.unpack("<f", b"\0\0" + raw))
    if kind == "Q4_0":
        return [half(raw, 0) * (q - 8) for q in two_halves(raw[2:])]
    if kind == "Q4_1":
        return [half(raw, 0) * q + half(raw, 2) for q in two_halves(raw[4:])]
    if kind == "Q5_0":
        high = bits_of(raw[2:6])
        return [half(raw, 0) * ((q | (high >> i & 1) << 4) - 16)
                for i, q in enumerate(two_halves(raw[6:]))]
    if kind == "Q5_1":
        high = bits_of(raw[4:8])
        return [half(raw, 0) * (q | (high >> i & 1) << 4) + half(raw, 2)
                for i, q in enumerate(two_halves(raw[8:]))]
    if kind == "Q8_0":
        return [half(raw, 0) * q for q in struct.unpack("<32b", raw[2:])]
    if kind == "IQ4_NL":
        return [half(raw, 0) * IQ4_NL[q] for q in two_halves(raw[2:])]
    if kind == "MXFP4":
        return [2.0 ** (raw[0] - 127) * E2M1[q] for q in two_halves(raw[1:])]
    if kind == "Q2_K":
        d, m = half(raw, 80), half(raw, 82)
        return [d * (raw[i // 16] & 15) * q - m * (raw[i // 16] >> 4)
                for i, q in enumerate(planes(raw[16:80], 32, 2))]
    if kind == "Q3_K":
        high = planes(raw[:32], 32, 1)
        low = planes(raw[32:96], 32, 2)
        packed = raw[96:108]
        scales = [(a | b << 4) - 32 for a, b in
                  zip([b & 15 for b in packed[:8]] + [b >> 4 for b in packed[:8]],
                      planes(packed[8:], 4, 2))]
        return [half(raw, 108) * scales[i // 16] * (q + 4 * h - 4)
                for i, (q, h) in enumerate(zip(low, high))]
    if kind in ("Q4_K", "Q5_K"):
        d, m = half(raw, 0), half(raw, 2)
        scales, minima = six_bits(raw[4:16])
        quants = planes(raw[-128:], 32, 4)
        if kind == "Q5_K":
            quants = [q | h << 4
                      for q, h in zip(quants, planes(raw[16:48], 32, 1))]
        return [d * scales[i // 32] * q - m * minima[i // 32]
                for i, q in enumerate(quants)]
    if kind == "Q6_K":
        quants = [q | h << 4 for q, h in zip(planes(raw[:128], 64, 4),
                                             planes(raw[128:192], 32, 2))]
        scales = struct.unpack("<16b", raw[192:208])
        return [half(raw, 208) * scales[i // 16] * (q - 32)
                for i, q in enumerate(quants)]
    raise ValueError(kind)


def to_half(number):
    return struct.pack("<e", number)


def encode(kind, values, rng):
    """A block for values: near them for Q8_0, Q4_0 and types without blocks;
    of other types one whose values are about as large."""
    if kind in gguf_rows.TYPES:
        return gguf_rows.encode(kind, values, rng)
    if kind in ("F32", "F16", "BF16"):
        return safetensors.stored(
            [safetensors.rounded(v, kind.lower()) for v in values], kind.lower())
    largest = max(values, key=abs)
    if kind == "Q8_0":
        d = struct.unpack("<e", to_half(abs(largest) / 127))[0]
        q = [max(-127, min(127, round(v / d))) if d else 0 for v in values]
        return to_half(d) + struct.pack("<32b", *q)
    if kind == "Q4_0":
        d = struct.unpack("<e", to_half(largest / -8))[0]
        q = [max(0, min(15, round(v / d + 8))) if d else 8 for v in values]
        return to_half(d) + bytes(q[i] | q[i + 16] << 4 for i in range(16))
    size = abs(largest) or 1.0
    body = [rng.randrange(256) for _ in range(TYPES[kind][2])]
    places = {"Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "IQ4_NL": [0],
              "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2],
              "Q6_K": [208], "MXFP4": []}[kind]
    steps = {"Q4_1": 15, "Q5_0": 16, "Q5_1": 31, "IQ4_NL": 127, "Q2_K": 45,
             "Q3_K": 128, "Q4_K": 945, "Q5_K": 1953, "Q6_K": 4096, "MXFP4": 1}
    for n, at in enumerate(places):
        scale = size / steps[kind] if n == 0 else -size / 2
        if kind in ("Q2_K", "Q4_K", "Q5_K") and n == 1:
            scale = size / (30 if kind == "Q2_K" else 126)
        body[at:at + 2] = to_half(scale)
    if kind == "MXFP4":
        body[0] = 127 + math.floor(math.log2(size / 6))
    return bytes(body)


class Writer:
    """Keys and tensors in the order of their coming."""

    def __init__(self, alignment=32):
        self.keys, self.tensors, self.alignment = [], [], alignment
        if alignment != 32:
            self.key("general.alignment", "u32", alignment)

    @staticmethod
    def string(text):
        raw = text if isinstance(text, bytes) else text.encode()
        return struct.pack("<Q", len(raw)) + raw

    def value(self, kind, value):
        formats = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"),
                   "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
                   "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"),
                   "i64": (11, "q"), "f64": (12, "d")}
        if kind == "string":
            return 8, self.string(value)
        number, form = formats[kind]
        return number, struct.pack("<" + form, value)

    def key(self, name, kind, value):
        raw = self.string(name)
        if kind.endswith("[]"):
            items = [self.value(kind[:-2], item) for item in value]
            element = self.value(kind[:-2], "" if kind == "string[]" else 0)[0]
            raw += struct.pack("<IIQ", 9, element, len(items))
            raw += b"".join(item for _, item in items)
        else:
            number, body = self.value(kind, value)
            raw += struct.pack("<I", number) + body
        self.keys.append(raw)

    def tensor(self, name, kind, shape, raw):
        self.tensors.append((name, kind, shape, raw))

    def write(self, path):
        """As many files as the path says, "...-00001-of-00003.gguf"."""
        name, count = os.path.basename(path), 1
        if name[-20:-14] == "-00001" and name[-14:-10] == "-of-":
            count = int(name[-10:-5])
        if count == 1:
            self.write_part(path, self.keys, self.tensors)
            return
        for part in range(count):
            about = Writer()
            about.key("split.no", "u16", part)
            about.key("split.count", "u16", count)
            about.key("split.tensors.count", "i32", len(self.tensors))
            size = -(-len(self.tensors) // count)
            self.write_part(
                f"{path[:-20]}-{part + 1:05}-of-{count:05}.gguf",
                about.keys + (self.keys if part == 0 else []),
                self.tensors[part * size:(part + 1) * size])

    def write_part(self, path, keys, tensors):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors),
                                     len(keys)) + b"".join(keys)
        at = 0
        for name, kind, shape, raw in tensors:
            head += self.string(name) + struct.pack("<I", len(shape))
            head += b"".join(struct.pack("<Q", size) for size in shape[::-1])
            head += struct.pack("<IQ", TYPES[kind][0], at)
            at += len(raw) + -len(raw) % self.alignment
        with open(path, "wb") as file:
            file.write(head + b"\0" * (-len(head) % self.alignment))
            for _, _, _, raw in tensors:
                file.write(raw + b"\0" * (-len(raw) % self.alignment))


BLOCK = [("input_layernorm", "attn_norm"), ("self_attn.q_proj", "attn_q"),
         ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
         ("self_attn.o_proj", "attn_output"), ("self_attn.q_norm", "attn_q_norm"),
         ("self_attn.k_norm", "attn_k_norm"), ("mlp.gate_proj", "ffn_gate"),
         ("self_attn.qkv_proj", "attn_qkv"), ("mlp.gate_up_proj", "ffn_up"),
         ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"),
         ("block_sparse_moe.gate", "ffn_gate_inp"),
         ("mlp.gate", "ffn_gate_inp"),
         ("post_attention_layernorm", "ffn_norm")]
GEMMA = [("pre_feedforward_layernorm", "ffn_norm"),
         ("post_attention_layernorm", "post_attention_norm"),
         ("post_feedforward_layernorm", "post_ffw_norm")]
EXPERTS = {"w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps",
           "gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps",
           "down_proj": "ffn_down_exps"}


def rename(name, model_type):
    if not name.startswith("model.layers."):
        return {"model.embed_tokens.weight": "token_embd.weight",
                "model.norm.weight": "output_norm.weight",
                "lm_head.weight": "output.weight"}[name]
    layer, rest = name[len("model.layers."):].split(".", 1)
    table = (GEMMA if model_type in ("gemma2", "gemma3_text") else []) + BLOCK
    for theirs, ours in table:
        if rest.rsplit(".", 1)[0] == theirs:
            return f"blk.{layer}.{ours}.{rest.rsplit('.', 1)[1]}"
    raise ValueError(name)


def interleave(rows, heads):
    """Rows of each head so that (i, i + d/2) become neighbours."""
    size = len(rows) // heads
    return [rows[h * size + half * size // 2 + i] for h in range(heads)
            for i in range(size // 2) for half in range(2)]


def put_tokenizer(writer, folder):
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    vocab = tokenizer["model"]["vocab"]
    words = {i: token for token, i in vocab.items()}
    kinds = {i: 1 for i in words}
    for token in tokenizer["added_tokens"]:
        words[token["id"]] = token["content"]
        kinds[token["id"]] = 3 if token["special"] else 4
    writer.key("tokenizer.ggml.model", "string", "gpt2")
    writer.key("tokenizer.ggml.pre", "string", "gpt-2")
    count = max(words) + 1
    writer.key("tokenizer.ggml.tokens", "string[]",
               [words[i] for i in range(count)])
    writer.key("tokenizer.ggml.token_type", "i32[]",
               [kinds[i] for i in range(count)])
    writer.key("tokenizer.ggml.merges", "string[]",
               [m if isinstance(m, str) else " ".join(m)
                for m in tokenizer["model"]["merges"]])
    writer.key("tokenizer.ggml.add_bos_token", "bool", False)
    writer.key("tokenizer.chat_template", "string",
               "{% for m in messages %}{{ m['content'] }}{% endfor %}")


def put_config(writer, config):
    kind = config["model_type"]
    family = {"mixtral": "llama", "mistral": "llama", "gemma3_text": "gemma3",
              "qwen3_moe": "qwen3moe"}.get(kind, kind)
    writer.key("general.architecture", "string", family)

    def put(name, key, value_kind="u32", otherwise=None):
        value = config.get(key, otherwise)
        if value is not None:
            writer.key(f"{family}.{name}", value_kind, value)

    put("context_length", "max_position_embeddings")
    put("embedding_length", "hidden_size")
    put("block_count", "num_hidden_layers")
    put("feed_forward_length", "intermediate_size")
    put("attention.head_count", "num_attention_heads")
    put("attention.head_count_kv", "num_key_value_heads")
    put("attention.key_length", "head_dim")
    put("attention.value_length", "head_dim")
    put("attention.layer_norm_rms_epsilon", "rms_norm_eps", "f32")
    put("rope.freq_base", "rope_theta", "f32", 10000.0)
    put("attention.sliding_window", "sliding_window")
    for key, name in (("bos_token_id", "bos_token_id"),
                      ("eos_token_id", "eos_token_id"),
                      ("padding_token_id", "pad_token_id")):
        if key in config or name in config:
            writer.key(f"tokenizer.ggml.{key}", "u32", config[name])
    put("expert_count", "num_local_experts")
    put("expert_count", "num_experts")
    put("expert_feed_forward_length", "moe_intermediate_size")
    put("expert_used_count", "num_experts_per_tok")
    put("attn_logit_softcapping", "attn_logit_softcapping", "f32")
    put("final_logit_softcapping", "final_logit_softcapping", "f32")
    return family


def write_model(folder, out, kinds, reference):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    loaded = safetensors.load(os.path.join(folder, "model.safetensors"))
    writer, rng = Writer(), random.Random(7)
    family = put_config(writer, config)
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        put_tokenizer(writer, folder)
    heads = {"q_proj": config["num_attention_heads"],
             "k_proj": config.get("num_key_value_heads")
             or config["num_attention_heads"]}
    experts, values = {}, {}
    if family.startswith("gemma"):
        plus = 1.0
    else:
        plus = 0.0
    for number, (name, tensor) in enumerate(sorted(loaded.items())):
        shape = tensor[1]
        width = shape[-1]
        numbers = safetensors.numbers(tensor)
        if name.endswith("norm.weight"):
            numbers = [n + plus for n in numbers]
        turn = 0 if ".experts." in name else number
        kind = kinds[turn % len(kinds)] if len(shape) == 2 else "F32"
        more = re.search(r"[13579]\.(self_attn\.v|mlp\.down)_proj", name)
        kind = kind.split("/")[-1 if more else 0]
        _, block, size = TYPES[kind]
        rows = []
        for at in range(0, len(numbers), width):
            rows.append(b"".join(
                encode(kind, numbers[i:i + block], rng)
                for i in range(at, at + width, block)))
        values[name] = ("F32", shape, struct.pack(
            f"<{len(numbers)}f",
            *(v - (plus if name.endswith("norm.weight") else 0)
              for row in rows for i in range(0, len(row), size)
              for v in decode(kind, row[i:i + size]))))
        for part, count in heads.items():
            if family == "llama" and f".{part}." in name:
                rows = interleave(rows if len(shape) == 2 else
                                  [rows[0][4 * i:4 * i + 4]
                                   for i in range(width)], count)
        raw = b"".join(rows)
        if ".experts." in name:
            _, _, layer, _, _, number, part, _ = name.split(".")
            key = f"blk.{layer}.{EXPERTS[part]}.weight"
            experts.setdefault(key, {})[int(number)] = (kind, shape, raw)
            continue
        writer.tensor(rename(name, config["model_type"]), kind, shape, raw)
    for name, parts in experts.items():
        writer.tensor(name, parts[0][0], [len(parts)] + parts[0][1],
                      b"".join(parts[e][2] for e in range(len(parts))))
    writer.write(out)
    if reference:
        os.makedirs(reference, exist_ok=True)
        for name in os.listdir(folder):
            if name.endswith(".json"):
                shutil.copy(os.path.join(folder, name), reference)
        safetensors.save(os.path.join(reference, "model.safetensors"), values)


def write_blocks(out, expected):
    rng, writer, known = random.Random(36), Writer(alignment=64), {}
    writer.key("general.architecture", "string", "llama")
    for kind, (_, block, size) in TYPES.items():
        raw, values = b"", []
        for _ in range(max(2, 64 // block)):
            one = encode(kind, [rng.uniform(-3, 3) for _ in range(block)], rng)
            raw += one
            values += decode(kind, one)
        shape = [2, len(values) // 2]
        writer.tensor(f"{kind}.weight", kind, shape, raw)
        known[f"{kind}.weight"] = ("F64", shape,
                                   struct.pack(f"<{len(values)}d", *values))
    writer.write(out)
    if expected:
        safetensors.save(expected, known)


def fnv(values):
    """FNV-1a of the bytes of the values in f32."""
    result = 0xcbf29ce484222325
    for byte in struct.pack(f"<{len(values)}f", *values):
        result = (result ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return struct.pack("<Q", result)


def write_rows(out, expected):
    """Every row of every table; of the values one number."""
    rng, writer, known = random.Random(41), Writer(), {}
    writer.key("general.architecture", "string", "llama")
    for kind in gguf_rows.TYPES:
        if not kind.startswith("IQ") or kind == "IQ4_XS":
            continue
        blocks = gguf_rows.every_row(kind, rng)
        values = [v for b in blocks for v in gguf_rows.decode(kind, b)]
        writer.tensor(f"{kind}.weight", kind, [len(blocks), 256],
                      b"".join(blocks))
        known[f"{kind}.weight"] = ("I64", [1], fnv(values))
    writer.write(out)
    safetensors.save(expected, known)


def write_folder(out, kind, width):
    """A model whose shapes tell all dimensions apart."""
    rng = random.Random(kind)
    inner, vocab, heads, head_dim = width * 3 // 2, 96, 4, width // 4
    layers = 1 if kind == "gpt_oss" else 2
    if width % 256 == 0:
        inner, layers = width * 2, 1
    gemma, experts = kind.startswith("gemma"), 3
    tied = gemma
    config = {"model_type": kind, "hidden_size": width, "vocab_size": vocab,
              "intermediate_size": inner, "num_hidden_layers": layers,
              "num_attention_heads": heads, "num_key_value_heads": 2,
              "head_dim": head_dim, "max_position_embeddings": 64,
              "rms_norm_eps": 1e-5, "rope_theta": 5000.0, "bos_token_id": 1,
              "eos_token_id": 2, "pad_token_id": 0,
              "tie_word_embeddings": tied, "torch_dtype": "float32"}
    tensors = {}

    def put(name, *shape):
        count = math.prod(shape)
        if name.endswith("norm.weight"):
            middle, spread = 0.0 if gemma else 1.0, 0.25
        else:
            middle, spread = 0.0, 1.7 / shape[-1] ** 0.5
        values = [rng.uniform(middle - spread, middle + spread)
                  for _ in range(count)]
        tensors[name] = ("F32", list(shape), struct.pack(f"<{count}f", *values))

    put("model.embed_tokens.weight", vocab, width)
    put("model.norm.weight", width)
    if not tied:
        put("lm_head.weight", vocab, width)
    q, kv = heads * head_dim, 2 * head_dim
    for layer in range(layers):
        at = f"model.layers.{layer}."
        put(at + "input_layernorm.weight", width)
        put(at + "post_attention_layernorm.weight", width)
        if kind in ("gemma2", "gemma3_text"):
            put(at + "pre_feedforward_layernorm.weight", width)
            put(at + "post_feedforward_layernorm.weight", width)
        if kind == "phi3":
            put(at + "self_attn.qkv_proj.weight", q + 2 * kv, width)
            put(at + "mlp.gate_up_proj.weight", 2 * inner, width)
        else:
            for part, rows in (("q", q), ("k", kv), ("v", kv)):
                put(f"{at}self_attn.{part}_proj.weight", rows, width)
                if kind == "qwen2":
                    put(f"{at}self_attn.{part}_proj.bias", rows)
        put(at + "self_attn.o_proj.weight", width, q)
        if kind == "gpt_oss":
            for part, rows in (("q", q), ("k", kv), ("v", kv), ("o", width)):
                put(f"{at}self_attn.{part}_proj.bias", rows)
            put(at + "self_attn.sinks", heads)
        if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
            put(at + "self_attn.q_norm.weight", head_dim)
            put(at + "self_attn.k_norm.weight", head_dim)
        if kind == "mixtral":
            put(at + "block_sparse_moe.gate.weight", experts, width)
            for e in range(experts):
                expert = f"{at}block_sparse_moe.experts.{e}."
                put(expert + "w1.weight", inner, width)
                put(expert + "w3.weight", inner, width)
                put(expert + "w2.weight", width, inner)
        elif kind == "gpt_oss":
            put(at + "mlp.router.weight", experts, width)
            put(at + "mlp.router.bias", experts)
            for part, rows, columns in (("gate_up", width, 2 * inner),
                                        ("down", inner, width)):
                put(f"{at}mlp.experts.{part}_proj", experts, rows, columns)
                put(f"{at}mlp.experts.{part}_proj_bias", experts, columns)
        elif kind == "qwen3_moe":
            put(at + "mlp.gate.weight", experts, width)
            for e in range(experts):
                expert = f"{at}mlp.experts.{e}."
                put(expert + "gate_proj.weight", inner, width)
                put(expert + "up_proj.weight", inner, width)
                put(expert + "down_proj.weight", width, inner)
        else:
            if kind != "phi3":
                put(at + "mlp.gate_proj.weight", inner, width)
                put(at + "mlp.up_proj.weight", inner, width)
            put(at + "mlp.down_proj.weight", width, inner)
    if kind == "mixtral":
        config.update(num_local_experts=experts, num_experts_per_tok=2)
    if kind == "gpt_oss":
        config.update(num_local_experts=experts, num_experts_per_tok=2,
                      swiglu_limit=0.5, sliding_window=5)
    if kind == "qwen3_moe":
        config.update(num_experts=experts, num_experts_per_tok=2,
                      moe_intermediate_size=inner, norm_topk_prob=True)
    if kind in ("mistral", "gemma2", "gemma3_text", "phi3"):
        config["sliding_window"] = 5
    if kind == "gemma2":
        config.update(query_pre_attn_scalar=head_dim,
                      attn_logit_softcapping=3.0, final_logit_softcapping=2.0)
    if kind == "gemma3_text":
        config["query_pre_attn_scalar"] = head_dim
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    safetensors.save(os.path.join(out, "model.safetensors"), tensors)
    safetensors.save(os.path.join(out, "ids.safetensors"), {
        "input_ids": ("I64", [1, 11], struct.pack(
            "<11q", *(rng.randrange(3, vocab) for _ in range(11))))})


def main(arguments):
    verb, rest = arguments[0], arguments[1:]
    if verb == "folder":
        write_folder(rest[0], rest[1], int(rest[2]) if len(rest) > 2 else 64)
    elif verb == "model":
        write_model(rest[0], rest[1], rest[2].split(","),
                    rest[3] if len(rest) > 3 else None)
    elif verb == "blocks":
        write_blocks(rest[0], rest[1] if len(rest) > 1 else None)
    elif verb == "rows":
        write_rows(rest[0], rest[1])
    elif verb == "change":
        with open(rest[0], "rb") as file:
            raw = file.read()
        at = int(rest[2])
        new = b"" if rest[3] == "cut" else bytes.fromhex(rest[3])
        tail = b"" if rest[3] == "cut" else raw[at + len(new):]
        with open(rest[1], "wb") as file:
            file.write(raw[:at] + new + tail)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
