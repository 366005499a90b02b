//===- ProductGrid.h - The parallel loop around a matrix product ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PRODUCTGRID_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PRODUCTGRID_H

#include "PanelProduct.h"

namespace attune {

/// The iterations of a product's parallel loop: each thread has panels side by
/// side, so that it reads one stream (at the beginning of another, memory gives
/// less), and takes them in steps, all rows each. Where there are too few for
/// the threads that there are, some of them share a stream and divide its rows.
///
/// Rows that are one tile meet each panel once, and memory sets the pace. Steps
/// get shorter by the same number of panels each then, as in trapezoid
/// self-scheduling (Tzen and Ni, 1993): to claim one, a thread waits for all
/// that it has asked memory for, so they are few, and the last ones are short,
/// so that threads end together. Many rows meet panels that stay in the cache,
/// as many as it has room for, and of the last ones half in steps of half of
/// that and the rest one by one.
class ProductGrid {
public:
  /// Steps are of `group` panels, or `most` where rows are few, down to `unit`,
  /// or pairs of that if rows are many and their tiles wide. Parts lie within
  /// one of `batch` sequences of `tokens` rows.
  ProductGrid(KernelBuilder &k, const PanelProduct &product, int64_t group,
              int64_t most, int64_t unit, mlir::Value batch, mlir::Value tokens,
              int64_t tileRows);

  /// The loop's sizes: steps, then sequences apart if there may be such,
  /// streams, and parts if there may be some.
  llvm::ArrayRef<mlir::OpFoldResult> sizes() const { return counts; }

  /// Panels of the largest step.
  int64_t mostPanels() const {
    return std::max(unitOfMany * mostOfMany, unitOfFew * mostOfFew);
  }

  /// Panels, and rows: `tokens` tokens of each of `sequences` sequences.
  struct Iteration {
    PanelProduct::Step panels;
    mlir::Value firstSequence, sequences, firstToken, tokens, firstRow, rows;
  };
  Iteration at(KernelBuilder &k, mlir::ValueRange ivs) const;

  /// `own` at this place. It fetches the panels that the thread's next step
  /// begins with to the cache meanwhile, if that has room for both.
  PanelProduct productAt(KernelBuilder &k, PanelProduct own,
                         const Iteration &at,
                         const VectorLowering &lowering) const;

  /// A value where rows are few, or else the other.
  mlir::Value choose(KernelBuilder &k, mlir::Value ofFew,
                     mlir::Value ofMany) const;
  mlir::Value choose(KernelBuilder &k, int64_t ofFew, int64_t ofMany) const;
  std::optional<bool> hasFewRows() const { return isFew; }
  /// The same at run time.
  mlir::Value hasFew() const { return few; }

private:
  int64_t countUnits(int64_t unit) const;

  /// Parts of the rows, so that with the panels there are enough iterations.
  void cutRows(KernelBuilder &k, int64_t tileRows);

  /// Steps of a stream where rows are many: of `group` panels, half of the last
  /// ones in steps of half of that, and then of one unit.
  void cutStreams(KernelBuilder &k, int64_t group);

  /// The steps of a stream for few rows, of `most` panels or fewer even if it
  /// is the only one.
  void cutStreamsOfFew(KernelBuilder &k, int64_t most);

  PanelProduct::Step panelsAt(KernelBuilder &k, mlir::Value step,
                              mlir::Value stream) const;

  const PanelProduct &product;
  int64_t unitOfFew, unitOfMany;
  mlir::Value panelsOfUnit; ///< the one or the other
  /// Sequences and tokens of an iteration; at most `tokensOfPart` tokens where
  /// there may be `parts`. Null, or how many sequences are `apart`.
  mlir::Value sequences, tokens, tokensOfPart, apart, parts;
  /// Whether all rows are one tile, and if that is known.
  mlir::Value few;
  std::optional<bool> isFew;
  /// How many units each stream has, and how many of them have one more.
  mlir::Value streams, unitsOfStream, unitsLeft;
  /// Steps of a stream, and units of the largest.
  mlir::Value steps, stepsOfFew;
  /// Many rows have passed the least of `begin + step * size` units before a
  /// step, since sizes only fall.
  struct Line {
    mlir::Value begin, size;
  };
  llvm::SmallVector<Line, 3> lines;
  int64_t mostOfMany = 0, mostOfFew = 0;
  llvm::SmallVector<mlir::OpFoldResult, 4> counts;
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_PRODUCTGRID_H
