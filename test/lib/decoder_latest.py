# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Later mixtures of experts and relatives of known decoders, for `decoders.py`."""
import math
from operator import mul

from decoder_layers import (BASE, DIM, HEADS, INNER, VOCAB, WIDTH, attend, embed,
                            gated, gelu, gelu_tanh, head, layer_norm, linear,
                            plain, plus, projections, rms_norm, scaled, silu, split, tied, turn)
from decoder_latent import experts_behind_one, latent
from decoder_mixtures import sigmoids, softmax


def mixed(w, at, x, count, chosen, scores_of, bias=None, start=None, scale=1.0,
          gate="gate", sums=True, groups=(1, 1), width=INNER):
    """`start` plus the chosen experts' rows. With groups only experts of the
    best ones are chosen, by the sum of their two best."""
    matrix = w.matrix(at + gate + ".weight", count, WIDTH)
    offset = w.vector(at + bias, count) if bias else [0.0] * count
    each = [gated(w, f"{at}experts.{e}.", x, silu, width) for e in range(count)]
    out = start or [[0.0] * WIDTH for _ in x]
    size = count // groups[0]
    for t, v in enumerate(x):
        score = scores_of([math.fsum(map(mul, row, v)) for row in matrix])
        by = [s + o for s, o in zip(score, offset)]
        best = sorted(range(groups[0]), key=lambda g: -sum(
            sorted(by[g * size:(g + 1) * size])[-2:]))[:groups[1]]
        order = sorted((e for e in range(count) if e // size in best),
                       key=lambda e: -by[e])[:chosen]
        total = math.fsum(score[e] for e in order) if sums else 1.0
        for e in order:
            out[t] = [a + scale * score[e] / total * b
                      for a, b in zip(out[t], each[e][t])]
    return out


def normed_heads(w, at, q, k, eps, names=("q_norm", "k_norm")):
    return ([rms_norm(w, at + name, rows, eps) for rows in heads]
            for name, heads in zip(names, (q, k)))


def prenorm(w, ids, layers, attention, feed, eps, factor=1.0):
    """LLaMA's residuals; `attention(at, rows, i)` and `feed(at, rows, i)` get the
    layer's name."""
    x = embed(w, "model.embed_tokens.weight", ids, factor)
    for i in range(layers):
        at = f"model.layers.{i}."
        x = plus(x, attention(at, rms_norm(w, at + "input_layernorm", x, eps), i))
        x = plus(x, feed(at + "mlp.", rms_norm(
            w, at + "post_attention_layernorm", x, eps), i))
    return head(w, "lm_head", rms_norm(w, "model.norm", x, eps))


def glm4_moe_lite(w, ids):
    """GLM-4.7-Flash: DeepSeek-V3's layers, the first of them dense. The
    norms of latent rows have an eps of their own, 1e-6."""
    config = {**BASE, "model_type": "glm4_moe_lite", "rms_norm_eps": 0.01,
              "num_key_value_heads": HEADS, "q_lora_rank": 20,
              "kv_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
              "v_head_dim": 7, "n_routed_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER, "partial_rotary_factor": 1.0}
    if len(ids) > 5:
        config["mlp_layer_types"] = ["dense", "sparse"]
    return config, experts_behind_one(
        w, ids, 2, 1.8, lambda at, x: latent(w, at, x, 12, 6, 4, 7),
        0.01)


def minicpm3(w, ids):
    """Compressed rows whose shared channels turn half a head away; factors of
    embeddings, residuals and logits. The norms of compressed rows have an eps of
    their own, 1e-6."""
    config = {**BASE, "model_type": "minicpm3", "num_key_value_heads": HEADS,
              "q_lora_rank": 20, "kv_lora_rank": 12, "qk_nope_head_dim": 6,
              "qk_rope_head_dim": 4, "scale_emb": 12, "scale_depth": 1.4,
              "dim_model_base": 16, "rms_norm_eps": 0.01}
    depth = 1.4 / math.sqrt(2)
    x = embed(w, "model.embed_tokens.weight", ids, 12)
    for i in range(2):
        at = f"model.layers.{i}."
        y = latent(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, 0.01), 12, 6, 4, 8, interleaved=False)
        x = plus(x, [scaled(v, depth) for v in y])
        y = gated(w, at + "mlp.", rms_norm(
            w, at + "post_attention_layernorm", x, 0.01), silu)
        x = plus(x, [scaled(v, depth) for v in y])
    x = rms_norm(w, "model.norm", x, 0.01)
    return config, tied(w, "model.embed_tokens.weight",
                        [scaled(v, 16 / WIDTH) for v in x])


def solar_open(w, ids):
    """Experts in every layer, of which a token takes one, groups of them, biases
    of all but the output."""
    config = {**BASE, "model_type": "solar_open", "num_key_value_heads": 2,
              "head_dim": 12, "attention_bias": True, "n_routed_experts": 6,
              "num_experts_per_tok": 1, "moe_intermediate_size": INNER,
              "n_group": 3, "topk_group": 2, "routed_scaling_factor": 1.5}

    def attention(at, x, i):
        q, k, v = projections(w, at + "self_attn.", x, 2, 12, bias=True)
        return linear(w, at + "self_attn.o_proj",
                      attend(turn(q, 1e6), turn(k, 1e6), v), WIDTH)

    def feed(at, x, i):
        return mixed(w, at, x, 6, 1, sigmoids, "gate.e_score_correction_bias",
                     gated(w, at + "shared_experts.", x, silu), 1.5,
                     groups=(3, 2))
    return config, prenorm(w, ids, 2, attention, feed, 1e-5)


def dots1(w, ids):
    """The first layer is dense; two shared experts are one of twice the width.
    Layers from the second one on have a window."""
    config = {**BASE, "model_type": "dots1", "num_key_value_heads": 2,
              "num_hidden_layers": 3, "n_routed_experts": 6,
              "num_experts_per_tok": 2, "moe_intermediate_size": INNER // 2,
              "n_shared_experts": 2, "first_k_dense_replace": 1,
              "norm_topk_prob": True, "routed_scaling_factor": 2.5,
              "sliding_window": 4, "max_window_layers": 2,
              "scoring_func": "noaux_tc"}

    def attention(at, x, i):
        at += "self_attn."
        q, k, v = projections(w, at, x, 2)
        q, k = normed_heads(w, at, q, k, 1e-6)
        return linear(w, at + "o_proj", attend(
            turn(q), turn(k), v, window=4 if i >= 2 else None), WIDTH)

    def feed(at, x, i):
        if i == 0:
            return gated(w, at, x, silu)
        return mixed(w, at, x, 6, 2, sigmoids, "gate.e_score_correction_bias",
                     gated(w, at + "shared_experts.", x, silu), 2.5,
                     width=INNER // 2)
    return config, prenorm(w, ids, 3, attention, feed, 1e-6)


def exaone_moe(w, ids):
    """Windows and positions go together, and so do whole sight and none; the
    first layer is dense. The bias has its published name."""
    config = {**BASE, "model_type": "exaone_moe", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "sliding_window": 3,
              "sliding_window_pattern": 3, "num_experts": 6,
              "num_experts_per_tok": 2, "moe_intermediate_size": INNER,
              "first_k_dense_replace": 1}

    def attention(at, x, i):
        at += "self_attn."
        q, k, v = projections(w, at, x, 2)
        q, k = normed_heads(w, at, q, k, 1e-5)
        local = (i + 1) % 3 != 0
        if local:
            q, k = turn(q), turn(k)
        return linear(w, at + "o_proj",
                      attend(q, k, v, window=3 if local else None), WIDTH)

    def feed(at, x, i):
        if i == 0:
            return gated(w, at, x, silu)
        return mixed(w, at, x, 6, 2, sigmoids, "e_score_correction_bias",
                     gated(w, at + "shared_experts.", x, silu), 2.5)
    return config, prenorm(w, ids, 5, attention, feed, 1e-5)


def flex_olmo(w, ids):
    """Norms of results, of whole rows of queries and keys, and experts whose
    weights do not sum to 1."""
    config = {**BASE, "model_type": "flex_olmo", "num_key_value_heads": 2,
              "num_experts": 5, "num_experts_per_tok": 3, "rope_theta": 5e5}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = (linear(w, at + f"self_attn.{n}_proj", x, heads * DIM)
                   for n, heads in (("q", 4), ("k", 2), ("v", 2)))
        q = rms_norm(w, at + "self_attn.q_norm", q)
        k = rms_norm(w, at + "self_attn.k_norm", k)
        y = attend(turn(split(q, 4), 5e5), turn(split(k, 2), 5e5), split(v, 2))
        y = linear(w, at + "self_attn.o_proj", y, WIDTH)
        x = plus(x, rms_norm(w, at + "post_attention_layernorm", y))
        y = mixed(w, at + "mlp.", x, 5, 3, softmax, sums=False)
        x = plus(x, rms_norm(w, at + "post_feedforward_layernorm", y))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x))


