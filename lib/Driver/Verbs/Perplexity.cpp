//===- Perplexity.cpp - attune perplexity -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Verbs.h"

#include "attune/Runtime/Tokenizer.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace attune;
using namespace attune::driver;

namespace {
/// How surprised a model is by the tokens of a text: the mean of minus the
/// logarithm of what it gave each, in double precision.
///
/// A window of tokens is one call. Where the text has more, the next window
/// begins half a window later, and its second half counts: each token of the
/// text but the first counts once, and any behind the first window with at
/// least half a window before it.
///
/// If keys and values are cached in bytes, a window is a step from an empty
/// cache: each token is predicted from what the cache has.
class Perplexity {
public:
  explicit Perplexity(runtime::CompiledModel &model) : model(model) {}

  /// For windows of at most so many tokens.
  bool open(int64_t window, runtime::Error &error);
  bool measure(const std::vector<int64_t> &tokens, int64_t window,
               runtime::Error &error);

  int64_t getTokens() const { return counted; }
  double getCrossEntropy() const { return sum / double(counted); }

private:
  /// The logits of tokens [begin, end) of the text, [tokens, width]; null:
  /// failed.
  const float *computeLogits(const int64_t *tokens, int64_t size,
                             int64_t &width, runtime::Error &error);
  /// Counts tokens [from, end) of the text, given those from `begin` on.
  bool count(const std::vector<int64_t> &tokens, int64_t begin, int64_t from,
             int64_t end, runtime::Error &error);

  runtime::CompiledModel &model;
  std::unique_ptr<runtime::Session> session; ///< null: there are no steps
  std::unique_ptr<runtime::Invocation> call;
  const runtime::ArgInfo *ids = nullptr;
  unsigned logits = 0; ///< number of the output
  std::vector<runtime::Buffer> buffers;
  int64_t counted = 0;
  double sum = 0;
};
} // namespace

bool Perplexity::open(int64_t window, runtime::Error &error) {
  if (model.entry("decode")) {
    session = runtime::Session::create(model, /*batch=*/1, window, error);
    if (!session)
      return false;
    return session->canGuess() ||
           error.badInput("a step of model '" + model.info().name +
                          "' gives the logits of its last token alone, so "
                          "that what --kv-cache costs cannot be measured");
  }
  const runtime::EntryInfo *entry = model.entry("forward");
  ids = entry ? entry->findIds() : nullptr;
  unsigned outputs = 0;
  bool found = false;
  for (const runtime::ArgInfo &arg :
       entry ? entry->args : std::vector<runtime::ArgInfo>()) {
    if (arg.kind != runtime::ArgKind::Output)
      continue;
    if (arg.name == "logits" && arg.shape.size() == 3 &&
        arg.dtype == runtime::DType::F32) {
      logits = outputs;
      found = true;
    }
    ++outputs;
  }
  if (!ids || !found)
    return error.badInput("model '" + model.info().name +
                          "' has no perplexity: that takes token ids alone and "
                          "an output 'logits' [batch, seq, vocabulary]");
  call = std::make_unique<runtime::Invocation>(model, *entry);
  buffers.resize(outputs);
  return true;
}

const float *Perplexity::computeLogits(const int64_t *tokens, int64_t size,
                                       int64_t &width, runtime::Error &error) {
  if (session) {
    session->reset();
    width = session->vocabulary();
    return session->stepAll(tokens, size, error);
  }
  call->reset();
  runtime::InputTensor input;
  input.name = ids->name;
  input.dtype = runtime::DType::I64;
  input.shape = {1, size};
  input.data = tokens;
  if (!call->bindInput(input, error) || !call->resolve(/*past=*/0, "", error))
    return nullptr;
  for (unsigned i = 0; i < buffers.size(); ++i) {
    const runtime::TensorDecl &decl = call->outputs()[i];
    uint64_t bytes = 0;
    if (!runtime::byteSize(decl.shape, runtime::dtypeBytes(decl.dtype),
                           bytes) ||
        !buffers[i].reserve(bytes)) {
      error.set(runtime::ExitResourceLimit,
                "no memory for output '" + decl.name + "' of a window of " +
                    std::to_string(size) +
                    " tokens; take fewer with --window=N");
      return nullptr;
    }
    call->setOutput(i, buffers[i].data());
  }
  const std::vector<int64_t> &shape = call->outputs()[logits].shape;
  if (shape[1] != size) {
    error.badInput("the model gives logits for other tokens than it reads");
    return nullptr;
  }
  if (!call->run(error))
    return nullptr;
  width = shape[2];
  return reinterpret_cast<const float *>(buffers[logits].data());
}

