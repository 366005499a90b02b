//===- Calibration.cpp - What layers see of a text --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calibration.h"

#include "attune/Runtime/Tokenizer.h"
#include "attune/Support/TensorNames.h"
#include "attune/Target/Backend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

/// The options of a run of the model as its files have it, on this machine.
static Options plainOptions(const Options &options) {
  Options plain = options;
  std::string problem;
  plain.verb = Verb::Run;
  plain.quantize = QuantizationRules::parse(StringRef("none"), problem);
  plain.lowRank = LowRankRules::parse(StringRef("none"), problem);
  plain.pruneHeads = HeadRules::parse("none", problem);
  plain.mesh.reset();
  plain.kvCache = spec::KvCache::Full;
  plain.dtype.reset();
  plain.taps.clear();
  plain.insertions.clear();
  plain.stagesDir.clear();
  plain.remarks.clear();
  plain.validate = plain.explainFusion = false;
  plain.loras = options.mergedLoras();
  plain.lorasApart = false;
  plain.calibrationFile.clear();
  plain.backend = findBackend("cpu");
  plain.product = nullptr;
  plain.emit = "obj";
  if (auto machine = plain.backend->describe("native", ""))
    plain.machine = std::move(*machine);
  plain.machine.bf16Pairs = plain.machine.tf32 = false;
  return plain;
}

/// Token ids if the file holds nothing but numbers, else a text.
static bool readTokens(const std::string &path, const runtime::ModelInfo &info,
                       std::vector<int64_t> &tokens, Report &report) {
  auto file = MemoryBuffer::getFile(path);
  if (!file) {
    report.fail(path + ": " + file.getError().message());
    return false;
  }
  StringRef text = (*file)->getBuffer();
  if (text.find_first_not_of("0123456789 \t\r\n,") == StringRef::npos) {
    SmallVector<StringRef> words;
    SplitString(text, words, " \t\r\n,");
    for (StringRef word : words)
      if (int64_t id; word.getAsInteger(10, id)) {
        report.fail(path + ": " + word.str() + " is not a token id");
        return false;
      } else {
        tokens.push_back(id);
      }
  } else {
    if (!info.hasTokenizer()) {
      report.fail(path + ": the model comes without a tokenizer, so it cannot "
                         "read texts; give token ids, in digits");
      return false;
    }
    runtime::Error error;
    std::unique_ptr<runtime::Tokenizer> tokenizer =
        runtime::Tokenizer::open(info, error);
    if (!tokenizer ||
        !tokenizer->encode({text.data(), text.size()}, tokens, error)) {
      report.fail(path + ": " + error.message);
      return false;
    }
  }
  if (tokens.empty())
    report.fail(path + ": holds no token to calibrate with");
  return !tokens.empty();
}

CalibrationRun::CalibrationRun(const Options &options, Report &report)
    : plain(plainOptions(options)), report(report),
      file(options.calibrationFile) {}

bool CalibrationRun::open() {
  source = openModel(plain, report);
  if (!source)
    return false;
  if (source->checkpointPath.empty()) {
    report.fail("--calibrate needs weights; name them with --weights=PATH");
    return false;
  }
  checkpoint = openCheckpoint(*source, plain, report);
  imported.emplace(plain, report, *source, /*fusion=*/true);
  return checkpoint && imported->import(Entries::Forward) &&
         checkWeights(getModule(), *checkpoint, report);
}

bool CalibrationRun::build(const std::vector<std::string> &patterns) {
  plain.tapInputs = patterns;
  model.keepsLowering = true;
  if (model.build(plain, report, *source, &*checkpoint, Entries::Forward,
                  /*fusion=*/true) != ExitCode::Success)
    return false;
  entry = model.getModel().entry("forward");
  ids = entry ? entry->findIds() : nullptr;
  if (!ids) {
    report.fail("--calibrate needs a model that reads token ids alone");
    return false;
  }
  return readTokens(file, model.getModel().info(), tokens, report);
}

int64_t CalibrationRun::chooseWindow() {
  // All layers see a window before the next: this bounds what is kept of it.
  constexpr int64_t kMostTokens = 512, kMostBytes = int64_t(256) << 20;
  int64_t rowBytes = 0;
  for (const runtime::ArgInfo &arg : entry->args)
    if (arg.kind == runtime::ArgKind::Output && arg.shape.size() == 4)
      rowBytes += 4 * arg.shape[0].size * arg.shape[3].size;
  int64_t window = std::min(
      kMostTokens,
      std::max<int64_t>(kMostBytes / std::max<int64_t>(rowBytes, 1), 16));
  int64_t context = model.getModel().info().context;
  return context > 0 ? std::min(window, context) : window;
}

