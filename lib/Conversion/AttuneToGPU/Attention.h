//===- Attention.h - Attention by blocks of threads -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTION_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTION_H

#include "TensorCores.h"

#include "attune/Analysis/GpuAttention.h"

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

/// The weight of a score among those with this maximum, which is finite.
mlir::Value weightOf(BlockBuilder &b, AttentionIntoOp op, mlir::Value score,
                     mlir::Value most);

/// What is left to do to a row: its sums times `factor` are the result.
struct FinishedRow {
  mlir::Value factor, logSumExp;
};
FinishedRow finishRow(BlockBuilder &b, AttentionIntoOp op, mlir::Value maximum,
                      mlir::Value sum, mlir::Value head);

/// The kernel on tensor cores; with `parts` it leaves states there.
void emitAttention(KernelBuilder &k, AttentionIntoOp op,
                   const AttentionSizes &sizes, const AttentionTile &tile,
                   const AttentionParts *parts);

/// The kernel that merges parts in order and finishes.
void emitMerge(KernelBuilder &k, AttentionIntoOp op,
               const AttentionSizes &sizes, const AttentionParts &parts);

/// One of the two rows that a lane has elements of.
struct AttentionRow {
  mlir::Value there;       ///< whether there is one
  mlir::Value head, query; ///< of a row that is there
  mlir::Value begin, end;  ///< the keys that causality and windows show it
};

/// Scores of a lane: of eight keys, of two rows, of two columns.
using Scores = llvm::SmallVector<std::array<std::array<mlir::Value, 2>, 2>>;

/// What happens to scores between the two products.
class AttentionScores {
public:
  AttentionScores(AttentionIntoOp op, const AttentionSizes &sizes,
                  mlir::Value batch, std::array<AttentionRow, 2> rows,
                  std::array<mlir::Value, 2> columns)
      : op(op), sizes(sizes), batch(batch), rows(rows), columns(columns) {}

  /// Of keys from `first` on: scale, cap, biases and mask.
  void adjust(BlockBuilder &b, mlir::Value first, Scores &scores);
  /// Hides keys outside of the rows' ranges. `edge` says whether there are any.
  void hide(BlockBuilder &b, mlir::Value edge, mlir::Value first,
            Scores &scores);

private:
  mlir::Value keyOf(BlockBuilder &b, mlir::Value first, int64_t tile,
                    int64_t i);
  mlir::Value loadScore(BlockBuilder &b, mlir::Value buffer,
                        const AttentionRow &row, mlir::Value key);

  AttentionIntoOp op;
  const AttentionSizes &sizes;
  mlir::Value batch;
  std::array<AttentionRow, 2> rows;
  std::array<mlir::Value, 2> columns; ///< of eight, those of this lane
};

// Numbers of f32.
mlir::Value maximum(BlockBuilder &b, mlir::Value lhs, mlir::Value rhs);
/// `x`, or 0 where it is -inf.
mlir::Value orZero(BlockBuilder &b, mlir::Value x);

/// Launches what an op takes: one kernel, or where it may split the keys the
/// host's choice between that and two for few queries. Fails with an error if
/// the kernel does not know it.
mlir::LogicalResult lowerAttention(AttentionIntoOp op, int64_t multiprocessors);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTION_H