bool Perplexity::count(const std::vector<int64_t> &tokens, int64_t begin,
                       int64_t from, int64_t end, runtime::Error &error) {
  int64_t width = 0;
  const float *rows =
      computeLogits(&tokens[size_t(begin)], end - begin, width, error);
  if (!rows)
    return false;
  for (int64_t place = from; place < end; ++place) {
    const float *row = rows + (place - 1 - begin) * width;
    int64_t id = tokens[size_t(place)];
    if (id < 0 || id >= width)
      return error.badInput("token " + std::to_string(id) +
                            " of the text is beyond the " +
                            std::to_string(width) + " that have logits");
    double largest = *std::max_element(row, row + width), total = 0;
    for (int64_t i = 0; i < width; ++i)
      total += std::exp(double(row[i]) - largest);
    sum += largest + std::log(total) - double(row[id]);
    ++counted;
  }
  return true;
}

bool Perplexity::measure(const std::vector<int64_t> &tokens, int64_t window,
                         runtime::Error &error) {
  auto size = int64_t(tokens.size());
  if (size < 2)
    return error.badInput("the text has " + std::to_string(size) +
                          (size == 1 ? " token" : " tokens") +
                          ", but the first is not predicted: it takes two");
  int64_t done = 1;
  for (int64_t begin = 0; done < size; begin += window / 2) {
    int64_t end = std::min(begin + window, size);
    if (!count(tokens, begin, done, end, error))
      return false;
    done = end;
  }
  return true;
}

ExitCode driver::runPerplexity(const Options &options, Report &report) {
  // Long windows cost memory: each token has logits of the whole vocabulary.
  constexpr int64_t kWindow = 512;
  if (options.textFile.empty())
    return report.fail("'perplexity' needs a text: --file=TEXT",
                       ExitCode::BadCommandLine);
  auto text = llvm::MemoryBuffer::getFile(options.textFile);
  if (!text)
    return report.fail(options.textFile + ": " + text.getError().message());
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::Forward, model);
  if (code != ExitCode::Success)
    return code;
  const runtime::ModelInfo &info = model.getModel().info();
  if (info.tokenizerJson.empty())
    return report.fail("'" + options.model +
                       "' comes without a tokenizer, so it cannot read texts; "
                       "name one with --tokenizer=FILE");
  runtime::Error error;
  std::unique_ptr<runtime::Tokenizer> tokenizer =
      runtime::Tokenizer::create(info.tokenizerJson, error);
  std::vector<int64_t> tokens;
  Perplexity perplexity(model.getModel());
  llvm::StringRef bytes = (*text)->getBuffer();
  if (!tokenizer ||
      !tokenizer->encode({bytes.data(), bytes.size()}, tokens, error))
    return reportError(error, report);
  int64_t window = options.window ? options.window : kWindow;
  if (info.context > 0 && options.window > info.context)
    return report.fail("--window=" + std::to_string(options.window) +
                       " is more than the model's context of " +
                       std::to_string(info.context));
  if (info.context > 0)
    window = std::min(window, info.context);
  if (!model.getModel().chooseAdapter(options.adapter, error) ||
      !perplexity.open(window, error))
    return reportError(error, report);
  report.beginStage("running");
  if (!perplexity.measure(tokens, window, error))
    return reportError(error, report);
  report.endStage();
  double mean = perplexity.getCrossEntropy();
  // JSON has no numbers that are none.
  if (!std::isfinite(mean))
    return report.fail("the model gives logits that are no numbers; "
                       "--check-weights tells whether its weights are");
  if (options.format == "json")
    llvm::outs() << llvm::formatv(
        "{{\"tokens\": {0}, \"cross_entropy\": {1:f6}, \"perplexity\": "
        "{2:f6}}\n",
        perplexity.getTokens(), mean, std::exp(mean));
  else
    llvm::outs() << llvm::formatv(
        "{0} tokens: cross-entropy {1:f4} nats, perplexity {2:f4}\n",
        perplexity.getTokens(), mean, std::exp(mean));
  return ExitCode::Success;
}
