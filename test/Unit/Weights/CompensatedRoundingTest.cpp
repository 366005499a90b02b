//===- CompensatedRoundingTest.cpp - Rounding that makes up for itself ----===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/CompensatedRounding.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace attune;

static std::vector<float> makeNormal(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = normal(random);
  return values;
}

/// Inputs whose channels have much in common, and of which some are louder.
static std::vector<float> makeInputs(int64_t rows, int64_t columns) {
  std::vector<float> inputs = makeNormal(rows * columns, 5),
                     common = makeNormal(rows * 4, 6);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      float &value = inputs[size_t(r * columns + c)];
      value = 0.3f * value + common[size_t(r * 4 + c % 4)];
      if (c % 17 == 0)
        value *= 6;
    }
  return inputs;
}

static std::vector<float> productsOf(const std::vector<float> &inputs,
                                     int64_t columns) {
  std::vector<float> products(size_t(columns * columns));
  auto rows = int64_t(inputs.size()) / columns;
  // In two parts, as windows of a text are.
  addProducts(inputs.data(), rows / 3, columns, products.data());
  addProducts(&inputs[size_t(rows / 3 * columns)], rows - rows / 3, columns,
              products.data());
  mirrorProducts(columns, products.data());
  return products;
}

static float valueAt(const RoundedMatrix &rounded, int64_t i, int64_t group) {
  auto [scale, zero] = rounded.scales[size_t(i / group)];
  return (float(rounded.numbers[size_t(i)]) - zero) * scale;
}

/// What results lose over the inputs, by definition.
static double measure(const std::vector<float> &inputs,
                      const std::vector<float> &matrix,
                      const RoundedMatrix &rounded, int64_t columns,
                      int64_t group) {
  auto rows = int64_t(matrix.size()) / columns;
  double lost = 0, total = 0;
  for (size_t t = 0; t < inputs.size() / size_t(columns); ++t)
    for (int64_t n = 0; n < rows; ++n) {
      double now = 0, before = 0;
      for (int64_t k = 0; k < columns; ++k) {
        double input = inputs[t * size_t(columns) + size_t(k)];
        before += input * matrix[size_t(n * columns + k)];
        now += input * valueAt(rounded, n * columns + k, group);
      }
      lost += (now - before) * (now - before);
      total += before * before;
    }
  return std::sqrt(lost / total);
}

TEST(CompensatedRounding, ProductsAreSums) {
  std::vector<float> inputs = makeInputs(30, 8);
  std::vector<float> products = productsOf(inputs, 8);
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 8; ++j) {
      double sum = 0;
      for (size_t t = 0; t < 30; ++t)
        sum += double(inputs[t * 8 + i]) * inputs[t * 8 + j];
      EXPECT_NEAR(products[i * 8 + j], sum, 1e-3);
    }
}

class Forms : public testing::TestWithParam<StoredForm> {};

TEST_P(Forms, LosesLessThanTheNearest) {
  constexpr int64_t rows = 24, columns = 192, group = 32;
  std::vector<float> matrix = makeNormal(rows * columns, 1),
                     inputs = makeInputs(300, columns);
  // Groups of one sign have zero points at their ends.
  for (int64_t i = 0; i < rows * group; ++i)
    matrix[size_t(i)] = std::fabs(matrix[size_t(i)]);
  RoundedMatrix rounded =
      roundCompensating(matrix.data(), rows, columns,
                        productsOf(inputs, columns).data(), GetParam());
  // Errors are what they say. Sums are of floats.
  double measured = measure(inputs, matrix, rounded, columns, group);
  EXPECT_NEAR(rounded.loss.error(), measured, 1e-3 * measured + 1e-5);
  EXPECT_LT(rounded.loss.error(), 0.6 * rounded.loss.nearestError());
  double lost = 0, total = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    double off = double(matrix[size_t(i)]) - valueAt(rounded, i, group);
    lost += off * off;
    total += double(matrix[size_t(i)]) * matrix[size_t(i)];
  }
  EXPECT_NEAR(rounded.lost, lost, 1e-3 * lost);
  EXPECT_NEAR(rounded.total, total, 1e-3 * total);
}

INSTANTIATE_TEST_SUITE_P(
    CompensatedRounding, Forms,
    testing::Values(StoredForm::plain(4, 32), StoredForm::plain(8, 32),
                    StoredForm::withZeros(4, 32, ScaleType::Half),
                    StoredForm::withZeros(8, 32, ScaleType::Single)),
    [](const auto &info) {
      std::string name = info.param.text();
      for (char &c : name)
        c = c == ':' ? '_' : c;
      return name;
    });

TEST(CompensatedRounding, KeepsWhatFits) {
  // Whole numbers times scales of f16, -8 among them.
  constexpr int64_t rows = 3, columns = 64, group = 32;
  std::vector<float> matrix(rows * columns);
  for (int64_t i = 0; i < rows * columns; ++i)
    matrix[size_t(i)] = float(i * 7 % 16 - 8) * (i % 64 < 32 ? 0.25f : -2.0f);
  RoundedMatrix rounded =
      roundCompensating(matrix.data(), rows, columns,
                        productsOf(makeInputs(100, columns), columns).data(),
                        StoredForm::plain(4, group));
  for (int64_t i = 0; i < rows * columns; ++i)
    EXPECT_EQ(valueAt(rounded, i, group), matrix[size_t(i)]);
  EXPECT_EQ(rounded.loss.error(), 0);
  EXPECT_EQ(rounded.lost, 0);
}

TEST(CompensatedRounding, TakesInputsThatWereNotSeen) {
  constexpr int64_t rows = 4, columns = 32;
  std::vector<float> matrix = makeNormal(rows * columns, 2),
                     products(columns * columns, 0);
  RoundedMatrix rounded = roundCompensating(
      matrix.data(), rows, columns, products.data(), StoredForm::plain(4, 32));
  for (int64_t i = 0; i < rows * columns; ++i)
    EXPECT_NEAR(valueAt(rounded, i, 32), matrix[size_t(i)],
                std::fabs(rounded.scales[size_t(i / 32)].scale));
  // Zeros stay zeros, with any inputs.
  std::vector<float> zeros(rows * columns, 0);
  rounded =
      roundCompensating(zeros.data(), rows, columns,
                        productsOf(makeInputs(50, columns), columns).data(),
                        StoredForm::plain(4, 32));
  for (uint8_t number : rounded.numbers)
    EXPECT_EQ(number, 8);
  EXPECT_EQ(rounded.loss.error(), 0);
}
