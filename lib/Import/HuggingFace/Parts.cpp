//===- Parts.cpp - Parts of a folder that are no model of ours --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"

#include "Architectures.h"

#include <algorithm>
#include <set>

namespace attune::hf {

using spec::Value;

static bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// A key of the whole that is about its text model.
static bool isShared(const std::string &key) {
  for (const char *known :
       {"dtype", "torch_dtype", "bos_token_id", "eos_token_id", "pad_token_id",
        "tie_word_embeddings", "quantization_config"})
    if (key == known)
      return true;
  return false;
}

/// Defaults of types that are otherwise those of another architecture.
static void addDefaults(TextPart &part, std::string_view type) {
  struct Default {
    std::string_view type;
    const char *key;
    double number;
  };
  static constexpr Default defaults[] = {
      {"qwen2_vl_text", "rms_norm_eps", 1e-5},
      {"qwen2_vl_text", "rope_theta", 1e6},
      {"qwen2_5_vl_text", "rms_norm_eps", 1e-5},
      {"qwen2_5_vl_text", "rope_theta", 1e6},
      {"qwen3_vl_text", "max_position_embeddings", 128000},
      {"qwen3_vl_text", "rope_theta", 5e5},
      {"qwen3_vl_moe_text", "intermediate_size", 5632},
      {"qwen3_vl_moe_text", "num_attention_heads", 16},
      {"qwen3_vl_moe_text", "num_key_value_heads", 16},
      {"qwen3_vl_moe_text", "max_position_embeddings", 128000},
      {"qwen3_vl_moe_text", "rope_theta", 5e5},
      {"qwen3_vl_moe_text", "num_experts", 60},
      {"qwen3_vl_moe_text", "num_experts_per_tok", 4},
      {"qwen3_vl_moe_text", "moe_intermediate_size", 1408},
  };
  const Value *rope = part.object.find("rope_parameters");
  bool hasTheta = rope && rope->find("rope_theta");
  for (const Default &known : defaults) {
    bool isTheta = std::string_view(known.key) == "rope_theta";
    if (known.type != type || part.object.find(known.key) ||
        (isTheta && hasTheta))
      continue;
    Value value;
    value.real = known.number;
    value.integer = static_cast<int64_t>(known.number);
    value.kind = known.number < 1 ? Value::Kind::Real : Value::Kind::Integer;
    value.offset = part.object.offset;
    part.object.members.push_back({known.key, value.offset, value});
  }
}

/// Files of Qwen2-VL and Qwen2.5-VL may have the keys of their text model
/// beside the others.
static std::optional<TextPart> qwenText(const std::string &whole,
                                        const Value &root, const Value *text) {
  TextPart part;
  std::string name = whole + "_text";
  part.whole = spec::quote(whole);
  part.type = spec::quote(name);
  bool apart = text && text->isObject();
  part.object = apart ? *text : root;
  std::vector<Value::Member> &members = part.object.members;
  for (const Value::Member &member : root.members)
    if (apart && !text->find(member.key) && isShared(member.key))
      members.push_back(member);
  members.erase(
      std::remove_if(members.begin(), members.end(),
                     [](const Value::Member &member) {
                       static const std::set<std::string> others = {
                           "architectures",       "image_token_id",
                           "model_type",          "text_config",
                           "video_token_id",      "vision_config",
                           "vision_end_token_id", "vision_start_token_id",
                           "vision_token_id"};
                       return others.count(member.key) != 0;
                     }),
      members.end());
  Value type;
  type.kind = Value::Kind::String;
  type.text = name;
  members.push_back({"model_type", root.offset, std::move(type)});
  addDefaults(part, name);
  return part;
}

/// Keys among those of a text model that its class does not read: PaliGemma's
/// say what the tower gives, those of Idefics 3 are left from the code that
/// trained it.
static void eraseForeignKeys(Value &object, std::string_view whole) {
  static const std::set<std::string> ofPaliGemma = {"num_image_tokens"};
  static const std::set<std::string> ofIdefics3 = {
      "_flash_attn_2_enabled", "is_llama_config", "perceiver_config",
      "pixel_shuffle_factor",  "qk_layer_norms",  "rope_interleaved",
      "use_resampler",         "vision_config"};
  const std::set<std::string> *foreign =
      whole == "paligemma"                        ? &ofPaliGemma
      : whole == "idefics3" || whole == "smolvlm" ? &ofIdefics3
                                                  : nullptr;
  std::vector<Value::Member> &members = object.members;
  if (foreign)
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [&](const Value::Member &member) {
                                   return foreign->count(member.key) != 0;
                                 }),
                  members.end());
}

