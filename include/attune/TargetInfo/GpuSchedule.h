//===- GpuSchedule.h - Tiles that a schedule asks for -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers of a schedule in place of those that GpuTiles.h and GpuAttention.h
// suggest. Numbers that it leaves out stay. Numbers that no kernel can take are
// refused with a text that lists the possible ones.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_GPUSCHEDULE_H
#define ATTUNE_TARGETINFO_GPUSCHEDULE_H

#include "attune/TargetInfo/GpuAttention.h"

#include <variant>

namespace attune {

/// Why there is no such tile.
struct TileRefusal {
  std::string why;
};

/// 0: the schedule says nothing.
struct ProductNumbers {
  int64_t rows = 0, columns = 0, stages = 0;

  bool any() const { return rows || columns || stages; }
};

/// The one tile of a product of more than kFewRows rows. Missing numbers are
/// the large tile's. If warpgroups take weights of `groupBits` bits they are
/// theirs, unless other rows are given; 0: warpgroups do not take it.
std::variant<TileRefusal, ProductTile, WarpgroupTile>
scheduleProduct(const ProductNumbers &numbers, int64_t inputBytes,
                int64_t weightBytes, int64_t groupBits);

struct AttentionNumbers {
  int64_t rows = 0, keys = 0, stages = 0;

  bool any() const { return rows || keys || stages; }
};

/// The properties of an attention that tiles depend on.
struct AttentionShape {
  int64_t elementBytes, width, valueWidth;
  int64_t group;                        ///< query heads that share keys
  int64_t blockRows = 0, blockKeys = 0; ///< of a mask of blocks, if it has one
  bool warpgroups = false;  ///< the chip has them, for such operands
  bool readsScores = false; ///< as in chooseWarpgroupAttention
  bool scaled = false;      ///< keys and values are bytes with scales
};

/// The usual tile of warps; none if the mask's blocks are too small.
std::optional<AttentionTile> chooseAttentionTile(const AttentionShape &shape);

/// The tiles of an attention's kernels for many rows: `groups` are for
/// kFewestWarpgroupRows and more, if they are there.
struct AttentionTiles {
  AttentionTile warps;
  std::optional<WarpgroupAttentionTile> groups;
};
std::variant<TileRefusal, AttentionTiles>
scheduleAttention(const AttentionNumbers &numbers, const AttentionShape &shape);

} // namespace attune

#endif // ATTUNE_TARGETINFO_GPUSCHEDULE_H
