//===- ChosenNumbers.h - What a calibration made of matrices ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_CHOSENNUMBERS_H
#define ATTUNE_WEIGHTS_CHOSENNUMBERS_H

#include "attune/Weights/StoredForm.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune {

/// One layer, or part of one, in numbers that a calibration chose. They belong
/// to that.
struct ChosenMatrix {
  StoredForm form;
  int64_t rows = 0, columns = 0;
  const uint8_t *numbers = nullptr;   ///< [rows, columns]
  const GroupScale *scales = nullptr; ///< [rows, columns / group]
  /// Where rows and columns are in the whole matrix, if heads of it were
  /// pruned; empty: they are all there.
  std::vector<int64_t> rowsOf, columnsOf;
  /// Sums of squares over the matrix itself: of what is lost, and of all.
  double lost = 0, total = 0;

  float valueAt(int64_t row, int64_t column) const {
    auto i = size_t(row * columns + column);
    auto [scale, zero] = scales[i / size_t(form.group)];
    return scale * (float(numbers[i]) - zero);
  }
};

class ChosenNumbers {
public:
  virtual ~ChosenNumbers() = default;
  /// By `chosenKey` (WeightFile.h); null: it is rounded to the nearest.
  virtual const ChosenMatrix *find(const std::string &key) const = 0;
};

} // namespace attune

#endif // ATTUNE_WEIGHTS_CHOSENNUMBERS_H
