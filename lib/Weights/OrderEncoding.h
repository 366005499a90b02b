//===- OrderEncoding.h - The order of columns as a tensor -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_ORDERENCODING_H
#define ATTUNE_LIB_WEIGHTS_ORDERENCODING_H

#include "attune/Weights/TensorEncoding.h"

namespace attune {

/// The column that comes at each place, as numbers of f32: exact, for a matrix
/// has fewer than 2^24 columns.
struct OrderEncoding final : TensorEncoding {
  /// An order of `columns` columns; an empty one leaves them as they stand.
  OrderEncoding(const std::vector<int32_t> &places, int64_t columns)
      : places(places) {
    tensor.dtype = runtime::DType::F32;
    tensor.shape = {columns};
    tensor.encoding = this;
  }

  const char *name() const override { return "order"; }
  bool isQuantized() const override { return false; }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override {
    for (int64_t i = 0; i < count; ++i)
      out[i] = float(places.empty() ? int32_t(first + i)
                                    : places[size_t(first + i)]);
  }

  const std::vector<int32_t> &places;
  CheckpointTensor tensor; ///< that has this encoding
};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_ORDERENCODING_H
