//===- Verify.cpp - attune verify -------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Inspect.h"
#include "Verbs.h"
#include "VerifyInputs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdio>

using namespace attune;
using namespace attune::driver;

// A correct fused path lands within ten times the rounding noise of f32, which
// after some layers is about 1e-6 of a layer's largest value; a wrong one is
// off by 1e-3 and more.
static constexpr double defaultAtol = 5e-5, defaultRtol = 1e-4;

// Inputs of products with weights in few bits are rounded to bytes, with a step
// of 1/127 of a group's largest number. A number between two of them gets
// either one, by the order of the sums before it: that moves a product by 3 /
// (127 sqrt(K)) of itself (a largest number is about three times a usual one),
// 0.6% for 16 inputs, and several may move. A wrong group, scale or tail is off
// by 10% and more; a wrong mask is for a run without --quantize to find.
static constexpr double byteRounding = 3e-2;

namespace {
/// The result of one layer's comparison, over all cases.
struct Finding {
  double largest = 0; ///< of the reference
  double absolute = 0, relative = 0;
  std::string worstCase, failedCase;
  uint64_t values = 0;
};

/// A few things by name, in the order they came.
template <typename T> class Named {
public:
  T &operator[](const std::string &name) {
    for (auto &[other, value] : items)
      if (other == name)
        return value;
    return items.emplace_back(name, T()).second;
  }
  const T *find(llvm::StringRef name) const {
    for (const auto &[other, value] : items)
      if (other == name)
        return &value;
    return nullptr;
  }
  auto begin() const { return items.begin(); }
  auto end() const { return items.end(); }

private:
  std::vector<std::pair<std::string, T>> items;
};

/// The outputs of one run.
using Outputs = Named<std::vector<float>>;

class Verifier {
public:
  Verifier(const Options &options, Report &report)
      : options(options), report(report),
        atol(options.atol.value_or(defaultAtol)),
        rtol(options.rtol.value_or(defaultRtol)) {}

  ExitCode run();

private:
  ExitCode runCase(const VerifyCase &check);
  bool runOne(InMemoryModel &model, const VerifyInputs &inputs,
              Outputs &outputs, runtime::Error &error);
  ExitCode runDecode(const ModelSource &source);
  void compare(const std::string &layer, const float *got, const float *want,
               uint64_t count, const std::string &where, double rounding = 0);
  void print(const ModelSource &source, bool random);
  void printVerdict(llvm::raw_ostream &os);
  /// Whether every size that --dim names is one of the model's.
  bool checkDims(const ModelSource &source);

  const Options &options;
  Report &report;
  double atol, rtol;
  double cacheRounding = 0; ///< added to atol where steps read a cache
  bool quantized = false;   ///< byteRounding is added to atol
  bool widened = false;     ///< bf16 is multiplied as f32
  InMemoryModel fused, reference;
  Named<Finding> findings;
  size_t numCases = 0;
};
} // namespace

/// Enough digits to tell any two floats apart.
static std::string digits(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", double(value));
  return text;
}

void Verifier::compare(const std::string &layer, const float *got,
                       const float *want, uint64_t count,
                       const std::string &where, double rounding) {
  Finding &finding = findings[layer];
  double largest = 0;
  for (uint64_t i = 0; i < count; ++i)
    if (std::isfinite(want[i]))
      largest = std::max(largest, std::fabs(double(want[i])));
  finding.largest = std::max(finding.largest, largest);
  finding.values += count;
  for (uint64_t i = 0; i < count; ++i) {
    // The same bits agree, infinities included; NaN agrees with nothing.
    if (got[i] == want[i])
      continue;
    double difference = std::fabs(double(got[i]) - double(want[i]));
    if (!(difference <= finding.absolute)) {
      finding.absolute = difference;
      finding.worstCase = where;
    }
    if (std::fabs(want[i]) > 0.01 * largest)
      finding.relative =
          std::max(finding.relative, difference / std::fabs(double(want[i])));
    double allowed = atol + (quantized ? byteRounding : 0);
    bool good = difference <= allowed * largest + rounding * finding.largest +
                                  rtol * std::fabs(double(want[i]));
    if (!good && finding.failedCase.empty())
      finding.failedCase = where + ": " + digits(got[i]) + " where " +
                           digits(want[i]) + " is expected, at element " +
                           std::to_string(i);
  }
}

