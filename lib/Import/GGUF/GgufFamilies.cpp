//===- GgufFamilies.cpp - Architectures of GGUF files -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the keys of each architecture stand for beyond those that all have, and
// what published files leave to the program that reads them.
//
//===----------------------------------------------------------------------===//

#include "GgufWriter.h"

#include <cmath>

namespace attune::gguf {

const std::vector<Family> &families() {
  // Whether neighbouring channels turn together, whether by role.
  static const std::vector<Family> all = {
      {"llama", "llama", "LlamaForCausalLM", true},
      {"qwen2", "qwen2", "Qwen2ForCausalLM", false},
      {"qwen3", "qwen3", "Qwen3ForCausalLM", false},
      {"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", false},
      {"gemma", "gemma", "GemmaForCausalLM", false},
      {"gemma2", "gemma2", "Gemma2ForCausalLM", false},
      {"gemma3", "gemma3_text", "Gemma3ForCausalLM", false},
      {"gemma3n", "gemma3n_text", "Gemma3nForCausalLM", false},
      {"phi3", "phi3", "Phi3ForCausalLM", false},
      {"t5", "t5", "T5ForConditionalGeneration", false},
      {"t5encoder", "t5", "T5EncoderModel", false},
      {"arcee", "arcee", "ArceeForCausalLM", true, true},
      {"bert", "bert", "BertModel", false, true},
      {"bloom", "bloom", "BloomForCausalLM", false, true},
      {"chatglm", "chatglm", "ChatGLMForConditionalGeneration", true, true},
      {"cohere2", "cohere2", "Cohere2ForCausalLM", true, true},
      {"command-r", "cohere", "CohereForCausalLM", true, true},
      {"deepseek2", "deepseek_v2", "DeepseekV2ForCausalLM", true, true},
      {"ernie4_5", "ernie4_5", "Ernie4_5ForCausalLM", true, true},
      {"ernie4_5-moe", "ernie4_5_moe", "Ernie4_5_MoeForCausalLM", true, true},
      {"exaone", "exaone", "ExaoneForCausalLM", false, true},
      {"exaone4", "exaone4", "Exaone4ForCausalLM", false, true},
      {"falcon", "falcon", "FalconForCausalLM", false, true},
      {"falcon-h1", "falcon_h1", "FalconH1ForCausalLM", false, true},
      {"glm4", "glm4", "Glm4ForCausalLM", true, true},
      {"glm4moe", "glm4_moe", "Glm4MoeForCausalLM", false, true},
      {"gpt-oss", "gpt_oss", "GptOssForCausalLM", false, true},
      {"gpt2", "gpt2", "GPT2LMHeadModel", false, true},
      {"gptneox", "gpt_neox", "GPTNeoXForCausalLM", false, true},
      {"granite", "granite", "GraniteForCausalLM", true, true},
      {"granitemoe", "granitemoe", "GraniteMoeForCausalLM", true, true},
      {"granitehybrid", "granitemoehybrid", "GraniteMoeHybridForCausalLM", true,
       true},
      {"hunyuan-dense", "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", false,
       true},
      {"hunyuan-moe", "hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", false, true},
      {"internlm2", "internlm2", "InternLM2ForCausalLM", true, true},
      {"lfm2", "lfm2", "Lfm2ForCausalLM", false, true},
      {"lfm2moe", "lfm2_moe", "Lfm2MoeForCausalLM", false, true},
      {"llama4", "llama4_text", "Llama4ForCausalLM", true, true},
      {"mamba", "mamba", "MambaForCausalLM", false, true},
      {"mamba2", "mamba2", "Mamba2ForCausalLM", false, true},
      {"minicpm", "minicpm", "MiniCPMForCausalLM", true, true},
      {"minimax-m2", "minimax_m2", "MiniMaxM2ForCausalLM", false, true},
      {"mistral3", "ministral3", "Ministral3ForCausalLM", true, true},
      {"mpt", "mpt", "MPTForCausalLM", false, true},
      {"nemotron", "nemotron", "NemotronForCausalLM", false, true},
      {"nemotron_h", "nemotron_h", "NemotronHForCausalLM", false, true},
      {"nemotron_h_moe", "nemotron_h", "NemotronHForCausalLM", false, true},
      {"nomic-bert", "nomic_bert", "NomicBertModel", false, true},
      {"olmo", "olmo", "OlmoForCausalLM", true, true},
      {"olmo2", "olmo2", "Olmo2ForCausalLM", false, true},
      {"olmoe", "olmoe", "OlmoeForCausalLM", false, true},
      {"phi2", "phi", "PhiForCausalLM", false, true},
      {"qwen2vl", "qwen2", "Qwen2ForCausalLM", false, true},
      {"qwen3vl", "qwen3", "Qwen3ForCausalLM", false, true},
      {"qwen3vlmoe", "qwen3_moe", "Qwen3MoeForCausalLM", false, true},
      {"qwen3next", "qwen3_next", "Qwen3NextForCausalLM", false, true},
      {"qwen35", "qwen3_5_text", "Qwen3_5ForCausalLM", false, true},
      {"qwen35moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", false, true},
      {"qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM", false, true},
      {"seed_oss", "seed_oss", "SeedOssForCausalLM", false, true},
      {"smollm3", "smollm3", "SmolLM3ForCausalLM", true, true},
      {"stablelm", "stablelm", "StableLmForCausalLM", false, true},
      {"starcoder", "gpt_bigcode", "GPTBigCodeForCausalLM", false, true},
      {"starcoder2", "starcoder2", "Starcoder2ForCausalLM", false, true},
  };
  return all;
}

/// Some architectures of files are several classes.
void Writer::chooseType() {
  std::string_view name = family.name;
  type = family.modelType;
  className = family.className;
  auto become = [&](const char *otherType, const char *otherClass) {
    type = otherType;
    className = otherClass;
  };
  bool slides = count("attention.sliding_window");
  if (name == "llama" && count("expert_count"))
    become("mixtral", "MixtralForCausalLM");
  else if (name == "llama" && slides)
    become("mistral", "MistralForCausalLM");
  else if (name == "olmo2" && slides)
    become("olmo3", "Olmo3ForCausalLM");
  else if (name == "granitemoe" && count("expert_shared_feed_forward_length"))
    become("granitemoeshared", "GraniteMoeSharedForCausalLM");
  else if (name == "mamba" && file.flag(full("ssm.dt_b_c_rms")).value_or(false))
    become("falcon_mamba", "FalconMambaForCausalLM");
  // The third version chooses experts by sigmoids, with biases.
  if (name == "deepseek2" && file.integer(full("expert_gating_func")) == 2)
    become("deepseek_v3", "DeepseekV3ForCausalLM");
}

void Writer::putGemma() {
  std::string_view name = family.name;
  if (name == "gemma2") {
    // The model of 27 billion parameters, of 46 layers, has its own.
    put("query_pre_attn_scalar", layers == 46 ? width / heads : headDim);
    put("attn_logit_softcapping", spell(number("attn_logit_softcapping", 50)));
    put("final_logit_softcapping",
        spell(number("final_logit_softcapping", 30)));
  }
  if (name == "gemma3") {
    put("query_pre_attn_scalar", layers == 62 ? width / heads : headDim);
    put("rope_local_base_freq", spell(number("rope.freq_base_swa", 10000)));
    if (!file.find(full("rope.freq_base")))
      fail(full("rope.freq_base"), "expected a number, found nothing");
    if (file.find(full("final_logit_softcapping")))
      put("final_logit_softcapping",
          spell(number("final_logit_softcapping", 30)));
  }
}

/// Classes have one way to make scores of a router's logits.
void Writer::checkGating() {
  static const char *const ways[] = {"softmax", "sigmoid",
                                     "softmax of the chosen"};
  std::string_view name = family.name;
  int64_t way = name == "gpt-oss" ? 3
                : type == "deepseek_v3" || name == "glm4moe" ||
                        name == "lfm2moe" || name == "llama4" ||
                        name == "nemotron_h_moe" || name == "minimax-m2"
                    ? 2
                    : 1;
  int64_t found = count("expert_gating_func");
  if (found && found != way)
    fail(full("expert_gating_func"),
         "expected " + std::to_string(way) + " (" + ways[way - 1] + "), as " +
             type + " has it, found " + std::to_string(found));
}

void Writer::putExperts() {
  if (!nameOf({"num_experts", "num_local_experts", "n_routed_experts",
               "moe_num_experts"}))
    return;
  // Classes of dense models may name such keys, too.
  std::string last = "blk." + std::to_string(layers - 1) + ".";
  if (!count("expert_count") && !file.findTensor(last + "ffn_down_exps.weight"))
    return put("moe_layers", std::string("[]"));
  checkGating();
  int64_t experts = size("expert_count");
  putAs({"num_experts", "num_local_experts", "n_routed_experts",
         "moe_num_experts"},
        std::to_string(experts));
  putAs({"num_experts_per_tok", "moe_topk", "moe_k"},
        std::to_string(size("expert_used_count")));
  // A file may say it by its tensors alone.
  auto widthOf = [&](const char *key, const char *tensor) {
    const CheckpointTensor *up = file.findTensor(last + tensor);
    std::optional<int64_t> stated;
    if (up && up->shape.size() >= 2)
      stated = up->shape[up->shape.size() - 2];
    return size(key, stated);
  };
  if (known.count("moe_intermediate_size"))
    put("moe_intermediate_size",
        widthOf("expert_feed_forward_length", "ffn_up_exps.weight"));
  if (nameOf({"shared_expert_intermediate_size", "shared_intermediate_size"}))
    putAs({"shared_expert_intermediate_size", "shared_intermediate_size"},
          std::to_string(widthOf("expert_shared_feed_forward_length",
                                 "ffn_up_shexp.weight")));
  std::string_view name = family.name;
  bool sums = name == "qwen3moe" || name == "qwen3vlmoe" ||
              name == "qwen3next" || name == "lfm2moe" ||
              file.flag(full("expert_weights_norm")).value_or(false);
  putFlag("norm_topk_prob", sums);
  if (known.count("routed_scaling_factor"))
    put("routed_scaling_factor", spell(number("expert_weights_scale", 1)));
  if (nameOf(
          {"n_shared_experts", "num_shared_expert", "moe_num_shared_experts"}))
    putAs({"n_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
          count("expert_shared_count")
              ? std::to_string(size("expert_shared_count"))
          : known.count("n_shared_experts") ? "null"
                                            : "0");
  if (const char *dense = nameOf({"first_k_dense_replace", "num_dense_layers",
                                  "moe_layer_start_index"}))
    put(dense, count("leading_dense_block_count"));
  putAs({"moe_layer_interval", "interleave_moe_layer_step"},
        std::to_string(size("interleave_moe_layer_step", 1)));
  for (const char *key : {"use_expert_bias", "use_routing_bias"})
    putFlag(key, file.findTensor(last + "exp_probs_b.bias"));
  // The first files of DeepSeek V3 leave its groups out.
  bool third = type == "deepseek_v3" && experts == 256;
  put("n_group", size("expert_group_count", third ? 8 : 1));
  put("topk_group", size("expert_group_used_count", third ? 4 : 1));
  if (type == "deepseek_v2")
    put("topk_method",
        quoted(count("expert_group_count") > 1 ? "group_limited_greedy"
                                               : "greedy"));
}

/// Keys and values are made of one short row of all heads.
void Writer::putDeepSeek() {
  int64_t turned = size("rope.dimension_count");
  // Newer files name the lengths of the rows that are cached instead.
  int64_t keys = size("attention.key_length_mla", headDim),
          values = size("attention.value_length_mla",
                        size("attention.value_length", headDim));
  if (keys <= turned)
    return fail(full("attention.key_length_mla"),
                "expected more than the " + std::to_string(turned) +
                    " channels that turn, found " + std::to_string(keys));
  put("num_key_value_heads", heads);
  put("q_lora_rank", count("attention.q_lora_rank")
                         ? std::to_string(size("attention.q_lora_rank"))
                         : "null");
  put("kv_lora_rank", size("attention.kv_lora_rank"));
  put("qk_rope_head_dim", turned);
  put("qk_nope_head_dim", keys - turned);
  put("v_head_dim", values);
}

/// The window of attention, and which layers see that alone: a list, or all but
/// the last of `period`. With 0 the class says which.
void Writer::putWindow(int64_t period) {
  std::string_view name = family.name;
  // Files of before leave it out.
  bool usual = !file.find(full("attention.sliding_window")) &&
               (name == "gemma2" || (name == "exaone4" && layers == 64));
  int64_t window = usual ? 4096
                   : name == "cohere2" || name == "gpt-oss"
                       ? size("attention.sliding_window")
                       : count("attention.sliding_window");
  put("sliding_window", window ? std::to_string(window) : "null");
  if (!window || !period)
    return;
  const std::string key = full("attention.sliding_window_pattern");
  std::vector<double> slides;
  if (std::optional<std::vector<double>> list = file.numbers(key))
    slides = *list;
  else
    period = size("attention.sliding_window_pattern", period);
  for (int64_t i = static_cast<int64_t>(slides.size());
       !file.numbers(key) && i < layers; ++i)
    slides.push_back((i + 1) % period != 0);
  if (static_cast<int64_t>(slides.size()) < layers)
    return fail(key, "expected a value for each of the " +
                         std::to_string(layers) + " layers, found " +
                         std::to_string(slides.size()));
  std::string types;
  for (int64_t i = 0; i < layers; ++i)
    types += (i ? ", " : "") + quoted(slides[static_cast<size_t>(i)]
                                          ? "sliding_attention"
                                          : "full_attention");
  put("layer_types", "[" + types + "]");
}

/// A stated window of 0 stands for layers that turn and see everything; else
/// every fourth does not turn, and the others see a chunk.
void Writer::putChunks() {
  if (!file.find(full("attention.sliding_window")) ||
      count("attention.sliding_window"))
    return;
  std::string turning, types;
  for (int64_t i = 0; i < layers; ++i) {
    turning += i ? ", 1" : "1";
    types += std::string(i ? ", " : "") + quoted("full_attention");
  }
  put("no_rope_layers", "[" + turning + "]");
  put("layer_types", "[" + types + "]");
  putFlag("attn_temperature_tuning", false);
}

/// Factors of embeddings, scores, residuals and logits.
void Writer::putScales() {
  std::string_view name = family.name;
  if (name == "minicpm") {
    // Files of before have those of its first models.
    double ofResiduals = number("residual_scale", 1.4 / std::sqrt(layers)),
           ofLogits = number("logit_scale", double(width) / 256);
    put("scale_emb", spell(number("embedding_scale", 12)));
    put("scale_depth", spell(ofResiduals * std::sqrt(double(layers))));
    double base = double(width) / ofLogits;
    if (base < 1 || base > INT32_MAX)
      return fail(full("logit_scale"),
                  "expected a number up to " + std::to_string(width) +
                      ", the width, found " + spell(ofLogits));
    put("dim_model_base", std::to_string(std::llround(base)));
    return;
  }
  auto take = [&](const char *ours, const char *theirs, double fallback) {
    if (known.count(ours))
      put(ours, spell(number(theirs, fallback)));
  };
  take("embedding_multiplier", "embedding_scale", 1);
  take("residual_multiplier", "residual_scale", 1);
  take("attention_multiplier", "attention.scale",
       1 / std::sqrt(double(headDim)));
  take("logits_scaling", "logit_scale", 1);
  if (name != "mpt" && known.count("logit_scale") &&
      file.find(full("logit_scale")))
    take("logit_scale", "logit_scale", 1);
}

/// BERT's relatives, whose tokens are of several types.
void Writer::putEncoder() {
  const CheckpointTensor *types = file.findTensor("token_types.weight");
  put("type_vocab_size", types ? types->shape[0] : int64_t(1));
  if (std::string_view(family.name) != "nomic-bert")
    return;
  put("activation_function", quoted("swiglu"));
  put("rotary_emb_base", spell(number("rope.freq_base", 1000)));
  put("rotary_emb_fraction", int64_t(1));
  put("max_trained_positions", length);
  putFlag("qkv_proj_bias", has("attn_qkv.bias"));
  putFlag("mlp_fc1_bias", has("ffn_up.bias"));
  putFlag("mlp_fc2_bias", has("ffn_down.bias"));
}

void Writer::putFamily() {
  std::string_view name = family.name;
  if (name == "bert" || name == "nomic-bert")
    return putEncoder();
  if (type == "t5")
    return putT5();
  putExperts();
  putGemma();
  if (name == "gemma3n")
    putGemma3n();
  putScales();
  if (name == "llama" || name == "phi3")
    putWindow(0);
  else if (name == "gemma2" || name == "gpt-oss")
    putWindow(2);
  else if (name == "olmo2" || name == "cohere2" || name == "exaone4")
    putWindow(4);
  else if (name == "gemma3n")
    putWindow(5);
  else if (name == "gemma3")
    putWindow(6);
  else if (name == "llama4")
    putChunks();
  if (name == "deepseek2")
    putDeepSeek();
  // What tensors say.
  if (family.byRole) {
    bool biases = has("attn_q.bias") || has("attn_qkv.bias");
    for (const char *key : {"attention_bias", "use_qkv_bias", "add_qkv_bias"})
      putFlag(key, biases);
    if (name != "ernie4_5" && name != "ernie4_5-moe")
      put("use_bias", biases || has("ssm_in.bias") ? std::string("true")
                                                   : std::string("false"));
    putFlag("attention_out_bias", has("attn_output.bias"));
    putFlag("mlp_bias", has("ffn_up.bias"));
    for (const char *key : {"use_qk_norm", "qk_layernorm"})
      // Llama 4's have no gains; Maverick, of 128 experts, has none at all.
      putFlag(key, name == "llama4" ? count("expert_count") != 128
                                    : has("attn_q_norm.weight"));
  }
  if (name == "gptneox")
    putFlag("use_parallel_residual",
            file.flag(full("use_parallel_residual")).value_or(true));
  if (name == "stablelm") {
    full("use_parallel_residual"); // says the same
    putFlag("use_parallel_residual", !has("ffn_norm.weight"));
  }
  if (name == "falcon") {
    bool grouped = kvHeads > 1;
    putFlag("new_decoder_architecture", grouped);
    putFlag("multi_query", !grouped);
    if (grouped)
      put("num_ln_in_parallel_attn",
          int64_t(has("attn_norm_2.weight") ? 2 : 1));
  }
  putFlag("multi_query_attention", kvHeads < heads); // of ChatGLM
  if (name == "internlm2")
    putFlag("bias", has("attn_q.bias"));
  if (name == "olmo" && file.find(full("attention.clamp_kqv")))
    put("clip_qkv", spell(number("attention.clamp_kqv", 1)));
  if (name == "mpt") {
    std::string form = "{\"alibi\": true, \"alibi_bias_max\": ";
    form += spell(number("attention.max_alibi_bias", 8));
    if (file.find(full("attention.clamp_kqv")))
      form += ", \"clip_qkv\": " + spell(number("attention.clamp_kqv", 1));
    put("attn_config", form + "}");
  }
  if (name == "lfm2" || name == "lfm2moe")
    putConvolutions();
  if (name == "falcon-h1")
    putFalconH1();
  if (type == "nemotron_h")
    putNemotronH();
  if (name == "granitehybrid")
    putGraniteHybrid();
  if (name == "granite" &&
      !file.flag(full("rope.scaling.finetuned")).value_or(true))
    fail(full("rope.scaling.finetuned"),
         "expected true: a model without positions is not supported");
  if (name == "qwen3next" || name == "qwen35" || name == "qwen35moe")
    putDeltaRules();
  if (name == "starcoder")
    putFlag("multi_query", kvHeads == 1);
  if (name == "qwen2vl" || name == "qwen3vl" || name == "qwen3vlmoe") {
    // Of texts alone: their three positions are one and the same.
    full("rope.dimension_sections");
    full("n_deepstack_layers");
  }
  if (name == "mamba" || name == "mamba2") {
    int64_t inner = size("ssm.inner_size");
    put("state_size", size("ssm.state_size"));
    put("conv_kernel", size("ssm.conv_kernel"));
    put("intermediate_size", inner);
    if (inner % width == 0)
      put("expand", inner / width);
    put("time_step_rank", size("ssm.time_step_rank"));
    putFlag("use_conv_bias", has("ssm_conv1d.bias"));
    if (name == "mamba2") {
      put("num_heads", size("ssm.time_step_rank"));
      put("head_dim", inner / size("ssm.time_step_rank"));
      put("n_groups", size("ssm.group_count", 1));
    }
  }
}

} // namespace attune::gguf
