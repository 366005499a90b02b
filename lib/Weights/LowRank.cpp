//===- LowRank.cpp - Matrices as products of two thin ones ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Eigen's headers take long to compile: its users are this file and
// CompensatedRounding.cpp.

#include "attune/Weights/LowRank.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <random>

namespace attune {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Floats =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Input = Eigen::Map<const Floats>;

/// Rows that are widened to double at a time.
constexpr int64_t kBlock = 256;

/// W W^T, or W^T W of a tall matrix.
static Matrix gramOf(const Input &w) {
  bool tall = w.rows() > w.cols();
  Eigen::Index side = std::min(w.rows(), w.cols()),
               length = std::max(w.rows(), w.cols());
  Matrix gram = Matrix::Zero(side, side);
  for (Eigen::Index at = 0; at < length; at += kBlock) {
    Eigen::Index count = std::min<Eigen::Index>(kBlock, length - at);
    Matrix part =
        tall ? Matrix(w.middleRows(at, count).cast<double>().transpose())
             : Matrix(w.middleCols(at, count).cast<double>());
    gram.selfadjointView<Eigen::Lower>().rankUpdate(part);
  }
  return gram;
}

/// W X of doubles, a block of rows at a time.
static Matrix times(const Input &w, const Matrix &x) {
  Matrix result(w.rows(), x.cols());
  for (Eigen::Index at = 0; at < w.rows(); at += kBlock) {
    Eigen::Index count = std::min<Eigen::Index>(kBlock, w.rows() - at);
    result.middleRows(at, count).noalias() =
        w.middleRows(at, count).cast<double>() * x;
  }
  return result;
}

/// W^T X.
static Matrix timesTransposed(const Input &w, const Matrix &x) {
  Matrix result = Matrix::Zero(w.cols(), x.cols());
  for (Eigen::Index at = 0; at < w.rows(); at += kBlock) {
    Eigen::Index count = std::min<Eigen::Index>(kBlock, w.rows() - at);
    result.noalias() += w.middleRows(at, count).cast<double>().transpose() *
                        x.middleRows(at, count);
  }
  return result;
}

static double squaresOf(const Input &w) {
  double sum = 0;
  for (Eigen::Index row = 0; row < w.rows(); ++row)
    sum += w.row(row).cast<double>().squaredNorm();
  return sum;
}

/// An orthonormal basis of the columns of `y`. Twice, since the first pass
/// leaves what rounding of y^T y does; directions without length are dropped.
static Matrix orthonormal(Matrix y) {
  for (int pass = 0; pass < 2; ++pass) {
    Matrix gram = y.transpose() * y;
    Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
    double largest = std::max(solver.eigenvalues().tail(1)(0), 0.0);
    Eigen::Index kept = 0;
    while (kept < y.cols() &&
           solver.eigenvalues()(y.cols() - 1 - kept) > 1e-14 * largest)
      ++kept;
    Matrix by = solver.eigenvectors().rightCols(kept);
    for (Eigen::Index i = 0; i < kept; ++i)
      by.col(i) /= std::sqrt(solver.eigenvalues()(y.cols() - kept + i));
    y = y * by;
  }
  return y;
}

/// A basis [rows, about count] of where W is longest. Products are in single
/// precision: what they round is small beside what a random start misses.
static Matrix rangeOf(const Input &w, int64_t count) {
  // The same numbers each time, so that products are.
  std::mt19937_64 engine(0x6c6f7772616e6bu);
  Floats start(w.cols(), count);
  for (Eigen::Index i = 0; i < start.size(); ++i)
    start.data()[i] = float(int32_t(engine() >> 32)) * 0x1p-31f;
  auto rowSide = [&](const Floats &x) {
    return orthonormal(Floats(w * x).cast<double>());
  };
  auto columnSide = [&](const Matrix &x) {
    Floats product = w.transpose() * x.cast<float>();
    return Floats(orthonormal(product.cast<double>()).cast<float>());
  };
  Matrix basis = rowSide(start);
  for (int power = 0; power < 2; ++power)
    basis = rowSide(columnSide(basis));
  return basis;
}

/// Directions over those asked for.
static int64_t widenRank(const Input &w, int64_t rank) {
  int64_t side = std::min(w.rows(), w.cols());
  return std::min(rank + std::max<int64_t>(16, rank / 8), side);
}

/// The leading left singular vectors [rows, at most rank], longest first, and
/// U^T W [that, columns].
static void decompose(const Input &w, int64_t rank, Matrix &left,
                      Matrix &right) {
  Matrix gram, basis;
  bool exact = std::min(w.rows(), w.cols()) <= kMostExactSide;
  if (exact) {
    gram = gramOf(w);
  } else {
    basis = rangeOf(w, widenRank(w, rank));
    Matrix inner = timesTransposed(w, basis);
    gram = inner.transpose() * inner;
  }
  Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
  rank = std::min<int64_t>(rank, gram.cols());
  Matrix vectors = solver.eigenvectors().rightCols(rank).rowwise().reverse();
  if (exact && w.rows() > w.cols()) {
    // Right singular vectors: W V is left by singular value.
    left = times(w, vectors);
    right = vectors.transpose();
    for (Eigen::Index i = 0; i < rank; ++i) {
      double length = left.col(i).norm();
      right.row(i) *= length;
      if (length > 0)
        left.col(i) /= length;
    }
    return;
  }
  left = exact ? vectors : Matrix(basis * vectors);
  right = timesTransposed(w, left).transpose();
}

LowRankFactors factorize(const float *matrix, int64_t rows, int64_t columns,
                         int64_t rank) {
  Input w(matrix, rows, columns);
  LowRankFactors result;
  result.rank = rank;
  double total = squaresOf(w);
  if (!(total > 0) || !std::isfinite(total)) {
    // A matrix of zeros stays so, and one that is not finite too.
    result.left.assign(rows * rank, static_cast<float>(total));
    result.right.assign(rank * columns, static_cast<float>(total));
    return result;
  }
  Matrix left, right;
  decompose(w, rank, left, right);
  // A matrix of a lower rank leaves the rest zero.
  Floats thin = Floats::Zero(rows, rank), flat = Floats::Zero(rank, columns);
  thin.leftCols(left.cols()) = left.cast<float>();
  flat.topRows(right.rows()) = right.cast<float>();
  double lost = 0;
  for (Eigen::Index at = 0; at < rows; at += kBlock) {
    Eigen::Index count = std::min<Eigen::Index>(kBlock, rows - at);
    Floats rest = w.middleRows(at, count) - thin.middleRows(at, count) * flat;
    lost += rest.cast<double>().squaredNorm();
  }
  result.error = std::sqrt(lost / total);
  result.left.assign(thin.data(), thin.data() + thin.size());
  result.right.assign(flat.data(), flat.data() + flat.size());
  return result;
}

/// The least multiple of `step` that leaves at most `allowed` of `total`, where
/// directions hold `squares`, in ascending order; nothing if all do not do.
static std::optional<int64_t> countDirections(const Eigen::VectorXd &squares,
                                              double total, double allowed,
                                              int64_t step, int64_t most) {
  double rest = total;
  for (int64_t rank = 1; rank <= squares.size(); ++rank) {
    rest -= std::max(squares(squares.size() - rank), 0.0);
    if (rank % step == 0 && rest <= allowed)
      return rank <= most ? std::optional<int64_t>(rank) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<int64_t> findRank(const float *matrix, int64_t rows,
                                int64_t columns, double error, int64_t step,
                                int64_t most) {
  Input w(matrix, rows, columns);
  double total = squaresOf(w), allowed = error * error * total;
  if (most < step || !std::isfinite(total))
    return std::nullopt;
  if (!(total > 0))
    return step;
  if (std::min(rows, columns) <= kMostExactSide) {
    Eigen::SelfAdjointEigenSolver<Matrix> solver(gramOf(w),
                                                 Eigen::EigenvaluesOnly);
    return countDirections(solver.eigenvalues(), total, allowed, step, most);
  }
  for (int64_t tried = std::min<int64_t>(most, 256);;
       tried = std::min(most, 2 * tried)) {
    Matrix basis = rangeOf(w, widenRank(w, tried));
    Matrix inner = timesTransposed(w, basis);
    Eigen::SelfAdjointEigenSolver<Matrix> solver(
        Matrix(inner.transpose() * inner), Eigen::EigenvaluesOnly);
    if (auto rank =
            countDirections(solver.eigenvalues(), total, allowed, step, tried))
      return rank;
    if (tried == most)
      return std::nullopt;
  }
}

} // namespace attune
