#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small encoder-decoders against float64 arithmetic done here: BART, mBART,
PEGASUS, M2M-100, Whisper, T5 with a gated feed-forward layer.

  encoder_decoders.py ATTUNE WORK [--flag=FLAG]... [--launch=WORDS] [CASE]...

As decoders.py, options too: a configuration, random weights under the names of its
checkpoints, plain loops. Logits, the encoder's last state and four generated
tokens must be what the loops say. Exit status 0: all passed.
"""
import math
import os
import random
import struct
import sys

import decoder_layers
import tensors
from decoder_layers import (DIM, HEADS, INNER, VOCAB, WIDTH, dot, embed, gelu,
                            gelu_tanh, layer_norm, linear, plus, rms_norm, silu,
                            split)

LAYERS = 2


def attend(q, k, v, scale, causal, bias=None, keep=None):
    """Heads of rows; `keep[n]` says which keys are there."""
    joined = [[] for _ in q[0]]
    for h, rows in enumerate(q):
        for m, query in enumerate(rows):
            seen = [n for n in range(m + 1 if causal else len(k[h]))
                    if not keep or keep[n]]
            scores = [scale * dot(query, k[h][n])
                      + (bias(h, m, n) if bias else 0.0) for n in seen]
            top = max(scores)
            powers = [math.exp(s - top) for s in scores]
            total = math.fsum(powers)
            joined[m] += [math.fsum(p * v[h][n][c]
                                    for p, n in zip(powers, seen)) / total
                          for c in range(len(v[h][0]))]
    return joined


# --- BART and its relatives

def attention(w, at, x, source, causal=False, keep=None, key_bias=True):
    q = linear(w, at + "q_proj", x, WIDTH, True)
    k = linear(w, at + "k_proj", source, WIDTH, key_bias)
    v = linear(w, at + "v_proj", source, WIDTH, True)
    y = attend(*(split(part, HEADS) for part in (q, k, v)),
               1 / math.sqrt(DIM), causal, keep=keep)
    return linear(w, at + "out_proj", y, WIDTH, True)


def stack(w, at, x, pre, memory=None, keep=None, key_bias=True, act=gelu):
    """Blocks of one side; `memory` is the encoder's result for a decoder."""
    for i in range(LAYERS):
        block = f"{at}layers.{i}."

        def sublayer(x, norm, function):
            if pre:
                return plus(x, function(layer_norm(w, block + norm, x)))
            return layer_norm(w, block + norm, plus(x, function(x)))

        x = sublayer(x, "self_attn_layer_norm", lambda y: attention(
            w, block + "self_attn.", y, y, memory is not None,
            None if memory else keep, key_bias))
        if memory:
            x = sublayer(x, "encoder_attn_layer_norm", lambda y: attention(
                w, block + "encoder_attn.", y, memory, False, keep, key_bias))
        x = sublayer(x, "final_layer_norm", lambda y: linear(
            w, block + "fc2", [[act(a) for a in v] for v in linear(
                w, block + "fc1", y, INNER, True)], WIDTH, True))
    return layer_norm(w, at + "layer_norm", x) if pre else x


def sines(count):
    half = WIDTH // 2
    angles = [[t / 10000 ** (2 * i / WIDTH) for i in range(half)]
              for t in range(count)]
    return [[math.sin(a) for a in row] + [math.cos(a) for a in row]
            for row in angles]


def bart_like(w, inputs, pre, embedding_norm, sinusoidal, scale, head=True,
              first=2):
    """`first`: the row of the first position."""
    def side(name, ids, **options):
        x = embed(w, "model.shared.weight", ids, scale)
        places = (sines(len(ids)) if sinusoidal else w.matrix(
            f"model.{name}.embed_positions.weight", 64 + first, WIDTH)[first:])
        x = plus(x, places)
        if embedding_norm:
            x = layer_norm(w, f"model.{name}.layernorm_embedding", x)
        return stack(w, f"model.{name}.", x, pre, **options)

    keep = inputs.get("attention_mask")
    memory = side("encoder", inputs["input_ids"], keep=keep)
    states = side("decoder", inputs["decoder_input_ids"], memory=memory,
                  keep=keep)
    if not head:
        return memory, states
    table = w.matrix("model.shared.weight", VOCAB, WIDTH)
    bias = w.vector("final_logits_bias", VOCAB)
    w.made["final_logits_bias"] = ([1, VOCAB], w.made["final_logits_bias"][1])
    return memory, [[dot(row, v) + b for row, b in zip(table, bias)]
                    for v in states]


