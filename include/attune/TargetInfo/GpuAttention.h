//===- GpuAttention.h - Tiles of attention on tensor cores ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As GpuTiles.h: numbers that the kernel is written in terms of, and that unit
// tests hold against the PTX manual.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_GPUATTENTION_H
#define ATTUNE_TARGETINFO_GPUATTENTION_H

#include "attune/TargetInfo/GpuFragments.h"

#include <optional>

namespace attune {

/// Rows of one warp: those of a fragment.
constexpr int64_t kWarpRows = 16;

/// The attention tile of one block: 16 rows in each warp against some keys at a
/// time. Keys and values lie in shared memory as columns of SwizzledRows, 64
/// bytes wide, one such column behind the other.
struct AttentionTile {
  int64_t elementBytes; ///< of queries, keys and values as they are multiplied
  int64_t width;        ///< of a head's queries and keys
  int64_t valueWidth;   ///< of its values, or what one block takes of it
  int64_t warps;
  int64_t keys;    ///< of one step
  bool holdsQuery; ///< in registers; else read anew in every step
  /// Keys and values are bytes with a scale (f32) for each row: numbers become
  /// elements on their way to shared memory, and scales lie beside them.
  bool scaled = false;

  /// Some are filled while another is read.
  int64_t stages = 2;

  int64_t rows() const { return kWarpRows * warps; }
  int64_t threads() const { return 32 * warps; }
  SwizzledRows swizzle() const { return {elementBytes}; }
  /// Columns of 64 bytes that hold this width.
  int64_t columns(int64_t width) const {
    int64_t each = swizzle().elementsOfRow();
    return (width + each - 1) / each;
  }
  /// The element of a stage at which the chunk starts that is number `first`
  /// and `chunk` of a row, both in one column, of key `firstKey`, a multiple of
  /// eight, and `line`.
  template <typename N>
  N placeOf(int64_t firstKey, N line, int64_t first, N chunk) const {
    int64_t chunks = swizzle().elementsOfRow() / swizzle().elementsOfChunk();
    int64_t start =
        (first / chunks * keys + firstKey) * swizzle().elementsOfRow();
    return swizzle().placeOf(line, chunk + first % chunks) + start;
  }
  /// Elements of one stage.
  int64_t stageOf(int64_t width) const {
    return columns(width) * keys * swizzle().elementsOfRow();
  }
  int64_t sharedBytes() const {
    int64_t scales = scaled ? 2 * 4 * keys : 0;
    return stages *
           (elementBytes * (stageOf(width) + stageOf(valueWidth)) + scales);
  }
};

/// Keys are added up by eight, or sixteen of 16 bits.
constexpr int64_t fewestKeys(int64_t elementBytes) {
  return elementBytes == 4 ? 8 : 16;
}

/// The widest queries and keys that shared memory has room for.
constexpr int64_t kWidestHead = 640;
/// The same where the scales of bytes take some of it.
constexpr int64_t kWidestScaledHead = 608;

/// Most value channels of one thread block.
constexpr int64_t kWidestValues = 128;

/// A block of four warps for many rows, of one for few.
AttentionTile chooseAttentionTile(int64_t elementBytes, int64_t width,
                                  int64_t valueWidth, bool fewRows,
                                  bool scaled = false);

/// Whether each block of the mask, of these queries and keys, consists of whole
/// tiles of the `group` heads that share keys.
bool liesInBlock(const AttentionTile &tile, int64_t group, int64_t queries,
                 int64_t keys);

/// The same for a mask of such blocks; none if no tile is small enough.
std::optional<AttentionTile>
chooseTileOfBlocks(int64_t elementBytes, int64_t width, int64_t valueWidth,
                   int64_t group, int64_t queries, int64_t keys);

/// The tile of a block of warpgroups: one copies, each other has 64 rows. All
/// matrices lie in shared memory as boxes of 64 channels, 128 bytes wide, one
/// behind the other: queries once, keys and values in stages.
struct WarpgroupAttentionTile {
  int64_t width, valueWidth;
  int64_t keys; ///< of one step
  /// Keys and values are bytes with a scale (f32) for each row: the warpgroup
  /// that copies makes elements of numbers, and scales lie beside the stages.
  bool scaled = false;
  int64_t stages = 2, consumers = 2;

