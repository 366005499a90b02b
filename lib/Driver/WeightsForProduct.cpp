//===- WeightsForProduct.cpp - From a checkpoint into a product -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightsForProduct.h"

#include "ChosenOnTexts.h"

#include "attune/Analysis/ModelStatistics.h"
#include "attune/Runtime/ThreadTeam.h"
#include "attune/Weights/WeightFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <sys/mman.h>
#include <unistd.h>

using namespace attune;
using namespace attune::driver;

/// The layers that read a tensor: "embed, head".
static std::vector<std::string> readersOf(const spec::Model &model,
                                          const std::string &tensor) {
  std::vector<std::string> readers;
  std::string table;
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers) {
      const auto *linear = std::get_if<spec::Linear>(&layer.op);
      bool reads = linear && !table.empty() && linear->tied == table;
      for (const spec::WeightRole &role : spec::weightRoles(layer))
        for (const spec::WeightSource &source :
             spec::resolveWeight(layer, role.role))
          reads |= source.tensor == tensor;
      if (!reads)
        continue;
      readers.push_back(layer.name.empty() ? "a layer without name"
                                           : "'" + layer.name + "'");
      if (std::holds_alternative<spec::Embedding>(layer.op))
        table = layer.name;
    }
  return readers;
}

/// An adapter of one layer must not change another that has the same tensor.
static bool checkShared(const spec::Model &model, const MergedLora &merged,
                        const std::string &folder, Report &report) {
  for (const std::string &table : merged.tables) {
    std::vector<std::string> readers = readersOf(model, table);
    if (readers.size() < 2)
      continue;
    report.error({}, folder + ": this adapter changes '" + table + "', which " +
                         llvm::join(readers, " and ") +
                         " share, but was trained for one of them; use one "
                         "that was trained without this module");
    return false;
  }
  return true;
}

/// Merges the adapters in their order.
static bool mergeLoras(Checkpoint &checkpoint, const ModelSource &source,
                       const Options &options, Report &report,
                       std::vector<MergedLora> &all) {
  for (const Options::Lora &lora : options.mergedLoras()) {
    std::optional<MergedLora> merged =
        checkpoint.mergeLora(lora.folder, lora.scale, report);
    if (!merged || (source.model &&
                    !checkShared(*source.model, *merged, lora.folder, report)))
      return false;
    if (merged->matrices == 0 && merged->replaced == 0) {
      report.error({}, lora.folder + ": this adapter has no tensor, so it "
                                     "would change nothing; its files may be "
                                     "incomplete");
      return false;
    }
    report.note(
        {}, lora.folder + ": merged into " + std::to_string(merged->matrices) +
                (merged->matrices == 1 ? " matrix" : " matrices") +
                (merged->replaced
                     ? "; in place of the base's: " +
                           std::to_string(merged->replaced) +
                           (merged->replaced == 1 ? " tensor" : " tensors")
                     : ""));
    all.push_back(std::move(*merged));
  }
  return true;
}

std::optional<Checkpoint>
driver::openCheckpoint(const ModelSource &source, const Options &options,
                       Report &report, std::vector<MergedLora> *merged) {
  report.beginStage("checking weights");
  std::optional<Checkpoint> checkpoint =
      Checkpoint::open(source.checkpointPath, report);
  // Who imported a folder has said so.
  if (checkpoint && source.folder.empty())
    checkpoint->noteWrappers(report);
  if (checkpoint)
    checkpoint->leaveOut(source.leftOut);
  std::vector<MergedLora> loras;
  if (checkpoint && !mergeLoras(*checkpoint, source, options, report, loras))
    return std::nullopt;
  if (merged)
    *merged = std::move(loras);
  if (checkpoint && source.model &&
      !checkWeights(*source.model, *checkpoint, report))
    return std::nullopt;
  if (checkpoint && options.checkWeights && !checkFinite(*checkpoint, report))
    return std::nullopt;
  report.endStage();
  return checkpoint;
}

