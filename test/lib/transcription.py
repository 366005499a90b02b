#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes sounds down with small Whisper models of random weights, and compares
with the published algorithm, written once more in plain loops of doubles: the
features, the language that is heard, the rules of times, and windows that begin
where the last whole part ended.

  transcription.py ATTUNE WORK CASE

Exit status 0: all passed.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys

import decoder_layers
import encoder_decoders
from decoder_layers import VOCAB
from encoder_decoders import BART, BINS

RATE, WINDOW, HOP, FRAMES = 4800, 240, 200, 24
END, START, ENGLISH, GERMAN, TRANSLATE, TRANSCRIBE, NO_TIMES = range(20, 27)
TIME = NO_TIMES + 1
MOST, LATEST = 12, 3
NEVER, NOT_FIRST = [3, 5, 24], [7, END]
LANGUAGES = {"en": ENGLISH, "de": GERMAN}
TASKS = {"translate": TRANSLATE, "transcribe": TRANSCRIBE}
LETTERS = "Ġabcdefghijklmnopqrs"


# --- Features

def corner(i):
    """Hertz of the i-th of BINS + 2 equally distant points in mel."""
    top = 15 + 27 * math.log(RATE / 2 / 1000, 6.4)
    mel = top * i / (BINS + 1)
    return 1000 * 6.4 ** ((mel - 15) / 27) if mel > 15 else 200 * mel / 3


