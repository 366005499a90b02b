//===- GpuTiles.cpp - Tiles of products on tensor cores ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuTiles.h"

#include <algorithm>
#include <cstdlib>

namespace attune {

/// 90 of "sm_90a"; 0 of what has no number.
static int numberOf(const std::string &chip) {
  size_t at = chip.find('_');
  return at == std::string::npos ? 0 : std::atoi(chip.c_str() + at + 1);
}

int64_t countMultiprocessors(const std::string &chip) {
  struct Chip {
    int number, count;
  };
  constexpr Chip chips[] = {{80, 108}, {86, 84},   {87, 16},  {89, 128},
                            {90, 132}, {100, 148}, {120, 170}};
  int number = numberOf(chip);
  for (const Chip &known : chips)
    if (known.number == number)
      return known.count;
  return 108;
}

bool hasWarpgroups(const std::string &chip) { return chip == "sm_90a"; }

bool hasDependentLaunch(const std::string &chip) {
  return numberOf(chip) >= 90;
}

int64_t threadsOfPanel(int64_t panels, int64_t depth, int64_t multiprocessors) {
  // Registers of a multiprocessor are enough for about this many threads.
  constexpr int64_t residents = 640, loadsAtOnce = 4;
  int64_t threads = 128;
  while (threads < 512 && 2 * threads * panels <= residents * multiprocessors &&
         2 * threads * loadsAtOnce <= depth)
    threads *= 2;
  return threads;
}

int64_t blocksAtOnce(int64_t panels, int64_t threads, int64_t rows,
                     int64_t multiprocessors) {
  // With fewer registers a thread would keep some in memory.
  constexpr int64_t registers = 65536;
  int64_t ofThread = rows == 1 ? 80 : 128;
  int64_t wanted = (panels + multiprocessors - 1) / multiprocessors;
  return std::max<int64_t>(1,
                           std::min(wanted, registers / (ofThread * threads)));
}

int64_t costOfTiles(const ProductTile &tile, int64_t rows, int64_t columns,
                    int64_t multiprocessors) {
  // Moving a row or column of a tile costs as much as this many of its
  // products.
  constexpr int64_t traffic = 32;
  auto parts = [](int64_t size, int64_t of) { return (size + of - 1) / of; };
  int64_t blocks = parts(rows, tile.rows) * parts(columns, tile.columns);
  return parts(blocks, multiprocessors) *
         (tile.rows * tile.columns + traffic * (tile.rows + tile.columns));
}

/// With enough rows for many waves the larger tile wins.
static int64_t rowsFor(const ProductTile &larger, const ProductTile &smaller,
                       int64_t columns, int64_t multiprocessors) {
  auto better = [&](int64_t rows) {
    return costOfTiles(larger, rows, columns, multiprocessors) <=
           costOfTiles(smaller, rows, columns, multiprocessors);
  };
  int64_t first = 16 * larger.rows * multiprocessors;
  while (first > larger.rows && better(first - smaller.rows))
    first -= smaller.rows;
  return first;
}

int64_t rowsForLargeTiles(int64_t columns, int64_t multiprocessors) {
  return rowsFor(kLargeTile, kSmallTile, columns, multiprocessors);
}

int64_t rowsForWideTiles(int64_t columns, int64_t multiprocessors) {
  auto shape = [](const WarpgroupTile &tile) {
    return ProductTile{tile.rows, tile.columns, 1, 1};
  };
  return rowsFor(shape(kWideGroupTile), shape(kGroupTile), columns,
                 multiprocessors);
}

int64_t WarpgroupTile::sharedBytes() const {
  return ringBytes() + rowSumBytes() + kTileAlignment;
}

uint64_t WarpgroupTile::rowDescriptor() const {
  // Atoms of eight rows one below the other. Along the depth there is one.
  return describeMatrix(16, 8 * 128, /*swizzle=*/1);
}

uint64_t WarpgroupTile::panelDescriptor() const {
  // Eight of the depth are one behind the other, panels a stage's depth apart.
  return describeMatrix(8 * 16, uint64_t(depth) * 16, /*swizzle=*/0);
}

} // namespace attune
