# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vision_folders.py FOLDER: folders of published models of pictures and text, with
their configurations and the tensors that their files have, in files that hold
nothing: they are as long, and take no space. Prints how many numbers each has."""

import json
import os
import sys

import tensors

IDS = {"image_token_id": 151655, "video_token_id": 151656,
       "vision_start_token_id": 151652, "vision_end_token_id": 151653}


def second(width, inner, layers, heads, kv_heads, vocab, tied):
    """Qwen2-VL."""
    seen = 1280
    config = {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "model_type": "qwen2_vl", "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151645, **IDS,
        "vision_token_id": 151654, "hidden_act": "silu", "hidden_size": width,
        "initializer_range": 0.02, "intermediate_size": inner,
        "max_position_embeddings": 32768, "max_window_layers": layers,
        "num_attention_heads": heads, "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0, "sliding_window": 32768,
        "tie_word_embeddings": tied, "torch_dtype": "bfloat16",
        "transformers_version": "4.41.2", "use_cache": True,
        "use_sliding_window": False, "vocab_size": vocab,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        "vision_config": {
            "depth": 32, "embed_dim": seen, "mlp_ratio": 4, "num_heads": 16,
            "in_chans": 3, "hidden_size": width, "patch_size": 14,
            "spatial_merge_size": 2, "spatial_patch_size": 14,
            "temporal_patch_size": 2}}
    shapes = {"visual.patch_embed.proj.weight": [seen, 3, 2, 14, 14]}

    def linear(name, rows, columns):
        shapes[name + ".weight"], shapes[name + ".bias"] = [rows, columns], [rows]

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [seen]
    for i in range(32):
        at = f"visual.blocks.{i}."
        norm(at + "norm1")
        norm(at + "norm2")
        linear(at + "attn.qkv", 3 * seen, seen)
        linear(at + "attn.proj", seen, seen)
        linear(at + "mlp.fc1", 4 * seen, seen)
        linear(at + "mlp.fc2", seen, 4 * seen)
    norm("visual.merger.ln_q")
    linear("visual.merger.mlp.0", 4 * seen, 4 * seen)
    linear("visual.merger.mlp.2", width, 4 * seen)
    shapes["model.embed_tokens.weight"] = [vocab, width]
    shapes["model.norm.weight"] = [width]
    if not tied:
        shapes["lm_head.weight"] = [vocab, width]
    keys = kv_heads * width // heads
    for i in range(layers):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = [width]
        linear(at + "self_attn.q_proj", width, width)
        linear(at + "self_attn.k_proj", keys, width)
        linear(at + "self_attn.v_proj", keys, width)
        shapes[at + "self_attn.o_proj.weight"] = [width, width]
        shapes[at + "mlp.gate_proj.weight"] = [inner, width]
        shapes[at + "mlp.up_proj.weight"] = [inner, width]
        shapes[at + "mlp.down_proj.weight"] = [width, inner]
    return config, shapes


def third(width, inner, expert, layers, heads):
    """Qwen3-VL with experts."""
    seen, deep, vocab, experts = 1152, [8, 16, 24], 151936, 128
    config = {
        "architectures": ["Qwen3VLMoeForConditionalGeneration"],
        "model_type": "qwen3_vl_moe", **IDS, "tie_word_embeddings": False,
        "transformers_version": "4.57.0.dev0",
        "text_config": {
            "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": 151643, "decoder_sparse_step": 1,
            "dtype": "bfloat16", "eos_token_id": 151645, "head_dim": 128,
            "hidden_act": "silu", "hidden_size": width,
            "initializer_range": 0.02, "intermediate_size": inner,
            "max_position_embeddings": 262144, "mlp_only_layers": [],
            "model_type": "qwen3_vl_moe_text", "moe_intermediate_size": expert,
            "norm_topk_prob": True, "num_attention_heads": heads,
            "num_experts": experts, "num_experts_per_tok": 8,
            "num_hidden_layers": layers, "num_key_value_heads": 4,
            "rms_norm_eps": 1e-06, "rope_theta": 5000000, "use_cache": True,
            "rope_scaling": {"mrope_interleaved": True, "rope_type": "default",
                             "mrope_section": [24, 20, 20]},
            "vocab_size": vocab},
        "vision_config": {
            "deepstack_visual_indexes": deep, "depth": 27,
            "hidden_act": "gelu_pytorch_tanh", "hidden_size": seen,
            "in_channels": 3, "initializer_range": 0.02,
            "intermediate_size": 4304, "model_type": "qwen3_vl_moe",
            "num_heads": 16, "num_position_embeddings": 2304,
            "out_hidden_size": width, "patch_size": 16,
            "spatial_merge_size": 2, "temporal_patch_size": 2}}
    shapes, sight = {}, "model.visual."

    def linear(name, rows, columns):
        shapes[name + ".weight"], shapes[name + ".bias"] = [rows, columns], [rows]

    def norm(name, size):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [size]

    def merger(at, size):
        norm(at + "norm", size)
        linear(at + "linear_fc1", 4 * seen, 4 * seen)
        linear(at + "linear_fc2", width, 4 * seen)
    linear(sight + "patch_embed.proj", seen, 0)
    shapes[sight + "patch_embed.proj.weight"] = [seen, 3, 2, 16, 16]
    shapes[sight + "pos_embed.weight"] = [2304, seen]
    for i in range(27):
        at = f"{sight}blocks.{i}."
        norm(at + "norm1", seen)
        norm(at + "norm2", seen)
        linear(at + "attn.qkv", 3 * seen, seen)
        linear(at + "attn.proj", seen, seen)
        linear(at + "mlp.linear_fc1", 4304, seen)
        linear(at + "mlp.linear_fc2", seen, 4304)
    merger(sight + "merger.", seen)
    for i in range(len(deep)):
        merger(f"{sight}deepstack_merger_list.{i}.", 4 * seen)
    shapes["lm_head.weight"] = [vocab, width]
    shapes["model.language_model.embed_tokens.weight"] = [vocab, width]
    shapes["model.language_model.norm.weight"] = [width]
    for i in range(layers):
        at = f"model.language_model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = [width]
        for name, rows in (("q", heads * 128), ("k", 512), ("v", 512)):
            shapes[f"{at}self_attn.{name}_proj.weight"] = [rows, width]
        for name in ("q_norm", "k_norm"):
            shapes[f"{at}self_attn.{name}.weight"] = [128]
        shapes[at + "self_attn.o_proj.weight"] = [width, heads * 128]
        shapes[at + "mlp.gate.weight"] = [experts, width]
        shapes[at + "mlp.experts.gate_up_proj"] = [experts, width, 2 * expert]
        shapes[at + "mlp.experts.down_proj"] = [experts, expert, width]
    return config, shapes


def siglip(shapes, sight, image):
    """SigLIP's tower of 1152 channels without its pooling."""
    seen, inner = 1152, 4304

    def linear(name, rows, columns):
        shapes[name + ".weight"], shapes[name + ".bias"] = [rows, columns], [rows]

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [seen]
    linear(sight + "embeddings.patch_embedding", seen, 0)
    shapes[sight + "embeddings.patch_embedding.weight"] = [seen, 3, 14, 14]
    shapes[sight + "embeddings.position_embedding.weight"] = [
        (image // 14) ** 2, seen]
    for i in range(27):
        at = f"{sight}encoder.layers.{i}."
        for name in "qkv":
            linear(f"{at}self_attn.{name}_proj", seen, seen)
        linear(at + "self_attn.out_proj", seen, seen)
        linear(at + "mlp.fc1", inner, seen)
        linear(at + "mlp.fc2", seen, inner)
        norm(at + "layer_norm1")
        norm(at + "layer_norm2")
    norm(sight + "post_layernorm")
    return {"hidden_size": seen, "intermediate_size": inner,
            "model_type": "siglip_vision_model", "num_attention_heads": 16,
            "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": False}


def gemma(shapes, width, inner, layers, heads, kv_heads, vocab, norms):
    """A text model of Gemma's with heads of 256 channels."""
    base = "language_model.model."
    shapes[base + "embed_tokens.weight"] = [vocab, width]
    shapes[base + "norm.weight"] = [width]
    for i in range(layers):
        at = f"{base}layers.{i}."
        for name in norms:
            shapes[f"{at}{name}.weight"] = [256 if "self_attn" in name else width]
        for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            shapes[f"{at}self_attn.{name}_proj.weight"] = [256 * count, width]
        shapes[at + "self_attn.o_proj.weight"] = [width, 256 * heads]
        shapes[at + "mlp.gate_proj.weight"] = [inner, width]
        shapes[at + "mlp.up_proj.weight"] = [inner, width]
        shapes[at + "mlp.down_proj.weight"] = [width, inner]


def gemma3():
    """Gemma 3 of 4 billion: its file leaves most of the text model's keys to the
    class."""
    shapes = {}
    vision = siglip(shapes, "vision_tower.vision_model.", 896)
    gemma(shapes, 2560, 10240, 34, 8, 4, 262208,
          ["input_layernorm", "post_attention_layernorm",
           "pre_feedforward_layernorm", "post_feedforward_layernorm",
           "self_attn.q_norm", "self_attn.k_norm"])
    shapes["multi_modal_projector.mm_input_projection_weight"] = [1152, 2560]
    shapes["multi_modal_projector.mm_soft_emb_norm.weight"] = [1152]
    return {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "boi_token_index": 255999, "eoi_token_index": 256000,
        "eos_token_id": [1, 106], "image_token_index": 262144,
        "initializer_range": 0.02, "mm_tokens_per_image": 256,
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560, "intermediate_size": 10240,
            "model_type": "gemma3_text", "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024},
        "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
        "vision_config": {**vision, "image_size": 896}}, shapes


def paligemma():
    """PaliGemma of 3 billion for images of 224 x 224 pixels."""
    shapes = {}
    vision = siglip(shapes, "vision_tower.vision_model.", 224)
    gemma(shapes, 2048, 16384, 18, 8, 1, 257216,
          ["input_layernorm", "post_attention_layernorm"])
    shapes["multi_modal_projector.linear.weight"] = [2048, 1152]
    shapes["multi_modal_projector.linear.bias"] = [2048]
    return {
        "_vocab_size": 257152,
        "architectures": ["PaliGemmaForConditionalGeneration"],
        "bos_token_id": 2, "eos_token_id": 1, "hidden_size": 2048,
        "ignore_index": -100, "image_token_index": 257152,
        "model_type": "paligemma", "pad_token_id": 0, "projection_dim": 2048,
        "text_config": {
            "hidden_size": 2048, "intermediate_size": 16384,
            "model_type": "gemma", "num_attention_heads": 8,
            "num_hidden_layers": 18, "num_image_tokens": 256,
            "num_key_value_heads": 1, "torch_dtype": "float32",
            "vocab_size": 257216},
        "torch_dtype": "float32", "transformers_version": "4.42.0.dev0",
        "vision_config": {**vision, "num_image_tokens": 256,
                          "projection_dim": 2048,
                          "projector_hidden_act": "gelu_fast"}}, shapes


def pixtral(kind, inner, patch, width=5120):
    """Pixtral of 12 billion (a LLaVA), or Mistral Small 3.1 of 24 billion."""
    shapes, seen, vocab = {}, 1024, 131072
    llava = kind == "llava"
    tower, projector = "vision_tower.", "multi_modal_projector."
    shapes[tower + "patch_conv.weight"] = [seen, 3, patch, patch]
    shapes[tower + "ln_pre.weight"] = [seen]
    for i in range(24):
        at = f"{tower}transformer.layers.{i}."
        for name in "qkvo":
            shapes[f"{at}attention.{name}_proj.weight"] = [seen, seen]
        for name in ("attention_norm", "ffn_norm"):
            shapes[f"{at}{name}.weight"] = [seen]
        shapes[at + "feed_forward.gate_proj.weight"] = [4096, seen]
        shapes[at + "feed_forward.up_proj.weight"] = [4096, seen]
        shapes[at + "feed_forward.down_proj.weight"] = [seen, 4096]
    if not llava:
        shapes[projector + "norm.weight"] = [seen]
        shapes[projector + "patch_merger.merging_layer.weight"] = [seen, 4 * seen]
    for name, columns in (("linear_1", seen), ("linear_2", width)):
        shapes[f"{projector}{name}.weight"] = [width, columns]
        if llava:
            shapes[f"{projector}{name}.bias"] = [width]
    base = "language_model.model."
    shapes[base + "embed_tokens.weight"] = [vocab, width]
    shapes[base + "norm.weight"] = [width]
    shapes["language_model.lm_head.weight"] = [vocab, width]
    for i in range(40):
        at = f"{base}layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = [width]
        for name, rows in (("q", 4096), ("k", 1024), ("v", 1024)):
            shapes[f"{at}self_attn.{name}_proj.weight"] = [rows, width]
        shapes[at + "self_attn.o_proj.weight"] = [width, 4096]
        shapes[at + "mlp.gate_proj.weight"] = [inner, width]
        shapes[at + "mlp.up_proj.weight"] = [inner, width]
        shapes[at + "mlp.down_proj.weight"] = [width, inner]
    if llava:
        return {
            "architectures": ["LlavaForConditionalGeneration"],
            "ignore_index": -100, "image_seq_length": 1,
            "image_token_index": 10, "model_type": "llava",
            "projector_hidden_act": "gelu",
            "text_config": {
                "hidden_size": width, "head_dim": 128,
                "intermediate_size": inner, "is_composition": True,
                "max_position_embeddings": 1024000, "model_type": "mistral",
                "num_hidden_layers": 40, "num_key_value_heads": 8,
                "rms_norm_eps": 1e-05, "rope_theta": 1000000000.0,
                "sliding_window": None, "vocab_size": vocab},
            "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0",
            "vision_config": {
                "head_dim": 64, "hidden_act": "silu", "image_size": 1024,
                "is_composition": True, "model_type": "pixtral",
                "patch_size": patch, "rope_theta": 10000.0,
                "tie_word_embeddings": False},
            "vision_feature_layer": -1,
            "vision_feature_select_strategy": "full"}, shapes
    return {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "image_token_index": 10, "model_type": "mistral3",
        "multimodal_projector_bias": False, "projector_hidden_act": "gelu",
        "spatial_merge_size": 2,
        "text_config": {
            "attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu",
            "hidden_size": width, "initializer_range": 0.02,
            "intermediate_size": inner, "max_position_embeddings": 131072,
            "model_type": "mistral", "num_attention_heads": 32,
            "num_hidden_layers": 40, "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05, "rope_theta": 1000000000.0,
            "sliding_window": None, "use_cache": True, "vocab_size": vocab},
        "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
        "vision_config": {
            "attention_dropout": 0.0, "head_dim": 64, "hidden_act": "silu",
            "hidden_size": seen, "image_size": 1540,
            "initializer_range": 0.02, "intermediate_size": 4096,
            "model_type": "pixtral", "num_attention_heads": 16,
            "num_channels": 3, "num_hidden_layers": 24, "patch_size": patch,
            "rope_theta": 10000.0},
        "vision_feature_layer": -1}, shapes


def llama(shapes, base, width, inner, layers, keys, vocab, head, bias=False):
    """Blocks of LLaMA or Qwen 2."""
    shapes[base + "embed_tokens.weight"] = [vocab, width]
    shapes[base + "norm.weight"] = [width]
    shapes[head] = [vocab, width]
    for i in range(layers):
        at = f"{base}layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{name}.weight"] = [width]
        for name, rows in (("q", width), ("k", keys), ("v", keys)):
            shapes[f"{at}self_attn.{name}_proj.weight"] = [rows, width]
            if bias:
                shapes[f"{at}self_attn.{name}_proj.bias"] = [rows]
        shapes[at + "self_attn.o_proj.weight"] = [width, width]
        shapes[at + "mlp.gate_proj.weight"] = [inner, width]
        shapes[at + "mlp.up_proj.weight"] = [inner, width]
        shapes[at + "mlp.down_proj.weight"] = [width, inner]


def smolvlm():
    """SmolVLM of 256 million, an Idefics 3."""
    shapes, seen, at = {}, 768, "model.vision_model."

    def linear(name, rows, columns):
        shapes[name + ".weight"], shapes[name + ".bias"] = [rows, columns], [rows]

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [seen]
    shapes[at + "embeddings.patch_embedding.weight"] = [seen, 3, 16, 16]
    shapes[at + "embeddings.patch_embedding.bias"] = [seen]
    shapes[at + "embeddings.position_embedding.weight"] = [1024, seen]
    for i in range(12):
        own = f"{at}encoder.layers.{i}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"{own}self_attn.{name}", seen, seen)
        norm(own + "layer_norm1")
        norm(own + "layer_norm2")
        linear(own + "mlp.fc1", 3072, seen)
        linear(own + "mlp.fc2", seen, 3072)
    norm(at + "post_layernorm")
    shapes["model.connector.modality_projection.proj.weight"] = [576, 16 * seen]
    llama(shapes, "model.text_model.", 576, 1536, 30, 192, 49280, "lm_head.weight")
    return {
        "architectures": ["Idefics3ForConditionalGeneration"],
        "image_token_id": 49190, "model_type": "idefics3", "scale_factor": 4,
        "text_config": {
            "_flash_attn_2_enabled": True, "_name_or_path": "None",
            "architectures": ["VLlama3ForCausalLM"], "head_dim": 64,
            "hidden_size": 576, "intermediate_size": 1536,
            "is_llama_config": True, "max_position_embeddings": 8192,
            "model_type": "llama", "neftune_noise_alpha": 0.0,
            "num_attention_heads": 9, "num_hidden_layers": 30,
            "num_key_value_heads": 3, "pad_token_id": 2,
            "perceiver_config": {
                "_name_or_path": "", "model_type": "vllama3",
                "qk_layer_norms_perceiver": False, "resampler_depth": 6,
                "resampler_head_dim": 96, "resampler_n_heads": 16,
                "resampler_n_latents": 64},
            "pixel_shuffle_factor": 4, "qk_layer_norms": False,
            "rms_norm_eps": 1e-05, "rope_interleaved": False,
            "rope_theta": 100000, "torch_dtype": "bfloat16",
            "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
            "use_resampler": False, "vocab_size": 49280},
        "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.46.0", "use_cache": True,
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
        "vision_config": {
            "hidden_size": seen, "image_size": 512,
            "max_image_size": {"longest_edge": 512}, "model_type": "idefics3",
            "num_attention_heads": 12, "patch_size": 16,
            "size": {"longest_edge": 2048}, "tie_word_embeddings": False,
            "use_base_siglip": True},
        "vocab_size": 49280}, shapes


def internvl():
    """InternVL 3 of 1 billion, as transformers has it."""
    shapes, seen, width, vocab = {}, 1024, 896, 151674
    at, projector = "vision_tower.", "multi_modal_projector."

    def linear(name, rows, columns):
        shapes[name + ".weight"], shapes[name + ".bias"] = [rows, columns], [rows]

    def norm(name, size=seen):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [size]
    shapes[at + "embeddings.cls_token"] = [1, 1, seen]
    shapes[at + "embeddings.patch_embeddings.projection.weight"] = [seen, 3, 14, 14]
    shapes[at + "embeddings.patch_embeddings.projection.bias"] = [seen]
    shapes[at + "embeddings.position_embeddings"] = [1, 1025, seen]
    for i in range(24):
        own = f"{at}encoder.layer.{i}."
        for name in ("q_proj", "k_proj", "v_proj", "projection_layer"):
            linear(f"{own}attention.{name}", seen, seen)
        norm(own + "layernorm_before")
        norm(own + "layernorm_after")
        linear(own + "mlp.fc1", 4096, seen)
        linear(own + "mlp.fc2", seen, 4096)
        shapes[own + "lambda_1"] = shapes[own + "lambda_2"] = [seen]
    norm(projector + "layer_norm", 4 * seen)
    linear(projector + "linear_1", width, 4 * seen)
    linear(projector + "linear_2", width, width)
    llama(shapes, "language_model.model.", width, 4864, 24, 128, vocab,
          "language_model.lm_head.weight", bias=True)
    return {
        "architectures": ["InternVLForConditionalGeneration"],
        "downsample_ratio": 0.5, "image_seq_length": 256,
        "image_token_id": 151667, "model_type": "internvl",
        "projector_hidden_act": "gelu",
        "text_config": {
            "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
            "bos_token_id": 151643, "eos_token_id": 151645,
            "hidden_act": "silu", "hidden_size": width,
            "initializer_range": 0.02, "intermediate_size": 4864,
            "max_position_embeddings": 32768, "max_window_layers": 70,
            "model_type": "qwen2", "num_attention_heads": 14,
            "num_hidden_layers": 24, "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06, "rope_scaling": {
                "factor": 2.0, "rope_type": "dynamic", "type": "dynamic"},
            "rope_theta": 1000000.0, "sliding_window": None,
            "torch_dtype": "bfloat16", "use_cache": True,
            "use_sliding_window": False, "vocab_size": vocab},
        "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.52.0.dev0",
        "vision_config": {
            "architectures": ["InternVLVisionModel"], "attention_bias": True,
            "attention_dropout": 0.0, "dropout": 0.0, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.0, "hidden_size": seen,
            "image_size": [448, 448], "initializer_factor": 0.1,
            "initializer_range": 1e-10, "intermediate_size": 4096,
            "layer_norm_eps": 1e-06, "layer_scale_init_value": 0.1,
            "model_type": "internvl_vision", "norm_type": "layer_norm",
            "num_attention_heads": 16, "num_channels": 3,
            "num_hidden_layers": 24, "patch_size": [14, 14],
            "projection_dropout": 0.0, "torch_dtype": "bfloat16",
            "use_absolute_position_embeddings": True, "use_mask_token": False,
            "use_mean_pooling": True, "use_qk_norm": False},
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "default"}, shapes


MODELS = {
    "Qwen2-VL-2B": second(1536, 8960, 28, 12, 2, 151936, True),
    "Qwen2-VL-7B": second(3584, 18944, 28, 28, 4, 152064, False),
    "Qwen3-VL-30B-A3B": third(2048, 6144, 768, 48, 32),
    "gemma-3-4b-it": gemma3(), "paligemma-3b-pt-224": paligemma(),
    "pixtral-12b": pixtral("llava", 14336, 16),
    "Mistral-Small-3.1-24B": pixtral("mistral3", 32768, 14),
    "SmolVLM-256M-Instruct": smolvlm(), "InternVL3-1B-hf": internvl()}


for name, (config, shapes) in MODELS.items():
    folder = f"{sys.argv[1]}/{name}"
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/config.json", "w") as file:
        json.dump(config, file)
    count = tensors.save_empty(folder + "/model.safetensors",
                               {tensor: ("BF16", shape)
                                for tensor, shape in shapes.items()})
    print(f"{name}: {count:,}")
