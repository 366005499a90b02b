//===- CliGenerate.cpp - Autoregressive generation ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Beams.h"

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Tokenizer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace attune::runtime {

/// New tokens where neither the model nor the user sets a limit.
static constexpr int64_t defaultNewTokens = 256;

/// The ids that the decoder of an encoder-decoder starts from.
static bool startIds(const ModelInfo &info, const std::vector<int64_t> &prompt,
                     bool encodesPrompt, std::vector<int64_t> &start,
                     Error &error) {
  if (!encodesPrompt && !prompt.empty()) {
    start = prompt;
    return true;
  }
  int64_t first = info.decoderStart >= 0 ? info.decoderStart : info.bos;
  if (first < 0)
    return error.badInput("model '" + info.name +
                          "' names no token that its decoder starts from" +
                          (encodesPrompt ? "" : "; give --prompt-ids"));
  start.assign(1, first);
  return true;
}

/// Encodes a file's tensors or, without one, the prompt; the same for every
/// row of the session.
static bool encode(Session &session, const EntryInfo &entry, int64_t rows,
                   const std::string &path, const std::vector<int64_t> &prompt,
                   Error &error) {
  std::vector<InputTensor> inputs;
  std::vector<Buffer> copies;
  auto add = [&](InputTensor input) {
    inputs.push_back(input);
    uint64_t bytes;
    if (rows == 1 || input.shape.empty() || input.shape[0] != 1)
      return true;
    if (!byteSize(input.shape, dtypeBytes(input.dtype), bytes) ||
        !copies.emplace_back().reserve(bytes * rows))
      return error.set(ExitResourceLimit, "no memory for the inputs");
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(copies.back().data() + row * bytes, input.data, bytes);
    inputs.back().shape[0] = rows;
    inputs.back().data = copies.back().data();
    return true;
  };
  SafetensorsFile file;
  if (!path.empty()) {
    std::string reason;
    if (!file.open(path, reason))
      return error.badInput(reason);
    for (const TensorInfo &tensor : file.tensors()) {
      InputTensor input;
      input.name = tensor.name;
      input.dtype = tensor.dtype;
      input.shape = tensor.shape;
      input.data = tensor.data;
      if (!add(input))
        return false;
    }
    if (session.encode(inputs, error))
      return true;
    error.message = path + ": " + error.message;
    return false;
  }
  const ArgInfo *ids = entry.findIds();
  if (!ids)
    return error.badInput("the encoder does not read ids alone; give its "
                          "inputs with --inputs=FILE");
  InputTensor input;
  input.name = ids->name;
  input.dtype = DType::I64;
  input.shape = {1, static_cast<int64_t>(prompt.size())};
  input.data = prompt.data();
  return add(input) && session.encode(inputs, error);
}

namespace {
/// Tells a session what a choice takes, and makes it.
struct Chooser {
  Session &session;
  Sampler &sampler;
  int64_t candidates = 0; ///< that the last step gave; 0: none

  /// Before a step after which `banned` may not follow.
  void prepare(const std::vector<int64_t> &banned) {
    int64_t wanted =
        std::min(sampler.countCandidates(banned.size()), session.vocabulary());
    candidates = wanted <= session.mostCandidates() ? wanted : 0;
    session.setCandidates(candidates);
  }
  bool choose(const std::vector<int64_t> &history,
              const std::vector<int64_t> &banned, int64_t &id, Error &error) {
    if (candidates > 0)
      return sampler.sampleAmong(session.candidateIds(),
                                 session.candidateLogits(), candidates, id,
                                 error, banned);
    const float *logits = session.logits(error);
    return logits && sampler.sample(logits, session.vocabulary(), history, id,
                                    error, banned);
  }
};
} // namespace

bool generateTokens(CompiledModel &model, const std::vector<int64_t> &prompt,
                    const GenerateOptions &options,
                    bool (*onToken)(void *context, int64_t id), void *context,
                    std::string &stoppedBy, Error &error) {
  const ModelInfo &info = model.info();
  const EntryInfo *encoder = model.entry("encode");
  if (!encoder && !options.inputs.empty())
    return error.badInput("model '" + info.name +
                          "' has no encoder that could read --inputs");
  bool encodesPrompt = encoder && options.inputs.empty();
  std::vector<int64_t> history = prompt;
  if (prompt.empty() && (!encoder || encodesPrompt))
    return error.badInput("the prompt is empty");
  if (encoder && !startIds(info, prompt, encodesPrompt, history, error))
    return false;
  auto promptLength = static_cast<int64_t>(history.size());
  int64_t limit = options.maxNewTokens;
  bool byContext = false;
  const EntryInfo *decoder = model.entry("decode");
  int64_t most =
      decoder ? decoder->countablePositions(info.context) : info.context;
  if (most >= 0) {
    int64_t room = most - promptLength;
    if (room <= 0)
      return error.badInput("the prompt has " + std::to_string(promptLength) +
                            " tokens, which leaves no room for new ones in "
                            "the model's context of " +
                            std::to_string(most));
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
      Session::create(model, /*batch=*/options.beams, capacity, error);
  if (!session)
    return false;
  Sampler sampler(options.sampling);
  std::vector<int64_t> notFirst = info.suppress;
  notFirst.insert(notFirst.end(), info.beginSuppress.begin(),
                  info.beginSuppress.end());
  if (encoder &&
      !encode(*session, *encoder, options.beams, options.inputs, prompt, error))
    return false;
  if (options.beams > 1) {
    BeamOptions beams;
    beams.beams = options.beams;
    beams.limit = limit;
    if (!options.ignoreEos)
      beams.ends = info.eos;
    beams.forced = encoder ? info.forcedBos : -1;
    beams.suppress = info.suppress;
    beams.beginSuppress = info.beginSuppress;
    std::vector<int64_t> best;
    bool ended = false;
    if (!searchBeams(*session, beams, history, best, ended, error))
      return false;
    stoppedBy = ended ? "eos" : byContext ? "context" : "length";
    for (int64_t id : best)
      if (!onToken(context, id)) {
        stoppedBy = "caller";
        break;
      }
    return true;
  }
  Chooser chooser = {*session, sampler};
  int64_t firstFree = encoder && info.forcedBos >= 0 ? 2 : 1;
  auto bannedAt = [&](int64_t count) -> const std::vector<int64_t> & {
    return count == firstFree ? notFirst : info.suppress;
  };
  chooser.prepare(bannedAt(1));
  if (!session->step(history.data(), promptLength, error))
    return false;
  for (int64_t count = 1;; ++count) {
    int64_t id = info.forcedBos;
    if (count >= firstFree &&
        !chooser.choose(history, bannedAt(count), id, error))
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
    chooser.prepare(bannedAt(count + 1));
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
  if (prompt.empty() && options.inputs.empty())
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
    // A GPU is done with a prompt in milliseconds.
    auto digits = [](double seconds) { return seconds < 0.1 ? 6 : 3; };
    std::fprintf(messages,
                 "prompt: %zu tokens in %.*f s; then %zu tokens in %.*f s "
                 "(%.1f tokens/s); intermediate results: %llu bytes\n",
                 prompt.size(), digits(first), first, steps, digits(later),
                 later, later > 0 ? static_cast<double>(steps) / later : 0.0,
                 static_cast<unsigned long long>(model.frameHighWater()));
  }
  return true;
}

} // namespace attune::runtime
