#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small EnCodecs with random weights under the names of their checkpoints,
against float64 arithmetic done here.

  encodec.py ATTUNE WORK 24|32|48... [--flag=FLAG]...

The published forms: of 24 kHz, 32 kHz (MusicGen's) and 48 kHz. Samples of 1 to 6
frames, alone and two sounds at a time; files of codes that `generate` plays: of
fewer codebooks than there are, or in pieces of which the last is shorter. Codes
that it makes of the sound in a file, of whole frames, of others and of a single
sample, or in pieces. Exit status 0: all passed.
"""
import array
import math
import os
import random
import struct
import sys

import decoder_layers
import tensors
from decoder_layers import Weights, dot, plus

BOOKS, CODES = 4, 12
# What an odd stride cuts off is not the same on both sides.
VECTOR, FILTERS, RATIOS, RATE = 6, 2, [3, 2], 16000
PLAIN = {"model_type": "encodec", "architectures": ["EncodecModel"],
         "hidden_size": VECTOR, "num_filters": FILTERS, "codebook_size": CODES,
         "codebook_dim": VECTOR, "upsampling_ratios": RATIOS, "compress": 2,
         "kernel_size": 7, "last_kernel_size": 5, "residual_kernel_size": 3,
         "num_lstm_layers": 2, "use_causal_conv": False,
         "use_conv_shortcut": False, "sampling_rate": RATE,
         "target_bandwidths": [43.0], "norm_type": "weight_norm",
         "pad_mode": "reflect", "trim_right_ratio": 1.0, "audio_channels": 1,
         "dilation_growth_rate": 2, "chunk_length_s": None, "overlap": None}
# Pieces of 15 samples, which are 5 frames, and 9 from one to the next.
PIECE, STEP = 15, 9
FORMS = {
    "24": {**PLAIN, "use_causal_conv": True, "use_conv_shortcut": True,
           "upsampling_ratios": [3], "target_bandwidths": [43.0, 86.0]},
    "32": PLAIN,
    # The published one mirrors, too.
    "48": {**PLAIN, "use_conv_shortcut": True, "norm_type": "time_group_norm",
           "audio_channels": 2, "normalize": True, "pad_mode": "constant",
           "upsampling_ratios": [3], "target_bandwidths": [43.0, 86.0],
           "chunk_length_s": PIECE / RATE, "overlap": 0.4}}


class Codec:
    """The decoder and the encoder of a configuration. `old` weights are kept as
    weight_g and weight_v, others as parametrizations."""

    def __init__(self, w, prefix, config, old):
        self.w, self.prefix, self.old = w, prefix, old
        self.causal = config["use_causal_conv"]
        self.shortcut = config["use_conv_shortcut"]
        self.grouped = config["norm_type"] == "time_group_norm"
        self.reflects = config["pad_mode"] == "reflect"
        self.ratios = config["upsampling_ratios"]
        self.channels = config["audio_channels"]

    def table(self, name, shape):
        """Rows of the first dimension, each of its own length."""
        w = self.w
        if self.grouped:
            rows = w.matrix(name + ".weight", shape[0], shape[1] * shape[2])
            w.made[name + ".weight"] = (list(shape), w.made[name + ".weight"][1])
            return rows
        g, v = ((".weight_g", ".weight_v") if self.old else
                (".parametrizations.weight.original0",
                 ".parametrizations.weight.original1"))
        lengths = w.vector(name + g, shape[0], 1.5)
        rows = w.matrix(name + v, shape[0], shape[1] * shape[2])
        w.made[name + g] = ([shape[0], 1, 1], w.made[name + g][1])
        w.made[name + v] = (list(shape), w.made[name + v][1])
        return [[a * length / math.sqrt(dot(row, row)) for a in row]
                for row, length in zip(rows, lengths)]

    def padded(self, x, left, right):
        """As torch's reflect; too short a sound first has zeros behind it, as
        many as are cut off in the end."""
        none = [0.0] * len(x[0])
        if not self.reflects:
            return [none] * left + x + [none] * right
        more = max(0, max(left, right) - len(x) + 1)
        long = x + [none] * more
        both = ([long[left - i] for i in range(left)] + long
                + [long[-2 - i] for i in range(right)])
        return both[:len(both) - more]

    def norm(self, name, x):
        """A group norm of one group: one mean, one variance."""
        if not self.grouped:
            return x
        flat = [v for row in x for v in row]
        mean = math.fsum(flat) / len(flat)
        spread = math.fsum((v - mean) ** 2 for v in flat) / len(flat)
        width = len(x[0])
        gamma = self.w.vector(name + ".norm.weight", width, 1.0)
        beta = self.w.vector(name + ".norm.bias", width)
        return [[(v - mean) / math.sqrt(spread + 1e-5) * g + b
                 for v, g, b in zip(row, gamma, beta)] for row in x]

    def convolve(self, name, x, out, kernel, stride=1):
        """What the kernel has more than a stride is padding, and so is what the
        last stride lacks."""
        inner, frames = len(x[0]), -(-len(x) // stride)
        table = self.table(name + ".conv", (out, inner, kernel))
        bias = self.w.vector(name + ".conv.bias", out)
        right = 0 if self.causal else (kernel - stride) // 2
        y = self.padded(x, kernel - stride - right,
                        right + frames * stride - len(x))
        return self.norm(name, [
            [b + dot(row, [y[t * stride + k][c] for c in range(inner)
                           for k in range(kernel)])
             for row, b in zip(table, bias)] for t in range(frames)])

    def spread(self, name, x, out, stride):
        """The transposed convolution as it is defined: each place adds to those
        of its kernel."""
        inner, kernel = len(x[0]), 2 * stride
        table = self.table(name + ".conv", (inner, out, kernel))
        bias = self.w.vector(name + ".conv.bias", out)
        total = [list(bias) for _ in range((len(x) - 1) * stride + kernel)]
        for t, row in enumerate(x):
            for c, value in enumerate(row):
                for o in range(out):
                    for k in range(kernel):
                        total[t * stride + k][o] += (
                            value * table[c][o * kernel + k])
        total = self.norm(name, total)
        cut = kernel - stride
        right = cut if self.causal else cut // 2
        return total[cut - right:len(total) - right]

    def lstm(self, name, x, layers):
        w, width = self.w, len(x[0])
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
                state = [o * math.tanh(c)
                         for o, c in zip(sigmoid[3 * width:], cell)]
                made.append(state)
            x = made
        return x

    def block(self, name, x):
        wide = len(x[0])
        y = self.convolve(name + "block.1", elu(x), wide // 2, 3)
        y = self.convolve(name + "block.3", elu(y), wide, 1)
        return plus(self.convolve(name + "shortcut", x, wide, 1)
                    if self.shortcut else x, y)

    def hear(self, samples, books=BOOKS):
        """Codes [books][frames] of samples [samples][channels], and by how much
        the second nearest code is further away than the nearest at least."""
        at, number = self.prefix + "encoder.layers.", 1
        x = self.convolve(at + "0", samples, FILTERS, 7)
        for ratio in reversed(self.ratios):
            x = self.block(f"{at}{number}.", x)
            x = self.convolve(f"{at}{number + 2}", elu(x), 2 * len(x[0]),
                              2 * ratio, ratio)
            number += 3
        x = plus(x, self.lstm(f"{at}{number}.lstm", x, 2))
        x = self.convolve(f"{at}{number + 2}", elu(x), VECTOR, 5)
        codes, closest = [], math.inf
        for k in range(books):
            name = f"{self.prefix}quantizer.layers.{k}.codebook.embed"
            table, own = self.w.matrix(name, CODES, VECTOR), []
            for t, vector in enumerate(x):
                far = [math.fsum((a - b) ** 2 for a, b in zip(vector, row))
                       for row in table]
                own.append(far.index(min(far)))
                nearest, second = sorted(far)[:2]
                closest = min(closest, second - nearest)
                x[t] = [a - b for a, b in zip(vector, table[own[-1]])]
            codes.append(own)
        return codes, closest

    def play(self, codes):
        """Samples [samples][channels] of codes [books][frames]."""
        x = [[0.0] * VECTOR for _ in codes[0]]
        for k, own in enumerate(codes):
            name = f"{self.prefix}quantizer.layers.{k}.codebook.embed"
            table = self.w.matrix(name, CODES, VECTOR)
            x = plus(x, [table[i] for i in own])
        at = self.prefix + "decoder.layers."
        wide = FILTERS << len(self.ratios)
        x = self.convolve(at + "0", x, wide, 7)
        x = plus(x, self.lstm(at + "1.lstm", x, 2))
        number = 2
        for ratio in self.ratios:
            wide //= 2
            x = self.spread(f"{at}{number + 1}", elu(x), wide, ratio)
            x = self.block(f"{at}{number + 2}.", x)
            number += 3
        return self.convolve(f"{at}{number + 1}", elu(x), self.channels, 5)


def elu(x):
    return [[v if v > 0 else math.expm1(v) for v in row] for row in x]


def overlapped(pieces):
    """The sum of pieces [samples][channels] by weights, over that of the
    weights; the weights are those of a whole piece."""
    size, channels = len(pieces[0]), len(pieces[0][0])
    weights = [0.5 - abs(i / (size + 1) - 0.5) for i in range(1, size + 1)]
    end = STEP * (len(pieces) - 1) + len(pieces[-1])
    sums, all_weights = [[0.0] * channels for _ in range(end)], [0.0] * end
    for number, piece in enumerate(pieces):
        for i, (sample, weight) in enumerate(zip(piece, weights)):
            all_weights[number * STEP + i] += weight
            for c, value in enumerate(sample):
                sums[number * STEP + i][c] += weight * value
    return [[v / weight for v in row] for row, weight in zip(sums, all_weights)]


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


def finish():
    print("all passed" if not FAILURES else f"{len(FAILURES)} failed")
    return 1 if FAILURES else 0


def numbers(rows):
    flat = [i for row in rows for i in row]
    return "I64", [len(rows), len(rows[0])], struct.pack(f"<{len(flat)}q", *flat)


def flat(rows):
    return [v for row in rows for v in row]


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


def check_head(wave, channels, count):
    """`wave` are the bytes of a file of `count` samples."""
    size = 4 * channels * count
    judge("head of the file", wave[:58] == (
        b"RIFF" + struct.pack("<I", 50 + size) + b"WAVEfmt "
        + struct.pack("<IHHIIHHH", 18, 3, channels, RATE, 4 * channels * RATE,
                      4 * channels, 32, 0)
        + b"fact" + struct.pack("<II", 4, count)
        + b"data" + struct.pack("<I", size)))


def play_file(what, folder, held, expected):
    """Plays a file with the tensors `held`, samples [samples][channels]."""
    path, wave = (os.path.join(folder, name)
                  for name in ("codes.safetensors", "sound.wav"))
    tensors.save(path, held)
    result = decoder_layers.program(folder, "generate", "--codes", path,
                                    "--audio-out", wave)
    if result.returncode:
        sys.exit(result.stderr)
    with open(wave, "rb") as file:
        wave = file.read()
    check_head(wave, len(expected[0]), len(expected))
    close(what, list(array.array("f", wave[58:])), flat(expected))


def draw_codes(draw, books, frames):
    return [[draw.randrange(CODES) for _ in range(frames)] for _ in range(books)]


def packed(pieces, shape):
    """Codes [pieces][books][frames] as a tensor."""
    ids = [i for piece in pieces for row in piece for i in row]
    return "I64", shape, struct.pack(f"<{len(ids)}q", *ids)


def draw_samples(draw, count, channels):
    """Floats, so that a file has them as they are."""
    return [list(struct.unpack(f"<{channels}f", struct.pack(
        f"<{channels}f", *(draw.uniform(-1, 1) for _ in range(channels)))))
            for _ in range(count)]


def save_wave(path, samples, rate=RATE):
    """A file of 32-bit floats with samples [samples][channels]."""
    channels, values = len(samples[0]), flat(samples)
    with open(path, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + 4 * len(values)) + b"WAVEfmt "
                   + struct.pack("<IHHIIHH", 16, 3, channels, rate,
                                 4 * channels * rate, 4 * channels, 32)
                   + b"data" + struct.pack("<I", 4 * len(values))
                   + struct.pack(f"<{len(values)}f", *values))


def hear_pieces(codec, samples):
    """Codes of pieces by their loudness, as one file has them. The class cannot
    stack pieces that end early, so such a one is the last."""
    pieces, scales, closest = [], [], math.inf
    for first in range(0, len(samples), STEP):
        piece = samples[first:first + PIECE]
        scales.append(1e-8 + math.sqrt(math.fsum(
            (math.fsum(v) / codec.channels) ** 2 for v in piece) / len(piece)))
        codes, apart = codec.hear([[v / scales[-1] for v in row]
                                   for row in piece])
        pieces.append(codes)
        closest = min(closest, apart)
        if len(codes[0]) < len(pieces[0][0]):
            break
    missing = len(pieces[0][0]) - len(pieces[-1][0])
    for row in pieces[-1]:
        row += [0] * missing
    return pieces, scales, missing, closest


def check_heard(form, folder, codec, draw):
    """Distances are sums of a few numbers near 1: f32 has 1e-5 of them to
    spare, and codes that are further apart than that are told apart. Of 48 kHz
    there are pieces: a short one; a short one whose end is a piece again; a
    whole one and its end; two of which the second is short by a frame, so that
    its end is no piece; others that end early by no frame, and many."""
    path, kept = (os.path.join(folder, name)
                  for name in ("heard.wav", "heard.safetensors"))
    in_pieces, seen = form == "48", set()
    for count in ((7, 10, 15, 19, 22, 34, 90) if in_pieces
                  else (1, 2, 12, 31, 40)):
        samples = draw_samples(draw, count, codec.channels)
        if in_pieces:
            pieces, scales, missing, closest = hear_pieces(codec, samples)
            shape = [len(pieces), 1]
        else:
            codes, closest = codec.hear(samples)
            pieces, shape = [codes], [1]
        codes = [i for piece in pieces for row in piece for i in row]
        save_wave(path, samples)
        result = decoder_layers.program(folder, "generate", "--audio", path,
                                        "--codes-out", kept)
        if result.returncode:
            sys.exit(result.stderr)
        held = tensors.load(kept)
        dtype, found, raw = held["audio_codes"]
        got = list(struct.unpack(f"<{len(raw) // 8}q", raw))
        seen.update(got)
        judge(f"{form} kHz codes of {count} samples", dtype == "I64"
              and found == [*shape, BOOKS, len(pieces[0][0])]
              and got == codes and closest > 1e-5,
              f"{got} for {codes}, {closest:.2g} apart")
        if in_pieces:
            judge(f"what {count} samples lack", held["last_frame_pad_length"]
                  == ("I64", [], struct.pack("<q", missing)), str(missing))
            close(f"loudness of {count} samples",
                  list(array.array("f", held["audio_scales"][2])), scales)
    judge(f"{form} kHz codes differ", len(seen) > CODES // 2, str(seen))


def check_files(form, folder, codec, draw):
    if form == "24":
        # The lower bandwidth has the first two codebooks.
        codes = draw_codes(draw, 2, 3)
        play_file("two codebooks of four", folder,
                  {"audio_codes": packed([codes], [1, 1, 2, 3])},
                  codec.play(codes))
    if form == "48":
        # The last piece has three frames, and codes 0 in place of the others.
        pieces = [draw_codes(draw, BOOKS, 5) for _ in range(3)]
        scales = [0.5, 2.0, 1.25]
        for row in pieces[-1]:
            row[3:] = [0, 0]
        sounds = [[[v * scale for v in row] for row in codec.play(
            [row[:3] if piece is pieces[-1] else row for row in piece])]
            for piece, scale in zip(pieces, scales)]
        play_file("three pieces", folder, {
            "audio_codes": packed(pieces, [3, 1, BOOKS, 5]),
            "audio_scales": ("F32", [3, 1], struct.pack("<3f", *scales)),
            "last_frame_pad_length": ("I64", [], struct.pack("<q", 2))},
                  overlapped(sounds))


def check(attune, work, form):
    draw, w = random.Random("codes"), Weights("encodec")
    codec = Codec(w, "", FORMS[form], False)
    codec.play([[0]] * BOOKS)
    codec.hear([[0.0] * codec.channels])
    folder = os.path.join(work, f"encodec_{form}khz")
    os.makedirs(folder, exist_ok=True)
    w.vector("quantizer.layers.0.codebook.inited", 1)  # which is no part of it
    error = decoder_layers.build(attune, folder, w, FORMS[form])
    if error:
        sys.exit(error)
    for rows, frames in ((1, 1), (1, 2), (2, 3), (1, 6)):
        codes = [draw_codes(draw, BOOKS, frames) for _ in range(rows)]
        found = run(folder, {
            f"audio_codes_{k}": numbers([row[k] for row in codes])
            for k in range(BOOKS)})
        close(f"{form} kHz {rows} of {frames}", found["audio_values"],
              [v for row in codes for v in flat(codec.play(row))])
    check_files(form, folder, codec, draw)
    check_heard(form, folder, codec, draw)


def main():
    attune, work, *forms = decoder_layers.take_options(sys.argv[1:])
    for form in forms:
        check(attune, work, form)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
