//===- GpuTiles.h - Tiles of products on tensor cores -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers that kernels for tensor cores are made of: how large a block's tile
// is, where an element lies in shared memory, and which elements a lane of a
// warp holds. Kernels are written in terms of these functions, and unit tests
// hold them against the PTX manual and count bank conflicts. Functions of `N`
// take an int64_t or what the threads of a kernel compute, so that both are the
// same arithmetic.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_GPUTILES_H
#define ATTUNE_TARGETINFO_GPUTILES_H

#include <cstdint>
#include <string>
#include <vector>

namespace attune {

/// Shared memory of a block that declares it, and of one of warpgroups, whose
/// launch asks for it.
constexpr int64_t kSharedBytesOfBlock = 48 * 1024,
                  kSharedBytesOfWarpgroups = 227 * 1024;

/// The product tile of one block, and how its warps share it.
struct ProductTile {
  int64_t rows, columns;
  int64_t warpRows, warpColumns; ///< warps along each
  int64_t stages = 0;            ///< 0: usualStages

  int64_t threads() const { return 32 * warpRows * warpColumns; }
  /// Rows and columns of one warp.
  int64_t rowsOfWarp() const { return rows / warpRows; }
  int64_t columnsOfWarp() const { return columns / warpColumns; }
  /// Bytes of a stage, for elements of these sizes: 64 bytes of each row along
  /// the depth, and the panels for the same stretch of the depth.
  int64_t stageBytes(int64_t inputBytes, int64_t weightBytes) const {
    return 64 * rows + 64 / inputBytes * columns * weightBytes;
  }
};
/// The same of three warpgroups: one copies, two multiply 64 rows each; or, of
/// weights in few bits, 64 columns.
struct WarpgroupTile {
  int64_t columns, stages;
  int64_t weightBits = 16; ///< 16, or 8 or 4 of numbers in groups
  int64_t rows = 128, depth = 64;

  int64_t threads() const { return 384; }
  /// Bytes of a stage: rows of 128 bytes, panels of eight columns.
  int64_t rowBytes() const { return rows * depth * 2; }
  int64_t panelBytes() const { return columns * depth * weightBits / 8; }
  int64_t stageBytes() const { return rowBytes() + panelBytes(); }
  /// Bytes of all stages with their two barriers.
  int64_t ringBytes() const { return stages * (stageBytes() + 16); }
  /// Two sums for each row and half of a stage's depth: those of one group are
  /// read while the next one's are written.
  int64_t rowSumBytes() const { return weightBits < 16 ? 2 * 2 * rows * 4 : 0; }
  /// All of it, wherever it starts.
  int64_t sharedBytes() const;
  // Matrix descriptors of wgmma without their addresses, and how many bytes
  // further 16 of the depth are.
  uint64_t rowDescriptor() const;
  uint64_t panelDescriptor() const;
  int64_t rowStep(int64_t step) const { return step * 16 * 2; }
  int64_t panelStep(int64_t step) const { return step * 16 * 16; }
  /// Rows of a panel run along the columns, not along the depth.
  static constexpr bool kPanelsAcross = true;
};
constexpr WarpgroupTile kNarrowGroupTile = {64, 8}, kGroupTile = {128, 6},
                        kWideGroupTile = {256, 4};
/// The tile of weights in few bits. Sums of a group stand beside those of all:
/// a wider one has no registers for both.
constexpr WarpgroupTile groupTileOf(int64_t weightBits) {
  return {128, 6, weightBits};
}
/// The same for few rows, which are columns of the transposed product. Its
/// stages are small: more of them are on their way.
constexpr WarpgroupTile fewRowsTileOf(int64_t weightBits) {
  return {128, 12, weightBits, 32};
}

/// Eight swizzled rows of 128 bytes start at a multiple of this.
constexpr int64_t kTileAlignment = 1024;
/// Where the chunk of 16 bytes lies that is number `chunk` of row `row`, among
/// such rows.
template <typename N> constexpr N placeInAtom(N row, N chunk) {
  return row * 128 + ((chunk ^ row) & 7) * 16;
}

/// A matrix descriptor (PTX manual, 9.7.15.5.1.2.2), but for the address:
/// `leading` and `stride` are distances in bytes, `swizzle` is 0 for none and 1
/// for 128 bytes.
constexpr uint64_t describeMatrix(uint64_t leading, uint64_t stride,
                                  uint64_t swizzle) {
  return leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62;
}

/// Stages for elements of these sizes. More stages have smaller slices.
constexpr int64_t usualStages(int64_t inputBytes, int64_t weightBytes) {
  return inputBytes == 4 && weightBytes != 4 ? 4 : 3;
}

constexpr ProductTile kLargeTile = {128, 128, 2, 4};
constexpr ProductTile kSmallTile = {64, 64, 2, 2};

/// Most rows of the GEMV path, which reads each weight again for every group of
/// rows; more rows make a tile.
constexpr int64_t kFewRows = 8;

/// Threads that share the products of few rows with one panel of `depth` rows:
/// 128 to 512, such that all panels together fill the chip, and each thread has
/// several rows to load at once.
int64_t threadsOfPanel(int64_t panels, int64_t depth, int64_t multiprocessors);

/// The number of blocks of that kernel that a multiprocessor should have room
/// for: with all panels at once there is no second wave of a few. They share
/// the registers, and `rows` take some.
int64_t blocksAtOnce(int64_t panels, int64_t threads, int64_t rows,
                     int64_t multiprocessors);
/// An attribute of a barrier that carries this number for its kernel.
constexpr char kBlocksAtOnce[] = "attune.blocks_at_once";
/// The same of the number of rows.
constexpr char kRowsOfPanel[] = "attune.rows_of_panel";

/// Most rows of an entry in the list of experts' work: the rows of a large
/// tile. Lower tiles share it.
constexpr int64_t kTaskRows = 128;

/// Multiprocessors of the smallest product with this chip; a guess if the chip
/// is unknown.
int64_t countMultiprocessors(const std::string &chip);

/// Whether it has wgmma and tensor maps: later chips have other tensor cores.
bool hasWarpgroups(const std::string &chip);

/// Whether its kernels can start before the last one ends (griddepcontrol).
bool hasDependentLaunch(const std::string &chip);

/// Time of a [rows, columns] product in tiles, in steps of a multiprocessor:
/// blocks come in waves, and each pays for its multiplications and for what it
/// moves through shared memory.
int64_t costOfTiles(const ProductTile &tile, int64_t rows, int64_t columns,
                    int64_t multiprocessors);

/// From how many rows on large tiles are the better ones.
int64_t rowsForLargeTiles(int64_t columns, int64_t multiprocessors);

/// A product of warpgroups but for its rows: gate and up count as columns.
struct GroupProduct {
  int64_t columns, depth;
  int64_t weightBits = 16;
  int64_t group = 0;  ///< columns of the depth that share a scale, in few bits
  bool zeros = false; ///< that have zero points, too

