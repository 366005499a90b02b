//===- CliTranscribe.cpp - generate --audio -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CliTranscribe.h"

#include "../Clock.h"
#include "../Sound/LetterWriter.h"
#include "../Sound/Transcriber.h"

#include "attune/Runtime/Tokenizer.h"

#include <cerrno>
#include <cstring>

namespace attune::runtime {

/// "01:02.340", with hours in front if there are any.
static std::string formatTime(double seconds) {
  auto thousandths = int64_t(seconds * 1000 + 0.5);
  int64_t whole = thousandths / 1000;
  char text[64];
  if (whole >= 3600)
    std::snprintf(text, sizeof(text), "%lld:%02d:%02d.%03d",
                  static_cast<long long>(whole / 3600), int(whole / 60 % 60),
                  int(whole % 60), int(thousandths % 1000));
  else
    std::snprintf(text, sizeof(text), "%02d:%02d.%03d", int(whole / 60),
                  int(whole % 60), int(thousandths % 1000));
  return text;
}

static std::string joinIds(const std::vector<int64_t> &ids) {
  std::string text;
  for (int64_t id : ids)
    text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

namespace {
/// Prints parts as they come.
class Scribe {
public:
  Scribe(FILE *out, const GenerateOptions &options,
         GenerateOptions::Format format, const Tokenizer *tokenizer,
         const Transcriber &transcriber)
      : out(out), options(options), format(format), tokenizer(tokenizer),
        transcriber(transcriber) {
    if (tokenizer)
      decoder.reset(new StreamDecoder(*tokenizer, /*skipSpecial=*/true));
  }

  bool push(const SpokenPart &part);
  bool finish();
  size_t countIds() const { return ids.size(); }

private:
  /// The ids that are text.
  std::vector<int64_t> wordsOf(const SpokenPart &part) const {
    std::vector<int64_t> words;
    for (int64_t id : part.ids)
      if (!transcriber.isTime(id))
        words.push_back(id);
    return words;
  }
  bool print(const std::string &text) {
    return std::fwrite(text.data(), 1, text.size(), out) == text.size() &&
           std::fflush(out) == 0;
  }

  FILE *out;
  const GenerateOptions &options;
  GenerateOptions::Format format;
  const Tokenizer *tokenizer;
  const Transcriber &transcriber;
  std::unique_ptr<StreamDecoder> decoder;
  std::vector<int64_t> ids;
  std::string text, parts; ///< only for JSON
};
} // namespace

bool Scribe::push(const SpokenPart &part) {
  bool isFirst = ids.empty();
  ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  std::vector<int64_t> words = wordsOf(part);
  if (format == GenerateOptions::Format::Ids)
    return part.ids.empty() || print((isFirst ? "" : ",") + joinIds(part.ids));
  std::string piece;
  if (decoder)
    for (int64_t id : words)
      piece += decoder->push(id);
  std::string line = tokenizer ? tokenizer->decode(words, true) : "";
  if (format == GenerateOptions::Format::Text) {
    if (!options.timestamps)
      return print(piece);
    // A word begins with its space.
    bool hasSpace = !line.empty() && line.front() == ' ';
    return print("[" + formatTime(part.begin) + " --> " + formatTime(part.end) +
                 "]" + (hasSpace ? "" : " ") + line + "\n");
  }
  text += piece;
  char times[80];
  std::snprintf(times, sizeof(times), "{\"start\":%.10g,\"end\":%.10g,",
                part.begin, part.end);
  parts += (parts.empty() ? "" : ",") + std::string(times) + "\"ids\":[" +
           joinIds(part.ids) + "]";
  if (tokenizer) {
    parts += ",\"text\":";
    appendJsonString(parts, line);
  }
  parts += "}";
  return true;
}

bool Scribe::finish() {
  std::string rest = decoder ? decoder->finish() : "";
  switch (format) {
  case GenerateOptions::Format::Ids:
    return print("\n");
  case GenerateOptions::Format::Json:
    break;
  default:
    return options.timestamps || print(rest + "\n");
  }
  std::string json = "{";
  if (!transcriber.language().empty()) {
    json += "\"language\":";
    appendJsonString(json, transcriber.language());
    json += ",";
  }
  json += "\"ids\":[" + joinIds(ids) + "]";
  if (tokenizer) {
    json += ",\"text\":";
    appendJsonString(json, text + rest);
  }
  return print(json + ",\"segments\":[" + parts + "]}\n");
}

/// What a model of letters makes of a sound.
static bool writeLetters(CompiledModel &model, const GenerateOptions &options,
                         FILE *out, const Messages &messages, Error &error) {
  double start = monotonicTime();
  Spelled spelled;
  if (!spellSound(model, options, spelled, error))
    return false;
  std::string line = spelled.text;
  if (options.format == GenerateOptions::Format::Ids)
    line = joinIds(spelled.ids);
  if (options.format == GenerateOptions::Format::Json) {
    line = "{\"ids\":[" + joinIds(spelled.ids) + "],\"text\":";
    appendJsonString(line, spelled.text);
    line += "}";
  }
  line += "\n";
  if (std::fwrite(line.data(), 1, line.size(), out) != line.size() ||
      std::fflush(out) != 0)
    return error.badInput(std::string("cannot write the output: ") +
                          std::strerror(errno));
  if (options.stats) {
    char text[200];
    std::snprintf(text, sizeof(text),
                  "sound: %.2f s, read in %.3f s; then %zu letters in %.3f s; "
                  "intermediate results: %llu bytes",
                  spelled.seconds, spelled.heard, spelled.ids.size(),
                  monotonicTime() - start - spelled.heard,
                  static_cast<unsigned long long>(model.frameHighWater()));
    messages.note(text);
  }
  return true;
}

bool transcribe(CompiledModel &model, const GenerateOptions &options, FILE *out,
                const Messages &messages, Error &error) {
  // A transcript is no text that goes on.
  if (const std::string *other =
          options.findOther({"audio", "language", "task", "timestamps",
                             "min-new-tokens", "format", "stats", "adapter"},
                            /*samples=*/true))
    return error.set(ExitBadCommandLine,
                     "--audio and --" + *other + " exclude each other");
  const ModelInfo &info = model.info();
  if (writesLetters(info))
    return writeLetters(model, options, out, messages, error);
  bool hasTokenizer = info.hasTokenizer();
  GenerateOptions::Format format = options.format;
  if (format == GenerateOptions::Format::Auto)
    format = hasTokenizer ? GenerateOptions::Format::Text
                          : GenerateOptions::Format::Ids;
  if (!hasTokenizer && format == GenerateOptions::Format::Text)
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer; use --format=ids");
  std::unique_ptr<Tokenizer> tokenizer;
  if (hasTokenizer && format != GenerateOptions::Format::Ids) {
    tokenizer = Tokenizer::open(info, error);
    if (!tokenizer)
      return false;
  }
  double start = monotonicTime();
  Transcriber transcriber(model, options);
  if (!transcriber.open(error))
    return false;
  double heard = monotonicTime();
  Scribe scribe(out, options, format, tokenizer.get(), transcriber);
  std::vector<SpokenPart> parts;
  do {
    if (!transcriber.next(parts, error))
      return false;
    for (const SpokenPart &part : parts)
      if (!scribe.push(part))
        return error.badInput(std::string("cannot write the output: ") +
                              std::strerror(errno));
  } while (!parts.empty());
  if (!scribe.finish())
    return error.badInput(std::string("cannot write the output: ") +
                          std::strerror(errno));
  if (options.stats) {
    char text[200];
    std::snprintf(text, sizeof(text),
                  "sound: %.2f s, its features in %.3f s; then %zu tokens in "
                  "%.3f s; intermediate results: %llu bytes",
                  transcriber.seconds(), heard - start, scribe.countIds(),
                  monotonicTime() - heard,
                  static_cast<unsigned long long>(model.frameHighWater()));
    messages.note(text);
  }
  return true;
}

} // namespace attune::runtime
