//===- GgufConfig.cpp - The config.json of a GGUF file ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufConfig.h"

#include "attune/Runtime/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace attune::gguf {

static constexpr Family kFamilies[] = {
    {"llama", "llama", "LlamaForCausalLM", true, false},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", false, false},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", false, false},
    {"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", false, false},
    {"gemma", "gemma", "GemmaForCausalLM", false, true},
    {"gemma2", "gemma2", "Gemma2ForCausalLM", false, true},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", false, true},
    {"phi3", "phi3", "Phi3ForCausalLM", false, false},
};

const Family *findFamily(const File &file, DiagnosticEngine &diags) {
  std::optional<std::string_view> name = file.text("general.architecture");
  std::string known;
  for (const Family &family : kFamilies) {
    if (name == std::string_view(family.name))
      return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
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

/// The shortest text that is this number in f32, as which the keys came.
static std::string spell(double value) {
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

static std::string quoted(std::string_view text) {
  std::string out;
  runtime::appendJsonString(out, text);
  return out;
}

namespace {
class Writer {
public:
  Writer(const File &file, const Family &family, DiagnosticEngine &diags)
      : file(file), family(family), diags(diags) {}

  std::optional<std::string> write();

private:
  std::string full(const char *key) const {
    return std::string(family.name) + "." + key;
  }
  void fail(const std::string &key, const std::string &what) {
    const Value *value = file.find(key);
    diags.error(atPath(file.path()),
                "key '" + key + "'" +
                    (value ? " at byte " + std::to_string(value->offset) : "") +
                    ": " + what);
    failed = true;
  }
  /// A whole number from 1 to 2^31 - 1; without `fallback` it must be there.
  int64_t size(const char *key, std::optional<int64_t> fallback = {});
  double number(const char *key, double fallback);
  void put(const char *key, const std::string &value) {
    text += (text.empty() ? "{\n \"" : ",\n \"") + std::string(key) +
            "\": " + value;
  }
  void put(const char *key, int64_t value) { put(key, std::to_string(value)); }
  void putSizes();
  void putRotary();
  void putFactors(const char *tensor, const char *key, std::string &scaling);
  void putFamily();
  void putTokens();
  std::string dtype() const;

  const File &file;
  const Family &family;
  DiagnosticEngine &diags;
  std::string text;
  bool failed = false;
  int64_t layers = 0, width = 0, heads = 1, headDim = 0, length = 0;
};
} // namespace

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

void Writer::putSizes() {
  width = size("embedding_length");
  layers = size("block_count");
  heads = size("attention.head_count");
  length = size("context_length");
  headDim = size("attention.key_length", std::max<int64_t>(width / heads, 1));
  if (int64_t values = size("attention.value_length", headDim);
      values != headDim)
    fail(full("attention.value_length"),
         "expected " + std::to_string(headDim) +
             ", the length of the keys, found " + std::to_string(values));
  put("hidden_size", width);
  put("num_hidden_layers", layers);
  put("num_attention_heads", heads);
  put("num_key_value_heads", size("attention.head_count_kv", heads));
  put("head_dim", headDim);
  put("max_position_embeddings", length);
  put("rms_norm_eps", spell(number("attention.layer_norm_rms_epsilon", 1e-5)));
  if (file.find(full("feed_forward_length")) ||
      std::string_view(family.name) != "qwen3moe")
    put("intermediate_size", size("feed_forward_length"));
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
  put("vocab_size", table->shape[0]);
  put("tie_word_embeddings",
      file.findTensor("output.weight") ? "false" : "true");
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

void Writer::putRotary() {
  put("rope_theta", spell(number("rope.freq_base", 10000)));
  int64_t turned = size("rope.dimension_count", headDim);
  if (std::string_view(family.name) == "phi3")
    put("partial_rotary_factor", spell(double(turned) / double(headDim)));
  else if (turned != headDim)
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
  if (!scaling.empty())
    put("rope_scaling", scaling + "}");
}

/// What published files leave to the program that reads them.
void Writer::putFamily() {
  std::string_view name = family.name;
  bool slides = file.find(full("attention.sliding_window"));
  std::string type = family.modelType, className = family.className;
  if (name == "llama" && file.find(full("expert_count")) &&
      file.integer(full("expert_count")) != 0) {
    type = "mixtral";
    className = "MixtralForCausalLM";
    put("num_local_experts", size("expert_count"));
    put("num_experts_per_tok", size("expert_used_count"));
  } else if (name == "llama" && slides) {
    type = "mistral";
    className = "MistralForCausalLM";
  }
  put("model_type", quoted(type));
  put("architectures", "[" + quoted(className) + "]");
  if (name == "qwen3moe") {
    put("num_experts", size("expert_count"));
    put("num_experts_per_tok", size("expert_used_count"));
    put("moe_intermediate_size", size("expert_feed_forward_length"));
    put("norm_topk_prob", "true");
  }
  if (name == "qwen2" || name == "qwen3" || name == "qwen3moe")
    return;
  if (slides)
    put("sliding_window", size("attention.sliding_window"));
  else if (name == "phi3")
    put("sliding_window", "null");
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
  }
}

void Writer::putTokens() {
  const std::pair<const char *, const char *> ids[] = {
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"}};
  for (auto [key, name] : ids)
    if (std::optional<int64_t> id = file.integer(name))
      put(key, *id);
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
    put("eos_token_id", "[" + list + "]");
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
  for (const CheckpointTensor &info : file.tensors()) {
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
  if (std::optional<int64_t> parts = file.integer("split.count");
      parts && *parts > 1) {
    fail("split.count", "the model is split over " + std::to_string(*parts) +
                            " files; join them first (llama-gguf-split "
                            "--merge)");
    return std::nullopt;
  }
  putSizes();
  putRotary();
  putFamily();
  putTokens();
  if (failed)
    return std::nullopt;
  put("torch_dtype", quoted(dtype()));
  return text + "\n}\n";
}

std::optional<std::string> makeConfig(const File &file, const Family &family,
                                      DiagnosticEngine &diags) {
  return Writer(file, family, diags).write();
}

} // namespace attune::gguf
