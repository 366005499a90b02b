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

/// What scales of values are multiplied by, a power of two: such that weights
/// times these are about as large as values, which f16 has room for. Sums are
/// as many times too large.
double unitOfValues(AttentionIntoOp op);
/// A pair of sums as they should be.
mlir::Value inUnits(BlockBuilder &b, AttentionIntoOp op, mlir::Value sums);

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
           int64_t tileWidth, double unitOfScales = 1);

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
  double unitOfScales;
  StageChunks chunks;
};

/// The same for the tile of warpgroups: one of these loads words of a box of 64
/// channels, of which it makes pairs of 16 bits where wgmma reads them.
class ByteBoxes {
public:
  /// Elements are of `type`; `member` is the thread's number in its group.
  ByteBoxes(BlockBuilder &b, const WarpgroupAttentionTile &tile,
            mlir::Value rows, mlir::Type type, mlir::Value member);

  /// How many pieces there are of a stage: all or some rows of a box.
  int64_t pieces() const;
  /// What a thread loads of a piece of keys from `first` on. No key behind the
  /// last is read.
  mlir::SmallVector<mlir::Value> load(BlockBuilder &b,
                                      const AttentionPlace &place,
                                      mlir::Value first, int64_t piece) const;
  /// Stores that in the stage at this address.
  void store(BlockBuilder &b, mlir::Value stage, int64_t piece,
             mlir::ArrayRef<mlir::Value> words) const;

  /// The key of a step whose scales a thread loads. Threads that have none do
  /// as the last one does.
  mlir::Value keyOfScale(BlockBuilder &b) const;
  /// Its scale times `unit`, or 0 if no query sees it.
  mlir::Value loadScale(BlockBuilder &b, const AttentionPlace &place,
                        mlir::Value first, double unit) const;

private:
  /// Which chunks of 16 bytes a thread has of a piece: one of `chunks` side by
  /// side, of every `step`th row from `first` to `end`.
  struct Share {
    int64_t box, chunks, step, first, end;
  };
  mlir::SmallVector<Share> shares() const;

  const WarpgroupAttentionTile tile;
  mlir::Value rows, member;
  bool half, floats;
  int64_t width;
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_ATTENTIONBYTES_H