def vaultgemma(w, ids):
    """Gemma 2 without the norms of what sublayers give."""
    config = {**BASE, "model_type": "vaultgemma", "num_key_value_heads": 2,
              "num_hidden_layers": 3, "head_dim": 8, "sliding_window": 3,
              "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0,
              "final_logit_softcapping": 3.0}
    x = embed(w, "model.embed_tokens.weight", ids, math.sqrt(WIDTH))
    for i in range(3):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "input_layernorm", x, offset=1.0), 2)
        y = attend(turn(q), turn(k), v, scale=20 ** -0.5, cap=2.0,
                   window=None if i % 2 else 3)
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH))
        x = plus(x, gated(w, at + "mlp.", rms_norm(
            w, at + "pre_feedforward_layernorm", x, offset=1.0), gelu_tanh))
    logits = tied(w, "model.embed_tokens.weight",
                  rms_norm(w, "model.norm", x, offset=1.0))
    return config, [[3.0 * math.tanh(a / 3.0) for a in v] for v in logits]


def ministral(w, ids):
    """One layer in two has a window."""
    config = {**BASE, "model_type": "ministral", "num_key_value_heads": 2,
              "sliding_window": 4, "layer_types": ["full_attention",
                                                   "sliding_attention"]}

    def attention(at, x, i):
        q, k, v = projections(w, at + "self_attn.", x, 2)
        return linear(w, at + "self_attn.o_proj", attend(
            turn(q), turn(k), v, window=4 if i else None), WIDTH)
    return config, prenorm(w, ids, 2, attention,
                           lambda at, x, i: gated(w, at, x, silu), 1e-6)


