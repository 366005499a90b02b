//===- ScoreKernels.h - Scores of attention in kernels ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The common part of all that computes scores of attention, the textbook form
// and the kernels of CPUs and GPUs: what happens to a score, which keys a tile
// of queries sees, which blocks a mask hides, the split of keys into parts.

#ifndef ATTUNE_CONVERSION_SCOREKERNELS_H
#define ATTUNE_CONVERSION_SCOREKERNELS_H

#include "Attune/AttuneScores.h"
#include "attune/Conversion/KernelBuilder.h"

namespace attune {

/// Emits what happens to scores in f32, to one or to a vector of them. Who
/// derives from it knows of which queries and keys they are, and says what an
/// operand has for them.
class ScoreArithmetic {
public:
  explicit ScoreArithmetic(const KernelBuilder &k) : k(k) {}
  virtual ~ScoreArithmetic() = default;

  /// In this order: scale, soft cap, bias, diagonals, slopes, mask.
  mlir::Value modify(const ScoreModifiers &modifiers, mlir::Value score);
  /// `score`, or -inf.
  mlir::Value hideUnless(mlir::Value seen, mlir::Value score);

protected:
  virtual mlir::Value biasAt(mlir::Value bias) = 0;
  virtual mlir::Value diagonalAt(mlir::Value diagonals) = 0;
  virtual mlir::Value slopeAt(mlir::Value slopes) = 0;
  virtual mlir::Value maskAt(mlir::Value mask) = 0;
  /// From the query to the key in f32, negative for earlier keys.
  virtual mlir::Value distance() = 0;

  /// Kernels multiply by the inverse, which is rounded.
  virtual mlir::Value over(mlir::Value score, double by);
  /// sum + x y; kernels round once.
  virtual mlir::Value plusProduct(mlir::Value sum, mlir::Value x,
                                  mlir::Value y);
  mlir::Value times(mlir::Value score, double by);
  mlir::Value plus(mlir::Value x, mlir::Value y);

  KernelBuilder k;
};

/// Which keys a query sees for its distance from them. Queries are counted from
/// the first of all, keys from `firstKey`, which is the first of all if null.
/// With the causal alignment `lengths`, `numKeys` are those of the sequence.
class KeysInReach {
public:
  KeysInReach(const KernelBuilder &k, const ScoreModifiers &modifiers,
              mlir::Value numQueries, mlir::Value numKeys,
              mlir::Value firstKey = {})
      : numQueries(numQueries), numKeys(numKeys), k(k), modifiers(modifiers),
        firstKey(firstKey) {}

  /// The key that stands where a query does, if the last ones stand together.
  mlir::Value positionOf(mlir::Value query);
  /// The one from which a query sees others: the last, if it is causal.
  mlir::Value ownKey(mlir::Value query);
  /// The first key that the query with the key `own` sees, which may be
  /// negative; null without a window.
  mlir::Value begin(mlir::Value own);
  /// The end of the keys that it and the following `count` - 1 queries see,
  /// which may be behind the last key; null if no later key is hidden.
  mlir::Value end(mlir::Value own, mlir::Value count);

  const mlir::Value numQueries, numKeys;

private:
  KernelBuilder k;
  const ScoreModifiers &modifiers;
  mlir::Value firstKey;
};

/// Some keys: from `begin` to before `end`, none if that is no more.
struct KeyRange {
  mlir::Value begin, end;
};

/// The number of keys of a sequence: all, or its length.
mlir::Value keysOfBatch(KernelBuilder &k, const ScoreModifiers &modifiers,
                        mlir::Value numKeys, mlir::Value batch);

/// The number of keys up to the place of the last query, inclusive: those of
/// the sequence, if its length says where queries stand.
mlir::Value keysUpToLast(KernelBuilder &k, const ScoreModifiers &modifiers,
                         mlir::Value numKeys, mlir::Value batch);

/// The range, within the first `keys` keys, that some of `count` queries from
/// `first` on see. It begins at a multiple of `step`.
KeyRange keysOfTile(KernelBuilder &k, KeysInReach reach, mlir::Value keys,
                    mlir::Value first, mlir::Value count, int64_t step = 1);

/// Whether the mask of blocks lets a head's queries see keys: `query` is any of
/// these queries, `key` any of the keys. Both lie in one of its blocks.
mlir::Value isBlockSeen(KernelBuilder &k, const ScoreModifiers &modifiers,
                        mlir::Value batch, mlir::Value head, mlir::Value query,
                        mlir::Value key);

/// The number of keys, out of `keys`, that each of `parts` parts takes
/// (split-KV): a multiple of `step`, and the last ones fewer or none.
mlir::Value keysOfPart(KernelBuilder &k, mlir::Value keys, mlir::Value parts,
                       int64_t step);

/// The part of a mask or bias [batch, heads, queries, keys] that a block of
/// scores reads; sizes of one serve all. Null stays null.
mlir::Value cutScores(KernelBuilder &k, mlir::Value whole,
                      llvm::ArrayRef<mlir::OpFoldResult> offsets,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes);

} // namespace attune

#endif // ATTUNE_CONVERSION_SCOREKERNELS_H
