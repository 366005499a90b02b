//===- GpuTiles.cpp - Tiles of products on tensor cores ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/GpuTiles.h"

#include <cstdlib>

namespace attune {

int64_t countMultiprocessors(const std::string &chip) {
  struct Chip {
    int number, count;
  };
  constexpr Chip chips[] = {{80, 108}, {86, 84},   {87, 16},  {89, 128},
                            {90, 132}, {100, 148}, {120, 170}};
  size_t at = chip.find('_');
  int number = at == std::string::npos ? 0 : std::atoi(chip.c_str() + at + 1);
  for (const Chip &known : chips)
    if (known.number == number)
      return known.count;
  return 108;
}

int64_t costOfTiles(const ProductTile &tile, int64_t rows, int64_t columns,
                    int64_t multiprocessors) {
  // A row or column of a tile is as much to move as so many products of it.
  constexpr int64_t traffic = 32;
  auto parts = [](int64_t size, int64_t of) { return (size + of - 1) / of; };
  int64_t blocks = parts(rows, tile.rows) * parts(columns, tile.columns);
  return parts(blocks, multiprocessors) *
         (tile.rows * tile.columns + traffic * (tile.rows + tile.columns));
}

int64_t rowsForLargeTiles(int64_t columns, int64_t multiprocessors) {
  auto better = [&](int64_t rows) {
    return costOfTiles(kLargeTile, rows, columns, multiprocessors) <=
           costOfTiles(kSmallTile, rows, columns, multiprocessors);
  };
  // With so many rows that the waves are many it is the large one.
  int64_t first = 16 * kLargeTile.rows * multiprocessors;
  while (first > kLargeTile.rows && better(first - kSmallTile.rows))
    first -= kSmallTile.rows;
  return first;
}

} // namespace attune
