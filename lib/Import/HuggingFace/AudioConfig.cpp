//===- AudioConfig.cpp - How a folder's model hears -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AudioConfig.h"

#include "JsonFile.h"

#include <algorithm>
#include <filesystem>

namespace attune::hf {

using spec::Audio;
using spec::Value;

namespace {
/// A file of the folder that need not be there.
struct SideFile {
  bool open(const std::string &folder, const char *name,
            DiagnosticEngine &diags) {
    std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      return true;
    auto source = readSourceFile(path.string(), diags);
    if (!source)
      return false;
    json.emplace(source, diags);
    return json->isObject();
  }
  bool isThere() const { return json.has_value(); }

  std::optional<JsonFile> json; ///< none: it is not there
};
} // namespace

/// "<|en|>" is the token of "en".
static std::string codeOf(const std::string &token) {
  size_t size = token.size();
  bool isToken = size > 4 && token.compare(0, 2, "<|") == 0 &&
                 token.compare(size - 2, 2, "|>") == 0;
  return isToken ? token.substr(2, size - 4) : token;
}

static void readFeatures(Config &features, spec::Model &model,
                         DiagnosticEngine &diags) {
  Audio &audio = *model.audio;
  constexpr int64_t most = 65536;
  audio.rate = features.integer("sampling_rate", audio.rate, 1000000);
  audio.window = features.integer("n_fft", audio.window, most);
  audio.hop = features.integer("hop_length", audio.hop, most);
  const std::vector<spec::Dim> &shape = model.inputs.front().shape;
  int64_t bands = features.integer("feature_size", shape[1].size);
  int64_t seconds = features.integer("chunk_length", 30);
  int64_t frames = seconds * audio.rate / audio.hop;
  std::string problem;
  if (bands != shape[1].size || frames != shape[2].size)
    problem = std::to_string(frames) + " frames of " + std::to_string(bands) +
              " bands, where the model takes " + std::to_string(shape[2].size) +
              " of " + std::to_string(shape[1].size);
  else if (features.flag("do_normalize", false))
    problem = "sounds of the same mean and variance (do_normalize)";
  else if (audio.rate < 1000 || audio.window < 2 ||
           frames * audio.hop <= audio.window / 2)
    problem = "frames that are longer than the sound";
  if (problem.empty() || features.hasErrors())
    return;
  diags.warning(features.locate(), "generate --audio does not work with this "
                                   "model: its features are " +
                                       problem);
  model.audio.reset();
}

/// Tokens by their names.
static void readNamed(Config &config, const char *key, int64_t vocab,
                      std::map<std::string, int64_t> &ids) {
  const Value *object = config.get(key);
  if (!object)
    return;
  if (!object->isObject())
    return config.error(key, "expected an object of tokens");
  for (const Value::Member &member : object->members)
    if (member.value.kind != Value::Kind::Integer || member.value.integer < 0)
      return config.error(key, "expected an object of tokens");
    else if (member.value.integer < vocab)
      ids[codeOf(member.key)] = member.value.integer;
}

static std::optional<int64_t> readToken(Config &config, const char *key,
                                        int64_t vocab) {
  std::vector<int64_t> ids = config.ids(key);
  if (ids.empty() || ids.front() >= vocab)
    return std::nullopt;
  return ids.front();
}

/// [[1, LANGUAGE], [2, TASK]]: what the decoder says first, where a language of
/// null is the one that is heard.
static void readForced(Config &config, int64_t vocab, Audio &audio) {
  const char *key = "forced_decoder_ids";
  const Value *pairs = config.get(key);
  if (!pairs)
    return;
  auto fail = [&] {
    config.error(key, "expected pairs [place, token], of the places from 1 on");
  };
  if (!pairs->isArray())
    return fail();
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < pairs->elements.size(); ++i) {
    const Value &pair = pairs->elements[i];
    if (!pair.isArray() || pair.elements.size() != 2 ||
        pair.elements[0].kind != Value::Kind::Integer ||
        pair.elements[0].integer != int64_t(i) + 1)
      return fail();
    const Value &token = pair.elements[1];
    if (token.kind == Value::Kind::Null)
      continue;
    if (token.kind != Value::Kind::Integer || token.integer < 0 ||
        token.integer >= vocab)
      return fail();
    if (i == 0 && !audio.languages.empty())
      audio.language = token.integer;
    else
      audio.start.push_back(token.integer);
  }
}

