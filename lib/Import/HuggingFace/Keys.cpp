//===- Keys.cpp - Keys of all classes, and unknown ones ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

#include <cctype>
#include <cmath>

namespace attune::hf {

using spec::Value;

std::vector<std::string> namesIn(std::string_view list) {
  std::vector<std::string> names;
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(' ', at), list.size());
    std::string_view word = list.substr(at, end - at);
    names.emplace_back(word.substr(0, word.find('=')));
    at = end + 1;
  }
  return names;
}

const std::vector<ClassKeys> &classKeys() {
  static const std::vector<ClassKeys> all = [] {
    std::vector<ClassKeys> keys = keysOfDecodersAToI();
    for (auto *more : {keysOfDecodersJToZ, keysOfEncoders}) {
      std::vector<ClassKeys> others = more();
      keys.insert(keys.end(), others.begin(), others.end());
    }
    return keys;
  }();
  return all;
}

std::vector<std::string> keysOfClass(std::string_view modelType) {
  std::vector<std::string> keys;
  for (const ClassKeys &keysHere : classKeys())
    if (modelType == keysHere.modelType)
      for (const char *list : {keysHere.read, keysHere.ofNoConsequence})
        for (std::string &name : namesIn(list))
          keys.push_back(std::move(name));
  return keys;
}

const std::vector<std::string> &commonKeys() {
  // The base class: bookkeeping and training.
  static const char base[] =
      "_attn_implementation _attn_implementation_autoset "
      "_attn_implementation_internal _commit_hash _experts_implementation "
      "_name_or_path _num_labels architectures auto_map "
      "chunk_size_feed_forward cross_attention_hidden_size dtype "
      "finetuning_task gradient_checkpointing id2label initializer_range "
      "is_decoder is_encoder_decoder keys_to_ignore_at_inference label2id "
      "model_type neftune_noise_alpha num_labels output_attentions "
      "output_hidden_states output_past output_scores prefix problem_type "
      "pruned_heads quantization_config return_dict "
      "return_dict_in_generate task_specific_params tf_legacy_loss "
      "tie_encoder_decoder tokenizer_class torch_dtype torchscript "
      "transformers.js_config transformers_version use_bfloat16 use_cache";
  // Defaults of text generation, which old files keep here.
  static const char generation[] =
      "bad_words_ids begin_suppress_tokens bos_token_id "
      "decoder_start_token_id diversity_penalty do_sample early_stopping "
      "encoder_no_repeat_ngram_size eos_token_id "
      "exponential_decay_length_penalty forced_bos_token_id "
      "forced_decoder_ids forced_eos_token_id length_penalty max_length "
      "max_new_tokens min_length no_repeat_ngram_size num_beam_groups "
      "num_beams num_return_sequences pad_token_id remove_invalid_values "
      "repetition_penalty sep_token_id suppress_tokens temperature top_k "
      "top_p typical_p";
  // Trainers, converters and hubs. How attention is computed is no part of
  // what it computes.
  static const char leftBehind[] =
      "_flash_attn_2_enabled additional_special_tokens attn_implementation "
      "base_model_name_or_path bf16 bos_token context_window_size eos_token "
      "flash_attn flash_rotary fp16 fp32 fused_bias_fc fused_dense fused_mlp "
      "gradient_checkpointing_kwargs image_token_id image_token_index "
      "is_composition "
      "language library_name license mask_token_id max_seq_len "
      "max_seq_length max_sequence_length model_max_length name_or_path "
      "pad_token pipeline_tag pretraining_tp prefill_chunk_size "
      "quantization_config_dict rope_init_device sentence_transformers "
      "seq_len seq_length softmax_in_fp32 tags tensor_parallel_shards "
      "tokenizer_name torch_version training_args unk_token_id unsloth_fixed "
      "unsloth_optimized unsloth_version use_dynamic_ntk_cache "
      "use_flash_attention use_flash_attention_2 use_flash_attn vocab_file";
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const char *list : {base, generation, leftBehind})
      for (std::string &name : namesIn(list))
        all.push_back(std::move(name));
    return all;
  }();
  return keys;
}

