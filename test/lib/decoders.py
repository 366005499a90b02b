#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small decoders of many architectures against float64 arithmetic done here.

  decoders.py ATTUNE WORK [--flag=FLAG]... [--launch=WORDS] [CASE]...

Each case is a configuration, as its model would have it, with random weights
under the names of its checkpoints. The compiled model's logits must be those
that plain loops in float64 give, which say in a few lines what is special about
the architecture. Without names, those that have no test of their own. With
FLAGs the compiler cuts models for ranks, which WORDS (mpirun -n 2) start; where
it says that it does not, REFUSED is printed. Exit status 0: all passed.
"""
import inspect
import math
import os
import random
import struct
import sys

import tensors
from decoder_layers import (BASE, DIM, HEADS, INNER, TOKENS, VOCAB, WIDTH, Weights,
                            attend, build, embed, gated, gelu, gelu_tanh, head,
                            is_refusal, layer_norm, linear, llama_like, norm_each,
                            plus, program, projections, rms_norm, scaled, silu,
                            split, take_options, tied, turn)
from decoder_hybrids import (bamba, granite4, granite4_experts, jamba, lfm2, lfm2_moe,
                             mamba2_alone, nemotron_h, qwen3_5, qwen3_next)
from decoder_memories import (falcon_h1, falcon_h1_norms, kimi_linear, minimax,
                              minimax_text, qwen3_5_moe, qwen3_5_moe_apart)
from decoder_mixtures import (ernie4_5_moe, glm4_moe, gpt_oss, granitemoe,
                              granitemoe_shared, hunyuan_moe, minimax_m2)
from decoder_gemma3n import gemma3n, gemma3n_other
from decoder_gpts import (bigcode_mha, bigcode_mqa, bloom_residual, falcon_11b,
                          falcon_7b, falcon_rw, gpt2_by_layer, gpt_neo,
                          gpt_neox, mpt_clip, opt_350m, opt_plain_norms)
from decoder_latent import deepseek_v32, kimi_k2
from decoder_latest import (afmoe, bailing, bailing_v2, codegen, deepseek, dots1,
                            exaone_moe, flex_olmo, glm4_moe_lite, hy_v3,
                            internlm3, minicpm3, ministral, qwen, solar_open,
                            vaultgemma, xglm)
from decoder_newest import (apertus, biogpt, cwm, glm_moe_dsa, helium,
                            openai_gpt, phimoe)
from decoder_phis import phi, phi3_longrope, phi4, phi4_mini
from decoder_renamed import chatglm, exaone, internlm2, minicpm
from decoder_rwkv import rwkv7, rwkv7_wide
from decoder_zamba import zamba2, zamba2_one
from decoder_relatives import (arcee, llama4, llama4_chunks, mimo, ministral3,
                               nemotron)


def llama_biases(w, ids):
    """One head of keys and values, biases everywhere, positions divided by 4."""
    config = {**BASE, "model_type": "llama", "num_key_value_heads": 1,
              "attention_bias": True, "mlp_bias": True, "hidden_act": "gelu",
              "tie_word_embeddings": True, "rope_theta": 500.0,
              "rope_scaling": {"type": "linear", "factor": 4.0}}
    frequencies = [500.0 ** (-2.0 * i / DIM) / 4 for i in range(DIM // 2)]
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.",
                              rms_norm(w, at + "input_layernorm", x), 1, bias=True)
        y = attend(turn(q, frequencies=frequencies),
                   turn(k, frequencies=frequencies), v)
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH, True))
        normed = rms_norm(w, at + "post_attention_layernorm", x)
        inner = [[gelu(a) * b for a, b in zip(g, u)] for g, u in zip(
            *(linear(w, f"{at}mlp.{n}_proj", normed, INNER, True)
              for n in ("gate", "up")))]
        x = plus(x, linear(w, at + "mlp.down_proj", inner, WIDTH, True))
    return config, tied(w, "model.embed_tokens.weight",
                        rms_norm(w, "model.norm", x))


def mistral(w, ids):
    config = {**BASE, "model_type": "mistral", "num_key_value_heads": 2,
              "sliding_window": 4, "head_dim": 12}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2, 12)
        return linear(w, at + "o_proj", attend(turn(q), turn(k), v, window=4),
                      WIDTH)
    return config, llama_like(w, ids, 2, attention)


def qwen2_window(w, ids):
    config = {**BASE, "model_type": "qwen2", "num_key_value_heads": 2,
              "num_hidden_layers": 3, "sliding_window": 3,
              "use_sliding_window": True, "max_window_layers": 1}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2, bias=True)
        return linear(w, at + "o_proj",
                      attend(turn(q), turn(k), v, window=3 if i >= 1 else None),
                      WIDTH)
    return config, llama_like(w, ids, 3, attention)


def qwen3(w, ids):
    config = {**BASE, "model_type": "qwen3", "num_key_value_heads": 2,
              "head_dim": 16, "rope_theta": 1e6}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2, 16)
        q = norm_each(w, at + "q_norm", q, rms_norm)
        k = norm_each(w, at + "k_norm", k, rms_norm)
        return linear(w, at + "o_proj",
                      attend(turn(q, 1e6), turn(k, 1e6), v), WIDTH)
    return config, llama_like(w, ids, 2, attention)


def gemma_like(w, ids, layers, attention, cap):
    x = embed(w, "model.embed_tokens.weight", ids, math.sqrt(WIDTH))
    for i in range(layers):
        at = f"model.layers.{i}."

        def norm(name, rows):
            return rms_norm(w, at + name, rows, offset=1.0)
        y = attention(w, at + "self_attn.", norm("input_layernorm", x), i)
        x = plus(x, norm("post_attention_layernorm", y))
        y = gated(w, at + "mlp.", norm("pre_feedforward_layernorm", x),
                  gelu_tanh)
        x = plus(x, norm("post_feedforward_layernorm", y))
    x = rms_norm(w, "model.norm", x, offset=1.0)
    logits = tied(w, "model.embed_tokens.weight", x)
    return [[cap * math.tanh(a / cap) for a in v] for v in logits] \
        if cap else logits


def gemma2(w, ids):
    config = {**BASE, "model_type": "gemma2", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "head_dim": 8, "sliding_window": 3,
              "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0,
              "final_logit_softcapping": 3.0}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2)
        return linear(w, at + "o_proj", attend(
            turn(q), turn(k), v, scale=20 ** -0.5, cap=2.0,
            window=None if i % 2 else 3), WIDTH)
    return config, gemma_like(w, ids, 5, attention, 3.0)


def gemma3(w, ids):
    config = {**BASE, "model_type": "gemma3_text", "num_key_value_heads": 1,
              "num_hidden_layers": 8, "head_dim": 8, "sliding_window": 3,
              "sliding_window_pattern": 3, "query_pre_attn_scalar": 8,
              "rope_theta": 1e6, "rope_local_base_freq": 500.0,
              "rope_scaling": {"rope_type": "linear", "factor": 4.0}}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 1)
        q = [rms_norm(w, at + "q_norm", rows, offset=1.0) for rows in q]
        k = [rms_norm(w, at + "k_norm", rows, offset=1.0) for rows in k]
        local = (i + 1) % 3 != 0
        frequencies = [500.0 ** (-j / 4) if local else 1e6 ** (-j / 4) / 4
                       for j in range(4)]
        q, k = (turn(h, frequencies=frequencies) for h in (q, k))
        return linear(w, at + "o_proj",
                      attend(q, k, v, window=3 if local else None), WIDTH)
    return config, gemma_like(w, ids, 8, attention, None)


def olmo_branches(w, ids, layers, positions):
    """`positions(layer)`: the frequencies of its rotary embedding, its window."""
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(layers):
        at = f"model.layers.{i}."
        frequencies, window = positions(i)
        q, k, v = (linear(w, at + f"self_attn.{n}_proj", x, heads * DIM)
                   for n, heads in (("q", 4), ("k", 2), ("v", 2)))
        q = rms_norm(w, at + "self_attn.q_norm", q, 1e-5)
        k = rms_norm(w, at + "self_attn.k_norm", k, 1e-5)
        q, k = (turn(split(a, n), frequencies=frequencies)
                for a, n in ((q, 4), (k, 2)))
        y = linear(w, at + "self_attn.o_proj",
                   attend(q, k, split(v, 2), window=window), WIDTH)
        x = plus(x, rms_norm(w, at + "post_attention_layernorm", y, 1e-5))
        y = gated(w, at + "mlp.", x, silu)
        x = plus(x, rms_norm(w, at + "post_feedforward_layernorm", y, 1e-5))
    return head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def olmo2(w, ids):
    config = {**BASE, "model_type": "olmo2", "num_key_value_heads": 2}
    return config, olmo_branches(w, ids, 2, lambda i: (None, None))


def olmo3(w, ids):
    config = {**BASE, "model_type": "olmo3", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "sliding_window": 3,
              "rope_theta": 500.0,
              "rope_scaling": {"rope_type": "linear", "factor": 4.0}}

    def positions(i):
        local = (i + 1) % 4 != 0
        return ([500.0 ** (-j / 4) / (1 if local else 4) for j in range(4)],
                3 if local else None)
    return config, olmo_branches(w, ids, 5, positions)


def olmo(w, ids):
    """Norms without parameters, projections cut off at 0.5."""
    config = {**BASE, "model_type": "olmo", "clip_qkv": 0.5}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        normed = layer_norm(w, "", x, affine=False)
        q, k, v = ([[[min(max(a, -0.5), 0.5) for a in r] for r in rows]
                    for rows in heads]
                   for heads in projections(w, at + "self_attn.", normed, HEADS))
        x = plus(x, linear(w, at + "self_attn.o_proj",
                           attend(turn(q), turn(k), v), WIDTH))
        x = plus(x, gated(w, at + "mlp.", layer_norm(w, "", x, affine=False),
                          silu))
    return config, head(w, "lm_head", layer_norm(w, "", x, affine=False))


def smollm3(w, ids):
    config = {**BASE, "model_type": "smollm3", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "no_rope_layer_interval": 3}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2)
        if (i + 1) % 3:
            q, k = turn(q, theta=2e6), turn(k, theta=2e6)
        return linear(w, at + "o_proj", attend(q, k, v), WIDTH)
    return config, llama_like(w, ids, 5, attention, untied=False)


def gate_up(w, at, x):
    both = linear(w, at + "gate_up_proj", x, 2 * INNER)
    return linear(w, at + "down_proj", [
        [silu(g) * u for g, u in zip(r[:INNER], r[INNER:])] for r in both],
        WIDTH)


def glm_like(w, ids, norms):
    """`norms`: of a sublayer's input, and of its result where there is one."""
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."

        def result(place, rows):
            return rms_norm(w, at + place, rows, 1.5625e-7) if place else rows
        (before1, after1), (before2, after2) = norms
        normed = rms_norm(w, at + before1, x, 1.5625e-7)
        q, k, v = projections(w, at + "self_attn.", normed, 2, bias=True)
        q, k = (turn(h, channels=4, interleaved=True) for h in (q, k))
        y = linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH)
        x = plus(x, result(after1, y))
        normed = rms_norm(w, at + before2, x, 1.5625e-7)
        x = plus(x, result(after2, gate_up(w, at + "mlp.", normed)))
    return head(w, "lm_head", rms_norm(w, "model.norm", x, 1.5625e-7))


