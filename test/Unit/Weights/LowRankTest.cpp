//===- LowRankTest.cpp - Truncated singular value decompositions ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/LowRank.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace attune;

/// A matrix with known singular values: entries sum_i values[i] u_i[r] v_i[c],
/// of columns of the discrete cosine transform, which are orthonormal.
static std::vector<float> makeMatrix(int64_t rows, int64_t columns,
                                     const std::vector<double> &values) {
  auto basis = [](int64_t size, int64_t i, int64_t at) {
    return std::sqrt((i ? 2.0 : 1.0) / double(size)) *
           std::cos(M_PI * (double(at) + 0.5) * double(i) / double(size));
  };
  std::vector<double> right(values.size() * columns);
  for (size_t i = 0; i < values.size(); ++i)
    for (int64_t c = 0; c < columns; ++c)
      right[i * columns + c] = values[i] * basis(columns, int64_t(i), c);
  std::vector<float> matrix(rows * columns);
  std::vector<double> sums(columns);
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(sums.begin(), sums.end(), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      double by = basis(rows, int64_t(i), r);
      for (int64_t c = 0; c < columns; ++c)
        sums[c] += by * right[i * columns + c];
    }
    std::copy(sums.begin(), sums.end(), matrix.begin() + r * columns);
  }
  return matrix;
}

static std::vector<double> falling(size_t count, double by) {
  std::vector<double> values(count, 1.0);
  for (size_t i = 1; i < count; ++i)
    values[i] = values[i - 1] * by;
  return values;
}

/// What the best product of that rank is off by.
static double bestError(const std::vector<double> &values, size_t rank) {
  double total = 0, lost = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    total += values[i] * values[i];
    lost += i < rank ? 0 : values[i] * values[i];
  }
  return std::sqrt(lost / total);
}

static double errorOf(const std::vector<float> &matrix, int64_t rows,
                      int64_t columns, const LowRankFactors &factors) {
  double total = 0, lost = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0, wanted = matrix[r * columns + c];
      for (int64_t i = 0; i < factors.rank; ++i)
        sum += double(factors.left[r * factors.rank + i]) *
               factors.right[i * columns + c];
      total += wanted * wanted;
      lost += (wanted - sum) * (wanted - sum);
    }
  return std::sqrt(lost / total);
}

TEST(LowRank, IsTheNearestOfItsRank) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>(60, 90),
                               {90, 60},
                               {50, 50},
                               {1, 7},
                               {7, 1}}) {
    std::vector<double> values = falling(std::min(rows, columns), 0.9);
    std::vector<float> matrix = makeMatrix(rows, columns, values);
    for (int64_t rank : {1, 5, 20}) {
      if (rank > std::min(rows, columns))
        continue;
      LowRankFactors factors = factorize(matrix.data(), rows, columns, rank);
      double best = bestError(values, rank);
      EXPECT_NEAR(factors.error, best, 1e-6) << rows << "x" << columns;
      EXPECT_NEAR(errorOf(matrix, rows, columns, factors), best, 1e-6);
      // Columns of the left factor have length one.
      for (int64_t i = 0; i < rank; ++i) {
        double length = 0;
        for (int64_t r = 0; r < rows; ++r)
          length += std::pow(double(factors.left[r * rank + i]), 2);
        EXPECT_NEAR(length, 1, 1e-5);
      }
    }
  }
}

TEST(LowRank, LargeMatricesComeNear) {
  constexpr int64_t rows = kMostExactSide + 76, columns = 1300, rank = 40;
  // Slowly falling values are the hard case.
  std::vector<double> values = falling(400, 0.99);
  std::vector<float> matrix = makeMatrix(rows, columns, values);
  LowRankFactors factors = factorize(matrix.data(), rows, columns, rank);
  double best = bestError(values, rank);
  EXPECT_GE(factors.error, best - 1e-6);
  EXPECT_LT(factors.error, best * 1.01);
  EXPECT_NEAR(errorOf(matrix, rows, columns, factors), factors.error, 1e-5);
  // The same each time.
  EXPECT_EQ(factorize(matrix.data(), rows, columns, rank).left, factors.left);
  auto found =
      findRank(matrix.data(), rows, columns, best * 1.001, 8, /*most=*/500);
  ASSERT_TRUE(found);
  EXPECT_GE(*found, rank);
  EXPECT_LE(*found, rank + 8);
}

TEST(LowRank, FindsTheLeastRank) {
  std::vector<double> values = falling(60, 0.9);
  std::vector<float> matrix = makeMatrix(60, 90, values);
  EXPECT_EQ(
      findRank(matrix.data(), 60, 90, bestError(values, 7) * 1.0001, 1, 30), 7);
  EXPECT_EQ(
      findRank(matrix.data(), 60, 90, bestError(values, 7) * 1.0001, 8, 30), 8);
  EXPECT_EQ(
      findRank(matrix.data(), 60, 90, bestError(values, 9) * 1.0001, 8, 30),
      16);
  EXPECT_EQ(
      findRank(matrix.data(), 60, 90, bestError(values, 9) * 1.0001, 8, 15),
      std::nullopt);
}

TEST(LowRank, StrangeMatrices) {
  std::vector<float> zeros(20 * 30, 0.0f);
  LowRankFactors factors = factorize(zeros.data(), 20, 30, 4);
  EXPECT_EQ(factors.left, std::vector<float>(20 * 4, 0.0f));
  EXPECT_EQ(factors.right, std::vector<float>(4 * 30, 0.0f));
  EXPECT_EQ(factors.error, 0);
  EXPECT_EQ(findRank(zeros.data(), 20, 30, 0.1, 4, 10), 4);

  // Of rank one: more directions than there are.
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>(20, 30), {30, 20}, {1030, 1031}}) {
    std::vector<float> ones(rows * columns, 2.0f);
    factors = factorize(ones.data(), rows, columns, 4);
    EXPECT_LT(factors.error, 1e-6);
    for (float value : factors.right)
      EXPECT_TRUE(std::isfinite(value));
  }

  zeros[17] = std::numeric_limits<float>::quiet_NaN();
  factors = factorize(zeros.data(), 20, 30, 4);
  EXPECT_TRUE(std::isnan(factors.left[0]) && std::isnan(factors.right[0]));
  EXPECT_EQ(findRank(zeros.data(), 20, 30, 0.1, 4, 10), std::nullopt);
}
