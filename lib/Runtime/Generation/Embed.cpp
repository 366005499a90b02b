//===- Embed.cpp - Vectors of texts ---------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Embedder.h"

#include "attune/Runtime/Tokenizer.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace attune::runtime {

const OptionSpecs &EmbedOptions::specs() {
  static const OptionSpecs specs = {
      {"text", "TEXT", "text to embed; may be repeated"},
      {"pair", "TEXT",
       "what the text is compared with, for models that score two (cross-"
       "encoders); one for each --text, or several for one"},
      {"text-file", "FILE",
       "file with several texts, a line each: text, a JSON string, or "
       "{\"prompt\": TEXT}"},
      {"pooling", "KIND",
       "mean of all tokens' vectors, cls (the first one), last, max, mean_sqrt "
       "(their sum by the root of their count) or weighted (token i counts i "
       "times) (default: as the model's 1_Pooling/config.json says, else "
       "mean)"},
      {"prompt-name", "NAME",
       "put this prompt of the model before each text, '' none (default: as "
       "its config_sentence_transformers.json says)"},
      {"dimensions", "N",
       "give the first N numbers of each vector, for models that were trained "
       "so (Matryoshka)"},
      {"normalize", "",
       "scale each vector to length 1 (default: as the model's modules.json "
       "says, else not)"},
      {"outputs", "FILE",
       "safetensors file for all vectors as one tensor, embeddings [texts, "
       "width]; without it a JSON object is printed for each text"},
      {"adapter", "NAME", "compute with this adapter of the model"},
  };
  return specs;
}

bool EmbedOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  mine = true;
  if (option.name == "text") {
    texts.push_back(option.value);
  } else if (option.name == "pair") {
    pairs.push_back(option.value);
  } else if (option.name == "text-file") {
    file = option.value;
  } else if (option.name == "outputs") {
    outputs = option.value;
  } else if (option.name == "adapter") {
    adapter = option.value;
  } else if (option.name == "normalize") {
    normalize = option.value == "true" ? 1 : 0;
  } else if (option.name == "pooling") {
    if (!parsePooling(option.value, pooling))
      return error.set(ExitBadCommandLine,
                       "--pooling: expected mean, cls, last, max, mean_sqrt or "
                       "weighted, found '" +
                           option.value + "'");
  } else if (option.name == "prompt-name") {
    promptName = option.value;
  } else if (option.name == "dimensions") {
    return parseInteger(option, 1, INT32_MAX, dimensions, error);
  } else {
    mine = false;
  }
  return true;
}

bool EmbedOptions::finish(Error &error) const {
  if (texts.empty() == file.empty())
    return error.set(ExitBadCommandLine,
                     "embed needs either --text=TEXT or --text-file=FILE");
  if (!pairs.empty() && texts.size() != 1 && texts.size() != pairs.size())
    return error.set(ExitBadCommandLine,
                     "--pair needs one --text for all, or one for each; there "
                     "are " +
                         std::to_string(texts.size()) + " texts and " +
                         std::to_string(pairs.size()) + " pairs");
  return true;
}

static std::string formatVector(const std::vector<double> &vector) {
  std::string out = "[";
  char number[32];
  for (size_t i = 0; i < vector.size(); ++i) {
    // JSON has no NaN and no infinity.
    if (std::isfinite(vector[i]))
      std::snprintf(number, sizeof(number), "%.9g", vector[i]);
    out += (i ? "," : "") +
           std::string(std::isfinite(vector[i]) ? number : "null");
  }
  return out + "]";
}

static bool readTexts(const EmbedOptions &options,
                      std::vector<std::string> &texts, Error &error) {
  texts = options.texts;
  if (texts.size() == 1 && !options.pairs.empty())
    texts.resize(options.pairs.size(), texts[0]);
  if (options.file.empty())
    return true;
  GenerateOptions lines;
  lines.promptsFile = options.file;
  std::vector<Prompt> prompts;
  if (!readPrompts(lines, prompts, error))
    return false;
  for (Prompt &prompt : prompts) {
    if (!prompt.isText)
      return error.badInput(options.file + ": embed reads texts, not ids");
    texts.push_back(std::move(prompt.text));
  }
  return true;
}

