# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Phi-3.5-MoE, Apertus, GLM-5, BioGPT, CWM, Helium and the first GPT, for `decoders.py`."""
import math

from decoder_layers import (BASE, HEADS, INNER, VOCAB, WIDTH, attend, dot,
                            embed, gelu, gelu_tanh, head, layer_norm, linear,
                            llama_like, plain, plus, projections, rms_norm, silu,
                            split, tied, turn)
from decoder_latent import experts_behind_one, latent
from decoder_latest import normed_heads


def among_near(scores, chosen, noise):
    """SparseMixer's weights: of each expert its share of a softmax over those near
    it that were not chosen before."""
    left, weights = dict(enumerate(scores)), []
    for expert in chosen:
        best = scores[expert]
        weights.append(1 / math.fsum(
            math.exp(s - best) for s in left.values()
            if (best - s) / max(abs(s), best) <= 2 * noise))
        del left[expert]
    return weights


def phimoe(w, ids, longest=0):
    """Two experts of each token. Layer norms, biases of attention and head; the
    factors of positions change in texts of more than eight tokens."""
    short, long = [1.0, 1.5, 2.0, 2.5], [2.0, 3.0, 5.0, 9.0]
    noise, count = 0.2, 6
    config = {**BASE, "model_type": "phimoe", "num_key_value_heads": 2,
              "architectures": ["PhiMoEForCausalLM"], "attention_bias": True,
              "lm_head_bias": True, "num_local_experts": count,
              "router_jitter_noise": noise, "input_jitter_noise": 0.01,
              "hidden_dropout": 0.0, "rope_theta": 10000.0,
              "original_max_position_embeddings": 8, "sliding_window": 64,
              "rope_scaling": {"type": "longrope", "short_factor": short,
                               "long_factor": long, "short_mscale": 1.25,
                               "long_mscale": 1.25,
                               "original_max_position_embeddings": 8}}
    factors = long if max(longest, len(ids)) > 8 else short
    turning = {"factor": 1.25, "frequencies": [
        10000.0 ** (-j / 4) / f for j, f in enumerate(factors)]}
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", layer_norm(
            w, at + "input_layernorm", x), 2, bias=True)
        y = attend(turn(q, **turning), turn(k, **turning), v)
        x = plus(x, linear(w, at + "self_attn.o_proj", y, WIDTH, True))
        normed = layer_norm(w, at + "post_attention_layernorm", x)
        at += "block_sparse_moe."
        matrix = w.matrix(at + "gate.weight", count, WIDTH)
        experts = []
        for e in range(count):
            name = f"{at}experts.{e}."
            gate, up = (linear(w, name + n, normed, INNER) for n in ("w1", "w3"))
            experts.append(linear(w, name + "w2", [
                [silu(g) * u for g, u in zip(*rows)] for rows in zip(gate, up)],
                WIDTH))
        added = []
        for t, row in enumerate(normed):
            scores = [dot(row, r) for r in matrix]
            chosen = sorted(range(count), key=lambda e: -scores[e])[:2]
            added.append([math.fsum(
                share * experts[e][t][c] for share, e in
                zip(among_near(scores, chosen, noise), chosen))
                for c in range(WIDTH)])
        x = plus(x, added)
    return config, linear(w, "lm_head", layer_norm(w, "model.norm", x), VOCAB,
                          True)


def xielu(x, positive, negative):
    def softplus(y):
        return math.log1p(math.exp(y))
    if x > 0:
        return softplus(positive) * x * x + 0.5 * x
    return (math.expm1(min(x, -1e-6)) - x) * (0.5 + softplus(negative)) + 0.5 * x


