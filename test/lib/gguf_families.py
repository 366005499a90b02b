#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small decoders of many architectures as GGUF files, in the layout that
llama.cpp's converter gives them, against the same models as folders.

  gguf_families.py ATTUNE WORK CASE...
  gguf_families.py --write FILE CASE KEY=TYPE:VALUE...

A case is one of decoders.py, or of OWN below, with what a file can say of it.
Exit status 0: all gave the same logits up to the rounding of sums. Or a case's
file, with keys of other values.
"""
import json
import math
import os
import random
import re
import struct
import subprocess
import sys

import decoders
import gguf
import gguf_hybrids
import tensors
from decoder_layers import HEADS, INNER, TOKENS, VOCAB, WIDTH, Weights
from gguf_cases import OWN

# What a file cannot say, or says by other means: keys that a case has otherwise.
CHANGES = {
    "smollm3": {"no_rope_layer_interval": 4},
    "gpt_oss": {"swiglu_limit": 7.0, "rope_scaling": {
        "rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 4096}},
    "gpt2_by_layer": {"scale_attn_by_inverse_layer_idx": None,
                      "activation_function": "gelu_new"},
    "bloom_residual": {"apply_residual_connection_post_layernorm": None},
    "mpt_clip": {"attn_config": {"alibi": True, "alibi_bias_max": 8,
                                 "clip_qkv": 0.5}},
    "internlm2": {"rope_scaling": None, "bias": False},
    "phi": {"qk_layernorm": None},
    "seed_oss": {"attention_out_bias": False},
    "cohere": {"use_qk_norm": None},
    "cohere2": {"logit_scale": 0.0625},
    "exaone": {"rope_scaling": None},
    "llama4": {"no_rope_layer_interval": 4, "attention_chunk_size": 8192,
               "floor_scale": 8192, "attn_scale": 0.1},
    "lfm2_moe": {"routed_scaling_factor": None},
    "ministral3": {"rope_parameters": {
        "rope_type": "yarn", "rope_theta": 5000.0, "factor": 16.0,
        "original_max_position_embeddings": 3, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.5}},
    "hunyuan_moe": {"moe_topk": 3, "num_shared_expert": 1},
}
# What goes with them: tensors that such files do not have.
LEFT_OUT = {"internlm2": r"attention\.w.*\.bias", "phi": r".*[qk]_layernorm",
            "seed_oss": r".*o_proj\.bias", "cohere": r".*self_attn\.[qk]_norm"}
# Keys behind "ARCHITECTURE.", and the names that classes have for them.
SIZES = [("embedding_length", "hidden_size n_embd d_model"),
         ("block_count", "num_hidden_layers n_layer n_layers num_layers"),
         ("context_length",
          "max_position_embeddings n_positions max_seq_len seq_length"),
         ("attention.head_count", "num_attention_heads n_head n_heads"),
         ("attention.head_count_kv",
          "num_key_value_heads num_kv_heads multi_query_group_num"),
         ("feed_forward_length", "intermediate_size ffn_hidden_size n_inner"),
         ("attention.key_length", "head_dim kv_channels"),
         ("attention.value_length", "head_dim kv_channels"),
         ("attention.sliding_window", "sliding_window"),
         ("expert_count", "num_local_experts num_experts n_routed_experts moe_num_experts"),
         ("expert_used_count", "num_experts_per_tok moe_topk moe_k"),
         ("expert_feed_forward_length", "moe_intermediate_size"),
         ("expert_shared_feed_forward_length",
          "shared_expert_intermediate_size shared_intermediate_size"),
         ("expert_shared_count",
          "n_shared_experts num_shared_expert moe_num_shared_experts"),
         ("interleave_moe_layer_step",
          "moe_layer_interval interleave_moe_layer_step"),
         ("rope.dimension_count", "rotary_dim"),
         ("expert_group_count", "n_group"),
         ("expert_group_used_count", "topk_group"),
         ("leading_dense_block_count",
          "first_k_dense_replace num_dense_layers moe_layer_start_index"),
         ("attention.q_lora_rank", "q_lora_rank"),
         ("attention.kv_lora_rank", "kv_lora_rank"),
         ("shortconv.l_cache", "conv_L_cache"),
         ("ssm.conv_kernel", "conv_kernel"), ("ssm.state_size", "state_size"),
         ("ssm.group_count", "n_groups")]
NUMBERS = [("rope.freq_base", "rope_theta rotary_emb_base"),
           ("embedding_scale", "embedding_multiplier scale_emb"),
           ("residual_scale", "residual_multiplier"),
           ("attention.scale", "attention_multiplier"),
           ("logit_scale", "logits_scaling logit_scale"),
           ("expert_weights_scale", "routed_scaling_factor"),
           ("attention.clamp_kqv", "clip_qkv")]
NAMES = {"llama4_text": "llama4", "phi": "phi2", "cohere": "command-r",
         "olmo3": "olmo2", "glm4_moe": "glm4moe", "gpt_oss": "gpt-oss",
         "granitemoeshared": "granitemoe", "gpt_neox": "gptneox",
         "hunyuan_v1_dense": "hunyuan-dense", "qwen2_moe": "qwen2moe",
         "ernie4_5_moe": "ernie4_5-moe", "lfm2_moe": "lfm2moe",
         "minimax_m2": "minimax-m2", "hunyuan_v1_moe": "hunyuan-moe",
         "nomic_bert": "nomic-bert", "ministral3": "mistral3", "qwen2": "qwen2vl",
         "qwen3": "qwen3vl", "qwen3_moe": "qwen3vlmoe",
         "granitemoehybrid": "granitehybrid", "gpt_bigcode": "starcoder",
         "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe",
         "qwen3_next": "qwen3next",
         "falcon_h1": "falcon-h1", "falcon_mamba": "mamba", "kimi_k2": "deepseek2", "deepseek_v2": "deepseek2"}
# Those whose queries and keys the converter turns so that pairs are neighbours.
PERMUTED = {"arcee", "granite", "granitemoe", "granitemoeshared", "internlm2",
            "granitemoehybrid", "minicpm", "ministral3", "olmo", "smollm3"}
LAYER_NORMS = {"cohere", "cohere2", "stablelm", "starcoder2", "phi", "falcon",
               "gpt_neox", "gpt2", "gpt_bigcode", "nemotron_h", "bloom", "mpt", "nemotron", "olmo", "bert",
               "nomic_bert"}
TOP = {"embed_tokens": "token_embd", "tok_embeddings": "token_embd",
       "embedding.word_embeddings": "token_embd", "wte": "token_embd",
       "word_embeddings": "token_embd", "embed_in": "token_embd",
       "embeddings": "token_embd", "wpe": "position_embd",
       "word_embeddings_layernorm": "token_embd_norm", "norm": "output_norm",
       "final_layernorm": "output_norm", "final_layer_norm": "output_norm",
       "encoder.final_layernorm": "output_norm", "ln_f": "output_norm",
       "norm_f": "output_norm", "embedding_norm": "token_embd_norm",
       "lm_head": "output", "output": "output", "embed_out": "output",
       "output_layer": "output",
       "embeddings.word_embeddings": "token_embd",
       "embeddings.position_embeddings": "position_embd",
       "embeddings.token_type_embeddings": "token_types",
       "embeddings.LayerNorm": "token_embd_norm", "emb_ln": "token_embd_norm"}
BLOCK = {
    "attn_norm": "input_layernorm attention_norm ln_1 norm_1 operator_norm "
                 "ln_mlp norm",
    "attn_norm_2": "ln_attn",
    "ffn_norm": "pre_ff_layernorm post_attention_layernorm ffn_norm ln_2 norm_2 "
                "pre_feedforward_layernorm",
    "attn_output_norm": "attention.output.LayerNorm norm1",
    "layer_output_norm": "output.LayerNorm norm2",
    "attn_q": "self_attn.q_proj mixer.q_proj attention.self.query "
              "attn.attention.q_proj",
    "attn_k": "self_attn.k_proj mixer.k_proj attention.self.key attn.attention.k_proj",
    "attn_v": "self_attn.v_proj mixer.v_proj attention.self.value "
              "attn.attention.v_proj",
    "attn_qkv": "self_attention.query_key_value attention.query_key_value "
                "attn.c_attn attn.Wqkv",
    "attn_output": "attention.output.dense mixer.o_proj self_attn.o_proj self_attn.dense attention.wo "
                   "self_attention.dense attention.dense attn.c_proj "
                   "attn.out_proj self_attn.out_proj "
                   "attn.attention.out_proj",
    "attn_q_norm": "self_attn.q_norm self_attn.query_layernorm "
                   "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_norm self_attn.key_layernorm "
                   "self_attn.k_layernorm",
    "attn_sinks": "self_attn.sinks",
    "attn_q_a": "self_attn.q_a_proj", "attn_q_b": "self_attn.q_b_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_kv_b": "self_attn.kv_b_proj",
    "ffn_gate": "feed_forward.gate_proj mlp.gate_proj feed_forward.w1 mlp.fc12 mlp.c_fc_0",
    "ffn_up": "feed_forward.up_proj mixer.up_proj mlp.c_fc_1 intermediate.dense mlp.fc11 mlp.up_proj feed_forward.w3 mlp.gate_up_proj mlp.fc1 mlp.c_fc "
              "mlp.dense_h_to_4h ffn.up_proj",
    "ffn_down": "feed_forward.down_proj mixer.down_proj output.dense mlp.down_proj feed_forward.w2 mlp.fc2 mlp.c_proj "
                "mlp.dense_4h_to_h ffn.down_proj",
    "ffn_gate_inp": "mlp.gate mixer.gate mlp.router block_sparse_moe.router.layer "
                    "feed_forward.router feed_forward.gate mlp.gate.wg block_sparse_moe.gate",
    "exp_probs_b": "mlp.gate.e_score_correction",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj mlp.shared_experts.gate_proj "
                      "mlp.shared_mlp.gate_proj "
                      "feed_forward.shared_expert.gate_proj",
    "ffn_up_shexp": "mixer.shared_experts.up_proj mlp.shared_expert.up_proj mlp.shared_experts.up_proj "
                    "mlp.shared_mlp.up_proj feed_forward.shared_expert.up_proj",
    "ffn_down_shexp": "mixer.shared_experts.down_proj mlp.shared_expert.down_proj mlp.shared_experts.down_proj "
                      "feed_forward.shared_expert.down_proj "
                      "mlp.shared_mlp.down_proj shared_mlp.output_linear",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_down_exps": "block_sparse_moe.output_linear",
    "shortconv.in_proj": "conv.in_proj", "shortconv.conv": "conv.conv",
    "shortconv.out_proj": "conv.out_proj",
    "ssm_in": "mixer.in_proj", "ssm_conv1d": "mixer.conv1d",
    "ssm_x": "mixer.x_proj", "ssm_dt": "mixer.dt_proj", "ssm_a": "mixer.A_log",
    "ssm_d": "mixer.D", "ssm_norm": "mixer.norm", "ssm_out": "mixer.out_proj"}
OURS = {theirs: ours for ours, all_theirs in BLOCK.items()
        for theirs in all_theirs.split()}
# Where the norm before the feed-forward layer, or behind a sublayer, is called
# otherwise.
NORMS = {
    "gpt_oss": {"post_attention_layernorm": "post_attention_norm"},
    "glm4_moe": {"post_attention_layernorm": "post_attention_norm"},
    "seed_oss": {"post_attention_layernorm": "post_attention_norm"},
    "glm4": {"post_self_attn_layernorm": "post_attention_norm",
             "post_mlp_layernorm": "post_ffw_norm"}}
for kind in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"):
    NORMS[kind] = {"post_attention_layernorm": "post_attention_norm"}
for kind in ("olmo2", "olmo3", "exaone4"):
    NORMS[kind] = {"post_attention_layernorm": "post_attention_norm",
                   "post_feedforward_layernorm": "post_ffw_norm"}


class Matrix:
    """Rows of a tensor of f32; of more dimensions, with the last ones rolled
    into one."""

    def __init__(self, shape, values):
        self.shape, self.values = list(shape), list(values)

    def rows(self):
        width = self.shape[-1] if len(self.shape) > 1 else 1
        return [self.values[i:i + width]
                for i in range(0, len(self.values), width)]

    def pick(self, order):
        """With rows of these numbers."""
        rows = self.rows()
        tail = self.shape[1:] if len(self.shape) > 1 else []
        return Matrix([len(order)] + tail,
                      [v for i in order for v in rows[i]])

    def transposed(self):
        """The last two dimensions swapped."""
        rows, columns = self.shape[-2:]
        out = []
        for at in range(0, len(self.values), rows * columns):
            out += [self.values[at + r * columns + c] for c in range(columns)
                    for r in range(rows)]
        return Matrix(self.shape[:-2] + [columns, rows], out)

    def parts(self):
        """Along the first dimension."""
        size = len(self.values) // self.shape[0]
        return [Matrix(self.shape[1:], self.values[i * size:(i + 1) * size])
                for i in range(self.shape[0])]


def stack(parts):
    return Matrix([len(parts)] + parts[0].shape,
                  [v for part in parts for v in part.values])


def pairs(heads, size):
    """Rows so that (i, i + size / 2) of each head become neighbours."""
    return [h * size + half * size // 2 + i for h in range(heads)
            for i in range(size // 2) for half in range(2)]


def blocks(groups, queries, size):
    """Rows of queries, then keys, then values, of groups that have one key and
    one value each."""
    each = (queries + 2) * size
    return ([g * each + i for g in range(groups) for i in range(queries * size)]
            + [g * each + queries * size + i for g in range(groups)
               for i in range(size)]
            + [g * each + (queries + 1) * size + i for g in range(groups)
               for i in range(size)])


def is_older(config):
    """Files of before keep keys and values of latent attention together."""
    return config["model_type"] == "deepseek_v2" and config["kv_lora_rank"] < 32


class Converter:
    def __init__(self, config, weights):
        self.config, self.kind = config, config["model_type"]
        self.weights = {name: Matrix(shape, struct.unpack(f"<{len(raw) // 4}f",
                                                          raw))
                        for name, (shape, raw) in weights.items()}
        self.out = {}
        self.adds_one = self.kind == "nemotron" or \
            "linear_num_value_heads" in config
        self.heads = self.get("num_attention_heads n_head n_heads")
        self.kv = (self.get("num_key_value_heads num_kv_heads "
                            "multi_query_group_num")
                   or {"ernie4_5": 2, "glm4": 2}.get(self.kind, self.heads))
        self.width = self.get("hidden_size n_embd d_model")
        self.size = (self.get("head_dim kv_channels")
                     or self.width // (self.heads or 1))

    def get(self, names):
        for name in names.split():
            if self.config.get(name) is not None:
                return self.config[name]
        return None

    def put(self, name, matrix):
        assert name not in self.out, name
        self.out[name] = matrix

    @staticmethod
    def steps(matrix):
        return Matrix(matrix.shape, [-math.exp(v) for v in matrix.values])

    def add(self, at, rest, matrix):
        """A tensor of a block."""
        if gguf_hybrids.lay_out(self, at, rest, matrix):
            return None
        rest = re.sub("^mamba\\.", "mixer.", rest)
        base, _, end = rest.rpartition(".")
        permuted = self.kind in PERMUTED
        if rest in ("self_attn.sinks",):
            return self.put(at + "attn_sinks.weight", matrix)
        if rest.endswith(("e_score_correction_bias", "expert_bias")):
            return self.put(at + "exp_probs_b.bias",
                            Matrix(matrix.shape[-1:], matrix.values))
        if rest.endswith("A_log"):
            steps = self.steps(matrix)
            if len(steps.shape) == 1:
                steps.shape.append(1)
            return self.put(at + "ssm_a", steps)
        if rest == "mixer.D":
            return self.put(at + "ssm_d", Matrix(
                matrix.shape + ([] if self.kind in ("mamba", "falcon_mamba") else [1]),
                matrix.values))
        if rest == "mixer.dt_bias":
            return self.put(at + "ssm_dt.bias", matrix)
        if rest.endswith("conv1d.weight") or rest == "conv.conv.weight":
            matrix = Matrix([matrix.shape[0], matrix.shape[-1]], matrix.values)
        if rest == "mixer.norm.weight":
            groups = self.get("n_groups mamba_n_groups")
            matrix = Matrix([groups, matrix.shape[0] // groups], matrix.values)
        if permuted and base == "self_attn.q_proj":
            matrix = matrix.pick(pairs(self.heads, self.size))
        if permuted and base == "self_attn.k_proj":
            matrix = matrix.pick(pairs(self.kv, self.size))
        if base == "attention.wqkv":
            groups = matrix.pick(blocks(self.kv, self.heads // self.kv,
                                        self.size))
            q, k = self.heads * self.size, self.kv * self.size
            ranges = {"attn_q": pairs(self.heads, self.size),
                      "attn_k": [q + i for i in pairs(self.kv, self.size)],
                      "attn_v": range(q + k, q + 2 * k)}
            for name, rows in ranges.items():
                self.put(f"{at}{name}.{end}", groups.pick(list(rows)))
            return None
        if base.endswith("query_key_value") and self.kind != "chatglm":
            groups = {"falcon": self.config.get("num_kv_heads") or (
                1 if self.config.get("multi_query", True) else self.heads)}.get(
                    self.kind, self.heads)
            matrix = matrix.pick(blocks(groups, self.heads // groups, self.size))
        if self.kind == "gpt2" and end == "weight" and len(matrix.shape) == 2:
            matrix = matrix.transposed()
        if base == "self_attn.kv_b_proj" and not is_older(self.config):
            nope = self.config["qk_nope_head_dim"]
            each = nope + self.config["v_head_dim"]
            keys = [matrix.pick(range(h * each, h * each + nope))
                    for h in range(self.heads)]
            values = [matrix.pick(range(h * each + nope, (h + 1) * each))
                      for h in range(self.heads)]
            self.put(at + "attn_k_b.weight",
                     stack([part.transposed() for part in keys]))
            self.put(at + "attn_v_b.weight", stack(values))
            return None
        if base == "block_sparse_moe.input_linear":
            half = matrix.shape[1] // 2
            for name, first in (("gate", 0), ("up", half)):
                self.put(f"{at}ffn_{name}_exps.weight", stack(
                    [part.pick(range(first, first + half))
                     for part in matrix.parts()]))
            return None
        if base == "shared_mlp.input_linear":
            half = matrix.shape[0] // 2
            kind = "_shexp" if self.config["num_local_experts"] else ""
            self.put(f"{at}ffn_gate{kind}.weight", matrix.pick(range(half)))
            self.put(f"{at}ffn_up{kind}.weight",
                     matrix.pick(range(half, 2 * half)))
            return None
        if base == "shared_mlp.output_linear" and \
                not self.config["num_local_experts"]:
            return self.put(at + "ffn_down.weight", matrix)
        if rest == "feed_forward.experts.gate_up_proj":
            half = matrix.shape[-1] // 2
            for name, first in (("gate", 0), ("up", half)):
                self.put(f"{at}ffn_{name}_exps.weight", stack(
                    [part.pick(range(first, first + half))
                     for part in matrix.transposed().parts()]))
            return None
        if rest.startswith("mlp.experts.gate_up_proj"):
            bias = rest.endswith("_bias")
            experts = matrix.parts() if bias else matrix.transposed().parts()
            for name, first in (("gate", 0), ("up", 1)):
                self.put(f"{at}ffn_{name}_exps.{'bias' if bias else 'weight'}",
                         stack([part.pick(range(first, part.shape[0], 2))
                                for part in experts]))
            return None
        if rest in ("mlp.experts.down_proj", "feed_forward.experts.down_proj"):
            return self.put(at + "ffn_down_exps.weight", matrix.transposed())
        if rest == "mlp.experts.down_proj_bias":
            return self.put(at + "ffn_down_exps.bias", matrix)
        name = NORMS.get(self.kind, {}).get(base) or OURS[base]
        if self.adds_one and "norm" in name and end == "weight":
            matrix = Matrix(matrix.shape, [v + 1 for v in matrix.values])
        if base == "pre_ff_layernorm":
            return self.put(at + name, matrix) # without an ending
        return self.put(f"{at}{name}.{end}", matrix)

    def convert(self):
        stacks = {}
        for name, matrix in sorted(self.weights.items()):
            found = re.match(r"(?:\w+\.)*(?:layers?|h|blocks)\.(\d+)\.(.*)", name)
            if not found:
                if name.startswith("pooler."):
                    continue # no part of such files
                base, end = name.rsplit(".", 1)
                base = re.sub(r"^(model|transformer|gpt_neox|backbone)\.", "",
                              base)
                if self.adds_one and "norm" in base and end == "weight":
                    matrix = Matrix(matrix.shape,
                                    [v + 1 for v in matrix.values])
                self.put(f"{TOP[base]}.{end}", matrix)
                continue
            at, rest = f"blk.{found[1]}.", found[2]
            one = re.match(r"\w+\.experts\.(\d+)\.(\w+?)(?:_proj)?\.weight",
                           rest)
            norm = re.match(r"self_attn\.([qk])_layernorm\.norms\.(\d+)\.", rest)
            if one:
                part = {"w1": "gate", "w3": "up", "w2": "down"}.get(one[2],
                                                                    one[2])
                stacks.setdefault(f"{at}ffn_{part}_exps.weight",
                                  {})[int(one[1])] = matrix
            elif norm:
                stacks.setdefault(f"{at}attn_{norm[1]}_norm.weight",
                                  {})[int(norm[2])] = matrix
            else:
                self.add(at, rest, matrix)
        for name, parts in stacks.items():
            self.put(name, stack([parts[i] for i in range(len(parts))]))
        return self.out


def put_config(writer, converter):
    config, kind = converter.config, converter.kind
    family = NAMES.get(kind, kind)
    if kind == "nemotron_h" and "n_routed_experts" in config:
        family = "nemotron_h_moe"
    writer.key("general.architecture", "string", family)

    def put(name, value, value_kind="u32"):
        writer.key(f"{family}.{name}", value_kind, value)

    done = set()
    done |= gguf_hybrids.put_keys(put, config)
    if family in ("qwen2vl", "qwen3vl", "qwen3vlmoe"):
        put("rope.dimension_sections", [2, 1, 1, 0], "i32[]")
        put("n_deepstack_layers", 0)
    if kind in ("falcon", "gpt2", "gpt_bigcode", "bloom", "mpt"):
        put("feed_forward_length",
            converter.out["blk.0.ffn_up.weight"].shape[0])
        done.add("feed_forward_length")
    if kind == "glm4_moe":
        put("leading_dense_block_count", 1)
        put("expert_shared_count", 1)
        put("expert_weights_norm", True, "bool")
    if kind in ("ernie4_5", "glm4"):
        put("attention.head_count_kv", converter.kv)
        done.add("attention.head_count_kv")
    if kind == "falcon":
        put("attention.head_count_kv", config.get("num_kv_heads") or (
            1 if config.get("multi_query", True) else HEADS))
        done.add("attention.head_count_kv")
    if kind in ("lfm2", "lfm2_moe"):
        attends = config.get("full_attn_idxs") or [
            i for i, each in enumerate(config["layer_types"])
            if each == "full_attention"]
        put("attention.head_count_kv",
            [config["num_key_value_heads"] if i in attends else 0
             for i in range(config["num_hidden_layers"])], "u32[]")
        put("feed_forward_length",
            converter.out["blk.0.ffn_up.weight"].shape[0])
        put("shortconv.l_cache", config.get("conv_L_cache", 3))
        put("rope.freq_base", config.get("rope_theta", 1e6), "f32")
        done |= {"attention.head_count_kv", "feed_forward_length",
                 "shortconv.l_cache"}
    if family == "deepseek2":
        nope, turned = config["qk_nope_head_dim"], config["qk_rope_head_dim"]
        rank, value = config["kv_lora_rank"], config["v_head_dim"]
        older = is_older(config)
        put("attention.head_count_kv", HEADS if older else 1)
        put("attention.key_length", nope + turned if older else rank + turned)
        put("attention.value_length", value if older else rank)
        if not older:
            put("attention.key_length_mla", nope + turned)
            put("attention.value_length_mla", value)
        put("rope.dimension_count", turned)
        done |= {"attention.head_count_kv", "attention.key_length",
                 "attention.value_length"}
        if config.get("scoring_func") == "sigmoid":
            put("expert_gating_func", 2)
    if kind in ("lfm2_moe", "minimax_m2"):
        put("expert_gating_func", 2)
    if kind in ("hunyuan_v1_moe", "minimax_m2", "gpt_oss"):
        put("expert_feed_forward_length", config["intermediate_size"])
        done.add("expert_feed_forward_length")
    if kind == "ernie4_5_moe":
        put("expert_shared_feed_forward_length", INNER)
    if kind in ("bert", "nomic_bert"):
        writer.key("tokenizer.ggml.token_type_count", "u32",
                   config["type_vocab_size"])
    if kind == "falcon_mamba":
        put("ssm.dt_b_c_rms", True, "bool")
    if kind in ("mamba", "mamba2", "falcon_mamba"):
        put("context_length", 1 << 20)
        put("feed_forward_length", 0)
        put("attention.head_count", 0)
        put("ssm.inner_size", config.get("intermediate_size", 2 * WIDTH))
        put("ssm.time_step_rank", config.get("num_heads",
                                             config.get("time_step_rank")))
        if "conv_kernel" not in config:
            put("ssm.conv_kernel", 4)
        done |= {"context_length", "feed_forward_length",
                 "attention.head_count", "attention.key_length",
                 "attention.value_length"}
    if family == "llama4":
        put("feed_forward_length", config["intermediate_size_mlp"])
        put("expert_feed_forward_length", config["intermediate_size"])
        put("expert_used_count", 1 if config.get("num_local_experts") else 0)
        done |= {"feed_forward_length", "expert_feed_forward_length"}
    for name, theirs in SIZES:
        value = converter.get(theirs)
        if value is not None and name not in done:
            put(name, value)
    if not converter.get("max_position_embeddings n_positions max_seq_len "
                         "seq_length") and "context_length" not in done:
        put("context_length", 2048)
    for name, theirs in NUMBERS:
        value = converter.get(theirs)
        if kind == "minicpm":
            value = {"residual_scale": config["scale_depth"]
                     / math.sqrt(config["num_hidden_layers"]),
                     "logit_scale": WIDTH / config["dim_model_base"]}.get(
                         name, value)
        if value is not None:
            put(name, value, "f32")
    if config.get("rope_scaling", {}).get("alpha"):
        put("rope.freq_base", 1e4 * config["rope_scaling"]["alpha"]
            ** (converter.size / (converter.size - 2)), "f32")
    eps = converter.get("rms_norm_eps layer_norm_eps layer_norm_epsilon "
                        "norm_epsilon norm_eps layernorm_epsilon")
    if eps is None:
        eps = {"glm4": 1.5625e-7}.get(kind, 1e-6 if kind in (
            "smollm3", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "seed_oss",
            "internlm2", "qwen2_moe", "deepseek_v2", "minimax_m2") else 1e-5)
    put("attention.layer_norm_epsilon" if kind in LAYER_NORMS
        else "attention.layer_norm_rms_epsilon", eps, "f32")
    if "rope_theta" not in config:
        theta = {"smollm3": 2e6, "ernie4_5": 5e5, "ernie4_5_moe": 5e5,
                 "minimax_m2": 5e6, "llama4_text": 5e5}.get(kind)
        if theta:
            put("rope.freq_base", theta, "f32")
    part = converter.get("partial_rotary_factor rotary_pct")
    if part is None and kind in ("glm4", "glm4_moe", "chatglm", "nemotron"):
        part = 0.5
    if part:
        put("rope.dimension_count", int(part * converter.size))
    if kind == "chatglm":
        put("rope.freq_base", 1e4 * config["rope_ratio"], "f32")
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if "rope_theta" in scaling:
        put("rope.freq_base", scaling["rope_theta"], "f32")
    if kind == "ministral3":
        put("attention.temperature_scale", scaling["llama_4_scaling_beta"],
            "f32")
    scaled = scaling.get("rope_type", scaling.get("type"))
    if scaled in ("linear", "yarn"):
        put("rope.scaling.type", scaled, "string")
        put("rope.scaling.factor", scaling["factor"], "f32")
    if scaled == "yarn":
        put("rope.scaling.original_context_length",
            scaling["original_max_position_embeddings"])
        put("rope.scaling.yarn_beta_fast", scaling["beta_fast"], "f32")
        put("rope.scaling.yarn_beta_slow", scaling["beta_slow"], "f32")
        if "mscale_all_dim" in scaling:
            put("rope.scaling.yarn_log_multiplier",
                (1 if kind == "ministral3" else 0.1)
                * scaling["mscale_all_dim"], "f32")
    if config.get("norm_topk_prob"):
        put("expert_weights_norm", True, "bool")
    period = config.get("sliding_window_pattern")
    if isinstance(period, str):
        put("attention.sliding_window_pattern",
            [kind == "sliding_attention" for kind in config["layer_types"]],
            "bool[]")
    if isinstance(period, int):
        layers = config["num_hidden_layers"]
        put("attention.sliding_window_pattern",
            [(i + 1) % period != 0 for i in range(layers)], "bool[]")
    form = config.get("attn_config") or {}
    if "alibi_bias_max" in form:
        put("attention.max_alibi_bias", form["alibi_bias_max"], "f32")
        put("attention.clamp_kqv", form["clip_qkv"], "f32")
    if kind in ("gpt_neox", "stablelm"):
        put("use_parallel_residual",
            config.get("use_parallel_residual", kind == "gpt_neox"), "bool")


def round_to(name, matrix, kinds, random_of):
    """Blocks of the next of these types if rows are whole blocks of it, and what
    they stand for."""
    kind = kinds[0]
    _, block, size = gguf.TYPES[kind]
    if len(matrix.shape) < 2 or matrix.shape[-1] % block or "norm" in name or \
            name.startswith("token_types") or "conv" in name or "ssm_a" in name:
        return "F32", matrix, b""
    kinds.append(kinds.pop(0))
    raw = [gguf.encode(kind, matrix.values[i:i + block], random_of)
           for i in range(0, len(matrix.values), block)]
    return kind, Matrix(matrix.shape, [
        value for each in raw for value in gguf.decode(kind, each)]), \
        b"".join(raw)


def write_rounded(path, plain, config, weights, kinds):
    """A file whose matrices have these types in turn, and one of F32 that has
    the same values."""
    converter = Converter(config, weights)
    converter.convert()
    rounded, same, random_of = gguf.Writer(), gguf.Writer(), random.Random(7)
    for writer in (rounded, same):
        put_config(writer, converter)
    for name, matrix in converter.out.items():
        kind, matrix, raw = round_to(name, matrix, kinds, random_of)
        values = struct.pack(f"<{len(matrix.values)}f", *matrix.values)
        rounded.tensor(name, kind, matrix.shape, raw or values)
        same.tensor(name, "F32", matrix.shape, values)
    rounded.write(path)
    same.write(plain)


def write(path, config, weights, changes=()):
    converter = Converter(config, weights)
    converter.convert()
    writer = gguf.Writer()
    put_config(writer, converter)
    for key, kind, value in changes:
        start = writer.string(key)
        writer.keys = [raw for raw in writer.keys if not raw.startswith(start)]
        writer.key(key, kind, json.loads(value))
    for name, matrix in converter.out.items():
        # A type that becomes F32 as weights are packed.
        wide = name.endswith("ssm_a") and converter.kind == "falcon_mamba"
        writer.tensor(name, "F64" if wide else "F32", matrix.shape,
                      struct.pack(f"<{len(matrix.values)}{'d' if wide else 'f'}",
                                  *matrix.values))
    writer.write(path)


# What no class computes as llama.cpp does: with several groups of heads
# Hugging Face's norm of Mamba-2 takes them together, the published program does
# not.
NO_CLASS = {"mamba2_alone", "granite4"}


def llama_cpp():
    """What llama.cpp gave for these files: numbers of caches and sums in f32,
    GELU computed and not read from its table of f16; where the class has the error
    function, by that and not by its approximation."""
    path = os.path.join(os.path.dirname(__file__), "gguf_llama_cpp.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def chosen_rows(numbers):
    """Every third number of two tokens, in the middle and the last."""
    each = len(numbers) // TOKENS
    return [numbers[t * each:(t + 1) * each:3] for t in (TOKENS // 2, TOKENS - 1)]


def run(attune, model, folder, out, *options):
    result = subprocess.run(
        [attune, "run", model, *options,
         "--inputs=" + os.path.join(folder, "in"),
         "--outputs=" + os.path.join(folder, out)],
        capture_output=True, text=True)
    if result.returncode:
        return result.stderr, []
    found = tensors.load(os.path.join(folder, out))
    _, _, raw = found.get("logits") or found["last_hidden_state"]
    return "", struct.unpack(f"<{len(raw) // 4}f", raw)


def prepare(name):
    weights, chosen = Weights(name), random.Random(name)
    ids = [chosen.randrange(VOCAB) for _ in range(TOKENS)]
    if name in OWN:
        return ids, OWN[name](weights), weights
    case = decoders.CASES.get(name) or decoders.OTHERS[name]
    config = {**case(weights, ids)[0], **CHANGES.get(name, {})}
    for tensor in list(weights.made):
        if name in LEFT_OUT and re.fullmatch(
                r"(?:\w+\.)*?" + LEFT_OUT[name] + r"(\.\w+)*", tensor):
            del weights.made[tensor]
    return ids, {key: value for key, value in config.items()
                 if value is not None}, weights


def check_figures(name, got, limit):
    figures = llama_cpp()["logits"].get(name)
    if not figures:
        return ""
    worst = max(abs(a - b) for row, figure in zip(chosen_rows(got), figures)
                for a, b in zip(row, figure))
    print(f"  {worst:.2e} of {limit:.2e} from llama.cpp")
    return "" if worst <= limit else f"differs from llama.cpp by {worst}"


def compare(attune, work, case):
    """A case, or CASE:TYPE,...: the file with its matrices in these types
    against the same values in F32."""
    name, _, kinds = case.partition(":")
    folder = os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    ids, config, weights = prepare(name)
    file, other = os.path.join(folder, "model.gguf"), folder
    if kinds:
        other = os.path.join(folder, "same.gguf")
        write_rounded(file, other, config, weights.made, kinds.split(","))
    else:
        write(file, config, weights.made)
        weights.save(os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w",
                  encoding="utf-8") as out:
            json.dump(config, out)
    tensors.save(os.path.join(folder, "in"), {"input_ids": (
        "I64", [1, len(ids)], struct.pack(f"<{len(ids)}q", *ids))})
    error, known = run(attune, other, folder, "other")
    if error:
        return "other: " + error
    # Rows that are multiplied are not rounded to bytes, as they are else.
    options = ["--activations=exact"] if kinds else []
    error, got = run(attune, file, folder, "file", *options)
    if error:
        return error
    limit = 1e-5 * max(1.0, max(map(abs, known)))
    worst = max(abs(a - b) for a, b in zip(known, got))
    print(f"  {worst:.2e} of {limit:.2e}")
    if len(known) != len(got) or (worst > limit and name not in NO_CLASS):
        return f"differs by {worst}"
    return check_figures(case, got, limit)


def main():
    attune, work, *names = sys.argv[1:]
    if attune == "--write":
        _, config, weights = prepare(names[0])
        write(work, config, weights.made, [
            re.fullmatch(r"([^=]+)=([^:]+):(.*)", word).groups()
            for word in names[1:]])
        return 0
    failures = 0
    for name in names:
        error = compare(attune, work, name)
        print(("FAIL " if error else "PASS ") + name + " " + error)
        failures += bool(error)
    print(f"{len(names)} architectures, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