bool CalibrationRun::showWindow(runtime::Invocation &call, int64_t begin,
                                function_ref<bool(StringRef)> wants,
                                function_ref<void(const SeenInputs &)> visit) {
  const std::vector<runtime::TensorDecl> &outputs = call.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    StringRef name = outputs[i].name;
    if (!name.consume_back(".input") || outputs[i].shape.size() != 4 ||
        !wants(name))
      continue;
    SeenInputs seen;
    seen.weight = name.str();
    seen.begin = begin;
    seen.layers = outputs[i].shape[0];
    seen.tokens = outputs[i].shape[2];
    seen.width = outputs[i].shape[3];
    std::vector<float> widened;
    seen.values = reinterpret_cast<const float *>(buffers[i].data());
    auto count = uint64_t(seen.layers * seen.tokens * seen.width);
    if (outputs[i].dtype != runtime::DType::F32) {
      widened.resize(count);
      runtime::convertElements(outputs[i].dtype, buffers[i].data(),
                               runtime::DType::F32, widened.data(), count);
      seen.values = widened.data();
    }
    for (uint64_t n = 0; n < count; ++n)
      if (!std::isfinite(seen.values[n])) {
        report.fail("the inputs of '" + seen.weight +
                    "' hold values that are not numbers for the texts of "
                    "--calibrate");
        return false;
      }
    for (size_t j = 0; j < outputs.size(); ++j)
      if (outputs[j].name == seen.weight + ".experts") {
        seen.active = outputs[j].shape[3];
        seen.experts = reinterpret_cast<const int64_t *>(buffers[j].data());
      }
    visit(seen);
  }
  return true;
}

bool CalibrationRun::run(function_ref<bool(StringRef)> wants,
                         function_ref<void(const SeenInputs &)> visit) {
  runtime::Invocation call(model.getModel(), *entry);
  runtime::Error error;
  int64_t window = chooseWindow();
  for (size_t begin = 0; begin < tokens.size(); begin += size_t(window)) {
    report.showProgress(progress + std::to_string(begin) + " of " +
                        std::to_string(tokens.size()) + " tokens");
    call.reset();
    runtime::InputTensor input;
    input.name = ids->name;
    input.dtype = runtime::DType::I64;
    input.shape = {1, std::min(window, int64_t(tokens.size() - begin))};
    input.data = &tokens[begin];
    auto fail = [&] {
      reportError(error, report);
      return false;
    };
    if (!call.bindInput(input, error) || !call.resolve(/*past=*/0, file, error))
      return fail();
    const std::vector<runtime::TensorDecl> &outputs = call.outputs();
    buffers.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      uint64_t bytes = 0;
      if (!runtime::byteSize(outputs[i].shape,
                             runtime::dtypeBytes(outputs[i].dtype), bytes) ||
          !buffers[i].reserve(bytes)) {
        report.fail("no memory for output '" + outputs[i].name + "'",
                    ExitCode::ResourceLimit);
        return false;
      }
      call.setOutput(unsigned(i), buffers[i].data());
    }
    if (!call.run(error))
      return fail();
    if (!showWindow(call, int64_t(begin), wants, visit))
      return false;
  }
  return true;
}

void CalibrationRun::roundLayers(const ChosenNumbers &chosen,
                                 function_ref<bool(WeightOp, int64_t)> layers) {
  WeightValues values{&*checkpoint, plain.seed, countThreads()};
  values.chosen = &chosen;
  values.asRounded = true;
  model.packLayers(values, layers, report);
}

unsigned CalibrationRun::countThreads() const {
  return plain.threads ? plain.threads : runtime::availableCores();
}

