# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of decoders.py whose layers have attention and memories of a fixed size
side by side, or memories of other kinds."""
import math

from decoder_hybrids import (NEXT, mamba2, next_like, separate_parts, sigmoid,
                             softplus)
from decoder_layers import (BASE, DIM, HEADS, INNER, WIDTH, attend, dot, embed, gated,
                            head, linear, plus, projections, rms_norm, scaled,
                            silu, split, tied, turn)
from decoder_mixtures import routed, sigmoids, softmax


def falcon_h1_like(w, ids, config, parts, bias):
    """Attention and a state space that read one norm, and a factor behind each
    product."""
    into, key, out = (config[n] for n in (
        "attention_in_multiplier", "key_multiplier", "attention_out_multiplier"))
    gates, downs = config["mlp_multipliers"]
    x = embed(w, "model.embed_tokens.weight", ids, config["embedding_multiplier"])
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x, 1e-5)
        states = mamba2(w, at + "mamba.",
                        [scaled(r, config["ssm_in_multiplier"]) for r in normed],
                        config["mamba_n_heads"], config["mamba_n_groups"],
                        config["mamba_d_state"], 4, 1e-5, config["mamba_d_ssm"],
                        parts, config["ssm_multipliers"])
        q, k, v = projections(w, at + "self_attn.",
                              [scaled(r, into) for r in normed], 2, bias=bias)
        k = [[scaled(row, key) for row in h] for h in k]
        y = linear(w, at + "self_attn.o_proj", attend(turn(q), turn(k), v), WIDTH,
                   bias)
        x = plus(plus(x, [scaled(r, config["ssm_out_multiplier"])
                          for r in states]), [scaled(r, out) for r in y])
        normed = rms_norm(w, at + "pre_ff_layernorm", x, 1e-5)
        at += "feed_forward."
        gate, up = (linear(w, at + n, normed, INNER, bias)
                    for n in ("gate_proj", "up_proj"))
        y = linear(w, at + "down_proj", [
            [silu(g * gates) * u for g, u in zip(*rows)]
            for rows in zip(gate, up)], WIDTH, bias)
        x = plus(x, [scaled(r, downs) for r in y])
    x = rms_norm(w, "model.final_layernorm", x, 1e-5)
    logits = (tied(w, "model.embed_tokens.weight", x)
              if config["tie_word_embeddings"] else head(w, "lm_head", x))
    return config, [scaled(r, config["lm_head_multiplier"]) for r in logits]


FALCON_H1 = {**BASE, "model_type": "falcon_h1", "num_key_value_heads": 2,
             "mamba_d_head": 8, "rms_norm_eps": 1e-5,
             "embedding_multiplier": 2.75, "lm_head_multiplier": 0.3,
             "attention_in_multiplier": 1.5, "attention_out_multiplier": 0.7,
             "key_multiplier": 0.6, "mlp_multipliers": [0.9, 0.45],
             "ssm_multipliers": [0.35, 0.25, 1.3, 0.5, 0.8],
             "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.55}


def falcon_h1(w, ids):
    """Without a norm of the state space's result, with one head for the logits
    and the embedding."""
    return falcon_h1_like(w, ids, {
        **FALCON_H1, "num_hidden_layers": 3, "mamba_d_ssm": 48,
        "mamba_n_heads": 6, "mamba_n_groups": 1, "mamba_d_state": 5,
        "mamba_rms_norm": False, "tie_word_embeddings": True}, 0, False)


def falcon_h1_norms(w, ids):
    """Norms of two parts of the state space's result, biases."""
    return falcon_h1_like(w, ids, {
        **FALCON_H1, "mamba_d_ssm": 32, "mamba_n_heads": 4,
        "mamba_n_groups": 2, "mamba_d_state": 6, "mamba_rms_norm": True,
        "mamba_norm_before_gate": False, "attention_bias": True,
        "mlp_bias": True, "tie_word_embeddings": False}, 2, True)