def afmoe(w, ids):
    """Norms on both sides of sublayers, gates of what attention gives, positions
    where there is a window; the first two layers are dense."""
    config = {**BASE, "model_type": "afmoe", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "head_dim": DIM, "sliding_window": 3,
              "global_attn_every_n_layers": 3, "num_dense_layers": 2,
              "num_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER, "num_shared_experts": 1,
              "route_scale": 2.826, "mup_enabled": True,
              "score_func": "sigmoid", "route_norm": True, "n_group": 1}
    x = embed(w, "model.embed_tokens.weight", ids, math.sqrt(WIDTH))
    for i in range(5):
        at = f"model.layers.{i}."

        def norm(name, rows):
            return rms_norm(w, at + name, rows, 1e-5)
        normed, to = norm("input_layernorm", x), at + "self_attn."
        q, k, v = projections(w, to, normed, 2)
        q, k = normed_heads(w, to, q, k, 1e-5)
        local = (i + 1) % 3 != 0
        if local:
            q, k = turn(q), turn(k)
        y = attend(q, k, v, window=3 if local else None)
        gates = linear(w, to + "gate_proj", normed, WIDTH)
        y = [[a / (1 + math.exp(-g)) for a, g in zip(*rows)]
             for rows in zip(y, gates)]
        x = plus(x, norm("post_attention_layernorm",
                         linear(w, to + "o_proj", y, WIDTH)))
        normed, to = norm("pre_mlp_layernorm", x), at + "mlp."
        y = gated(w, to, normed, silu) if i < 2 else mixed(
            w, to, normed, 6, 2, sigmoids, "expert_bias",
            gated(w, to + "shared_experts.", normed, silu), 2.826,
            gate="router.gate")
        x = plus(x, norm("post_mlp_layernorm", y))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def ling(w, ids, config, second):
    """Both Lings: half of a head turns in the second one, whose experts have
    groups."""
    config = {**BASE, "num_key_value_heads": 2, "num_experts": 8,
              "num_experts_per_tok": 3, "moe_intermediate_size": INNER,
              "num_shared_experts": 1, "use_bias": False, **config}
    eps = 1e-6 if second else 1e-5
    x = embed(w, "model.word_embeddings.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        rows = linear(w, at + "attention.query_key_value", rms_norm(
            w, at + "input_layernorm", x, eps), 8 * DIM)
        parts = split(rows, 8)
        q, k = parts[:4], parts[4:6]
        if second:
            q, k = normed_heads(w, at + "attention.", q, k, eps,
                                ("query_layernorm", "key_layernorm"))
        q, k = (turn(h, 6e5, 4 if second else DIM) for h in (q, k))
        x = plus(x, linear(w, at + "attention.dense", attend(q, k, parts[6:]),
                           WIDTH))
        normed = rms_norm(w, at + "post_attention_layernorm", x, eps)
        at += "mlp."
        if second and i == 0:
            x = plus(x, gated(w, at, normed, silu))
            continue
        shared = gated(w, at + "shared_experts.", normed, silu)
        x = plus(x, mixed(w, at, normed, 8, 3, sigmoids, "gate.expert_bias",
                          shared, 2.5, groups=(4, 2)) if second else mixed(
            w, at, normed, 8, 3, softmax, start=shared))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, eps))