FILTERS = [[max(0.0, min((f * RATE / WINDOW - corner(b)) / (corner(b + 1) - corner(b)),
                         (corner(b + 2) - f * RATE / WINDOW) / (corner(b + 2) - corner(b + 1))))
            * 2 / (corner(b + 2) - corner(b)) for f in range(WINDOW // 2 + 1)]
           for b in range(BINS)]
COSINES = [math.cos(2 * math.pi * i / WINDOW) for i in range(WINDOW)]
SINES = [math.sin(2 * math.pi * i / WINDOW) for i in range(WINDOW)]
TURNS = [([COSINES[i * f % WINDOW] for i in range(WINDOW)],
          [SINES[i * f % WINDOW] for i in range(WINDOW)])
         for f in range(WINDOW // 2 + 1)]


def features_of(samples):
    """[bands][frames]; a short sound is filled up first."""
    samples = samples + [0.0] * (FRAMES * HOP - len(samples))
    half = WINDOW // 2
    padded = samples[half:0:-1] + samples + samples[-2:-2 - half:-1]
    columns = []
    for t in range(len(samples) // HOP):
        frame = [x * (0.5 - 0.5 * c)
                 for x, c in zip(padded[t * HOP:t * HOP + WINDOW], COSINES)]
        power = [sum(map(float.__mul__, frame, c)) ** 2
                 + sum(map(float.__mul__, frame, s)) ** 2 for c, s in TURNS]
        columns.append([math.log10(max(1e-10, sum(map(float.__mul__, row, power))))
                        for row in FILTERS])
    floor = max(map(max, columns)) - 8
    return [[(max(x, floor) + 4) / 4 for x in row] for row in zip(*columns)]


# --- The algorithm

def allowed(logits, said, timed):
    scores = list(logits)

    def ban(tokens):
        for i in tokens:
            scores[i] = -math.inf

    ban(NEVER + (NOT_FIRST if not said else []))
    if not timed:
        return scores
    ban([NO_TIMES])
    last = bool(said) and said[-1] >= TIME
    before = len(said) < 2 or said[-2] >= TIME
    if last and before:
        ban(range(TIME, VOCAB))
    elif last:
        ban(range(END))
    times = [i for i in said if i >= TIME]
    if times:
        ban(range(TIME, times[-1] + (0 if last and not before else 1)))
    if not said:
        ban(range(TIME))
        ban(range(TIME + LATEST + 1, VOCAB))
    likely = [math.exp(x) for x in scores]
    if sum(likely[TIME:]) > max(likely[:TIME]):
        ban(range(TIME))
    return scores


def best(scores):
    return max(range(VOCAB), key=lambda i: scores[i])


def parts_of(said, count, at, seen):
    """The parts of a window's text, and by how many frames to go on."""
    is_time = [i >= TIME for i in said]
    second = lambda frame: (at + frame) * HOP / RATE
    frame_of = lambda token: 2 * (token - TIME)
    alone = is_time[-2:] == [False, True]
    cuts = [i + 1 for i in range(len(said) - 1) if is_time[i] and is_time[i + 1]]
    if not cuts:
        seen.add("no pair")
        end = count // 2 * 2
        times = [i for i in said if i >= TIME]
        if times and times[-1] != TIME:
            end = frame_of(times[-1])
        return [(second(0), second(end), said)], count
    if alone:
        seen.add("pair and whole")
        cuts.append(len(said))
    else:
        seen.add("pair")
        cuts[-1] += 1
    parts, begin = [], 0
    for n, cut in enumerate(cuts):
        piece = said[begin:cut]
        end = -2 if n + 1 == len(cuts) and not alone else -1
        parts.append((second(frame_of(piece[0])), second(frame_of(piece[end])), piece))
        begin = cut
    # Where the time stands still the published loop never ends.
    return parts, count if alone else frame_of(said[begin - 2]) or count


def transcribe(w, samples, options, forced, seen):
    """The language, and the parts (begin, end, ids)."""
    features = features_of(samples)
    total, at, parts = len(features[0]), 0, []
    timed = options.get("timestamps") or total > FRAMES
    start, language = None, options.get("language")
    while at < total:
        count = min(FRAMES, total - at)
        memory = encoder_decoders.whisper_encoder(
            w, [row[at:at + count] + [0.0] * (FRAMES - count) for row in features])
        if start is None:
            logits = encoder_decoders.whisper_decoder(w, memory, [START])[-1]
            heard = max(LANGUAGES, key=lambda code: logits[LANGUAGES[code]])
            asked = "language" in options or "task" in options
            language = language or heard
            start = [START, LANGUAGES[language]]
            if asked:
                start.append(TASKS[options.get("task", "transcribe")])
            else:
                start += forced
            if not timed:
                start.append(NO_TIMES)
        said = []
        while len(said) < MOST and END not in said:
            logits = encoder_decoders.whisper_decoder(w, memory, start + said)[-1]
            said.append(best(allowed(logits, said, timed)))
        if said[-1] == END:
            seen.add("end")
            said.pop()
        else:
            seen.add("cut off")
        more, step = parts_of(said, count, at, seen)
        parts += more
        at += step
    return language, parts


# --- Files

def make_sound(draw, count):
    """Two channels that are not alike, of floats."""
    tones = [(draw.uniform(0.01, 1.5), draw.uniform(0, 0.4)) for _ in range(4)]
    left = [sum(a * math.sin(f * i * (1 + i / 9000)) for f, a in tones)
            + draw.uniform(-0.05, 0.05) for i in range(count)]
    return left, [draw.uniform(-0.1, 0.1) for _ in range(count)]


def save_wave(path, channels):
    """As floats; gives what their mean is."""
    numbers = [x for frame in zip(*channels) for x in frame]
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    exact = struct.unpack(f"<{len(numbers)}f", data)
    size = 4 * len(channels)
    head = struct.pack("<HHIIHH", 3, len(channels), RATE, RATE * size, size, 32)
    with open(path, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
                   + struct.pack("<I", 16) + head + b"data"
                   + struct.pack("<I", len(data)) + data)
    step = len(channels)
    return [sum(exact[i:i + step]) / step for i in range(0, len(exact), step)]


def tokenizer():
    special = {END: "<|endoftext|>", START: "<|startoftranscript|>",
               ENGLISH: "<|en|>", GERMAN: "<|de|>", TRANSLATE: "<|translate|>",
               TRANSCRIBE: "<|transcribe|>", NO_TIMES: "<|notimestamps|>"}
    times = {i: f"<|{(i - TIME) * 0.083:.2f}|>" for i in range(TIME, VOCAB)}
    added = [{"id": i, "content": text, "special": i in special,
              "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False} for i, text in {**special, **times}.items()]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False,
                      "vocab": {c: i for i, c in enumerate(LETTERS)}, "merges": []}}


def text_of(ids):
    return "".join(LETTERS[i] for i in ids if i < END).replace("Ġ", " ")


def build(attune, folder, weights, forced):
    def save(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    save("preprocessor_config.json",
         {"sampling_rate": RATE, "n_fft": WINDOW, "hop_length": HOP,
          "feature_size": BINS, "chunk_length": FRAMES * HOP // RATE})
    save("generation_config.json",
         {"eos_token_id": END, "bos_token_id": END, "pad_token_id": END,
          "decoder_start_token_id": START, "suppress_tokens": NEVER,
          "begin_suppress_tokens": NOT_FIRST, "is_multilingual": True,
          "lang_to_id": {f"<|{code}|>": i for code, i in LANGUAGES.items()},
          "task_to_id": TASKS, "no_timestamps_token_id": NO_TIMES,
          "max_initial_timestamp_index": LATEST,
          "forced_decoder_ids": [[1, None]] + [[i + 2, token] for i, token
                                               in enumerate(forced)]})
    save("tokenizer.json", tokenizer())
    config = {key: BART[key] for key in BART if "position" not in key}
    config.update(model_type="whisper", num_mel_bins=BINS,
                  max_source_positions=FRAMES // 2, max_target_positions=64,
                  architectures=["WhisperForConditionalGeneration"])
    return decoder_layers.build(attune, folder, weights, config)


def check(folder, samples, weights, options, forced, seen):
    """Nothing, or what is wrong."""
    language, parts = transcribe(weights, samples, options, forced, seen)
    words = [f"--{key}" if value is True else f"--{key}={value}"
             for key, value in options.items()]

    def run(form):
        result = subprocess.run(
            [os.path.join(folder, "program"), "generate",
             "--audio=" + os.path.join(folder, "sound.wav"), "--greedy",
             f"--max-new-tokens={MOST}", f"--format={form}", *words],
            capture_output=True, text=True)
        return result.stdout if result.returncode == 0 else result.stderr

    ids = [i for _, _, piece in parts for i in piece]
    wanted = ",".join(map(str, ids)) + "\n"
    got = run("ids")
    if got != wanted:
        return f"told {got}not  {wanted}"
    got = run("text")
    wanted = text_of(ids) + "\n"
    if options.get("timestamps"):
        def clock(seconds):
            return f"00:{seconds + 1e-9:06.3f}"
        wanted = "".join(
            f"[{clock(a)} --> {clock(b)}]"
            + (" " if not text_of(piece).startswith(" ") else "")
            + text_of(piece) + "\n" for a, b, piece in parts)
    if got != wanted:
        return f"wrote\n{got}not\n{wanted}"
    got = json.loads(run("json"))
    if (got["language"], got["ids"], got["text"]) != (language, ids, text_of(ids)):
        return f"told {got}"
    for part, (begin, end, piece) in zip(got["segments"], parts):
        if (abs(part["start"] - begin) > 1e-6 or abs(part["end"] - end) > 1e-6
                or part["ids"] != piece or part["text"] != text_of(piece)):
            return f"told {part}, not {begin}, {end}, {piece}"
    return "" if len(got["segments"]) == len(parts) else "parts are missing"


# The weights' seed, what files say that the text starts from behind the
# language, and sounds: samples and options.
CASES = {
    "short": (2, [TRANSCRIBE], [(3000, {}), (3000, {"timestamps": True}),
                                (FRAMES * HOP, {"task": "translate"})]),
    "long": (3, [], [(11000, {}), (8100, {"language": "en", "task": "translate",
                                          "timestamps": True})])}


def main():
    attune, folder, name = sys.argv[1:4]
    failures, seen = 0, set()
    seed, forced, sounds = CASES[name]
    weights = decoder_layers.Weights(f"whisper {seed}")
    os.makedirs(folder, exist_ok=True)
    for number, (count, options) in enumerate(sounds):
        draw = random.Random(f"{name} {number}")
        samples = save_wave(os.path.join(folder, "sound.wav"),
                            make_sound(draw, count))
        if number == 0:
            transcribe(weights, samples, options, forced, set())
            error = build(attune, folder, weights, forced)
            if error:
                print(f"FAIL: {error}")
                return 1
        error = check(folder, samples, weights, options, forced, seen)
        if error:
            print(f"FAIL {count} samples, {options}: {error}")
            failures += 1
    print("windows:", ", ".join(sorted(seen)))
    print("all passed" if not failures else f"{failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
