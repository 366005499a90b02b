//===- Perplexity.cpp - How well a model predicts a text ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace attune::runtime {

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
  explicit Perplexity(CompiledModel &model) : model(model) {}

  /// For windows of at most `window` tokens.
  bool open(int64_t window, Error &error);
  bool measure(const std::vector<int64_t> &tokens, int64_t window,
               Error &error);

  int64_t getTokens() const { return int64_t(losses.size()); }
  double getCrossEntropy() const {
    double sum = 0;
    for (double loss : losses)
      sum += loss;
    return sum / double(losses.size());
  }

private:
  /// The logits of tokens [begin, end) of the text, [tokens, width]; null:
  /// failed.
  const float *computeLogits(const int64_t *tokens, int64_t size,
                             int64_t &width, Error &error);
  /// Counts tokens [from, end) of the text, given those from `begin` on.
  bool count(const std::vector<int64_t> &tokens, int64_t begin, int64_t from,
             int64_t end, Error &error);

  CompiledModel &model;
  std::unique_ptr<Session> session; ///< null: there are no steps
  std::unique_ptr<Invocation> call;
  const ArgInfo *ids = nullptr;
  unsigned logits = 0; ///< number of the output
  std::vector<Buffer> buffers;
  std::vector<double> losses; ///< of each token that counts
};
} // namespace

/// Whether keys and values are cached in fewer bits than the model computes in.
static bool cachesBytes(const EntryInfo &entry) {
  for (const ArgInfo &arg : entry.args)
    if (arg.kind == ArgKind::Cache && dtypeBytes(arg.dtype) == 1)
      return true;
  return false;
}

bool Perplexity::open(int64_t window, Error &error) {
  const EntryInfo *entry = model.entry("forward");
  const EntryInfo *step = model.entry("decode");
  if (step && (!entry || cachesBytes(*step) || step->findInserted())) {
    session = Session::create(model, /*batch=*/1, window, error);
    if (!session)
      return false;
    return session->canGuess() ||
           error.badInput("a step of model '" + model.info().name +
                          "' gives the logits of its last token alone, so "
                          "that what --kv-cache costs cannot be measured");
  }
  ids = entry ? entry->findIds() : nullptr;
  unsigned outputs = 0;
  bool found = false;
  for (const ArgInfo &arg : entry ? entry->args : std::vector<ArgInfo>()) {
    if (arg.kind != ArgKind::Output)
      continue;
    if (arg.name == "logits" && arg.shape.size() == 3 &&
        arg.dtype == DType::F32) {
      logits = outputs;
      found = true;
    }
    ++outputs;
  }
  if (!ids || !found)
    return error.badInput("model '" + model.info().name +
                          "' has no perplexity: that takes token ids alone and "
                          "an output 'logits' [batch, seq, vocabulary]");
  call = std::make_unique<Invocation>(model, *entry);
  buffers.resize(outputs);
  return true;
}

