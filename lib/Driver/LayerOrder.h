//===- LayerOrder.h - Layers in the order they run --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_LAYERORDER_H
#define ATTUNE_LIB_DRIVER_LAYERORDER_H

#include "Attune/AttuneDialect.h"

#include <utility>
#include <vector>

namespace attune::driver {

/// Weights, each with the number of a layer, that one call of a block's
/// function reads, or an entry between two such calls.
using Stage = std::vector<std::pair<WeightOp, int64_t>>;

/// The stages of the entries of an imported module, in order. A layer that
/// several read belongs to the last of them.
std::vector<Stage> findStages(mlir::ModuleOp module);

/// What the experts of an `attune.moe` are made of.
struct Mixture {
  WeightOp up, down, upBias; ///< null: there is none
  Activation activation = Activation::Identity;
  bool gated = false;
  double limit = 0, upOffset = 0;

  /// Adds the hidden layer that `rows` sums of a token become. Their biases may
  /// be empty.
  void addHidden(const float *sums, int64_t rows,
                 const std::vector<float> &biases,
                 std::vector<float> &hidden) const;
};

std::vector<Mixture> findMixtures(mlir::ModuleOp module);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_LAYERORDER_H
