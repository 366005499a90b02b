#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the time to compile a hybrid grows with its layers.

  compile_time.py ATTUNE WORK [--once] [--runs=1] [MODEL]...
  compile_time.py ATTUNE WORK --kinds [--runs=1]

Folders with a configuration alone, of one, two and four times as many layers:
the functions of their blocks, their kernels, and the seconds that processors are
busy with an object file, the median of some runs. `--once` takes the fewest layers
only. With `--kinds` one model of one to six kinds of layer, of which each comes
twice and four times.
"""
import json
import os
import resource
import statistics
import subprocess
import sys

BASE = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 512,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32,
        "max_position_embeddings": 2048}


def nemotron_h(times):
    """Runs as the published ones have them: M-M-M-MM-M*-"""
    pattern = "M-M-M-MM-M*-" * times
    return {**BASE, "model_type": "nemotron_h", "mamba_num_heads": 16,
            "mamba_head_dim": 32, "n_groups": 2, "ssm_state_size": 32,
            "hybrid_override_pattern": pattern, "num_hidden_layers": len(pattern)}


def jamba(times):
    return {**BASE, "model_type": "jamba", "num_hidden_layers": 8 * times,
            "num_experts": 4, "num_experts_per_tok": 2}


def qwen3_next(times):
    return {**BASE, "model_type": "qwen3_next", "num_hidden_layers": 8 * times,
            "linear_num_value_heads": 8, "linear_num_key_heads": 4,
            "linear_key_head_dim": 32, "linear_value_head_dim": 32,
            "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128}


def minimax(times):
    types = (["linear_attention"] * 3 + ["full_attention"]) * 2 * times
    return {**BASE, "model_type": "minimax", "num_hidden_layers": len(types),
            "layer_types": types, "num_local_experts": 4}


def gemma3(times):
    return {**BASE, "model_type": "gemma3_text", "num_hidden_layers": 12 * times,
            "query_pre_attn_scalar": 32, "sliding_window": 256,
            "sliding_window_pattern": 6}


def lfm2(times):
    """LFM2-1.2B: short convolutions, attention at six places of 16."""
    places = [i + 16 * n for n in range(times) for i in (2, 5, 8, 10, 12, 14)]
    return {**BASE, "model_type": "lfm2", "num_hidden_layers": 16 * times,
            "block_ff_dim": 768, "full_attn_idxs": places}


def granite4(times):
    """Granite-4.0-H-Tiny: attention at four places of 40, experts everywhere."""
    types = ["attention" if i in (5, 15, 25, 35) else "mamba"
             for i in range(40)] * times
    return {**BASE, "model_type": "granitemoehybrid", "layer_types": types,
            "num_hidden_layers": len(types), "shared_intermediate_size": 128,
            "num_local_experts": 4, "num_experts_per_tok": 2,
            "intermediate_size": 128, "position_embedding_type": "nope",
            "mamba_n_heads": 16, "mamba_n_groups": 1, "mamba_d_state": 32,
            "mamba_d_head": 32}


def qwen3_next_48(times):
    return {**qwen3_next(1), "num_hidden_layers": 48 * times}


def glm4_moe(times):
    """GLM-4.5-Air: the first of 46 layers is dense."""
    return {**BASE, "model_type": "glm4_moe", "num_hidden_layers": 46 * times,
            "use_qk_norm": True, "attention_bias": True, "n_routed_experts": 4,
            "num_experts_per_tok": 2, "moe_intermediate_size": 128}


def gpt_oss(times):
    """gpt-oss-20b: every second of 24 layers has a window."""
    return {**BASE, "model_type": "gpt_oss", "num_hidden_layers": 24 * times,
            "num_local_experts": 4, "num_experts_per_tok": 2,
            "sliding_window": 128}


def gemma3n(times):
    """Gemma 3n E2B: sliding layers but every fifth of 30, the first ten with
    sparse gates, the last ten with the keys of others."""
    types = ["full_attention" if i % 5 == 4 else "sliding_attention"
             for i in range(30 * times)]
    return {**BASE, "model_type": "gemma3n_text", "layer_types": types,
            "num_hidden_layers": len(types), "vocab_size_per_layer_input": 512,
            "num_kv_shared_layers": 10 * times, "laurel_rank": 16,
            "activation_sparsity_pattern":
                [0.95] * 10 * times + [0.0] * 20 * times,
            "hidden_size_per_layer_input": 32, "sliding_window": 128}


MODELS = {f.__name__: f for f in (
    nemotron_h, jamba, qwen3_next, minimax, gemma3, lfm2, granite4, qwen3_next_48,
    glm4_moe, gpt_oss, gemma3n)}

# What a layer of each kind has.
ATTENTION = {"heads": 8, "kv_heads": 2, "head_dim": 32, "causal": True}
FFN = {"width": 512, "gated": True, "activation": "silu"}
KINDS = (
    {"attention": {**ATTENTION, "rope": {"theta": 10000}}, "ffn": FFN},
    {"attention": {**ATTENTION, "rope": {"theta": 10000}, "window": 128},
     "ffn": FFN},
    {"short_conv": {"kernel": 3}, "ffn": FFN},
    {"attention": {**ATTENTION, "rope": {"theta": 10000}},
     "moe": {"experts": 4, "active": 2, "width": 128}},
    {"mamba": {"heads": 16, "states": 32}, "ffn": FFN},
    {"delta_rule": {"heads": 8, "key_dim": 32}, "ffn": FFN})


def kinds(count, repeats):
    """A model of the first `count` kinds of layer, `repeats` times in turn."""
    layers = [{"block": {"placement": "pre", "norm": {"kind": "rms_norm",
                                                      "eps": 1e-5}, **KINDS[i]},
               "repeat": 1, "first": n * count + i, "name": "layers.{i}"}
              for n in range(repeats) for i in range(count)]
    return {"attune": 1, "name": "kinds", "layers": [
        {"embedding": {"vocab": 512, "width": 256}, "name": "embed"}, *layers,
        {"linear": {"out": 512}, "name": "head"}]}


def measure(attune, model, runs):
    """Functions of blocks, kernels, and seconds."""
    def emit(stage, *more):
        return subprocess.run([attune, "compile", f"--emit={stage}", model, *more],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
    functions = emit("mlir").count("func.func private")
    kernels = emit("kernels").count("func.func private") - functions
    busy = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        emit("obj", "--cache=off", "-o", os.path.join(
            os.path.dirname(model), "model.o"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy.append(after.ru_utime + after.ru_stime
                    - before.ru_utime - before.ru_stime)
    return (f"{functions} functions, {kernels} kernels, "
            f"{statistics.median(busy):.1f} s")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(text, file)


def main():
    attune, work, *words = sys.argv[1:]
    runs = 1
    names = [word for word in words if not word.startswith("--")]
    for word in words:
        if word.startswith("--runs="):
            runs = int(word.partition("=")[2])
    if "--kinds" in words:
        for count in range(1, len(KINDS) + 1):
            cells = []
            for repeats in (2, 4):
                model = os.path.join(work, f"kinds_{count}_{repeats}", "model.json")
                write(model, kinds(count, repeats))
                cells.append(f"{count * repeats} layers: "
                             + measure(attune, model, runs))
            print(f"{count} kinds: " + "; ".join(cells), flush=True)
        return
    for name in names or MODELS:
        cells = []
        for times in (1,) if "--once" in words else (1, 2, 4):
            config = MODELS[name](times)
            folder = os.path.join(work, f"{name}_{times}")
            write(os.path.join(folder, "config.json"), config)
            cells.append(f"{config['num_hidden_layers']} layers: "
                         + measure(attune, folder, runs))
        print(f"{name}: " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    main()