def bailing(w, ids):
    return ling(w, ids, {
        "model_type": "bailing_moe", "architectures": ["BailingMoeForCausalLM"],
        "rope_theta": 6e5, "norm_head": False, "norm_topk_prob": True,
        "use_qkv_bias": False}, second=False)


def bailing_v2(w, ids):
    return ling(w, ids, {
        "model_type": "bailing_moe",
        "architectures": ["BailingMoeV2ForCausalLM"], "rope_theta": 6e5,
        "partial_rotary_factor": 0.5, "rotary_dim": 4, "n_group": 4,
        "topk_group": 2, "first_k_dense_replace": 1, "use_qk_norm": True,
        "routed_scaling_factor": 2.5, "score_function": "sigmoid",
        "moe_router_enable_expert_bias": True, "norm_topk_prob": True},
        second=True)


def codegen(w, ids):
    """One matrix has in each of four parts a quarter of the queries, of the
    values and of the keys."""
    config = {"model_type": "codegen", "architectures": ["CodeGenForCausalLM"],
              "vocab_size": VOCAB, "n_embd": WIDTH, "n_head": 8, "n_layer": 2,
              "n_positions": 64, "n_ctx": 64, "n_inner": None, "rotary_dim": 2,
              "activation_function": "gelu_new", "scale_attn_weights": True}
    x = embed(w, "transformer.wte.weight", ids)
    quarter = WIDTH // 4
    for i in range(2):
        at = f"transformer.h.{i}."
        normed = layer_norm(w, at + "ln_1", x)
        rows = linear(w, at + "attn.qkv_proj", normed, 3 * WIDTH)
        q, v, k = (split([[a for part in range(4) for a in r[
            (3 * part + which) * quarter:(3 * part + which + 1) * quarter]]
            for r in rows], 8) for which in range(3))
        q, k = (turn(h, channels=2, interleaved=True) for h in (q, k))
        y = linear(w, at + "attn.out_proj", attend(q, k, v), WIDTH)
        x = plus(x, plus(y, plain(w, at + "mlp.fc_in", at + "mlp.fc_out",
                                  normed, gelu_tanh, inner=4 * WIDTH)))
    x = layer_norm(w, "transformer.ln_f", x)
    return config, linear(w, "lm_head", x, VOCAB, True)


def xglm(w, ids, first=0):
    """Sines before cosines from position 2 on; padding counts unless the caller
    says otherwise."""
    config = {"model_type": "xglm", "architectures": ["XGLMForCausalLM"],
              "vocab_size": VOCAB, "d_model": WIDTH, "ffn_dim": INNER,
              "attention_heads": HEADS, "num_layers": 2,
              "max_position_embeddings": 64, "activation_function": "gelu",
              "scale_embedding": True}
    half = WIDTH // 2
    steps = [10000.0 ** (-i / (half - 1)) for i in range(half)]
    x = [[a + b for a, b in zip(v, [math.sin((t + 2) * s) for s in steps] +
                                [math.cos((t + 2) * s) for s in steps])]
         for t, v in enumerate(embed(w, "model.embed_tokens.weight", ids,
                                     math.sqrt(WIDTH)), first)]
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", layer_norm(
            w, at + "self_attn_layer_norm", x), HEADS, bias=True)
        x = plus(x, linear(w, at + "self_attn.out_proj", attend(q, k, v), WIDTH,
                           True))
        y = linear(w, at + "fc1", layer_norm(w, at + "final_layer_norm", x),
                   INNER, True)
        x = plus(x, linear(w, at + "fc2", [[gelu(a) for a in r] for r in y],
                           WIDTH, True))
    return config, tied(w, "model.embed_tokens.weight",
                        layer_norm(w, "model.layer_norm", x))


