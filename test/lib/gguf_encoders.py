# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small encoders for gguf_families.py."""
from decoder_layers import BASE, HEADS, INNER, VOCAB, WIDTH


def norm(w, name):
    for end in ("weight", "bias"):
        w.vector(f"{name}.{end}", WIDTH, 1.0)


def bert_tables(w, types, end):
    w.matrix("embeddings.word_embeddings.weight", VOCAB, WIDTH)
    w.matrix("embeddings.token_type_embeddings.weight", types, WIDTH)
    norm(w, end)


def bert(w):
    bert_tables(w, 2, "embeddings.LayerNorm")
    w.matrix("embeddings.position_embeddings.weight", 64, WIDTH)
    for i in range(2):
        at = f"encoder.layer.{i}."
        for name, rows, columns in (
                ("attention.self.query", WIDTH, WIDTH),
                ("attention.self.key", WIDTH, WIDTH),
                ("attention.self.value", WIDTH, WIDTH),
                ("attention.output.dense", WIDTH, WIDTH),
                ("intermediate.dense", INNER, WIDTH),
                ("output.dense", WIDTH, INNER)):
            w.matrix(f"{at}{name}.weight", rows, columns)
            w.vector(f"{at}{name}.bias", rows)
        norm(w, at + "attention.output.LayerNorm")
        norm(w, at + "output.LayerNorm")
    w.matrix("pooler.dense.weight", WIDTH, WIDTH)
    w.vector("pooler.dense.bias", WIDTH)
    return {**BASE, "model_type": "bert", "architectures": ["BertModel"],
            "type_vocab_size": 2, "layer_norm_eps": 1e-12}


def nomic_bert(w):
    inner = 256
    bert_tables(w, 1, "emb_ln")
    for i in range(2):
        at = f"encoder.layers.{i}."
        for name, rows, columns in (
                ("attn.Wqkv", 3 * WIDTH, WIDTH), ("attn.out_proj", WIDTH, WIDTH),
                ("mlp.fc11", inner, WIDTH), ("mlp.fc12", inner, WIDTH),
                ("mlp.fc2", WIDTH, inner)):
            w.matrix(f"{at}{name}.weight", rows, columns)
        norm(w, at + "norm1")
        norm(w, at + "norm2")
    return {"model_type": "nomic_bert", "architectures": ["NomicBertModel"],
            "n_embd": WIDTH, "n_head": HEADS, "n_layer": 2, "n_inner": inner,
            "vocab_size": VOCAB, "layer_norm_epsilon": 1e-12,
            "activation_function": "swiglu", "mlp_fc1_bias": False,
            "mlp_fc2_bias": False, "qkv_proj_bias": False,
            "rotary_emb_base": 1000, "rotary_emb_fraction": 1,
            "type_vocab_size": 1, "max_trained_positions": 64,
            "n_positions": 64}