def glm(w, ids):
    """Half of each head turns, neighbouring channels together."""
    config = {**BASE, "model_type": "glm", "head_dim": DIM}
    return config, glm_like(w, ids, (("input_layernorm", None),
                                     ("post_attention_layernorm", None)))


def glm4(w, ids):
    """The norm called post_attention comes before the feed-forward layer."""
    config = {**BASE, "model_type": "glm4", "head_dim": DIM}
    return config, glm_like(w, ids, (
        ("input_layernorm", "post_self_attn_layernorm"),
        ("post_attention_layernorm", "post_mlp_layernorm")))


def seed_oss(w, ids):
    config = {**BASE, "model_type": "seed_oss", "num_key_value_heads": 2,
              "head_dim": 12, "attention_out_bias": True}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2, 12, bias=True)
        return linear(w, at + "o_proj", attend(turn(q), turn(k), v), WIDTH,
                      True)
    return config, llama_like(w, ids, 2, attention)


def ernie4_5(w, ids):
    """Neighbouring channels turn together; the head is tied by default."""
    config = {**BASE, "model_type": "ernie4_5", "head_dim": DIM}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2)
        q, k = (turn(h, 5e5, interleaved=True) for h in (q, k))
        return linear(w, at + "o_proj", attend(q, k, v), WIDTH)
    return config, llama_like(w, ids, 2, attention, untied=False, eps=1e-5)