def fused_expert(w, at, e, count, x, width):
    """One of `count` experts whose matrices are stacked, gates above the rest."""
    up = w.matrix(at + "experts.gate_up_proj", count * 2 * width, WIDTH)
    down = w.matrix(at + "experts.down_proj", count * WIDTH, width)
    for name, rows, columns in (("gate_up_proj", 2 * width, WIDTH),
                                ("down_proj", WIDTH, width)):
        w.made[at + "experts." + name] = ([count, rows, columns],
                                          w.made[at + "experts." + name][1])
    up, down = (m[e * n:(e + 1) * n] for m, n in ((up, 2 * width), (down, WIDTH)))
    made = []
    for row in x:
        both = [dot(line, row) for line in up]
        inner = [silu(a) * b for a, b in zip(both[:width], both[width:])]
        made.append([dot(line, inner) for line in down])
    return made


def qwen3_5_experts(w, ids, expert):
    """Delta rules, attention with gates, and experts in every layer."""
    types = ["linear_attention", "full_attention", "linear_attention"]
    config = {**NEXT, "model_type": "qwen3_5_moe_text", "num_hidden_layers": 3,
              "intermediate_size": None, "layer_types": types, "num_experts": 6,
              "num_experts_per_tok": 2, "moe_intermediate_size": 24,
              "shared_expert_intermediate_size": 40,
              "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                  "partial_rotary_factor": 0.25}}

    return config, next_like(w, ids, types, separate_parts, 1e4,
                             lambda i, at, x: qwen3_5_mixture(w, at, x, expert))


def qwen3_5_mixture(w, at, x, expert):
    """Two of six experts, and a shared one with a gate."""
    gates = linear(w, at + "shared_expert_gate", x, 1)
    shared = gated(w, at + "shared_expert.", x, silu, 40)
    return routed(w, at, x, 6, 2, softmax, None, lambda e: expert(w, at, e, x),
                  [scaled(row, sigmoid(g[0])) for row, g in zip(shared, gates)])


def qwen3_5_moe(w, ids):
    """One tensor for all experts of a layer."""
    return qwen3_5_experts(w, ids, lambda w, at, e, x: fused_expert(
        w, at, e, 6, x, 24))


def qwen3_5_moe_apart(w, ids):
    """Tensors of each expert."""
    return qwen3_5_experts(w, ids, lambda w, at, e, x: gated(
        w, f"{at}experts.{e}.", x, silu, 24))


def convolved(w, name, rows):
    """Each channel over its last tokens, activated."""
    count, taps = len(rows[0]), 3
    filters = w.matrix(name, count, taps)
    w.made[name] = ([count, 1, taps], w.made[name][1])
    return [[silu(math.fsum(filters[c][k] * rows[t - taps + 1 + k][c]
                            for k in range(taps) if t - taps + 1 + k >= 0))
             for c in range(count)] for t in range(len(rows))]


def kimi_delta(w, at, x, heads, dim):
    """The delta rule with a decay for each channel of a key, token by token."""
    many = heads * dim
    q, k, v = (split(convolved(w, f"{at}{n}_conv1d.weight",
                               linear(w, f"{at}{n}_proj", x, many)), heads)
               for n in "qkv")
    steps = linear(w, at + "f_b_proj", linear(w, at + "f_a_proj", x, dim), many)
    gates = linear(w, at + "g_b_proj", linear(w, at + "g_a_proj", x, dim), many)
    betas = linear(w, at + "b_proj", x, heads)
    bias, logs = w.vector(at + "dt_bias", many), w.vector(at + "A_log", heads)
    w.made[at + "A_log"] = ([1, 1, heads, 1], w.made[at + "A_log"][1])
    gamma = w.vector(at + "o_norm.weight", dim, 1.0)
    made = [[] for _ in x]
    for h in range(heads):
        memory = [[0.0] * dim for _ in range(dim)]
        for t in range(len(x)):
            query, key = (scaled(r, (dot(r, r) + 1e-6) ** -0.5)
                          for r in (q[h][t], k[h][t]))
            beta = sigmoid(betas[t][h])
            for s in range(dim):
                place = h * dim + s
                keep = math.exp(-math.exp(logs[h])
                                * softplus(steps[t][place] + bias[place]))
                memory[s] = scaled(memory[s], keep)
            wrong = [beta * (v[h][t][c] - math.fsum(
                a * line[c] for a, line in zip(key, memory)))
                     for c in range(dim)]
            memory = [[m + a * e for m, e in zip(line, wrong)]
                      for a, line in zip(key, memory)]
            out = [math.fsum(a * line[c] for a, line in zip(query, memory))
                   / math.sqrt(dim) for c in range(dim)]
            root = math.sqrt(dot(out, out) / dim + 1e-5)
            made[t] += [a / root * g * sigmoid(z) for a, g, z in zip(
                out, gamma, gates[t][h * dim:])]
    return linear(w, at + "o_proj", made, WIDTH)


def latent(w, at, x, rank, nope, shared, value):
    """Keys and values out of one row for each token; nothing turns."""
    queries = split(linear(w, at + "q_proj", x, HEADS * (nope + shared)), HEADS)
    rows = linear(w, at + "kv_a_proj_with_mqa", x, rank + shared)
    low = rms_norm(w, at + "kv_a_layernorm", [r[:rank] for r in rows], 1e-6)
    both = split(linear(w, at + "kv_b_proj", low, HEADS * (nope + value)), HEADS)
    keys = [[r[:nope] + row[rank:] for r, row in zip(h, rows)] for h in both]
    values = [[r[nope:] for r in h] for h in both]
    return linear(w, at + "o_proj", attend(queries, keys, values), WIDTH)


def kimi_linear(w, ids):
    """Two layers in three with a delta rule, the other with latent attention;
    experts in all layers but the first."""
    config = {"model_type": "kimi_linear", "vocab_size": BASE["vocab_size"],
              "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": 4, "num_attention_heads": HEADS,
              "num_key_value_heads": HEADS, "head_dim": 10,
              "rms_norm_eps": 1e-5, "q_lora_rank": None, "kv_lora_rank": 12,
              "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 7,
              "mla_use_nope": True, "num_experts": 6,
              "num_experts_per_token": 2, "moe_intermediate_size": 24,
              "moe_renormalize": True, "moe_router_activation_func": "sigmoid",
              "num_shared_experts": 1, "routed_scaling_factor": 2.446,
              "first_k_dense_replace": 1, "moe_layer_freq": 1,
              "use_grouped_topk": True, "num_expert_group": 1, "topk_group": 1,
              "model_max_length": 64, "tie_word_embeddings": False,
              "linear_attn_config": {
                  "kda_layers": [1, 2, 4], "full_attn_layers": [3],
                  "num_heads": 3, "head_dim": 8, "short_conv_kernel_size": 3}}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(4):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x, 1e-5)
        to = at + "self_attn."
        x = plus(x, latent(w, to, normed, 12, 6, 4, 7) if i == 2
                 else kimi_delta(w, to, normed, 3, 8))
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        if i == 0:
            x = plus(x, gated(w, at + "mlp.", normed, silu))
            continue
        at += "block_sparse_moe."

        def expert(e):
            to = f"{at}experts.{e}."
            gate, up = (linear(w, to + n, normed, 24) for n in ("w1", "w3"))
            return linear(w, to + "w2", [[silu(a) * b for a, b in zip(*rows)]
                                         for rows in zip(gate, up)], WIDTH)
        x = plus(x, routed(w, at, normed, 6, 2, sigmoids,
                           "gate.e_score_correction_bias", expert,
                           gated(w, at + "shared_experts.", normed, silu, 24),
                           2.446))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def lightning(w, at, x, layer, layers):
    """Sums of keys times values that fade, token by token."""
    many = HEADS * DIM
    rows = [[silu(a) for a in row]
            for row in linear(w, at + "qkv_proj", x, 3 * many)]
    made = [[] for _ in x]
    for h in range(HEADS):
        rate = (2.0 ** (-8.0 * (h + 1) / HEADS)
                * (1 - layer / (layers - 1 + 1e-5) + 1e-5))
        sums = [[0.0] * DIM for _ in range(DIM)]
        for t, row in enumerate(rows):
            q, k, v = (row[(3 * h + n) * DIM:][:DIM] for n in range(3))
            sums = [[math.exp(-rate) * old + a * b for old, b in zip(line, v)]
                    for a, line in zip(k, sums)]
            made[t] += [math.fsum(a * line[c] for a, line in zip(q, sums))
                        for c in range(DIM)]
    made = rms_norm(w, at + "norm", made)
    gates = linear(w, at + "output_gate", x, many)
    return linear(w, at + "out_proj",
                  [[sigmoid(g) * a for g, a in zip(*both)]
                   for both in zip(gates, made)], WIDTH)