static unsigned countThreads(const Options &options) {
  return options.threads ? options.threads : runtime::availableCores();
}

static WeightValues makeValues(const Checkpoint *checkpoint,
                               const Options &options, Report &report,
                               const ChosenNumbers *chosen) {
  WeightValues values{checkpoint, options.seed, countThreads(options)};
  values.chosen = chosen;
  auto start = std::chrono::steady_clock::now();
  values.progress = [&report, start](uint64_t done, uint64_t total) {
    std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - start;
    report.showProgress(
        llvm::formatv("{0}%, {1:f0} MB/s", total ? done * 100 / total : 100,
                      double(done) / 1e6 / std::max(passed.count(), 1e-3))
            .str());
  };
  return values;
}

/// Reports the gain and the loss of rounding to few bits.
static void noteQuantized(const WeightReport::Quantized &done, Report &report) {
  report.note({}, llvm::formatv("{0} {5} in {4} take {1} instead of "
                                "{2}; their weights are off by {3:f2}% (root "
                                "mean square)",
                                done.matrices, formatBytes(done.bytes),
                                formatBytes(done.bytesBefore), 100 * done.error,
                                done.kind,
                                done.matrices == 1 ? "matrix" : "matrices")
                      .str());
}

static std::string listErrors(const std::vector<double> &errors) {
  std::string text;
  for (double error : errors)
    text += llvm::formatv("{0}{1:f2}%", text.empty() ? "" : ", ", 100 * error)
                .str();
  return text;
}

/// Reports what each matrix of low rank takes and loses, layer by layer.
static void noteLowRank(mlir::ModuleOp weights, const WeightReport &done,
                        Report &report) {
  for (const WeightReport::LowRank &some : done.lowRank) {
    double before = double(some.rows) * double(some.columns);
    double now = double(some.rank) * double(some.rows + some.columns);
    report.note({},
                llvm::formatv("'{0}' of {1}x{2} has rank {3}: {4} numbers, "
                              "and {5} operations for a row, instead of "
                              "{6} and {7} ({8:f0}%); off by {9} (root mean "
                              "square{10})",
                              some.name, some.rows, some.columns, some.rank,
                              formatShort(now), formatShort(2 * now),
                              formatShort(before), formatShort(2 * before),
                              100 * now / before, listErrors(some.errors),
                              some.errors.size() > 1 ? ", layer by layer" : "")
                    .str());
  }
  for (WeightOp weight : weights.getOps<WeightOp>())
    if (auto why = weight->getAttrOfType<mlir::StringAttr>("attune.whole");
        why && !weight.holdsScales() && !weight.holdsOrder())
      report.note({}, llvm::formatv("stays whole: '{0}' {1}",
                                    weight.getSymName(), why.getValue())
                          .str());
}

/// Chooses numbers for what becomes few bits, if texts are given.
static bool calibrate(mlir::ModuleOp weights, const Checkpoint *checkpoint,
                      const Options &options, Report &report,
                      std::unique_ptr<ChosenOnTexts> &chosen) {
  if (options.calibrationFile.empty() || !checkpoint)
    return true;
  if (!chooseOnTexts(weights, options, report, chosen))
    return false;
  if (chosen)
    chosen->note(report);
  return true;
}

/// Reports the tensors that the checkpoint keeps in few bits.
static void noteEncoded(const WeightReport &done, Report &report) {
  std::string text;
  for (const WeightReport::Encoded &some : done.encoded)
    text += (text.empty() ? "" : ", ") + std::to_string(some.tensors) + " of " +
            some.name + " as " + some.became +
            (some.kept ? "" : " (rounded, as was asked for)") +
            (some.widened ? " (" + std::to_string(some.widened) +
                                " for kernels that take floats alone)"
                          : "");
  if (!text.empty())
    report.note({}, "quantized tensors of the checkpoint are read: " + text);
}

static void note(const WeightReport &done, Report &report) {
  report.noteStage(llvm::formatv("{0:f1} MB, {1:f0} MB/s",
                                 double(done.bytes) / 1e6,
                                 done.megabytesPerSecond())
                       .str());
  report.endStage();
}