bool Verifier::runOne(InMemoryModel &model, const VerifyInputs &inputs,
                      Outputs &outputs, runtime::Error &error) {
  runtime::CompiledModel &compiled = model.getModel();
  runtime::Invocation call(compiled, *compiled.entry("forward"));
  for (const runtime::InputTensor &tensor : inputs.tensors())
    if (!call.bindInput(tensor, error))
      return false;
  if (!call.resolve(/*past=*/0, "the test inputs", error))
    return false;
  for (size_t i = 0; i < call.outputs().size(); ++i) {
    const runtime::TensorDecl &decl = call.outputs()[i];
    uint64_t count = 1;
    for (int64_t size : decl.shape)
      count *= uint64_t(size);
    std::vector<float> &values = outputs[decl.name];
    values.assign(count, 0.0f);
    call.setOutput(i, values.data());
  }
  return call.run(error);
}

ExitCode Verifier::runCase(const VerifyCase &check) {
  const runtime::EntryInfo *entry = fused.getModel().entry("forward");
  VerifyInputs inputs(*entry, check, options.seed);
  Outputs got, want;
  runtime::Error error;
  if (!runOne(fused, inputs, got, error) ||
      !runOne(reference, inputs, want, error))
    return reportError(error, report);
  ++numCases;
  for (const auto &[name, values] : want) {
    const std::vector<float> &mine = got[name];
    // hidden_states is a stack of layers; every other output is one.
    uint64_t layers = 1;
    if (name == "hidden_states")
      for (const runtime::ArgInfo &arg : entry->args)
        if (arg.kind == runtime::ArgKind::Output && arg.name == name)
          layers = uint64_t(arg.shape.front().size);
    uint64_t each = values.size() / layers;
    for (uint64_t layer = 0; layer < layers; ++layer)
      compare(layers > 1 ? name + "." + std::to_string(layer) : name,
              mine.data() + layer * each, values.data() + layer * each, each,
              check.name);
  }
  return ExitCode::Success;
}

/// The change that storing keys and values in 16 bits may make, as a share of
/// the largest logit of all steps so far. Each number of them is off by one
/// rounding, which moves the result of attention by about as much, keys through
/// the probabilities and values directly. Errors of different layers are
/// independent and add up like their squares. Four times that, since one token
/// is not like another.
static double roundingOf(const runtime::EntryInfo &decode) {
  double squares = 0;
  for (const runtime::ArgInfo &arg : decode.args) {
    bool kept = arg.kind == runtime::ArgKind::Cache ||
                arg.kind == runtime::ArgKind::Input;
    if (!kept || arg.shape.empty())
      continue;
    double unit = arg.dtype == runtime::DType::BF16  ? 0x1p-9
                  : arg.dtype == runtime::DType::F16 ? 0x1p-12
                                                     : 0;
    squares += double(arg.shape.front().size) * unit * unit; // of its layers
  }
  return 4 * std::sqrt(squares);
}

/// The id that positions do not count. What is cached is counted whole, so it
/// may not be in a text that is also computed at once.
static std::optional<int64_t> findUncounted(const ModelSource &source) {
  if (!source.model)
    return std::nullopt;
  for (const spec::Stream &stream : source.model->streams)
    for (const spec::Layer &layer : stream.layers) {
      if (const auto *positions = std::get_if<spec::Positions>(&layer.op);
          positions && positions->count == spec::PositionCount::Unpadded)
        return positions->pad;
      // Steps count such tokens of sequences that are alike.
      if (const auto *insert = std::get_if<spec::Insert>(&layer.op))
        return insert->id;
    }
  return std::nullopt;
}

