//===- Bench.cpp - attune bench ---------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "../Statistics.h"
#include "Inspect.h"
#include "Verbs.h"
#include "VerifyInputs.h"

#include "attune/Analysis/ModelStatistics.h"
#include "attune/Target/CPU/MachineProbe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>

using namespace attune;
using namespace attune::driver;

namespace {
/// One line of the result. The speed of a shared machine changes from second to
/// second, so each run is compared with what the same threads reach right
/// before and after it, and `ofPeak` is the median of these shares: of the rate
/// of multiply-adds or, for what memory bounds, of reads, which `roof` names as
/// "peak" does.
struct Measured {
  const char *name, *roof;
  double tokensPerSecond = 0, gflops = 0, gbs = 0, ofPeak = 0;
};

class Bench {
public:
  Bench(const Options &options, Report &report)
      : options(options), report(report) {}
  ExitCode run();

private:
  ExitCode timeForward();
  ExitCode timeDecode();
  void print(llvm::raw_ostream &os);
  void printJson(llvm::raw_ostream &os) const;
  int64_t countTokens(const runtime::EntryInfo &entry) const;
  Factors factorsOf(const runtime::EntryInfo &entry) const;

  const Options &options;
  Report &report;
  InMemoryModel model;
  ModelStatistics statistics;
  std::map<std::string, int64_t> dims;
  std::string dtype;
  bool quantized = false; ///< matrices are in few bits
  std::optional<MachineProbe> probe;
  MachinePeak peak;
  std::vector<Measured> results;
};
} // namespace

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Work> static std::optional<double> timeOnce(Work work) {
  auto start = std::chrono::steady_clock::now();
  if (!work())
    return std::nullopt;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Rows of the first input: batch times tokens.
int64_t Bench::countTokens(const runtime::EntryInfo &entry) const {
  for (const runtime::ArgInfo &arg : entry.args) {
    if (arg.kind != runtime::ArgKind::Input || arg.shape.size() < 2)
      continue;
    int64_t tokens = 1;
    // [batch, tokens] or [batch, ..., tokens, width].
    size_t last = arg.shape.size() == 2 ? 2 : arg.shape.size() - 1;
    for (size_t i = 0; i < last; ++i)
      if (i == 0 || i + 1 == last)
        tokens *= arg.shape[i].size >= 0 ? arg.shape[i].size
                                         : dims.at(arg.shape[i].symbol);
    return tokens;
  }
  return 1;
}

/// The type of the factors: pairs of bf16 if weights (or inputs, where there
/// are no weights) are stored so and the CPU multiplies them; bytes if that was
/// asked for.
Factors Bench::factorsOf(const runtime::EntryInfo &entry) const {
  bool weights = statistics.weightBytes > 0;
  if (weights && quantized)
    return Factors::Int8;
  if (!options.machine.multipliesPairs())
    return Factors::F32;
  bool bf16 =
      weights ? dtype == "bf16" : llvm::any_of(entry.args, [](const auto &arg) {
        return arg.dtype == runtime::DType::BF16;
      });
  return bf16 ? Factors::Bf16 : Factors::F32;
}

static const char *roofOf(Factors factors) {
  switch (factors) {
  case Factors::F32:
    return "f32_gflops";
  case Factors::Bf16:
    return "bf16_gflops";
  case Factors::Int8:
    return "int8_gops";
  }
  llvm_unreachable("all kinds of factors have a name");
}

static constexpr char kReads[] = "read_gbs";

/// The whole input at once, every output.
ExitCode Bench::timeForward() {
  runtime::CompiledModel &compiled = model.getModel();
  const runtime::EntryInfo &entry = *compiled.entry("forward");
  VerifyCase sizes;
  sizes.pinned = dims;
  VerifyInputs inputs(entry, sizes, options.seed);
  runtime::Invocation call(compiled, entry);
  runtime::Error error;
  for (const runtime::InputTensor &tensor : inputs.tensors())
    if (!call.bindInput(tensor, error))
      return reportError(error, report);
  if (!call.resolve(/*past=*/0, "the sizes asked for", error))
    return reportError(error, report);
  // The bytes that a run reads and writes at least once.
  double bytes = double(statistics.weightBytes);
  auto addBytes = [&](const std::vector<int64_t> &shape, runtime::DType type) {
    uint64_t size = 0;
    runtime::byteSize(shape, runtime::dtypeBytes(type), size);
    bytes += double(size);
    return size;
  };
  for (const runtime::InputTensor &tensor : inputs.tensors())
    addBytes(tensor.shape, tensor.dtype);
  std::vector<runtime::Buffer> outputs(call.outputs().size());
  for (auto [i, output] : llvm::enumerate(outputs)) {
    const runtime::TensorDecl &decl = call.outputs()[i];
    uint64_t size = addBytes(decl.shape, decl.dtype);
    if (!output.reserve(size))
      return report.fail(
          llvm::formatv("no memory for the {0} bytes of output '{1}'", size,
                        decl.name)
              .str(),
          ExitCode::ResourceLimit);
    call.setOutput(i, output.data());
  }
  auto run = [&] { return call.run(error); };
  std::optional<double> first = timeOnce(run); // touches all memory
  if (!first)
    return reportError(error, report);

  // Whatever type the weights are stored in, most CPUs compute in f32.
  Factors factors = factorsOf(entry);
  double flops = statistics.flops;
  bool boundByReads =
      flops / probe->measureProducts(factors) < bytes / probe->measureReads();
  auto measureRoof = [&] {
    return boundByReads ? probe->measureReads()
                        : probe->measureProducts(factors);
  };
  // Starting threads that sleep takes as long as a small product: several calls
  // count as one. Data that is to come from memory must not stay in a cache.
  constexpr double kShortest = 0.01;
  int64_t calls = boundByReads ? 1 : 1 + int64_t(kShortest / *first);
  std::vector<double> seconds, shares;
  double after = measureRoof();
  for (int64_t i = 0; i < options.runs; ++i) {
    double before = after;
    std::optional<double> all = timeOnce([&] {
      for (int64_t n = 0; n < calls; ++n)
        if (!run())
          return false;
      return true;
    });
    if (!all)
      return reportError(error, report);
    after = measureRoof();
    seconds.push_back(*all / double(calls));
    shares.push_back((boundByReads ? bytes : flops) / seconds.back() / 1e9 /
                     ((before + after) / 2));
  }
  double time = median(seconds);
  Measured result{"prefill", boundByReads ? kReads : roofOf(factors)};
  result.tokensPerSecond = countTokens(entry) / time;
  result.gflops = flops / time / 1e9;
  result.gbs = bytes / time / 1e9;
  result.ofPeak = median(shares);
  results.push_back(result);
  return ExitCode::Success;
}

/// One token after as many cached ones as `seq` says.
ExitCode Bench::timeDecode() {
  runtime::CompiledModel &compiled = model.getModel();
  constexpr int64_t steps = 4;
  int64_t batch = dims.at("batch");
  int64_t length = 1;
  for (const auto &[name, size] : dims)
    if (name != "batch")
      length = size;
  int64_t context = compiled.info().context;
  int64_t cached = context > 0 ? std::min(length, context - steps) : length;
  if (cached < 1)
    return ExitCode::Success;
  runtime::Error error;
  auto session =
      runtime::Session::create(compiled, batch, cached + steps, error);
  if (!session)
    return reportError(error, report);
  // As who takes the likeliest token.
  session->setCandidates(std::min<int64_t>(session->mostCandidates(), 1));
  std::vector<int64_t> ids(batch * cached);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = int64_t(i * 7919 % uint64_t(session->vocabulary()));
  std::vector<double> seconds, shares;
  for (int64_t i = -1; i < options.runs; ++i) {
    session->reset();
    if (!session->step(ids.data(), cached, error))
      return reportError(error, report);
    double before = probe->measureReads();
    std::optional<double> once = timeOnce([&] {
      for (int64_t k = 0; k < steps; ++k)
        if (!session->step(ids.data(), 1, error))
          return false;
      return true;
    });
    if (!once)
      return reportError(error, report);
    double reads = (before + probe->measureReads()) / 2;
    peak.readGBs = std::max(peak.readGBs, reads);
    if (i >= 0) {
      seconds.push_back(*once / steps);
      shares.push_back(statistics.decode->bytes / seconds.back() / 1e9 / reads);
    }
  }
  double time = median(seconds);
  Measured result{"decode", kReads};
  result.tokensPerSecond = batch / time;
  result.gflops = statistics.decode->flops / time / 1e9;
  result.gbs = statistics.decode->bytes / time / 1e9;
  result.ofPeak = median(shares);
  results.push_back(result);
  return ExitCode::Success;
}

void Bench::print(llvm::raw_ostream &os) {
  auto optional = [](const std::optional<double> &value, const char *unit) {
    return value ? llvm::formatv("{0:f0} {1}", *value, unit).str()
                 : std::string("-");
  };
  os << statistics.name << ", weights in "
     << (options.tf32 ? "f32, products of tf32" : dtype) << ", ";
  for (const auto &[name, size] : dims)
    os << name << "=" << size << ", ";
  os << "median of " << options.runs << " runs on "
     << model.getModel().team().size() << " threads\n"
     << llvm::formatv("peak: f32 {0:f0} GFLOP/s, bf16 {1}, int8 {2}, reads "
                      "{3:f1} GB/s\n\n",
                      peak.f32Gflops, optional(peak.bf16Gflops, "GFLOP/s"),
                      optional(peak.int8Gops, "GOP/s"), peak.readGBs)
     << llvm::formatv("{0,-10}{1,14}{2,12}{3,10}{4,10}\n", "", "tokens/s",
                      "GFLOP/s", "GB/s", "of peak");
  for (const Measured &result : results)
    os << llvm::formatv("{0,-10}{1,14:f1}{2,12:f1}{3,10:f1}{4,9:f1}%\n",
                        result.name, result.tokensPerSecond, result.gflops,
                        result.gbs, 100 * result.ofPeak);
}

void Bench::printJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attributeObject("peak", [&] {
      auto optional = [&](const char *name,
                          const std::optional<double> &value) {
        json.attribute(name, value ? llvm::json::Value(*value)
                                   : llvm::json::Value(nullptr));
      };
      json.attribute("f32_gflops", peak.f32Gflops);
      optional("bf16_gflops", peak.bf16Gflops);
      optional("int8_gops", peak.int8Gops);
      json.attribute("read_gbs", peak.readGBs);
    });
    json.attributeArray("runs", [&] {
      for (const Measured &result : results)
        json.object([&] {
          json.attribute("name", result.name);
          json.attribute("dtype", dtype);
          json.attribute("tokens_per_s", result.tokensPerSecond);
          json.attribute("gflops", result.gflops);
          json.attribute("gbs", result.gbs);
          json.attribute("of_peak", result.ofPeak);
          json.attribute("roof", result.roof);
        });
    });
  });
  os << '\n';
}

