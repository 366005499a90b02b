# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders that mix attention with convolutions or state spaces, for
`decoders.py`."""
import math

from decoder_layers import (BASE, INNER, TOKENS, WIDTH, attend, dot, embed,
                            gated, head, linear, plain, plus, projections,
                            rms_norm, scaled, silu, split, tied, turn)
from decoder_mixtures import granite_experts, routed, sigmoids, softmax


def short_conv(w, at, x, taps):
    """C * conv(B * x) between two projections."""
    thirds = linear(w, at + "in_proj", x, 3 * WIDTH)
    read = [[b * a for b, a in zip(row[:WIDTH], row[2 * WIDTH:])]
            for row in thirds]
    filters = w.matrix(at + "conv.weight", WIDTH, taps)
    w.made[at + "conv.weight"] = ([WIDTH, 1, taps],
                                  w.made[at + "conv.weight"][1])
    made = [[row[WIDTH + c] * math.fsum(
        filters[c][k] * read[t - taps + 1 + k][c]
        for k in range(taps) if t - taps + 1 + k >= 0) for c in range(WIDTH)]
            for t, row in enumerate(thirds)]
    return linear(w, at + "out_proj", made, WIDTH)


def lfm2(w, ids):
    """Two layers of three convolve; the feed-forward layers' width is adjusted
    from 60 to 40."""
    types = ["conv", "conv", "full_attention", "conv", "full_attention"]
    by_number = len(ids) == TOKENS
    config = {**BASE, "model_type": "lfm2", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "block_ff_dim": 60, "block_multiple_of": 8,
              "full_attn_idxs": [2, 4] if by_number else None,
              "layer_types": None if by_number else types}
    return config, lfm2_like(w, ids, types, 40, 5, None)


def lfm2_like(w, ids, types, inner, dense, experts):
    """`experts` in place of the feed-forward layer from layer `dense` on."""
    return lfm2_behind(w, embed(w, "model.embed_tokens.weight", ids), "model.",
                       types, inner, dense, experts)


def lfm2_behind(w, x, base, types, inner, dense, experts):
    """Logits of what stands behind the embedding; `base` begins tensors' names."""
    def gate(at, x, width):
        rows = [[silu(g) * u for g, u in zip(a, b)] for a, b in zip(
            *(linear(w, at + n, x, width) for n in ("w1", "w3")))]
        return linear(w, at + "w2", rows, WIDTH)
    for i, kind in enumerate(types):
        at = f"{base}layers.{i}."
        normed = rms_norm(w, at + "operator_norm", x, 1e-5)
        if kind == "conv":
            x = plus(x, short_conv(w, at + "conv.", normed, 3))
        else:
            q, k, v = projections(w, at + "self_attn.", normed, 2)
            q, k = ([rms_norm(w, f"{at}self_attn.{n}_layernorm", rows, 1e-5)
                     for rows in h] for n, h in (("q", q), ("k", k)))
            y = attend(turn(q, 1e6), turn(k, 1e6), v)
            x = plus(x, linear(w, at + "self_attn.out_proj", y, WIDTH))
        normed = rms_norm(w, at + "ffn_norm", x, 1e-5)
        at += "feed_forward."
        x = plus(x, gate(at, normed, inner) if i < dense
                 else experts(at, normed, gate))
    x = rms_norm(w, base + "embedding_norm", x, 1e-5)
    return tied(w, base + "embed_tokens.weight", x)