  /// Stages of a tile whose columns share scales: no part ends between them.
  int64_t stagesOfGroup() const;
};
/// How warpgroups share a product: rows and columns of their tiles, and into
/// how many parts they split the depth. A second kernel adds the parts up.
struct GroupPlan {
  int64_t columns, parts = 1, rows = 128;

  bool operator==(const GroupPlan &other) const {
    return columns == other.columns && parts == other.parts &&
           rows == other.rows;
  }
};
/// The most parts: each is written and read once more.
constexpr int64_t kMostDepthParts = 8;
/// kNarrowGroupTile, kGroupTile or kWideGroupTile; for weights in few bits the
/// tile for many rows or for few.
WarpgroupTile groupTileOf(const GroupPlan &plan, int64_t weightBits);

/// Time of a product of `rows` rows, in cycles of a multiprocessor: by counts
/// of what tensor cores, shared memory and instructions take, and estimates of
/// what a block and a second kernel take to start.
int64_t costOfGroups(const GroupPlan &plan, int64_t rows,
                     const GroupProduct &product, int64_t multiprocessors);

/// The plan for up to `rows` rows that the one before is not for; the last is
/// for any number.
struct PlannedRows {
  int64_t rows;
  GroupPlan plan;
};
std::vector<PlannedRows> planGroups(const GroupProduct &product,
                                    int64_t multiprocessors, bool split);

/// Rows of 64 bytes in shared memory, in chunks of 16 that are exchanged by row
/// such that neither a copy of whole rows nor the lanes that read a fragment
/// meet in a bank. Elements have 4 bytes, or 2 and are read by ldmatrix.
struct SwizzledRows {
  int64_t elementBytes;

  static constexpr int64_t kRowBytes = 64, kChunkBytes = 16;
  constexpr int64_t elementsOfRow() const { return kRowBytes / elementBytes; }
  constexpr int64_t elementsOfChunk() const {
    return kChunkBytes / elementBytes;
  }
  /// Chunk `c` of row `r` lies where chunk `c ^ ((r & mask()) >> shift())`
  /// would.
  constexpr int64_t mask() const { return elementBytes == 4 ? 2 : 6; }
  constexpr int64_t shift() const { return elementBytes == 4 ? 0 : 1; }
  /// The element at which a chunk starts.
  template <typename N> constexpr N placeOf(N row, N chunk) const {
    N moved = chunk ^ ((row & mask()) >> shift());
    return row * elementsOfRow() + moved * elementsOfChunk();
  }
  /// Where the element of a column lies.
  template <typename N> constexpr N placeOfElement(N row, N column) const {
    return placeOf(row, column / elementsOfChunk()) +
           column % elementsOfChunk();
  }
};

/// The row of a panel of f32, eight channels and 32 bytes wide, that lies at
/// place `place`: among each eight the even ones come first, so that the lanes
/// that read a fragment of rows 0, 2, 4, 6, or 1, 3, 5, 7, touch every bank.
template <typename N> constexpr N wideRowAt(N place) {
  return (place & ~int64_t(7)) + (place & 3) * 2 + ((place & 4) >> 2);
}
/// Where row `row` lies.
constexpr int64_t placeOfWideRow(int64_t row) {
  return (row & ~int64_t(7)) | ((row & 1) << 2) | ((row & 6) >> 1);
}

/// The largest numbers of a row by warps: in a first kernel each has a part of
/// it, some numbers in every lane, and lists the part's largest; in a second
/// one a warp merges the lists, some in each lane.
struct RowParts {
  int64_t each; ///< numbers of a lane: 4 to 32
  int64_t parts;

  int64_t elements() const { return 32 * each; } ///< of a part
  int64_t listsOfLane() const { return (parts + 31) / 32; }
};
/// The wider a row, the more each lane has: eight lists a lane are merged
/// quickly, and some 250 warps are enough to read a row at once.
constexpr RowParts chooseRowParts(int64_t width) {
  int64_t each = 4;
  while (each < 32 && width > 8 * 32 * 32 * each)
    each *= 2;
  return {each, (width + 32 * each - 1) / (32 * each)};
}
/// Wider rows would take more lists than a lane has registers for.
constexpr int64_t kWidestSplitRow = 1 << 19;

} // namespace attune

#endif // ATTUNE_TARGETINFO_GPUTILES_H
