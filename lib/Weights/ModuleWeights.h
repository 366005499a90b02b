//===- ModuleWeights.h - What a module's weights are made of ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_MODULEWEIGHTS_H
#define ATTUNE_LIB_WEIGHTS_MODULEWEIGHTS_H

#include "Attune/AttuneDialect.h"
#include "attune/Weights/Checkpoint.h"

#include <memory>
#include <optional>
#include <vector>

namespace attune {

/// The number of rows before packing, if that was noted.
std::optional<int64_t> notedRows(WeightOp weight);

/// The matrix of one part of one layer before it was packed; unless its rows
/// are noted it has those of the padding, too. If ranks share the weight it is
/// one rank's part.
std::vector<int64_t> unpackedShape(WeightOp weight);

/// Where one part of one layer comes from; its step is not applied. What the
/// pieces are multiplied by is in `attune.scales` of the weight.
std::vector<spec::WeightSource> sourcesOf(WeightOp weight, int64_t layer,
                                          int64_t part);

/// How many parts all ranks have together.
int64_t countAllParts(WeightOp weight);

/// Adds what a checkpoint has to have for a weight. `file` serves locations.
void addNeeded(WeightOp weight, const std::shared_ptr<const SourceFile> &file,
               std::vector<NeededWeight> &needed);
std::vector<NeededWeight>
neededWeights(mlir::ModuleOp module,
              const std::shared_ptr<const SourceFile> &file);

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_MODULEWEIGHTS_H