def lfm2_moe(w, ids):
    """The first layer is dense; experts are chosen by sigmoid and a bias, and
    their weights are scaled."""
    types = ["conv", "full_attention", "conv"]
    config = {**BASE, "model_type": "lfm2_moe", "num_key_value_heads": 2,
              "num_hidden_layers": 3, "layer_types": types,
              "num_dense_layers": 1, "num_experts": 6,
              "num_experts_per_tok": 2, "moe_intermediate_size": 24,
              "routed_scaling_factor": 1.5}

    def experts(at, x, gate):
        return routed(w, at, x, 6, 2, sigmoids, "expert_bias",
                      lambda e: gate(f"{at}experts.{e}.", x, 24),
                      [[0.0] * WIDTH for _ in x], 1.5)
    return config, lfm2_like(w, ids, types, INNER, 1, experts)


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def mamba2(w, at, x, heads, groups, states, taps, eps=1e-6, inner=2 * WIDTH,
           parts=1, factors=None):
    """The recurrence of Mamba-2 as it stands, a norm of the gated result, or of
    parts of its channels (0: none). `factors` are those of the gate, x, B, C
    and the steps."""
    size, read = inner // heads, inner + 2 * groups * states
    rows = linear(w, at + "in_proj", x, inner + read + heads)
    if factors:
        each = [f for f, n in zip(factors, (inner, inner, groups * states,
                                            groups * states, heads))
                for _ in range(n)]
        rows = [[a * f for a, f in zip(row, each)] for row in rows]
    filters = w.matrix(at + "conv1d.weight", read, taps)
    w.made[at + "conv1d.weight"] = ([read, 1, taps],
                                    w.made[at + "conv1d.weight"][1])
    shift = w.vector(at + "conv1d.bias", read)
    bias, logs, skips = (w.vector(at + n, heads)
                         for n in ("dt_bias", "A_log", "D"))
    state = [[0.0] * states for _ in range(inner)]
    made = []
    for t, row in enumerate(rows):
        seen = [silu(shift[c] + math.fsum(
            filters[c][k] * rows[t - taps + 1 + k][inner + c]
            for k in range(taps) if t - taps + 1 + k >= 0))
                for c in range(read)]
        y = []
        for c in range(inner):
            h = c // size
            first = inner + h * groups // heads * states
            dt = softplus(row[inner + read + h] + bias[h])
            state[c] = [math.exp(-dt * math.exp(logs[h])) * old
                        + dt * b * seen[c]
                        for old, b in zip(state[c], seen[first:])]
            first += groups * states
            y.append((dot(state[c], seen[first:first + states])
                      + skips[h] * seen[c]) * silu(row[c]))
        made.append(y)
    if not parts:
        return linear(w, at + "out_proj", made, WIDTH)
    gamma = w.vector(at + "norm.weight", inner, 1.0)
    share = inner // parts
    for row in made:
        for p in range(0, inner, share):
            part = row[p:p + share]
            scale = 1 / math.sqrt(dot(part, part) / share + eps)
            row[p:p + share] = [a * scale * g
                                for a, g in zip(part, gamma[p:p + share])]
    return linear(w, at + "out_proj", made, WIDTH)


def granite_hybrid(w, ids, config, types, turns, feed):
    x = embed(w, "model.embed_tokens.weight", ids, 3.0)
    for i, kind in enumerate(types):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x)
        if kind == "mamba":
            y = mamba2(w, at + "mamba.", normed, config["mamba_n_heads"],
                       config["mamba_n_groups"], config["mamba_d_state"], 4)
        else:
            q, k, v = projections(w, at + "self_attn.", normed, 2)
            q, k = (turn(h) if turns else h for h in (q, k))
            y = linear(w, at + "self_attn.o_proj",
                       attend(q, k, v, scale=0.2), WIDTH)
        x = plus(x, [scaled(row, 0.4) for row in y])
        normed = rms_norm(w, at + "post_attention_layernorm", x)
        both = linear(w, at + "shared_mlp.input_linear", normed, 2 * 24)
        y = linear(w, at + "shared_mlp.output_linear",
                   [[silu(a) * b for a, b in zip(r[:24], r[24:])]
                    for r in both], WIDTH)
        if feed:
            y = plus(y, feed(at + "block_sparse_moe.", normed))
        x = plus(x, [scaled(row, 0.4) for row in y])
    x = rms_norm(w, "model.norm", x)
    return config, [scaled(row, 0.5)
                    for row in tied(w, "model.embed_tokens.weight", x)]


