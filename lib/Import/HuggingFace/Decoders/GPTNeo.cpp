//===- GPTNeo.cpp - config.json of GPT-Neo ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPT2Family.h"

namespace attune::hf {

using namespace spec;

/// Adds the kind that an element of `key` names.
static bool addKind(Config &config, const char *key, const Value &kind,
                    std::vector<std::string> &kinds) {
  if (kind.isString() && (kind.text == "global" || kind.text == "local")) {
    kinds.push_back(kind.text);
    return true;
  }
  config.getReporter().error(kind.offset, config.child(key),
                             "expected \"global\" or \"local\"");
  return false;
}

/// "global" or "local" for each layer: "attention_types" is a list of
/// [kinds, how many times], so [[["global", "local"], 12]] is 24 layers;
/// "attention_layers", which counts if it is there, writes them out.
static std::vector<std::string> readKinds(Config &config, int64_t layers) {
  std::vector<std::string> kinds;
  const Value *types = config.get("attention_types");
  const Value *written = config.get("attention_layers");
  const char *key = written ? "attention_layers" : "attention_types";
  auto wrong = [&](const Value &value, const char *expected) {
    config.getReporter().error(value.offset, config.child(key), expected);
    return std::vector<std::string>();
  };
  if (written) {
    if (!written->isArray())
      return wrong(*written, "expected an array of strings");
    for (const Value &kind : written->elements)
      if (!addKind(config, key, kind, kinds))
        return {};
  } else if (types) {
    constexpr const char *expected =
        "expected a list of pairs such as [[\"global\", \"local\"], 12]";
    if (!types->isArray())
      return wrong(*types, expected);
    for (const Value &pair : types->elements) {
      if (!pair.isArray() || pair.elements.size() != 2 ||
          !pair.elements[0].isArray() ||
          pair.elements[1].kind != Value::Kind::Integer ||
          pair.elements[1].integer < 0 || pair.elements[1].integer > layers)
        return wrong(pair, expected);
      for (int64_t i = 0; i < pair.elements[1].integer; ++i)
        for (const Value &kind : pair.elements[0].elements)
          if (static_cast<int64_t>(kinds.size()) <= layers &&
              !addKind(config, key, kind, kinds))
            return {};
    }
  } else {
    for (int64_t i = 0; i < layers; ++i)
      kinds.push_back(i % 2 ? "local" : "global");
  }
  if (static_cast<int64_t>(kinds.size()) != layers)
    config.error(key, "does not name the attention of " +
                          std::to_string(layers) + " layers");
  return kinds;
}

std::optional<Model> importGPTNeo(ImportContext &context) {
  Config &config = context.config;
  GPT2Defaults defaults;
  defaults.widthKey = "hidden_size";
  defaults.headsKey = "num_heads";
  defaults.layersKey = "num_layers";
  defaults.lengthKey = "max_position_embeddings";
  defaults.innerKey = "intermediate_size";
  defaults.width = 2048;
  defaults.heads = 16;
  defaults.layers = 24;
  defaults.length = 2048;
  int64_t window = config.integer("window_size", 256);
  std::vector<std::string> kinds =
      readKinds(config, config.layers(defaults.layersKey, defaults.layers));
  // Dropout acts in training only.
  config.ignore({"attention_dropout", "embed_dropout", "resid_dropout",
                 "classifier_dropout", "gradient_checkpointing"});
  std::optional<GPT2Config> gpt = readGPT2(context, "gpt_neo", defaults);
  if (!gpt)
    return std::nullopt;
  Attention &attention = *gpt->block.attention;
  attention.qkvBias = false;
  attention.scale = 1; // scores are not scaled
  Block local = gpt->block;
  local.attention->window = window;
  gpt->kinds = {gpt->block, local};
  for (const std::string &kind : kinds)
    gpt->kindOf.push_back(kind == "local");
  gpt->tensors = {{"norm1", "ln_1"},
                  {"attention.q", "attn.attention.q_proj"},
                  {"attention.k", "attn.attention.k_proj"},
                  {"attention.v", "attn.attention.v_proj"},
                  {"attention.o", "attn.attention.out_proj"},
                  {"norm2", "ln_2"},
                  {"ffn.up", "mlp.c_fc"},
                  {"ffn.down", "mlp.c_proj"}};
  return buildGPT2(context, *gpt);
}

} // namespace attune::hf
