//===- Tiles.h - Pictures in tiles of one size ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SIGHT_TILES_H
#define ATTUNE_LIB_RUNTIME_SIGHT_TILES_H

#include "Image.h"

#include <cstdint>

namespace attune::runtime {

/// How many tiles a picture is cut into is decided
/// - by its size, once its longer edge has a certain length, with tiles for
///   what is begun, too (Idefics 3, SmolVLM), or
/// - by its shape: the grid whose shape is the nearest, of those that have a
///   certain number of tiles (GOT-OCR 2, InternVL), or
/// - by what it fills of sizes that are listed; the rest is black (LLaVA-NeXT).
enum class Tiling : uint8_t { None, BySize, ByShape, ByList };

struct TileGrid {
  int64_t rows = 1, columns = 1;
};

/// The size of a picture whose longer edge becomes one of `longest` pixels, but
/// not of more than 4096. The shorter one is even where `longest` decides.
void fitLongerEdge(int64_t &width, int64_t &height, int64_t longest);
/// The grid of square tiles with that edge for a picture of this size.
TileGrid gridBySize(int64_t width, int64_t height, int64_t edge);
/// The grid of `least` to `most` tiles whose shape is the nearest to the
/// picture's; of equal ones the largest, unless the tiles' area is more than
/// twice that of the picture.
TileGrid gridByShape(int64_t width, int64_t height, int64_t tileWidth,
                     int64_t tileHeight, int64_t least, int64_t most);

struct PictureSize {
  int64_t width = 0, height = 0;
};
/// The size that keeps the most of a picture's pixels, and of equal ones the
/// one with the fewest others.
PictureSize chooseSize(int64_t width, int64_t height,
                       const std::vector<PictureSize> &sizes);
/// The size of a picture within another that it fills in one direction.
PictureSize fitWithin(int64_t width, int64_t height, PictureSize whole);
/// The picture in the middle of another size, black around it.
void fillUp(Image &image, PictureSize whole);

/// Appends the pixels of all tiles of an image that consists of such, row by
/// row.
void appendTiles(const Image &image, TileGrid grid,
                 std::vector<uint8_t> &pixels);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SIGHT_TILES_H
