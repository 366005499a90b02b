//===- CompensatedRounding.cpp - Rounding that makes up for itself --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/CompensatedRounding.h"

#include "attune/Runtime/DType.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>

namespace attune {

using Doubles =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Floats =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The nearest f16.
static float toHalf(float value) {
  return runtime::halfToFloat(runtime::floatToHalf(value));
}

static float roundTo(float value, float inverse) {
  return std::clamp(std::nearbyint(value * inverse), -8.0f, 7.0f);
}

/// Zero if the scale is none, or too small to divide by.
static float invert(float scale) {
  float inverse = 1 / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

/// The scale at which the number of largest magnitude is -8.
static float plainScale(const float *values, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::fabs(values[i]) > std::fabs(largest) ? values[i] : largest;
  return toHalf(largest / -8);
}

/// Of scales around the plain one and of the other sign, the one at which the
/// weighted sum of squares that rounding loses is least.
static float searchScale(const float *values, const double *weights,
                         int64_t count) {
  float plain = plainScale(values, count), best = plain;
  double least = -1;
  for (int step = 0; step <= 24; ++step)
    for (float sign : {1.0f, -1.0f}) {
      float scale = toHalf(plain * sign * (1.2f - 0.025f * float(step)));
      float inverse = invert(scale);
      double lost = 0;
      for (int64_t i = 0; i < count; ++i) {
        double off = values[i] - scale * roundTo(values[i], inverse);
        lost += weights[i] * off * off;
      }
      if (least < 0 || lost < least) {
        least = lost;
        best = scale;
      }
    }
  return best;
}

/// U, upper triangular, with U^T U the inverse of `h`. Row k tells how columns
/// behind k make up for column k if those before it are fixed.
static Floats factorInverse(const Doubles &h) {
  Eigen::LLT<Doubles> first(h);
  Doubles inverse = first.solve(Doubles::Identity(h.rows(), h.cols()));
  Eigen::LLT<Doubles> second(inverse);
  return Doubles(second.matrixU()).cast<float>();
}

/// The root mean square of what results lose by `off`, by that of all.
static double errorOf(const Floats &off, const Floats &w, const Floats &h) {
  auto power = [&](const Floats &m) {
    return double((m * h).cwiseProduct(m).cast<double>().sum());
  };
  double total = power(w);
  return total > 0 ? std::sqrt(std::max(power(off), 0.0) / total) : 0;
}

namespace {
/// A row of a rounded matrix, whose numbers and scales are moved one by one to
/// where the others leave the least to lose (coordinate descent, as in
/// QuantEase, Behdin et al. 2023): compensation alone never looks back.
class RowRefinement {
public:
  RowRefinement(const Floats &h, int64_t group, int8_t *numbers, float *scales,
                float *values)
      : h(h), group(group), numbers(numbers), scales(scales), values(values) {}

  void run(const Eigen::RowVectorXf &row) {
    constexpr int most = 8;
    pull = (row - Eigen::Map<const Eigen::RowVectorXf>(values, row.size())) * h;
    bool moved = true;
    for (int sweep = 0; moved && sweep < most; ++sweep) {
      moved = false;
      for (int64_t begin = 0; begin < row.size(); begin += group) {
        moved |= moveScale(begin);
        for (int64_t k = begin; k < begin + group; ++k)
          moved |= moveNumber(k);
      }
    }
  }

private:
  bool moveScale(int64_t begin) {
    float &scale = scales[begin / group];
    Eigen::RowVectorXf steps(group);
    for (int64_t i = 0; i < group; ++i)
      steps[i] = numbers[begin + i];
    Eigen::RowVectorXf along = steps * h.middleRows(begin, group);
    float gain = steps.dot(pull.segment(begin, group));
    float curve = steps.dot(along.segment(begin, group));
    if (scale == 0 || !(curve > 0))
      return false;
    float next = toHalf(scale + gain / curve), by = next - scale;
    if (by == 0 || next == 0 || !(2 * by * gain > by * by * curve))
      return false;
    scale = next;
    pull -= by * along;
    for (int64_t i = 0; i < group; ++i)
      values[begin + i] = scale * steps[i];
    return true;
  }

  bool moveNumber(int64_t k) {
    float scale = scales[k / group];
    if (scale == 0)
      return false;
    float number = roundTo(values[k] + pull[k] / h(k, k), 1 / scale);
    if (number == float(numbers[k]))
      return false;
    float by = scale * (number - float(numbers[k]));
    numbers[k] = int8_t(number);
    values[k] += by;
    pull -= by * h.row(k);
    return true;
  }

  const Floats &h;
  int64_t group;
  int8_t *numbers;
  float *scales, *values;
  Eigen::RowVectorXf pull; ///< what is lost, times `h`
};
} // namespace

RoundedMatrix roundCompensating(const float *matrix, int64_t rows,
                                int64_t columns, const float *products,
                                int64_t group) {
  Eigen::Map<const Floats> w(matrix, rows, columns),
      h(products, columns, columns);
  Doubles damped = h.cast<double>();
  double damping = damped.diagonal().mean() / 100;
  damped.diagonal().array() += damping > 0 ? damping : 1;
  Floats upper = factorInverse(damped);
  std::vector<double> weights(static_cast<size_t>(columns));
  for (int64_t k = 0; k < columns; ++k)
    weights[size_t(k)] = damped(k, k);

  RoundedMatrix result;
  result.numbers.resize(size_t(rows * columns));
  result.scales.resize(size_t(rows * (columns / group)));
  Floats left = w, kept(rows, columns), plain(rows, columns);
  // A group at a time: what it loses reaches the rest in one product.
  for (int64_t begin = 0; begin < columns; begin += group) {
    Floats errors(rows, group);
    auto inner = upper.block(begin, begin, group, group);
    for (int64_t row = 0; row < rows; ++row) {
      float *values = &left(row, begin);
      float scale = searchScale(values, &weights[size_t(begin)], group);
      float inverse = invert(scale);
      result.scales[size_t(row * (columns / group) + begin / group)] = scale;
      for (int64_t i = 0; i < group; ++i) {
        float number = roundTo(values[i], inverse);
        result.numbers[size_t(row * columns + begin + i)] = int8_t(number);
        kept(row, begin + i) = scale * number;
        float error = (values[i] - scale * number) / inner(i, i);
        errors(row, i) = error;
        for (int64_t j = i + 1; j < group; ++j)
          values[j] -= error * inner(i, j);
      }
      float plainly = plainScale(matrix + row * columns + begin, group);
      float by = invert(plainly);
      for (int64_t i = 0; i < group; ++i)
        plain(row, begin + i) = plainly * roundTo(w(row, begin + i), by);
    }
    int64_t rest = columns - begin - group;
    if (rest > 0)
      left.rightCols(rest).noalias() -=
          errors * upper.block(begin, begin + group, group, rest);
  }
  Floats seen = damped.cast<float>();
  for (int64_t row = 0; row < rows; ++row)
    RowRefinement(seen, group, &result.numbers[size_t(row * columns)],
                  &result.scales[size_t(row * (columns / group))],
                  &kept(row, 0))
        .run(w.row(row));
  seen = h;
  result.error = errorOf(w - kept, w, seen);
  result.nearestError = errorOf(w - plain, w, seen);
  result.lost = double((w - kept).squaredNorm());
  result.total = double(w.squaredNorm());
  return result;
}

void addProducts(const float *inputs, int64_t rows, int64_t columns,
                 float *products) {
  Eigen::Map<const Floats> x(inputs, rows, columns);
  Eigen::Map<Floats> sum(products, columns, columns);
  sum.selfadjointView<Eigen::Lower>().rankUpdate(x.transpose());
}

void mirrorProducts(int64_t columns, float *products) {
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j < i; ++j)
      products[j * columns + i] = products[i * columns + j];
}

} // namespace attune