void CalibrationRun::forEach(size_t count,
                             function_ref<void(size_t)> work) const {
  std::atomic<size_t> next{0};
  auto share = [&] {
    for (size_t i; (i = next++) < count;)
      work(i);
  };
  std::vector<std::thread> team;
  for (unsigned i = 1; i < countThreads() && i < count; ++i)
    team.emplace_back(share);
  share();
  for (std::thread &thread : team)
    thread.join();
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

double HeadProducts::lostWithout(const HeadRules::Heads &gone) const {
  double lost = 0;
  for (int64_t g : gone)
    for (int64_t h : gone)
      lost += sums[size_t(g * heads + h)];
  return std::max(lost, 0.0);
}

double HeadProducts::errorWithout(const HeadRules::Heads &gone) const {
  HeadRules::Heads all;
  for (int64_t h = 0; h < heads; ++h)
    all.push_back(h);
  double total = lostWithout(all);
  return total > 0 ? std::sqrt(lostWithout(gone) / total) : 0;
}

namespace {
/// One layer of the matrix that takes the heads of an attention.
struct MeasuredLayer {
  std::string name; ///< of the attention
  int64_t rows = 0, columns = 0;
  std::vector<float> turned; ///< [columns, rows]
  HeadProducts products;

  void add(const float *inputs, int64_t tokens);
};
} // namespace

void MeasuredLayer::add(const float *inputs, int64_t tokens) {
  int64_t heads = products.heads, width = columns / heads;
  std::vector<float> results(size_t(heads * rows));
  for (int64_t t = 0; t < tokens; ++t) {
    std::fill(results.begin(), results.end(), 0.0f);
    for (int64_t k = 0; k < columns; ++k) {
      float input = inputs[t * columns + k];
      const float *in = &turned[size_t(k * rows)];
      float *out = &results[size_t(k / width * rows)];
      for (int64_t n = 0; n < rows; ++n)
        out[n] += input * in[n];
    }
    for (int64_t g = 0; g < heads; ++g)
      for (int64_t h = 0; h <= g; ++h) {
        const float *a = &results[size_t(g * rows)],
                    *b = &results[size_t(h * rows)];
        double sum = 0;
        for (int64_t n = 0; n < rows; ++n)
          sum += double(a[n]) * b[n];
        products.sums[size_t(g * heads + h)] += sum;
        if (g != h)
          products.sums[size_t(h * heads + g)] += sum;
      }
  }
}

std::string driver::firstTensor(WeightOp weight, int64_t layer) {
  auto first = *weight.getSources().getAsRange<WeightSourceAttr>().begin();
  return substituteLayer(first.getTensor().str(), layer);
}

std::optional<std::map<std::string, HeadProducts>>
driver::measureHeads(const Options &options, Report &report,
                     const std::vector<AttentionPlace> &places) {
  std::map<std::string, const AttentionPlace *> placeOf;
  for (const AttentionPlace &place : places)
    placeOf.insert({place.output, &place});
  // The matrices that take heads, by symbol and layer.
  std::map<std::string, std::vector<MeasuredLayer>> measured;
  std::vector<std::string> patterns;
  CalibrationRun run(options, report);
  if (!run.open())
    return std::nullopt;
  for (auto weight : run.getModule().getOps<WeightOp>()) {
    std::vector<MeasuredLayer> layers;
    for (int64_t i = 0; i < weight.getNumLayers(); ++i) {
      auto place = placeOf.find(firstTensor(weight, i));
      if (place == placeOf.end() || weight.getLayerType().getRank() != 2)
        break;
      MeasuredLayer &layer = layers.emplace_back();
      layer.name = place->second->name;
      int64_t heads = layer.products.heads = place->second->attention->heads;
      layer.products.sums.resize(size_t(heads * heads));
      WeightRows rows = readRows(weight, i, /*part=*/0, run.getCheckpoint());
      layer.rows = rows.rows;
      layer.columns = rows.columns;
      layer.turned.resize(rows.values.size());
      for (int64_t n = 0; n < layer.rows; ++n)
        for (int64_t k = 0; k < layer.columns; ++k)
          layer.turned[size_t(k * layer.rows + n)] =
              rows.values[size_t(n * layer.columns + k)];
    }
    if (int64_t(layers.size()) != weight.getNumLayers())
      continue;
    patterns.push_back(weight.getSymName().str());
    measured[patterns.back()] = std::move(layers);
  }
  auto wants = [&](StringRef weight) { return measured.count(weight.str()); };
  auto add = [&](const SeenInputs &seen) {
    std::vector<MeasuredLayer> &layers = measured.find(seen.weight)->second;
    run.forEach(layers.size(), [&](size_t i) {
      layers[i].add(seen.layer(int64_t(i)), seen.tokens);
    });
  };
  if (!run.build(patterns))
    return std::nullopt;
  report.beginStage("calibrating");
  if (!run.run(wants, add))
    return std::nullopt;
  report.endStage();
  std::map<std::string, HeadProducts> result;
  for (auto &[symbol, layers] : measured)
    for (MeasuredLayer &layer : layers)
      result[layer.name] = std::move(layer.products);
  return result;
}

std::optional<HeadRules::Heads>
driver::chooseLeast(const HeadProducts &products, int64_t keyHeads,
                    double share, std::string &problem) {
  // How many heads are removed together.
  int64_t together = keyHeads > 1 ? products.heads / keyHeads : 1;
  int64_t units = products.heads / together;
  auto count = int64_t(share * double(units) + 1e-9);
  if (count == 0) {
    problem = "that is less than one of its " + std::to_string(units) +
              (together > 1 ? " groups of heads" : " heads");
    return std::nullopt;
  }
  HeadRules::Heads gone;
  std::vector<bool> isGone(size_t(units), false);
  for (int64_t step = 0; step < count; ++step) {
    int64_t best = -1;
    double least = 0;
    for (int64_t unit = 0; unit < units; ++unit) {
      if (isGone[size_t(unit)])
        continue;
      HeadRules::Heads tried = gone;
      for (int64_t i = 0; i < together; ++i)
        tried.push_back(unit * together + i);
      double lost = products.lostWithout(tried);
      if (best < 0 || lost < least) {
        best = unit;
        least = lost;
      }
    }
    isGone[size_t(best)] = true;
    for (int64_t i = 0; i < together; ++i)
      gone.push_back(best * together + i);
  }
  llvm::sort(gone);
  return gone;
}
