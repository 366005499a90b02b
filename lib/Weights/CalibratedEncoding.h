//===- CalibratedEncoding.h - Matrices rounded with their inputs ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_CALIBRATEDENCODING_H
#define ATTUNE_LIB_WEIGHTS_CALIBRATEDENCODING_H

#include "attune/Weights/ChosenNumbers.h"
#include "attune/Weights/TensorEncoding.h"

#include <vector>

namespace attune {

/// The numbers and scales of a matrix as a tensor.
struct CalibratedEncoding final : TensorEncoding {
  /// A tensor [rows, columns], which is zero where the matrix has no numbers.
  CalibratedEncoding(const ChosenMatrix &matrix, int64_t rows, int64_t columns);

  const char *name() const override { return "calibrated"; }
  bool isQuantized() const override { return false; }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override;
  StoredForm form() const override { return matrix.form; }
  GroupScale readGroup(const CheckpointTensor &, int64_t first,
                       uint8_t *numbers) const override;

  const ChosenMatrix &matrix;
  CheckpointTensor tensor; ///< that has this encoding

private:
  int64_t columns;
  /// Where rows and columns are among the numbers; -1: nowhere. Empty: where
  /// they are.
  std::vector<int64_t> rowPlaces, columnPlaces;
};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_CALIBRATEDENCODING_H