const float *Perplexity::computeLogits(const int64_t *tokens, int64_t size,
                                       int64_t &width, Error &error) {
  if (session) {
    session->reset();
    width = session->vocabulary();
    return session->stepAll(tokens, size, error);
  }
  call->reset();
  InputTensor input;
  input.name = ids->name;
  input.dtype = DType::I64;
  input.shape = {1, size};
  input.data = tokens;
  if (!call->bindInput(input, error) || !call->resolve(/*past=*/0, "", error))
    return nullptr;
  for (unsigned i = 0; i < buffers.size(); ++i) {
    const TensorDecl &decl = call->outputs()[i];
    uint64_t bytes = 0;
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
        !buffers[i].reserve(bytes)) {
      error.set(ExitResourceLimit, "no memory for output '" + decl.name +
                                       "' of a window of " +
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
                       int64_t from, int64_t end, Error &error) {
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
    losses.push_back(largest + std::log(total) - double(row[id]));
  }
  return true;
}

bool Perplexity::measure(const std::vector<int64_t> &tokens, int64_t window,
                         Error &error) {
  auto size = int64_t(tokens.size());
  if (size < 2)
    return error.badInput("the text has " + std::to_string(size) +
                          (size == 1 ? " token" : " tokens") +
                          ", but the first is not predicted: it takes two");
  struct Part {
    int64_t begin, from, end;
  };
  std::vector<Part> windows;
  int64_t done = 1;
  for (int64_t begin = 0; done < size; begin += window / 2) {
    int64_t end = std::min(begin + window, size);
    windows.push_back({begin, done, end});
    done = end;
  }
  // Each group of ranks has some of them; the first one adds up.
  size_t first = model.firstOfGroup(windows.size(), model.group());
  size_t last = model.firstOfGroup(windows.size(), model.group() + 1);
  for (size_t i = first; i < last; ++i)
    if (!count(tokens, windows[i].begin, windows[i].from, windows[i].end,
               error))
      return false;
  if (model.group() > 0) {
    std::string own(reinterpret_cast<const char *>(losses.data()),
                    losses.size() * sizeof(double));
    model.collect(model.group(), own);
    return true;
  }
  for (int group = 1; group < model.numGroups(); ++group) {
    std::string other;
    model.collect(group, other);
    size_t before = losses.size();
    losses.resize(before + other.size() / sizeof(double));
    std::memcpy(losses.data() + before, other.data(), other.size());
  }
  return true;
}

const OptionSpecs &PerplexityOptions::specs() {
  static const OptionSpecs specs = {
      {"file", "TEXT", "the text, in UTF-8"},
      {"window", "N",
       "tokens that the model sees at a time (default: 512, or its context if "
       "that is less)"},
      {"format", "table|json", "how to print (default: table)"},
      {"adapter", "NAME", "compute with this adapter of the model"},
  };
  return specs;
}

bool PerplexityOptions::set(const ParsedOption &option, bool &mine,
                            Error &error) {
  mine = true;
  if (option.name == "file")
    file = option.value;
  else if (option.name == "adapter")
    adapter = option.value;
  else if (option.name == "window")
    return parseInteger(option, 2, 1 << 24, window, error);
  else if (option.name == "format")
    return parseFormat(option, json, error);
  else
    mine = false;
  return true;
}

bool PerplexityOptions::finish(Error &error) const {
  return !file.empty() || error.set(ExitBadCommandLine,
                                    "'perplexity' needs a text: --file=TEXT");
}

bool executePerplexity(CompiledModel &model, const PerplexityOptions &options,
                       FILE *out, Error &error) {
  // Long windows cost memory: each token has logits of the whole vocabulary.
  constexpr int64_t usualWindow = 512;
  const ModelInfo &info = model.info();
  if (!info.hasTokenizer())
    return error.badInput("model '" + info.name +
                          "' carries no tokenizer, so that it cannot read "
                          "texts");
  std::string text;
  std::vector<int64_t> tokens;
  constexpr size_t mostBytes = size_t(64) << 20;
  if (!readWholeFile(options.file, mostBytes, text, error))
    return false;
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::open(info, error);
  if (!tokenizer || !tokenizer->encode(text, tokens, error))
    return false;
  int64_t window = options.window ? options.window : usualWindow;
  if (info.context > 0 && options.window > info.context)
    return error.badInput("--window=" + std::to_string(options.window) +
                          " is more than the model's context of " +
                          std::to_string(info.context));
  if (info.context > 0)
    window = std::min(window, info.context);
  Perplexity perplexity(model);
  if (!model.chooseAdapter(options.adapter, error) ||
      !perplexity.open(window, error) ||
      !perplexity.measure(tokens, window, error))
    return false;
  if (model.group() > 0) // the first one tells
    return true;
  double mean = perplexity.getCrossEntropy();
  // JSON has no numbers that are none.
  if (!std::isfinite(mean))
    return error.badInput(
        "the model gives logits that are not numbers; 'attune "
        "compile --check-weights' tells whether its weights "
        "are");
  auto count = static_cast<long long>(perplexity.getTokens());
  if (options.json)
    std::fprintf(out,
                 "{\"tokens\": %lld, \"cross_entropy\": %.6f, \"perplexity\": "
                 "%.6f}\n",
                 count, mean, std::exp(mean));
  else
    std::fprintf(out, "%lld tokens: cross-entropy %.4f nats, perplexity %.4f\n",
                 count, mean, std::exp(mean));
  return std::fflush(out) == 0 || error.badInput("cannot write the output");
}

} // namespace attune::runtime