  static constexpr int64_t kBoxChannels = 64, kBoxRowBytes = 128;
  /// Registers of a thread that copies and of one that multiplies; in all they
  /// are those of three warpgroups of 168. Who widens bytes needs more.
  uint32_t fewRegisters() const { return scaled ? 56 : 24; }
  uint32_t manyRegisters() const { return scaled ? 224 : 240; }

  int64_t rows() const { return 64 * consumers; }
  int64_t threads() const { return 128 * (1 + consumers); }
  static int64_t boxes(int64_t width) {
    return (width + kBoxChannels - 1) / kBoxChannels;
  }
  int64_t queryBytes() const { return boxes(width) * rows() * kBoxRowBytes; }
  int64_t keyBytes() const { return boxes(width) * keys * kBoxRowBytes; }
  int64_t valueBytes() const { return boxes(valueWidth) * keys * kBoxRowBytes; }
  /// Scales of a step's keys and values. They come with the keys and are read
  /// until the probabilities are there, when keys may have been given back:
  /// more steps have room than there are stages.
  int64_t scaleBytes() const { return scaled ? 2 * 4 * keys : 0; }
  int64_t scaleSteps() const { return 2 * stages; }
  /// Bytes of a stage of both rings, with their barriers.
  int64_t stageBytes() const {
    return keyBytes() + valueBytes() + 2 * scaleBytes() + 2 * 16;
  }
  /// Everything, wherever it starts.
  int64_t sharedBytes() const {
    return queryBytes() + stages * stageBytes() + kTileAlignment;
  }
  /// Registers that a thread that multiplies needs in a step: sums of values,
  /// the next scores, and the probabilities of the step before.
  int64_t heldRegisters() const { return valueWidth / 2 + keys / 2 + keys / 4; }
  /// Registers there are for these; addresses, maxima and temporaries take the
  /// rest.
  int64_t registersToHold(bool readsScores) const {
    if (readsScores)
      return scaled ? 112 : 120;
    return scaled ? 160 : 176;
  }

  // Matrix descriptors of wgmma without their addresses, and how many bytes
  // further 16 of the depth are.
  uint64_t rowDescriptor() const;   ///< of queries and keys
  uint64_t valueDescriptor() const; ///< whose columns are the depth's rows
  int64_t queryStep(int64_t step) const {
    return step / 4 * rows() * kBoxRowBytes + step % 4 * 32;
  }
  int64_t keyStep(int64_t step) const {
    return step / 4 * keys * kBoxRowBytes + step % 4 * 32;
  }
  static int64_t valueStep(int64_t step) { return step * 16 * kBoxRowBytes; }
  /// Rows of values run along the columns, those of keys along the depth.
  static constexpr bool kKeysAcross = false, kValuesAcross = true;
};

/// None for widths whose rows a tensor map cannot take, or that need more
/// registers or shared memory than there are. `readsScores`: each score is
/// combined with a mask or bias from memory, whose addresses take registers
/// too.
std::optional<WarpgroupAttentionTile>
chooseWarpgroupAttention(int64_t width, int64_t valueWidth, bool readsScores,
                         bool scaled = false);

/// From this many rows and keys on a block of warpgroups pays; fewer leave half
/// of it idle.
constexpr int64_t kFewestWarpgroupRows = 65;

/// The keys of a few queries are split into at most kMostParts parts
/// (split-KV), with at least kLeastKeysOfPart keys each if there are enough.
constexpr int64_t kLeastKeysOfPart = 128, kMostParts = 64;

} // namespace attune

#endif // ATTUNE_TARGETINFO_GPUATTENTION_H