/// The key/value cache against the whole sequence at once: some tokens first,
/// then one at a time.
ExitCode Verifier::runDecode(const ModelSource &source) {
  const runtime::EntryInfo *forward = reference.getModel().entry("forward");
  const runtime::EntryInfo *decode = fused.getModel().entry("decode");
  const runtime::EntryInfo *encode = fused.getModel().entry("encode");
  if (!forward || !decode || !decode->findIds())
    return ExitCode::Success;
  int64_t length = 9, prefill = 5;
  // All of a prompt sees what a later step would be.
  if (const runtime::ArgInfo *inserted = decode->findInserted();
      inserted && inserted->bidirectional == runtime::Bidirectional::Prompt)
    prefill = length;
  int64_t context = fused.getModel().info().context;
  if (context > 0 && context < length)
    return ExitCode::Success;
  VerifyCase check{"cache", {}, length, false, 1};
  check.batch = 2;
  check.without = findUncounted(source);
  VerifyInputs inputs(*forward, check, options.seed);
  Outputs want;
  runtime::Error error;
  if (!runOne(reference, inputs, want, error))
    return reportError(error, report);
  const int64_t *ids = inputs.findIds(decode->findIds()->name, length);
  const std::vector<float> *logits = want.find("logits");
  if (!ids || !logits)
    return ExitCode::Success;
  std::unique_ptr<runtime::Session> session =
      runtime::Session::create(fused.getModel(), check.batch, length, error);
  if (!session)
    return reportError(error, report);
  if (encode) {
    std::vector<runtime::InputTensor> read;
    for (const runtime::InputTensor &tensor : inputs.tensors())
      for (const runtime::ArgInfo &arg : encode->args)
        if (arg.kind == runtime::ArgKind::Input && arg.name == tensor.name)
          read.push_back(tensor);
    if (!session->encode(read, error))
      return reportError(error, report);
  }
  int64_t vocabulary = session->vocabulary();
  cacheRounding = roundingOf(*decode);
  for (int64_t at = 0; at < length;) {
    int64_t count = at == 0 ? prefill : 1;
    std::vector<int64_t> step;
    for (int64_t row = 0; row < check.batch; ++row)
      step.insert(step.end(), ids + row * length + at,
                  ids + row * length + at + count);
    if (!session->step(step.data(), count, error))
      return reportError(error, report);
    const float *made = session->logits(error);
    if (!made)
      return reportError(error, report);
    at += count;
    for (int64_t row = 0; row < check.batch; ++row)
      compare("decode.logits", made + row * vocabulary,
              logits->data() + (row * length + at - 1) * vocabulary,
              uint64_t(vocabulary),
              "step at position " + std::to_string(at - 1), cacheRounding);
  }
  ++numCases;
  return ExitCode::Success;
}

void Verifier::print(const ModelSource &source, bool random) {
  llvm::raw_ostream &os = llvm::outs();
  os << "fused against unfused: " << options.model << ", "
     << (random ? "random weights" : "its weights") << ", seed " << options.seed
     << ", " << numCases << " cases\n"
     << llvm::formatv("allowed: {0:e1} of the layer's largest value + {1:e1} "
                      "of the value\n",
                      atol, rtol);
  if (cacheRounding > 0)
    os << llvm::formatv("steps: {0:e1} more of the largest value, since their "
                        "keys and values are stored in 16 bits\n",
                        cacheRounding);
  if (quantized)
    os << llvm::formatv("few bits: {0:e1} more of the largest value, since a "
                        "number between two bytes may become either\n",
                        byteRounding);
  if (options.tf32)
    os << "computed in f32: products of tf32 round what they multiply\n";
  if (widened)
    os << "computed in f32: this CPU's products of bf16 round what they "
          "multiply\n";
  os << '\n'
     << llvm::formatv("{0,-28}{1,12}{2,14}{3,14}  {4}\n", "layer", "largest",
                      "abs. error", "rel. error", "worst case");
  for (const auto &[layer, finding] : findings) {
    os << llvm::formatv("{0,-28}{1,12:e3}{2,14:e2}{3,14:e2}  {4}", layer,
                        finding.largest, finding.absolute, finding.relative,
                        finding.worstCase.empty() ? "-" : finding.worstCase);
    if (!finding.failedCase.empty())
      os << "  MISMATCH";
    os << '\n';
  }
  printVerdict(os);
}

void Verifier::printVerdict(llvm::raw_ostream &os) {
  std::vector<llvm::StringRef> different;
  for (const auto &[layer, finding] : findings)
    if (!finding.failedCase.empty())
      different.push_back(layer);
  size_t all = std::distance(findings.begin(), findings.end());
  if (different.empty() && all == 1)
    os << "\nthe output agrees\n";
  else if (different.empty())
    os << "\nall " << all << " outputs agree\n";
  else
    os << '\n'
       << different.size() << " of " << all << " outputs "
       << (different.size() == 1 ? "differs: " : "differ: ")
       << llvm::join(different, ", ") << '\n';
}

