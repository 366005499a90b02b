//===- FactorEncoding.cpp - Factors of matrices, made when needed ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FactorEncoding.h"

#include <algorithm>

namespace attune {

const LowRankFactors &FactoredMatrix::get() {
  std::call_once(once, [&] {
    std::vector<float> values = product->values();
    factors = factorize(values.data(), product->rows, product->columns, rank);
    lost = factors.error;
  });
  return factors;
}

void FactorEncoding::decode(const CheckpointTensor &, int64_t first,
                            int64_t count, float *out) const {
  const LowRankFactors &factors = matrix->get();
  const std::vector<float> &values = left ? factors.left : factors.right;
  std::copy_n(values.data() + first, count, out);
}

} // namespace attune