/// A language or a task that the folder always means.
static void readUsual(Config &config, Audio &audio, DiagnosticEngine &diags) {
  std::string language = codeOf(config.text("language", ""));
  std::string task = config.text("task", "");
  auto find = [&](const char *key, const std::string &name,
                  const std::map<std::string, int64_t> &ids) {
    auto found = ids.find(name);
    if (found != ids.end())
      return std::optional<int64_t>(found->second);
    diags.warning(config.locate(key),
                  config.child(key) + ": the model has no token of " +
                      spec::quote(name) + ", which is left out; --" + key +
                      " names another");
    return std::optional<int64_t>();
  };
  std::optional<int64_t> asked, work;
  if (!language.empty())
    asked = find("language", language, audio.languages);
  if (!task.empty())
    work = find("task", task, audio.tasks);
  if (!asked && !work)
    return;
  audio.language = asked;
  auto usual = audio.tasks.find("transcribe");
  if (!work && usual != audio.tasks.end())
    work = usual->second;
  audio.start.clear();
  if (work)
    audio.start.push_back(*work);
}

/// The text of a token that a file gives as such or within an object.
static std::string tokenOf(const Value *value) {
  if (value && value->isObject())
    value = value->find("content");
  return value && value->kind == Value::Kind::String ? value->text : "";
}

/// What transformers' tokenizer for CTC writes for each id of vocab.json; false
/// after an error. Special tokens are not written.
static bool readLetters(Config &config, const JsonFile &vocabulary,
                        const JsonFile *settings, int64_t width, Audio &audio,
                        DiagnosticEngine &diags) {
  auto setting = [&](const char *key, const char *fallback) {
    const Value *value = settings ? settings->root->find(key) : nullptr;
    return value ? tokenOf(value) : std::string(fallback);
  };
  const Value *lower =
      settings ? settings->root->find("do_lower_case") : nullptr;
  bool lowers = lower && lower->kind == Value::Kind::Boolean && lower->boolean;
  std::string pad = setting("pad_token", "<pad>");
  std::string space = setting("word_delimiter_token", "|");
  std::string between = setting("replace_word_delimiter_char", " ");
  std::string hidden[] = {pad, setting("bos_token", "<s>"),
                          setting("eos_token", "</s>"),
                          setting("unk_token", "<unk>")};
  std::vector<std::optional<std::string>> letters;
  bool ok = true, hasPad = false, ascii = true;
  auto fail = [&](const Value &value, const std::string &what) {
    diags.error(vocabulary.reporter.locate(value.offset), what);
    ok = false;
  };
  for (const Value::Member &member : vocabulary.root->members) {
    const Value &id = member.value;
    if (id.kind != Value::Kind::Integer || id.integer < 0 ||
        id.integer >= width) {
      fail(id, "expected the id of " + spec::quote(member.key) +
                   ", a whole number below the model's " +
                   std::to_string(width));
      continue;
    }
    if (size_t(id.integer) >= letters.size())
      letters.resize(size_t(id.integer) + 1);
    std::optional<std::string> &letter = letters[size_t(id.integer)];
    if (letter)
      fail(id, "id " + std::to_string(id.integer) + " is given twice");
    letter = member.key;
    if (member.key == pad) {
      audio.blank = id.integer;
      hasPad = true;
    }
    bool isHidden = std::find(std::begin(hidden), std::end(hidden),
                              member.key) != std::end(hidden);
    if (isHidden)
      letter = "";
    else if (member.key == space)
      letter = between;
    else if (lowers)
      for (char &c : *letter) {
        ascii &= static_cast<unsigned char>(c) < 128;
        c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
      }
  }
  if (!ok)
    return false;
  if (!hasPad) {
    std::optional<int64_t> id = readToken(config, "pad_token_id", width);
    if (!id || *id >= int64_t(letters.size())) {
      diags.error(vocabulary.reporter.locate(vocabulary.root->offset),
                  "has no token " + spec::quote(pad) +
                      ", which parts equal letters");
      return false;
    }
    audio.blank = *id;
  }
  if (!ascii)
    diags.warning(config.locate(), "do_lower_case: letters beyond ASCII are "
                                   "written as vocab.json has them");
  for (std::optional<std::string> &letter : letters)
    audio.letters.push_back(letter.value_or(""));
  return true;
}