def exaone4(w, ids):
    """Norms of results; layers that see everything have no positions. A pattern
    in letters is no more than a comment on layer_types."""
    letters = len(ids) == TOKENS
    types = ["sliding_attention", "sliding_attention", "full_attention"]
    config = {**BASE, "model_type": "exaone4", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "sliding_window": 3,
              "sliding_window_pattern": "LLG" if letters else 3,
              "layer_types": (types + types)[:5] if letters else None}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(5):
        at = f"model.layers.{i}."
        local = (i + 1) % 3 != 0
        q, k, v = projections(w, at + "self_attn.", x, 2)
        q, k = ([rms_norm(w, at + f"self_attn.{n}_norm", rows, 1e-5)
                 for rows in heads] for n, heads in (("q", q), ("k", k)))
        if local:
            q, k = turn(q), turn(k)
        y = linear(w, at + "self_attn.o_proj",
                   attend(q, k, v, window=3 if local else None), WIDTH)
        x = plus(x, rms_norm(w, at + "post_attention_layernorm", y, 1e-5))
        y = gated(w, at + "mlp.", x, silu)
        x = plus(x, rms_norm(w, at + "post_feedforward_layernorm", y, 1e-5))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def hunyuan(w, ids, first=0):
    """Heads are normalised after they turned; the base grows with alpha."""
    config = {**BASE, "model_type": "hunyuan_v1_dense",
              "num_key_value_heads": 2, "use_qk_norm": True,
              "rope_scaling": {"type": "dynamic", "alpha": 50.0, "factor": 1.0,
                               "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                               "mscale_all_dim": 1.0}}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2)
        q, k = ([rms_norm(w, at + name, rows, 1e-5)
                 for rows in turn(heads, 1e4 * 50.0 ** (DIM / (DIM - 2)),
                                  first=first)]
                for name, heads in (("query_layernorm", q),
                                    ("key_layernorm", k)))
        return linear(w, at + "o_proj", attend(q, k, v), WIDTH)
    return config, llama_like(w, ids, 2, attention, eps=1e-5)


def cohere_like(w, ids, layers, attention, factor):
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(layers):
        at = f"model.layers.{i}."
        normed = layer_norm(w, at + "input_layernorm", x, bias=False)
        q, k, v = projections(w, at + "self_attn.", normed, 2)
        y = attention(at + "self_attn.", i, q, k, v)
        x = plus(plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH)),
                 gated(w, at + "mlp.", normed, silu))
    x = layer_norm(w, "model.norm", x, bias=False)
    return [scaled(v, factor)
            for v in tied(w, "model.embed_tokens.weight", x)]


