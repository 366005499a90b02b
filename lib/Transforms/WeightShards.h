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

/// How ranks share `units` things that stay whole: all have room for equally
/// many, and none has more than one more than another.
struct Shares {
  int64_t units = 0, ranks = 1;

  int64_t most() const { return (units + ranks - 1) / ranks; }
  int64_t first(int64_t rank) const { return rank * units / ranks; }
  int64_t count(int64_t rank) const { return first(rank + 1) - first(rank); }
};

/// Cuts the weights of a module, each once for all functions that use it.
class WeightShards {
public:
  WeightShards(mlir::ModuleOp module, int64_t ranks)
      : module(module), symbols(module), ranks(ranks) {}

  /// Rows or columns that ranks share: `units` from `begin` on, each of `width`
  /// neighbours that stay together. `repeat` ranks have a copy of each part.
  struct Range {
    int64_t begin = 0, units = 0, width = 1, repeat = 1;
  };

  int64_t getRanks() const { return ranks; }
  /// How ranks share the hidden columns of a layer.
  mlir::FailureOr<Range> hiddenColumns(mlir::Operation *layer,
                                       int64_t width) const;
  /// The value comes from a weight, perhaps in parts; each rank gets its share
  /// of the ranges, one below the other. Where units do not divide some ranks
  /// have one that is another's, too.
  mlir::LogicalResult cutRows(mlir::Value value, llvm::ArrayRef<Range> ranges);
  /// Rank r gets `each` rows, or what there is, from `r * each` on, and then
  /// zeros: its last row always is zero.
  mlir::LogicalResult cutPaddedRows(mlir::Value value, int64_t each);
  /// Each rank gets its share of the columns; other ranks' columns are zero.
  mlir::LogicalResult cutColumns(mlir::Value value, const Range &range);
  /// The value is a weight in parts; each rank gets its share of these.
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
  WeightOp weightOf(mlir::Value value);
  /// The layer's type is `shape` then, with parts in front if it has some.
  mlir::LogicalResult apply(mlir::Value value, WeightOp weight,
                            const WeightCut &cut,
                            llvm::ArrayRef<int64_t> shape);
  /// The matrix or vector before it was cut, of each part.
  llvm::SmallVector<int64_t> wholeShape(WeightOp weight);

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
