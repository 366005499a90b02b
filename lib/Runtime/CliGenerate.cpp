//===- CliGenerate.cpp - Autoregressive generation ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Tokenizer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace attune::runtime {

/// New tokens where neither the model nor the user sets a limit.
static constexpr int64_t defaultNewTokens = 256;

bool generateTokens(CompiledModel &model, const std::vector<int64_t> &prompt,
                    const GenerateOptions &options,
                    bool (*onToken)(void *context, int64_t id), void *context,
                    std::string &stoppedBy, Error &error) {
  const ModelInfo &info = model.info();
  auto promptLength = static_cast<int64_t>(prompt.size());
  if (promptLength == 0)
    return error.badInput("the prompt is empty");
  int64_t limit = options.maxNewTokens;
  bool byContext = false;
  if (info.context >= 0) {
    int64_t room = info.context - promptLength;
    if (room <= 0)
      return error.badInput("the prompt has " + std::to_string(promptLength) +
                            " tokens, which leaves no room for new ones in "
                            "the model's context of " +
                            std::to_string(info.context));
    byContext = limit < 0 || limit > room;
    if (byContext)
      limit = room;
  } else if (limit < 0) {
    limit = defaultNewTokens;
  }
  int64_t capacity;
  if (__builtin_add_overflow(promptLength, limit, &capacity))
    return error.badInput("--max-new-tokens is absurdly large");
  std::unique_ptr<Session> session =
      Session::create(model, /*batch=*/1, capacity, error);
  if (!session)
    return false;
  Sampler sampler(options.sampling);
  std::vector<int64_t> history = prompt;
  if (!session->step(prompt.data(), promptLength, error))
    return false;
  for (int64_t count = 1;; ++count) {
    int64_t id;
    if (!sampler.sample(session->logits(), session->vocabulary(), history, id,
                        error))
      return false;
    history.push_back(id);
    if (!onToken(context, id)) {
      stoppedBy = "caller";
      return true;
    }
    bool end =
        std::find(info.eos.begin(), info.eos.end(), id) != info.eos.end();
    if (end && !options.ignoreEos) {
      stoppedBy = "eos";
      return true;
    }
    if (count == limit) {
      stoppedBy = byContext ? "context" : "length";
      return true;
    }
    if (!session->step(&id, 1, error))
      return false;
  }
}

namespace {
/// Prints tokens as they come.
struct Printer {
  FILE *out;
  GenerateOptions::Format format;
  StreamDecoder *decoder;
  const std::vector<int64_t> *endTokens; // null: they are text like others
  std::vector<int64_t> ids;
  std::string text; // only for JSON
  bool broken = false;
  double firstTime = 0;

  void print(const std::string &piece) {
    if (piece.empty())
      return;
    if (std::fwrite(piece.data(), 1, piece.size(), out) != piece.size() ||
        std::fflush(out) != 0)
      broken = true;
  }
};

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

bool printToken(void *context, int64_t id) {
  auto &printer = *static_cast<Printer *>(context);
  if (printer.ids.empty())
    printer.firstTime = now();
  printer.ids.push_back(id);
  bool end = printer.endTokens &&
             std::find(printer.endTokens->begin(), printer.endTokens->end(),
                       id) != printer.endTokens->end();
  switch (printer.format) {
  case GenerateOptions::Format::Ids:
    printer.print((printer.ids.size() > 1 ? "," : "") + std::to_string(id));
    break;
  case GenerateOptions::Format::Json:
    if (printer.decoder && !end)
      printer.text += printer.decoder->push(id);
    break;
  default:
    if (!end)
      printer.print(printer.decoder->push(id));
  }
  return !printer.broken;
}

void appendIds(std::string &out, const std::vector<int64_t> &ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i)
    out += (i ? "," : "") + std::to_string(ids[i]);
  out += ']';
}
} // namespace

bool executeGenerate(CompiledModel &model, const GenerateOptions &options,
                     FILE *out, FILE *messages, Error &error) {
  const ModelInfo &info = model.info();
  GenerateOptions::Format format = options.format;
  bool hasTokenizer = !info.tokenizerJson.empty();
  if (format == GenerateOptions::Format::Auto)
    format = hasTokenizer ? GenerateOptions::Format::Text
                          : GenerateOptions::Format::Ids;
  if (!hasTokenizer && options.hasPrompt)
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer; give --prompt-ids");
  if (!hasTokenizer && format == GenerateOptions::Format::Text)
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer; use --format=ids");
  std::unique_ptr<Tokenizer> tokenizer;
  if (options.hasPrompt ||
      (hasTokenizer && format != GenerateOptions::Format::Ids)) {
    tokenizer = Tokenizer::create(info.tokenizerJson, error);
    if (!tokenizer)
      return false;
  }
  std::vector<int64_t> prompt = options.promptIds;
  if (options.hasPrompt) {
    if (!tokenizer->encode(options.prompt, prompt, error))
      return false;
    if (prompt.empty() && info.bos >= 0)
      prompt.push_back(info.bos);
  }
  if (prompt.empty())
    return error.badInput("the prompt is empty, and the model names no token "
                          "to begin with");

  std::unique_ptr<StreamDecoder> decoder;
  if (tokenizer)
    decoder.reset(new StreamDecoder(*tokenizer, /*skipSpecial=*/true));
  Printer printer = {
      out, format, decoder.get(), options.ignoreEos ? nullptr : &info.eos,
      {},  "",     false,         0};
  double start = now();
  std::string stoppedBy;
  bool good = generateTokens(model, prompt, options, printToken, &printer,
                             stoppedBy, error);
  double end = now();
  std::string rest;
  if (format == GenerateOptions::Format::Json) {
    if (!good)
      return false;
    rest = "{\"prompt_ids\":";
    appendIds(rest, prompt);
    rest += ",\"ids\":";
    appendIds(rest, printer.ids);
    if (decoder) {
      rest += ",\"text\":";
      appendJsonString(rest, printer.text + decoder->finish());
    }
    rest += ",\"stopped_by\":\"" + stoppedBy + "\"}\n";
  } else {
    if (format == GenerateOptions::Format::Text)
      rest = decoder->finish();
    // A command that failed before its first token prints nothing at all.
    if (good || !printer.ids.empty())
      rest += '\n';
  }
  printer.print(rest);
  if (!good)
    return false;
  if (printer.broken)
    return error.badInput(std::string("cannot write the output: ") +
                          std::strerror(errno));
  if (options.stats) {
    double first = printer.firstTime - start, later = end - printer.firstTime;
    size_t steps = printer.ids.size() - 1;
    std::fprintf(
        messages,
        "prompt: %zu tokens in %.3f s; then %zu tokens in %.3f s "
        "(%.1f tokens/s); intermediate results: %llu bytes\n",
        prompt.size(), first, steps, later,
        later > 0 ? static_cast<double>(steps) / later : 0.0,
        static_cast<unsigned long long>(model.team().frameHighWater()));
  }
  return true;
}

} // namespace attune::runtime