def apertus(w, ids):
    """An activation with two learned numbers a layer, between layers without a
    gate; norms of heads. The constants of the activation are in the file, too."""
    config = {**BASE, "model_type": "apertus", "num_key_value_heads": 2,
              "head_dim": 12, "hidden_act": "xielu", "attention_bias": False,
              "qk_norm": True, "post_norm": False, "mlp_bias": False,
              "rope_theta": 500.0, "rope_scaling": {
                  "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 32}}
    frequencies = []
    for i in range(6):
        plain = 500.0 ** (-i / 6)
        turns = 32 * plain / (2 * math.pi)
        share = min(max((turns - 1) / 3, 0), 1)
        frequencies.append(plain * share + plain / 8 * (1 - share))
    x = embed(w, "model.embed_tokens.weight", ids)
    for i in range(2):
        at = f"model.layers.{i}."
        q, k, v = projections(w, at + "self_attn.", rms_norm(
            w, at + "attention_layernorm", x, 1e-5), 2, 12)
        q, k = (turn(h, frequencies=frequencies) for h in
                normed_heads(w, at + "self_attn.", q, k, 1e-5))
        x = plus(x, linear(w, at + "self_attn.o_proj", attend(q, k, v), WIDTH))
        normed = rms_norm(w, at + "feedforward_layernorm", x, 1e-5)
        positive, negative, _, _ = (
            w.vector(f"{at}mlp.act_fn.{n}", 1)[0]
            for n in ("alpha_p", "alpha_n", "beta", "eps"))
        hidden = [[xielu(a, positive, negative) for a in row]
                  for row in linear(w, at + "mlp.up_proj", normed, INNER)]
        x = plus(x, linear(w, at + "mlp.down_proj", hidden, WIDTH))
    return config, head(w, "lm_head", rms_norm(w, "model.norm", x, 1e-5))


def glm_moe_dsa(w, ids):
    """DeepSeek-V3.2's layers, the first of them dense, with an index that turns
    pairs of neighbours. The best three keys of each query."""
    config = {**BASE, "model_type": "glm_moe_dsa", "num_hidden_layers": 2,
              "num_key_value_heads": HEADS, "q_lora_rank": 20,
              "kv_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4,
              "v_head_dim": 7, "n_routed_experts": 6, "num_experts_per_tok": 2,
              "moe_intermediate_size": INNER, "first_k_dense_replace": 1,
              "index_topk": 3, "index_n_heads": 5, "index_head_dim": 10,
              "indexer_rope_interleave": True, "indexer_types": ["full", "full"]}
    return config, experts_behind_one(
        w, ids, 2, 2.5, lambda at, x: latent(
            w, at, x, 12, 6, 4, 7, (5, 10, 3), pairs=True), 1e-5)


def biogpt(w, ids):
    """OPT's blocks; embeddings are scaled, positions begin at row 2, and the eps
    of the file is none of the norms'."""
    config = {**BASE, "model_type": "biogpt", "hidden_act": "gelu",
              "layer_norm_eps": 0.1, "scale_embedding": True,
              "max_position_embeddings": 30}
    b = "biogpt."
    places = w.matrix(b + "embed_positions.weight", 32, WIDTH)[2:]
    x = plus(embed(w, b + "embed_tokens.weight", ids, math.sqrt(WIDTH)), places)
    for i in range(2):
        at = f"{b}layers.{i}."
        q, k, v = projections(w, at + "self_attn.", layer_norm(
            w, at + "self_attn_layer_norm", x), HEADS, bias=True)
        x = plus(x, linear(w, at + "self_attn.out_proj", attend(q, k, v), WIDTH,
                           True))
        x = plus(x, plain(w, at + "fc1", at + "fc2", layer_norm(
            w, at + "final_layer_norm", x), gelu))
    return config, tied(w, b + "embed_tokens.weight",
                        layer_norm(w, b + "layer_norm", x))


def cwm(w, ids):
    """The first layer and every fourth one behind it see all."""
    config = {**BASE, "model_type": "cwm", "num_key_value_heads": 2,
              "num_hidden_layers": 5, "head_dim": 12, "sliding_window": 4,
              "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2, 12)
        return linear(w, at + "o_proj", attend(
            turn(q, 500.0), turn(k, 500.0), v, window=4 if i % 4 else None), WIDTH)
    return config, llama_like(w, ids, 5, attention, eps=1e-5)


def helium(w, ids):
    """LLaMA whose heads turn pairs of neighbours."""
    config = {**BASE, "model_type": "helium", "num_key_value_heads": 2,
              "head_dim": 8, "rms_norm_eps": 1e-8}

    def attention(w, at, x, i):
        q, k, v = projections(w, at, x, 2)
        q, k = (turn(h, 1e5, interleaved=True) for h in (q, k))
        return linear(w, at + "o_proj", attend(q, k, v), WIDTH)
    return config, llama_like(w, ids, 2, attention, eps=1e-8)


def openai_gpt(w, ids, first=0):
    """Norms after the sublayers and none at the end; matrices [in, out]."""
    config = {"model_type": "openai-gpt", "vocab_size": VOCAB, "n_embd": WIDTH,
              "n_head": HEADS, "n_layer": 2, "n_positions": 64, "afn": "gelu",
              "n_special": 0, "predict_special_tokens": True,
              "architectures": ["OpenAIGPTLMHeadModel"]}

    def across(name, x, out):
        matrix = w.matrix(name + ".weight", len(x[0]), out)
        bias = w.vector(name + ".bias", out)
        return [[math.fsum(a * row[c] for a, row in zip(v, matrix)) + bias[c]
                 for c in range(out)] for v in x]
    x = plus(embed(w, "tokens_embed.weight", ids),
             w.matrix("positions_embed.weight", 64, WIDTH)[first:])
    for i in range(2):
        at = f"h.{i}."
        qkv = across(at + "attn.c_attn", x, 3 * WIDTH)
        q, k, v = (split([r[n * WIDTH:(n + 1) * WIDTH] for r in qkv], HEADS)
                   for n in range(3))
        y = across(at + "attn.c_proj", attend(q, k, v), WIDTH)
        x = layer_norm(w, at + "ln_1", plus(x, y))
        y = [[gelu_tanh(a) for a in row] for row in across(
            at + "mlp.c_fc", x, 4 * WIDTH)]
        x = layer_norm(w, at + "ln_2", plus(x, across(at + "mlp.c_proj", y,
                                                       WIDTH)))
    return config, tied(w, "tokens_embed.weight", x)
