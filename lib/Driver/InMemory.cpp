//===- InMemory.cpp - A model compiled into this process --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InMemory.h"

#include "attune/Analysis/ModelStatistics.h"
#include "attune/Weights/LoraBranches.h"

using namespace attune;
using namespace attune::driver;

bool driver::hasWeights(const ModelSource &source) {
  // An .mlir file shows whether it has weights when it is parsed.
  return source.model && analyze(*source.model, {}).parameters > 0;
}

ExitCode driver::reportError(const runtime::Error &error, Report &report) {
  return report.fail(error.message, ExitCode(error.code));
}

ExitCode InMemoryModel::build(const Options &options, Report &report,
                              const ModelSource &source, Checkpoint *checkpoint,
                              Entries entries, bool fusion) {
  auto made = std::make_unique<Lowering>(options, report, source, fusion);
  Lowering &lowering = *made;
  lowering.needsWeights = needsWeights;
  std::optional<ProductBytes> object = lowering.compile(entries, "obj");
  if (!object)
    return lowering.code;
  report.beginStage("loading");
  llvm::Expected<LoadedModel> loaded = LoadedModel::load(*object);
  if (!loaded)
    return report.fail("internal error: " + llvm::toString(loaded.takeError()),
                       ExitCode::InternalError);
  code.emplace(std::move(*loaded));
  inactiveBytes = lowering.getInactiveBytes();
  if (source.branches && checkpoint)
    addLoraStacks(lowering.getWeights(), *source.branches, *checkpoint);
  ExitCode packed =
      weights.pack(lowering.getWeights(), checkpoint, options, report);
  if (packed != ExitCode::Success)
    return packed;
  if (keepsLowering)
    this->lowering = std::move(made);

  runtime::OpenOptions open;
  open.threads = options.threads;
  open.memoryLimit = options.team.memoryLimit;
  open.weights = weights.data();
  open.weightsBytes = weights.size();
  runtime::Error error;
  model = runtime::CompiledModel::open(code->getDescriptor(), open, error);
  if (!model)
    return reportError(error, report);
  report.endStage();
  return ExitCode::Success;
}

void InMemoryModel::packLayers(
    const WeightValues &values,
    llvm::function_ref<bool(WeightOp, int64_t)> wants, Report &report) {
  attune::packLayers(lowering->getWeights(), values, wants, weights.data(),
                     report);
}
