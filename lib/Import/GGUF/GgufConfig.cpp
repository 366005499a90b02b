//===- GgufConfig.cpp - The config.json of a GGUF file ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufWriter.h"

#include "../HuggingFace/Keys.h"
#include "attune/Runtime/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace attune::gguf {

const Family *findFamily(const File &file, DiagnosticEngine &diags) {
  std::optional<std::string_view> name = file.text("general.architecture");
  std::string known;
  for (const Family &family : families()) {
    if (name == std::string_view(family.name))
      return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  if (name == std::string_view("clip")) {
    diags.error(atPath(file.path()),
                "is the part of a model that sees (its architecture is "
                "'clip'); give the model's file before it: MODEL.gguf," +
                    file.path() + ", or the folder of both");
    return nullptr;
  }
  std::string found = "is missing";
  if (const Value *value = file.find("general.architecture"))
    found = "at byte " + std::to_string(value->offset) + " is " +
            (name ? "'" + std::string(name->substr(0, 64)) + "'"
                  : value->describe());
  diags.error(atPath(file.path()),
              "key 'general.architecture' " + found + "; read are " + known +
                  ". For another model give its folder with config.json and "
                  "safetensors");
  return nullptr;
}

std::string spell(double value) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value ||
        static_cast<float>(std::strtod(text, nullptr)) ==
            static_cast<float>(value))
      break;
  }
  return text;
}

std::string quoted(std::string_view text) {
  std::string out;
  runtime::appendJsonString(out, text);
  return out;
}

int64_t Writer::size(const char *key, std::optional<int64_t> fallback) {
  std::string name = full(key);
  const Value *value = file.find(name);
  if (!value && fallback)
    return *fallback;
  std::optional<int64_t> found = file.integer(name);
  if (found && *found >= 1 && *found <= INT32_MAX)
    return *found;
  fail(name, "expected a whole number from 1 to 2147483647, found " +
                 (found   ? std::to_string(*found)
                  : value ? value->describe()
                          : "nothing"));
  return 1;
}

/// A whole number from 0 on; 0 if the key is absent.
int64_t Writer::count(const char *key) {
  std::string name = full(key);
  if (!file.find(name) || file.integer(name) == int64_t(0))
    return 0;
  return size(key);
}

/// The largest of a number for each layer, or the one for all.
int64_t Writer::largest(const char *key, std::optional<int64_t> fallback) {
  std::string name = full(key);
  const Value *value = file.find(name);
  if (!value || !value->isArray())
    return size(key, fallback);
  std::vector<double> each = file.numbers(name).value_or(std::vector<double>());
  double most = each.empty() ? 0 : *std::max_element(each.begin(), each.end());
  if (most >= 1 && most <= INT32_MAX && most == std::floor(most))
    return static_cast<int64_t>(most);
  fail(name, "expected whole numbers up to 2147483647, one of them above 0");
  return 1;
}

double Writer::number(const char *key, double fallback) {
  std::string name = full(key);
  const Value *value = file.find(name);
  if (!value)
    return fallback;
  std::optional<double> found = file.real(name);
  if (found && *found > 0)
    return *found;
  fail(name, "expected a number above 0, found " +
                 (found ? spell(*found) : value->describe()));
  return fallback;
}

void failAt(const File &file, const std::string &key, const std::string &what,
            DiagnosticEngine &diags) {
  const Value *value = file.find(key);
  diags.error(atPath(file.path()),
              "key '" + key + "'" +
                  (value ? " at byte " + std::to_string(value->offset) : "") +
                  ": " + what);
}

void Writer::fail(const std::string &key, const std::string &what) {
  failAt(file, key, what, diags);
  failed = true;
}

/// The first of these names that the class reads; null if it reads none.
const char *Writer::nameOf(std::initializer_list<const char *> names) const {
  for (const char *name : names)
    if (known.count(name))
      return name;
  return nullptr;
}

void Writer::putAs(std::initializer_list<const char *> names,
                   const std::string &value) {
  if (const char *name = nameOf(names))
    putAlways(name, value);
}

bool Writer::has(const char *tensor) const {
  return file.findTensor(std::string("blk.0.") + tensor) != nullptr;
}