def mamba2_alone(w, ids):
    """State spaces alone, of 8 heads in 4 groups."""
    config = {"model_type": "mamba2", "vocab_size": BASE["vocab_size"],
              "hidden_size": WIDTH, "num_hidden_layers": 3, "num_heads": 8,
              "head_dim": 8, "n_groups": 4, "state_size": 6}
    x = embed(w, "backbone.embeddings.weight", ids)
    for i in range(3):
        at = f"backbone.layers.{i}."
        x = plus(x, mamba2(w, at + "mixer.", rms_norm(w, at + "norm", x, 1e-5),
                           8, 4, 6, 4, 1e-5))
    return config, head(w, "lm_head", rms_norm(w, "backbone.norm_f", x, 1e-5))


GRANITE4 = {**BASE, "model_type": "granitemoehybrid", "num_key_value_heads": 2,
            "shared_intermediate_size": 24, "embedding_multiplier": 3.0,
            "attention_multiplier": 0.2, "residual_multiplier": 0.4,
            "logits_scaling": 2.0, "tie_word_embeddings": True}


def granite4(w, ids):
    """State spaces of 8 heads in 2 groups and attention without positions."""
    types = ["mamba", "mamba", "attention", "mamba"]
    config = {**GRANITE4, "num_hidden_layers": 4, "layer_types": types,
              "num_local_experts": 0, "num_experts_per_tok": 0,
              "position_embedding_type": "nope", "mamba_n_heads": 8,
              "mamba_n_groups": 2, "mamba_d_state": 5, "mamba_d_head": 8}
    return granite_hybrid(w, ids, config, types, False, None)


def granite4_experts(w, ids):
    """Experts beside the feed-forward layer; heads of four channels, which are
    less than a vector, and rotary positions."""
    types = ["attention", "mamba"]
    config = {**GRANITE4, "num_hidden_layers": 2, "layer_types": types,
              "num_local_experts": 6, "num_experts_per_tok": 3,
              "position_embedding_type": "rope", "mamba_n_heads": 16,
              "mamba_n_groups": 1, "mamba_d_state": 7, "mamba_d_head": "auto"}
    return granite_hybrid(w, ids, config, types, True,
                          lambda at, rows: granite_experts(w, at, rows))


def bamba(w, ids):
    """LLaMA's layers, some with a state space in place of attention, whose heads
    turn by half."""
    config = {**BASE, "model_type": "bamba", "num_key_value_heads": 2,
              "num_hidden_layers": 3, "attn_layer_indices": [1],
              "mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_d_state": 5,
              "mamba_d_head": "auto"}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(3):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x, 1e-5)
        if i == 1:
            q, k, v = projections(w, at + "self_attn.", normed, 2)
            q, k = (turn(h, channels=4) for h in (q, k))
            y = linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH)
        else:
            y = mamba2(w, at + "mamba.", normed, 8, 2, 5, 4, 1e-5)
        x = plus(x, y)
        x = plus(x, gated(w, at + "feed_forward.", rms_norm(
            w, at + "pre_ff_layernorm", x, 1e-5), silu))
    return config, head(w, "lm_head",
                        rms_norm(w, "model.final_layernorm", x, 1e-5))


def relu_squared(x):
    return max(x, 0.0) ** 2


