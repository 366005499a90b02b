//===- CliBench.cpp - How fast a compiled model is ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Clock.h"

#include "attune/Runtime/Cli.h"

#include <algorithm>

namespace attune::runtime {

const OptionSpecs &BenchOptions::specs() {
  static const OptionSpecs specs = {
      {"dim", "NAME=N",
       "size to run with, such as seq=512; may be repeated (default: batch=1, "
       "others 512, or the model's context if that is less)"},
      {"runs", "N", "runs of which the median is taken (default: 5)"},
      {"tokens", "N", "tokens that follow the prompt of each run (default: 4)"},
      {"format", "table|json", "how to print (default: table)"},
      {"adapter", "NAME", "compute with this adapter of the model"},
  };
  return specs;
}

bool BenchOptions::set(const ParsedOption &option, bool &mine, Error &error) {
  mine = true;
  if (option.name == "dim")
    return parseDims(option, dims, error);
  if (option.name == "runs")
    return parseInteger(option, 1, 10000, runs, error);
  if (option.name == "tokens")
    return parseInteger(option, 1, 1000000, tokens, error);
  if (option.name == "format")
    return parseFormat(option, json, error);
  if (option.name == "adapter")
    adapter = option.value;
  else
    mine = false;
  return true;
}

namespace {
class Bench {
public:
  Bench(CompiledModel &model, const BenchOptions &options)
      : model(model), options(options) {}

  bool run(Error &error);
  void print(FILE *out);

private:
  struct Result {
    const char *name;
    double tokensPerSecond, seconds;
  };
  struct Size {
    std::string name;
    int64_t size;
  };

  bool timeSteps(const EntryInfo &entry, Error &error);
  bool timeForward(const EntryInfo &entry, Error &error);
  /// Takes --dim and the usual sizes of what is left open.
  bool chooseSizes(const EntryInfo &entry, int64_t most, Error &error);
  int64_t sizeOf(const DimInfo &dim) const;
  bool bindInputs(Invocation &call, Error &error);
  void note(const char *name, std::vector<double> &seconds, double tokens);

  CompiledModel &model;
  const BenchOptions &options;
  std::vector<Size> sizes;
  std::vector<Buffer> inputs;
  std::vector<Result> results;
};
} // namespace

void Bench::note(const char *name, std::vector<double> &seconds,
                 double tokens) {
  std::sort(seconds.begin(), seconds.end());
  double median = seconds[seconds.size() / 2];
  results.push_back({name, tokens / median, median});
}

int64_t Bench::sizeOf(const DimInfo &dim) const {
  if (dim.size >= 0)
    return dim.size;
  for (const Size &known : sizes)
    if (known.name == dim.symbol)
      return known.size;
  return 1;
}

bool Bench::chooseSizes(const EntryInfo &entry, int64_t most, Error &error) {
  constexpr int64_t usual = 512;
  Invocation call(model, entry);
  for (const auto &[name, size] : options.dims)
    if (!call.bindDim(name, size, "--dim", error))
      return false;
  for (const ArgInfo &arg : entry.args) {
    if (arg.kind != ArgKind::Input || arg.defaultValue != DefaultValue::None)
      continue;
    for (size_t i = 0; i < arg.shape.size(); ++i) {
      const std::string &name = arg.shape[i].symbol;
      bool known = name.empty() ||
                   std::any_of(sizes.begin(), sizes.end(),
                               [&](const Size &s) { return s.name == name; });
      if (known)
        continue;
      int64_t size = call.dim(name);
      if (size < 0)
        size = i == 0 ? 1 : usual;
      bool given = call.dim(name) >= 0;
      if (i > 0 && most > 0 && size > most && !given)
        size = most;
      if (int64_t longest = arg.mostOf(i); longest && size > longest && !given)
        size = longest;
      sizes.push_back({name, size});
    }
  }
  return true;
}

/// A prompt, and tokens after it, as who takes the likeliest one.
bool Bench::timeSteps(const EntryInfo &entry, Error &error) {
  const int64_t steps = options.tokens;
  int64_t context = model.info().context;
  if (!chooseSizes(entry, context > steps ? context - steps : context, error))
    return false;
  const ArgInfo &ids = *entry.findIds();
  int64_t batch = sizeOf(ids.shape[0]), length = sizeOf(ids.shape[1]);
  if (context > 0 && length > context)
    return error.badInput("the sequence has " + std::to_string(length) +
                          " positions, but the model's context is " +
                          std::to_string(context));
  bool goesOn = context <= 0 || length + steps <= context;
  std::unique_ptr<Session> session =
      Session::create(model, batch, length + (goesOn ? steps : 0), error);
  if (!session)
    return false;
  session->setCandidates(std::min<int64_t>(session->mostCandidates(), 1));
  std::vector<int64_t> tokens(static_cast<size_t>(batch * length));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int64_t>(
        i * 7919 % static_cast<uint64_t>(session->vocabulary()));
  auto step = [&](int64_t count) {
    return session->step(tokens.data(), count, error) &&
           (session->mostCandidates() > 0 || session->logits(error));
  };
  std::vector<double> prompts, others;
  for (int64_t i = -1; i < options.runs; ++i) { // the first one is not counted
    session->reset();
    double start = monotonicTime();
    if (!step(length))
      return false;
    double middle = monotonicTime();
    for (int64_t k = 0; goesOn && k < steps; ++k)
      if (!step(1))
        return false;
    double end = monotonicTime();
    if (i < 0)
      continue;
    prompts.push_back(middle - start);
    others.push_back((end - middle) / steps);
  }
  note("prefill", prompts, double(batch * length));
  if (goesOn)
    note("decode", others, double(batch));
  return true;
}

bool Bench::bindInputs(Invocation &call, Error &error) {
  for (const ArgInfo &arg : call.entry().args) {
    if (arg.kind != ArgKind::Input || arg.defaultValue != DefaultValue::None)
      continue;
    InputTensor input;
    input.name = arg.name;
    uint64_t count = 0;
    for (const DimInfo &dim : arg.shape)
      input.shape.push_back(sizeOf(dim));
    bool real = arg.dtype == DType::F16 || arg.dtype == DType::BF16 ||
                arg.dtype == DType::F32 || arg.dtype == DType::F64;
    input.dtype = real                       ? DType::F32
                  : arg.dtype == DType::Bool ? DType::Bool
                                             : DType::I64;
    unsigned width = dtypeBytes(input.dtype);
    inputs.emplace_back();
    if (!byteSize(input.shape, width, count) || !inputs.back().reserve(count))
      return error.set(ExitResourceLimit, "no memory for input '" + arg.name +
                                              "' of shape " +
                                              formatShape(input.shape));
    uint8_t *data = inputs.back().data();
    input.data = data;
    for (uint64_t i = 0; i < count / width; ++i) {
      auto value = static_cast<int64_t>(i * 7919 % 2048);
      if (real)
        reinterpret_cast<float *>(data)[i] = float(value) / 1024 - 1;
      else if (arg.dtype == DType::Bool)
        data[i] = 1;
      else
        reinterpret_cast<int64_t *>(data)[i] =
            arg.max > 0 ? value % arg.max : 1;
    }
    if (!call.bindInput(input, error))
      return false;
  }
  return true;
}

/// The whole input at once, every output.
bool Bench::timeForward(const EntryInfo &entry, Error &error) {
  if (!chooseSizes(entry, model.info().context, error))
    return false;
  Invocation call(model, entry);
  if (!bindInputs(call, error) || !call.resolve(/*past=*/0, "", error))
    return false;
  std::vector<Buffer> outputs(call.outputs().size());
  for (unsigned i = 0; i < outputs.size(); ++i) {
    const TensorDecl &decl = call.outputs()[i];
    uint64_t bytes = 0;
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), bytes) ||
        !outputs[i].reserve(bytes))
      return error.set(ExitResourceLimit, "no memory for output '" + decl.name +
                                              "' of shape " +
                                              formatShape(decl.shape));
    call.setOutput(i, outputs[i].data());
  }
  std::vector<double> seconds;
  for (int64_t i = -1; i < options.runs; ++i) {
    double start = monotonicTime();
    if (!call.run(error))
      return false;
    if (i >= 0)
      seconds.push_back(monotonicTime() - start);
  }
  // Rows of the first input: batch times tokens.
  double tokens = 1;
  for (const ArgInfo &arg : entry.args) {
    size_t rank = arg.shape.size();
    if (arg.kind != ArgKind::Input || rank < 2)
      continue;
    tokens = double(sizeOf(arg.shape[0])) *
             double(sizeOf(arg.shape[rank == 2 ? 1 : rank - 2]));
    break;
  }
  note("prefill", seconds, tokens);
  return true;
}

