#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Gemma 3n, T5 or T5's encoder alone as a Hugging Face folder and as a GGUF
file in the layout of llama.cpp's converter: both must give the same numbers.

  gguf_stacks.py ATTUNE WORK gemma3n|t5|t5_plain|t5_encoder
"""
import json
import os
import re
import statistics
import struct
import subprocess
import sys

import encoder_decoders
import gguf
import tensors
from decoder_gemma3n import GEMMA3N as SMALL, SEES, SLIDES, gemma3n_like
from decoder_layers import HEADS, INNER, Weights

IDS = [5, 9, 3, 17, 30, 8, 21, 4, 11, 26, 2]
GEMMA3N = [("altup_projections", "altup_proj"),
           ("altup_unembed_projections", "altup_unembd_proj"),
           ("embed_tokens_per_layer", "per_layer_token_embd"),
           ("per_layer_model_projection", "per_layer_model_proj"),
           ("per_layer_projection_norm", "per_layer_proj_norm"),
           ("embed_tokens", "token_embd"), ("norm", "output_norm"),
           ("per_layer_input_gate", "inp_gate"),
           ("per_layer_projection", "proj"),
           ("post_per_layer_input_norm", "post_norm"),
           ("laurel.linear_left", "laurel_l"),
           ("laurel.linear_right", "laurel_r"),
           ("laurel.post_laurel_norm", "laurel_post_norm"),
           ("altup.correction_coefs", "altup_correct_coef"),
           ("altup.correct_output_scale", "altup_correct_scale"),
           ("altup.prediction_coefs", "altup_predict_coef"),
           ("altup.modality_router", "altup_router"),
           ("altup.router_norm", "altup_router_norm")]
T5 = [("SelfAttention.relative_attention_bias", "attn_rel_b"),
      ("0.layer_norm", "attn_norm"), ("DenseReluDense.wi_0", "ffn_gate"),
      ("DenseReluDense.wi_1", "ffn_up"), ("DenseReluDense.wi", "ffn_up"),
      ("DenseReluDense.wo", "ffn_down")]


def gemma3n_name(name):
    base = name.removeprefix("model.").removesuffix(".weight")
    block = re.fullmatch(r"layers\.(\d+)\.(.*)", base)
    for theirs, ours in GEMMA3N:
        if (block[2] if block else base) == theirs:
            return (f"blk.{block[1]}." if block else "") + ours + ".weight"
    return gguf.rename(name, "gemma3_text")


def t5_name(name):
    name = name.removesuffix(".weight")
    if name in ("shared", "lm_head"):
        return {"shared": "token_embd", "lm_head": "output"}[name] + ".weight"
    stack, rest = name[:3], name.split(".", 1)[1]
    if rest == "final_layer_norm":
        return stack + ".output_norm.weight"
    _, block, _, rest = rest.split(".", 3)
    own = re.fullmatch(r"\d\.(Self|EncDec)Attention\.([qkvo])", rest)
    if own:
        return (f"{stack}.blk.{block}.{'cross_' if own[1] == 'EncDec' else ''}"
                f"attn_{own[2]}.weight")
    for theirs, ours in T5:
        if rest == theirs or rest.endswith("." + theirs) and theirs[0] != "0":
            return f"{stack}.blk.{block}.{ours}.weight"
    cross = stack == "dec" and rest[0] == "1"
    return f"{stack}.blk.{block}.{'cross_attn_norm' if cross else 'ffn_norm'}.weight"


def make_gemma3n(writer, w):
    config = gemma3n_like(w, IDS, {
        **SMALL, "num_hidden_layers": 3, "num_kv_shared_layers": 1,
        "layer_types": [SLIDES, SEES, SLIDES], "altup_active_idx": 1,
        "activation_sparsity_pattern": [0.95, 0.0, 0.5], "altup_num_inputs": 3,
        "altup_coef_clip": 120.0})[0]
    gguf.put_config(writer, {**config, "model_type": "gemma3n", "rms_norm_eps": 1e-6})
    for name, kind, value in (
            ("rope.freq_base_swa", "f32", config["rope_local_base_freq"]),
            ("altup.active_idx", "u32", config["altup_active_idx"]),
            ("altup.num_inputs", "u32", config["altup_num_inputs"]),
            ("embedding_length_per_layer_input", "u32",
             config["hidden_size_per_layer_input"]),
            ("attention.shared_kv_layers", "u32", config["num_kv_shared_layers"]),
            ("activation_sparsity_scale", "f32[]",
             [statistics.NormalDist().inv_cdf(p) if p else float("-inf")
              for p in config["activation_sparsity_pattern"]]),
            ("attention.sliding_window_pattern", "bool[]",
             [t == "sliding_attention" for t in config["layer_types"]])):
        writer.key("gemma3n." + name, kind, value)
    # As put_config() has it where the class says nothing.
    return {**config, "rope_theta": 10000.0}


def make_t5(writer, w, kind):
    ids = {"input_ids": IDS, "decoder_input_ids": IDS[:5]}
    config = encoder_decoders.t5_v11(w, ids)[0]
    # What no key says.
    config["relative_attention_max_distance"] = 128
    config["layer_norm_epsilon"] = 1e-6
    alone = kind == "t5_encoder"
    if kind == "t5_plain":  # the first version
        config.update(feed_forward_proj="relu", tie_word_embeddings=True)
        del w.made["lm_head.weight"]
        for name in [*w.made]:
            if ".wi_0." in name:
                del w.made[name]
            elif ".wi_1." in name:
                w.made[name.replace("wi_1", "wi")] = w.made.pop(name)
    if alone:
        config["architectures"] = ["T5EncoderModel"]
        for name in [*w.made]:
            if name.startswith(("decoder.", "lm_head.")):
                del w.made[name]
    family = "t5encoder" if alone else "t5"
    writer.key("general.architecture", "string", family)
    for name, value in (
            ("context_length", 64), ("embedding_length", config["d_model"]),
            ("feed_forward_length", INNER), ("block_count", config["num_layers"]),
            ("attention.head_count", HEADS), ("attention.key_length", config["d_kv"]),
            ("attention.value_length", config["d_kv"]),
            ("attention.relative_buckets_count", encoder_decoders.BUCKETS),
            ("decoder_start_token_id", 0)):
        writer.key(f"{family}.{name}", "u32", value)
    for name in ("layer_norm_epsilon", "layer_norm_rms_epsilon"):
        writer.key(f"{family}.attention.{name}", "f32", 1e-6)
    return config


def run(attune, work, model):
    subprocess.run([attune, "run", model, f"--inputs={work}/in.safetensors",
                    f"--outputs={work}/out.safetensors"], check=True)
    found = tensors.load(f"{work}/out.safetensors")
    return {name: tensors.numbers(tensor) for name, tensor in found.items()}


def main():
    attune, work, kind = sys.argv[1:4]
    folder, writer, w = f"{work}/model", gguf.Writer(), Weights(kind)
    os.makedirs(folder, exist_ok=True)
    inputs = {"input_ids": IDS}
    if kind == "gemma3n":
        config, named = make_gemma3n(writer, w), gemma3n_name
    else:
        config, named = make_t5(writer, w, kind), t5_name
        if kind != "t5_encoder":
            inputs["decoder_input_ids"] = IDS[:5]
    stacks = {}
    for name, (shape, raw) in w.made.items():
        copy = re.fullmatch(r"model\.(altup_\w+)\.\d\.weight", name)
        if copy:
            stacks.setdefault(gemma3n_name(f"model.{copy[1]}.weight"), []).append(
                (name, shape, raw))
        else:
            writer.tensor(named(name), "F32", shape, raw)
    for name, parts in stacks.items():
        writer.tensor(name, "F32", [len(parts)] + parts[0][1],
                      b"".join(raw for _, _, raw in sorted(parts)))
    writer.write(f"{work}/model.gguf")
    w.save(f"{folder}/model.safetensors")
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file)
    tensors.save(f"{work}/in.safetensors", {
        name: ("I64", [1, len(ids)], struct.pack(f"<{len(ids)}q", *ids))
        for name, ids in inputs.items()})
    known, found = run(attune, work, folder), run(attune, work, f"{work}/model.gguf")
    good = known.keys() == found.keys()
    for name in known if good else []:
        limit = 1e-5 * max(1.0, max(map(abs, known[name])))
        worst = max(abs(a - b) for a, b in zip(known[name], found[name]))
        print(f"  {name} {worst:.1e} of {limit:.1e}")
        good &= worst <= limit and len(known[name]) == len(found[name])
    print(("PASS " if good else "FAIL ") + kind)
    return not good


if __name__ == "__main__":
    sys.exit(main())
