#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small MusicGen and a small EnCodec with random weights under the names of
their checkpoints, against float64 arithmetic done here.

  musicgen.py ATTUNE WORK 1|2... [--flag=FLAG]...

Logits and text states of two rows of codes, of which masks hide words on either
side; greedy codes with and without guidance, every column of them from the
beginning; the sound of these codes, of one channel or of two, whose codebooks take
turns and whose prompt is a text; a sound that goes on behind one of a file. Exit
status 0: all passed.
"""
import array
import json
import math
import os
import random
import struct
import sys

import decoder_layers
import encodec
import encoder_decoders
import tensors
from decoder_layers import (WIDTH, Weights, gelu, gelu_tanh, layer_norm, linear,
                            plus, split)
from encodec import BOOKS, CODES, RATE, RATIOS, close, judge, numbers, run

# The decoder is as wide as no text, so that there is a projection.
HIDDEN, HEADS, INNER, LAYERS = 24, 3, 40, 2
TEXT = {"model_type": "t5", "d_model": WIDTH, "d_kv": 12,
        "d_ff": decoder_layers.INNER, "num_layers": encoder_decoders.LAYERS,
        "num_heads": decoder_layers.HEADS, "vocab_size": decoder_layers.VOCAB,
        "relative_attention_num_buckets": encoder_decoders.BUCKETS,
        "relative_attention_max_distance": encoder_decoders.DISTANCE,
        "feed_forward_proj": "gated-gelu", "n_positions": 512}
MUSIC = {"model_type": "musicgen_decoder", "hidden_size": HIDDEN,
         "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
         "ffn_dim": INNER, "vocab_size": CODES, "num_codebooks": BOOKS,
         "max_position_embeddings": 64, "scale_embedding": False,
         "pad_token_id": CODES, "bos_token_id": CODES}
CONFIG = {"model_type": "musicgen", "is_encoder_decoder": True,
          "architectures": ["MusicgenForConditionalGeneration"],
          "text_encoder": TEXT, "audio_encoder": encodec.FORMS["32"], "decoder": MUSIC}

# T5's form of a tokenizer: each word begins with its space, and a text ends in
# </s>.
PIECES = ["<pad>", "</s>", "<unk>", "▁a", "▁slow", "▁fast", "▁harp", "s", "▁", "l"]
SPACES = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
          "split": True}
TOKENIZER = {
    "version": "1.0", "normalizer": None, "decoder": SPACES,
    "added_tokens": [{"id": i, "content": text, "special": True,
                      "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False} for i, text in enumerate(PIECES[:3])],
    "pre_tokenizer": SPACES,
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "</s>", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 0}},
                 {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "special_tokens": {"</s>": {"id": "</s>", "ids": [1],
                                    "tokens": ["</s>"]}}},
    "model": {"type": "Unigram", "unk_id": 2, "byte_fallback": False,
              "vocab": [[text, -0.5 * i] for i, text in enumerate(PIECES)]}}
WORDS, WORD_IDS = "a slow harps", [3, 4, 6, 7, 1]


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


def write(w, ids, columns, guidance, channels=1, begun=None):
    """The likeliest codes, from the beginning for each column, behind those that
    are there already. The pattern is the class's: a table with -1 where a code
    belongs, each row of which stands there once for each channel."""
    states, own = read_text(w, ids, None), BOOKS // channels
    pattern = [[-1 if k < t <= columns - own + k else CODES
                for t in range(columns)]
               for k in range(own) for _ in range(channels)]
    for number, codes in enumerate(begun or []):
        for frame, code in enumerate(codes):
            column = frame + number // channels + 1
            if column < columns and pattern[number][column] == -1:
                pattern[number][column] = code
    heard = len(begun[0]) if begun else 0
    told = [row[:heard + 1] for row in pattern]
    closest = math.inf
    while len(told[0]) < columns:
        given = score_codes(w, states, None, told)[-1]
        if guidance > 1:
            none = score_codes(w, None, None, told)[-1]
            given = [b + guidance * (a - b) for a, b in zip(given, none)]
        for k, own in enumerate(told):
            scores = given[k * CODES:(k + 1) * CODES]
            best, second = sorted(scores)[:-3:-1]
            fixed = pattern[k][len(own)]
            if fixed == -1:
                closest = min(closest, best - second)
            own.append(scores.index(best) if fixed == -1 else fixed)
    print(f"  the two likeliest codes are {closest:.2g} apart or more")
    return [[i for i in own if i != CODES] for own in told]


# --- Checks

def build(attune, folder, w, config, more):
    """`more` is in the file and no part of what is compiled."""
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


def generate(folder, w, config):
    channels = config["decoder"]["audio_channels"]
    late = BOOKS // channels
    # A product without a tokenizer takes ids.
    text = ["generate"] + (["--prompt", WORDS] if channels == 2 else [
        "--prompt-ids=" + ",".join(map(str, WORD_IDS))])

    def told(*words):
        result = decoder_layers.program(folder, *text, *words)
        return result.stderr if result.returncode else result.stdout.strip()

    def lines(codes):
        return "\n".join(",".join(map(str, own)) for own in codes)

    wanted = write(w, WORD_IDS, 12, 3.0, channels)
    frames = 12 - late
    judge("codes with guidance", told("--greedy") == lines(wanted),
          f"{told('--greedy')} for {lines(wanted)}")
    plain = write(w, WORD_IDS, 8, 1.0, channels)
    got = told("--greedy", "--guidance=1", "--max-new-tokens=7")
    judge("codes without guidance", got == lines(plain) and plain != [
        own[:8 - late] for own in wanted], got)
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
    judge("kept codes", shape == [1, BOOKS, frames] and list(
        struct.unpack(f"<{len(raw) // 8}q", raw)) == sum(wanted, []))
    codec = encodec.Codec(w, "audio_encoder.", config["audio_encoder"], True)
    wave = check_wave("samples of the file", wave, codec, wanted, channels)
    again = os.path.join(folder, "again.wav")
    result = decoder_layers.program(folder, "generate", "--codes", kept,
                                    "--audio-out", again)
    if result.returncode:
        sys.exit(result.stderr)
    with open(again, "rb") as file:
        judge("codes played again", file.read() == wave)
    go_on(folder, w, codec, channels, text)


def check_wave(what, path, codec, codes, channels):
    """Of two channels codebooks 0 and 2 are the left one's, 1 and 3 the right's."""
    sides = [codec.play(codes[side::channels]) for side in range(channels)]
    samples = [[v for row in rows for v in row] for rows in zip(*sides)]
    with open(path, "rb") as file:
        wave = file.read()
    encodec.check_head(wave, channels, len(samples))
    close(what, list(array.array("f", wave[58:])), encodec.flat(samples))
    return wave


def go_on(folder, w, codec, channels, text):
    """Behind four frames, of which the last is begun, and behind one."""
    draw, path, out = random.Random("heard"), os.path.join(
        folder, "heard.wav"), os.path.join(folder, "longer.wav")
    for count, more, guidance in ((20, 7, 3.0), (6, 6, 1.0)):
        samples = encodec.draw_samples(draw, count, channels)
        encodec.save_wave(path, samples)
        sides = [codec.hear([[row[side]] for row in samples], BOOKS // channels)
                 for side in range(channels)]
        begun = [codes for pair in zip(*(own for own, _ in sides))
                 for codes in pair]
        heard = len(begun[0])
        wanted = write(w, WORD_IDS, heard + 1 + more, guidance, channels, begun)
        result = decoder_layers.program(
            folder, *text, "--audio", path, "--audio-out", out, "--greedy",
            "--format=ids", f"--max-new-tokens={more}", f"--guidance={guidance}")
        if result.returncode:
            sys.exit(result.stderr)
        lines = "\n".join(",".join(map(str, own)) for own in wanted)
        judge(f"codes behind {heard} frames",
              result.stdout.strip() == lines
              and all(own[:heard] == old for own, old in zip(wanted, begun))
              and min(gap for _, gap in sides) > 1e-5,
              f"{result.stdout.strip()} for {lines}")
        check_wave(f"samples behind {heard} frames", out, codec, wanted, channels)


def check(attune, work, channels):
    config = {**CONFIG, "decoder": {**MUSIC, "audio_channels": channels}}
    w = Weights("musicgen")
    score_codes(w, read_text(w, [1], None), None, [[0]] * BOOKS)
    codec = encodec.Codec(w, "audio_encoder.", config["audio_encoder"], True)
    codec.play([[0]] * (BOOKS // channels))
    codec.hear([[0.0]], BOOKS // channels)
    folder = os.path.join(work, "musicgen" if channels == 1 else "stereo")
    os.makedirs(folder, exist_ok=True)
    if channels == 2:
        with open(os.path.join(folder, "tokenizer.json"), "w",
                  encoding="utf-8") as file:
            json.dump(TOKENIZER, file)
    build(attune, folder, w, config, [
        "audio_encoder.quantizer.layers.0.codebook.inited",
        "decoder.model.decoder.embed_positions.weights"])
    forward(folder, w)
    generate(folder, w, config)


def main():
    attune, work, *channels = decoder_layers.take_options(sys.argv[1:])
    for count in channels:
        check(attune, work, int(count))
    return encodec.finish()


if __name__ == "__main__":
    sys.exit(main())