bool Bench::run(Error &error) {
  if (!model.chooseAdapter(options.adapter, error))
    return false;
  const EntryInfo *step = model.entry("decode");
  if (step && step->findIds() && !model.entry("encode"))
    return timeSteps(*step, error);
  const EntryInfo *forward = model.entry("forward");
  return forward ? timeForward(*forward, error)
                 : error.badInput("the model has no forward entry");
}

void Bench::print(FILE *out) {
  unsigned threads = model.team().size();
  auto ranks = static_cast<long long>(model.info().ranksOfGroup());
  auto runs = static_cast<long long>(options.runs);
  std::string dims;
  for (const Size &size : sizes)
    dims += size.name + "=" + std::to_string(size.size) + ", ";
  if (!options.json) {
    std::string name = model.info().name;
    std::fprintf(out, "%s%s%smedian of %lld runs on %u threads", name.c_str(),
                 name.empty() ? "" : ", ", dims.c_str(), runs, threads);
    if (ranks > 1)
      std::fprintf(out, " of each of %lld ranks", ranks);
    std::fprintf(out, "\n\n%-10s%14s%14s\n", "", "tokens/s", "ms");
    for (const Result &result : results)
      std::fprintf(out, "%-10s%14.1f%14.3f\n", result.name,
                   result.tokensPerSecond, result.seconds * 1e3);
    return;
  }
  std::fprintf(out, "{\"threads\": %u, \"ranks\": %lld, \"runs\": [", threads,
               ranks);
  for (size_t i = 0; i < results.size(); ++i)
    std::fprintf(out,
                 "%s{\"name\": \"%s\", \"tokens_per_s\": %.6g, \"seconds\": "
                 "%.6g}",
                 i ? ", " : "", results[i].name, results[i].tokensPerSecond,
                 results[i].seconds);
  std::fprintf(out, "]}\n");
}

bool executeBench(CompiledModel &model, const BenchOptions &options, FILE *out,
                  Error &error) {
  Bench bench(model, options);
  if (!bench.run(error))
    return false;
  bench.print(out);
  return std::fflush(out) == 0 || error.badInput("cannot write the output");
}

} // namespace attune::runtime