/// The prompt of this name; no text for no name.
static bool findPrompt(const ModelInfo &info, const std::string &name,
                       std::string &prompt, Error &error) {
  if (name.empty())
    return true;
  if (const std::string *found = info.findPrompt(name)) {
    prompt = *found;
    return true;
  }
  std::string names;
  for (const auto &[other, text] : info.prompts)
    names += (names.empty() ? "" : ", ") + other;
  return error.set(ExitBadCommandLine,
                   "--prompt-name: model '" + info.name + "' has no prompt '" +
                       name + "'" + (names.empty() ? "" : "; it has " + names));
}

bool executeEmbed(CompiledModel &model, const EmbedOptions &options, FILE *out,
                  Error &error) {
  const ModelInfo &info = model.info();
  if (!info.hasTokenizer())
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer, so that it cannot read "
                          "texts");
  VectorForm form = VectorForm::of(info);
  if (options.pooling != Pooling::Auto)
    form.pooling = options.pooling;
  if (options.normalize >= 0)
    form.normalizes = options.normalize > 0;
  std::string prompt;
  if (!findPrompt(info, options.promptName.value_or(info.defaultPrompt), prompt,
                  error))
    return false;
  std::vector<std::string> texts;
  std::unique_ptr<Tokenizer> tokenizer;
  Embedder embedder(model);
  if (!keepsInput(options.file, options.outputs, error) ||
      !model.chooseAdapter(options.adapter, error) ||
      !readTexts(options, texts, error) ||
      !embedder.open(error, /*wantsScores=*/!options.pairs.empty()))
    return false;
  if (options.dimensions > embedder.width())
    return error.set(ExitBadCommandLine,
                     "--dimensions: the model's vectors have " +
                         std::to_string(embedder.width()) + " numbers");
  if (options.dimensions)
    form.width = options.dimensions;
  if (embedder.isScoring() && (options.dimensions || options.promptName))
    return error.set(ExitBadCommandLine,
                     "--dimensions and --prompt-name are for vectors; model '" +
                         info.name + "' gives scores");
  if (embedder.poolsItself() && options.pooling != Pooling::Auto)
    return error.set(ExitBadCommandLine,
                     "--pooling: model '" + info.name +
                         "' pools itself, for the layers that follow");
  tokenizer = Tokenizer::open(info, error);
  if (!tokenizer)
    return false;
  SafetensorsWriter writer;
  std::string reason;
  float *to = nullptr;
  if (!options.outputs.empty()) {
    TensorDecl all;
    all.name = embedder.isScoring() ? "scores" : "embeddings";
    all.shape = {static_cast<int64_t>(texts.size()),
                 form.width ? form.width : embedder.width()};
    if (!writer.create(options.outputs, {all}, reason))
      return error.badInput(reason);
    to = reinterpret_cast<float *>(writer.data(0));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    Encoding encoding;
    std::vector<double> vector;
    std::string_view second;
    if (!options.pairs.empty())
      second = options.pairs[i];
    size_t whole = 0; // tokens, of a text that may be cut
    bool good = options.pairs.empty()
                    ? embedder.encode(*tokenizer, prompt + texts[i], encoding,
                                      whole, error)
                    : tokenizer->encode(texts[i], &second, EncodeOptions(),
                                        encoding, error);
    const std::vector<int64_t> &ids = encoding.ids;
    if (good && ids.empty())
      good = error.badInput("it has no tokens");
    if (!good || !embedder.embed(ids, &encoding.typeIds, form, vector, error)) {
      error.message = "text " + std::to_string(i + 1) + ": " + error.message;
      return false;
    }
    if (to) {
      to = std::copy(vector.begin(), vector.end(), to);
      continue;
    }
    std::string line = "{\"text\":";
    appendJsonString(line, texts[i]);
    if (!options.pairs.empty()) {
      line += ",\"pair\":";
      appendJsonString(line, second);
    }
    line += ",\"tokens\":" + std::to_string(ids.size());
    if (whole > ids.size())
      line += ",\"tokens_before_cut\":" + std::to_string(whole);
    line += (embedder.isScoring() ? ",\"scores\":" : ",\"embedding\":") +
            formatVector(vector) + "}\n";
    if (std::fwrite(line.data(), 1, line.size(), out) != line.size())
      return error.badInput(std::string("cannot write the output: ") +
                            std::strerror(errno));
  }
  if (to)
    return writer.commit(reason) || error.badInput(reason);
  return std::fflush(out) == 0 ||
         error.badInput(std::string("cannot write the output: ") +
                        std::strerror(errno));
}

} // namespace attune::runtime
