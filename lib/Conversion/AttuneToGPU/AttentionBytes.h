//===- AttentionBytes.h - Keys and values in bytes --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTIONBYTES_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTIONBYTES_H

#include "Attention.h"

namespace attune {

/// The chunks of a stage's rows that a thread copies.
class StageChunks {
public:
  StageChunks(BlockBuilder &b, const AttentionTile &tile, mlir::Value thread,
              int64_t width);

  struct Chunk {
    mlir::Value row, channel; ///< of the tile, and of the row
    mlir::Value place;        ///< in the stage
  };
  int64_t count() const { return (total + threads - 1) / threads; }
  Chunk at(BlockBuilder &b, int64_t number) const;
  /// `body` if the thread has such a chunk.
  void when(BlockBuilder &b, int64_t number,
            llvm::function_ref<void(BlockBuilder &)> body) const;

private:
  int64_t threads, total, chunks, column, each;
  mlir::Value thread, row, channel, place;
};

/// Keys or values in bytes, which become numbers of another type on their way
/// to shared memory. Those of a step are loaded before the products of the
/// step before, which hide how long that takes, and are stored after them.
class ByteRows {
public:
  ByteRows(BlockBuilder &b, const AttentionTile &tile, mlir::Value rows,
           mlir::Value thread, BlockLaunch &launch, mlir::Value shared,
           int64_t tileWidth);

  /// What a thread has loaded.
  struct Loaded {
    mlir::SmallVector<mlir::Value> bytes, scales;
  };
  /// Loads channels from `firstChannel` on of keys from `first` on. Those from
  /// `to` on, which no query sees, have a scale of 0; no key behind `last` is
  /// read.
  Loaded load(BlockBuilder &b, const AttentionPlace &place,
              mlir::Value firstChannel, mlir::Value first, mlir::Value to,
              mlir::Value last) const;
  void store(BlockBuilder &b, mlir::Value stage, const Loaded &loaded) const;
  /// The scale of a key of a stage.
  mlir::Value scaleOf(BlockBuilder &b, mlir::Value stage,
                      mlir::Value key) const;

private:
  mlir::Value rowOfScale(BlockBuilder &b, int64_t number) const;

  const AttentionTile tile;
  mlir::Value rows, thread, shared, scales;
  int64_t width;     ///< numbers of a row
  int64_t tileWidth; ///< and those that a block takes
  int64_t unit;      ///< of one load
  StageChunks chunks;
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTIONBYTES_H