/// The words of a name in snake_case, camelCase or kebab-case, in lower case.
static std::vector<std::string> wordsOf(std::string_view key) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < key.size(); ++i) {
    auto c = static_cast<unsigned char>(key[i]);
    bool begins = std::isupper(c) && i &&
                  std::islower(static_cast<unsigned char>(key[i - 1]));
    if ((!std::isalnum(c) || begins) && !words.back().empty())
      words.emplace_back();
    if (std::isalnum(c))
      words.back() += static_cast<char>(std::tolower(c));
  }
  return words;
}

static bool contains(const std::vector<std::string> &words,
                     std::initializer_list<std::string_view> parts) {
  for (const std::string &word : words)
    for (std::string_view part : parts)
      if (part.back() == '.' ? word == part.substr(0, part.size() - 1)
                             : word.find(part) != std::string::npos)
        return true;
  return false;
}

/// Names that speak of what computes the numbers, or of training.
static bool isHarmlessName(const std::vector<std::string> &words) {
  return contains(words,
                  {"drop",    "init",    "loss",    "aux.",       "coef.",
                   "coeff.",  "grad",    "flash",   "fused",      "fusion",
                   "kernel.", "impl",    "backend", "checkpoint", "dtype",
                   "fp16",    "fp32",    "bf16",    "cache",      "train",
                   "optim",   "version", "path.",   "comment"}) ||
         (contains(words, {"token."}) &&
          contains(words, {"id.", "ids.", "index."}));
}

/// A part that ends with a dot is a whole word.
static bool isTellingName(const std::vector<std::string> &words) {
  return contains(
      words,
      {"rope",          "rotary",      "rotat",     "yarn",   "ntk.",
       "scal",          "window",      "sliding",   "attn",   "attention",
       "norm",          "cap.",        "capping",   "capped", "clip",
       "clamp",         "bias",        "mult",      "factor", "quant",
       "expert",        "moe",         "router",    "routed", "routing",
       "topk",          "gate",        "gating",    "tie.",   "tied.",
       "tying",         "position",    "pos.",      "embed",  "emb.",
       "head",          "eps.",        "epsilon",   "theta",  "activation",
       "act.",          "alibi",       "residual",  "mask",   "causal",
       "bidirectional", "logit",       "softmax",   "glu.",   "swiglu",
       "qk.",           "kv.",         "qkv.",      "rms",    "latent",
       "nope.",         "temperature", "interleave"});
}

bool changesNothing(std::string_view key, const Value &value, double length) {
  std::vector<std::string> words = wordsOf(key);
  auto all = [&](const auto &list, auto get) {
    for (const auto &item : list)
      if (!changesNothing(key, get(item), length))
        return false;
    return true;
  };
  switch (value.kind) {
  case Value::Kind::Null:
    return true;
  case Value::Kind::Boolean:
    // Whoever says nothing of it is causal.
    return value.boolean == contains(words, {"causal"});
  case Value::Kind::Integer:
  case Value::Kind::Real:
    if (value.real == 0)
      return true;
    if (value.real == 1 &&
        contains(words, {"scal", "mult", "factor", "temperature"}))
      return true;
    if (contains(words,
                 {"window", "sliding", "cap.", "capping", "clip", "clamp"}))
      return value.real == -1 || std::isinf(value.real) ||
             (length > 0 && contains(words, {"window", "sliding"}) &&
              value.real >= length);
    return false;
  case Value::Kind::String:
    return value.text.empty() || value.text == "none" || value.text == "None" ||
           value.text == "default" || value.text == "full_attention";
  case Value::Kind::Array:
    return all(value.elements,
               [](const Value &item) -> const Value & { return item; });
  case Value::Kind::Object:
    return all(value.members, [](const Value::Member &member) -> const Value & {
      return member.value;
    });
  }
  return false;
}

bool mayChangeNumbers(std::string_view key, const Value &value, double length) {
  std::vector<std::string> words = wordsOf(key);
  return isTellingName(words) && !isHarmlessName(words) &&
         !changesNothing(key, value, length);
}

} // namespace attune::hf