std::optional<TextPart> findTextPart(const Value &root) {
  const Value *type = root.find("model_type");
  const Value *text = root.find("text_config");
  if (!type || !type->isString())
    return std::nullopt;
  if (type->text == "qwen2_vl" || type->text == "qwen2_5_vl")
    return qwenText(type->text, root, text);
  if (!text || !text->isObject())
    return std::nullopt;
  for (const Architecture &known : architectures())
    if (type->text == known.modelType)
      return std::nullopt;
  TextPart part;
  part.object = *text;
  part.whole = spec::quote(type->text);
  // What a class takes where the text model does not say what it is.
  const char *usual = type->text == "gemma3"      ? "gemma3_text"
                      : type->text == "paligemma" ? "gemma"
                      : type->text == "mistral3"  ? "mistral"
                      : type->text == "internvl"  ? "qwen2"
                      : type->text == "lfm2_vl"   ? "lfm2"
                      : type->text == "lfm2-vl"   ? "lfm2"
                                                  : "llama";
  const Value *inner = text->find("model_type");
  part.type = spec::quote(inner && inner->isString() ? inner->text : usual);
  if (!inner) {
    Value::Member member{"model_type", text->offset, *type};
    member.value.text = usual;
    part.object.members.push_back(std::move(member));
  }
  for (const Value::Member &member : root.members)
    if (isShared(member.key) && !text->find(member.key))
      part.object.members.push_back(member);
  eraseForeignKeys(part.object, type->text);
  if (inner)
    addDefaults(part, inner->text);
  return part;
}

namespace {
/// Where the text model's tensors are.
struct TextNames {
  std::string base, rest; ///< "model.", and what follows in the embedding's
  std::optional<std::string> found; ///< what the file has in place of the base
};
} // namespace

/// By the embedding, which every model has: "model.embed_tokens.weight" here.
static TextNames findTextNames(const spec::Model &model,
                               const Checkpoint &checkpoint) {
  std::string probe;
  for (const spec::Layer &layer : model.streams.front().layers)
    if (probe.empty() && std::holds_alternative<spec::Embedding>(layer.op))
      probe = spec::resolveWeight(layer, "weight").front().tensor;
  TextNames names;
  names.base = startsWith(probe, "model.") ? "model." : "";
  names.rest = probe.substr(names.base.size());
  for (const char *prefix :
       {"model.language_model.", "language_model.model.", "language_model.",
        "model.text_model.", "text_model.", "model.", ""})
    if (!names.found && checkpoint.find(prefix + names.rest))
      names.found = prefix;
  return names;
}

static void renameTensors(spec::Model &model, const TextNames &names,
                          const Checkpoint &checkpoint) {
  auto rename = [&](const std::string &tensor) -> std::string {
    if (startsWith(tensor, names.base))
      return *names.found + tensor.substr(names.base.size());
    // The head stands beside the text model or within it.
    std::string within = "language_model." + tensor;
    return checkpoint.find(within) ? within : tensor;
  };
  for (spec::Stream &stream : model.streams)
    for (spec::Layer &layer : stream.layers)
      for (const spec::WeightRole &role : spec::weightRoles(layer)) {
        std::vector<spec::WeightSource> sources =
            spec::resolveWeight(layer, role.role);
        for (spec::WeightSource &source : sources)
          source.tensor = rename(source.tensor);
        layer.weights[role.role] = std::move(sources);
      }
}

