//===- Calibration.cpp - What layers see of a text --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calibration.h"

#include "InMemory.h"

#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"
#include "attune/Runtime/Tokenizer.h"
#include "attune/Support/TensorNames.h"
#include "attune/Target/Backend.h"
#include "attune/Weights/CompensatedRounding.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace llvm;
using namespace attune;
using namespace attune::driver;

/// The options of a run of the model as its files have it, on this machine.
static Options plainOptions(const Options &options,
                            const std::vector<std::string> &patterns) {
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
  plain.calibrationFile.clear();
  plain.loras = options.mergedLoras();
  plain.lorasApart = false;
  plain.tapInputs = patterns;
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
        report.fail(path + ": " + word.str() + " is no token id");
        return false;
      } else {
        tokens.push_back(id);
      }
  } else {
    if (info.tokenizerJson.empty()) {
      report.fail(path + ": the model comes without a tokenizer, so it cannot "
                         "read texts; give token ids, in digits");
      return false;
    }
    runtime::Error error;
    std::unique_ptr<runtime::Tokenizer> tokenizer =
        runtime::Tokenizer::create(info.tokenizerJson, error);
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

ExitCode driver::runCalibration(const Options &options, Report &report,
                                const std::vector<std::string> &patterns,
                                function_ref<void(const SeenInputs &)> visit) {
  // All layers see a window before the next: this bounds what is kept of it.
  constexpr int64_t kMostTokens = 512, kMostBytes = int64_t(256) << 20;
  Options plain = plainOptions(options, patterns);
  InMemoryModel model;
  ExitCode code = prepareModel(plain, report, Entries::Forward, model);
  if (code != ExitCode::Success)
    return code;
  const runtime::ModelInfo &info = model.getModel().info();
  const runtime::EntryInfo *entry = model.getModel().entry("forward");
  const runtime::ArgInfo *ids = entry ? entry->findIds() : nullptr;
  if (!ids)
    return report.fail("--calibrate needs a model that reads token ids alone");
  std::vector<int64_t> tokens;
  if (!readTokens(options.calibrationFile, info, tokens, report))
    return ExitCode::BadInput;
  int64_t rowBytes = 0;
  for (const runtime::ArgInfo &arg : entry->args)
    if (arg.kind == runtime::ArgKind::Output && arg.shape.size() == 4)
      rowBytes += 4 * arg.shape[0].size * arg.shape[3].size;
  int64_t window = std::min(
      kMostTokens,
      std::max<int64_t>(kMostBytes / std::max<int64_t>(rowBytes, 1), 16));
  if (info.context > 0)
    window = std::min(window, info.context);
  report.beginStage("calibrating");
  runtime::Invocation call(model.getModel(), *entry);
  std::vector<runtime::Buffer> buffers;
  runtime::Error error;
  for (size_t begin = 0; begin < tokens.size(); begin += size_t(window)) {
    report.showProgress(std::to_string(begin) + " of " +
                        std::to_string(tokens.size()) + " tokens");
    call.reset();
    runtime::InputTensor input;
    input.name = ids->name;
    input.dtype = runtime::DType::I64;
    input.shape = {1, std::min(window, int64_t(tokens.size() - begin))};
    input.data = &tokens[begin];
    if (!call.bindInput(input, error) ||
        !call.resolve(/*past=*/0, options.calibrationFile, error))
      return reportError(error, report);
    const std::vector<runtime::TensorDecl> &outputs = call.outputs();
    buffers.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      uint64_t bytes = 0;
      if (!runtime::byteSize(outputs[i].shape,
                             runtime::dtypeBytes(outputs[i].dtype), bytes) ||
          !buffers[i].reserve(bytes))
        return report.fail("no memory for output '" + outputs[i].name + "'",
                           ExitCode::ResourceLimit);
      call.setOutput(unsigned(i), buffers[i].data());
    }
    if (!call.run(error))
      return reportError(error, report);
    for (size_t i = 0; i < outputs.size(); ++i) {
      StringRef name = outputs[i].name;
      if (!name.consume_back(".input") || outputs[i].shape.size() != 4)
        continue;
      SeenInputs seen;
      seen.weight = name.str();
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
        if (!std::isfinite(seen.values[n]))
          return report.fail("the inputs of '" + seen.weight +
                             "' hold values that are no numbers for the texts "
                             "of --calibrate");
      visit(seen);
    }
  }
  report.endStage();
  return ExitCode::Success;
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

/// Shows `visit` the weights of the model as its files have it, and where their
/// values are.
static bool
visitWeights(const Options &options, Report &report,
             function_ref<bool(WeightOp, const Checkpoint &)> visit) {
  Options plain = plainOptions(options, {});
  std::optional<ModelSource> source = openModel(plain, report);
  if (!source)
    return false;
  if (source->checkpointPath.empty()) {
    report.fail("--calibrate needs weights; name them with --weights=PATH");
    return false;
  }
  std::optional<Checkpoint> checkpoint = openCheckpoint(*source, plain, report);
  Lowering lowering(plain, report, *source, /*fusion=*/true);
  if (!checkpoint || !lowering.import(Entries::Forward))
    return false;
  for (auto weight : lowering.getModule().getOps<WeightOp>())
    if (!visit(weight, *checkpoint))
      return false;
  return true;
}

/// The first tensor that one layer of a weight is made of.
static std::string firstTensor(WeightOp weight, int64_t layer) {
  auto first = *weight.getSources().getAsRange<WeightSourceAttr>().begin();
  return substituteLayer(first.getTensor().str(), layer);
}

/// Calls `work` with 0 to `count` - 1, on the threads of the options.
static void forEachLayer(const Options &options, size_t count,
                         function_ref<void(size_t)> work) {
  std::atomic<size_t> next{0};
  auto share = [&] {
    for (size_t i; (i = next++) < count;)
      work(i);
  };
  unsigned threads =
      options.threads ? options.threads : runtime::availableCores();
  std::vector<std::thread> team;
  for (unsigned i = 1; i < threads && i < count; ++i)
    team.emplace_back(share);
  share();
  for (std::thread &thread : team)
    thread.join();
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
  auto read = [&](WeightOp weight, const Checkpoint &checkpoint) {
    std::vector<MeasuredLayer> layers;
    for (int64_t i = 0; i < weight.getNumLayers(); ++i) {
      auto place = placeOf.find(firstTensor(weight, i));
      if (place == placeOf.end() || weight.getLayerType().getRank() != 2)
        return true;
      MeasuredLayer &layer = layers.emplace_back();
      layer.name = place->second->name;
      int64_t heads = layer.products.heads = place->second->attention->heads;
      layer.products.sums.resize(size_t(heads * heads));
      layer.rows = weight.getLayerType().getDimSize(0);
      layer.columns = weight.getLayerType().getDimSize(1);
      auto values = readMatrix(weight, i, checkpoint, report);
      if (!values)
        return false;
      layer.turned.resize(values->size());
      for (int64_t n = 0; n < layer.rows; ++n)
        for (int64_t k = 0; k < layer.columns; ++k)
          layer.turned[size_t(k * layer.rows + n)] =
              (*values)[size_t(n * layer.columns + k)];
    }
    patterns.push_back(weight.getSymName().str());
    measured[patterns.back()] = std::move(layers);
    return true;
  };
  auto add = [&](const SeenInputs &seen) {
    auto found = measured.find(seen.weight);
    if (found == measured.end())
      return;
    forEachLayer(options, found->second.size(), [&](size_t i) {
      found->second[i].add(seen.values + int64_t(i) * seen.tokens * seen.width,
                           seen.tokens);
    });
  };
  if (!visitWeights(options, report, read) ||
      runCalibration(options, report, patterns, add) != ExitCode::Success)
    return std::nullopt;
  std::map<std::string, HeadProducts> result;
  for (auto &[symbol, layers] : measured)
    for (MeasuredLayer &layer : layers)
      result[layer.name] = std::move(layer.products);
  return result;
}

std::optional<HeadRules::Heads>
driver::chooseLeast(const HeadProducts &products, int64_t keyHeads,
                    double share, std::string &problem) {
  // What goes together.
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

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

namespace {
/// Products of inputs in a file that has no name any more.
class ProductsInFile final : public InputProducts {
public:
  ~ProductsInFile() override {
    if (memory)
      munmap(memory, bytes);
  }

  void add(const std::string &tensor, int64_t columns) {
    if (places.insert({tensor, {columns, bytes / sizeof(float)}}).second)
      bytes += size_t(columns * columns) * sizeof(float);
  }
  /// Zeros for all that was added.
  bool allocate(Report &report);
  float *find(const std::string &tensor) const {
    auto place = places.find(tensor);
    return place == places.end() ? nullptr : memory + place->second.second;
  }
  const float *find(const std::string &tensor, int64_t columns) const override {
    auto place = places.find(tensor);
    return place == places.end() || place->second.first != columns
               ? nullptr
               : memory + place->second.second;
  }
  void mirror() {
    for (auto &[tensor, place] : places)
      mirrorProducts(place.first, memory + place.second);
  }

private:
  /// Columns, and the first number.
  std::map<std::string, std::pair<int64_t, size_t>> places;
  float *memory = nullptr;
  size_t bytes = 0;
};
} // namespace

bool ProductsInFile::allocate(Report &report) {
  SmallString<128> path;
  int file = -1;
  std::error_code error =
      sys::fs::createTemporaryFile("attune-calibration", "", file, path);
  if (!error) {
    sys::fs::remove(path);
    if (ErrorOr<sys::fs::space_info> space =
            sys::fs::disk_space(sys::path::parent_path(path));
        space && space->available < bytes)
      error = std::make_error_code(std::errc::no_space_on_device);
    else
      error = sys::fs::resize_file(file, bytes);
  }
  if (!error) {
    void *map =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
      error = std::error_code(errno, std::generic_category());
    else
      memory = static_cast<float *>(map);
  }
  if (file >= 0)
    close(file);
  if (error)
    report.fail("--calibrate needs " + std::to_string(bytes >> 20) +
                    " MiB in a temporary file (TMPDIR): " + error.message(),
                ExitCode::ResourceLimit);
  return memory != nullptr;
}

bool driver::measureInputs(mlir::ModuleOp weights, const Options &options,
                           Report &report,
                           std::unique_ptr<InputProducts> &products) {
  std::set<std::string> wanted;
  for (auto weight : weights.getOps<WeightOp>()) {
    StoredForm form = formOf(weight);
    // A vocabulary in bytes loses little, and is large.
    if (form.bits == 0 || weight.holdsScales() || weight.getParts() ||
        factorOf(weight) ||
        (form.bits == 8 && weight->hasAttr("attune.vocabulary")))
      continue;
    // What is of this form already keeps its numbers.
    auto stored = weight->getAttrOfType<mlir::StringAttr>("attune.stored");
    if (stored && stored.getValue() == form.text())
      continue;
    if (form.areFloats()) {
      report.fail("--calibrate=" + options.calibrationFile +
                  " chooses numbers of int4 and int8, and '" +
                  weight.getSymName().str() + "' becomes " + form.text());
      return false;
    }
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
      wanted.insert(firstTensor(weight, layer));
  }
  if (wanted.empty()) {
    // Heads were measured when they were chosen.
    bool measured = llvm::any_of(weights.getOps<WeightOp>(), keptOf);
    if (!measured && !options.mayMeasureNothing)
      report.fail("--calibrate=" + options.calibrationFile +
                  " has nothing to measure: no matrix becomes int4 or int8 "
                  "(--quantize=int4) and attention keeps its heads "
                  "(--prune-heads=40%)");
    return measured || options.mayMeasureNothing;
  }
  auto made = std::make_unique<ProductsInFile>();
  std::map<std::string, std::vector<std::string>> tensorsOf; // by symbol
  std::vector<std::string> patterns;
  auto read = [&](WeightOp weight, const Checkpoint &) {
    std::vector<std::string> tensors;
    for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer)
      tensors.push_back(firstTensor(weight, layer));
    if (weight.getLayerType().getRank() != 2 || weight.getParts() ||
        llvm::none_of(tensors, [&](const std::string &tensor) {
          return wanted.count(tensor);
        }))
      return true;
    for (const std::string &tensor : tensors)
      made->add(tensor, weight.getLayerType().getDimSize(1));
    patterns.push_back(weight.getSymName().str());
    tensorsOf[patterns.back()] = std::move(tensors);
    return true;
  };
  auto add = [&](const SeenInputs &seen) {
    auto found = tensorsOf.find(seen.weight);
    if (found == tensorsOf.end())
      return;
    forEachLayer(options, found->second.size(), [&](size_t i) {
      addProducts(seen.values + int64_t(i) * seen.tokens * seen.width,
                  seen.tokens, seen.width, made->find(found->second[i]));
    });
  };
  if (!visitWeights(options, report, read) || !made->allocate(report) ||
      runCalibration(options, report, patterns, add) != ExitCode::Success)
    return false;
  made->mirror();
  products = std::move(made);
  return true;
}
