//===- Attention.h - Attention by blocks of threads -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTION_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTION_H

#include "TensorCores.h"

#include "attune/Conversion/ScoreKernels.h"
#include "attune/TargetInfo/GpuAttention.h"

#include <array>

namespace attune {

/// Sizes of one attention, on the host.
struct AttentionSizes {
  AttentionSizes(BlockBuilder &b, AttentionIntoOp op);

  int64_t heads, kvHeads, group, width, valueWidth;
  mlir::Value batches, queries, keys;
  /// Queries of all heads of a group: row r is query r / group of head
  /// r % group, so that neighbours see about the same keys.
  mlir::Value rows;
};

/// States of parts of the keys, in memory: row ((batch * heads + head) *
/// queries + query) * parts + part.
struct AttentionParts {
  mlir::Value count;
  mlir::Value sums;   ///< what the weights of the part add up to, f32
  mlir::Value states; ///< the maximum of the scores, and the weights' sum
};

// Probabilities are powers of two. A row's maximum is kept as one too: as the
// probability of the largest score, whose logarithm is the maximum.

/// The probability of a score, and of a maximum, relative to the maximum
/// `most`, which is finite.
mlir::Value weightOf(BlockBuilder &b, AttentionIntoOp op, mlir::Value score,
                     mlir::Value most);
mlir::Value weightOfMaximum(BlockBuilder &b, mlir::Value maximum,
                            mlir::Value most);

/// The last step of a row: its sums times `factor` are the result.
struct FinishedRow {
  mlir::Value factor, logSumExp;
};
FinishedRow finishRow(BlockBuilder &b, AttentionIntoOp op, mlir::Value maximum,
                      mlir::Value sum, mlir::Value head);

/// The kernel on tensor cores. With `parts` it leaves its states there; with
/// `tf32` f32 numbers are rounded to tf32.
void emitAttention(KernelBuilder &k, AttentionIntoOp op,
                   const AttentionSizes &sizes, const AttentionTile &tile,
                   const AttentionParts *parts, bool tf32);

/// Whether the heads of a query lie one behind the other in the destination.
inline bool isMerged(AttentionIntoOp op) {
  return llvm::cast<mlir::ShapedType>(op.getDest().getType()).getRank() == 3;
}

/// The kernel of warpgroups.
void emitWarpgroupAttention(KernelBuilder &k, AttentionIntoOp op,
                            const AttentionSizes &sizes,
                            const WarpgroupAttentionTile &tile);

/// The kernel that merges parts in order and finishes.
void emitMerge(KernelBuilder &k, AttentionIntoOp op,
               const AttentionSizes &sizes, const AttentionParts &parts);

/// One of the two rows that a lane has elements of.
struct AttentionRow {
  mlir::Value there;       ///< whether there is one
  mlir::Value head, query; ///< of a row that is there
  mlir::Value begin, end;  ///< the keys that causality and windows show it
};

/// Which rows a block has, and which keys they see.
struct AttentionPlace {
  AttentionPlace() = default;
  /// The place of block `number`; each head of each batch has `tiles` tiles of
  /// `tileRows` rows, and each tile takes `tileKeys` keys at a time.
  AttentionPlace(BlockBuilder &b, AttentionIntoOp op,
                 const AttentionSizes &sizes, mlir::Value number,
                 mlir::Value tiles, int64_t tileRows, int64_t tileKeys);
  /// Only some of the keys.
  void takePart(BlockBuilder &b, mlir::Value part, mlir::Value count);
  /// The two rows of a lane of the block's warp `warp`.
  void enterWarp(BlockBuilder &b, mlir::Value warp, mlir::Value lane);

  /// How many tiles of keys there are.
  mlir::Value countSteps(BlockBuilder &b) const;
  /// Whether the mask of blocks lets the block see the keys of its tile from
  /// `first` on.
  mlir::Value isBlockSeen(BlockBuilder &b, mlir::Value first) const {
    return attune::isBlockSeen(b, modifiers, batch, rows[0].head, firstQuery,
                               first);
  }
  /// Whether a row of the warp does not see some of the tile's keys from
  /// `first` on.
  mlir::Value onEdge(BlockBuilder &b, mlir::Value first) const;
  /// The last key that may be read: behind a shorter sequence there may be no
  /// memory.
  mlir::Value lastKey(BlockBuilder &b) const;
  /// Row `number` of a head of keys: which head, and which query.
  mlir::Value headOf(BlockBuilder &b, mlir::Value number) const;
  mlir::Value queryOf(BlockBuilder &b, mlir::Value number) const;

