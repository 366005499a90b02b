//===- Transcriber.cpp - Speech to text, window by window -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transcriber.h"

#include "../Generation/Generation.h"
#include "LogMel.h"
#include "Wave.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

Transcriber::Transcriber(CompiledModel &model, const GenerateOptions &options)
    : model(model), audio(model.info().audio), options(options) {}

static const int64_t *
findNamed(const std::vector<std::pair<std::string, int64_t>> &names,
          const std::string &name) {
  for (const auto &[known, token] : names)
    if (known == name)
      return &token;
  return nullptr;
}

static std::string
listNames(const std::vector<std::pair<std::string, int64_t>> &names) {
  std::string list;
  for (const auto &[name, token] : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool Transcriber::findInput(Error &error) {
  const EntryInfo *encoder = model.entry("encode");
  if (audio.input.empty() || !encoder)
    return error.badInput("model '" + model.info().name +
                          "' hears nothing: its description has no \"audio\"");
  for (const ArgInfo &arg : encoder->args)
    if (arg.kind == ArgKind::Input && arg.name == audio.input &&
        arg.shape.size() == 3 && arg.shape[1].size > 0 &&
        arg.shape[2].size > 0) {
      bands = arg.shape[1].size;
      windowFrames = arg.shape[2].size;
      return true;
    }
  return error.badInput("model '" + model.info().name + "' has no input '" +
                        audio.input +
                        "' [batch, bands, frames] for what it hears");
}

/// What was asked for, as far as that needs no hearing.
bool Transcriber::findTokens(Error &error) {
  const ModelInfo &info = model.info();
  if (info.decoderStart < 0 && info.bos < 0)
    return error.badInput("model '" + info.name +
                          "' names no token that its decoder starts from");
  std::string code = options.language;
  // Tokens are spelled <|en|>.
  if (code.size() > 4 && code.compare(0, 2, "<|") == 0 &&
      code.compare(code.size() - 2, 2, "|>") == 0)
    code = code.substr(2, code.size() - 4);
  auto find = [&](const char *option, const std::string &name,
                  const std::vector<std::pair<std::string, int64_t>> &names,
                  const char *what, const int64_t *&token) {
    if (name.empty())
      return true;
    token = findNamed(names, name);
    return token ||
           error.badInput("--" + std::string(option) + ": model '" + info.name +
                          "' has no " + what + " '" + name + "'; " +
                          (names.empty() ? "it has one alone"
                                         : "it has " + listNames(names)));
  };
  if (!find("language", code, audio.languages, "language", askedLanguage) ||
      !find("task", options.task, audio.tasks, "task", askedTask))
    return false;
  if (askedLanguage)
    languageCode = code;
  // All times are needed to find the next window.
  bool needsTimes = options.timestamps || frames > windowFrames;
  if (needsTimes && audio.noTimestamps < 0)
    return error.badInput(
        "model '" + info.name + "' says no times" +
        (options.timestamps
             ? ""
             : ", which tell where the next window begins; the sound has more "
               "than the " +
                   std::to_string(int64_t(timeOf(windowFrames))) +
                   " s of one"));
  if (needsTimes && info.eos.empty())
    return error.badInput("model '" + info.name + "' names no end token");
  if (needsTimes)
    rules.emplace(audio.noTimestamps + 1, audio.latestBegin, info.eos.front());
  return true;
}

bool Transcriber::open(Error &error) {
  if (!findInput(error))
    return false;
  Sound sound;
  if (!readWave(options.audio, sound, error))
    return false;
  length = double(sound.samples.size()) / double(sound.rate);
  resample(sound, audio.rate);
  auto least = size_t(windowFrames * audio.hop);
  if (least <= size_t(audio.window) / 2)
    return error.badInput("model '" + model.info().name +
                          "' hears frames that are longer than its windows");
  if (sound.samples.size() < least)
    sound.samples.resize(least);
  LogMel mel(audio.rate, audio.window, audio.hop, bands);
  frames = mel.countFrames(sound.samples.size());
  features = mel.compute(sound.samples);
  return findTokens(error);
}

bool Transcriber::encode(Error &error) {
  int64_t count = std::min(windowFrames, frames - position);
  window.assign(bands * windowFrames, 0);
  for (int64_t band = 0; band < bands; ++band)
    std::memcpy(window.data() + band * windowFrames,
                features.data() + band * frames + position,
                count * sizeof(float));
  InputTensor input;
  input.name = audio.input;
  input.dtype = DType::F32;
  input.shape = {1, bands, windowFrames};
  input.data = window.data();
  return session->encode({input}, error);
}

/// The likeliest language after the token that the decoder starts from.
bool Transcriber::hearLanguage(int64_t &token, Error &error) {
  session->setCandidates(0);
  if (!session->step(start.data(), 1, error))
    return false;
  const float *logits = session->logits(error);
  if (!logits)
    return false;
  token = -1;
  for (const auto &[code, id] : audio.languages)
    if (id < session->vocabulary() &&
        (token < 0 || logits[id] > logits[token])) {
      token = id;
      languageCode = code;
    }
  session->reset();
  return token >= 0 || error.badInput("model '" + model.info().name +
                                      "' has no token of its languages");
}

/// Makes the session, with the first window in it, and finds what every text
/// starts from.
bool Transcriber::begin(Error &error) {
  const ModelInfo &info = model.info();
  const EntryInfo *decoder = model.entry("decode");
  if (!decoder)
    return error.badInput("model '" + info.name + "' does not generate");
  auto longest = int64_t(3 + std::max<size_t>(audio.start.size(), 1));
  TokenLimit limit;
  if (!findTokenLimit(options, longest,
                      decoder->countablePositions(info.context), limit, error))
    return false;
  int64_t capacity;
  if (__builtin_add_overflow(longest, limit.tokens, &capacity))
    return error.badInput("--max-new-tokens is absurdly large");
  session = Session::create(model, /*batch=*/1, capacity, error);
  if (!session || !encode(error))
    return false;
  start.assign(1, info.decoderStart >= 0 ? info.decoderStart : info.bos);
  bool asked = askedLanguage || askedTask;
  if (askedLanguage) {
    start.push_back(*askedLanguage);
  } else if (audio.language >= 0 && !asked) {
    start.push_back(audio.language);
    for (const auto &[code, id] : audio.languages)
      if (id == audio.language)
        languageCode = code;
  } else if (!audio.languages.empty()) {
    int64_t heard;
    if (!hearLanguage(heard, error))
      return false;
    start.push_back(heard);
  }
  if (!asked)
    start.insert(start.end(), audio.start.begin(), audio.start.end());
  else if (askedTask)
    start.push_back(*askedTask);
  else if (const int64_t *usual = findNamed(audio.tasks, "transcribe"))
    start.push_back(*usual);
  bool saysNone = audio.noTimestamps >= 0 && start.back() == audio.noTimestamps;
  if (rules && saysNone)
    start.pop_back();
  else if (!rules && !saysNone && audio.noTimestamps >= 0)
    start.push_back(audio.noTimestamps);
  return true;
}

/// Cuts a window's text into parts, and goes on to the next window.
void Transcriber::cut(const std::vector<int64_t> &said,
                      std::vector<SpokenPart> &parts) {
  int64_t count = std::min(windowFrames, frames - position);
  auto add = [&](size_t first, size_t last, int64_t begin, int64_t end) {
    SpokenPart &part = parts.emplace_back();
    part.begin = timeOf(position + begin);
    part.end = timeOf(position + end);
    part.ids.assign(said.begin() + long(first), said.begin() + long(last));
  };
  auto frameOf = [&](int64_t token) {
    return (token - audio.noTimestamps - 1) * audio.timestampFrames;
  };
  // A part ends between two times.
  std::vector<size_t> ends;
  for (size_t i = 1; i < said.size(); ++i)
    if (isTime(said[i - 1]) && isTime(said[i]))
      ends.push_back(i);
  bool isWhole =
      said.size() >= 2 && !isTime(said[said.size() - 2]) && isTime(said.back());
  if (ends.empty()) {
    // The last time counts as the end, if there is one but the begin.
    int64_t all = count / audio.timestampFrames * audio.timestampFrames;
    int64_t end = all;
    for (int64_t token : said)
      if (isTime(token))
        end = frameOf(token) > 0 ? frameOf(token) : all;
    add(0, said.size(), 0, end);
    position += count;
    return;
  }
  // The second time of the last pair, and what follows it, begin a part that
  // is not whole: the next window has it.
  int64_t reached = frameOf(said[ends.back() - 1]);
  if (isWhole)
    ends.push_back(said.size());
  size_t first = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    size_t last = ends[i] + (!isWhole && i + 1 == ends.size());
    add(first, last, frameOf(said[first]), frameOf(said[ends[i] - 1]));
    first = last;
  }
  // Times that stand still would never reach the end.
  position += isWhole || reached <= 0 ? count : std::min(reached, count);
}

bool Transcriber::next(std::vector<SpokenPart> &parts, Error &error) {
  parts.clear();
  if (position >= frames)
    return true;
  if (!(session ? encode(error) : begin(error)))
    return false;
  options.timestampRules = rules ? &*rules : nullptr;
  std::vector<int64_t> said;
  auto push = [](void *context, const NewToken &token) {
    static_cast<std::vector<int64_t> *>(context)->push_back(token.id);
    return true;
  };
  std::string stoppedBy;
  if (!generateEncoded(model, *session, start, options, push, &said, stoppedBy,
                       error))
    return false;
  if (stoppedBy == "eos")
    said.pop_back();
  cut(said, parts);
  return true;
}

} // namespace attune::runtime