def nemotron_h(w, ids):
    """Layers of one sublayer each: state spaces normed by groups, attention
    without positions, feed-forward layers and experts without gates."""
    config = {"model_type": "nemotron_h", "vocab_size": BASE["vocab_size"],
              "hidden_size": WIDTH, "hybrid_override_pattern": "M-M*ME",
              "num_hidden_layers": 6, "num_attention_heads": 4,
              "num_key_value_heads": 2, "head_dim": 8,
              "intermediate_size": INNER, "mamba_num_heads": 6,
              "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 5,
              "n_routed_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": 24, "routed_scaling_factor": 2.5,
              "moe_shared_expert_intermediate_size": 40,
              "max_position_embeddings": 64}
    x = embed(w, "backbone.embeddings.weight", ids)
    for i, kind in enumerate(config["hybrid_override_pattern"]):
        at = f"backbone.layers.{i}."
        normed = rms_norm(w, at + "norm", x, 1e-5)
        at += "mixer."

        def feed(at, width):
            return plain(w, at + "up_proj", at + "down_proj", normed,
                         relu_squared, False, width)
        if kind == "M":
            y = mamba2(w, at, normed, 6, 2, 5, 4, 1e-5, 48, 2)
        elif kind == "*":
            y = linear(w, at + "o_proj",
                       attend(*projections(w, at, normed, 2)), WIDTH)
        elif kind == "-":
            y = feed(at, INNER)
        else:
            y = routed(w, at, normed, 6, 2, sigmoids,
                       "gate.e_score_correction_bias",
                       lambda e: feed(f"{at}experts.{e}.", 24),
                       feed(at + "shared_experts.", 40), 2.5)
        x = plus(x, y)
    return config, head(w, "lm_head", rms_norm(w, "backbone.norm_f", x, 1e-5))


def mamba1(w, at, x, states, taps, rank, norm):
    """The recurrence of Mamba as it stands, with `norm` of the low-rank steps,
    the inputs and the outputs."""
    inner = 2 * WIDTH
    rows = linear(w, at + "in_proj", x, 2 * inner)
    filters = w.matrix(at + "conv1d.weight", inner, taps)
    w.made[at + "conv1d.weight"] = ([inner, 1, taps],
                                    w.made[at + "conv1d.weight"][1])
    shift = w.vector(at + "conv1d.bias", inner)
    seen = [[silu(shift[c] + math.fsum(
        filters[c][k] * rows[t - taps + 1 + k][c]
        for k in range(taps) if t - taps + 1 + k >= 0)) for c in range(inner)]
            for t in range(len(rows))]
    chosen = linear(w, at + "x_proj", seen, rank + 2 * states)
    low, put, get = (norm(at + n, [row[a:b] for row in chosen]) for n, a, b in (
        ("dt_layernorm", 0, rank), ("b_layernorm", rank, rank + states),
        ("c_layernorm", rank + states, rank + 2 * states)))
    steps = linear(w, at + "dt_proj", low, inner, True)
    logs, skips = w.matrix(at + "A_log", inner, states), w.vector(at + "D", inner)
    state = [[0.0] * states for _ in range(inner)]
    made = []
    for t, row in enumerate(rows):
        y = []
        for c in range(inner):
            dt = softplus(steps[t][c])
            state[c] = [math.exp(-dt * math.exp(a)) * old + dt * b * seen[t][c]
                        for a, old, b in zip(logs[c], state[c], put[t])]
            y.append((dot(state[c], get[t]) + skips[c] * seen[t][c])
                     * silu(row[inner + c]))
        made.append(y)
    return linear(w, at + "out_proj", made, WIDTH)


