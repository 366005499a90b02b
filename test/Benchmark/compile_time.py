#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the time to compile a hybrid grows with its layers.

  compile_time.py ATTUNE WORK [--once] [MODEL]...

Folders with a configuration alone, of one, two and four times as many layers:
the functions of their blocks, and the seconds that a processor is busy with an
object file. `--once` takes the fewest layers only.
"""
import json
import os
import resource
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


MODELS = {f.__name__: f for f in (nemotron_h, jamba, qwen3_next, minimax, gemma3)}


def measure(attune, folder, config):
    """Functions of blocks, and seconds."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as file:
        json.dump(config, file)
    text = subprocess.run([attune, "compile", "--emit=mlir", folder], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([attune, "compile", "--emit=obj", folder, "--cache=off", "-o",
                    os.path.join(folder, "model.o")], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (text.count("func.func private"),
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main():
    attune, work, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    all_times = (1,) if "--once" in names else (1, 2, 4)
    for name in [n for n in names if n != "--once"] or MODELS:
        cells = []
        for times in all_times:
            config = MODELS[name](times)
            functions, seconds = measure(
                attune, os.path.join(work, f"{name}_{times}"), config)
            cells.append(f"{config['num_hidden_layers']} layers: "
                         f"{functions} functions, {seconds:.1f} s")
        print(f"{name}: " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    main()