  mlir::Value batch, kvHead, firstRow, lastRow, firstQuery, begin, end;
  std::array<AttentionRow, 2> rows; ///< of the lane

private:
  KeysInReach reach(BlockBuilder &b) const;
  mlir::Value seenFrom(BlockBuilder &b, mlir::Value query) const;
  mlir::Value seenTo(BlockBuilder &b, mlir::Value query) const;

  ScoreModifiers modifiers;
  const AttentionSizes *sizes = nullptr;
  int64_t tileKeys = 0;
  mlir::Value allKeys, upToLast, earliestEnd, latestBegin;
};

/// The softmax state of a lane: the maxima of two rows, and its part of the
/// sums of their probabilities.
struct AttentionSums {
  std::array<mlir::Value, 2> most, sum;
};

/// Writes a warp's part of its rows' results, or of their states as part
/// `part`. Pairs of channels 8 n + 2 member, counted from `firstChannel`, are
/// given by n and row; `before` is the largest such start.
struct AttentionResult {
  mlir::Value lane, firstChannel;
  int64_t before, tiles;
  AttentionSums sums;
  const AttentionParts *parts = nullptr;
  mlir::Value part;
};
void storeResult(
    BlockBuilder &b, AttentionIntoOp op, const AttentionSizes &sizes,
    const AttentionPlace &place, const AttentionResult &result,
    llvm::function_ref<mlir::Value(BlockBuilder &, int64_t n, int64_t half)>
        pairOf);

/// Scores of a lane: of eight keys, of two rows, of two columns.
using Scores = llvm::SmallVector<std::array<std::array<mlir::Value, 2>, 2>>;

/// Edits scores between the two products.
class AttentionScores {
public:
  AttentionScores(AttentionIntoOp op, const AttentionSizes &sizes,
                  mlir::Value batch, std::array<AttentionRow, 2> rows,
                  std::array<mlir::Value, 2> columns)
      : op(op), modifiers(ScoreModifiers::of(op)), sizes(sizes), batch(batch),
        rows(rows), columns(columns) {}

  /// Applies scale, cap, biases and mask to keys from `first` on.
  void adjust(BlockBuilder &b, mlir::Value first, Scores &scores);
  /// Hides keys outside of the rows' ranges. `edge` says whether there are any.
  void hide(BlockBuilder &b, mlir::Value edge, mlir::Value first,
            Scores &scores);

  /// Turns scores into probabilities, of a maximum that may have grown by that;
  /// returns the factor by which sums so far shrink.
  std::array<mlir::Value, 2> weigh(BlockBuilder &b, Scores &scores,
                                   AttentionSums &state);

private:
  mlir::Value keyOf(BlockBuilder &b, mlir::Value first, int64_t tile,
                    int64_t i);
  class LaneScore;

  AttentionIntoOp op;
  ScoreModifiers modifiers;
  const AttentionSizes &sizes;
  mlir::Value batch;
  std::array<AttentionRow, 2> rows;
  std::array<mlir::Value, 2> columns; ///< of eight, those of this lane
};

/// Scores or weights times the scales of their keys: `scalesOf` gives those of
/// the lane's two columns of eight keys.
void multiplyByScales(
    BlockBuilder &b, Scores &scores,
    llvm::function_ref<std::array<mlir::Value, 2>(BlockBuilder &, int64_t tile)>
        scalesOf);

/// Combines a number of the four lanes that share a row; all get the result.
mlir::Value amongLanes(
    BlockBuilder &b, mlir::Value x,
    llvm::function_ref<mlir::Value(BlockBuilder &, mlir::Value, mlir::Value)>
        combine);

// Numbers of f32.
mlir::Value maximum(BlockBuilder &b, mlir::Value lhs, mlir::Value rhs);
/// `x`, or 0 where it is -inf.
mlir::Value orZero(BlockBuilder &b, mlir::Value x);

/// Launches the kernels of an op: one kernel, or, where it may split the keys,
/// the host's choice between that and two for few queries. Fails with an error
/// if no kernel takes it.
mlir::LogicalResult lowerAttention(AttentionIntoOp op, int64_t multiprocessors,
                                   bool warpgroups, bool tf32);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTION_H