ExitCode Bench::run() {
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (source->isMlir())
    return report.fail("'" + options.model +
                       "' is an .mlir file; bench counts operations from a "
                       "description or a Hugging Face folder");
  auto chosen = chooseDims(options, *source->model, report);
  if (!chosen)
    return ExitCode::BadInput;
  statistics = analyze(source->counted(), *chosen);
  dims = statistics.dims;
  quantized = source->quantize && source->quantize->quantizes();
  dtype = quantized      ? source->quantize->describe()
          : options.tf32 ? "tf32"
                         : std::string(spec::stringify(
                               options.dtype.value_or(source->model->dtype)));

  std::optional<Checkpoint> checkpoint;
  if (!source->checkpointPath.empty()) {
    checkpoint = openCheckpoint(*source, options, report);
    if (!checkpoint)
      return ExitCode::BadInput;
  }
  ExitCode code =
      model.build(options, report, *source, checkpoint ? &*checkpoint : nullptr,
                  Entries::All, options.fusion);
  if (code != ExitCode::Success)
    return code;
  runtime::Error unknown;
  if (!model.getModel().chooseAdapter(options.adapter, unknown))
    return reportError(unknown, report);
  if (source->branches)
    report.note({}, "operations are counted without those of adapters");
  if (source->lowRank)
    report.note({}, "operations are counted as before --low-rank");
  if (quantized || source->lowRank) {
    double saved = activeWeightBytes(statistics) - model.getActiveBytes();
    statistics.weightBytes = model.getWeightBytes();
    if (statistics.decode)
      statistics.decode->bytes -= saved;
  }

  report.beginStage("probing the machine");
  llvm::Expected<MachineProbe> made =
      MachineProbe::create(model.getModel().team().size());
  if (!made)
    return report.fail("internal error: " + llvm::toString(made.takeError()),
                       ExitCode::InternalError);
  probe.emplace(std::move(*made));
  peak = probe->measure();
  report.beginStage("timing");
  if (model.getModel().entry("forward"))
    code = timeForward();
  if (code == ExitCode::Success && statistics.decode &&
      model.getModel().entry("decode"))
    code = timeDecode();
  if (code != ExitCode::Success)
    return code;
  report.beginStage("probing the machine again");
  peak.raise(probe->measure());
  report.endStage();
  if (options.format == "json")
    printJson(llvm::outs());
  else
    print(llvm::outs());
  llvm::outs().flush();
  return ExitCode::Success;
}

ExitCode driver::runBench(const Options &options, Report &report) {
  return Bench(options, report).run();
}
