#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small MusicGen and a small EnCodec with random weights under the names of
their checkpoints, against float64 arithmetic done here.

  musicgen.py ATTUNE WORK musicgen|encodec [--flag=FLAG]...

Logits and text states of two rows of codes, of which masks hide words on either
side; greedy codes with and without guidance, every column of them from the
beginning; the sound of these codes; EnCodec alone on 1 to 6 frames under both
names of weights that are kept as lengths and directions. Exit status 0: all
passed.
"""
import array
import math
import os
import random
import struct
import sys

import decoder_layers
import encoder_decoders
import tensors
from decoder_layers import (WIDTH, Weights, dot, gelu, gelu_tanh, layer_norm,
                            linear, plus, split)

# The decoder is as wide as no text, so that there is a projection.
HIDDEN, HEADS, INNER, LAYERS, BOOKS, CODES = 24, 3, 40, 2, 4, 12
# The first stride is odd: its cut is not the same on both sides.
VECTOR, FILTERS, RATIOS, RATE = 6, 2, [3, 2], 16000
TEXT = {"model_type": "t5", "d_model": WIDTH, "d_kv": 12,
        "d_ff": decoder_layers.INNER, "num_layers": encoder_decoders.LAYERS,
        "num_heads": decoder_layers.HEADS, "vocab_size": decoder_layers.VOCAB,
        "relative_attention_num_buckets": encoder_decoders.BUCKETS,
        "relative_attention_max_distance": encoder_decoders.DISTANCE,
        "feed_forward_proj": "gated-gelu", "n_positions": 512}
SOUND = {"model_type": "encodec", "architectures": ["EncodecModel"],
         "hidden_size": VECTOR, "num_filters": FILTERS, "codebook_size": CODES,
         "codebook_dim": VECTOR, "upsampling_ratios": RATIOS, "compress": 2,
         "kernel_size": 7, "last_kernel_size": 5, "residual_kernel_size": 3,
         "num_lstm_layers": 2, "use_causal_conv": False,
         "use_conv_shortcut": False, "sampling_rate": RATE,
         "target_bandwidths": [43.0], "norm_type": "weight_norm",
         "pad_mode": "reflect", "trim_right_ratio": 1.0,
         "dilation_growth_rate": 2, "chunk_length_s": None, "overlap": None}
MUSIC = {"model_type": "musicgen_decoder", "hidden_size": HIDDEN,
         "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
         "ffn_dim": INNER, "vocab_size": CODES, "num_codebooks": BOOKS,
         "max_position_embeddings": 64, "scale_embedding": False,
         "pad_token_id": CODES, "bos_token_id": CODES}
CONFIG = {"model_type": "musicgen", "is_encoder_decoder": True,
          "architectures": ["MusicgenForConditionalGeneration"],
          "text_encoder": TEXT, "audio_encoder": SOUND, "decoder": MUSIC}


# --- The codes

def read_text(w, ids, keep):
    """The last states of T5."""
    table = w.matrix("text_encoder.shared.weight", TEXT["vocab_size"], WIDTH)
    return encoder_decoders.t5_stack(
        w, "text_encoder.encoder.", [list(table[i]) for i in ids], gelu_tanh,
        TEXT["num_heads"] * TEXT["d_kv"], keep=keep)


def attend(w, at, x, source, causal, keep=None):
    q = split(linear(w, at + "q_proj", x, HIDDEN), HEADS)
    k = split(linear(w, at + "k_proj", source, HIDDEN), HEADS)
    v = split(linear(w, at + "v_proj", source, HIDDEN), HEADS)
    y = encoder_decoders.attend(q, k, v, 1 / math.sqrt(HIDDEN // HEADS), causal,
                                keep=keep)
    return linear(w, at + "out_proj", y, HIDDEN)


def places(count):
    """Cosines, then sines, in tensor2tensor's wavelengths."""
    half = HIDDEN // 2
    rates = [math.exp(-i * math.log(10000) / (half - 1)) for i in range(half)]
    return [[math.cos(t * r) for r in rates] + [math.sin(t * r) for r in rates]
            for t in range(count)]