BART = {"d_model": WIDTH, "vocab_size": VOCAB, "encoder_layers": LAYERS,
        "decoder_layers": LAYERS, "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS, "encoder_ffn_dim": INNER,
        "decoder_ffn_dim": INNER, "max_position_embeddings": 64}


def bart(w, inputs):
    config = dict(BART, model_type="bart", scale_embedding=True,
                  architectures=["BartForConditionalGeneration"])
    return config, bart_like(w, inputs, False, True, False, math.sqrt(WIDTH))


def bart_labels(w, inputs):
    """Labels by the decoder's state at the last end token (2) of what both
    sides read, the decoder one place later."""
    config = dict(BART, model_type="bart", num_labels=5, eos_token_id=2,
                  decoder_start_token_id=2,
                  architectures=["BartForSequenceClassification"])
    ids = inputs["input_ids"]
    memory, states = bart_like(w, dict(inputs, decoder_input_ids=[2] + ids[:-1]),
                               False, True, False, 1.0, head=False)
    last = max(i for i, x in enumerate(ids) if x == 2)
    x = linear(w, "classification_head.dense", [states[last]], WIDTH, True)
    x = [[math.tanh(v) for v in x[0]]]
    return config, (memory, linear(w, "classification_head.out_proj", x, 5, True))


def mbart(w, inputs):
    config = dict(BART, model_type="mbart",
                  architectures=["MBartForConditionalGeneration"])
    return config, bart_like(w, inputs, True, True, False, 1.0)


def pegasus(w, inputs):
    config = dict(BART, model_type="pegasus", scale_embedding=True,
                  architectures=["PegasusForConditionalGeneration"])
    return config, bart_like(w, inputs, True, False, True, math.sqrt(WIDTH))


def blenderbot(w, inputs):
    """Pegasus with learned positions. The file has old flags."""
    config = dict(BART, model_type="blenderbot", scale_embedding=True,
                  normalize_before=True, do_blenderbot_90_layernorm=True,
                  static_position_embeddings=False, layernorm_variant="prelayernorm",
                  architectures=["BlenderbotForConditionalGeneration"])
    return config, bart_like(w, inputs, True, False, False, math.sqrt(WIDTH),
                             first=0)


def m2m(w, inputs):
    """NLLB: sines as tensor2tensor has them, from position 2 on, and the table of
    all three without a bias. A forced token is the language."""
    config = dict(BART, model_type="m2m_100", scale_embedding=True,
                  activation_function="relu", tokenizer_class="NllbTokenizer",
                  decoder_start_token_id=2, max_length=200,
                  architectures=["M2M100ForConditionalGeneration"])
    half = WIDTH // 2

    def side(name, ids, **options):
        x = embed(w, "model.shared.weight", ids, math.sqrt(WIDTH))
        angles = [[t * 10000.0 ** (-i / (half - 1)) for i in range(half)]
                  for t in range(2, 2 + len(ids))]
        x = plus(x, [[math.sin(a) for a in row] + [math.cos(a) for a in row]
                     for row in angles])
        return stack(w, f"model.{name}.", x, True,
                     act=lambda a: max(a, 0.0), **options)

    keep = inputs.get("attention_mask")
    memory = side("encoder", inputs["input_ids"], keep=keep)
    states = side("decoder", inputs["decoder_input_ids"], memory=memory,
                  keep=keep)
    return config, (memory, decoder_layers.tied(w, "model.shared.weight",
                                                states))


# --- Whisper

BINS, FRAMES = 5, 14


def convolve(w, name, columns, stride):
    """Kernel of 3 with a zero on either side, then GELU."""
    width = len(columns[0])
    taps = w.matrix(name + ".weight", WIDTH, width * 3)
    w.made[name + ".weight"] = ([WIDTH, width, 3], w.made[name + ".weight"][1])
    bias = w.vector(name + ".bias", WIDTH)
    padded = [[0.0] * width] + columns + [[0.0] * width]
    return [[gelu(b + math.fsum(row[c * 3 + k] * padded[t + k][c]
                                for c in range(width) for k in range(3)))
             for row, b in zip(taps, bias)]
            for t in range(0, len(columns), stride)]


def whisper_encoder(w, features):
    """`features` [bands, frames]."""
    x = [list(column) for column in zip(*features)]
    x = convolve(w, "model.encoder.conv1", x, 1)
    x = convolve(w, "model.encoder.conv2", x, 2)
    x = plus(x, w.matrix("model.encoder.embed_positions.weight", len(x), WIDTH))
    return stack(w, "model.encoder.", x, True, key_bias=False)