def minimax_like(w, ids, config, types, factors, of_norm):
    """Sublayers add `beta` times their result to `alpha` times their norm, or to
    the stream."""
    x = embed(w, "model.embed_tokens.weight", ids)
    for i, kind in enumerate(types):
        at = f"model.layers.{i}."
        alpha, beta = factors[kind]

        def added(x, normed, y):
            return plus([scaled(r, alpha) for r in (normed if of_norm else x)],
                        [scaled(r, beta) for r in y])
        normed = rms_norm(w, at + "input_layernorm", x, 1e-5)
        to = at + "self_attn."
        if kind == "linear_attention":
            y = lightning(w, to, normed, i, len(types))
        else:
            q, k, v = projections(w, to, normed, 2)
            y = linear(w, to + "o_proj", attend(
                turn(q, 1e4, channels=4), turn(k, 1e4, channels=4), v), WIDTH)
        x = added(x, normed, y)
        normed = rms_norm(w, at + "post_attention_layernorm", x, 1e-5)
        at += "block_sparse_moe."

        def expert(e):
            to = f"{at}experts.{e}."
            gate, up = (linear(w, to + n, normed, INNER) for n in ("w1", "w3"))
            return linear(w, to + "w2", [[silu(a) * b for a, b in zip(*rows)]
                                         for rows in zip(gate, up)], WIDTH)
        x = added(x, normed, routed(w, at, normed, 4, 2, softmax, None, expert,
                                    [[0.0] * WIDTH for _ in normed]))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