def score_codes(w, states, keep, codes):
    """Rows [frames][books * codes] for columns `codes` [books][frames]; `states`
    is what T5 gave, or None for no text: all zeros, as the class has them."""
    x = places(len(codes[0]))
    for k, own in enumerate(codes):
        table = w.matrix(f"decoder.model.decoder.embed_tokens.{k}.weight",
                         CODES + 1, HIDDEN)
        x = plus(x, [table[i] for i in own])
    if states is None:
        memory, keep = [[0.0] * HIDDEN] * 2, None
    else:
        memory = linear(w, "enc_to_dec_proj", states, HIDDEN, True)
    for i in range(LAYERS):
        at = f"decoder.model.decoder.layers.{i}."
        y = layer_norm(w, at + "self_attn_layer_norm", x)
        x = plus(x, attend(w, at + "self_attn.", y, y, True))
        y = layer_norm(w, at + "encoder_attn_layer_norm", x)
        x = plus(x, attend(w, at + "encoder_attn.", y, memory, False, keep))
        y = layer_norm(w, at + "final_layer_norm", x)
        y = [[gelu(a) for a in row] for row in linear(w, at + "fc1", y, INNER)]
        x = plus(x, linear(w, at + "fc2", y, HIDDEN))
    x = layer_norm(w, "decoder.model.decoder.layer_norm", x)
    heads = [linear(w, f"decoder.lm_heads.{k}", x, CODES) for k in range(BOOKS)]
    return [sum(rows, []) for rows in zip(*heads)]


def write(w, ids, columns, guidance):
    """The likeliest codes, from the beginning for each column. The pattern is the
    class's: a table with -1 where a code belongs."""
    states = read_text(w, ids, None)
    pattern = [[-1 if k < t <= columns - BOOKS + k else CODES
                for t in range(columns)] for k in range(BOOKS)]
    told = [[CODES] for _ in range(BOOKS)]
    closest = math.inf
    while len(told[0]) < columns:
        given = score_codes(w, states, None, told)[-1]
        if guidance > 1:
            none = score_codes(w, None, None, told)[-1]
            given = [b + guidance * (a - b) for a, b in zip(given, none)]
        for k, own in enumerate(told):
            scores = given[k * CODES:(k + 1) * CODES]
            best, second = sorted(scores)[:-3:-1]
            if pattern[k][len(own)] == -1:
                closest = min(closest, best - second)
            own.append(scores.index(best) if pattern[k][len(own)] == -1
                       else CODES)
    print(f"  the two likeliest codes are {closest:.2g} apart or more")
    return [[i for i in own if i != CODES] for own in told]


# --- The sound

def normed(w, name, old, shape):
    """Rows of the first dimension, each of its own length."""
    g, v = ((".weight_g", ".weight_v") if old else
            (".parametrizations.weight.original0",
             ".parametrizations.weight.original1"))
    lengths = w.vector(name + g, shape[0], 1.5)
    rows = w.matrix(name + v, shape[0], shape[1] * shape[2])
    w.made[name + g] = ([shape[0], 1, 1], w.made[name + g][1])
    w.made[name + v] = (list(shape), w.made[name + v][1])
    return [[a * length / math.sqrt(dot(row, row)) for a in row]
            for row, length in zip(rows, lengths)]


def mirrored(x, left, right):
    """As torch's reflect; too short a sound first has zeros behind it, as many
    as are cut off in the end."""
    more = max(0, max(left, right) - len(x) + 1)
    long = x + [[0.0] * len(x[0])] * more
    padded = ([long[left - i] for i in range(left)] + long
              + [long[-2 - i] for i in range(right)])
    return padded[:len(padded) - more]


def convolve(w, name, x, out, kernel, old):
    inner = len(x[0])
    table = normed(w, name, old, (out, inner, kernel))
    bias = w.vector(name + ".bias", out)
    right = (kernel - 1) // 2
    padded = mirrored(x, kernel - 1 - right, right)
    return [[b + dot(row, [padded[t + k][c] for c in range(inner)
                           for k in range(kernel)])
             for row, b in zip(table, bias)] for t in range(len(x))]


def spread(w, name, x, out, stride, old):
    """The transposed convolution as it is defined: each place adds to those of
    its kernel."""
    inner, kernel = len(x[0]), 2 * stride
    table = normed(w, name, old, (inner, out, kernel))
    bias = w.vector(name + ".bias", out)
    total = [list(bias) for _ in range((len(x) - 1) * stride + kernel)]
    for t, row in enumerate(x):
        for c, value in enumerate(row):
            for o in range(out):
                for k in range(kernel):
                    total[t * stride + k][o] += value * table[c][o * kernel + k]
    right = (kernel - stride) // 2
    left = kernel - stride - right
    return total[left:len(total) - right]