def whisper_decoder(w, memory, ids):
    y = embed(w, "model.decoder.embed_tokens.weight", ids)
    y = plus(y, w.matrix("model.decoder.embed_positions.weight", 64, WIDTH))
    y = stack(w, "model.decoder.", y, True, memory, key_bias=False)
    return decoder_layers.tied(w, "model.decoder.embed_tokens.weight", y)


def whisper(w, inputs):
    config = {key: BART[key] for key in BART if "position" not in key}
    config.update(model_type="whisper", num_mel_bins=BINS,
                  max_source_positions=FRAMES // 2, max_target_positions=64,
                  decoder_start_token_id=3, eos_token_id=2, pad_token_id=2,
                  bos_token_id=2,
                  architectures=["WhisperForConditionalGeneration"])
    memory = whisper_encoder(w, inputs["input_features"])
    return config, (memory, whisper_decoder(w, memory, inputs["decoder_input_ids"]))


def whisper_hushed(w, inputs):
    """Tokens that are never said, and ones that are not said first."""
    config, results = whisper(w, inputs)
    config.update(suppress_tokens=[5, 9, 10**6, *range(20, VOCAB, 2)],
                  begin_suppress_tokens=[*range(21, VOCAB, 4)])
    return config, results


# --- T5

BUCKETS, DISTANCE = 8, 20


def bucket(distance, both):
    """Of key - query."""
    start, count = 0, BUCKETS
    if both:
        count //= 2
        start = count if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = count // 2
    if distance < exact:
        return start + distance
    far = exact + int(math.log(distance / exact) / math.log(DISTANCE / exact)
                      * (count - exact))
    return start + min(far, count - 1)


def t5_stack(w, at, x, act, inner_dim, memory=None, keep=None, own=False):
    """`own`: each block has a table of distances."""
    def heads(part, source):
        return split(linear(w, part, source, inner_dim), HEADS)

    def mix(part, x, source, causal, bias, keep):
        y = attend(heads(part + "q", x), heads(part + "k", source),
                   heads(part + "v", source), 1.0, causal, bias, keep)
        return linear(w, part + "o", y, WIDTH)

    decoder = memory is not None
    for i in range(LAYERS):
        layer = f"{at}block.{i}.layer."
        table = w.matrix(f"{at}block.{i if own else 0}.layer.0.SelfAttention."
                         "relative_attention_bias.weight", BUCKETS, HEADS)
        normed = rms_norm(w, layer + "0.layer_norm", x)
        x = plus(x, mix(layer + "0.SelfAttention.", normed, normed, decoder,
                        lambda h, m, n: table[bucket(n - m, not decoder)][h],
                        None if decoder else keep))
        if decoder:
            normed = rms_norm(w, layer + "1.layer_norm", x)
            x = plus(x, mix(layer + "1.EncDecAttention.", normed, memory, False,
                            None, keep))
        last = layer + ("2." if decoder else "1.")
        normed = rms_norm(w, last + "layer_norm", x)
        gate = linear(w, last + "DenseReluDense.wi_0", normed, INNER)
        up = linear(w, last + "DenseReluDense.wi_1", normed, INNER)
        x = plus(x, linear(w, last + "DenseReluDense.wo",
                           [[act(a) * b for a, b in zip(*rows)]
                            for rows in zip(gate, up)], WIDTH))
    return rms_norm(w, at + "final_layer_norm", x)


def t5_gated(w, inputs, model_type="t5", act=gelu_tanh, **keys):
    """Version 1.1: heads wider than the model, a head of its own."""
    own = model_type == "umt5"
    inner = HEADS * 12
    config = {"model_type": model_type, "d_model": WIDTH, "d_kv": 12,
              "d_ff": INNER, "num_layers": LAYERS, "num_heads": HEADS,
              "vocab_size": VOCAB, "relative_attention_num_buckets": BUCKETS,
              "relative_attention_max_distance": DISTANCE,
              "tie_word_embeddings": False, "decoder_start_token_id": 0,
              "architectures": [model_type.upper()
                                + "ForConditionalGeneration"], **keys}
    keep = inputs.get("attention_mask")
    x = embed(w, "shared.weight", inputs["input_ids"])
    memory = t5_stack(w, "encoder.", x, act, inner, keep=keep, own=own)
    y = embed(w, "shared.weight", inputs["decoder_input_ids"])
    y = t5_stack(w, "decoder.", y, act, inner, memory, keep, own)
    return config, (memory, decoder_layers.head(w, "lm_head", y))


def t5_v11(w, inputs):
    return t5_gated(w, inputs, feed_forward_proj="gated-gelu")