MINIMAX = {**BASE, "num_key_value_heads": 2, "head_dim": DIM, "rotary_dim": 4,
           "rope_theta": 1e4, "num_local_experts": 4, "num_experts_per_tok": 2}


def minimax(w, ids):
    """Two runs of lightning attention, sums onto the norms, scaled."""
    types = ["linear_attention", "linear_attention", "full_attention",
             "linear_attention", "full_attention"]
    return minimax_like(w, ids, {
        **MINIMAX, "model_type": "minimax", "num_hidden_layers": 5,
        "layer_types": types, "full_attn_alpha_factor": 1.75,
        "full_attn_beta_factor": 0.5, "linear_attn_alpha_factor": 1.75,
        "linear_attn_beta_factor": 0.5, "mlp_alpha_factor": 1.75,
        "mlp_beta_factor": 0.5},
        types, dict.fromkeys(types, (1.75, 0.5)), True)


def minimax_text(w, ids):
    """The first class: other names, sums onto the stream."""
    kinds = [0, 1, 0, 0]
    types = ["full_attention" if k else "linear_attention" for k in kinds]
    config = {**MINIMAX, "model_type": "minimax_text_01",
              "num_hidden_layers": 4, "attn_type_list": kinds,
              "postnorm": False}
    for kind in ("full_attention", "linear_attention", "mlp"):
        config[f"layernorm_{kind}_alpha"] = 1.5
        config[f"layernorm_{kind}_beta"] = 1.0
    return minimax_like(w, ids, config, types, dict.fromkeys(types, (1.5, 1.0)),
                        False)
