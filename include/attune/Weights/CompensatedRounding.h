//===- CompensatedRounding.h - Rounding that makes up for itself *- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_COMPENSATEDROUNDING_H
#define ATTUNE_WEIGHTS_COMPENSATEDROUNDING_H

#include "attune/Weights/StoredForm.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace attune {

/// Sums of squares of the results X W^T over the inputs X: the loss by
/// rounding, the loss if each number were rounded to the nearest, and all.
struct ResultLoss {
  double lost = 0, byNearest = 0, all = 0;

  void add(const ResultLoss &other) {
    lost += other.lost;
    byNearest += other.byNearest;
    all += other.all;
  }
  /// Relative, root mean square.
  double error() const { return all > 0 ? std::sqrt(lost / all) : 0; }
  double nearestError() const {
    return all > 0 ? std::sqrt(byNearest / all) : 0;
  }
};

/// A matrix W [rows, columns] in numbers as they are stored, with a scale, and
/// a zero point, for each group of neighbours of a row.
struct RoundedMatrix {
  std::vector<uint8_t> numbers;   ///< [rows, columns]
  std::vector<GroupScale> scales; ///< [rows, columns / group]
  ResultLoss loss;
  /// Sums of squares over the matrix itself: of what is lost, and of all.
  double lost = 0, total = 0;
};

/// Rounds column by column, and lets the columns that are still to come make up
/// for what each loses, as `products`, X^T X [columns, columns] of the inputs,
/// says they can (GPTQ, Frantar et al. 2023). The scale of a group is the one
/// under which the least is lost, weighted by the inputs' squares (as in AWQ,
/// Lin et al. 2024). Then numbers and scales move one by one to where the
/// others leave the least to lose (coordinate descent, as in QuantEase).
/// `products` is positive semidefinite; a hundredth of the mean of its diagonal
/// is added, so that inputs that were not seen change little.
RoundedMatrix roundCompensating(const float *matrix, int64_t rows,
                                int64_t columns, const float *products,
                                const StoredForm &form);

/// Adds X^T X of `rows` inputs X to the lower triangle of `products`.
void addProducts(const float *inputs, int64_t rows, int64_t columns,
                 float *products);
/// X W^T [rows, results] of `rows` inputs X and W [results, columns].
std::vector<float> multiplyRows(const float *inputs, int64_t rows,
                                int64_t columns, const float *matrix,
                                int64_t results);
/// Fills the upper triangle.
void mirrorProducts(int64_t columns, float *products);

} // namespace attune

#endif // ATTUNE_WEIGHTS_COMPENSATEDROUNDING_H
