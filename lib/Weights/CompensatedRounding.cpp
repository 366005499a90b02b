//===- CompensatedRounding.cpp - Rounding that makes up for itself --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/CompensatedRounding.h"

#include "GroupRounding.h"
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

namespace {
/// The steps that numbers of a group make: value = scale * step.
struct Steps {
  Steps(const StoredForm &form, GroupScale by)
      : scale(by.scale), zero(form.zeros ? by.zero : float(form.middle())),
        least((form.bits == 8 && !form.zeros ? 1.0f : 0.0f) - zero),
        most((form.bits == 4 ? 15.0f : 255.0f) - zero) {
    // Zero if the scale is none, or too small to divide by.
    inverse = 1 / scale;
    if (!std::isfinite(inverse))
      inverse = 0;
  }

  float round(float value) const {
    return std::clamp(std::nearbyint(value * inverse), least, most);
  }
  GroupScale get() const { return {scale, zero}; }

  float scale, zero, least, most, inverse;
};
} // namespace

/// What scales of the form can be.
static float storable(const StoredForm &form, float scale) {
  return form.scales == ScaleType::Half
             ? runtime::halfToFloat(runtime::floatToHalf(scale))
             : scale;
}

/// The scale around the plain one at which rounding loses the least weighted
/// sum of squares. Without zero points 4 bits reach one step farther to one
/// side, which may be either.
static Steps searchSteps(const StoredForm &form, const float *values,
                         const double *weights) {
  GroupScale plain = GroupRounding(form, values).getScale();
  Steps best(form, plain);
  double least = -1;
  bool bothSides = form.bits == 4 && !form.zeros;
  for (int step = 0; step <= 24; ++step)
    for (float sign : {1.0f, -1.0f}) {
      if (sign < 0 && !bothSides)
        continue;
      // A zero point is where the least value is, or what is near enough.
      float by = sign * (1.2f - 0.025f * float(step));
      Steps steps(form, {storable(form, plain.scale * by), plain.zero});
      double lost = 0;
      for (int64_t i = 0; i < form.group; ++i) {
        double off = values[i] - steps.scale * steps.round(values[i]);
        lost += weights[i] * off * off;
      }
      if (least < 0 || lost < least) {
        least = lost;
        best = steps;
      }
    }
  return best;
}

/// U, upper triangular, with U^T U the inverse of `h` with `damping` added to
/// its diagonal. Row k tells how columns behind k make up for column k if those
/// before it are fixed. Memory holds one matrix of doubles: rows and columns in
/// reverse, `h` is C C^T with C below the diagonal, and the inverse of C, in
/// reverse again, is U. It is found some columns at a time.
static Floats factorInverse(const Eigen::Ref<const Floats> &h, double damping) {
  constexpr int64_t atOnce = 128;
  int64_t size = h.rows();
  Doubles lower = h.reverse().cast<double>();
  lower.diagonal().array() += damping;
  Eigen::LLT<Eigen::Ref<Doubles>> inPlace(lower);
  Floats upper = Floats::Zero(size, size);
  for (int64_t first = 0; first < size; first += atOnce) {
    int64_t count = std::min(atOnce, size - first), rest = size - first;
    Doubles columns = Doubles::Identity(rest, count);
    lower.bottomRightCorner(rest, rest)
        .triangularView<Eigen::Lower>()
        .solveInPlace(columns);
    upper.block(0, rest - count, rest, count) = columns.reverse().cast<float>();
  }
  return upper;
}

/// The sum of squares of the results of `m`.
static double powerOf(const Floats &m, const Eigen::Ref<const Floats> &h) {
  return std::max(double((m * h).cwiseProduct(m).cast<double>().sum()), 0.0);
}

