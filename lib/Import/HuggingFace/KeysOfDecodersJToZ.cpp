//===- KeysOfDecodersJToZ.cpp - Keys of decoders' classes -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

namespace attune::hf {

/// RWKV-7 under both of its names.
static constexpr const char *kRWKV7 =
    "hidden_size=2048 intermediate_size hidden_ratio=4 num_hidden_layers=24 "
    "head_dim=64 num_heads value_dim vocab_size=32000 norm_eps=1e-05 "
    "norm_bias=true norm_first=true fuse_norm=true hidden_act=sqrelu "
    "decay_low_rank_dim=64 gate_low_rank_dim=128 a_low_rank_dim=64 "
    "v_low_rank_dim=16 tie_word_embeddings=false attn";
static constexpr const char *kRWKV7Left =
    "attn_mode fuse_cross_entropy max_position_embeddings use_l2warp";

/// MiniMax-Text-01 and M1.
static constexpr const char *kMiniMaxText =
    "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
    "num_attention_heads=32 num_key_value_heads=8 vocab_size=32000 "
    "max_position_embeddings=131072 rms_norm_eps=1e-05 "
    "tie_word_embeddings=false hidden_act=silu head_dim=128 "
    "rope_theta=1000000 partial_rotary_factor=1 rope_parameters rope_scaling "
    "rotary_dim=128 sliding_window num_local_experts=8 num_experts_per_tok=2 "
    "attn_type_list postnorm=false layernorm_full_attention_alpha=1 "
    "layernorm_full_attention_beta=1 layernorm_linear_attention_alpha=1 "
    "layernorm_linear_attention_beta=1 layernorm_mlp_alpha=1 "
    "layernorm_mlp_beta=1 shared_intermediate_size=0";
static constexpr const char *kMiniMaxTextLeft =
    "attention_dropout block output_router_logits router_aux_loss_coef "
    "router_jitter_noise shared_moe_mode";

std::vector<ClassKeys> keysOfDecodersJToZ() {
  return {
      {"jamba",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=65536 "
       "max_position_embeddings=262144 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "sliding_window num_experts=16 num_experts_per_tok=2 "
       "attn_layer_period=8 attn_layer_offset=4 expert_layer_period=2 "
       "expert_layer_offset=1 mamba_d_state=16 mamba_d_conv=4 "
       "mamba_expand=2 mamba_dt_rank=256 mamba_conv_bias=true "
       "mamba_proj_bias=false mamba_inner_layernorms=true",
       "attention_dropout aux_loss_alpha calc_logits_for_entire_prompt "
       "ep_group ep_size n_ctx num_logits_to_keep output_router_logits "
       "pretraining_tp router_aux_loss_coef router_jitter_noise seq_aux "
       "use_mamba_kernels"},
      {"kimi_linear",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads vocab_size=163840 "
       "rms_norm_eps=1e-06 tie_word_embeddings=false hidden_act=silu "
       "q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim "
       "mla_use_nope=false num_experts num_experts_per_token "
       "moe_intermediate_size moe_renormalize=true "
       "moe_router_activation_func=sigmoid num_shared_experts=0 "
       "routed_scaling_factor=1 first_k_dense_replace=0 moe_layer_freq=1 "
       "use_grouped_topk=true num_expert_group=1 topk_group=1 "
       "linear_attn_config model_max_length",
       "head_dim max_position_embeddings num_nextn_predict_layers "
       "rope_parameters rope_scaling rope_theta"},
      {"lfm2",
       "hidden_size=2560 intermediate_size=12288 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=65536 "
       "max_position_embeddings=128000 norm_eps=1e-05 "
       "tie_word_embeddings=true tie_embedding=true hidden_act=silu "
       "head_dim=80 theta=1000000 rope_theta=1000000 partial_rotary_factor=1 "
       "rope_parameters rope_scaling conv_L_cache=3 conv_bias=false "
       "block_ff_dim=12288 block_multiple_of=256 block_ffn_dim_multiplier=1 "
       "block_auto_adjust_ff_dim=true block_dim=2560 conv_dim=2560 "
       "conv_dim_out=2560 block_use_swiglu=true full_attn_idxs layer_types",
       "attention_dropout block_mlp_init_scale block_norm_eps "
       "block_out_init_scale block_use_xavier_init conv_use_xavier_init "
       "num_heads use_pos_enc"},
      {"lfm2_moe",
       "hidden_size=2048 intermediate_size=7168 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=65536 "
       "max_position_embeddings=128000 norm_eps=1e-05 "
       "tie_word_embeddings=true tie_embedding=true hidden_act=silu "
       "head_dim=64 rope_theta=1000000 partial_rotary_factor=1 "
       "rope_parameters rope_scaling conv_L_cache=3 conv_bias=false "
       "num_dense_layers=2 num_experts=32 num_experts_per_tok=4 "
       "moe_intermediate_size=1792 use_expert_bias=true norm_topk_prob=true "
       "routed_scaling_factor=1 layer_types",
       "attention_dropout"},
      {"llama",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "is_causal=true num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=32000 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false mlp_bias=false sliding_window layer_types",
       "activation attention_dropout is_llama_config pretraining_tp "
       "rope_interleaved"},
      {"llama4_text",
       "hidden_size=5120 intermediate_size=8192 num_hidden_layers=48 "
       "num_attention_heads=40 num_key_value_heads=8 vocab_size=202048 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=500000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false use_qk_norm=true "
       "attn_temperature_tuning=true attn_scale=0.1 floor_scale=8192 "
       "attention_chunk_size=8192 intermediate_size_mlp=16384 "
       "num_local_experts=16 num_experts_per_tok=1 moe_layers "
       "interleave_moe_layer_step=1 no_rope_layers no_rope_layer_interval=4 "
       "layer_types",
       "attention_dropout aux_loss_alpha ep_group ep_size for_llm_compressor "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"mamba",
       "hidden_size=768 vocab_size=50280 num_hidden_layers=32 "
       "layer_norm_epsilon=1e-05 state_size=16 conv_kernel=4 expand=2 "
       "intermediate_size=1536 time_step_rank=48 use_bias=false "
       "use_conv_bias=true hidden_act=silu tie_word_embeddings=true",
       "d_inner d_model fused_add_norm n_layer pad_vocab_size_multiple "
       "rescale_prenorm_residual residual_in_fp32 rms_norm ssm_cfg "
       "time_step_floor time_step_init_scheme time_step_max time_step_min "
       "time_step_scale use_associative_scan use_falcon_mambapy use_mambapy"},
      {"mamba2",
       "hidden_size=4096 vocab_size=32768 num_hidden_layers=64 "
       "layer_norm_epsilon=1e-05 state_size=128 conv_kernel=4 expand=2 "
       "num_heads=128 head_dim=64 n_groups=8 use_bias=false "
       "use_conv_bias=true hidden_act=silu tie_word_embeddings=false "
       "time_step_limit",
       "chunk_size d_inner d_model fused_add_norm n_layer norm_before_gate "
       "pad_vocab_size_multiple rescale_prenorm_residual residual_in_fp32 "
       "rms_norm ssm_cfg time_step_floor time_step_init_scheme time_step_max "
       "time_step_min time_step_rank time_step_scale use_associative_scan "
       "use_falcon_mambapy use_mambapy"},
      {"mimo",
       "hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 "
       "is_causal=true num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=151936 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "use_sliding_window=false sliding_window=4096 max_window_layers=28 "
       "layer_types attention_bias=true",
       "attention_dropout num_nextn_predict_layers"},
      {"minicpm",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32000 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=true hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false scale_emb=1 scale_depth=1 dim_model_base=1 "
       "sparse_config",
       "attention_dropout mup_denominator original_max_position_embeddings "
       "pretraining_tp"},
      {"minicpm3",
       "qk_rope_head_dim=32 hidden_size=2560 intermediate_size=6400 "
       "num_hidden_layers=62 num_attention_heads=40 num_key_value_heads=40 "
       "vocab_size=73448 max_position_embeddings=32768 rms_norm_eps=1e-05 "
       "tie_word_embeddings=true hidden_act=silu head_dim=32 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling kv_lora_rank=256 q_lora_rank=768 qk_nope_head_dim=64 "
       "v_head_dim=64 attention_bias=false mlp_bias=false scale_emb=12 "
       "scale_depth=1.4 dim_model_base=256",
       "attention_dropout mup_denominator original_max_position_embeddings "
       "pretraining_tp qk_head_dim"},
      {"minimax",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=32000 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=1000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling rotary_dim=128 sliding_window num_local_experts=8 "
       "num_experts_per_tok=2 layer_types full_attn_alpha_factor=1 "
       "full_attn_beta_factor=1 linear_attn_alpha_factor=1 "
       "linear_attn_beta_factor=1 mlp_alpha_factor=1 mlp_beta_factor=1",
       "attention_dropout block_size output_router_logits "
       "router_aux_loss_coef router_jitter_noise"},
      {"minimax_m1", kMiniMaxText, kMiniMaxTextLeft},
      {"minimax_m2",
       "hidden_size=3072 intermediate_size=1536 num_hidden_layers=62 "
       "num_attention_heads=48 num_key_value_heads=8 vocab_size=200064 "
       "max_position_embeddings=196608 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=5000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling rotary_dim=128 num_local_experts=256 "
       "num_experts_per_tok=8 scoring_func=sigmoid topk_method=noaux_tc "
       "use_routing_bias=true use_qk_norm=true qk_norm_type=per_layer",
       "attention_dropout attn_type_list aux_loss_alpha ep_group ep_size "
       "layernorm_full_attention_alpha layernorm_full_attention_beta "
       "layernorm_linear_attention_alpha layernorm_linear_attention_beta "
       "layernorm_mlp_alpha layernorm_mlp_beta mlp_intermediate_size "
       "mtp_transformer_layers num_mtp_modules output_router_logits "
       "pretraining_tp router_aux_loss_coef router_jitter_noise seq_aux "
       "shared_intermediate_size shared_moe_mode use_mtp"},
      {"minimax_text_01", kMiniMaxText, kMiniMaxTextLeft},
      {"ministral",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=32000 "
       "max_position_embeddings=131072 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling sliding_window=4096 layer_types",
       "attention_dropout"},
      {"ministral3",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=34 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=131072 "
       "max_position_embeddings=262144 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=1000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling sliding_window",
       "attention_dropout layer_types"},
      {"mistral",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=32000 "
       "max_position_embeddings=131072 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "sliding_window=4096 layer_types",
       "attention_dropout"},
      {"mixtral",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=32000 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=1000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling num_local_experts=8 num_experts_per_tok=2 sliding_window",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"mpt",
       "d_model=2048 n_heads=16 n_layers=24 vocab_size=50368 max_seq_len=2048 "
       "tie_word_embeddings=true layer_norm_epsilon=1e-05 attn_config "
       "logit_scale norm_type=low_precision_layernorm",
       "emb_pdrop embedding_fraction expansion_ratio init_config init_device "
       "learned_pos_emb no_bias resid_pdrop tokenizer_name verbose"},
      {"nemotron",
       "hidden_size=6144 intermediate_size=24576 num_hidden_layers=32 "
       "num_attention_heads=48 num_key_value_heads=48 vocab_size=256000 "
       "max_position_embeddings=4096 norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=relu2 head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=0.5 rope_parameters "
       "rope_scaling attention_bias=false mlp_bias=false",
       "attention_dropout pretraining_tp"},
      {"nemotron_h",
       "hidden_size=4096 vocab_size=131072 max_position_embeddings=4096 "
       "num_hidden_layers layers_block_type hybrid_override_pattern "
       "layer_norm_epsilon=1e-05 tie_word_embeddings=false "
       "num_attention_heads=32 num_key_value_heads=8 head_dim=128 "
       "attention_head_dim=128 attention_bias=false sliding_window "
       "intermediate_size=21504 mlp_hidden_act=relu2 mlp_bias=false "
       "mamba_num_heads=128 mamba_head_dim=64 n_groups=8 ssm_state_size=128 "
       "conv_kernel=4 use_conv_bias=true use_bias=false "
       "mamba_proj_bias=false mamba_hidden_act=silu time_step_limit "
       "n_routed_experts=8 num_experts_per_tok=2 n_shared_experts=1 "
       "moe_intermediate_size=7688 moe_shared_expert_intermediate_size=7688 "
       "moe_latent_size n_group=1 topk_group=1 norm_topk_prob=true "
       "routed_scaling_factor=1 topk_method=noaux_tc scoring_func=sigmoid",
       "attention_dropout chunk_size expand hidden_dropout "
       "mamba_ssm_cache_dtype moe_shared_expert_overlap "
       "mtp_hybrid_override_pattern mtp_layers_block_type "
       "num_logits_to_keep num_nextn_predict_layers partial_rotary_factor "
       "rescale_prenorm_residual residual_in_fp32 rms_norm_eps rope_theta "
       "time_step_floor time_step_max "
       "time_step_min use_mamba_kernels"},
      {"olmo",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=50304 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false clip_qkv",
       "attention_dropout"},
      {"olmo2",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=50304 "
       "max_position_embeddings=2048 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false",
       "attention_dropout"},
      {"olmo3",
       "sliding_window=4096 hidden_size=4096 intermediate_size=11008 "
       "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=50304 max_position_embeddings=2048 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false layer_types",
       "attention_dropout"},
      {"olmoe",
       "hidden_size=2048 intermediate_size=2048 num_hidden_layers=16 "
       "num_attention_heads=16 num_key_value_heads=16 vocab_size=50304 "
       "max_position_embeddings=4096 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false clip_qkv num_experts=64 num_experts_per_tok=8 "
       "norm_topk_prob=false",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"openai-gpt",
       "n_embd=768 n_head=12 n_layer=12 vocab_size=40478 n_positions=512 "
       "n_inner=3072 tie_word_embeddings=true activation_function=gelu_new "
       "afn=gelu layer_norm_epsilon=1e-05",
       "attn_pdrop embd_pdrop n_ctx n_special predict_special_tokens "
       "resid_pdrop summary_activation summary_first_dropout "
       "summary_proj_to_labels summary_type summary_use_proj"},
      {"opt",
       "hidden_size=768 num_hidden_layers=12 num_attention_heads=12 "
       "ffn_dim=3072 vocab_size=50272 max_position_embeddings=2048 "
       "word_embed_proj_dim=768 activation_function=relu "
       "do_layer_norm_before=true _remove_final_layer_norm=false "
       "enable_bias=true layer_norm_elementwise_affine=true "
       "tie_word_embeddings=true",
       "activation_dropout attention_dropout dropout init_std layerdrop "
       "learned_embeddings scale_embeddings"},
      {"phi",
       "hidden_size=2048 intermediate_size=8192 num_hidden_layers=24 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=51200 "
       "max_position_embeddings=2048 layer_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=gelu_new head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=0.5 rope_parameters "
       "rope_scaling qk_layernorm=false",
       "attention_dropout embd_pdrop resid_pdrop"},
      {"phi3",
       "hidden_size=3072 intermediate_size=8192 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32064 "
       "max_position_embeddings=4096 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=96 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "sliding_window original_max_position_embeddings attention_bias=false "
       "layer_types",
       "attention_dropout embd_pdrop full_attn_mod interpolate_factor "
       "lm_head_bias mlp_bias resid_pdrop"},
      {"phimoe",
       "hidden_size=4096 intermediate_size=6400 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=32064 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=1000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling num_local_experts=16 num_experts_per_tok=2 "
       "router_jitter_noise=0.01 attention_bias=false lm_head_bias=false "
       "sliding_window",
       "attention_dropout hidden_dropout input_jitter_noise "
       "original_max_position_embeddings output_router_logits "
       "router_aux_loss_coef"},
      {"qwen",
       "hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=151936 "
       "max_position_embeddings=8192 layer_norm_epsilon=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rotary_emb_base=10000 rotary_pct=1 rope_parameters rope_scaling "
       "seq_length=8192 kv_channels=128 no_bias=true "
       "scale_attn_weights=true use_cache_quantization=false",
       "attention_dropout attn_dropout_prob emb_dropout_prob onnx_safe "
       "use_cache_kernel use_dynamic_ntk use_logn_attn"},
      {"qwen2",
       "hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 "
       "is_causal=true num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=151936 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "use_sliding_window=false sliding_window=4096 max_window_layers=28 "
       "layer_types",
       "attention_dropout dual_chunk_attention_config"},
      {"qwen2_moe",
       "hidden_size=2048 intermediate_size=5632 num_hidden_layers=24 "
       "num_attention_heads=16 num_key_value_heads=16 vocab_size=151936 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "qkv_bias=true shared_expert_intermediate_size=5632 num_experts=60 "
       "num_experts_per_tok=4 moe_intermediate_size=1408 norm_topk_prob=false "
       "decoder_sparse_step=1 mlp_only_layers use_sliding_window=false "
       "layer_types",
       "attention_dropout aux_loss_alpha ep_group ep_size max_window_layers "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux sliding_window"},
      {"qwen3",
       "hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 "
       "is_causal=true num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=151936 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false use_sliding_window=false sliding_window=4096 "
       "max_window_layers=28 layer_types",
       "attention_dropout"},
      {"qwen3_5_text",
       "hidden_size=4096 intermediate_size=12288 num_hidden_layers=32 "
       "num_attention_heads=16 num_key_value_heads=4 vocab_size=248320 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=256 "
       "rope_theta=10000 partial_rotary_factor=0.25 rope_parameters "
       "rope_scaling attention_bias=false layer_types "
       "full_attention_interval=4 linear_num_value_heads=32 "
       "linear_num_key_heads=16 linear_key_head_dim=128 "
       "linear_value_head_dim=128 linear_conv_kernel_dim=4 "
       "attn_output_gate=true",
       "attention_dropout mamba_ssm_dtype mtp_num_hidden_layers "
       "mtp_use_dedicated_embeddings"},
      {"qwen3_5_moe_text",
       "hidden_size=2048 num_hidden_layers=40 num_attention_heads=16 "
       "num_key_value_heads=2 vocab_size=248320 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=256 "
       "rope_theta=10000 partial_rotary_factor=0.25 rope_parameters "
       "rope_scaling attention_bias=false layer_types "
       "full_attention_interval=4 linear_num_value_heads=32 "
       "linear_num_key_heads=16 linear_key_head_dim=128 "
       "linear_value_head_dim=128 linear_conv_kernel_dim=4 "
       "attn_output_gate=true moe_intermediate_size=512 "
       "shared_expert_intermediate_size=512 num_experts_per_tok=8 "
       "num_experts=256",
       "attention_dropout intermediate_size mamba_ssm_dtype "
       "mtp_num_hidden_layers mtp_use_dedicated_embeddings "
       "output_router_logits router_aux_loss_coef"},
      {"qwen3_moe",
       "hidden_size=2048 intermediate_size=6144 num_hidden_layers=24 "
       "num_attention_heads=32 num_key_value_heads=4 vocab_size=151936 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false num_experts=128 num_experts_per_tok=8 "
       "moe_intermediate_size=768 norm_topk_prob=false decoder_sparse_step=1 "
       "mlp_only_layers use_sliding_window=false layer_types",
       "attention_dropout aux_loss_alpha ep_group ep_size max_window_layers "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux shared_expert_intermediate_size "
       "sliding_window use_qk_norm"},
      {"qwen3_next",
       "hidden_size=2048 intermediate_size=5632 num_hidden_layers=48 "
       "num_attention_heads=16 num_key_value_heads=2 vocab_size=151936 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=256 "
       "rope_theta=10000 partial_rotary_factor=0.25 rope_parameters "
       "rope_scaling attention_bias=false layer_types "
       "full_attention_interval=4 linear_num_value_heads=32 "
       "linear_num_key_heads=16 linear_key_head_dim=128 "
       "linear_value_head_dim=128 linear_conv_kernel_dim=4 num_experts=512 "
       "num_experts_per_tok=10 moe_intermediate_size=512 "
       "shared_expert_intermediate_size=512 norm_topk_prob=true "
       "decoder_sparse_step=1 mlp_only_layers",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"rwkv7", kRWKV7, kRWKV7Left},
      {"rwkv7_fla", kRWKV7, kRWKV7Left},
      {"seed_oss",
       "hidden_size=4096 intermediate_size=27648 "
       "num_hidden_layers=64 num_attention_heads=80 "
       "num_key_value_heads=8 vocab_size=155136 "
       "max_position_embeddings=524288 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=true attention_out_bias=false "
       "mlp_bias=false",
       "attention_dropout pretraining_tp residual_dropout"},
      {"smollm3",
       "hidden_size=2048 intermediate_size=11008 num_hidden_layers=36 "
       "num_attention_heads=16 num_key_value_heads=4 vocab_size=128256 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=true hidden_act=silu head_dim=128 "
       "rope_theta=2000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false mlp_bias=false "
       "use_sliding_window=false layer_types no_rope_layer_interval=4 "
       "no_rope_layers",
       "attention_dropout max_window_layers pretraining_tp sliding_window"},
      {"solar_open",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=48 "
       "num_attention_heads=64 num_key_value_heads=8 vocab_size=196608 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=1000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false use_qk_norm=false "
       "first_k_dense_replace=0 n_routed_experts=128 num_experts_per_tok=8 "
       "moe_intermediate_size=1280 n_shared_experts=1 n_group=1 "
       "topk_group=1 norm_topk_prob=true routed_scaling_factor=1 "
       "topk_method=noaux_tc scoring_func=sigmoid",
       "attention_dropout num_nextn_predict_layers aux_loss_alpha ep_group "
       "ep_size output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"stablelm",
       "hidden_size=2560 intermediate_size=6912 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=50304 "
       "max_position_embeddings=4096 layer_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=80 "
       "rope_theta=10000 partial_rotary_factor=0.25 rope_parameters "
       "rope_scaling use_qkv_bias=false qk_layernorm=false "
       "use_parallel_residual=false",
       "attention_dropout hidden_dropout"},
      {"starcoder2",
       "hidden_size=3072 intermediate_size=12288 num_hidden_layers=30 "
       "num_attention_heads=24 num_key_value_heads=2 vocab_size=49152 "
       "max_position_embeddings=4096 norm_epsilon=1e-05 "
       "tie_word_embeddings=true hidden_act=gelu_pytorch_tanh head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "use_bias=true layer_types",
       "activation_function attention_dropout attention_softmax_in_fp32 "
       "embedding_dropout layer_norm_epsilon mlp_type norm_type "
       "residual_dropout scale_attention_softmax_in_fp32 scale_attn_weights "
       "sliding_window"},
      {"vaultgemma",
       "use_bidirectional_attention=false hidden_size=2304 "
       "intermediate_size=9216 num_hidden_layers=26 num_attention_heads=8 "
       "num_key_value_heads=4 vocab_size=256000 "
       "max_position_embeddings=8192 rms_norm_eps=1e-06 "
       "tie_word_embeddings=true hidden_activation=gelu_pytorch_tanh "
       "head_dim=256 rope_theta=10000 partial_rotary_factor=1 "
       "rope_parameters rope_scaling attention_bias=false "
       "query_pre_attn_scalar=256 sliding_window=4096 "
       "attn_logit_softcapping=50 final_logit_softcapping=30 layer_types",
       "attention_dropout cache_implementation hidden_act "
       "sliding_window_size"},
      {"xglm",
       "d_model=1024 ffn_dim=4096 num_layers=24 attention_heads=16 "
       "vocab_size=256008 max_position_embeddings=2048 "
       "activation_function=gelu scale_embedding=true "
       "tie_word_embeddings=true add_cross_attention=false",
       "activation_dropout attention_dropout dropout init_std layerdrop"},
      {"zamba2",
       "hidden_size=2560 num_hidden_layers=54 vocab_size=32000 "
       "rms_norm_eps=1e-05 tie_word_embeddings=true layers_block_type "
       "n_mamba_heads=8 mamba_ngroups=1 mamba_d_state=64 mamba_d_conv=4 "
       "mamba_expand=2 use_conv_bias=true time_step_limit "
       "num_attention_heads=32 num_key_value_heads=32 use_mem_rope=false "
       "use_long_context=false max_position_embeddings=4096 rope_theta=10000 "
       "partial_rotary_factor=1 rope_parameters rope_scaling "
       "intermediate_size=10240 hidden_act=gelu adapter_rank=128 "
       "use_shared_attention_adapter=false num_mem_blocks=1 "
       "add_bias_linear=false",
       "attention_dropout attention_head_dim attention_hidden_size chunk_size "
       "hybrid_layer_ids kv_channels mamba_headdim num_logits_to_keep "
       "num_query_groups time_step_floor time_step_max time_step_min "
       "use_mem_eff_path use_shared_mlp_adapter"},
  };
}

} // namespace attune::hf
