# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models with delta rules for gguf_families.py, and how the converter
lays out what they have."""
from decoder_layers import BASE, HEADS, INNER, VOCAB, WIDTH

KEYS, VALUES, DIM, TAPS = 2, 4, 8, 3


def norm(w, name, size=WIDTH):
    w.vector(name + ".weight", size)


def delta_rule(w, at, apart):
    keys, values = KEYS * DIM, VALUES * DIM
    if apart:
        for name, rows in (("qkv", 2 * keys + values), ("z", values),
                           ("b", VALUES), ("a", VALUES)):
            w.matrix(f"{at}in_proj_{name}.weight", rows, WIDTH)
    else:
        w.matrix(at + "in_proj_qkvz.weight", 2 * (keys + values), WIDTH)
        w.matrix(at + "in_proj_ba.weight", 2 * VALUES, WIDTH)
    count = 2 * keys + values
    w.matrix(at + "conv1d.weight", count, TAPS)
    w.made[at + "conv1d.weight"] = ([count, 1, TAPS],
                                    w.made[at + "conv1d.weight"][1])
    w.vector(at + "dt_bias", VALUES)
    w.vector(at + "A_log", VALUES)
    w.vector(at + "norm.weight", DIM, 1.0)
    w.matrix(at + "out_proj.weight", WIDTH, values)


def gated_attention(w, at, size=16):
    w.matrix(at + "q_proj.weight", 2 * HEADS * size, WIDTH)
    w.matrix(at + "k_proj.weight", 2 * size, WIDTH)
    w.matrix(at + "v_proj.weight", 2 * size, WIDTH)
    w.matrix(at + "o_proj.weight", WIDTH, HEADS * size)
    norm(w, at + "q_norm", size)
    norm(w, at + "k_norm", size)


def gated(w, at, inner):
    w.matrix(at + "gate_proj.weight", inner, WIDTH)
    w.matrix(at + "up_proj.weight", inner, WIDTH)
    w.matrix(at + "down_proj.weight", WIDTH, inner)


def next_like(w, kind, apart, mixes):
    w.matrix("model.embed_tokens.weight", VOCAB, WIDTH)
    w.matrix("lm_head.weight", VOCAB, WIDTH)
    norm(w, "model.norm")
    for i in range(4):
        at = f"model.layers.{i}."
        norm(w, at + "input_layernorm")
        norm(w, at + "post_attention_layernorm")
        if i == 3:
            gated_attention(w, at + "self_attn.")
        else:
            delta_rule(w, at + "linear_attn.", apart)
        if not mixes:
            gated(w, at + "mlp.", INNER)
            continue
        w.matrix(at + "mlp.gate.weight", 6, WIDTH)
        for e in range(6):
            gated(w, f"{at}mlp.experts.{e}.", 24)
        gated(w, at + "mlp.shared_expert.", 40)
        w.matrix(at + "mlp.shared_expert_gate.weight", 1, WIDTH)
    config = {**BASE, "model_type": kind, "num_key_value_heads": 2,
              "num_hidden_layers": 4, "head_dim": 16, "rope_theta": 500.0,
              "partial_rotary_factor": 0.25, "linear_num_value_heads": VALUES,
              "linear_num_key_heads": KEYS, "linear_key_head_dim": DIM,
              "linear_value_head_dim": DIM, "linear_conv_kernel_dim": TAPS,
              "full_attention_interval": 4, "rms_norm_eps": 1e-6}
    if mixes:
        config.update(num_experts=6, num_experts_per_tok=2,
                      moe_intermediate_size=24,
                      shared_expert_intermediate_size=40)
    return config


def qwen35(w):
    return next_like(w, "qwen3_5_text", True, False)


def qwen35_moe(w):
    return next_like(w, "qwen3_5_moe_text", True, True)


def qwen3_next(w):
    return next_like(w, "qwen3_next", False, True)


def state_space(w, at, heads, groups, states, gain=True):
    inner = heads * DIM
    count = inner + 2 * groups * states
    w.matrix(at + "in_proj.weight", inner + count + heads, WIDTH)
    w.matrix(at + "conv1d.weight", count, 4)
    w.made[at + "conv1d.weight"] = ([count, 1, 4],
                                    w.made[at + "conv1d.weight"][1])
    w.vector(at + "conv1d.bias", count)
    for name in ("dt_bias", "A_log", "D"):
        w.vector(at + name, heads)
    if gain:
        w.vector(at + "norm.weight", inner, 1.0)
    w.matrix(at + "out_proj.weight", WIDTH, inner)


def attention(w, at):
    for part, rows in (("q", HEADS), ("k", 2), ("v", 2)):
        w.matrix(f"{at}{part}_proj.weight", rows * DIM, WIDTH)
    w.matrix(at + "o_proj.weight", WIDTH, HEADS * DIM)


def nemotron_h(w, pattern="M-M*"):
    w.matrix("backbone.embeddings.weight", VOCAB, WIDTH)
    w.matrix("lm_head.weight", VOCAB, WIDTH)
    w.vector("backbone.norm_f.weight", WIDTH, 1.0)
    for i, kind in enumerate(pattern):
        at = f"backbone.layers.{i}."
        w.vector(at + "norm.weight", WIDTH, 1.0)
        at += "mixer."
        if kind == "M":
            state_space(w, at, 6, 2, 5)
        elif kind == "*":
            attention(w, at)
        elif kind == "-":
            w.matrix(at + "up_proj.weight", INNER, WIDTH)
            w.matrix(at + "down_proj.weight", WIDTH, INNER)
        else:
            w.matrix(at + "gate.weight", 6, WIDTH)
            w.vector(at + "gate.e_score_correction_bias", 6)
            for to, inner in [("shared_experts.", 40)] + [
                    (f"experts.{e}.", 24) for e in range(6)]:
                w.matrix(at + to + "up_proj.weight", inner, WIDTH)
                w.matrix(at + to + "down_proj.weight", WIDTH, inner)
    config = {**BASE, "model_type": "nemotron_h", "head_dim": DIM,
              "hybrid_override_pattern": pattern, "num_key_value_heads": 2,
              "num_hidden_layers": len(pattern), "mamba_num_heads": 6,
              "mamba_head_dim": DIM, "n_groups": 2, "ssm_state_size": 5,
              "layer_norm_epsilon": 1e-5}
    if "E" in pattern:
        config.update(
            n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1,
            moe_intermediate_size=24, norm_topk_prob=True,
            moe_shared_expert_intermediate_size=40, routed_scaling_factor=2.5)
    return config


def nemotron_h_moe(w):
    return nemotron_h(w, "M*ME")


def falcon_h1(w):
    """The factors of the class are in the matrices of files, as here."""
    w.matrix("model.embed_tokens.weight", VOCAB, WIDTH)
    w.matrix("lm_head.weight", VOCAB, WIDTH)
    w.vector("model.final_layernorm.weight", WIDTH, 1.0)
    for i in range(2):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "pre_ff_layernorm"):
            w.vector(f"{at}{name}.weight", WIDTH, 1.0)
        attention(w, at + "self_attn.")
        state_space(w, at + "mamba.", 6, 2, 5)
        gated(w, at + "feed_forward.", INNER)
    return {**BASE, "model_type": "falcon_h1", "num_key_value_heads": 2,
            "head_dim": DIM, "mamba_d_ssm": 6 * DIM, "mamba_n_heads": 6,
            "mamba_n_groups": 2, "mamba_d_state": 5, "mamba_d_head": DIM,
            "mamba_rms_norm": True, "mamba_norm_before_gate": False,
            "rms_norm_eps": 1e-5, "rope_theta": 5000.0}


def turn_heads(first, size):
    """Rows so that heads of values go round those of keys, behind `first`."""
    share = VALUES // KEYS
    return list(range(first)) + [
        first + (key * share + r) * size + i for r in range(share)
        for key in range(KEYS) for i in range(size)]


def lay_out(converter, at, rest, matrix):
    """The tensors of a delta rule; whether it was one."""
    if not rest.startswith("linear_attn."):
        return False
    part, keys = rest[len("linear_attn."):], KEYS * DIM
    values, share = VALUES * DIM, VALUES // KEYS
    turned = converter.kind != "qwen3_next"

    def put(name, rows, first=0, size=DIM):
        converter.put(at + name, rows.pick(turn_heads(first, size))
                      if turned else rows)
    if part.endswith("A_log"):
        put("ssm_a", converter.steps(matrix), size=1)
    elif part == "dt_bias":
        put("ssm_dt.bias", matrix, size=1)
    elif part == "conv1d.weight":
        matrix.shape = [matrix.shape[0], TAPS]
        put("ssm_conv1d.weight", matrix, 2 * keys)
    elif part == "norm.weight":
        converter.put(at + "ssm_norm.weight", matrix)
    elif part == "out_proj.weight":
        columns = matrix.transposed()
        if turned:
            columns = columns.pick(turn_heads(0, DIM))
        converter.put(at + "ssm_out.weight", columns.transposed())
    elif part == "in_proj_qkv.weight":
        put("attn_qkv.weight", matrix, 2 * keys)
    elif part == "in_proj_z.weight":
        put("attn_gate.weight", matrix)
    elif part == "in_proj_b.weight":
        put("ssm_beta.weight", matrix, size=1)
    elif part == "in_proj_a.weight":
        put("ssm_alpha.weight", matrix, size=1)
    elif part == "in_proj_ba.weight":
        converter.put(at + "ssm_ba.weight", matrix)
    else:
        each = 2 * (DIM + share * DIM)
        ranges = [(0, DIM), (DIM, DIM), (2 * DIM, share * DIM),
                  (2 * DIM + share * DIM, share * DIM)]
        order = [[k * each + first + i for k in range(KEYS)
                  for i in range(size)] for first, size in ranges]
        assert len(sum(order, [])) == 2 * (keys + values)
        converter.put(at + "attn_qkv.weight",
                      matrix.pick(order[0] + order[1] + order[2]))
        converter.put(at + "attn_gate.weight", matrix.pick(order[3]))
    return True


def put_keys(put, config):
    """What all kinds of recurrent layers have."""
    if "linear_num_value_heads" in config:
        put("ssm.inner_size", VALUES * DIM)
        put("ssm.time_step_rank", VALUES)
        put("ssm.group_count", KEYS)
        put("ssm.state_size", DIM)
        put("ssm.conv_kernel", TAPS)
        put("full_attention_interval", 4)
        if config["model_type"] != "qwen3_next":
            put("rope.dimension_sections", [1, 1, 0, 0], "i32[]")
    if config["model_type"] == "falcon_h1":
        put("ssm.inner_size", 6 * DIM)
        put("ssm.time_step_rank", 6)
        put("ssm.group_count", 2)
        put("ssm.state_size", 5)
        put("ssm.conv_kernel", 4)
    if config["model_type"] == "nemotron_h":
        pattern = config["hybrid_override_pattern"]
        put("ssm.inner_size", 6 * DIM)
        put("ssm.time_step_rank", 6)
        put("ssm.group_count", 2)
        put("ssm.state_size", 5)
        put("ssm.conv_kernel", 4)
        if "E" in pattern:
            put("expert_shared_feed_forward_length", 40)
        put("attention.head_count_kv",
            [2 if kind == "*" else 0 for kind in pattern], "u32[]")
        put("feed_forward_length",
            [24 if kind == "E" else INNER if kind == "-" else 0
             for kind in pattern], "u32[]")
        return {"attention.head_count_kv", "feed_forward_length",
                "ssm.group_count"}
    if config["model_type"] == "granitemoehybrid":
        mixes = config["num_local_experts"]
        put("ssm.inner_size", 2 * WIDTH)
        put("ssm.time_step_rank", config["mamba_n_heads"])
        put("ssm.group_count", config["mamba_n_groups"])
        put("ssm.state_size", config["mamba_d_state"])
        put("ssm.conv_kernel", 4)
        put("rope.scaling.finetuned",
            config["position_embedding_type"] == "rope", "bool")
        put("attention.head_count_kv",
            [config["num_key_value_heads"] if kind == "attention" else 0
             for kind in config["layer_types"]], "u32[]")
        put("feed_forward_length",
            INNER if mixes else config["shared_intermediate_size"])
        return {"attention.head_count_kv", "feed_forward_length"}
    return set()
