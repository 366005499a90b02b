//===- CalibratedEncoding.cpp - Matrices rounded with their inputs --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CalibratedEncoding.h"

#include <algorithm>

namespace attune {

/// The inverse of `wholes`, which numbers of [0, count) are.
static std::vector<int64_t> placesOf(const std::vector<int64_t> &wholes,
                                     int64_t parts, int64_t count) {
  if (parts == count)
    return {};
  std::vector<int64_t> places(size_t(count), -1);
  for (size_t i = 0; i < wholes.size(); ++i)
    places[size_t(wholes[i])] = int64_t(i);
  return places;
}

CalibratedEncoding::CalibratedEncoding(const ChosenMatrix &matrix, int64_t rows,
                                       int64_t columns)
    : matrix(matrix), columns(columns),
      rowPlaces(placesOf(matrix.rowsOf, matrix.rows, rows)),
      columnPlaces(placesOf(matrix.columnsOf, matrix.columns, columns)) {}

void CalibratedEncoding::decode(const CheckpointTensor &, int64_t first,
                                int64_t count, float *out) const {
  for (int64_t i = first; i < first + count; ++i) {
    int64_t row = i / columns, column = i % columns;
    if (!rowPlaces.empty())
      row = rowPlaces[size_t(row)];
    if (!columnPlaces.empty())
      column = columnPlaces[size_t(column)];
    *out++ = row < 0 || column < 0 ? 0 : matrix.valueAt(row, column);
  }
}

GroupScale CalibratedEncoding::readGroup(const CheckpointTensor &,
                                         int64_t first,
                                         uint8_t *numbers) const {
  std::copy_n(matrix.numbers + first, matrix.form.group, numbers);
  return matrix.scales[first / matrix.form.group];
}

} // namespace attune
