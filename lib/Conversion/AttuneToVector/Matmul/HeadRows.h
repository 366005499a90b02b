//===- HeadRows.h - Rows of heads on their way ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_HEADROWS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_HEADROWS_H

#include "../Rows/CachedRows.h"

namespace attune {

/// Whether turned rows go to a cache and nowhere else.
bool turnsIntoCache(RotaryOp rotary);

/// Whether `user` takes the rows of heads from the columns that they are cut
/// from; the only rounding on the way is that of what it writes.
bool readsColumns(mlir::Operation *user, SplitHeadsOp split);

/// Whether sequences have different numbers of rows in the cache.
inline bool hasUnequalPast(CacheAppendOp append) {
  return !append.getPast().getType().isIndex();
}

/// The rows that a sequence has in the cache before.
mlir::Value pastOf(KernelBuilder &k, CacheAppendOp append,
                   mlir::Value sequence);

/// A row of `width` columns, at `to` of the tile; in bytes if that is a cache
/// of them.
mlir::Value copyRow(KernelBuilder &k, int64_t width, int64_t lanes,
                    LoadColumns load, mlir::Value tile,
                    llvm::ArrayRef<mlir::Value> to);

/// What `write` writes of a row of `width` columns, at `to` of the tile; into a
/// cache in bytes from scratch, as the scale depends on the whole row.
mlir::Value
throughRow(KernelBuilder &k, int64_t width, int64_t lanes, mlir::Value tile,
           llvm::ArrayRef<mlir::Value> to,
           llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value tile,
                                          llvm::ArrayRef<mlir::Value> to)>
               write);

/// Turns rows by the op's angles; the number of these must be static.
class Turning {
public:
  /// `ahead`: without a loop, several vectors are loaded before any is stored.
  Turning(RotaryOp op, int64_t lanes, bool ahead);

  /// The row, turned, at `to` of the tile.
  mlir::Value emit(KernelBuilder &k, LoadColumns load, mlir::Value batch,
                   mlir::Value token, mlir::Value tile,
                   llvm::ArrayRef<mlir::Value> to) const;
  /// The row that is at `to` already: each pair is read before it is written.
  mlir::Value emitInPlace(KernelBuilder &k, mlir::Value batch,
                          mlir::Value token, mlir::Value tile,
                          llvm::ArrayRef<mlir::Value> to) const;

private:
  /// `load` reads of the tile where it stands.
  mlir::Value
  turnPairs(KernelBuilder &k,
            llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value tile,
                                           mlir::Value column, int64_t lanes)>
                load,
            mlir::Value batch, mlir::Value token, mlir::Value tile,
            llvm::ArrayRef<mlir::Value> to) const;

  mutable RotaryOp op;
  bool ahead;
  int64_t lanes, vector, pairs;
};

/// What becomes of the columns of a projection, where all of it is cut into
/// heads: rows of queries, keys and values go to tensors of heads or to caches,
/// normalised and turned if a norm of heads and a rotary embedding say so.
class HeadEpilogue {
public:
  /// Matches `result` [batch, tokens, columns] if all of its users are known
  /// and everything that they need is there before `layer`.
  static std::optional<HeadEpilogue> match(mlir::Operation *layer,
                                           mlir::Value result);

  int64_t getWidth() const { return width; } ///< of a head
  size_t countParts() const { return parts.size(); }
  /// Where rows go: one for each user, caches as they are before.
  KernelBuilder::Values destinations(KernelBuilder &k, mlir::Value batch,
                                     mlir::Value tokens) const;
  /// Some sequences, and some tokens of each.
  struct Rows {
    mlir::Value firstSequence, sequences, firstToken, tokens;
  };
  /// The tiles of these that columns [first, first + number) of `of` go to; the
  /// columns are whole heads.
  llvm::SmallVector<KernelBuilder::Tile> place(KernelBuilder &k,
                                               mlir::Value first,
                                               mlir::Value number,
                                               const Rows &of) const;
  /// Writes `rows` rows from row `firstRow` of `of` on, whose columns from
  /// `first` on are in `scratch`.
  KernelBuilder::Values take(KernelBuilder &k, mlir::Value firstRow,
                             mlir::Value rows, mlir::Value first,
                             mlir::Value number, const Rows &of, int64_t lanes,
                             mlir::Value scratch, mlir::ValueRange tiles,
                             bool ahead = false) const;
  /// Writes rows that have been computed, [batch * tokens, columns], whose
  /// tokens are those of `input`: each head by an iteration of its own.
  KernelBuilder::Values takeAll(KernelBuilder &k, mlir::Value input,
                                mlir::Value result, int64_t lanes) const;
  /// Brings the parameters of norms before `layer`.
  void prepare(mlir::PatternRewriter &rewriter, mlir::Operation *layer) const;
  /// Puts the written tensors in the users' place.
  void replace(mlir::PatternRewriter &rewriter, mlir::ValueRange written) const;

private:
  struct Part {
    SplitHeadsOp split;
    mlir::Operation *norm; ///< null: not normalised
    RotaryOp rotary;       ///< null: not turned
    CacheAppendOp append;  ///< null: to a tensor of heads
    int64_t begin, heads;  ///< first head of all columns, and how many

    /// What there is of these, in order.
    llvm::SmallVector<mlir::Operation *, 4> chain() const;
  };
  /// Finds what follows on the part's heads and can be done by `layer`.
  static void follow(Part &part, mlir::Operation *layer);
  /// The heads of `part` among those of columns [first, first + number): where
  /// they begin and end, among all heads.
  std::pair<mlir::Value, mlir::Value> headsOf(KernelBuilder &k,
                                              const Part &part,
                                              mlir::Value first,
                                              mlir::Value number) const;

  llvm::SmallVector<Part, 3> parts;
  int64_t width = 0;
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_HEADROWS_H
