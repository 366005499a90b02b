//===- KeysOfDecodersAToI.cpp - Keys of decoders' classes -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

namespace attune::hf {

/// GLM and GLM-4, which differ in their norms alone.
static constexpr const char *kGLM =
    "hidden_size=4096 intermediate_size=13696 "
    "num_hidden_layers=40 num_attention_heads=32 "
    "num_key_value_heads=2 vocab_size=151552 "
    "max_position_embeddings=131072 rms_norm_eps=1.5625e-07 "
    "tie_word_embeddings=false hidden_act=silu head_dim=128 "
    "rope_theta=10000 partial_rotary_factor=0.5 rope_parameters "
    "rope_scaling attention_bias=true";

/// Ling and Ring of both versions.
static constexpr const char *kBailing =
    "hidden_size=1024 intermediate_size num_hidden_layers=24 "
    "num_attention_heads=16 num_key_value_heads=16 vocab_size=30592 "
    "max_position_embeddings=16384 rms_norm_eps=1e-05 "
    "tie_word_embeddings=false hidden_act=silu head_dim=64 "
    "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
    "rope_scaling num_experts=16 num_experts_per_tok=2 "
    "moe_intermediate_size num_shared_experts=0 "
    "moe_shared_expert_intermediate_size norm_topk_prob=true "
    "first_k_dense_replace=0 use_qkv_bias=false use_bias norm_head=false "
    "use_sliding_window=false use_rmsnorm=true use_qk_norm=true "
    "rotary_dim score_function=sigmoid "
    "moe_router_enable_expert_bias=true n_group topk_group "
    "routed_scaling_factor";

/// What they have besides, and nothing reads.
static constexpr const char *kBailingUnread =
    "attention_dropout embedding_dropout output_dropout norm_softmax "
    "sliding_window max_window_layers router_dtype "
    "num_nextn_predict_layers mtp_loss_scaling_factor "
    "moe_router_enable_shared_expert multi_gate "
    "moe_router_enable_routed_scaling topk_method scoring_func "
    "aux_loss_alpha ep_group ep_size output_router_logits pretraining_tp "
    "router_aux_loss_coef router_jitter_noise seq_aux";

std::vector<ClassKeys> keysOfDecodersAToI() {
  return {
      {"afmoe",
       "hidden_size=2048 intermediate_size=6144 num_hidden_layers=32 "
       "num_attention_heads=16 num_key_value_heads=16 vocab_size=200192 "
       "max_position_embeddings=16384 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling sliding_window=1024 layer_types "
       "global_attn_every_n_layers=4 num_dense_layers=1 mup_enabled=false "
       "num_experts=64 num_experts_per_tok=6 moe_intermediate_size=1408 "
       "num_shared_experts=2 route_scale=1 score_func=sigmoid "
       "route_norm=true n_group=1 topk_group=1 num_expert_groups=1 "
       "num_limited_groups=1",
       "attention_dropout load_balance_coeff use_grouped_mm"},
      {"apertus",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=131072 "
       "max_position_embeddings=65536 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=xielu head_dim=128 "
       "rope_theta=12000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false",
       "attention_dropout mlp_bias post_norm qk_norm"},
      {"arcee",
       "hidden_size=2560 intermediate_size=18432 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32000 "
       "max_position_embeddings=4096 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=relu2 head_dim=80 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false mlp_bias=false",
       "attention_dropout pretraining_tp"},
      {"bailing_moe", kBailing, kBailingUnread},
      {"bailing_moe_v2", kBailing, kBailingUnread},
      {"bamba",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=128000 "
       "max_position_embeddings=262144 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=0.5 rope_parameters "
       "rope_scaling attn_layer_indices attn_rotary_emb attention_bias=false "
       "mlp_bias=false "
       "mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 "
       "mamba_d_head=auto mamba_d_conv=4 mamba_expand=2 "
       "mamba_conv_bias=true mamba_proj_bias=false time_step_limit",
       "attention_dropout mamba_chunk_size num_logits_to_keep time_step_max "
       "time_step_min z_loss_coefficient"},
      {"biogpt",
       "hidden_size=1024 num_hidden_layers=24 num_attention_heads=16 "
       "intermediate_size=4096 vocab_size=42384 max_position_embeddings=1024 "
       "hidden_act=gelu scale_embedding=true tie_word_embeddings=true",
       "activation_dropout attention_probs_dropout_prob hidden_dropout_prob "
       "layer_norm_eps layerdrop"},
      {"bloom",
       "hidden_size=64 n_embed n_layer=2 num_hidden_layers n_head=8 "
       "num_attention_heads vocab_size=250880 n_inner=256 "
       "layer_norm_epsilon=1e-05 "
       "apply_residual_connection_post_layernorm=false "
       "tie_word_embeddings=true",
       "attention_dropout attention_softmax_in_fp32 bias_dropout_fusion "
       "hidden_dropout masked_softmax_fusion offset_alibi pretraining_tp "
       "seq_length skip_bias_add skip_bias_add_qkv slow_but_exact "
       "unk_token_id"},
      {"chatglm",
       "hidden_size=4096 ffn_hidden_size=13696 num_layers=28 num_hidden_layers "
       "num_attention_heads=32 kv_channels=128 multi_query_attention=false "
       "multi_query_group_num=1 padded_vocab_size=65024 vocab_size "
       "seq_length=2048 rmsnorm=true layernorm_epsilon=1e-05 "
       "add_bias_linear=false add_qkv_bias=false rope_ratio=1 "
       "tie_word_embeddings=false "
       "apply_residual_connection_post_layernorm=false post_layer_norm=true "
       "original_rope=true quantization_bit=0 pre_seq_len=0",
       "apply_query_key_layer_scaling attention_dropout "
       "attention_softmax_in_fp32 bias_dropout_fusion classifier_dropout "
       "fp32_residual_connection hidden_dropout interleaved_qkv "
       "prefix_projection"},
      {"codegen",
       "n_embd=4096 n_layer=28 n_head=16 vocab_size=50400 n_positions=2048 "
       "n_inner=16384 rotary_dim=64 activation_function=gelu_new "
       "tie_word_embeddings=false layer_norm_epsilon=1e-05 head_dim",
       "attn_pdrop embd_pdrop n_ctx resid_pdrop rotary scale_attn_weights "
       "summary_activation summary_first_dropout summary_proj_to_labels "
       "summary_type summary_use_proj"},
      {"cohere",
       "use_qk_norm=false hidden_size=8192 intermediate_size=22528 "
       "num_hidden_layers=40 num_attention_heads=64 num_key_value_heads=64 "
       "vocab_size=256000 max_position_embeddings=8192 layer_norm_eps=1e-05 "
       "tie_word_embeddings=true hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "logit_scale=0.0625 attention_bias=false",
       "attention_dropout model_max_length pretraining_tp"},
      {"cohere2",
       "sliding_window=4096 sliding_window_pattern=4 _sliding_window_pattern "
       "use_gated_activation=true use_parallel_block=true use_qk_norm=false "
       "hidden_size=8192 intermediate_size=22528 num_hidden_layers=40 "
       "num_attention_heads=64 num_key_value_heads=64 vocab_size=256000 "
       "max_position_embeddings=8192 layer_norm_eps=1e-05 "
       "tie_word_embeddings=true hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "logit_scale=0.0625 attention_bias=false layer_types",
       "attention_dropout cache_implementation layer_switch model_max_length "
       "order_of_interleaved_layers position_embedding_type pretraining_tp "
       "rotary_pct use_embedding_sharing use_parallel_embedding"},
      {"cwm",
       "hidden_size=6144 intermediate_size=21504 num_hidden_layers=64 "
       "num_attention_heads=48 num_key_value_heads=8 vocab_size=128256 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=1000000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling mlp_bias=false attention_bias=false sliding_window=8192 "
       "layer_types",
       "attention_dropout pretraining_tp"},
      {"deepseek",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=30 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=102400 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false n_shared_experts n_routed_experts "
       "num_experts_per_tok moe_intermediate_size=1407 moe_layer_freq=1 "
       "first_k_dense_replace=0 norm_topk_prob=false scoring_func=softmax "
       "topk_method=greedy n_group=1 topk_group=1 routed_scaling_factor=1",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"deepseek_v2",
       "qk_rope_head_dim=64 hidden_size=4096 intermediate_size=11008 "
       "num_hidden_layers=30 num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=102400 max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "mlp_bias=false first_k_dense_replace=0 moe_layer_freq=1 "
       "kv_lora_rank=512 q_lora_rank=1536 qk_nope_head_dim=128 v_head_dim=128 "
       "rope_interleave=true attention_bias=false",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "num_nextn_predict_layers output_router_logits pretraining_tp "
       "qk_head_dim router_aux_loss_coef router_jitter_noise seq_aux"},
      {"deepseek_v3",
       "qk_rope_head_dim=64 hidden_size=7168 intermediate_size=18432 "
       "num_hidden_layers=61 num_attention_heads=128 num_key_value_heads=128 "
       "vocab_size=129280 max_position_embeddings=4096 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "mlp_bias=false first_k_dense_replace=3 moe_layer_freq=1 "
       "kv_lora_rank=512 q_lora_rank=1536 qk_nope_head_dim=128 v_head_dim=128 "
       "rope_interleave=true attention_bias=false n_routed_experts=256 "
       "num_experts_per_tok=8 moe_intermediate_size=2048 n_shared_experts "
       "n_group=8 topk_group=4 norm_topk_prob=true routed_scaling_factor=2.5 "
       "topk_method=noaux_tc scoring_func=sigmoid",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "num_nextn_predict_layers output_router_logits pretraining_tp "
       "qk_head_dim router_aux_loss_coef router_jitter_noise seq_aux"},
      {"deepseek_v32",
       "qk_rope_head_dim=64 hidden_size=7168 intermediate_size=18432 "
       "num_hidden_layers=61 num_attention_heads=128 num_key_value_heads=128 "
       "vocab_size=129280 max_position_embeddings=163840 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "mlp_bias=false first_k_dense_replace=3 moe_layer_freq=1 "
       "kv_lora_rank=512 q_lora_rank=1536 qk_nope_head_dim=128 v_head_dim=128 "
       "rope_interleave=true attention_bias=false n_routed_experts=256 "
       "num_experts_per_tok=8 moe_intermediate_size=2048 n_shared_experts "
       "n_group=8 topk_group=4 norm_topk_prob=true routed_scaling_factor=2.5 "
       "topk_method=noaux_tc scoring_func=sigmoid index_topk=2048 "
       "index_n_heads=64 index_head_dim=128 layer_types mlp_layer_types",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "num_nextn_predict_layers output_router_logits pretraining_tp "
       "qk_head_dim router_aux_loss_coef router_jitter_noise seq_aux"},
      {"dots1",
       "hidden_size=4608 intermediate_size=10944 num_hidden_layers=62 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=152064 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=144 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false n_shared_experts n_routed_experts "
       "num_experts_per_tok moe_intermediate_size=1408 "
       "first_k_dense_replace=0 norm_topk_prob=false n_group=1 topk_group=1 "
       "routed_scaling_factor=1 sliding_window=4096 max_window_layers=62 "
       "layer_types",
       "attention_dropout moe_layer_freq num_nextn_predict_layers "
       "scoring_func topk_method use_sliding_window aux_loss_alpha ep_group "
       "ep_size output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"ernie4_5",
       "hidden_size=1024 intermediate_size=3072 num_hidden_layers=18 "
       "num_attention_heads=16 num_key_value_heads=2 "
       "vocab_size=103424 max_position_embeddings=131072 "
       "rms_norm_eps=1e-05 tie_word_embeddings=true hidden_act=silu "
       "head_dim=128 rope_theta=500000 partial_rotary_factor=1 "
       "rope_parameters rope_scaling use_bias=false",
       "attention_dropout compression_ratio"},
      {"ernie4_5_moe",
       "hidden_size=2560 intermediate_size=12288 num_hidden_layers=28 "
       "num_attention_heads=20 num_key_value_heads=4 vocab_size=103424 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=true hidden_act=silu head_dim=128 "
       "rope_theta=500000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling use_bias=false moe_num_experts=64 moe_k=6 "
       "moe_intermediate_size=1536 moe_num_shared_experts=2 "
       "moe_layer_start_index=1 moe_layer_end_index=-1 moe_layer_interval=1 "
       "moe_gate=topk",
       "attention_dropout aux_loss_alpha compression_ratio ep_group ep_size "
       "moe_capacity moe_norm_min moe_use_aux_free num_nextn_predict_layers "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"exaone",
       "hidden_size=2048 intermediate_size=8192 num_layers=32 "
       "num_hidden_layers num_attention_heads=32 num_key_value_heads=32 "
       "vocab_size=102400 max_position_embeddings=2048 "
       "layer_norm_epsilon=1e-05 tie_word_embeddings=true "
       "activation_function=silu head_dim=64 rope_theta=10000 "
       "partial_rotary_factor=1 rope_parameters rope_scaling",
       "attention_dropout embed_dropout"},
      {"exaone4",
       "sliding_window=4096 sliding_window_pattern=4 "
       "hidden_size=4096 intermediate_size=16384 "
       "num_hidden_layers=32 num_attention_heads=32 "
       "num_key_value_heads=32 vocab_size=102400 "
       "max_position_embeddings=2048 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling layer_types",
       "attention_dropout"},
      {"exaone_moe",
       "hidden_size=4096 intermediate_size=16384 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=102400 "
       "max_position_embeddings=2048 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling sliding_window=4096 sliding_window_pattern=4 "
       "layer_types mlp_layer_types is_moe_layer first_k_dense_replace=1 "
       "num_experts=64 "
       "num_experts_per_tok=8 moe_intermediate_size=1024 "
       "num_shared_experts=1 n_group=1 topk_group=1 norm_topk_prob=true "
       "routed_scaling_factor=2.5 topk_method=noaux_tc scoring_func=sigmoid",
       "attention_dropout first_last_k_dense_replace num_nextn_predict_layers "
       "aux_loss_alpha ep_group ep_size output_router_logits pretraining_tp "
       "router_aux_loss_coef router_jitter_noise seq_aux"},
      {"falcon",
       "hidden_size=4544 n_embed num_hidden_layers=32 n_layer "
       "num_attention_heads=71 n_head num_kv_heads=71 n_head_kv "
       "vocab_size=65024 ffn_hidden_size=18176 max_position_embeddings=2048 "
       "activation=gelu alibi=false bias=false new_decoder_architecture=false "
       "multi_query=true parallel_attn=true tie_word_embeddings=true "
       "num_ln_in_parallel_attn=1 layer_norm_epsilon=1e-05 rope_theta=10000 "
       "partial_rotary_factor=1 rope_parameters rope_scaling",
       "apply_residual_connection_post_layernorm attention_dropout ff_factor "
       "hidden_dropout"},
      {"falcon_h1",
       "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=8 vocab_size=128000 "
       "max_position_embeddings=8192 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false mlp_bias=false embedding_multiplier=1 "
       "lm_head_multiplier=1 attention_in_multiplier=1 "
       "attention_out_multiplier=1 key_multiplier=1 mlp_multipliers "
       "ssm_multipliers ssm_in_multiplier=1 ssm_out_multiplier=1 "
       "mamba_d_ssm=1024 mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 "
       "mamba_d_head=auto mamba_d_conv=4 mamba_expand=2 mamba_conv_bias=true "
       "mamba_proj_bias=false projectors_bias=false mamba_rms_norm=false "
       "mamba_norm_before_gate=true time_step_limit",
       "attention_dropout mamba_chunk_size mamba_use_mlp mlp_expansion_factor "
       "num_logits_to_keep time_step_max time_step_min layer_types "
       "layers_block_type"},
      {"falcon_mamba",
       "hidden_size=768 vocab_size=50280 num_hidden_layers=32 "
       "layer_norm_epsilon=1e-05 state_size=16 conv_kernel=4 expand=2 "
       "intermediate_size=1536 time_step_rank=48 use_bias=false "
       "use_conv_bias=true mixer_rms_eps=1e-06 hidden_act=silu "
       "tie_word_embeddings=true",
       "d_inner d_model fused_add_norm n_layer pad_vocab_size_multiple "
       "rescale_prenorm_residual residual_in_fp32 rms_norm ssm_cfg "
       "time_step_floor time_step_init_scheme time_step_max time_step_min "
       "time_step_scale use_associative_scan use_falcon_mambapy use_mambapy"},
      {"flex_olmo",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=100352 "
       "max_position_embeddings=4096 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=500000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false num_experts=7 "
       "num_experts_per_tok=5 norm_topk_prob=false",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"gemma",
       "use_bidirectional_attention=false hidden_size=3072 "
       "intermediate_size=24576 num_hidden_layers=28 num_attention_heads=16 "
       "num_key_value_heads=16 vocab_size=256000 max_position_embeddings=8192 "
       "rms_norm_eps=1e-06 tie_word_embeddings=true "
       "hidden_activation=gelu_pytorch_tanh head_dim=256 rope_theta=10000 "
       "partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false",
       "attention_dropout hidden_act"},
      {"gemma2",
       "use_bidirectional_attention=false hidden_size=2304 "
       "intermediate_size=9216 num_hidden_layers=26 num_attention_heads=8 "
       "num_key_value_heads=4 vocab_size=256000 max_position_embeddings=8192 "
       "rms_norm_eps=1e-06 tie_word_embeddings=true "
       "hidden_activation=gelu_pytorch_tanh head_dim=256 rope_theta=10000 "
       "partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false query_pre_attn_scalar=256 sliding_window=4096 "
       "attn_logit_softcapping=50 final_logit_softcapping=30 layer_types",
       "attention_dropout cache_implementation hidden_act "
       "sliding_window_size"},
      {"gemma3_text",
       "rope_local_base_freq=10000 use_bidirectional_attention=false "
       "hidden_size=2304 intermediate_size=9216 num_hidden_layers=26 "
       "num_attention_heads=8 num_key_value_heads=4 vocab_size=262208 "
       "max_position_embeddings=131072 rms_norm_eps=1e-06 "
       "tie_word_embeddings=true hidden_activation=gelu_pytorch_tanh "
       "head_dim=256 rope_theta=1000000 partial_rotary_factor=1 "
       "rope_parameters rope_scaling attention_bias=false "
       "query_pre_attn_scalar=256 sliding_window=4096 "
       "sliding_window_pattern=6 _sliding_window_pattern "
       "attn_logit_softcapping final_logit_softcapping layer_types",
       "attention_dropout cache_implementation hidden_act"},
      {"gemma3n_text",
       "hidden_size=2048 intermediate_size=16384 num_hidden_layers=35 "
       "num_attention_heads=8 num_key_value_heads=2 vocab_size=262400 "
       "vocab_size_per_layer_input=262144 hidden_size_per_layer_input=256 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=true hidden_activation=gelu_pytorch_tanh "
       "head_dim=256 rope_theta=1000000 rope_local_base_freq=10000 "
       "rope_parameters rope_scaling attention_bias=false sliding_window=512 "
       "final_logit_softcapping=30 layer_types altup_active_idx=0 "
       "altup_coef_clip=120 altup_correct_scale=true altup_num_inputs=4 "
       "num_kv_shared_layers=15 laurel_rank=64 activation_sparsity_pattern",
       "altup_lr_multiplier attention_dropout query_pre_attn_scalar"},
      {"glm", kGLM, "attention_dropout"},
      {"glm4", kGLM, "attention_dropout"},
      {"glm4_moe",
       "hidden_size=4096 intermediate_size=10944 "
       "num_hidden_layers=46 num_attention_heads=96 "
       "num_key_value_heads=8 vocab_size=151552 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=0.5 rope_parameters "
       "rope_scaling attention_bias=false use_qk_norm=false "
       "first_k_dense_replace=1 n_routed_experts=128 "
       "num_experts_per_tok=8 moe_intermediate_size=1408 "
       "n_shared_experts=1 n_group=1 topk_group=1 "
       "norm_topk_prob=true routed_scaling_factor=1 "
       "topk_method=noaux_tc scoring_func=sigmoid",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "num_nextn_predict_layers output_router_logits pretraining_tp "
       "router_aux_loss_coef router_jitter_noise seq_aux"},
      {"glm4_moe_lite",
       "qk_rope_head_dim=64 hidden_size=2048 intermediate_size=10240 "
       "num_hidden_layers=47 num_attention_heads=20 num_key_value_heads=20 "
       "vocab_size=154880 max_position_embeddings=202752 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling mlp_bias=false first_k_dense_replace=1 "
       "moe_layer_freq=1 mlp_layer_types kv_lora_rank=512 q_lora_rank=768 "
       "qk_nope_head_dim=192 v_head_dim=256 rope_interleave=true "
       "attention_bias=false n_routed_experts=64 num_experts_per_tok=4 "
       "moe_intermediate_size=1536 n_shared_experts=1 n_group=1 "
       "topk_group=1 norm_topk_prob=true routed_scaling_factor=1.8 "
       "topk_method=noaux_tc scoring_func=sigmoid",
       "attention_dropout num_nextn_predict_layers qk_head_dim "
       "aux_loss_alpha ep_group ep_size output_router_logits pretraining_tp "
       "router_aux_loss_coef router_jitter_noise seq_aux"},
      {"glm_moe_dsa",
       "qk_rope_head_dim=64 hidden_size=6144 intermediate_size=12288 "
       "num_hidden_layers=78 num_attention_heads=64 num_key_value_heads=64 "
       "vocab_size=154880 max_position_embeddings=202752 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "mlp_bias=false first_k_dense_replace=3 moe_layer_freq=1 "
       "kv_lora_rank=512 q_lora_rank=2048 qk_nope_head_dim=192 v_head_dim=256 "
       "rope_interleave=true attention_bias=false n_routed_experts=256 "
       "num_experts_per_tok=8 moe_intermediate_size=2048 n_shared_experts=1 "
       "n_group=1 topk_group=1 norm_topk_prob=true routed_scaling_factor=2.5 "
       "topk_method=noaux_tc scoring_func=sigmoid index_topk=2048 "
       "index_n_heads=32 index_head_dim=128 layer_types mlp_layer_types "
       "indexer_types index_topk_freq=1 index_topk_pattern "
       "indexer_rope_interleave=true",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "index_share_for_mtp_iteration index_skip_topk_offset "
       "num_nextn_predict_layers output_router_logits pretraining_tp "
       "qk_head_dim router_aux_loss_coef router_jitter_noise seq_aux"},
      {"gpt2",
       "scale_attn_weights=true scale_attn_by_inverse_layer_idx=false "
       "add_cross_attention=false n_embd=768 n_head=12 n_layer=12 "
       "vocab_size=50257 n_positions=1024 n_inner=3072 "
       "tie_word_embeddings=true activation_function=gelu_new "
       "layer_norm_epsilon=1e-05",
       "attn_pdrop embd_pdrop n_ctx reorder_and_upcast_attn resid_pdrop "
       "summary_activation summary_first_dropout summary_proj_to_labels "
       "summary_type summary_use_proj"},
      {"gpt_bigcode",
       "scale_attn_weights=true multi_query=true add_cross_attention=false "
       "n_embd=768 n_head=12 n_layer=12 vocab_size=50257 n_positions=1024 "
       "n_inner=3072 tie_word_embeddings=true "
       "activation_function=gelu_pytorch_tanh layer_norm_epsilon=1e-05 "
       "num_key_value_heads=1",
       "attention_softmax_in_fp32 attn_pdrop embd_pdrop inference_runner "
       "max_batch_size max_sequence_length n_ctx pad_key_length "
       "pre_allocate_kv_cache resid_pdrop scale_attention_softmax_in_fp32 "
       "summary_activation summary_first_dropout summary_proj_to_labels "
       "summary_type summary_use_proj validate_runner_input"},
      {"gpt_neo",
       "window_size=256 num_layers=24 attention_types attention_layers "
       "hidden_size=2048 num_heads=16 vocab_size=50257 "
       "max_position_embeddings=2048 intermediate_size=8192 "
       "tie_word_embeddings=true activation_function=gelu_new "
       "layer_norm_epsilon=1e-05",
       "attention_dropout classifier_dropout embed_dropout resid_dropout "
       "summary_activation summary_first_dropout summary_proj_to_labels "
       "summary_type summary_use_proj"},
      {"gpt_neox",
       "hidden_size=6144 num_hidden_layers=44 num_attention_heads=64 "
       "vocab_size=50432 intermediate_size=24576 max_position_embeddings=2048 "
       "hidden_act=gelu use_parallel_residual=true attention_bias=true "
       "tie_word_embeddings=false layer_norm_eps=1e-05 rotary_emb_base=10000 "
       "rope_theta rotary_pct=0.25 partial_rotary_factor rope_parameters "
       "rope_scaling",
       "attention_dropout classifier_dropout hidden_dropout"},
      {"gpt_oss",
       "hidden_size=2880 intermediate_size=2880 num_hidden_layers=36 "
       "num_attention_heads=64 num_key_value_heads=8 vocab_size=201088 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=64 "
       "rope_theta=150000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling num_local_experts=128 num_experts_per_tok=4 "
       "attention_bias=true sliding_window=128 layer_types "
       "swiglu_alpha=1.702 swiglu_limit=7",
       "attention_dropout aux_loss_alpha ep_group ep_size experts_per_token "
       "initial_context_length output_router_logits pretraining_tp "
       "router_aux_loss_coef router_jitter_noise seq_aux"},
      {"gptj",
       "n_embd=4096 n_layer=28 n_head=16 vocab_size=50400 n_positions=2048 "
       "n_inner=16384 rotary_dim=64 activation_function=gelu_new "
       "tie_word_embeddings=false layer_norm_epsilon=1e-05",
       "attn_pdrop embd_pdrop n_ctx resid_pdrop rotary scale_attn_weights "
       "summary_activation summary_first_dropout summary_proj_to_labels "
       "summary_type summary_use_proj"},
      {"granite",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32000 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false mlp_bias=false embedding_multiplier=1 "
       "attention_multiplier=1 residual_multiplier=1 logits_scaling=1",
       "attention_dropout pretraining_tp"},
      {"granitemoe",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32000 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false embedding_multiplier=1 attention_multiplier=1 "
       "residual_multiplier=1 logits_scaling=1 num_local_experts=8 "
       "num_experts_per_tok=2",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"granitemoehybrid",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32000 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false embedding_multiplier=1 attention_multiplier=1 "
       "residual_multiplier=1 logits_scaling=1 num_local_experts=8 "
       "num_experts_per_tok=2 shared_intermediate_size=1024 "
       "position_embedding_type=none layer_types layers_block_type "
       "mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_head=64 "
       "mamba_d_conv=4 mamba_expand=2 mamba_conv_bias=true "
       "mamba_proj_bias=false normalization_function=rmsnorm",
       "attention_dropout aux_loss_alpha ep_group ep_size mamba_chunk_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"granitemoeshared",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=32000 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "attention_bias=false embedding_multiplier=1 attention_multiplier=1 "
       "residual_multiplier=1 logits_scaling=1 num_local_experts=8 "
       "num_experts_per_tok=2 shared_intermediate_size=0",
       "attention_dropout aux_loss_alpha ep_group ep_size "
       "output_router_logits pretraining_tp router_aux_loss_coef "
       "router_jitter_noise seq_aux"},
      {"helium",
       "hidden_size=2560 intermediate_size=7040 num_hidden_layers=24 "
       "num_attention_heads=20 num_key_value_heads=20 vocab_size=48000 "
       "max_position_embeddings=4096 rms_norm_eps=1e-08 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=100000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false mlp_bias=false",
       "attention_dropout pretraining_tp"},
      {"hunyuan_v1_dense",
       "hidden_size=4096 intermediate_size=11008 "
       "num_hidden_layers=32 num_attention_heads=32 "
       "num_key_value_heads=32 vocab_size=290943 "
       "max_position_embeddings=2048 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false",
       "add_classification_head anyres_pooling_size "
       "anyres_vit_max_image_size anyres_vit_two_views "
       "attention_dropout attention_head_dim cla_share_factor "
       "class_num dense_list eod_token_id group_limited_greedy "
       "im_end_id im_newline_id im_start_id mask_init_id mlp_bias "
       "norm_type num_experts num_media_embeds org_vocab_size pad_id "
       "position_embedding_xdrope pretraining_tp sep_token_id "
       "skip_cls_token text_end_id text_start_id use_cla use_qk_norm "
       "use_rotary_pos_emb vit_path xdrope_section"},
      {"hunyuan_v1_moe",
       "hidden_size=4096 intermediate_size=11008 "
       "num_hidden_layers=32 num_attention_heads=32 "
       "num_key_value_heads=32 vocab_size=290943 "
       "max_position_embeddings=2048 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false num_experts=1 moe_topk=1 "
       "moe_intermediate_size num_shared_expert",
       "add_classification_head anyres_pooling_size "
       "anyres_vit_max_image_size anyres_vit_two_views "
       "attention_dropout attention_head_dim cla_share_factor "
       "class_num dense_list eod_token_id group_limited_greedy "
       "im_end_id im_newline_id im_start_id mask_init_id mlp_bias "
       "moe_drop_tokens moe_random_routing_dropped_token "
       "norm_type num_media_embeds org_vocab_size pad_id "
       "position_embedding_xdrope pretraining_tp sep_token_id "
       "skip_cls_token text_end_id text_start_id use_cla use_mixed_mlp_moe "
       "use_qk_norm use_rotary_pos_emb vit_path xdrope_section"},
      {"hy_v3",
       "hidden_size=4096 intermediate_size=13312 num_hidden_layers=80 "
       "num_attention_heads=64 num_key_value_heads=8 vocab_size=120832 "
       "max_position_embeddings=131072 rms_norm_eps=1e-05 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=11158840 partial_rotary_factor=1 rope_parameters "
       "rope_scaling attention_bias=false mlp_bias=false mlp_layer_types "
       "first_k_dense_replace=1 num_experts=192 num_experts_per_tok=8 "
       "moe_intermediate_size=1536 num_shared_experts=1 "
       "router_scaling_factor=2.826 qk_norm route_norm=true "
       "moe_router_use_sigmoid=true moe_router_enable_expert_bias=true",
       "attention_dropout enable_attention_fp32_softmax enable_lm_head_fp32 "
       "enable_moe_fp32_combine expert_hidden_dim num_nextn_predict_layers "
       "aux_loss_alpha ep_group ep_size output_router_logits pretraining_tp "
       "router_aux_loss_coef router_jitter_noise seq_aux"},
      {"internlm2",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=103168 "
       "max_position_embeddings=2048 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters rope_scaling "
       "bias=true",
       "attention_dropout pretraining_tp"},
      {"internlm3",
       "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
       "num_attention_heads=32 num_key_value_heads=32 vocab_size=128512 "
       "max_position_embeddings=32768 rms_norm_eps=1e-06 "
       "tie_word_embeddings=false hidden_act=silu head_dim=128 "
       "rope_theta=10000 partial_rotary_factor=1 rope_parameters "
       "rope_scaling bias=false qkv_bias=false",
       "attention_dropout"},
  };
}

} // namespace attune::hf
