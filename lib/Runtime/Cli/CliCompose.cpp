//===- CliCompose.cpp - generate of sounds --------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CliCompose.h"

#include "../Clock.h"
#include "../Sound/CodeReader.h"
#include "../Sound/CodeWriter.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/WholeFile.h"

#include <cerrno>
#include <cstring>

namespace attune::runtime {

/// Codes are no text: the other options have nothing to act on.
static bool checkOptions(const GenerateOptions &options, const ModelInfo &info,
                         Error &error) {
  if (const std::string *other = options.findOther(
          {"prompt", "prompt-ids", "prompt-file", "inputs", "audio",
           "audio-out", "codes-out", "guidance", "format", "stats", "adapter"},
          /*samples=*/true))
    return error.badInput("--" + *other + ": model '" + info.name +
                          "' makes sounds of texts, and has no use for it");
  if (!options.audioOut.empty() && info.codes.rate == 0)
    return error.badInput("--audio-out: model '" + info.name +
                          "' has no part that makes samples of codes");
  return true;
}

static bool readText(const ModelInfo &info, const GenerateOptions &options,
                     std::vector<int64_t> &ids, Error &error) {
  std::vector<Prompt> prompts;
  if (!readPrompts(options, prompts, error))
    return false;
  if (!options.inputs.empty())
    return prompts[0].ids.empty() && !prompts[0].isText
               ? true
               : error.badInput("--inputs and a prompt exclude each other: "
                                "either is the text of the sound");
  ids = prompts[0].ids;
  if (!prompts[0].isText)
    return true;
  if (!info.hasTokenizer())
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer; give --prompt-ids");
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::open(info, error);
  return tokenizer && tokenizer->encode(prompts[0].text, ids, error);
}

static std::string listOf(const std::vector<int64_t> &ids) {
  std::string list;
  for (int64_t id : ids)
    list += (list.empty() ? "" : ",") + std::to_string(id);
  return list;
}

/// A line for each codebook, or an object.
static bool printCodes(const SoundCodes &codes, const std::vector<int64_t> &ids,
                       bool json, FILE *out, Error &error) {
  std::string text;
  for (const std::vector<int64_t> &own : codes)
    text += json ? (text.empty() ? "[" : ",[") + listOf(own) + "]"
                 : listOf(own) + "\n";
  if (json)
    text = "{\"prompt_ids\":[" + listOf(ids) + "],\"codes\":[" + text + "]}\n";
  if (std::fwrite(text.data(), 1, text.size(), out) == text.size() &&
      std::fflush(out) == 0)
    return true;
  return error.badInput(std::string("cannot write the output: ") +
                        std::strerror(errno));
}

/// A file of what the model wrote.
static bool saveWritten(const std::string &path, const SoundCodes &written,
                        Error &error) {
  PieceCodes codes;
  codes.pieces = 1;
  codes.books = int64_t(written.size());
  codes.frames = int64_t(written[0].size());
  for (const std::vector<int64_t> &own : written)
    codes.codes.insert(codes.codes.end(), own.begin(), own.end());
  return saveCodes(path, codes, error);
}

/// Whether no sound and no codes that are read would be replaced.
static bool keepsSounds(const GenerateOptions &options, Error &error) {
  for (const std::string &input : {options.audio, options.codes})
    for (const std::string &output : {options.audioOut, options.codesOut})
      if (!keepsInput(input, output, error))
        return false;
  return true;
}

/// The codes of a sound.
static bool encodeSound(CompiledModel &model, const GenerateOptions &options,
                        const Messages &messages, Error &error) {
  if (const std::string *other =
          options.findOther({"audio", "codes-out", "stats"}, /*samples=*/false))
    return error.set(ExitBadCommandLine,
                     "--audio and --" + *other + " exclude each other");
  if (options.codesOut.empty())
    return error.set(ExitBadCommandLine,
                     "--audio: give --codes-out=FILE for the sound's codes");
  PieceCodes codes;
  double start = monotonicTime();
  if (!readPieceCodes(model, options.audio, codes, error) ||
      !saveCodes(options.codesOut, codes, error))
    return false;
  if (options.stats) {
    char text[200];
    std::snprintf(
        text, sizeof(text),
        "%lld frames of %lld codes in %.3f s; intermediate results: "
        "%llu bytes",
        static_cast<long long>(codes.pieces * codes.frames - codes.missing),
        static_cast<long long>(codes.books), monotonicTime() - start,
        static_cast<unsigned long long>(model.frameHighWater()));
    messages.note(text);
  }
  return true;
}

bool play(CompiledModel &model, const GenerateOptions &options,
          const Messages &messages, Error &error) {
  if (!keepsSounds(options, error))
    return false;
  if (options.codes.empty() && !options.audio.empty())
    return encodeSound(model, options, messages, error);
  if (options.codes.empty())
    return error.set(ExitBadCommandLine,
                     "model '" + model.info().name +
                         "' makes sounds of codes; give --codes=FILE and "
                         "--audio-out=FILE.wav, or --audio=FILE.wav and "
                         "--codes-out=FILE");
  if (const std::string *other =
          options.findOther({"codes", "audio-out", "stats"}, /*samples=*/false))
    return error.set(ExitBadCommandLine,
                     "--codes and --" + *other + " exclude each other");
  if (options.audioOut.empty())
    return error.set(ExitBadCommandLine,
                     "--codes: give --audio-out=FILE.wav for the sound");
  Sound sound;
  double start = monotonicTime();
  if (!playFile(model, options.codes, sound, error) ||
      !writeWave(options.audioOut, sound, error))
    return false;
  if (options.stats) {
    char text[200];
    std::snprintf(text, sizeof(text),
                  "%zu samples in %.3f s; intermediate results: %llu bytes",
                  sound.samples.size() / size_t(sound.channels),
                  monotonicTime() - start,
                  static_cast<unsigned long long>(model.frameHighWater()));
    messages.note(text);
  }
  return true;
}

bool compose(CompiledModel &model, const GenerateOptions &options, FILE *out,
             const Messages &messages, Error &error) {
  const ModelInfo &info = model.info();
  std::vector<int64_t> ids;
  if (!checkOptions(options, info, error) || !keepsSounds(options, error) ||
      !readText(info, options, ids, error))
    return false;
  SoundCodes begun, codes;
  Sound sound;
  double start = monotonicTime();
  if ((!options.audio.empty() &&
       !readSoundCodes(model, options.audio, begun, error)) ||
      !writeCodes(model, ids, begun, options, codes, error))
    return false;
  double written = monotonicTime();
  if (!options.audioOut.empty() && (!playCodes(model, codes, sound, error) ||
                                    !writeWave(options.audioOut, sound, error)))
    return false;
  double played = monotonicTime();
  if (!options.codesOut.empty() && !saveWritten(options.codesOut, codes, error))
    return false;
  bool isAsked = options.format != GenerateOptions::Format::Auto;
  bool isKept = !options.audioOut.empty() || !options.codesOut.empty();
  if ((isAsked || !isKept) &&
      !printCodes(codes, ids, options.format == GenerateOptions::Format::Json,
                  out, error))
    return false;
  if (options.stats) {
    char text[200];
    std::snprintf(text, sizeof(text),
                  "%zu frames of %zu codes in %.3f s; %zu samples in %.3f s; "
                  "intermediate results: %llu bytes",
                  codes[0].size(), codes.size(), written - start,
                  sound.samples.size() / size_t(sound.channels),
                  played - written,
                  static_cast<unsigned long long>(model.frameHighWater()));
    messages.note(text);
  }
  return true;
}

} // namespace attune::runtime
