//===- CalibratedEncoding.cpp - Matrices rounded with their inputs --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CalibratedEncoding.h"

#include <algorithm>

namespace attune {

const RoundedMatrix &CalibratedMatrix::get() {
  std::call_once(once, [&] {
    std::vector<float> values = whole->values();
    int64_t columns = whole->columns, all = whole->wholeColumns;
    std::vector<float> part;
    const float *seen = products;
    // Heads that were pruned give no inputs.
    if (columns != all) {
      part.resize(size_t(columns * columns));
      for (int64_t i = 0; i < columns; ++i)
        for (int64_t j = 0; j < columns; ++j)
          part[size_t(i * columns + j)] =
              products[whole->wholeColumnOf(i).first * all +
                       whole->wholeColumnOf(j).first];
      seen = part.data();
    }
    rounded =
        roundCompensating(values.data(), whole->rows, columns, seen, form);
  });
  return rounded;
}

void CalibratedMatrix::release() {
  rounded.numbers = {};
  rounded.scales = {};
}

void CalibratedEncoding::decode(const CheckpointTensor &, int64_t first,
                                int64_t count, float *out) const {
  const RoundedMatrix &rounded = matrix->get();
  int64_t group = matrix->getForm().group;
  for (int64_t i = first; i < first + count; ++i) {
    auto [scale, zero] = rounded.scales[size_t(i / group)];
    *out++ = scale * (float(rounded.numbers[size_t(i)]) - zero);
  }
}

GroupScale CalibratedEncoding::readGroup(const CheckpointTensor &,
                                         int64_t first,
                                         uint8_t *numbers) const {
  const RoundedMatrix &rounded = matrix->get();
  int64_t group = matrix->getForm().group;
  std::copy_n(&rounded.numbers[size_t(first)], group, numbers);
  return rounded.scales[size_t(first / group)];
}

} // namespace attune
