//===- FactorEncoding.h - Factors of matrices, made when needed -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_FACTORENCODING_H
#define ATTUNE_LIB_WEIGHTS_FACTORENCODING_H

#include "WeightPacker.h"
#include "attune/Weights/LowRank.h"
#include "attune/Weights/TensorEncoding.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace attune {

/// Both factors of one layer of a matrix.
class FactoredMatrix final : public SharedResult {
public:
  /// `product` is read row by row as f32.
  FactoredMatrix(std::unique_ptr<PackedMatrix> product, int64_t rank)
      : product(std::move(product)), rank(rank) {}

  const LowRankFactors &get();
  /// After the last task.
  double error() const { return lost; }
  const PackedMatrix &getProduct() const { return *product; }

private:
  void release() override { factors = {}; }

  std::unique_ptr<PackedMatrix> product;
  int64_t rank;
  std::once_flag once;
  LowRankFactors factors;
  double lost = 0;
};

/// One of the two as a tensor of f32.
struct FactorEncoding final : TensorEncoding {
  FactorEncoding(std::shared_ptr<FactoredMatrix> matrix, bool left)
      : matrix(std::move(matrix)), left(left) {}

  const char *name() const override { return "low rank"; }
  bool isQuantized() const override { return false; }
  void decode(const CheckpointTensor &, int64_t first, int64_t count,
              float *out) const override;

  std::shared_ptr<FactoredMatrix> matrix;
  bool left;
  CheckpointTensor tensor; ///< that has this encoding
};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_FACTORENCODING_H