def deepseek(w, ids):
    """The first version: experts by softmax whose weights do not sum to 1, in
    every layer but the first."""
    config = {**BASE, "model_type": "deepseek", "num_key_value_heads": 2,
              "architectures": ["DeepseekForCausalLM"], "n_routed_experts": 6,
              "num_experts_per_tok": 2, "moe_intermediate_size": INNER // 2,
              "n_shared_experts": 2, "first_k_dense_replace": 1,
              "norm_topk_prob": False, "scoring_func": "softmax",
              "aux_loss_alpha": 0.001, "seq_aux": True, "moe_layer_freq": 1}

    def attention(at, x, i):
        q, k, v = projections(w, at + "self_attn.", x, 2)
        return linear(w, at + "self_attn.o_proj", attend(turn(q), turn(k), v),
                      WIDTH)

    def feed(at, x, i):
        if i == 0:
            return gated(w, at, x, silu)
        return mixed(w, at, x, 6, 2, softmax, start=gated(
            w, at + "shared_experts.", x, silu), sums=False, width=INNER // 2)
    return config, prenorm(w, ids, 2, attention, feed, 1e-6)


def qwen(w, ids):
    """The first version: "intermediate_size" counts gate and up together."""
    config = {**BASE, "model_type": "qwen", "architectures": ["QWenLMHeadModel"],
              "intermediate_size": 2 * INNER, "kv_channels": DIM,
              "seq_length": 48, "rotary_pct": 1.0, "rotary_emb_base": 500,
              "layer_norm_epsilon": 1e-6, "no_bias": True,
              "use_dynamic_ntk": True, "use_logn_attn": True,
              "scale_attn_weights": True, "tie_word_embeddings": False}
    x = embed(w, "transformer.wte.weight", ids)
    for i in range(2):
        at = f"transformer.h.{i}."
        rows = linear(w, at + "attn.c_attn", rms_norm(w, at + "ln_1", x),
                      3 * WIDTH, True)
        parts = split(rows, 12)
        q, k = (turn(h, 500.0) for h in (parts[:4], parts[4:8]))
        x = plus(x, linear(w, at + "attn.c_proj", attend(q, k, parts[8:]),
                           WIDTH))
        normed = rms_norm(w, at + "ln_2", x)
        up, gate = (linear(w, at + "mlp." + n, normed, INNER)
                    for n in ("w1", "w2"))
        x = plus(x, linear(w, at + "mlp.c_proj", [
            [a * silu(b) for a, b in zip(*both)] for both in zip(up, gate)],
            WIDTH))
    return config, head(w, "lm_head", rms_norm(w, "transformer.ln_f", x))


def internlm3(w, ids):
    """Biases of all but queries, keys and values."""
    config = {**BASE, "model_type": "internlm3", "num_key_value_heads": 2,
              "architectures": ["InternLM3ForCausalLM"], "head_dim": 12,
              "bias": True, "qkv_bias": False, "rope_theta": 5e7,
              "rope_scaling": {"rope_type": "dynamic", "factor": 6.0}}

    def attention(at, x, i):
        q, k, v = projections(w, at + "self_attn.", x, 2, 12)
        return linear(w, at + "self_attn.o_proj", attend(
            turn(q, 5e7), turn(k, 5e7), v), WIDTH, True)

    def feed(at, x, i):
        gate, up = (linear(w, at + n, x, INNER, True)
                    for n in ("gate_proj", "up_proj"))
        return linear(w, at + "down_proj", [
            [silu(a) * b for a, b in zip(*both)] for both in zip(gate, up)],
            WIDTH, True)
    return config, prenorm(w, ids, 2, attention, feed, 1e-6)


def hy_v3(w, ids):
    """Under the names of published files; attention has biases."""
    config = {**BASE, "model_type": "hy_v3", "num_key_value_heads": 2,
              "head_dim": DIM, "num_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER,
              "mlp_layer_types": ["sparse", "dense"],
              "qk_norm": True, "route_norm": True,
              "moe_router_use_sigmoid": True, "rope_theta": 11158840.0,
              "attention_bias": True}

    def attention(at, x, i):
        at += "self_attn."
        q, k, v = projections(w, at, x, 2, bias=True)
        q, k = normed_heads(w, at, q, k, 1e-5)
        q, k = (turn(h, 11158840.0) for h in (q, k))
        return linear(w, at + "o_proj", attend(q, k, v), WIDTH, True)

    def feed(at, x, i):
        if i == 1:
            return gated(w, at, x, silu)
        return mixed(w, at, x, 6, 2, sigmoids, "expert_bias",
                     gated(w, at + "shared_mlp.", x, silu), 2.826,
                     gate="router.gate")
    return config, prenorm(w, ids, 2, attention, feed, 1e-5)
