//===- InMemory.h - A model compiled into this process ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_INMEMORY_H
#define ATTUNE_LIB_DRIVER_INMEMORY_H

#include "Lowering.h"
#include "WeightsForProduct.h"

#include "attune/Runtime/CompiledModel.h"
#include "attune/Weights/WeightFile.h"

#include <memory>
#include <optional>

namespace attune::driver {

/// Compiled code, its weights and threads to run it.
class InMemoryModel {
public:
  /// Weights are random without a checkpoint, unless they are needed. Returns
  /// why it failed, or success.
  ExitCode build(const Options &options, Report &report,
                 const ModelSource &source, Checkpoint *checkpoint,
                 Entries entries, bool fusion);

  runtime::CompiledModel &getModel() { return *model; }
  uint64_t getWeightBytes() const { return weights.size(); }
  /// The bytes that a token reads: without experts that are not its own.
  double getActiveBytes() const {
    return double(weights.size()) - inactiveBytes;
  }

  /// Asked for before `build`: layers can be packed anew.
  bool keepsLowering = false;
  /// The same: a model with weights is refused without a checkpoint.
  bool needsWeights = false;
  void packLayers(const WeightValues &values,
                  llvm::function_ref<bool(WeightOp, int64_t)> wants,
                  Report &report);

private:
  std::unique_ptr<Lowering> lowering; ///< if it is kept
  // In the order they are needed: the last one goes first.
  WeightsInMemory weights;
  std::optional<LoadedModel> code;
  std::unique_ptr<runtime::CompiledModel> model;
  double inactiveBytes = 0;
};

/// Compiles the model with its weights, which must be there.
ExitCode prepareModel(const Options &options, Report &report, Entries entries,
                      InMemoryModel &model);

/// Whether a description has weights at all (a bare attention has none).
bool hasWeights(const ModelSource &source);

/// Reports an error of the runtime and returns its exit code.
ExitCode reportError(const runtime::Error &error, Report &report);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_INMEMORY_H
