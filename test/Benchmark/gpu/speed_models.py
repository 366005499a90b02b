#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models whose speed is measured on a GPU, as descriptions without weights:
those are made where they are needed.

Products and attention stand in chains between a first and a last linear layer of
eight channels, so that almost nothing is copied to the GPU and back; a longer
chain less a shorter one is what a link takes.
"""
import json

FULL = {
    "matmul-4k": {"size": 4096, "rows": 4096, "links": (1, 33)},
    "matmul-8k": {"size": 8192, "rows": 8192, "links": (1, 9)},
    "attention-8k": {"heads": 16, "width": 128, "rows": 8192,
                     "links": (1, 5)},
    "attention-100k": {"heads": 64, "width": 64, "rows": 100000,
                       "links": (1, 2)},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
             "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
             "vocab_size": 50257},
    "llama-1b": {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                 "hidden_size": 2048, "intermediate_size": 5632,
                 "num_hidden_layers": 22, "num_attention_heads": 32,
                 "num_key_value_heads": 4, "vocab_size": 32000,
                 "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
                 "tie_word_embeddings": False},
    "forms": [["llama-1b", "int8"], ["llama-1b", "int4"], ["llama-1b", "fp8"],
              ["llama-1b", "int8cache"], ["llama-1b", "fp8cache"]],
    "persistent": ["persistent", "int4-persistent"],
    "apart": ["apart", "int4-apart"],
    "prompt": 512, "tokens": 128, "batches": [1, 4, 8, 16, 32, 64],
}
# Only to see that everything runs.
SMALL = {
    "matmul-8k": {"size": 64, "rows": 192, "links": (1, 2)},
    "attention-8k": {"heads": 2, "width": 16, "rows": 24, "links": (1, 2)},
    "gpt2": {**FULL["gpt2"], "n_embd": 32, "n_head": 2, "n_layer": 2,
             "n_positions": 32, "vocab_size": 99},
    "forms": [["gpt2", "int4"]],
    "persistent": ["persistent"], "apart": ["apart"],
    "prompt": 9, "tokens": 4, "batches": [1, 3],
}


def linear(name, rows, columns):
    """A weight of [rows, columns] and what reads it."""
    return (f'  attune.weight @{name} : tensor<{rows}x{columns}xbf16> from '
            f'[#attune.source<"{name}">]\n',
            f"    %{name} = attune.weight_get @{name} : "
            f"tensor<{rows}x{columns}xbf16>\n")


def module(weights, body, result):
    declared = "".join(linear(*weight)[0] for weight in weights)
    read = "".join(linear(*weight)[1] for weight in weights)
    return (
        'module attributes {attune.name = "speed"} {\n' + declared +
        '  func.func @forward(%x: tensor<?x?x8xbf16> {attune.kind = "input", '
        'attune.name = "x", attune.shape = ["batch", "rows", 8]}) -> '
        '(tensor<?x?x8xf32> {attune.kind = "output", attune.name = "y", '
        'attune.shape = ["batch", "rows", 8]}) attributes {attune.entry} {\n' +
        read + body + f"    %y = attune.linear %{result}, %last : "
        f"tensor<?x?x{weights[-1][2]}xbf16>, tensor<8x{weights[-1][2]}xbf16> "
        "-> tensor<?x?x8xf32>\n    return %y : tensor<?x?x8xf32>\n  }\n}\n")


def first(size):
    return (f"    %v0 = attune.linear %x, %first : tensor<?x?x8xbf16>, "
            f"tensor<{size}x8xbf16> -> tensor<?x?x{size}xbf16>\n")


def matmul(config, links):
    n = config["size"]
    body = first(n) + "".join(
        f"    %v{i + 1} = attune.linear %v{i}, %middle : tensor<?x?x{n}xbf16>, "
        f"tensor<{n}x{n}xbf16> -> tensor<?x?x{n}xbf16>\n"
        for i in range(links))
    return module([("first", n, 8), ("middle", n, n), ("last", 8, n)], body,
                  f"v{links}")


def attention(config, links):
    heads, width = config["heads"], config["width"]
    n = heads * width
    type_ = f"tensor<?x{heads}x?x{width}xbf16>"
    body = first(n) + (f"    %h0 = attune.split_heads %v0 : "
                       f"tensor<?x?x{n}xbf16> -> {type_}\n")
    for i in range(links):
        body += (f"    %h{i + 1} = attune.attention %h{i}, %h0, %h0 scale "
                 f"{width ** -0.5:e} : {type_}, {type_}, {type_} -> {type_}\n")
    body += (f"    %m = attune.merge_heads %h{links} : {type_} -> "
             f"tensor<?x?x{n}xbf16>\n")
    return module([("first", n, 8), ("last", 8, n)], body, "m")


def flops(config):
    """Of one link."""
    if is_product(config):
        return 2 * config["rows"] * config["size"] ** 2
    return 4 * config["rows"] ** 2 * config["heads"] * config["width"]


def chains(name, config):
    """(file name, text) of each length."""
    make = matmul if is_product(config) else attention
    for links in config["links"]:
        yield f"{name}-{links}", make(config, links)


def is_product(config):
    return "size" in config


def is_language_model(config):
    return isinstance(config, dict) and "model_type" in config


def programs(name, plan):
    """(file name, flags of the compiler) of each form of a language model: with
    weights of bf16 first, which are those that no form is named for."""
    yield name, ["--dtype=bf16"]
    for model, form in plan["forms"]:
        if model == name:
            yield f"{name}-{form}", ["--dtype=bf16"] + [
                FLAGS.get(part, "--quantize=" + part)
                for part in form.split("-")]


# What a part of a form's name stands for; others are those of weights.
FLAGS = {"persistent": "--persistent-kernel", "apart": "--separate-norms",
         "int8cache": "--kv-cache=int8", "fp8cache": "--kv-cache=fp8"}


def with_forms(plan, kind):
    """The same, and language models in the forms of a kind: "persistent", with a
    step as one kernel, or "apart", with norms as kernels of their own."""
    return {**plan, "forms": plan["forms"] + [
        [name, form] for name, config in plan.items()
        if is_language_model(config) for form in plan[kind]]}


def write_config(config, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**config, "torch_dtype": "bfloat16", "bos_token_id": 1,
                   "eos_token_id": 2}, file)
