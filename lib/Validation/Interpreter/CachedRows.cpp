//===- CachedRows.cpp - Rows of a cache in bytes, as numbers --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CachedRows.h"

#include <cmath>
#include <cstring>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

Datum validation::toBytes(Type type, const Array &rows) {
  int64_t width = rows.shape.back();
  Shape shape(rows.shape);
  shape.back() = elementsOfRow(type, width);
  Datum result = makeArray(shape, real(0));
  Array &made = result.array();
  auto most = float(largestInBytes(type));
  for (int64_t row = 0, count = volume(rows.shape) / width; row < count;
       ++row) {
    const Scalar *from = &rows.data[row * width];
    Scalar *to = &made.data[row * shape.back()];
    float largest = 0;
    for (int64_t d = 0; d < width; ++d) {
      float size = std::fabs(float(from[d].f));
      largest = size > largest || std::isnan(size) ? size : largest;
      if (std::isnan(largest))
        break;
    }
    float inverse = largest == 0 ? 0 : most / largest, scale = largest / most;
    for (int64_t d = 0; d < width; ++d) {
      float x = float(from[d].f) * inverse;
      x = x > -most ? x : -most;
      x = x < most ? x : most;
      to[d] = type.isInteger(8) ? whole(int64_t(std::nearbyint(x)))
                                : real(roundTo(type, x));
    }
    uint8_t bytes[kRowScaleBytes];
    std::memcpy(bytes, &scale, kRowScaleBytes);
    for (int64_t i = 0; i < kRowScaleBytes; ++i)
      to[width + i] = loadScalar(type, bytes + i);
  }
  return result;
}

Datum validation::fromBytes(Type type, const Array &rows) {
  int64_t elements = rows.shape.back(), width = elements - kRowScaleBytes;
  Shape shape(rows.shape);
  shape.back() = width;
  Datum result = makeArray(shape, real(0));
  for (int64_t row = 0, count = volume(shape) / width; row < count; ++row) {
    const Scalar *from = &rows.data[row * elements];
    Scalar *to = &result.array().data[row * width];
    uint8_t bytes[kRowScaleBytes];
    for (int64_t i = 0; i < kRowScaleBytes; ++i)
      storeScalar(type, bytes + i, from[width + i]);
    float scale;
    std::memcpy(&scale, bytes, kRowScaleBytes);
    for (int64_t d = 0; d < width; ++d)
      to[d] = real(scale * (type.isInteger(8) ? double(from[d].i) : from[d].f));
  }
  return result;
}