void renameMovedTensors(spec::Model &model, const Checkpoint &checkpoint,
                        Config &config, DiagnosticEngine &diags) {
  TextNames names = findTextNames(model, checkpoint);
  if (names.base.empty() || !names.found ||
      checkpoint.find(names.base + names.rest))
    return;
  renameTensors(model, names, checkpoint);
  diags.note(config.locate(),
             "the names of tensors " +
                 (names.found->empty()
                      ? "lack '" + names.base + "'"
                      : "have '" + *names.found + "' in place of '" +
                            names.base + "'") +
                 ", as another class saves them");
}

bool renameTextTensors(spec::Model &model, const TextPart &text,
                       const Checkpoint &checkpoint, Config &config,
                       DiagnosticEngine &diags) {
  TextNames names = findTextNames(model, checkpoint);
  if (!names.found) {
    config.error("", "the weights of " + text.whole + " hold no tensor '" +
                         names.rest +
                         "' under a name that text models have in "
                         "multimodal files");
    return false;
  }
  renameTensors(model, names, checkpoint);
  if (!text.sees)
    diags.note(config.locate(), text.whole +
                                    " is a multimodal model; its text "
                                    "model, " +
                                    text.type +
                                    " in text_config, is what is compiled");
  return true;
}

/// Files of Gemma 3n have keys of the layers that read those of others, which
/// only a forward pass without caches would use.
static void leaveOutSharedKeys(Config &config, const Value *layers,
                               const Checkpoint &checkpoint,
                               DiagnosticEngine &diags,
                               std::vector<std::string> &leftOut) {
  const Value *shared = config.peek("num_kv_shared_layers");
  if (!shared || !layers || !shared->isNumber() || !layers->isNumber() ||
      shared->real >= layers->real)
    return;
  size_t count = 0;
  for (const auto &[name, tensor] : checkpoint.tensors()) {
    size_t at = name.find("layers."), end = name.find(".self_attn.");
    if (at == std::string::npos || end == std::string::npos || end < at)
      continue;
    std::string number = name.substr(at + 7, end - at - 7);
    std::string part = name.substr(end + 11);
    bool key = startsWith(part, "k_proj.") || startsWith(part, "v_proj.") ||
               startsWith(part, "k_norm.");
    if (!key || number.empty() || number.size() > 6 ||
        number.find_first_not_of("0123456789") != std::string::npos ||
        std::stoll(number) < int64_t(layers->real - shared->real))
      continue;
    leftOut.push_back(name);
    ++count;
  }
  if (count)
    diags.note(config.locate("num_kv_shared_layers"),
               std::to_string(count) +
                   " tensors of keys and values are left out: their layers "
                   "read those of earlier ones");
}

/// What training the codebooks counted.
template <typename F>
static void leaveOutOfCodec(std::string_view name, bool hasShared, F leaveOut) {
  bool whole = name == "MusicgenForConditionalGeneration";
  if (!whole && name != "EncodecModel")
    return;
  std::string prefix = whole ? "audio_encoder." : "";
  for (int64_t k = 0; k < 64; ++k)
    for (const char *counted : {"cluster_size", "embed_avg", "inited"})
      leaveOut(prefix + "quantizer.layers." + std::to_string(k) + ".codebook." +
                   counted,
               "what training keeps of a codebook", "");
  if (!whole)
    return;
  leaveOut("decoder.model.decoder.embed_positions.",
           "positions, which are computed", "");
  if (hasShared)
    leaveOut("text_encoder.encoder.embed_tokens.", "a copy of the shared table",
             "");
}