def jamba(w, ids):
    """State spaces whose parts are normed, attention without positions in the
    second layer of three, experts in every second, whose weights do not sum
    to 1."""
    config = {**BASE, "model_type": "jamba", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "attn_layer_period": 3,
              "attn_layer_offset": 1, "expert_layer_period": 2,
              "expert_layer_offset": 1, "num_experts": 4,
              "num_experts_per_tok": 2, "mamba_d_state": 5, "mamba_d_conv": 3,
              "mamba_dt_rank": 3}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(5):
        at = f"model.layers.{i}."
        normed = rms_norm(w, at + "input_layernorm", x)
        if i % 3 == 1:
            y = linear(w, at + "self_attn.o_proj", attend(
                *projections(w, at + "self_attn.", normed, 2)), WIDTH)
        else:
            y = mamba1(w, at + "mamba.", normed, 5, 3, 3,
                       lambda name, rows: rms_norm(w, name, rows))
        x = plus(x, y)
        normed = rms_norm(w, at + "pre_ff_layernorm", x)
        at += "feed_forward."
        if i % 2 == 0:
            x = plus(x, gated(w, at, normed, silu))
            continue
        each = [gated(w, f"{at}experts.{e}.", normed, silu) for e in range(4)]
        scores = [softmax(row) for row in linear(w, at + "router", normed, 4)]
        for t, score in enumerate(scores):
            for e in sorted(range(4), key=lambda e: -score[e])[:2]:
                x[t] = [a + score[e] * b for a, b in zip(x[t], each[e][t])]
    x = rms_norm(w, "model.final_layernorm", x)
    return config, head(w, "lm_head", x)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def interleaved_parts(w, at, x, keys, heads, dim, size):
    """Of each key head one projection holds a query, a key, its values and
    their gates, and the other one betas and steps."""
    values = heads // keys * size
    wide = linear(w, at + "in_proj_qkvz", x, 2 * keys * (dim + values))
    narrow = linear(w, at + "in_proj_ba", x, 2 * heads)

    def parts(rows, *sizes):
        """The parts of each key head, those of one kind next to each other."""
        made = []
        for row in rows:
            row, kinds = list(row), [[] for _ in sizes]
            for _ in range(keys):
                for kind, many in zip(kinds, sizes):
                    kind += row[:many]
                    del row[:many]
            made.append(kinds)
        return made
    wide = parts(wide, dim, dim, values, values)
    narrow = parts(narrow, heads // keys, heads // keys)
    return ([q + k + v for q, k, v, _ in wide], [z for _, _, _, z in wide],
            [b for b, _ in narrow], [a for _, a in narrow])


def separate_parts(w, at, x, keys, heads, dim, size):
    return [linear(w, f"{at}in_proj_{n}", x, rows) for n, rows in (
        ("qkv", 2 * keys * dim + heads * size), ("z", heads * size),
        ("b", heads), ("a", heads))]


def gated_delta_net(w, at, x, parts, keys, heads, dim, size, taps, eps):
    """The gated delta rule token by token."""
    share, count = heads // keys, 2 * keys * dim + heads * size
    rows, gates, betas, steps = parts(w, at, x, keys, heads, dim, size)
    filters = w.matrix(at + "conv1d.weight", count, taps)
    w.made[at + "conv1d.weight"] = ([count, 1, taps],
                                    w.made[at + "conv1d.weight"][1])
    bias, logs = (w.vector(at + n, heads) for n in ("dt_bias", "A_log"))
    gamma = w.vector(at + "norm.weight", size, 1.0)
    memory = [[[0.0] * size for _ in range(dim)] for _ in range(heads)]
    made = []
    for t in range(len(rows)):
        seen = [silu(math.fsum(
            filters[c][k] * rows[t - taps + 1 + k][c]
            for k in range(taps) if t - taps + 1 + k >= 0))
                for c in range(count)]
        y = []
        for h in range(heads):
            g = h // share
            query, key = (seen[a + g * dim:a + (g + 1) * dim]
                          for a in (0, keys * dim))
            query, key = (scaled(v, (dot(v, v) + 1e-6) ** -0.5)
                          for v in (query, key))
            value = seen[2 * keys * dim + h * size:][:size]
            keep = math.exp(-math.exp(logs[h]) * softplus(steps[t][h] + bias[h]))
            held = [scaled(line, keep) for line in memory[h]]
            wrong = [sigmoid(betas[t][h]) * (v - math.fsum(
                k * line[c] for k, line in zip(key, held)))
                     for c, v in enumerate(value)]
            memory[h] = [[a + k * e for a, e in zip(line, wrong)]
                         for k, line in zip(key, held)]
            out = [math.fsum(q * line[c] for q, line in zip(query, memory[h]))
                   / math.sqrt(dim) for c in range(size)]
            root = math.sqrt(dot(out, out) / size + eps)
            y += [a / root * b for a, b in zip(out, gamma)]
        made.append([a * silu(z) for a, z in zip(y, gates[t])])
    return linear(w, at + "out_proj", made, WIDTH)


NEXT = {**BASE, "num_key_value_heads": 2, "num_hidden_layers": 4,
        "head_dim": 16, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
        "linear_key_head_dim": 6, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 3}


def next_like(w, ids, types, parts, theta, feed):
    """Delta rules beside attention with gates, whose heads turn by a quarter."""
    return next_layers(w, embed(w, "model.embed_tokens.weight", ids), "model.",
                       types, parts,
                       lambda heads: turn(heads, theta, channels=4), feed)


def next_layers(w, x, base, types, parts, turn_heads, feed):
    """All behind the embedding."""
    def norm(name, rows):
        return rms_norm(w, name, rows, offset=1.0)
    for i, kind in enumerate(types):
        at = f"{base}layers.{i}."
        normed = norm(at + "input_layernorm", x)
        if kind == "linear_attention":
            y = gated_delta_net(w, at + "linear_attn.", normed, parts, 2, 4, 6,
                                8, 3, 1e-6)
        else:
            to = at + "self_attn."
            both = split(linear(w, to + "q_proj", normed, 8 * 16), 8)
            k, v = (split(linear(w, f"{to}{n}_proj", normed, 2 * 16), 2)
                    for n in ("k", "v"))
            q, k = (turn_heads([norm(f"{to}{n}_norm", rows) for rows in heads])
                    for n, heads in (("q", both[::2]), ("k", k)))
            gates = [[a for rows in both[1::2] for a in rows[t]]
                     for t in range(len(x))]
            y = linear(w, to + "o_proj", [
                [a * sigmoid(z) for a, z in zip(*rows)]
                for rows in zip(attend(q, k, v), gates)], WIDTH)
        x = plus(x, y)
        x = plus(x, feed(i, at + "mlp.",
                         norm(at + "post_attention_layernorm", x)))
    return head(w, "lm_head", norm(base + "norm", x))


def qwen3_next(w, ids):
    """Experts in all layers but the first, and a shared one with a gate."""
    by_interval = len(ids) == TOKENS
    types = ["linear_attention", "linear_attention", "full_attention",
             "linear_attention"]
    config = {**NEXT, "model_type": "qwen3_next", "rope_theta": 500.0,
              "full_attention_interval": 3 if by_interval else None,
              "layer_types": None if by_interval else types,
              "mlp_only_layers": [0], "num_experts": 6,
              "num_experts_per_tok": 2, "moe_intermediate_size": 24,
              "shared_expert_intermediate_size": 40}

    def feed(i, at, x):
        if i == 0:
            return gated(w, at, x, silu)
        gates = linear(w, at + "shared_expert_gate", x, 1)
        shared = gated(w, at + "shared_expert.", x, silu, 40)
        return routed(w, at, x, 6, 2, softmax, None,
                      lambda e: gated(w, f"{at}experts.{e}.", x, silu, 24),
                      [scaled(row, sigmoid(g[0]))
                       for row, g in zip(shared, gates)])
    return config, next_like(w, ids, types, interleaved_parts, 500.0, feed)


def qwen3_5(w, ids):
    """The text model, whose delta rule has projections of its own for all that
    it reads."""
    types = ["linear_attention"] * 3 + ["full_attention"]
    config = {**NEXT, "model_type": "qwen3_5_text", "attn_output_gate": True,
              "rope_parameters": {
                  "rope_type": "default", "rope_theta": 1e4,
                  "partial_rotary_factor": 0.25, "mrope_interleaved": True,
                  "mrope_section": [1, 1, 0]}}
    return config, next_like(w, ids, types, separate_parts, 1e4,
                             lambda i, at, x: gated(w, at, x, silu))