namespace {
/// A row of a rounded matrix, whose numbers and scales are moved one by one to
/// where the others leave the least to lose (coordinate descent, as in
/// QuantEase, Behdin et al. 2023): compensation alone never looks back.
class RowRefinement {
public:
  RowRefinement(const Floats &h, const StoredForm &form, uint8_t *numbers,
                GroupScale *scales, float *values)
      : h(h), form(form), group(form.group), numbers(numbers), scales(scales),
        values(values) {}

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
    auto &[scale, zero] = scales[begin / group];
    Eigen::RowVectorXf steps(group);
    for (int64_t i = 0; i < group; ++i)
      steps[i] = float(numbers[begin + i]) - zero;
    Eigen::RowVectorXf along = steps * h.middleRows(begin, group);
    float gain = steps.dot(pull.segment(begin, group));
    float curve = steps.dot(along.segment(begin, group));
    if (scale == 0 || !(curve > 0))
      return false;
    float next = storable(form, scale + gain / curve), by = next - scale;
    if (by == 0 || next == 0 || !(2 * by * gain > by * by * curve))
      return false;
    scale = next;
    pull -= by * along;
    for (int64_t i = 0; i < group; ++i)
      values[begin + i] = scale * steps[i];
    return true;
  }

  bool moveNumber(int64_t k) {
    Steps steps(form, scales[k / group]);
    if (steps.inverse == 0)
      return false;
    float number = steps.round(values[k] + pull[k] / h(k, k)) + steps.zero;
    if (number == float(numbers[k]))
      return false;
    float by = steps.scale * (number - float(numbers[k]));
    numbers[k] = uint8_t(number);
    values[k] += by;
    pull -= by * h.row(k);
    return true;
  }

  const Floats &h;
  StoredForm form;
  int64_t group;
  uint8_t *numbers;
  GroupScale *scales;
  float *values;
  Eigen::RowVectorXf pull; ///< what is lost, times `h`
};
} // namespace

RoundedMatrix roundCompensating(const float *matrix, int64_t rows,
                                int64_t columns, const float *products,
                                const StoredForm &form) {
  int64_t group = form.group;
  Eigen::Map<const Floats> w(matrix, rows, columns),
      h(products, columns, columns);
  double damping = h.diagonal().cast<double>().mean() / 100;
  damping = damping > 0 ? damping : 1;
  Floats upper = factorInverse(h, damping);
  std::vector<double> weights(static_cast<size_t>(columns));
  for (int64_t k = 0; k < columns; ++k)
    weights[size_t(k)] = double(h(k, k)) + damping;

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
      Steps steps = searchSteps(form, values, &weights[size_t(begin)]);
      result.scales[size_t(row * (columns / group) + begin / group)] =
          steps.get();
      for (int64_t i = 0; i < group; ++i) {
        float number = steps.round(values[i]);
        result.numbers[size_t(row * columns + begin + i)] =
            uint8_t(number + steps.zero);
        kept(row, begin + i) = steps.scale * number;
        float error = (values[i] - steps.scale * number) / inner(i, i);
        errors(row, i) = error;
        for (int64_t j = i + 1; j < group; ++j)
          values[j] -= error * inner(i, j);
      }
      const float *whole = matrix + row * columns + begin;
      Steps plainly(form, GroupRounding(form, whole).getScale());
      for (int64_t i = 0; i < group; ++i)
        plain(row, begin + i) = plainly.scale * plainly.round(whole[i]);
    }
    int64_t rest = columns - begin - group;
    if (rest > 0)
      left.rightCols(rest).noalias() -=
          errors * upper.block(begin, begin + group, group, rest);
  }
  upper.resize(0, 0);
  Floats seen = h;
  for (int64_t k = 0; k < columns; ++k)
    seen(k, k) = float(weights[size_t(k)]);
  for (int64_t row = 0; row < rows; ++row)
    RowRefinement(seen, form, &result.numbers[size_t(row * columns)],
                  &result.scales[size_t(row * (columns / group))],
                  &kept(row, 0))
        .run(w.row(row));
  result.loss = {powerOf(w - kept, h), powerOf(w - plain, h), powerOf(w, h)};
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

std::vector<float> multiplyRows(const float *inputs, int64_t rows,
                                int64_t columns, const float *matrix,
                                int64_t results) {
  std::vector<float> out(size_t(rows * results));
  Eigen::Map<Floats>(out.data(), rows, results).noalias() =
      Eigen::Map<const Floats>(inputs, rows, columns) *
      Eigen::Map<const Floats>(matrix, results, columns).transpose();
  return out;
}

void mirrorProducts(int64_t columns, float *products) {
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j < i; ++j)
      products[j * columns + i] = products[i * columns + j];
}

} // namespace attune
