//===- Channels.h - Vectors of channels that walk the tokens ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_CHANNELS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_CHANNELS_H

#include "../Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace attune {

inline mlir::Value times(KernelBuilder &k, mlir::Value x, mlir::Value y) {
  return mlir::arith::MulFOp::create(k.b, k.loc, x, y);
}
inline mlir::Value exponential(KernelBuilder &k, mlir::Value x) {
  return mlir::math::ExpOp::create(k.b, k.loc, x);
}

/// An empty tensor of the type of `result`.
mlir::Value emptyLike(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value result,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// A vector of channels at a time.
struct Channels {
  int64_t count, lanes;

  mlir::OpFoldResult tiles(mlir::OpBuilder &b) const {
    return b.getIndexAttr(llvm::divideCeil(count, lanes));
  }
  /// How many of the vector at `column` exist; null if all.
  mlir::Value valid(KernelBuilder &k, mlir::Value column) const {
    return count % lanes == 0
               ? mlir::Value()
               : k.min(k.index(lanes), k.sub(k.index(count), column));
  }
};

/// A vector of channels of one sequence.
struct ChannelTile {
  Channels channels;
  mlir::Value batch, column, valid;

  /// What `read` gives for each lane's run of `size` channels. Lanes that do
  /// not exist repeat the last channel.
  mlir::Value
  perLane(KernelBuilder &k, int64_t size,
          llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value)> read);
  /// Number `number` of every run in a [batch, tokens, runs] tensor.
  mlir::Value ofRuns(KernelBuilder &k, int64_t size, mlir::Value from,
                     mlir::Value token);
  /// Number `state` of the `states` that every run of `size` channels has in a
  /// [batch, tokens, runs * states] tensor.
  mlir::Value ofState(KernelBuilder &k, int64_t size, int64_t states,
                      mlir::Value from, mlir::Value token, mlir::Value state);
};

/// A parallel loop over the vectors of channels of `input`, sequence by
/// sequence: `compute` gets its part of each of `results`, all tokens, and then
/// of `last`, all states, and returns them written.
KernelBuilder::Values forChannelTiles(
    mlir::OpBuilder &b, mlir::Location loc, const Channels &channels,
    mlir::Value input, mlir::ValueRange results, mlir::Value last,
    llvm::function_ref<KernelBuilder::Values(
        KernelBuilder &, const ChannelTile &, mlir::ValueRange tiles)>
        compute);

/// One vector for each state, made by `make`, in scratch memory.
mlir::Value forStates(
    KernelBuilder &k, int64_t states, int64_t lanes,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value state)> make);
/// The same copied from there to a [1, states, lanes] tile.
mlir::Value copyStates(KernelBuilder &k, int64_t states, ChannelTile &tile,
                       mlir::Value scratch, mlir::Value last);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_CHANNELS_H