void Writer::putSizes() {
  width = size("embedding_length");
  // Layers that predict further tokens stand behind the others.
  layers = size("block_count") - count("nextn_predict_layers");
  if (layers < 1)
    return fail(full("nextn_predict_layers"), "leaves no layers");
  if (layers > static_cast<int64_t>(file.tensors().size()))
    return fail(full("block_count"),
                "is " + std::to_string(layers) + ", but the file has " +
                    std::to_string(file.tensors().size()) + " tensors");
  putAs({"hidden_size", "n_embd", "d_model"}, std::to_string(width));
  putAs({"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
        std::to_string(layers));
  length = size("context_length");
  putAs({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"},
        std::to_string(length));
  const char *eps = file.find(full("attention.layer_norm_rms_epsilon"))
                        ? "attention.layer_norm_rms_epsilon"
                        : "attention.layer_norm_epsilon";
  putAs({"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon",
         "norm_eps", "layernorm_epsilon"},
        spell(number(eps, 1e-5)));
  if (nameOf({"num_attention_heads", "n_head", "n_heads"}))
    putHeads();
  const CheckpointTensor *table = file.findTensor("token_embd.weight");
  if (!table || table->shape.size() != 2) {
    diags.error(atPath(file.path()),
                table ? "tensor 'token_embd.weight' has shape " +
                            runtime::formatShape(table->shape) +
                            ", expected a matrix"
                      : "tensor 'token_embd.weight' is missing");
    failed = true;
    return;
  }
  putAs({"vocab_size", "padded_vocab_size"}, std::to_string(table->shape[0]));
  putFlag("tie_word_embeddings", !file.findTensor("output.weight"));
}

void Writer::putHeads() {
  heads = size("attention.head_count");
  headDim = size("attention.key_length", std::max<int64_t>(width / heads, 1));
  if (int64_t values = size("attention.value_length", headDim);
      values != headDim && !latent())
    fail(full("attention.value_length"),
         "expected " + std::to_string(headDim) +
             ", the length of the keys, found " + std::to_string(values));
  putAs({"num_attention_heads", "n_head", "n_heads"}, std::to_string(heads));
  kvHeads = largest("attention.head_count_kv", heads);
  if (!latent()) {
    putAs({"num_key_value_heads", "num_kv_heads", "multi_query_group_num"},
          std::to_string(kvHeads));
    putAs({"head_dim", "kv_channels"}, std::to_string(headDim));
  }
  bool needed = std::string_view(family.name) != "qwen3moe" &&
                std::string_view(family.name) != "qwen3vlmoe" &&
                std::string_view(family.name) != "olmoe";
  // Of experts; a model without such has one length.
  if (std::string_view(family.name) == "llama4")
    put("intermediate_size",
        size(count("expert_count") ? "expert_feed_forward_length"
                                   : "feed_forward_length"));
  if (file.find(full("feed_forward_length")) || needed)
    putAs({"intermediate_size_mlp", "intermediate_size", "ffn_hidden_size",
           "n_inner"},
          std::to_string(largest("feed_forward_length", {})));
}

/// A vector of f32 as a list, if the file has it.
void Writer::putFactors(const char *tensor, const char *key,
                        std::string &scaling) {
  const CheckpointTensor *factors = file.findTensor(tensor);
  if (!factors)
    return;
  if (factors->dtype != runtime::DType::F32 || factors->encoding ||
      factors->shape.size() != 1) {
    diags.error(atPath(file.path()), std::string("tensor '") + tensor +
                                         "': expected a vector of F32");
    failed = true;
    return;
  }
  scaling += std::string(", \"") + key + "\": [";
  for (uint64_t i = 0; i < factors->bytes / 4; ++i) {
    float value;
    std::memcpy(&value, factors->data + 4 * i, 4);
    if (!(value > 0) || !std::isfinite(value)) {
      diags.error(atPath(file.path()), std::string("tensor '") + tensor +
                                           "': expected numbers above 0");
      failed = true;
      return;
    }
    scaling += (i ? ", " : "") + spell(value);
  }
  scaling += "]";
}

/// The share of `whole` from which the class gets `part` back, as it cuts the
/// product off.
static std::string partOf(int64_t part, int64_t whole) {
  double share = double(part) / double(whole);
  if (int64_t(share * double(whole)) < part)
    share = std::nextafter(share, INFINITY);
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", share);
  return text;
}

void Writer::putRotary() {
  if (!nameOf({"rope_theta", "rope_ratio"}))
    return;
  double theta = number("rope.freq_base", 10000);
  if (known.count("rope_ratio"))
    put("rope_ratio", spell(theta / 10000));
  else
    put("rope_theta", spell(theta));
  int64_t turned = size("rope.dimension_count", headDim);
  if (latent())
    ; // a part of a head of its own
  else if (known.count("rotary_dim"))
    put("rotary_dim", turned);
  else
    putAs({"rotary_pct", "partial_rotary_factor"}, partOf(turned, headDim));
  if (turned != headDim && !latent() && !rotatesParts())
    fail(full("rope.dimension_count"), "expected whole heads of " +
                                           std::to_string(headDim) +
                                           ", found " + std::to_string(turned));
  std::string_view type =
      file.text(full("rope.scaling.type")).value_or("linear");
  double factor = number("rope.scaling.factor", number("rope.scale_linear", 1));
  int64_t original = size("rope.scaling.original_context_length", length);
  std::string tail =
      ", \"original_max_position_embeddings\": " + std::to_string(original);
  std::string scaling;
  if (file.findTensor("rope_freqs.weight")) {
    // Llama 3.1's scaling, already made into a divisor for each pair.
    scaling = "{\"type\": \"longrope\", \"factor\": 1, "
              "\"attention_factor\": 1" +
              tail;
    putFactors("rope_freqs.weight", "short_factor", scaling);
    putFactors("rope_freqs.weight", "long_factor", scaling);
    if (factor != 1)
      fail(full("rope.scaling.factor"),
           "stands beside the tensor 'rope_freqs.weight'; expected one of the "
           "two");
  } else if (file.findTensor("rope_factors_long.weight")) {
    scaling = "{\"type\": \"longrope\"";
    double attention = number("rope.scaling.attn_factor", 0.5);
    if (file.find(full("rope.scaling.attn_factor")))
      scaling += ", \"attention_factor\": " + spell(attention);
    putFactors("rope_factors_short.weight", "short_factor", scaling);
    putFactors("rope_factors_long.weight", "long_factor", scaling);
    put("original_max_position_embeddings", original);
  } else if (type == "yarn") {
    scaling = "{\"type\": \"yarn\", \"factor\": " + spell(factor) + tail;
    for (auto [key, name] :
         {std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
          std::pair("rope.scaling.yarn_beta_slow", "beta_slow")})
      if (file.find(full(key)))
        scaling += std::string(", \"") + name + "\": " + spell(number(key, 1));
    double ofLogarithm = number("rope.scaling.yarn_log_multiplier", 1);
    if (this->type == "ministral3" &&
        file.find(full("rope.scaling.yarn_log_multiplier")))
      scaling += ", \"mscale\": 1, \"mscale_all_dim\": " + spell(ofLogarithm);
    if (latent() && file.find(full("rope.scaling.yarn_log_multiplier")))
      for (const char *name : {"mscale", "mscale_all_dim"})
        scaling +=
            std::string(", \"") + name + "\": " + spell(ofLogarithm / 0.1f);
    if (double attention = number("rope.scaling.attn_factor", 1);
        attention != 1)
      scaling += ", \"attention_factor\": " +
                 spell(attention * (1 + 0.1 * std::log(factor)));
  } else if (type == "linear" && factor != 1) {
    scaling = "{\"type\": \"linear\", \"factor\": " + spell(factor);
  } else if (type != "linear" && type != "none") {
    fail(full("rope.scaling.type"),
         "expected none, linear, or yarn, or longrope with its tensors of "
         "factors, found '" +
             std::string(type.substr(0, 64)) + "'");
  }
  if (this->type == "ministral3") {
    // The class has a scaling of its own where none is said.
    if (scaling.empty())
      scaling = "{\"type\": \"default\"";
    if (file.find(full("attention.temperature_scale")))
      scaling +=
          ", \"llama_4_scaling_beta\": " +
          spell(number("attention.temperature_scale", 1)) +
          (scaling.find("original_max") == std::string::npos ? tail : "");
  }
  putSections(scaling);
  if (!scaling.empty())
    put("rope_scaling", scaling + "}");
}

/// How many pairs of channels turn by numbers, rows and columns where there are
/// pictures.
void Writer::putSections(std::string &scaling) {
  const std::string key = full("rope.dimension_sections");
  std::optional<std::vector<double>> numbers = file.numbers(key);
  if (!file.sight() || !file.find(key))
    return;
  if (scaling.empty())
    scaling = "{\"type\": \"default\"";
  scaling += ", \"mrope_section\": [";
  for (size_t i = 0; i < 3; ++i) {
    double each = numbers && numbers->size() >= 3 ? (*numbers)[i] : -1;
    if (each < 0 || each > INT32_MAX || each != std::floor(each))
      return fail(key, "expected three whole numbers: how many pairs of "
                       "channels turn by numbers, rows and columns");
    scaling += (i ? ", " : "") + std::to_string(static_cast<int64_t>(each));
  }
  scaling += "]";
}

void Writer::putTokens() {
  const std::pair<const char *, const char *> ids[] = {
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"}};
  for (auto [key, name] : ids)
    if (std::optional<int64_t> id = file.integer(name))
      putAlways(key, std::to_string(*id));
  // A turn may end otherwise than a text.
  std::vector<int64_t> ends;
  for (const char *name :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (std::optional<int64_t> id = file.integer(name);
        id && std::find(ends.begin(), ends.end(), *id) == ends.end())
      ends.push_back(*id);
  std::string list;
  for (int64_t id : ends)
    list += (list.empty() ? "" : ", ") + std::to_string(id);
  if (!list.empty())
    putAlways("eos_token_id", "[" + list + "]");
}

/// Whether a type with `bits` fewer bits than f32, and the stored exponents
/// from `least` to `most`, has all values of a tensor of f32.
static bool fits(const CheckpointTensor &info, int bits, uint32_t least,
                 uint32_t most) {
  for (uint64_t i = 0; i < info.bytes / 4; ++i) {
    uint32_t value;
    std::memcpy(&value, info.data + 4 * i, 4);
    uint32_t exponent = value >> 23 & 255;
    if ((value & 0x7fffffff) != 0 &&
        ((value & ((1u << bits) - 1)) || exponent < least || exponent > most))
      return false;
  }
  return true;
}

/// The narrowest type that holds every value of every tensor. Tensors of f32
/// are read for that, in full only as long as they fit.
std::string Writer::dtype() const {
  bool half = true, brain = true;
  for (const File *each : {&file, file.sight()})
    for (const CheckpointTensor &info :
         each ? each->tensors() : std::vector<CheckpointTensor>()) {
      half &= info.dtype != runtime::DType::BF16;
      brain &= info.dtype != runtime::DType::F16;
      if (info.dtype != runtime::DType::F32)
        continue;
      half = half && !info.encoding && fits(info, 13, 113, 142);
      brain = brain && !info.encoding && fits(info, 16, 0, 254);
    }
  return half ? "float16" : brain ? "bfloat16" : "float32";
}

std::optional<std::string> Writer::write() {
  chooseType();
  for (const hf::ClassKeys &keys : hf::classKeys())
    if (type == keys.modelType)
      for (std::string &name : hf::namesIn(keys.read))
        known.insert(std::move(name));
  // Keys without a default of the class's own.
  if (type == "deepseek_v2" && count("expert_count"))
    for (const char *name :
         {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
          "n_shared_experts", "n_group", "topk_group", "topk_method",
          "routed_scaling_factor", "norm_topk_prob"})
      known.insert(name);
  putAlways("model_type", quoted(type));
  putAlways("architectures", "[" + quoted(className) + "]");
  putSizes();
  if (!failed) {
    putRotary();
    putFamily();
  }
  if (!failed)
    checkKeys();
  putTokens();
  if (failed)
    return std::nullopt;
  putAlways("torch_dtype", quoted(dtype()));
  return text + "\n}\n";
}

std::optional<std::string> makeConfig(const File &file, const Family &family,
                                      DiagnosticEngine &diags) {
  return Writer(file, family, diags).write();
}

} // namespace attune::gguf
