//===- WeightShards.h - Which rank has which rows of a weight ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_WEIGHTSHARDS_H
#define ATTUNE_LIB_TRANSFORMS_WEIGHTSHARDS_H

#include "Attune/AttuneCut.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <vector>

namespace attune {

/// Cuts the weights of a module, each once for all functions that use it.
class WeightShards {
public:
  WeightShards(mlir::ModuleOp module, int64_t ranks)
      : module(module), symbols(module), ranks(ranks) {}

  /// Rows that ranks share: rank r has `count` of them from
  /// `begin + r * stride / repeat` on, with `repeat` ranks for each part. At
  /// the end of the weight there may be fewer.
  struct Range {
    int64_t begin = 0, count = 0, stride = 0, repeat = 1;
  };

  int64_t getRanks() const { return ranks; }
  /// The value comes from a weight; each rank gets the ranges of it one below
  /// the other, and `padding` rows of zeros.
  mlir::LogicalResult cutRows(mlir::Value value, llvm::ArrayRef<Range> ranges,
                              int64_t padding = 0);
  /// Rank r gets the r-th part of the columns.
  mlir::LogicalResult cutColumns(mlir::Value value);
  /// The value is a weight in parts, of which each rank gets equally many
  /// neighbours.
  mlir::LogicalResult cutParts(mlir::Value value);
  /// The first rank has the weight, the others have zeros.
  mlir::LogicalResult keepOnFirst(mlir::Value value);
  bool isCut(mlir::Value value) const { return done.contains(value); }
  /// Whether a value is a weight that was cut where another one was.
  bool isCutElsewhere(mlir::Value value);
  unsigned numCut() const { return unsigned(cuts.size()); }
  /// Fails if a weight that was cut is used whole somewhere, too.
  mlir::LogicalResult finish();

private:
  /// The weight that a value is, or null after an error.
  WeightOp weightOf(mlir::Value value, bool inParts = false);
  mlir::LogicalResult apply(mlir::Value value, WeightOp weight,
                            const WeightCut &cut,
                            llvm::ArrayRef<int64_t> shape);
  /// The matrix or vector before it was cut.
  llvm::ArrayRef<int64_t> wholeShape(WeightOp weight);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  int64_t ranks;
  struct Known {
    WeightCut cut;
    mlir::RankedTensorType whole; ///< of one layer
  };
  llvm::MapVector<WeightOp, Known> cuts;
  llvm::DenseSet<mlir::Value> done;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_WEIGHTSHARDS_H
