//===- GenerationConfig.cpp - How a folder wants to generate --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationConfig.h"
#include "JsonFile.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

namespace attune::hf {

using spec::Value;

/// Token ids that the model has a row for. Others can neither be made nor be
/// read; real configurations name such for padding.
static std::vector<int64_t> readIds(Config &config, std::string_view key,
                                    int64_t vocab, DiagnosticEngine &diags) {
  std::vector<int64_t> ids;
  for (int64_t id : config.ids(key))
    if (id < vocab)
      ids.push_back(id);
    else
      diags.warning(config.locate(key),
                    config.child(key) + ": token " + std::to_string(id) +
                        " is not in the vocabulary of " +
                        std::to_string(vocab) + " and is left out");
  return ids;
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

/// Default of transformers: it samples among this many of the likeliest tokens.
static constexpr int64_t defaultTopK = 50;
/// The value that old configurations have if nobody set one.
static constexpr int64_t defaultMaxLength = 20;

namespace {
/// A setting of transformers that may change a text.
struct Unsupported {
  const char *name;
  double neutral; ///< this number, null, false, "" and [] change nothing
};
} // namespace

static constexpr Unsupported unsupported[] = {
    {"bad_words_ids", 0},
    {"compression_ratio_threshold", 0},
    {"condition_on_prev_tokens", 0},
    {"constraints", 0},
    {"diversity_penalty", 0},
    {"dola_layers", 0},
    {"encoder_no_repeat_ngram_size", 0},
    {"encoder_repetition_penalty", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"exponential_decay_length_penalty", 0},
    {"force_words_ids", 0},
    {"forced_decoder_ids", 0},
    {"forced_eos_token_id", 0},
    {"guidance_scale", 1},
    {"logprob_threshold", 0},
    {"max_time", 0},
    {"no_speech_threshold", 0},
    {"num_beam_groups", 1},
    {"num_return_sequences", 1},
    {"penalty_alpha", 0},
    {"sequence_bias", 0},
    {"stop_strings", 0},
    {"top_h", 0},
    {"typical_p", 1},
    {"watermarking_config", 0},
};

static bool changesNothing(const Value &value, double neutral) {
  switch (value.kind) {
  case Value::Kind::Null:
    return true;
  case Value::Kind::Boolean:
    return !value.boolean;
  case Value::Kind::Integer:
  case Value::Kind::Real:
    return value.real == neutral;
  case Value::Kind::String:
    return value.text.empty();
  case Value::Kind::Array:
    return value.elements.empty();
  case Value::Kind::Object:
    return value.members.empty();
  }
  return false;
}

static void warnOfUnsupported(Config &config, const GenerationSource &source,
                              DiagnosticEngine &diags) {
  auto isRead = [&](std::string_view name) {
    return (source.hears && name == "forced_decoder_ids") ||
           (source.codes && name == "guidance_scale");
  };
  std::string names;
  for (const Unsupported &setting : unsupported)
    if (const Value *value = config.peek(setting.name))
      if (!isRead(setting.name) && !changesNothing(*value, setting.neutral))
        names += (names.empty() ? "" : ", ") + std::string(setting.name);
  if (!names.empty())
    diags.warning(config.locate(),
                  "generate does not have these settings, so that its text "
                  "may differ from that of transformers: " +
                      names);
  const Value *beams = config.peek("num_beams");
  if (beams && beams->isNumber() && beams->real > 1) {
    char option[32];
    std::snprintf(option, sizeof(option), "--beams=%.0f", beams->real);
    diags.warning(config.locate("num_beams"),
                  std::string("transformers searches with beams here; "
                              "generate does so with ") +
                      option);
  }
}

/// The number of a setting; nothing if it is absent or wrong.
static std::optional<double> readSetting(Config &config,
                                         const spec::SamplingSetting &setting) {
  using Setting = spec::SamplingSetting;
  const Value *value = config.get(setting.name);
  if (!value)
    return std::nullopt;
  if (setting.kind == Setting::Flag && setting.most == 2 && value->isString()) {
    if (value->text == "never")
      return 2;
    config.error(setting.name, "expected true, false or \"never\"");
    return std::nullopt;
  }
  if (setting.kind == Setting::Flag)
    return config.flag(setting.name, false);
  bool whole = setting.kind == Setting::Whole;
  // Some programs write -1 for "no limit".
  if (whole && value->isNumber() && value->real == -1)
    return setting.neutral;
  if (value->isNumber() && value->real >= setting.least &&
      value->real <= setting.most &&
      (!whole || std::floor(value->real) == value->real))
    return value->real;
  char range[64];
  std::snprintf(range, sizeof(range), "expected a%s number from %.10g to %.10g",
                whole ? " whole" : "", setting.least, setting.most);
  config.error(setting.name, range);
  return std::nullopt;
}

static void readSampling(Config &config, const GenerationSource &source,
                         spec::Generation &generation,
                         DiagnosticEngine &diags) {
  bool samples = config.flag("do_sample", false);
  for (const spec::SamplingSetting &setting : spec::samplingSettings()) {
    std::string_view name = setting.name;
    std::optional<double> value = readSetting(config, setting);
    if (name == "top_k" && samples && !config.peek(name))
      value = defaultTopK;
    if (!value || *value == setting.neutral)
      continue;
    // The context ends the text there anyway.
    if (name == "max_length" &&
        (*value == defaultMaxLength ||
         (source.context > 0 && *value >= double(source.context))))
      continue;
    generation.sampling.emplace_back(&setting, *value);
  }
  // One of 1 or less guides nothing.
  if (source.codes && config.peek("guidance_scale"))
    source.codes->guidance = std::max(config.real("guidance_scale", 1.0), 1.0);
  warnOfUnsupported(config, source, diags);
}

//===----------------------------------------------------------------------===//
// Special tokens
//===----------------------------------------------------------------------===//

static void readTokens(Config &from, const GenerationSource &source,
                       spec::Generation &generation, DiagnosticEngine &diags) {
  int64_t vocab = source.vocabulary;
  std::vector<int64_t> eos = readIds(from, "eos_token_id", vocab, diags);
  std::vector<int64_t> bos = readIds(from, "bos_token_id", vocab, diags);
  std::vector<int64_t> pad = readIds(from, "pad_token_id", vocab, diags);
  if (generation.eos.empty())
    generation.eos = eos;
  if (!generation.bos && !bos.empty())
    generation.bos = bos.front();
  if (!generation.pad && !pad.empty())
    generation.pad = pad.front();
  if (!source.encoderDecoder)
    return;
  auto one = [&](const char *key, std::optional<int64_t> &id) {
    std::vector<int64_t> ids = readIds(from, key, vocab, diags);
    if (!id && !ids.empty())
      id = ids.front();
  };
  one("decoder_start_token_id", generation.decoderStart);
  one("forced_bos_token_id", generation.forcedBos);
}

/// Ids beyond the vocabulary are never said anyway.
static void readBanned(Config &from, int64_t vocab,
                       spec::Generation &generation) {
  auto several = [&](const char *key, std::vector<int64_t> &ids) {
    for (int64_t id : from.ids(key))
      if (id < vocab)
        ids.push_back(id);
  };
  several("suppress_tokens", generation.suppress);
  several("begin_suppress_tokens", generation.beginSuppress);
}

bool readGeneration(Config &config, const std::string &folder,
                    const GenerationSource &source,
                    spec::Generation &generation, DiagnosticEngine &diags) {
  std::filesystem::path path =
      std::filesystem::path(folder) / "generation_config.json";
  auto readAll = [&](Config &from) {
    readBanned(from, source.vocabulary, generation);
    if (source.languageModel)
      readSampling(from, source, generation, diags);
  };
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    readAll(config);
    readTokens(config, source, generation, diags);
    return true;
  }
  auto file = readSourceFile(path.string(), diags);
  if (!file)
    return false;
  JsonFile json(file, diags);
  if (!json.isObject())
    return false;
  KeyReport unused; // finish() is not called
  Config extra(*json.root, "", json.reporter, unused);
  readTokens(extra, source, generation, diags);
  readAll(extra);
  if (extra.hasErrors())
    return false;
  readTokens(config, source, generation, diags);
  return true;
}

void fillGeneration(const spec::Generation &defaults, int64_t vocab,
                    spec::Generation &generation) {
  auto fill = [&](std::optional<int64_t> &id, std::optional<int64_t> fallback) {
    if (!id && fallback && *fallback < vocab)
      id = fallback;
  };
  if (generation.eos.empty())
    for (int64_t id : defaults.eos)
      if (id < vocab)
        generation.eos.push_back(id);
  fill(generation.bos, defaults.bos);
  fill(generation.pad, defaults.pad);
  fill(generation.decoderStart, defaults.decoderStart);
}

} // namespace attune::hf