ExitCode driver::appendProductWeights(mlir::ModuleOp weights,
                                      const Checkpoint *checkpoint,
                                      const Options &options,
                                      const std::string &path, Report &report) {
  mlir::FailureOr<WeightLayout> layout = layoutWeights(weights);
  if (mlir::failed(layout) ||
      (checkpoint && !checkWeights(weights, *checkpoint, report)))
    return ExitCode::BadInput;
  uint64_t needed = layout->totalBytes + kWeightPage + kWeightTrailerBytes;
  std::string folder = llvm::sys::path::parent_path(path).str();
  llvm::ErrorOr<llvm::sys::fs::space_info> space =
      llvm::sys::fs::disk_space(folder.empty() ? "." : folder);
  if (space && space->available < needed)
    return report.fail("the weights need " + formatBytes(needed) +
                           " on disk, but only " +
                           formatBytes(space->available) + " are free",
                       ExitCode::ResourceLimit);
  std::unique_ptr<ChosenOnTexts> chosen;
  if (!calibrate(weights, checkpoint, options, report, chosen))
    return ExitCode::BadInput;
  std::optional<WeightReport> done = appendWeights(
      weights, makeValues(checkpoint, options, report, chosen.get()), path,
      report);
  if (!done)
    return ExitCode::BadInput;
  note(*done, report);
  noteEncoded(*done, report);
  noteLowRank(weights, *done, report);
  if (checkpoint && done->lowRank.empty() && options.lowRank &&
      !options.lowRank->isNone())
    report.warning({}, "no matrix of the model has a low rank; --remarks=FILE "
                       "says why");
  for (const WeightReport::Quantized &some : done->quantized)
    noteQuantized(some, report);
  if (done->quantized.empty() && done->encoded.empty() && options.quantize &&
      options.quantize->quantizes())
    report.warning({}, "no matrix of the model is kept in " +
                           options.quantize->describe() +
                           "; --remarks=FILE says why");
  return ExitCode::Success;
}

WeightsInMemory::~WeightsInMemory() {
  if (memory)
    munmap(memory, std::max<int64_t>(bytes, 1));
}

ExitCode WeightsInMemory::pack(mlir::ModuleOp weights,
                               const Checkpoint *checkpoint,
                               const Options &options, Report &report) {
  mlir::FailureOr<WeightLayout> layout = layoutWeights(weights);
  if (mlir::failed(layout) ||
      (checkpoint && !checkWeights(weights, *checkpoint, report)))
    return ExitCode::BadInput;
  // The memory of the machine is the limit; swapping weights serves nobody.
  uint64_t present =
      uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  if (uint64_t(layout->totalBytes) > present)
    return report.fail("the weights need " + formatBytes(layout->totalBytes) +
                           " of memory, but this machine has " +
                           formatBytes(present),
                       ExitCode::ResourceLimit);
  bytes = layout->totalBytes;
  // A model may have no weights at all; nothing cannot be mapped.
  void *map = mmap(nullptr, std::max<int64_t>(bytes, 1), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return report.fail("no memory for " + formatBytes(bytes) + " of weights",
                       ExitCode::ResourceLimit);
  // Decoding streams all of it: with pages of 4 KiB it is a fifth slower.
  madvise(map, std::max<int64_t>(bytes, 1), MADV_HUGEPAGE);
  memory = static_cast<uint8_t *>(map);
  std::unique_ptr<ChosenOnTexts> chosen;
  if (!calibrate(weights, checkpoint, options, report, chosen))
    return ExitCode::BadInput;
  report.beginStage("packing weights");
  std::optional<WeightReport> done = packWeights(
      weights, makeValues(checkpoint, options, report, chosen.get()), memory,
      report);
  if (!done)
    return ExitCode::BadInput;
  note(*done, report);
  noteEncoded(*done, report);
  return ExitCode::Success;
}
