//===- KeysOfEncoders.cpp - Keys of other classes ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

namespace attune::hf {

/// Keys of no consequence of wav2vec 2.0 and of HuBERT, which has its class.
static constexpr char kOfWaves[] =
    "activation_dropout adapter_kernel_size adapter_stride "
    "apply_spec_augment attention_dropout classifier_proj_size "
    "codevector_dim contrastive_logits_temperature ctc_loss_reduction "
    "ctc_zero_infinity diversity_loss_weight feat_extract_dropout "
    "feat_proj_dropout feat_quantizer_dropout final_dropout "
    "freeze_feat_extract_train gradient_checkpointing hidden_dropout "
    "hidden_dropout_prob layerdrop mask_channel_length "
    "mask_channel_min_space mask_channel_other mask_channel_prob "
    "mask_channel_selection mask_feature_length mask_feature_min_masks "
    "mask_feature_prob mask_time_length mask_time_min_masks "
    "mask_time_min_space mask_time_other mask_time_prob "
    "mask_time_selection no_mask_channel_overlap no_mask_time_overlap "
    "num_adapter_layers num_codevector_groups num_codevectors_per_group "
    "num_feat_extract_layers num_negatives output_hidden_size "
    "proj_codevector_dim tdnn_dilation tdnn_dim tdnn_kernel "
    "tokenizer_class use_weighted_layer_sum xvector_output_dim";

/// Keys that diffusers leaves in its files.
static constexpr char kOfDiffusers[] = "_class_name _diffusers_version";

std::vector<ClassKeys> keysOfEncoders() {
  return {
      {"albert",
       "hidden_size=4096 num_attention_heads=64 num_hidden_layers=12 "
       "intermediate_size=16384 layer_norm_eps=1e-12 hidden_act=gelu_new "
       "embedding_size=128 vocab_size=30000 max_position_embeddings=512 "
       "type_vocab_size=2 num_hidden_groups=1 inner_group_num=1 "
       "tie_word_embeddings=true position_embedding_type=absolute",
       "attention_probs_dropout_prob classifier_dropout "
       "classifier_dropout_prob down_scale_factor gap_size "
       "hidden_dropout_prob net_structure_type num_memory_blocks"},
      {"bart",
       "d_model=1024 hidden_size max_position_embeddings=1024 "
       "vocab_size=50265 activation_function=gelu scale_embedding=false "
       "tie_word_embeddings=true share_encoder_decoder_embeddings=true "
       "decoder_vocab_size=50265 normalize_before=false "
       "add_final_layer_norm=false normalize_embedding=true "
       "static_position_embeddings=false do_blenderbot_90_layernorm=false "
       "encoder_attention_heads=16 encoder_layers=12 "
       "encoder_ffn_dim=4096 decoder_attention_heads=16 decoder_layers=12 "
       "decoder_ffn_dim=4096",
       "activation_dropout add_bias_logits attention_dropout classif_dropout "
       "classifier_dropout decoder_layerdrop dropout encoder_layerdrop "
       "extra_pos_embeddings "
       "force_bos_token_to_be_generated init_std num_attention_heads "
       "num_hidden_layers save_step"},
      {"bert",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "position_embedding_type=absolute add_cross_attention=false "
       "tie_word_embeddings=true vocab_size=30522 max_position_embeddings=512 "
       "type_vocab_size=2",
       "attention_probs_dropout_prob classifier_dropout directionality "
       "hidden_dropout_prob pooler_fc_size pooler_num_attention_heads "
       "pooler_num_fc_layers pooler_size_per_head pooler_type "
       "summary_activation summary_first_dropout summary_last_dropout "
       "summary_type summary_use_proj"},
      {"blenderbot",
       "d_model=2560 hidden_size max_position_embeddings=128 "
       "vocab_size=8008 activation_function=gelu scale_embedding=false "
       "tie_word_embeddings=true share_encoder_decoder_embeddings=true "
       "decoder_vocab_size=8008 normalize_before=true "
       "add_final_layer_norm=true normalize_embedding=false "
       "static_position_embeddings=false do_blenderbot_90_layernorm=true "
       "encoder_attention_heads=32 encoder_layers=2 "
       "encoder_ffn_dim=10240 decoder_attention_heads=32 decoder_layers=24 "
       "decoder_ffn_dim=10240",
       "activation_dropout add_bias_logits attention_dropout classif_dropout "
       "classifier_dropout decoder_layerdrop dropout encoder_layerdrop "
       "extra_pos_embeddings "
       "force_bos_token_to_be_generated init_std num_attention_heads "
       "num_hidden_layers save_step extra_layer_norm layernorm_variant"},
      {"camembert",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "position_embedding_type=absolute add_cross_attention=false "
       "tie_word_embeddings=true vocab_size=50265 max_position_embeddings=512 "
       "type_vocab_size=2",
       "attention_probs_dropout_prob classifier_dropout directionality "
       "hidden_dropout_prob pooler_fc_size pooler_num_attention_heads "
       "pooler_num_fc_layers pooler_size_per_head pooler_type "
       "summary_activation summary_first_dropout summary_last_dropout "
       "summary_type summary_use_proj"},
      {"clip",
       "projection_dim=512 text_config text_config_dict vision_config "
       "vision_config_dict",
       "initializer_factor logit_scale_init_value"},
      {"clip_text_model",
       "projection_dim=512 hidden_size=512 num_attention_heads=8 "
       "num_hidden_layers=12 intermediate_size=2048 layer_norm_eps=1e-05 "
       "hidden_act=quick_gelu vocab_size=49408 max_position_embeddings=77",
       "add_cross_attention attention_dropout dropout dropout_rate "
       "hidden_dropout initializer_factor tie_word_embeddings"},
      {"clip_vision_model",
       "projection_dim=512 hidden_size=768 num_attention_heads=12 "
       "num_hidden_layers=12 intermediate_size=3072 layer_norm_eps=1e-05 "
       "hidden_act=quick_gelu image_size=224 patch_size=32 num_channels=3",
       "add_cross_attention attention_dropout dropout dropout_rate "
       "hidden_dropout initializer_factor tie_word_embeddings"},
      {"deberta-v2",
       "hidden_size=1536 num_attention_heads=24 num_hidden_layers=24 "
       "intermediate_size=6144 layer_norm_eps=1e-07 hidden_act=gelu "
       "vocab_size=128100 max_position_embeddings=512 type_vocab_size=0 "
       "embedding_size position_biased_input=true relative_attention=false "
       "max_relative_positions position_buckets pos_att_type norm_rel_ebd "
       "share_att_key=false conv_kernel_size=0 attention_head_size "
       "pooler_hidden_size pooler_hidden_act=gelu legacy=true "
       "tie_word_embeddings=true",
       "attention_probs_dropout_prob cls_dropout conv_act conv_groups "
       "hidden_dropout_prob pooler_dropout summary_activation "
       "summary_first_dropout summary_last_dropout summary_type "
       "summary_use_proj"},
      {"deit",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "image_size=224 patch_size=16 num_channels=3 qkv_bias=true "
       "pooler_output_size=768 pooler_act=tanh",
       "attention_probs_dropout_prob encoder_stride hidden_dropout_prob"},
      {"dinov2",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "mlp_ratio=4 layer_norm_eps=1e-06 hidden_act=gelu use_swiglu_ffn=false "
       "image_size=224 patch_size=14 num_channels=3 qkv_bias=true",
       "apply_layernorm attention_probs_dropout_prob drop_path_rate "
       "hidden_dropout_prob layerscale_value out_features out_indices "
       "reshape_hidden_states stage_names use_mask_token"},
      {"dinov2_with_registers",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "mlp_ratio=4 layer_norm_eps=1e-06 hidden_act=gelu use_swiglu_ffn=false "
       "image_size=224 patch_size=16 num_channels=3 qkv_bias=true "
       "num_register_tokens=4",
       "apply_layernorm attention_probs_dropout_prob drop_path_rate "
       "hidden_dropout_prob interpolate_antialias interpolate_offset "
       "layerscale_value out_features out_indices "
       "reshape_hidden_states stage_names use_mask_token"},
      {"dinov3_vit",
       "hidden_size=384 num_attention_heads=6 num_hidden_layers=12 "
       "intermediate_size=1536 layer_norm_eps=1e-05 hidden_act=gelu "
       "image_size=224 patch_size=16 num_channels=3 rope_theta=100 "
       "query_bias=true key_bias=false value_bias=true proj_bias=true "
       "mlp_bias=true use_gated_mlp=false num_register_tokens=0",
       "apply_layernorm attention_dropout drop_path_rate layerscale_value "
       "out_features out_indices pos_embed_jitter pos_embed_rescale "
       "pos_embed_shift reshape_hidden_states return_class_token stage_names"},
      {"distilbert",
       "dim=768 n_heads=12 n_layers=6 hidden_dim=3072 activation=gelu "
       "vocab_size=30522 max_position_embeddings=512 tie_word_embeddings=true",
       "attention_dropout dropout qa_dropout seq_classif_dropout "
       "sinusoidal_pos_embds tie_weights_"},
      {"electra",
       "hidden_size=256 num_attention_heads=4 num_hidden_layers=12 "
       "intermediate_size=1024 layer_norm_eps=1e-12 hidden_act=gelu "
       "position_embedding_type=absolute add_cross_attention=false "
       "tie_word_embeddings=true embedding_size=128 vocab_size=30522 "
       "max_position_embeddings=512 type_vocab_size=2",
       "attention_probs_dropout_prob classifier_dropout directionality "
       "hidden_dropout_prob pooler_fc_size pooler_num_attention_heads "
       "pooler_num_fc_layers pooler_size_per_head pooler_type "
       "summary_activation summary_first_dropout summary_last_dropout "
       "summary_type summary_use_proj"},
      {"encodec",
       "hidden_size=128 num_filters=32 kernel_size=7 last_kernel_size=7 "
       "residual_kernel_size=3 compress=2 num_lstm_layers=2 "
       "pad_mode=reflect upsampling_ratios target_bandwidths "
       "sampling_rate=24000 codebook_size=1024 codebook_dim "
       "norm_type=weight_norm use_causal_conv=true use_conv_shortcut=true "
       "normalize=false chunk_length_s overlap num_residual_layers=1 "
       "audio_channels=1 trim_right_ratio=1",
       "dilation_growth_rate"},
      {"esm",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "vocab_size max_position_embeddings=1026 tie_word_embeddings=true "
       "token_dropout=false mask_token_id position_embedding_type=absolute "
       "emb_layer_norm_before=false is_folding_model=false is_decoder=false "
       "add_cross_attention=false",
       "attention_probs_dropout_prob hidden_dropout_prob classifier_dropout "
       "esmfold_config vocab_list"},
      {"flux",
       "patch_size=1 in_channels=64 out_channels num_layers=19 "
       "num_single_layers=38 attention_head_dim=128 num_attention_heads=24 "
       "joint_attention_dim=4096 pooled_projection_dim=768 "
       "guidance_embeds=false axes_dims_rope",
       kOfDiffusers},
      {"hubert",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-5 hidden_act=gelu "
       "vocab_size=32 conv_dim conv_kernel conv_stride conv_bias=false "
       "feat_extract_norm=group feat_extract_activation=gelu "
       "num_conv_pos_embeddings=128 num_conv_pos_embedding_groups=16 "
       "do_stable_layer_norm=false add_adapter=false adapter_attn_dim "
       "conv_pos_batch_norm=false feat_proj_layer_norm=true",
       kOfWaves},
      {"ijepa",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "image_size=224 patch_size=16 num_channels=3 qkv_bias=true",
       "attention_probs_dropout_prob hidden_dropout_prob pooler_act "
       "pooler_output_size"},
      {"jina_embeddings_v3",
       "hidden_size=1024 num_attention_heads=16 num_hidden_layers=24 "
       "intermediate_size=4096 layer_norm_eps=1e-05 hidden_act=gelu "
       "position_embedding_type=rotary add_cross_attention=false "
       "tie_word_embeddings=true vocab_size=250002 "
       "max_position_embeddings=8194 type_vocab_size=1 rope_theta=20000 "
       "partial_rotary_factor=1 rope_parameters rope_scaling",
       "attention_probs_dropout_prob classifier_dropout directionality "
       "hidden_dropout_prob lora_adaptations lora_alpha lora_dropout_p "
       "lora_rank matryoshka_dimensions pooler_fc_size "
       "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head "
       "pooler_type summary_activation summary_first_dropout "
       "summary_last_dropout summary_type summary_use_proj task_instructions "
       "truncate_dim"},
      {"marian",
       "d_model=1024 hidden_size max_position_embeddings=1024 "
       "vocab_size=50265 activation_function=gelu scale_embedding=false "
       "tie_word_embeddings=true share_encoder_decoder_embeddings=true "
       "decoder_vocab_size=50265 normalize_before=false "
       "add_final_layer_norm=false normalize_embedding=false "
       "static_position_embeddings=true do_blenderbot_90_layernorm=false "
       "encoder_attention_heads=16 encoder_layers=12 "
       "encoder_ffn_dim=4096 decoder_attention_heads=16 decoder_layers=12 "
       "decoder_ffn_dim=4096",
       "activation_dropout add_bias_logits attention_dropout classif_dropout "
       "classifier_dropout decoder_layerdrop dropout encoder_layerdrop "
       "extra_pos_embeddings "
       "force_bos_token_to_be_generated init_std num_attention_heads "
       "num_hidden_layers save_step"},
      {"m2m_100",
       "d_model=1024 hidden_size max_position_embeddings=1024 "
       "vocab_size=128112 activation_function=relu scale_embedding=true "
       "tie_word_embeddings=true decoder_vocab_size=128112 "
       "encoder_attention_heads=16 encoder_layers=12 "
       "encoder_ffn_dim=4096 decoder_attention_heads=16 decoder_layers=12 "
       "decoder_ffn_dim=4096",
       "activation_dropout add_bias_logits attention_dropout classif_dropout "
       "classifier_dropout decoder_layerdrop dropout encoder_layerdrop "
       "force_bos_token_to_be_generated init_std num_attention_heads "
       "num_hidden_layers save_step normalize_before"},
      {"mbart",
       "d_model=1024 hidden_size max_position_embeddings=1024 "
       "vocab_size=50265 activation_function=gelu scale_embedding=false "
       "tie_word_embeddings=true share_encoder_decoder_embeddings=true "
       "decoder_vocab_size=50265 normalize_before=true "
       "add_final_layer_norm=true normalize_embedding=true "
       "static_position_embeddings=false do_blenderbot_90_layernorm=false "
       "encoder_attention_heads=16 encoder_layers=12 "
       "encoder_ffn_dim=4096 decoder_attention_heads=16 decoder_layers=12 "
       "decoder_ffn_dim=4096",
       "activation_dropout add_bias_logits attention_dropout classif_dropout "
       "classifier_dropout decoder_layerdrop dropout encoder_layerdrop "
       "extra_pos_embeddings "
       "force_bos_token_to_be_generated init_std num_attention_heads "
       "num_hidden_layers save_step"},
      {"modernbert",
       "hidden_size=768 intermediate_size=1152 num_hidden_layers=22 "
       "num_attention_heads=12 vocab_size=50368 "
       "max_position_embeddings=8192 norm_eps=1e-05 norm_bias=false "
       "hidden_activation=gelu attention_bias=false mlp_bias=false "
       "global_attn_every_n_layers=3 local_attention=128 "
       "global_rope_theta=160000 local_rope_theta=10000 "
       "partial_rotary_factor=1 rope_theta rope_parameters rope_scaling "
       "layer_types "
       "tie_word_embeddings=true classifier_bias=false decoder_bias=true "
       "classifier_activation=gelu classifier_pooling=cls",
       "attention_dropout classifier_dropout cls_token_id "
       "deterministic_flash_attn embedding_dropout gradient_checkpointing "
       "initializer_cutoff_factor layer_norm_eps mlp_dropout "
       "position_embedding_type reference_compile repad_logits_with_grad "
       "sep_token_id sparse_pred_ignore_index sparse_prediction"},
      {"mpnet",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "position_embedding_type=absolute add_cross_attention=false "
       "tie_word_embeddings=true vocab_size=30527 max_position_embeddings=512 "
       "relative_attention_num_buckets=32",
       "attention_probs_dropout_prob hidden_dropout_prob"},
      {"mt5",
       "d_model=512 hidden_size d_kv=64 d_ff=1024 num_layers=8 "
       "num_hidden_layers num_decoder_layers=8 num_heads=6 "
       "num_attention_heads vocab_size=250112 layer_norm_epsilon=1e-06 "
       "relative_attention_num_buckets=32 relative_attention_max_distance=128 "
       "feed_forward_proj=gated-gelu dense_act_fn=gelu_new is_gated_act=true "
       "tie_word_embeddings=false scale_decoder_outputs=false",
       "classifier_dropout dropout_rate initializer_factor n_positions"},
      {"musicgen", "text_encoder audio_encoder decoder", ""},
      {"musicgen_decoder",
       "hidden_size=1024 num_attention_heads=16 num_hidden_layers=24 "
       "ffn_dim=4096 vocab_size=2048 max_position_embeddings=2048 "
       "num_codebooks=4 activation_function=gelu audio_channels=1",
       "activation_dropout attention_dropout classifier_dropout dropout "
       "initializer_factor layerdrop scale_embedding tie_word_embeddings"},
      {"nomic_bert",
       "n_embd=768 n_head=12 n_layer=12 n_inner=3072 vocab_size=50257 "
       "layer_norm_epsilon=1e-05 activation_function=gelu mlp_fc1_bias=true "
       "mlp_fc2_bias=true qkv_proj_bias=true rotary_emb_base=10000 "
       "rotary_emb_fraction rotary_emb_interleaved=false type_vocab_size=2 "
       "pad_vocab_size_multiple=1 max_trained_positions=2048 causal=false "
       "norm_mlp=false parallel_block=false prenorm=false "
       "rotary_head_dim=false use_rms_norm=false rotary_emb_scale_base "
       "rotary_scaling_factor",
       "attn_pdrop dense_seq_output embd_pdrop fused_bias_fc "
       "fused_dropout_add_ln n_positions parallel_block_tied_norm "
       "reorder_and_upcast_attn resid_pdrop "
       "scale_attn_by_inverse_layer_idx scale_attn_weights "
       "summary_activation summary_first_dropout summary_proj_to_labels "
       "summary_type summary_use_proj use_flash_attn use_xentropy"},
      {"pegasus",
       "d_model=1024 hidden_size max_position_embeddings=1024 "
       "vocab_size=50265 activation_function=gelu scale_embedding=false "
       "tie_word_embeddings=true share_encoder_decoder_embeddings=true "
       "decoder_vocab_size=50265 normalize_before=true "
       "add_final_layer_norm=true normalize_embedding=false "
       "static_position_embeddings=true do_blenderbot_90_layernorm=false "
       "encoder_attention_heads=16 encoder_layers=12 "
       "encoder_ffn_dim=4096 decoder_attention_heads=16 decoder_layers=12 "
       "decoder_ffn_dim=4096",
       "activation_dropout add_bias_logits attention_dropout classif_dropout "
       "classifier_dropout decoder_layerdrop dropout encoder_layerdrop "
       "extra_pos_embeddings "
       "force_bos_token_to_be_generated init_std num_attention_heads "
       "num_hidden_layers save_step"},
      {"roberta",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "position_embedding_type=absolute add_cross_attention=false "
       "tie_word_embeddings=true vocab_size=50265 max_position_embeddings=512 "
       "type_vocab_size=2",
       "attention_probs_dropout_prob classifier_dropout directionality "
       "hidden_dropout_prob pooler_fc_size pooler_num_attention_heads "
       "pooler_num_fc_layers pooler_size_per_head pooler_type "
       "summary_activation summary_first_dropout summary_last_dropout "
       "summary_type summary_use_proj"},
      {"sd3",
       "patch_size=2 in_channels=16 out_channels=16 num_layers=18 "
       "attention_head_dim=64 num_attention_heads=18 joint_attention_dim=4096 "
       "caption_projection_dim=1152 pooled_projection_dim=2048 "
       "pos_embed_max_size=96 qk_norm dual_attention_layers sample_size=128",
       kOfDiffusers},
      {"siglip",
       "text_config text_config_dict vision_config vision_config_dict",
       "initializer_factor"},
      {"siglip2",
       "text_config text_config_dict vision_config vision_config_dict",
       "initializer_factor"},
      {"siglip2_text_model",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-06 "
       "hidden_act=gelu_pytorch_tanh vocab_size=32000 "
       "max_position_embeddings=64 projection_size=768",
       "add_cross_attention attention_dropout dropout dropout_rate "
       "hidden_dropout initializer_factor projection_dim "
       "tie_word_embeddings"},
      {"siglip2_vision_model",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-06 "
       "hidden_act=gelu_pytorch_tanh num_patches=256 patch_size=16 "
       "num_channels=3 vision_use_head=true",
       "add_cross_attention attention_dropout dropout dropout_rate "
       "hidden_dropout initializer_factor projection_dim "
       "tie_word_embeddings"},
      {"siglip_text_model",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-06 "
       "hidden_act=gelu_pytorch_tanh vocab_size=32000 "
       "max_position_embeddings=64 projection_size=768",
       "add_cross_attention attention_dropout dropout dropout_rate "
       "hidden_dropout initializer_factor projection_dim "
       "tie_word_embeddings"},
      {"siglip_vision_model",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-06 "
       "hidden_act=gelu_pytorch_tanh image_size=224 patch_size=16 "
       "num_channels=3 vision_use_head=true",
       "add_cross_attention attention_dropout dropout dropout_rate "
       "hidden_dropout initializer_factor projection_dim "
       "tie_word_embeddings"},
      {"t5",
       "d_model=512 hidden_size d_kv=64 d_ff=2048 num_layers=6 "
       "num_hidden_layers num_decoder_layers=6 num_heads=8 "
       "num_attention_heads vocab_size=32128 layer_norm_epsilon=1e-06 "
       "relative_attention_num_buckets=32 relative_attention_max_distance=128 "
       "feed_forward_proj=relu dense_act_fn=relu is_gated_act=false "
       "tie_word_embeddings=true scale_decoder_outputs=true",
       "classifier_dropout dropout_rate initializer_factor n_positions"},
      {"umt5",
       "d_model=512 hidden_size d_kv=64 d_ff=1024 num_layers=8 "
       "num_hidden_layers num_decoder_layers=8 num_heads=6 "
       "num_attention_heads vocab_size=250112 layer_norm_epsilon=1e-06 "
       "relative_attention_num_buckets=32 relative_attention_max_distance=128 "
       "feed_forward_proj=gated-gelu dense_act_fn=gelu_new is_gated_act=true "
       "tie_word_embeddings=true scale_decoder_outputs=true",
       "classifier_dropout dropout_rate initializer_factor n_positions "
       "output_past scalable_attention"},
      {"vit",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "image_size=224 patch_size=16 num_channels=3 qkv_bias=true "
       "pooler_output_size=768 pooler_act=tanh",
       "attention_probs_dropout_prob encoder_stride hidden_dropout_prob"},
      {"vit_mae",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "image_size=224 patch_size=16 num_channels=3 qkv_bias=true",
       "attention_probs_dropout_prob decoder_hidden_size "
       "decoder_intermediate_size decoder_num_attention_heads "
       "decoder_num_hidden_layers hidden_dropout_prob mask_ratio "
       "norm_pix_loss"},
      {"wav2vec2",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-5 hidden_act=gelu "
       "vocab_size=32 conv_dim conv_kernel conv_stride conv_bias=false "
       "feat_extract_norm=group feat_extract_activation=gelu "
       "num_conv_pos_embeddings=128 num_conv_pos_embedding_groups=16 "
       "do_stable_layer_norm=false add_adapter=false adapter_attn_dim "
       "conv_pos_batch_norm=false",
       kOfWaves},
      {"whisper",
       "d_model=384 hidden_size vocab_size=51865 num_mel_bins=80 "
       "max_source_positions=1500 max_target_positions=448 encoder_layers=4 "
       "decoder_layers=4 tie_word_embeddings=true activation_function=gelu "
       "encoder_attention_heads=6 encoder_ffn_dim=1536 "
       "decoder_attention_heads=6 decoder_ffn_dim=1536",
       "activation_dropout apply_spec_augment attention_dropout "
       "classifier_proj_size decoder_layerdrop dropout encoder_layerdrop "
       "forced_decoder_ids init_std mask_feature_length "
       "mask_feature_min_masks mask_feature_prob mask_time_length "
       "mask_time_min_masks mask_time_prob median_filter_width "
       "num_attention_heads num_hidden_layers scale_embedding "
       "use_weighted_layer_sum"},
      {"xlm-roberta",
       "hidden_size=768 num_attention_heads=12 num_hidden_layers=12 "
       "intermediate_size=3072 layer_norm_eps=1e-12 hidden_act=gelu "
       "position_embedding_type=absolute add_cross_attention=false "
       "tie_word_embeddings=true vocab_size=50265 max_position_embeddings=512 "
       "type_vocab_size=2",
       "attention_probs_dropout_prob classifier_dropout directionality "
       "hidden_dropout_prob pooler_fc_size pooler_num_attention_heads "
       "pooler_num_fc_layers pooler_size_per_head pooler_type "
       "summary_activation summary_first_dropout summary_last_dropout "
       "summary_type summary_use_proj"},
      {"xlnet",
       "d_model=1024 n_layer=24 vocab_size=32000 layer_norm_eps=1e-12 "
       "n_head=16 d_head d_inner=4096 ff_activation=gelu attn_type=bi "
       "bi_data=false clamp_len=-1 summary_type=last summary_use_proj=true "
       "summary_activation=tanh tie_word_embeddings=true",
       "dropout end_n_top mem_len reuse_len same_length start_n_top "
       "summary_last_dropout untie_r use_mems_eval use_mems_train"},
  };
}

} // namespace attune::hf
