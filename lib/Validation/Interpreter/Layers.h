//===- Layers.h - Shared by definitions of attune ops -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_LAYERS_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_LAYERS_H

#include "Machine.h"

#include "attune/Validation/Activations.h"

/// The ops of the dialect in f64, by the formulas of the `.td` files and by
/// nothing else: sums are plain loops, a result is rounded once.
namespace attune::validation {

/// The array of an optional operand, or null.
inline const Array *arrayOf(Step &step, mlir::Value operand) {
  for (auto [value, datum] : llvm::zip(step.op->getOperands(), step.in))
    if (value == operand && operand)
      return &datum.array();
  return nullptr;
}
inline int64_t integerOf(Step &step, mlir::Value operand) {
  for (auto [value, datum] : llvm::zip(step.op->getOperands(), step.in))
    if (value == operand)
      return datum.integer();
  return 0;
}

/// An f64 array, zero.
inline Datum makeReals(llvm::ArrayRef<int64_t> shape) {
  return makeArray(shape, real(0));
}

/// Rounds the elements to the result's type and gives them.
void giveRounded(Step &step, unsigned result, Datum value);

/// Rows of a matrix that lies row after row or in panels. `rows` is how many
/// there are; panels do not tell.
class Rows {
public:
  /// Part number `part` of a stack of matrices (0 if it is none).
  Rows(const Array &array, int64_t rows, bool gated, bool stack = false,
       int64_t part = 0);
  /// If it is in panels and not as deep as `depth`, columns stand side by side:
  /// two of bf16, four of bytes.
  void readSideBySide(int64_t depth);
  Scalar at(int64_t row, int64_t column) const {
    return data[place(row, column)];
  }
  double operator()(int64_t row, int64_t column) const {
    return at(row, column).f;
  }
  int64_t getColumns() const { return columns; }
  int64_t getRows() const { return rows; }

private:
  int64_t place(int64_t row, int64_t column) const;
  const Scalar *data;
  int64_t rows, columns, width = 0; ///< of a panel; 0 if there are none
  int64_t side = 1;                 ///< columns side by side
  bool gated;
};

/// A matrix of 8 or 4 bits in groups (see attune.weight), of type `type` and
/// with scales of type `scalesType`, as the numbers it stands for: [rows,
/// depth].
Array readQuantized(const Array &numbers, mlir::ShapedType type,
                    const Array &scales, mlir::ShapedType scalesType,
                    bool zeros, int64_t rows, int64_t depth, bool gated);

/// x W^T + bias for one row.
std::vector<double> product(const Scalar *x, const Rows &w, const Array *bias,
                            std::optional<double> rmsEps = {});
/// What becomes of a row's sums: the two halves of a gated one become one.
void gate(std::vector<double> &z, Activation function, bool gated,
          double limit = HUGE_VAL, double upOffset = 0);
/// Matrix `number` of a stack.
Array partOf(const Array &stack, int64_t number);
/// Leading sizes of `x` and a width of its own.
Datum resultLike(const Array &x, int64_t width);
bool addResidual(Step &step, mlir::Value operand, Array &out);
/// The bytes of a group; returns its largest magnitude.
double roundGroup(const Scalar *in, int64_t group, int64_t *bytes);
/// Bytes of rows as the numbers they stand for.
Array readBytes(const Array &bytes, const Array &scales);

/// Checks that a size is what it must be for the op to have a meaning.
inline bool same(Step &step, int64_t a, int64_t b, const char *what) {
  return a == b ||
         step.machine.illegal(step, llvm::Twine(what) + ": " + llvm::Twine(a) +
                                        " and " + llvm::Twine(b));
}

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_LAYERS_H