def cohere(w, ids):
    config = {**BASE, "model_type": "cohere", "num_key_value_heads": 2,
              "logit_scale": 0.25, "use_qk_norm": True}

    def each(name, heads):
        gammas = w.matrix(name + ".weight", len(heads), DIM)
        return [[[a * g for a, g in zip(v, gamma)] for v in layer_norm(
            w, "", rows, affine=False)] for rows, gamma in zip(heads, gammas)]

    def attention(at, i, q, k, v):
        return attend(turn(each(at + "q_norm", q), interleaved=True),
                      turn(each(at + "k_norm", k), interleaved=True), v)
    return config, cohere_like(w, ids, 2, attention, 0.25)


def cohere2(w, ids):
    """Positions only where there is a window."""
    config = {**BASE, "model_type": "cohere2", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "sliding_window": 3,
              "sliding_window_pattern": 3, "rope_theta": 500.0}

    def attention(at, i, q, k, v):
        if (i + 1) % 3 == 0:
            return attend(q, k, v)
        q, k = (turn(a, theta=500.0, interleaved=True) for a in (q, k))
        return attend(q, k, v, window=3)
    return config, cohere_like(w, ids, 5, attention, 0.0625)


def stablelm(w, ids):
    config = {**BASE, "model_type": "stablelm", "num_key_value_heads": 2,
              "use_parallel_residual": True, "qk_layernorm": True,
              "partial_rotary_factor": 0.5, "use_qkv_bias": True}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        normed = layer_norm(w, at + "input_layernorm", x)
        q, k, v = projections(w, at + "self_attn.", normed, 2, bias=True)
        q, k = ([layer_norm(w, at + f"self_attn.{n}_layernorm.norms.{h}", rows,
                            bias=False) for h, rows in enumerate(heads)]
                for n, heads in (("q", q), ("k", k)))
        q, k = turn(q, channels=4), turn(k, channels=4)
        x = plus(plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v),
                                WIDTH)),
                 gated(w, at + "mlp.", normed, silu))
    return config, head(w, "lm_head", layer_norm(w, "model.norm", x))


