//===- WeightsForProduct.h - From a checkpoint into a product ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_WEIGHTSFORPRODUCT_H
#define ATTUNE_LIB_DRIVER_WEIGHTSFORPRODUCT_H

#include "ModelSource.h"
#include "Report/Report.h"

#include "attune/Weights/Checkpoint.h"

#include "mlir/IR/BuiltinOps.h"

namespace attune::driver {

/// Opens the checkpoint of a source, merges the adapters of the options into it
/// and checks it against its description. `merged`, if given, is told what each
/// of these changed.
std::optional<Checkpoint>
openCheckpoint(const ModelSource &source, const Options &options,
               Report &report, std::vector<MergedLora> *merged = nullptr);

/// Packs the weights behind what is in the file at `path`. Without a checkpoint
/// the values are random, from the seed.
ExitCode appendProductWeights(mlir::ModuleOp weights,
                              const Checkpoint *checkpoint,
                              const Options &options, const std::string &path,
                              Report &report);

/// Packed weights in memory that belongs to no file.
class WeightsInMemory {
public:
  WeightsInMemory() = default;
  WeightsInMemory(const WeightsInMemory &) = delete;
  WeightsInMemory &operator=(const WeightsInMemory &) = delete;
  ~WeightsInMemory();

  /// Without a checkpoint the values are random, from the seed.
  ExitCode pack(mlir::ModuleOp weights, const Checkpoint *checkpoint,
                const Options &options, Report &report);
  uint8_t *data() { return memory; }
  uint64_t size() const { return bytes; }

private:
  uint8_t *memory = nullptr;
  uint64_t bytes = 0;
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_WEIGHTSFORPRODUCT_H