def t5_gated_silu(w, inputs):
    return t5_gated(w, inputs, act=silu, feed_forward_proj="gated-silu")


def mt5(w, inputs):
    return t5_gated(w, inputs, "mt5")


def umt5(w, inputs):
    return t5_gated(w, inputs, "umt5", scalable_attention=True)


CASES = {function.__name__: function for function in (
    bart, bart_labels, mbart, pegasus, whisper, whisper_hushed, t5_v11, t5_gated_silu, mt5)}

# Those that have tests of their own.
OTHERS = {"m2m": m2m, "blenderbot": blenderbot, "umt5": umt5}


def integers(values):
    return "I64", [1, len(values)], struct.pack(f"<{len(values)}q", *values)


def save_inputs(path, inputs):
    made = {}
    for name, values in inputs.items():
        made[name] = integers(values) if name != "input_features" else (
            "F32", [1, BINS, FRAMES],
            struct.pack(f"<{BINS * FRAMES}f", *sum(values, [])))
    tensors.save(path, made)


def differs(found, name, expected):
    flat = [a for v in expected for a in v]
    _, shape, raw = found[name]
    got = struct.unpack(f"<{len(raw) // 4}f", raw)
    if len(got) != len(flat):
        return f"{name} of shape {shape}"
    limit = 2e-5 * max(1.0, max(map(abs, flat)))
    worst = max(abs(a - b) for a, b in zip(got, flat))
    print(f"  {name} {worst:.2e} of {limit:.2e}")
    return "" if worst <= limit else f"{name} differs by {worst}"


def check(attune, folder, name, inputs, first, generates):
    """Nothing, or what is wrong. Compiles the model with its `first` inputs."""
    weights = decoder_layers.Weights(name)
    case = CASES.get(name) or OTHERS[name]
    config, (memory, logits) = case(weights, inputs)
    if first:
        error = decoder_layers.build(attune, folder, weights, config)
        if error:
            return error
    path = os.path.join(folder, "in.safetensors")
    out = os.path.join(folder, "out.safetensors")
    save_inputs(path, inputs)
    result = decoder_layers.program(folder, "run", "--inputs", path,
                                    "--outputs", out)
    if result.returncode:
        return result.stderr
    found = tensors.load(out)
    error = (differs(found, "logits", logits)
             or differs(found, "encoder_last_hidden_state", memory))
    if error or not generates:
        return error
    # Token by token, with the keys of the encoder kept.
    start = [3 if "input_features" in inputs else 0]
    told = list(start)
    for _ in range(4):
        _, (_, logits) = case(weights, dict(inputs, decoder_input_ids=told))
        banned = config.get("suppress_tokens", []) + (
            config.get("begin_suppress_tokens", []) if told == start else [])
        told.append(max((i for i in range(VOCAB) if i not in banned),
                        key=lambda i: logits[-1][i]))
    save_inputs(path, {key: inputs[key] for key in inputs
                       if key != "decoder_input_ids"})
    result = decoder_layers.program(
        folder, "generate", "--inputs", path, "--prompt-ids",
        ",".join(map(str, start)), "--max-new-tokens", "4", "--greedy",
        "--ignore-eos", "--format=ids")
    wanted = ",".join(map(str, told[1:]))
    got = result.stdout.strip() or result.stderr
    return "" if got == wanted else f"told {got}, not {wanted}"


def main():
    attune, work, *names = decoder_layers.take_options(sys.argv[1:])
    failures = 0
    for name in names or CASES:
        folder = os.path.join(work, name)
        os.makedirs(folder, exist_ok=True)
        draw = random.Random(name)
        for source, target in ((9, 6), (1, 1), (6, 3)):
            inputs = {"decoder_input_ids": [draw.randrange(4, VOCAB)
                                            for _ in range(target)]}
            if name == "bart_labels":
                inputs = {}
            if name.startswith("whisper"):
                inputs["input_features"] = [
                    [draw.uniform(-1, 1) for _ in range(FRAMES)]
                    for _ in range(BINS)]
            else:
                inputs["input_ids"] = [draw.randrange(4, VOCAB)
                                       for _ in range(source)]
                if source == 6:
                    inputs["attention_mask"] = [1, 1, 1, 1, 0, 0]
                if name == "bart_labels":
                    inputs["input_ids"][-1 - source // 3] = 2
                    inputs["input_ids"][0] = 2
            error = check(attune, folder, name, inputs, source == 9,
                          source == 9 and name != "bart_labels")
            if error:
                print(f"FAIL {name}, {source} to {target} tokens: {error}")
                failures += 1
        print(f"checked {name}")
    print("all passed" if not failures else f"{failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