CASES = {function.__name__: function for function in (
    llama_biases, mistral, qwen2_window, qwen3, smollm3, gemma2, gemma3, olmo,
    olmo2, olmo3, glm, glm4, glm4_moe, seed_oss, ernie4_5, ernie4_5_moe, exaone4,
    hunyuan, minimax_m2, gpt_oss, granitemoe, cohere, cohere2, stablelm)}


# Those that have tests of their own.
OTHERS = {function.__name__: function for function in (
    phi, phi3_longrope, phi4, phi4_mini, exaone, internlm2, minicpm,
    chatglm, falcon_7b, falcon_11b, falcon_rw,
    gpt2_by_layer, gpt_neo, bigcode_mqa, bigcode_mha, gpt_neox, opt_350m,
    opt_plain_norms, bloom_residual, mpt_clip,
    arcee, nemotron, mimo, ministral3, llama4, llama4_chunks, lfm2, lfm2_moe,
    nemotron_h, jamba, qwen3_next, qwen3_5, falcon_h1, falcon_h1_norms, kimi_linear, minimax,
    minimax_text, qwen3_5_moe, qwen3_5_moe_apart, granite4, granite4_experts,
    mamba2_alone, granitemoe_shared, hunyuan_moe, rwkv7, rwkv7_wide, gemma3n,
    gemma3n_other, deepseek_v32, kimi_k2, zamba2, zamba2_one, afmoe, bailing,
    bailing_v2, codegen, deepseek, dots1, exaone_moe, flex_olmo, glm4_moe_lite,
    hy_v3, internlm3, minicpm3, ministral, qwen, solar_open, vaultgemma, xglm,
    bamba, phimoe, apertus, glm_moe_dsa, biogpt, cwm,
    helium, openai_gpt)}


