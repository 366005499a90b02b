//===- LowRank.h - Matrices as products of two thin ones --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_LOWRANK_H
#define ATTUNE_WEIGHTS_LOWRANK_H

#include <cstdint>
#include <optional>
#include <vector>

namespace attune {

/// W [rows, columns] as left [rows, rank] times right [rank, columns]: the
/// truncated singular value decomposition, of all products of that rank the
/// nearest (Eckart and Young 1936). Columns of `left` are singular vectors, of
/// length one; `right` has the singular values in it. So a row of either has
/// numbers of one size, which suits what rounds them to few bits later.
struct LowRankFactors {
  int64_t rank = 0;
  std::vector<float> left, right;
  /// |W - left right| / |W|, root of the sums of squares, measured with the
  /// numbers above; 0 if W is.
  double error = 0;
};

/// Matrices whose shorter side is at most this are decomposed exactly, but for
/// rounding in double precision, by way of W W^T. Larger ones meet a random
/// subspace (Halko, Martinsson and Tropp 2011) with two power iterations and a
/// few more directions than asked for, whose error is within a few percent of
/// the least. What is reported as error is measured either way.
constexpr int64_t kMostExactSide = 1024;

/// `rank` is 1 to the shorter side.
LowRankFactors factorize(const float *matrix, int64_t rows, int64_t columns,
                         int64_t rank);

/// The least rank, a multiple of `step`, whose error is at most `error`;
/// nothing if that is more than `most`. Large matrices are seen in a random
/// subspace, so that the measured error may be a little more than `error`.
std::optional<int64_t> findRank(const float *matrix, int64_t rows,
                                int64_t columns, double error, int64_t step,
                                int64_t most);

} // namespace attune

#endif // ATTUNE_WEIGHTS_LOWRANK_H
