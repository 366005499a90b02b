//===- Tiles.cpp - Pictures in tiles of one size --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Quotients are rounded to doubles before they are cut to whole numbers or
// compared, as the published processors do it: a pixel more or less may be a
// row of tiles more or less.
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

/// More than this no published processor makes of an edge.
static constexpr int64_t mostEdge = 4096;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

void fitLongerEdge(int64_t &width, int64_t &height, int64_t longest) {
  bool wide = width >= height;
  double shape = double(width) / double(height);
  if (wide) {
    width = longest;
    height = static_cast<int64_t>(double(width) / shape);
    height += height % 2;
  } else {
    height = longest;
    width = static_cast<int64_t>(double(height) * shape);
    width += width % 2;
  }
  width = std::max<int64_t>(width, 1);
  height = std::max<int64_t>(height, 1);
  shape = double(width) / double(height);
  if (width >= height && width > mostEdge) {
    width = mostEdge;
    height = static_cast<int64_t>(double(width) / shape);
  } else if (height > width && height > mostEdge) {
    height = mostEdge;
    width = static_cast<int64_t>(double(height) * shape);
  }
  width = std::max<int64_t>(width, 1);
  height = std::max<int64_t>(height, 1);
}

TileGrid gridBySize(int64_t width, int64_t height, int64_t edge) {
  double shape = double(width) / double(height);
  TileGrid grid;
  if (width >= height) {
    grid.columns = ceilDiv(width, edge);
    auto high = static_cast<int64_t>(double(grid.columns * edge) / shape);
    grid.rows = ceilDiv(high, edge);
  } else {
    grid.rows = ceilDiv(height, edge);
    auto wide = static_cast<int64_t>(double(grid.rows * edge) * shape);
    grid.columns = ceilDiv(wide, edge);
  }
  // Such a thin one would have no pixels.
  grid.rows = std::max<int64_t>(grid.rows, 1);
  grid.columns = std::max<int64_t>(grid.columns, 1);
  return grid;
}

TileGrid gridByShape(int64_t width, int64_t height, int64_t tileWidth,
                     int64_t tileHeight, int64_t least, int64_t most) {
  double shape = double(width) / double(height);
  double area = double(width) * double(height);
  double nearest = HUGE_VAL;
  TileGrid best;
  for (int64_t tiles = least; tiles <= most; ++tiles)
    for (int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0)
        continue;
      int64_t rows = tiles / columns;
      double distance = std::fabs(shape - double(columns) / double(rows));
      bool fills = area > 0.5 * double(tileWidth * tileHeight * tiles);
      if (distance < nearest || (distance == nearest && fills))
        best = {rows, columns};
      nearest = std::min(nearest, distance);
    }
  return best;
}

PictureSize chooseSize(int64_t width, int64_t height,
                       const std::vector<PictureSize> &sizes) {
  PictureSize best;
  int64_t most = 0, least = INT64_MAX;
  for (PictureSize size : sizes) {
    double scale = std::min(double(size.width) / double(width),
                            double(size.height) / double(height));
    auto wide = static_cast<int64_t>(double(width) * scale);
    auto high = static_cast<int64_t>(double(height) * scale);
    int64_t kept = std::min(wide * high, width * height);
    int64_t others = size.width * size.height - kept;
    if (kept > most || (kept == most && others < least)) {
      most = kept;
      least = others;
      best = size;
    }
  }
  return best;
}

PictureSize fitWithin(int64_t width, int64_t height, PictureSize whole) {
  double wide = double(whole.width) / double(width);
  double high = double(whole.height) / double(height);
  PictureSize size = whole;
  if (wide < high)
    size.height = std::min(
        static_cast<int64_t>(std::ceil(double(height) * wide)), whole.height);
  else
    size.width = std::min(static_cast<int64_t>(std::ceil(double(width) * high)),
                          whole.width);
  return size;
}

void fillUp(Image &image, PictureSize whole) {
  Image large;
  large.resize(whole.width, whole.height);
  int64_t left = (whole.width - image.width) / 2;
  int64_t top = (whole.height - image.height) / 2;
  for (int64_t y = 0; y < image.height; ++y)
    std::copy_n(image.at(0, y), image.width * 3, large.at(left, top + y));
  image = std::move(large);
}

void appendTiles(const Image &image, TileGrid grid,
                 std::vector<uint8_t> &pixels) {
  int64_t width = image.width / grid.columns, height = image.height / grid.rows;
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      for (int64_t y = 0; y < height; ++y) {
        const uint8_t *from = image.at(column * width, row * height + y);
        pixels.insert(pixels.end(), from, from + width * 3);
      }
}

} // namespace attune::runtime