bool Verifier::checkDims(const ModelSource &source) {
  if (source.model)
    return chooseDims(options, *source.model, report).has_value();
  llvm::StringSet<> known;
  for (const runtime::ArgInfo &arg : fused.getModel().entry("forward")->args)
    if (arg.kind == runtime::ArgKind::Input)
      for (const runtime::DimInfo &dim : arg.shape)
        if (!dim.symbol.empty())
          known.insert(dim.symbol);
  for (const auto &[name, size] : options.dims)
    if (!known.contains(name))
      report.error({}, "the model has no open size '" + name + "'");
  return report.getNumErrors() == 0;
}

ExitCode Verifier::run() {
  Options everything = options;
  everything.taps.clear();
  std::optional<ModelSource> source = openModel(everything, report);
  if (!source || (source->model && !checkDims(*source)))
    return ExitCode::BadInput;
  bool hasBlocks = false, tapped = false;
  if (source->model) {
    for (const spec::Stream &stream : source->model->streams)
      for (const spec::Layer &layer : stream.layers)
        hasBlocks |= std::holds_alternative<spec::Block>(layer.op);
    for (const spec::Stream &stream : source->model->streams)
      for (const spec::Layer &layer : stream.layers) // no one shape for all
        tapped |= std::holds_alternative<spec::Chunk>(layer.op) ||
                  (&stream == &source->model->streams.back() &&
                   (std::holds_alternative<spec::Windows>(layer.op) ||
                    std::holds_alternative<spec::Merge>(layer.op)));
    for (const spec::Output &output : source->model->outputs)
      tapped |= output.layer == "hidden_states";
  }
  if (hasBlocks && !tapped) {
    spec::Output states;
    states.name = states.layer = "hidden_states";
    states.location = {source->model->file, 1, 1};
    source->model->outputs.push_back(states);
  }
  std::optional<Checkpoint> checkpoint;
  if (!source->checkpointPath.empty()) {
    checkpoint = openCheckpoint(*source, options, report);
    if (!checkpoint)
      return ExitCode::BadInput;
  }
  Checkpoint *values = checkpoint ? &*checkpoint : nullptr;
  quantized = source->quantize && source->quantize->quantizes();
  // Products that round what they multiply to bf16 or tf32 differ by more than
  // a fault would: large scores make another softmax of it. Both multiply f32
  // instead.
  Options wide = options;
  wide.machine.bf16Pairs = wide.machine.tf32 = false;
  if (source->model && options.machine.multipliesPairs())
    widened =
        options.dtype.value_or(source->model->dtype) == spec::DType::BF16 ||
        llvm::any_of(source->model->inputs, [](const spec::TensorSpec &input) {
          return input.dtype == spec::DType::BF16;
        });
  ExitCode code = fused.build(wide, report, *source, values, Entries::All,
                              /*fusion=*/true);
  if (code == ExitCode::Success)
    code = reference.build(wide, report, *source, values, Entries::Forward,
                           /*fusion=*/false);
  if (code != ExitCode::Success)
    return code;
  const runtime::EntryInfo *entry = fused.getModel().entry("forward");
  if (!entry || !reference.getModel().entry("forward"))
    return report.fail("'" + options.model +
                       "' has no entry 'forward' to compare");
  if (source->isMlir() && !checkDims(*source))
    return ExitCode::BadInput;

  std::vector<VerifyCase> cases =
      makeVerifyCases(*entry, options.dims, fused.getModel().info().context);
  for (const VerifyCase &check : cases) {
    report.beginStage("checking " + check.name);
    code = runCase(check);
    if (code != ExitCode::Success)
      return code;
  }
  report.beginStage("checking decode");
  code = runDecode(*source);
  report.endStage();
  if (code != ExitCode::Success)
    return code;
  print(*source, !checkpoint && hasWeights(*source));
  llvm::outs().flush();
  for (const auto &[layer, finding] : findings)
    if (!finding.failedCase.empty()) {
      report.error({}, "'" + layer + "' differs: " + finding.failedCase);
      code = ExitCode::Mismatch;
    }
  return code;
}

ExitCode driver::runVerify(const Options &options, Report &report) {
  return Verifier(options, report).run();
}