def run(folder, texts, positions=False):
    """A batch of texts, each with the logits that are expected. Shorter ones
    have padding in front, which a mask hides and no logits are read of. With
    `positions` the caller counts without it."""
    most = max(len(ids) for ids, _ in texts)
    before = [most - len(ids) for ids, _ in texts]

    def rows(values):
        return ("I64", [len(texts), most],
                struct.pack(f"<{len(texts) * most}q", *values))
    inputs = {"input_ids": rows(
        i for (ids, _), n in zip(texts, before) for i in [0] * n + ids)}
    if any(before):
        inputs["attention_mask"] = rows(
            int(t >= n) for n in before for t in range(most))
    if positions:
        inputs["position_ids"] = rows(
            max(t - n, 0) for n in before for t in range(most))
    tensors.save(os.path.join(folder, "in.safetensors"), inputs)
    out = os.path.join(folder, "out.safetensors")
    result = program(folder, "run", "--inputs",
                     os.path.join(folder, "in.safetensors"), "--outputs", out)
    if result.returncode:
        return result.stderr
    _, shape, raw = tensors.load(out)["logits"]
    if shape != [len(texts), most, VOCAB]:
        return f"logits of shape {shape}"
    got = struct.unpack(f"<{len(raw) // 4}f", raw)
    for number, ((ids, expected), padding) in enumerate(zip(texts, before)):
        first = (number * most + padding) * VOCAB
        flat = [a for v in expected for a in v]
        limit = 2e-5 * max(1.0, max(map(abs, flat)))
        worst = max(abs(a - b) for a, b in zip(got[first:], flat))
        print(f"  {worst:.2e} of {limit:.2e}, {padding} + {len(ids)} tokens")
        if worst > limit:
            return f"differs by {worst}"
    return ""


def run_padded(folder, case, weights, texts):
    """All texts in one batch. Where a token's place matters, some published classes
    count padding (`first`) unless the caller says otherwise, as `generate` does."""
    most = max(map(len, texts))
    knows = inspect.signature(case).parameters

    longest = {"longest": most} if "longest" in knows else {}

    def told(ids, **first):
        return ids, case(weights, ids, **longest, **first)[1]
    if "first" not in knows:
        return run(folder, [told(ids) for ids in texts])
    return (run(folder, [told(ids, first=most - len(ids)) for ids in texts])
            or run(folder, [told(ids) for ids in texts], positions=True))


def generate(folder, prompt, count):
    result = program(folder, "generate", "--prompt-ids",
                     ",".join(map(str, prompt)), "--max-new-tokens", str(count),
                     "--greedy", "--ignore-eos", "--format=ids")
    return result.stdout.strip() or result.stderr


def main():
    attune, work, *names = take_options(sys.argv[1:])
    failures = 0
    for name in names or CASES:
        case = CASES.get(name) or OTHERS[name]
        print(name)
        folder = os.path.join(work, name)
        os.makedirs(folder, exist_ok=True)
        draw = random.Random(name)
        built, texts = None, []
        for length in (TOKENS, 5):
            ids = [draw.randrange(VOCAB) for _ in range(length)]
            weights = Weights(name)
            config, expected = case(weights, ids)
            config = {key: value for key, value in config.items()
                      if value is not None}
            error = ""
            if config != built:
                error = build(attune, folder, weights, config)
                built = None if error else config
                if is_refusal(error):
                    print("REFUSED " + name + " " + error)
                    break
            error = error or run(folder, [(ids, expected)])
            texts.append(ids)
            if length == 5:
                error = error or run_padded(folder, case, weights, texts)
            # With the cache: token by token what the loops say.
            if not error and length == 5:
                told = list(ids)
                for _ in range(4):
                    logits = case(weights, told)[1][-1]
                    told.append(logits.index(max(logits)))
                wanted = ",".join(map(str, told[5:]))
                got = generate(folder, ids, 4)
                error = "" if got == wanted else f"told {got}, not {wanted}"
            print(("FAIL " if error else "PASS ") + name + " " + error)
            failures += bool(error)
    print(f"{len(names or CASES)} architectures, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