/// Reads how samples are given, and the letters, for a model of waveforms.
/// Without a vocab.json it hears nothing.
static bool readWaveform(Config &config, const std::string &folder,
                         Config *features, spec::Model &model,
                         DiagnosticEngine &diags) {
  SideFile vocabulary, settings;
  if (!vocabulary.open(folder, "vocab.json", diags) ||
      !settings.open(folder, "tokenizer_config.json", diags))
    return false;
  if (!vocabulary.isThere()) {
    model.audio.reset();
    return true;
  }
  Audio &audio = *model.audio;
  audio.normalise = true; // the class's own default
  if (features) {
    audio.rate = features->integer("sampling_rate", audio.rate, 1000000);
    audio.normalise = features->flag("do_normalize", true);
    if (audio.rate < 1000)
      features->error("sampling_rate", "is less than 1000");
    if (features->hasErrors())
      return false;
  }
  // Each of several languages has letters of its own.
  for (const Value::Member &member : vocabulary.json->root->members)
    if (member.value.isObject()) {
      diags.warning(vocabulary.json->reporter.locate(member.value.offset),
                    "generate --audio does not work with this model: letters "
                    "of several languages are not supported");
      model.audio.reset();
      return true;
    }
  return readLetters(config, *vocabulary.json,
                     settings.isThere() ? &*settings.json : nullptr,
                     model.streams.back().layers.back().width, audio, diags);
}

bool readAudio(Config &config, const std::string &folder, int64_t vocab,
               spec::Model &model, DiagnosticEngine &diags) {
  // Codes are made of samples as they are.
  if (!model.audio || model.audio->window == 0)
    return true;
  KeyReport unused; // finish() is not called
  SideFile extractor, processor, generation;
  if (!extractor.open(folder, "preprocessor_config.json", diags) ||
      !processor.open(folder, "processor_config.json", diags) ||
      !generation.open(folder, "generation_config.json", diags))
    return false;
  std::optional<Config> features;
  if (extractor.isThere()) {
    features.emplace(*extractor.json->root, "", extractor.json->reporter,
                     unused);
  } else if (processor.isThere()) {
    const Value *inner = processor.json->root->find("feature_extractor");
    if (inner && inner->isObject())
      features.emplace(*inner, "/feature_extractor", processor.json->reporter,
                       unused);
  }
  if (model.inputs.front().shape.size() == 2)
    return readWaveform(config, folder, features ? &*features : nullptr, model,
                        diags);
  if (features) {
    readFeatures(*features, model, diags);
    if (features->hasErrors())
      return false;
  }
  if (!model.audio)
    return true;
  Audio &audio = *model.audio;
  std::optional<Config> own;
  if (generation.isThere())
    own.emplace(*generation.json->root, "", generation.json->reporter, unused);
  Config &from = own ? *own : config;
  readNamed(from, "lang_to_id", vocab, audio.languages);
  readNamed(from, "task_to_id", vocab, audio.tasks);
  audio.noTimestamps = readToken(from, "no_timestamps_token_id", vocab);
  if (from.peek("max_initial_timestamp_index"))
    audio.latestBegin = from.count("max_initial_timestamp_index", 0);
  bool forces = from.peek("forced_decoder_ids");
  readForced(forces ? from : config, vocab, audio);
  readUsual(from, audio, diags);
  return !from.hasErrors();
}

} // namespace attune::hf