std::vector<std::string> findLeftOut(Config &config, const ModelClass &chosen,
                                     const TextPart *text,
                                     const Checkpoint &checkpoint,
                                     DiagnosticEngine &diags) {
  std::vector<std::string> result;
  auto leaveOut = [&](const std::string &prefix, const std::string &what,
                      const char *key) {
    size_t count = 0;
    for (auto it = checkpoint.tensors().lower_bound(prefix);
         it != checkpoint.tensors().end() && startsWith(it->first, prefix);
         ++it)
      ++count;
    if (!count)
      return;
    result.push_back(prefix);
    diags.note(config.locate(key), std::to_string(count) + " tensors '" +
                                       prefix + "...' are left out: " + what);
  };
  const Value *further = config.peek("num_nextn_predict_layers");
  const Value *layers = config.peek("num_hidden_layers");
  if (further && layers && further->isNumber() && layers->isNumber())
    for (int64_t i = 0; i < std::min(further->real, 64.0); ++i)
      leaveOut(
          "model.layers." + std::to_string(int64_t(layers->real) + i) + ".",
          "a layer that predicts a further token", "num_nextn_predict_layers");
  leaveOutSharedKeys(config, layers, checkpoint, diags, result);
  for (const char *prefix : {"mtp.", "model.mtp.", "model.mtp_layers."})
    leaveOut(prefix, "layers that predict further tokens", "");
  for (const char *prefix :
       {"embeddings.mask_token", "dinov2.embeddings.mask_token",
        "dinov2_with_registers.embeddings.mask_token"})
    leaveOut(prefix, "what training puts in the place of patches", "");
  for (const char *prefix : {"masked_spec_embed", "wav2vec2.masked_spec_embed",
                             "hubert.masked_spec_embed"})
    leaveOut(prefix, "what training puts in the place of frames", "");
  std::string_view name = chosen.name;
  leaveOutOfCodec(name, checkpoint.find("text_encoder.shared.weight"),
                  leaveOut);
  if (name == "Wav2Vec2Model" || name == "HubertModel")
    for (const char *prefix :
         {"lm_head.", "quantizer.", "project_hid.", "project_q."})
      leaveOut(prefix, "a head that the model's class does not have", "");
  // Nobody reads what the last block makes of the text.
  const Value *blocks = config.peek("num_layers");
  if (name == "SD3Transformer2DModel")
    for (const char *part : {"add_q_proj.", "norm_added_q."})
      leaveOut("transformer_blocks." +
                   std::to_string(blocks && blocks->isNumber()
                                      ? int64_t(blocks->real) - 1
                                      : 17) +
                   ".attn." + part,
               "queries of the text, whose results nobody reads", "num_layers");
  for (const char *prefix : {"v_head.", "medusa_head."})
    leaveOut(prefix, "a head that the model's class does not have", "");
  if (name == "ViTMAEModel" || name == "ViTMAEForPreTraining")
    for (const char *prefix : {"decoder.", "mask_token"})
      leaveOut(prefix, "the decoder that training paints images with", "");
  // A classifier scores the mean of the patches.
  if (name == "SiglipForImageClassification" ||
      name == "Siglip2ForImageClassification")
    leaveOut("vision_model.head.",
             "a pooling that the model's class does not have", "");
  if (chosen.head == Head::LanguageModel)
    for (const char *prefix : {"score.", "classifier.", "qa_outputs."})
      leaveOut(prefix, "a head that the model's class does not have", "");
  if (text && text->sees)
    for (const std::string &prefix : text->unread)
      leaveOut(prefix,
               "a part of the tower of images behind the layer that is read",
               "");
  else if (text)
    for (const char *prefix :
         {"audio_tower.", "embed_audio.", "embed_vision.", "image_newline",
          "model.audio_tower.", "model.connector.", "model.embed_audio.",
          "model.embed_vision.", "model.image_newline",
          "model.multi_modal_projector.", "model.vision_model.",
          "model.vision_tower.", "model.visual.", "multi_modal_projector.",
          "vision_model.", "vision_tower.", "visual."})
      leaveOut(prefix, "a part of the multimodal model that is not text", "");
  return result;
}

} // namespace attune::hf
