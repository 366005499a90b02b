//===- GpuSchedule.cpp - Tiles that a schedule asks for -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuSchedule.h"

#include <algorithm>
#include <vector>

namespace attune {

/// The message for a number that is none of the known ones.
static std::string noneOf(const char *name, const std::vector<int64_t> &known,
                          int64_t number) {
  std::string text = std::string("'") + name + "' may be ";
  for (size_t i = 0; i < known.size(); ++i)
    text += (i == 0                  ? ""
             : i + 1 == known.size() ? " or "
                                     : ", ") +
            std::to_string(known[i]);
  return text + " here, got " + std::to_string(number);
}
static bool contains(const std::vector<int64_t> &known, int64_t number) {
  return std::find(known.begin(), known.end(), number) != known.end();
}

/// The message for too much shared memory, or empty if it fits. `base` is
/// needed in any case, beside stages of the same size, of which there are
/// `fewest` or more.
static std::string tooLarge(const std::string &tile, int64_t stages,
                            int64_t fewest, int64_t base, int64_t stageBytes,
                            int64_t limit) {
  int64_t most = (limit - base) / stageBytes;
  if (stages >= fewest && stages <= most)
    return "";
  if (stages < fewest)
    return "'attune.stages' must be at least " + std::to_string(fewest) +
           " here, got " + std::to_string(stages);
  std::string text = tile + " in " + std::to_string(stages) + " stages takes " +
                     std::to_string(base + stages * stageBytes) +
                     " bytes of shared memory, a block has " +
                     std::to_string(limit);
  return most < fewest ? text
                       : text + ": 'attune.stages' may be at most " +
                             std::to_string(most);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static std::string nameOf(int64_t rows, int64_t columns,
                          const char *columnsAre) {
  return "a tile of " + std::to_string(rows) + " rows by " +
         std::to_string(columns) + " " + columnsAre;
}

std::variant<TileRefusal, ProductTile, WarpgroupTile>
scheduleProduct(const ProductNumbers &numbers, int64_t inputBytes,
                int64_t weightBytes, int64_t groupBits) {
  auto orElse = [](int64_t number, int64_t usual) {
    return number ? number : usual;
  };
  int64_t rows = orElse(numbers.rows, kLargeTile.rows),
          columns = orElse(numbers.columns, kLargeTile.columns);
  std::string tile = nameOf(rows, columns, "columns");
  if (groupBits && rows == kGroupTile.rows) {
    // Whole matrices of eight columns, for gate and up alike, in registers.
    const std::vector<int64_t> known =
        groupBits < 16 ? std::vector<int64_t>{128}
                       : std::vector<int64_t>{64, 128, 192, 256};
    if (!contains(known, columns))
      return TileRefusal{noneOf("attune.tile_columns", known, columns)};
    WarpgroupTile groups = {columns, 0, groupBits};
    int64_t most = (kSharedBytesOfWarpgroups - groups.sharedBytes()) /
                   (groups.stageBytes() + 16);
    groups.stages = orElse(numbers.stages, std::min(most, kGroupTile.stages));
    WarpgroupTile none = {columns, 0, groupBits};
    // Rows that are picked are three stages in all: one is awaited, one under
    // way and one given back.
    std::string why =
        tooLarge(tile, groups.stages, 3, none.sharedBytes(),
                 groups.stageBytes() + 16, kSharedBytesOfWarpgroups);
    if (!why.empty())
      return TileRefusal{why};
    return groups;
  }
  const std::vector<int64_t> known = {32, 64, 128};
  if (!contains(known, rows))
    return TileRefusal{noneOf("attune.tile_rows", known, rows)};
  if (!contains(known, columns))
    return TileRefusal{noneOf("attune.tile_columns", known, columns)};
  // A warp has 32 columns and at most 64 rows, whose sums are 64 registers.
  ProductTile made = {rows, columns, std::min<int64_t>(2, rows / 32),
                      columns / 32};
  made.stages = orElse(numbers.stages, usualStages(inputBytes, weightBytes));
  std::string why =
      tooLarge(tile, made.stages, 2, 0,
               made.stageBytes(inputBytes, weightBytes), kSharedBytesOfBlock);
  if (!why.empty())
    return TileRefusal{why};
  return made;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Why warpgroups cannot have such a tile, or nothing.
static std::string refusalOf(const WarpgroupAttentionTile &tile,
                             bool readsScores) {
  if (tile.keys % 16 != 0 || tile.keys > 256)
    return "'attune.key_block' must be a multiple of 16 and at most 256 here, "
           "got " +
           std::to_string(tile.keys);
  int64_t most = tile.registersToHold(readsScores);
  if (tile.heldRegisters() > most) {
    int64_t keys = (most - tile.valueWidth / 2) * 4 / 3 / 16 * 16;
    return "'attune.key_block' may be at most " + std::to_string(keys) +
           " for values of width " + std::to_string(tile.valueWidth) +
           ", whose sums share registers with scores, got " +
           std::to_string(tile.keys);
  }
  WarpgroupAttentionTile none = tile;
  none.stages = 0;
  return tooLarge(nameOf(tile.rows(), tile.keys, "keys"), tile.stages, 2,
                  none.sharedBytes(), tile.stageBytes(),
                  kSharedBytesOfWarpgroups);
}

/// Why warps cannot have such a tile, or nothing.
static std::string refusalOf(const AttentionTile &tile,
                             const AttentionShape &shape) {
  std::vector<int64_t> known;
  for (int64_t keys = fewestKeys(shape.elementBytes); keys <= 128; keys *= 2)
    known.push_back(keys);
  if (!contains(known, tile.keys))
    return noneOf("attune.key_block", known, tile.keys);
  std::string name = nameOf(tile.rows(), tile.keys, "keys");
  if (std::string why =
          tooLarge(name, tile.stages, 2, 0, tile.sharedBytes() / tile.stages,
                   kSharedBytesOfBlock);
      !why.empty())
    return why;
  if (shape.blockRows &&
      !liesInBlock(tile, shape.group, shape.blockRows, shape.blockKeys))
    return name + " does not lie in a block of the mask, which has " +
           std::to_string(shape.blockRows) + " queries of " +
           std::to_string(shape.group) + " heads by " +
           std::to_string(shape.blockKeys) + " keys";
  return "";
}

std::optional<AttentionTile> chooseAttentionTile(const AttentionShape &shape) {
  if (shape.blockRows)
    return chooseTileOfBlocks(shape.elementBytes, shape.width, shape.valueWidth,
                              shape.group, shape.blockRows, shape.blockKeys);
  return chooseAttentionTile(shape.elementBytes, shape.width, shape.valueWidth,
                             /*fewRows=*/false, shape.scaled);
}

std::variant<TileRefusal, AttentionTiles>
scheduleAttention(const AttentionNumbers &numbers,
                  const AttentionShape &shape) {
  std::optional<AttentionTile> usual = chooseAttentionTile(shape);
  if (!usual)
    return TileRefusal{"no tile lies in a block of the mask"};
  AttentionTiles tiles = {*usual, std::nullopt};
  if (shape.warpgroups && !shape.blockRows)
    tiles.groups = chooseWarpgroupAttention(shape.width, shape.valueWidth,
                                            shape.readsScores, shape.scaled);
  if (!numbers.any())
    return tiles;
  if (tiles.groups && (!numbers.rows || numbers.rows == tiles.groups->rows())) {
    // Fewer rows are not what the schedule speaks of.
    if (numbers.keys)
      tiles.groups->keys = numbers.keys;
    if (numbers.stages)
      tiles.groups->stages = numbers.stages;
    if (std::string why = refusalOf(*tiles.groups, shape.readsScores);
        !why.empty())
      return TileRefusal{why};
    return tiles;
  }
  tiles.groups.reset();
  const std::vector<int64_t> known = {16, 32, 64, 128};
  if (numbers.rows) {
    if (!contains(known, numbers.rows))
      return TileRefusal{noneOf("attune.query_block", known, numbers.rows)};
    tiles.warps.warps = numbers.rows / kWarpRows;
  }
  if (numbers.stages)
    tiles.warps.stages = numbers.stages;
  if (numbers.keys)
    tiles.warps.keys = numbers.keys;
  if (std::string why = refusalOf(tiles.warps, shape); !why.empty())
    return TileRefusal{why};
  return tiles;
}

} // namespace attune