def elu(x):
    return [[v if v > 0 else math.expm1(v) for v in row] for row in x]


def lstm(w, name, x, layers):
    width = len(x[0])
    for layer in range(layers):
        inner = w.matrix(f"{name}.weight_ih_l{layer}", 4 * width, width)
        own = w.matrix(f"{name}.weight_hh_l{layer}", 4 * width, width)
        shifts = [a + b for a, b in zip(
            w.vector(f"{name}.bias_ih_l{layer}", 4 * width),
            w.vector(f"{name}.bias_hh_l{layer}", 4 * width))]
        state, cell, made = [0.0] * width, [0.0] * width, []
        for row in x:
            gates = [dot(a, row) + dot(b, state) + s
                     for a, b, s in zip(inner, own, shifts)]
            sigmoid = [1 / (1 + math.exp(-g)) for g in gates]
            cell = [f * c + i * math.tanh(g) for i, f, g, c in zip(
                sigmoid[:width], sigmoid[width:], gates[2 * width:], cell)]
            state = [o * math.tanh(c) for o, c in zip(sigmoid[3 * width:], cell)]
            made.append(state)
        x = made
    return x


def play(w, prefix, codes, old):
    """Samples of codes [books][frames]."""
    x = [[0.0] * VECTOR for _ in codes[0]]
    for k, own in enumerate(codes):
        name = f"{prefix}quantizer.layers.{k}.codebook.embed"
        table = w.matrix(name, CODES, VECTOR)
        x = plus(x, [table[i] for i in own])
    at = prefix + "decoder.layers."
    wide = FILTERS << len(RATIOS)
    x = convolve(w, at + "0.conv", x, wide, 7, old)
    x = plus(x, lstm(w, at + "1.lstm", x, 2))
    number = 2
    for ratio in RATIOS:
        wide //= 2
        x = spread(w, f"{at}{number + 1}.conv", elu(x), wide, ratio, old)
        block = f"{at}{number + 2}.block."
        y = convolve(w, block + "1.conv", elu(x), wide // 2, 3, old)
        x = plus(x, convolve(w, block + "3.conv", elu(y), wide, 1, old))
        number += 3
    x = convolve(w, f"{at}{number + 1}.conv", elu(x), 1, 5, old)
    return [row[0] for row in x]


# --- Checks

FAILURES = []


def judge(what, good, detail=""):
    print(f"{'PASS' if good else 'FAIL'} {what}" + (f": {detail}" if detail else ""))
    if not good:
        FAILURES.append(what)


def close(what, got, expected):
    limit = 2e-5 * max(1.0, max(map(abs, expected)))
    worst = (max(abs(a - b) for a, b in zip(got, expected))
             if len(got) == len(expected) else math.inf)
    judge(what, worst <= limit, f"{worst:.2g} of {limit:.2g}")


def numbers(rows):
    flat = [i for row in rows for i in row]
    return "I64", [len(rows), len(rows[0])], struct.pack(f"<{len(flat)}q", *flat)


def run(folder, inputs):
    path = os.path.join(folder, "in.safetensors")
    out = os.path.join(folder, "out.safetensors")
    tensors.save(path, inputs)
    result = decoder_layers.program(folder, "run", "--inputs", path,
                                    "--outputs", out)
    if result.returncode:
        sys.exit(result.stderr)
    return {name: list(array.array("f", raw))
            for name, (_, _, raw) in tensors.load(out).items()}


def build(attune, folder, w, config, more):
    """`more` is in the file and no part of what is compiled."""
    os.makedirs(folder, exist_ok=True)
    for name in more:
        w.vector(name, 3)
    with open(os.path.join(folder, "generation_config.json"), "w",
              encoding="utf-8") as file:
        file.write(f'{{"decoder_start_token_id": {CODES}, "do_sample": true, '
                   '"guidance_scale": 3.0, "max_length": 12}')
    error = decoder_layers.build(attune, folder, w, config)
    if error:
        sys.exit(error)


def forward(folder, w):
    """Two texts, of which masks hide words behind and before, then one of each."""
    draw = random.Random("forward")
    for words, frames, masks in (
            (6, 5, [[1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1]]), (1, 1, [[1]])):
        texts = [[draw.randrange(TEXT["vocab_size"]) for _ in range(words)]
                 for _ in masks]
        codes = [[[draw.randrange(CODES + 1) for _ in range(frames)]
                  for _ in range(BOOKS)] for _ in masks]
        states = [read_text(w, ids, keep) for ids, keep in zip(texts, masks)]
        logits = [score_codes(w, *row) for row in zip(states, masks, codes)]
        inputs = {"input_ids": numbers(texts), "attention_mask": numbers(masks)}
        for k in range(BOOKS):
            inputs[f"codes_{k}"] = numbers([row[k] for row in codes])
        found = run(folder, inputs)
        close(f"logits {words} to {frames}", found["logits"],
              [v for rows in logits for row in rows for v in row])
        got = iter(found["encoder_last_hidden_state"])
        pairs = [(next(got), v, shown) for rows, keep in zip(states, masks)
                 for row, shown in zip(rows, keep) for v in row]
        close(f"text {words}", [g for g, _, s in pairs if s],
              [v for _, v, s in pairs if s])


def generate(folder, w):
    ids = [7, 3, 21, 9, 1]
    text = ["generate", "--prompt-ids=" + ",".join(map(str, ids))]

    def told(*words):
        result = decoder_layers.program(folder, *text, *words)
        return result.stderr if result.returncode else result.stdout.strip()

    def lines(codes):
        return "\n".join(",".join(map(str, own)) for own in codes)

    wanted = write(w, ids, 12, 3.0)
    judge("codes with guidance", told("--greedy") == lines(wanted),
          f"{told('--greedy')} for {lines(wanted)}")
    plain = write(w, ids, 8, 1.0)
    got = told("--greedy", "--guidance=1", "--max-new-tokens=7")
    judge("codes without guidance", got == lines(plain) and plain != [
        own[:4] for own in wanted], got)
    # One code to choose from is the likeliest.
    judge("sampled codes", told("--top-k=1", "--seed=3") == lines(wanted))
    other = told("--seed=5")
    judge("seeds", other == told("--seed=5") and other not in (
        told("--seed=6"), lines(wanted)))
    wave, kept = (os.path.join(folder, name) for name in (
        "sound.wav", "codes.safetensors"))
    got = told("--greedy", "--audio-out", wave, "--codes-out", kept)
    judge("nothing printed", got == "", got)
    _, shape, raw = tensors.load(kept)["audio_codes"]
    judge("kept codes", shape == [1, BOOKS, 8] and list(
        struct.unpack(f"<{len(raw) // 8}q", raw)) == sum(wanted, []))
    with open(wave, "rb") as file:
        wave = file.read()
    count = 8 * math.prod(RATIOS)
    judge("head of the file", wave[:58] == (
        b"RIFF" + struct.pack("<I", 50 + 4 * count) + b"WAVEfmt "
        + struct.pack("<IHHIIHHH", 18, 3, 1, RATE, 4 * RATE, 4, 32, 0)
        + b"fact" + struct.pack("<II", 4, count)
        + b"data" + struct.pack("<I", 4 * count)))
    close("samples of the file", list(array.array("f", wave[58:])),
          play(w, "audio_encoder.", wanted, True))


def check_music(attune, work):
    w = Weights("musicgen")
    score_codes(w, read_text(w, [1], None), None, [[0]] * BOOKS)
    play(w, "audio_encoder.", [[0]] * BOOKS, True)
    folder = os.path.join(work, "musicgen")
    build(attune, folder, w, CONFIG, [
        "audio_encoder.encoder.layers.0.conv.weight_g",
        "audio_encoder.quantizer.layers.0.codebook.inited",
        "decoder.model.decoder.embed_positions.weights"])
    forward(folder, w)
    generate(folder, w)


def check_sound(attune, work):
    draw, w = random.Random("codes"), Weights("encodec")
    play(w, "", [[0]] * BOOKS, False)
    folder = os.path.join(work, "encodec")
    build(attune, folder, w, SOUND, ["encoder.layers.0.conv.bias"])
    for rows, frames in ((1, 1), (1, 2), (2, 3), (1, 6)):
        codes = [[[draw.randrange(CODES) for _ in range(frames)]
                  for _ in range(BOOKS)] for _ in range(rows)]
        found = run(folder, {
            f"audio_codes_{k}": numbers([row[k] for row in codes])
            for k in range(BOOKS)})
        close(f"EnCodec {rows} of {frames}", found["audio_values"],
              [v for row in codes for v in play(w, "", row, False)])


def main():
    attune, work, what = decoder_layers.take_options(sys.argv[1:])
    {"musicgen": check_music, "encodec": check_sound}[what](attune, work)
    print("all passed" if not FAILURES else f"{len(FAILURES)} failed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
